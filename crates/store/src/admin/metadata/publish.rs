//! Publishing: the one order in which a layout and its objects become durable. New slices first, on all targets; then the
//! layout by tmp, fsync, rename, fsync(dir). Whoever punches does so only after that.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stripewise_layout::{Layout, Region, Span, View};
use stripewise_target::interface::{Object, Opening};
use stripewise_target::names::ObjectName;
use stripewise_target::text::parse_id;

use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::path_of;
use crate::admin::medium::{Attributes, FsyncPoint, Open, put_file};
use crate::admin::objects::{self, ObjectId};
use crate::admin::spec::stripes_of;
use crate::admin::store::{Store, layout_error};
use crate::names;
use crate::rights::may_lack_objects;

/// Objects that regions name.
pub fn objects_in<'a>(regions: impl IntoIterator<Item = &'a Region>) -> BTreeSet<ObjectId> {
    regions.into_iter().flat_map(|r| stripes_of(&r.placement).iter().map(|s| (s.target, r.generation & 1))).collect()
}

/// Objects that a layout names anywhere: home, pending or retired.
pub fn objects_of(layout: &Layout) -> BTreeSet<ObjectId> {
    objects_in(layout.regions.iter().chain(&layout.pending).chain(&layout.retired))
}

/// The objects of a layout's home that a file of `size` bytes reaches: these must be there.
///
/// # Errors
/// `Invalid` when the format refuses the layout.
pub fn objects_reached(store: &Store<'_>, id: u64, layout: &Layout, size: u64) -> Result<BTreeSet<ObjectId>> {
    let path = store.part(id, "layout");
    let bytes = layout.encode().map_err(|e| layout_error(&path, e))?;
    let mut reached = BTreeSet::new();
    View::parse(&bytes).map_err(|e| layout_error(&path, e))?.first_bytes(|target, plane, first| {
        if first < size {
            reached.insert((target, plane));
        }
    });
    Ok(reached)
}

/// Whether objects may be missing that the file does not reach ([`may_lack_objects`]).
///
/// # Errors
/// `Io`.
pub fn may_lack(store: &Store<'_>, id: u64) -> Result<bool> {
    let (files, head) = (store.files_dir(), store.part(id, "head"));
    let of = |path: &Path| store.medium.stat(path).doing("look at", path);
    let (Some(root), Some(files), Some(stat)) = (of(&store.root)?, of(&files)?, of(&head)?) else { return Ok(false) };
    let has_acl = !store.medium.acl(&head).doing("look at", &head)?.is_empty();
    Ok(!has_acl && may_lack_objects(files.mode, root.uid, stat.uid, stat.mode))
}

/// The objects with which a file of `size` bytes begins.
///
/// # Errors
/// As [`objects_reached`], `Io`.
pub fn objects_at_first(store: &Store<'_>, id: u64, layout: &Layout, size: u64) -> Result<BTreeSet<ObjectId>> {
    if may_lack(store, id)? { objects_reached(store, id, layout, size) } else { Ok(objects_of(layout)) }
}

/// Targets that a layout names anywhere: home, pending or retired.
pub fn targets_of(layout: &Layout) -> BTreeSet<u32> {
    objects_of(layout).into_iter().map(|(target, _)| target).collect()
}

/// Replaces a file's layout durably.
///
/// # Errors
/// `Invalid` when the format refuses the layout, `Io`.
pub fn publish_layout(store: &Store<'_>, id: u64, layout: &Layout) -> Result<()> {
    let path = store.part(id, "layout");
    let bytes = layout.encode().map_err(|e| StoreError::Invalid(format!("{}: {e}", path.display())))?;
    let like = match store.medium.stat(&path).doing("look at", &path)? {
        Some(_) => store.medium.attributes(&path).doing("look at", &path)?,
        None => rights_of_new_part(store, id)?,
    };
    put_file(store.medium, &path, &bytes, Some(&like), (FsyncPoint::LayoutTmp, FsyncPoint::LayoutDir)).doing("publish", &path)
}

/// The rights of a new layout or link: head's owner's, and read by all who may come to the file, as the library makes them.
///
/// # Errors
/// `Io`.
pub fn rights_of_new_part(store: &Store<'_>, id: u64) -> Result<Attributes> {
    let head = store.part(id, "head");
    let of = store.medium.attributes(&head).doing("look at", &head)?;
    Ok(Attributes { mode: 0o644, uid: of.uid, gid: of.gid, ..Attributes::default() })
}

/// Makes a layout durable beside the present one, which it is to replace.
///
/// # Errors
/// `Invalid` when the format refuses the layout, `Io`.
pub fn prepare_layout(store: &Store<'_>, id: u64, layout: &Layout) -> Result<()> {
    let (path, next) = (store.part(id, "layout"), next_layout(store, id, layout.generation));
    let bytes = layout.encode().map_err(|e| StoreError::Invalid(format!("{}: {e}", path.display())))?;
    // What a killed mover left under this name may be open in a program that thinks nothing of it.
    if store.medium.stat(&next).doing("look at", &next)?.is_some() {
        store.medium.unlink(&next).doing("remove", &next)?;
    }
    let file = store.medium.open(&next, Open::CreateNew).doing("make", &next)?;
    file.write_at(&bytes, 0).doing("write", &next)?;
    let like = store.medium.attributes(&path).doing("look at", &path)?;
    file.give_rights(&like, None).doing("give the owner of the layout to", &next)?;
    file.sync(FsyncPoint::LayoutTmp).doing("flush", &next)
}

/// Gives a prepared layout the present one's place, durably. Where it is missing somebody else has done so.
///
/// # Errors
/// `Io`.
pub fn put_in_place(store: &Store<'_>, id: u64, generation: u64) -> Result<()> {
    let (path, next) = (store.part(id, "layout"), next_layout(store, id, generation));
    match store.medium.rename(&next, &path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        renamed => renamed.doing("publish", &path)?,
    }
    sync_dir(store, &store.file_dir(id), FsyncPoint::LayoutDir)
}

/// Where the layout of a generation waits to be published.
pub fn next_layout(store: &Store<'_>, id: u64, generation: u64) -> PathBuf {
    path_of(names::next_layout(store.root.as_os_str().as_bytes(), id, generation).as_bytes())
}

/// Removes layouts that wait and that nobody will publish any more.
///
/// # Errors
/// `Io`.
pub fn drop_prepared(store: &Store<'_>, id: u64) -> Result<()> {
    let dir = store.file_dir(id);
    for name in store.medium.list(&dir).doing("list", &dir)? {
        let waits = name.as_bytes().strip_prefix(names::NEXT_LAYOUT_PREFIX).is_some_and(|generation| parse_id(generation).is_some());
        if waits {
            store.medium.unlink(&dir.join(&name)).doing("remove", &dir.join(&name))?;
        }
    }
    Ok(())
}

/// Makes the objects of a file where they are missing, with the owner and mode of `head`, and makes their names durable. `known` are those that its
/// layout names already: any other that is there is what a kill left, or what somebody put there who would like to see what is written to it.
///
/// # Errors
/// `Damaged` when a target's directory is not the store's, `Io`, also when somebody else makes an object at the same time.
pub fn make_objects(store: &Store<'_>, id: u64, objects: &BTreeSet<ObjectId>, known: &BTreeSet<ObjectId>) -> Result<()> {
    for &(target, plane) in objects {
        let path = store.object(target, id, plane)?;
        let is_there = objects::is_there(store, id, (target, plane))?;
        if is_there && known.contains(&(target, plane)) {
            continue;
        }
        if let Some(why) = store.away(target as usize) {
            return Err(StoreError::Damaged(why));
        }
        if is_there {
            objects::remove(store, id, (target, ObjectName::of_plane(id, plane).role), &[])?;
        }
        // Programs make objects of the home, too: what they find must be ready for them.
        match objects::create(store, id, (target, plane), |object| give_rights(store, id, object, &path))? {
            // Whoever changes head's rights goes over the objects that are there: this one may have been missed until now.
            Some(object) => give_rights(store, id, &object, &path)?,
            None if known.contains(&(target, plane)) => {}
            None => return Err(StoreError::io("make the object", &path, std::io::ErrorKind::AlreadyExists.into())),
        }
        objects::sync_target(store, target, FsyncPoint::SliceDir)?;
    }
    Ok(())
}

fn give_rights(store: &Store<'_>, id: u64, object: &dyn Object, path: &Path) -> Result<()> {
    let head = store.part(id, "head");
    let mut before = store.medium.attributes(&head).doing("look at", &head)?;
    loop {
        store.medium.give_object(object, &before).doing("give the owner of head to", path)?;
        let after = store.medium.attributes(&head).doing("look at", &head)?;
        if (before.mode, before.uid, before.gid, &before.acl) == (after.mode, after.uid, after.gid, &after.acl) {
            return Ok(());
        }
        before = after;
    }
}

/// Removes objects of a file that no region names, and makes that durable; what is not there is passed over.
///
/// # Errors
/// `Io`.
pub fn remove_objects(store: &Store<'_>, id: u64, objects: &BTreeSet<ObjectId>) -> Result<()> {
    let mut changed = BTreeSet::new();
    for &(target, plane) in objects {
        if objects::remove(store, id, (target, ObjectName::of_plane(id, plane).role), &[])? {
            changed.insert(target);
        }
    }
    for target in changed {
        objects::sync_target(store, target, FsyncPoint::ObjectsGone)?;
    }
    Ok(())
}

/// Makes what objects of a file hold of a span durable. Slices lie in their objects where their regions lie in the file.
///
/// # Errors
/// `Io`.
pub fn sync_slices(store: &Store<'_>, id: u64, objects: &BTreeSet<ObjectId>, span: Span, point: FsyncPoint) -> Result<()> {
    let open = |object: &ObjectId| Ok((store.object(object.0, id, object.1)?, objects::open(store, id, *object, Opening::BOTH)?));
    let opened = objects.iter().map(open).collect::<Result<Vec<_>>>()?;
    store.medium.sync_objects(&opened, (span.start, span.end()), point).doing("flush the objects of", &store.file_dir(id))
}

/// Makes a directory's entries durable.
///
/// # Errors
/// `Io`.
pub fn sync_dir(store: &Store<'_>, dir: &Path, point: FsyncPoint) -> Result<()> {
    store.medium.sync_dir(dir, point).doing("flush", dir)
}
