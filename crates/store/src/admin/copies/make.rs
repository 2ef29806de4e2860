//! Making copies of a file. All of the container is durable before the record says that it may be used. Of a plain file the record is written last, where that
//! is what it was before the first byte was read; of a managed one first, so that writers mark what they change while it is copied.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Serialize;
use stripewise_layout::{Layout, Origin, Span, View};
use stripewise_target::interface::Opening;

use super::source::{Source, changed, gone};
use super::spec::{Plan, ReplicasJson};
use super::{FILLING, gather, link_path, marking, record_path, remove, standing};
use crate::admin::capacity::check_room;
use crate::admin::check::scrub::sum_new_file;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::{id_text, path_of};
use crate::admin::medium::{Attributes, FsyncPoint, Lock, Open, Root, Stat, put_file};
use crate::admin::metadata::container::copies_dir;
use crate::admin::metadata::newfile::{fresh_id, give_name, make_head, make_parts};
use crate::admin::metadata::publish::{make_objects, objects_of, sync_dir, sync_slices, targets_of};
use crate::admin::metadata::reader::{Objects, layout_bytes, view};
use crate::admin::metadata::size::mirror_size;
use crate::admin::metadata::unlinked::remove_if_last;
use crate::admin::moves::apply::forget_usage;
use crate::admin::moves::guide::Guide;
use crate::admin::spec::plain_layout;
use crate::admin::store::Store;
use crate::copies::{BUILDING, IN_USE, Original, STATE_AT, encode};
use crate::names::link_text;

/// Programs look for a directory of copies this often (`crates/runtime/src/copies.rs`); whoever makes the first one waits longer.
const DIR_SEEN_MS: u64 = 200;
/// Zeros in so many bytes at once stay a hole.
const HOLE_BYTES: usize = 64 << 10;
/// What stood of a plain file's copies before, by a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Earlier {
    /// Nothing.
    None,
    /// The very copies, which count: they were left alone, and nothing was made.
    Same,
    /// Others, or such as counted no more: they were replaced.
    Replaced,
}

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Made {
    /// Device and inode of the file, as in the record's name.
    pub name: String,
    /// The id of the container.
    pub container: String,
    /// How many replicas.
    pub replicas: usize,
    /// Bytes of the container.
    pub bytes: u64,
    /// What stood before.
    pub earlier: Earlier,
}

/// Makes copies of the file at `path` (absolute, its directory resolved); earlier ones go, but for the same ones that still count: these stay, and
/// nothing is made. With `lease` nobody may write a plain file unnoticed meanwhile. The guide is one as a move has.
///
/// # Errors
/// `Invalid` for what cannot be copied, `InUse` when somebody writes the file or has just written it, `NoSpace` before anything is made, `Stopped`. Then
/// nothing is left of them.
pub fn make(store: &Store<'_>, path: &Path, replicas: &ReplicasJson, lease: bool, guide: &mut dyn Guide) -> Result<Made> {
    let place = path.parent().unwrap_or(Path::new("/"));
    store.medium.hold(place, Root::Place).doing("open", place)?;
    let source = Source::at(store, path, lease)?;
    let original = source.original();
    let name = String::from_utf8_lossy(original.record_name().as_bytes()).into_owned();
    let plan = Plan::of(replicas, path, original.size, store.targets.len())?;
    check_users(store, path, source.uid())?;
    let made = |id, earlier| Made { name: name.clone(), container: id_text(id), replicas: plan.layout.replicas.len(), bytes: plan.bytes, earlier };
    if let Some(id) = standing::container_of_same(store, &name, path, &original, &plan)? {
        return Ok(made(id, Earlier::Same));
    }
    let is_managed = original.is_managed();
    let earlier = if standing::has_record(store, &name)? { Earlier::Replaced } else { Earlier::None };
    let id = fresh_id(store)?;
    let refuse = |e| StoreError::Invalid(format!("{}: its replicas: {e}", path.display()));
    let record = encode(&original, id, path.as_os_str().as_bytes(), &plan.layout).map_err(refuse)?;
    let layout = plain_layout(plan.regions.clone(), 1, [id, 0], Origin::Unknown);
    let bytes = layout.encode().map_err(refuse)?;
    remove::clear(store, &name)?;
    check_targets(store, path, &layout, &View::parse(&bytes).map_err(refuse)?, plan.bytes)?;
    make_dir(store)?;
    let mut making = Making { store, id, path, name: &name, original, source, alone: None };
    let filled = making.prepare(&layout).and_then(|filling| {
        if is_managed {
            making.publish(&record, BUILDING)?;
            making.source.announce(store, path, id, &mut || guide.moved(0, plan.bytes))?;
        }
        making.fill(&layout, &plan, guide)?;
        making.source.settle(store, path)?;
        if is_managed {
            making.count()?
        } else {
            making.publish(&record, IN_USE)?
        }
        making.source.check(path)?;
        let mark = store.part(id, FILLING);
        store.medium.unlink(&mark).doing("remove", &mark)?;
        Ok(filling)
    });
    making.alone = None;
    let result = match filled {
        Ok(filling) => {
            drop(filling);
            remove_if_last(store, id)
        }
        // The first error is the one to report; what cannot be undone now is undone by the next try or gc.
        Err(e) => {
            let _ = making.undo();
            Err(if making.source.is_gone(store)? { gone(path) } else { e })
        }
    };
    forget_usage(store, store.medium.devices(&store.run_dir(), store.targets.len(), false).unwrap_or(None).as_deref());
    result.map(|()| made(id, earlier))
}

struct Making<'a> {
    store: &'a Store<'a>,
    id: u64,
    path: &'a Path,
    name: &'a str,
    original: Original,
    source: Source,
    /// While the container is filled, nobody moves it.
    alone: Option<Box<dyn Lock>>,
}

impl Making<'_> {
    /// Makes the container, empty, under its name. Returns what tells others that it is being filled.
    fn prepare(&mut self, layout: &Layout) -> Result<Box<dyn Lock>> {
        let (store, id, medium) = (self.store, self.id, self.store.medium);
        let like = rights(store)?;
        make_head(store, id, Some(&like))?;
        let path = store.part(id, FILLING);
        medium.open(&path, Open::CreateNew).doing("make", &path)?;
        let filling = medium.try_lock(&path, true).doing("lock", &path)?.ok_or_else(|| remove::busy(&path))?;
        make_parts(store, id, layout)?;
        let link = link_path(store, self.name);
        self.alone = Some(store.lock_file(id, &link)?);
        give_name(store, id, &link).map_err(|e| match e {
            StoreError::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists => remove::busy(&link),
            e => e,
        })?;
        let text = path_of(link_text(store.root.as_os_str().as_bytes(), id).as_bytes());
        medium.own_link(&link, &text, like.uid, like.gid).doing("give the owner of the file to", &link)?;
        make_objects(store, id, &objects_of(layout), &BTreeSet::new())?;
        Ok(filling)
    }

    /// Fills it, until it is whole and durable.
    fn fill(&mut self, layout: &Layout, plan: &Plan, guide: &mut dyn Guide) -> Result<()> {
        let (store, id, medium) = (self.store, self.id, self.store.medium);
        let objects = objects_of(layout);
        self.copy(plan, guide)?;
        sync_slices(store, id, &objects, Span::to_end(0), FsyncPoint::SliceData)?;
        let ctl = store.part(id, "ctl");
        let map = medium.ctl(&ctl, false).doing("map", &ctl)?;
        map.ctl().raise_size(plan.bytes);
        mirror_size(store, id, map.ctl())?;
        sum_new_file(store, id, &objects, None)?;
        self.alone = None;
        Ok(())
    }

    fn copy(&self, plan: &Plan, guide: &mut dyn Guide) -> Result<()> {
        let (store, path) = (self.store, self.path);
        let encoded = plan.layout.encode().map_err(|e| StoreError::Invalid(format!("{}: its replicas: {e}", path.display())))?;
        let record = View::parse(&encoded).map_err(|e| StoreError::Invalid(format!("{}: its replicas: {e}", path.display())))?;
        // As it is now: whoever gave the empty file another layout did so before it was ours.
        let bytes = layout_bytes(store, self.id)?;
        let clocks = store.clocks()?;
        let mut objects = Objects::new(store, self.id, view(store, self.id, &bytes)?, Opening::BOTH).behind(clocks.as_deref());
        let mut read = self.source.reader(store, path, clocks.as_deref())?;
        let (mut buf, mut done) = (Vec::new(), 0);
        for replica in (0..record.replica_count()).filter_map(|index| record.replica(index)) {
            let total = replica.total();
            let mut at = 0;
            while at < total {
                let bytes = guide.chunk_bytes().min(total - at);
                if !guide.pace(bytes) || !guide.moved(done, plan.bytes) {
                    return Err(StoreError::Stopped(format!("{}: stopped; nothing of its copies is left", path.display())));
                }
                self.source.check(path)?;
                buf.resize(bytes as usize, 0);
                if !gather::fill(&mut read, &replica, at, &mut buf)? {
                    return Err(changed(path));
                }
                write(&mut objects, replica.domain_base + at, &buf)?;
                at += buf.len() as u64;
                done += buf.len() as u64;
            }
        }
        Ok(())
    }

    /// Writes the record, and the marks of a managed file before it.
    fn publish(&self, record: &[u8], state: u32) -> Result<()> {
        let store = self.store;
        let like = rights(store)?;
        if self.original.is_managed() {
            marking::make(store, self.name, &self.original, self.id, &like)?;
        }
        let mut record = record.to_vec();
        if let Some(word) = record.get_mut(STATE_AT..STATE_AT + 4) {
            word.copy_from_slice(&state.to_le_bytes());
        }
        let to = record_path(store, self.name);
        put_file(store.medium, &to, &record, Some(&like), (FsyncPoint::CopyRecord, FsyncPoint::CopyDir)).doing("write", &to)
    }

    /// Says that the copies of a managed file may be used.
    fn count(&self) -> Result<()> {
        let record = record_path(self.store, self.name);
        let file = self.store.medium.open(&record, Open::Write).doing("open", &record)?;
        file.write_at(&IN_USE.to_le_bytes(), STATE_AT as u64).doing("write", &record)?;
        file.sync(FsyncPoint::CopyState).doing("flush", &record)
    }

    /// Removes all that was made.
    fn undo(&self) -> Result<()> {
        let store = self.store;
        // Another command may have been quicker with copies of the same file.
        if remove::container_in(store, self.name) == Some(self.id) {
            remove::retract(store, self.name)?;
        }
        let link = link_path(store, self.name);
        if super::linked(store, self.name)? == Some(self.id) {
            store.medium.unlink(&link).doing("remove", &link)?;
        }
        remove::discard(store, self.id)
    }
}

/// The rights of container and record: the store's owner's alone, who could read the plain file. Whoever else may read that one may come to lose it, by its
/// mode or that of a directory above it, and would keep its copies.
fn rights(store: &Store<'_>) -> Result<Attributes> {
    let root = stat_of(store, &store.root)?;
    Ok(Attributes { mode: 0o600, uid: root.uid, gid: root.gid, ..Attributes::default() })
}

fn stat_of(store: &Store<'_>, dir: &Path) -> Result<Stat> {
    let stat = store.medium.stat(dir).doing("look at", dir)?;
    stat.ok_or_else(|| StoreError::NotFound(format!("{} vanished; who removes it?", dir.display())))
}

/// Copies are the store's owner's: he makes them, or somebody does of a file that is his; and nobody else puts files into the store.
fn check_users(store: &Store<'_>, path: &Path, uid: u32) -> Result<()> {
    let (root, files) = (stat_of(store, &store.root)?, stat_of(store, &store.files_dir())?);
    if files.mode & 0o022 != 0 {
        return Err(StoreError::Invalid(format!(
            "{}: copies are made in stores of one user, and this one is shared; make them in a store of your own",
            store.root.display()
        )));
    }
    // SAFETY: no preconditions.
    let me = unsafe { libc::geteuid() };
    if me != root.uid && uid != root.uid {
        return Err(StoreError::Invalid(format!(
            "{}: belongs to another user than the store, who would get its bytes; make copies in a store of your own",
            path.display()
        )));
    }
    Ok(())
}

/// Writes what is not zero.
fn write(objects: &mut Objects<'_>, at: u64, buf: &[u8]) -> Result<()> {
    let mut from = 0;
    while from < buf.len() {
        let is_hole = |piece: &[u8]| piece.iter().all(|byte| *byte == 0);
        let pieces = || buf.get(from..).unwrap_or(&[]).chunks(HOLE_BYTES);
        let holes: usize = pieces().take_while(|piece| is_hole(piece)).map(<[u8]>::len).sum();
        let data: usize = pieces().skip(holes.div_ceil(HOLE_BYTES)).take_while(|piece| !is_hole(piece)).map(<[u8]>::len).sum();
        from += holes;
        objects.write(at + from as u64, buf.get(from..from + data).unwrap_or(&[]))?;
        from += data;
    }
    Ok(())
}

/// Whether all targets of the copies are there and have room for them.
fn check_targets(store: &Store<'_>, path: &Path, layout: &Layout, view: &View<'_>, size: u64) -> Result<()> {
    if let Some(why) = targets_of(layout).into_iter().find_map(|target| store.away(target as usize)) {
        return Err(StoreError::Damaged(why));
    }
    check_room(store, path, view.home(), size, &[(0, size)], ("its copies", "free space there, or make fewer"))
}

/// The directory of records, with the rights that `files/` has.
fn make_dir(store: &Store<'_>) -> Result<()> {
    let (dir, files) = (copies_dir(store), store.files_dir());
    match store.medium.mkdir(&dir) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(StoreError::Invalid(format!(
                "{}: only the store's owner and root can make the first copies in it; let one of them make some, or the directory, as {} is",
                dir.display(),
                files.display()
            )));
        }
        made => made.doing("make", &dir)?,
    }
    store.medium.dir_follows(&dir, &files).doing("give the rights of files/ to", &dir)?;
    sync_dir(store, &store.root, FsyncPoint::StoreDir)?;
    store.medium.pause(DIR_SEEN_MS);
    Ok(())
}
