//! Making a managed file from outside a program: the same parts in the same order as the preloaded library makes them. The name
//! comes last, so that whoever can open the file finds it whole.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::link::link_record;
use super::publish::{make_objects, objects_at_first, publish_layout, rights_of_new_part, sync_dir};
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::{id_text, path_of};
use crate::admin::medium::{Attributes, FsyncPoint, Open, put_file};
use crate::admin::spec::plain_layout;
use crate::admin::store::Store;
use crate::ctl::boot_words;
use crate::names::link_text;
use crate::rights::Part;
use stripewise_layout::{Layout, Origin, Region};

/// A file id that nothing of the store uses.
///
/// # Errors
/// `Io`.
pub fn fresh_id(store: &Store<'_>) -> Result<u64> {
    loop {
        let id = super::temporary::chance();
        let taken = |dir: &Path| -> Result<bool> { Ok(store.medium.stat(dir).doing("look at", dir)?.is_some()) };
        if !taken(&store.file_dir(id))? && !taken(&store.trash_dir().join(id_text(id)))? {
            return Ok(id);
        }
    }
}

/// Makes an empty managed file with the store's default layout (or `regions`) and the symbolic link at `path`.
///
/// # Errors
/// `Exists` when the id or the path is taken, `Io`.
pub fn create_file(store: &Store<'_>, id: u64, path: &Path, regions: Option<Vec<Region>>) -> Result<()> {
    if store.medium.stat(path).doing("look at", path)?.is_some() {
        return Err(taken(path));
    }
    let layout = match regions {
        Some(regions) => plain_layout(regions, 1, [id, 0], Origin::Given),
        None => {
            let template = Layout::decode(&store.default_layout).map_err(|e| crate::admin::store::layout_error(&store.root.join("store.bin"), e))?;
            Layout { generation: 1, file_id: [id, 0], ..template }
        }
    };
    make_head(store, id, None)?;
    make_objects(store, id, &objects_at_first(store, id, &layout, 0)?, &std::collections::BTreeSet::new())?;
    make_parts(store, id, &layout)?;
    give_name(store, id, path)
}

fn taken(what: &Path) -> StoreError {
    StoreError::Exists(format!("{} exists already; choose another name", what.display()))
}

/// Begins file `id`: its directory, and head with the rights of `like`, which all other parts follow.
///
/// # Errors
/// `Exists` when the id is taken, `Io`.
pub fn make_head(store: &Store<'_>, id: u64, like: Option<&Attributes>) -> Result<()> {
    let (medium, dir) = (store.medium, store.file_dir(id));
    medium.mkdir(&dir).map_err(|e| if e.kind() == std::io::ErrorKind::AlreadyExists { taken(&dir) } else { StoreError::io("make", &dir, e) })?;
    let head = dir.join("head");
    let file = medium.open(&head, Open::CreateNew).doing("make", &head)?;
    if let Some(like) = like {
        file.give_rights(like, None).doing("give the owner of the file to", &head)?;
    }
    file.sync(FsyncPoint::NewFileParts).doing("flush", &head)
}

/// Goes on with ctl and layout, both durable: a file of no bytes.
///
/// # Errors
/// `Io`.
pub fn make_parts(store: &Store<'_>, id: u64, layout: &Layout) -> Result<()> {
    let (medium, dir) = (store.medium, store.file_dir(id));
    {
        let (head, ctl) = (dir.join("head"), dir.join("ctl"));
        let map = medium.ctl(&ctl, true).doing("make", &ctl)?;
        medium.follow_head(&head, &ctl, Part::Ctl).doing("give the owner of head to", &ctl)?;
        medium.dir_follows_head(&dir).doing("give the owner of head to", &dir)?;
        map.ctl().initialise(boot_words(&store.boot_id()?), 0, layout.generation);
    }
    publish_layout(store, id, layout)?;
    sync_dir(store, &store.files_dir(), FsyncPoint::FilesDir)
}

/// Gives a whole file its name: the link at `path`, and the record of it.
///
/// # Errors
/// `Io`, also when the name is taken by now.
pub fn give_name(store: &Store<'_>, id: u64, path: &Path) -> Result<()> {
    let (medium, dir) = (store.medium, store.file_dir(id));
    let text = path_of(link_text(store.root.as_os_str().as_bytes(), id).as_bytes());
    medium.symlink(&text, path).doing("make the link", path)?;
    let stat =
        medium.stat(path).doing("look at", path)?.ok_or_else(|| StoreError::NotFound(format!("{} vanished; who removes it?", path.display())))?;
    let record = dir.join("link");
    // Whole or not there: a file whose record is cut off would be neither unfinished nor anybody's.
    let points = (FsyncPoint::NewFileParts, FsyncPoint::NewFileDir);
    let like = rights_of_new_part(store, id)?;
    put_file(medium, &record, &link_record(stat.dev, stat.ino, path), Some(&like), points).doing("write", &record)?;
    if let Some(parent) = path.parent() {
        sync_dir(store, parent, FsyncPoint::LinkDir)?;
    }
    Ok(())
}
