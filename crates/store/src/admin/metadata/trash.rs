//! The trash: where a file goes that nobody shall find any more, and how it goes for good.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use stripewise_target::names::ObjectName;

use super::publish::sync_dir;
use crate::admin::error::{Context, Result};
use crate::admin::ids::id_text;
use crate::admin::medium::FsyncPoint;
use crate::admin::objects;
use crate::admin::store::Store;

/// Where a file is that was moved to the trash.
pub fn in_trash(store: &Store<'_>, id: u64) -> PathBuf {
    store.trash_dir().join(id_text(id))
}

/// Moves a file to the trash, durably; false when it is not there any more: its last user, who does so too, came first.
///
/// # Errors
/// Those of the medium.
pub fn to_trash(store: &Store<'_>, id: u64) -> Result<bool> {
    let (from, to) = (store.file_dir(id), in_trash(store, id));
    match store.medium.rename(&from, &to) {
        Err(e) if e.kind() == ErrorKind::NotFound && store.medium.stat(&from).doing("look at", &from)?.is_none() => return Ok(false),
        moved => moved.doing("move to the trash", &to)?,
    }
    sync_dir(store, &store.files_dir(), FsyncPoint::Trashed)?;
    sync_dir(store, &store.trash_dir(), FsyncPoint::Trashed)?;
    Ok(true)
}

/// Removes a file's objects, then its directory `dir` (in `files/` or `trash/`). In a shared store anybody may make a directory there, of any id: only objects
/// of its own owner go with it, unless that is root or the store's owner. Another may be removing it, too.
///
/// # Errors
/// `Io`, `Damaged` where a target is away.
pub fn remove_file(store: &Store<'_>, id: u64, dir: &Path) -> Result<()> {
    remove_file_from(store, id, dir, false)
}

/// The same; with `leave_away` what it has on targets that are away stays there, for nobody is to come back for it.
///
/// # Errors
/// As [`remove_file`].
pub fn remove_file_from(store: &Store<'_>, id: u64, dir: &Path, leave_away: bool) -> Result<()> {
    let owner_of = |path: &Path| -> Result<Option<u32>> { Ok(store.medium.stat(path).doing("look at", path)?.map(|stat| stat.uid)) };
    let owner = owner_of(dir)?.filter(|owner| *owner != 0);
    let owners: Vec<u32> = if owner == owner_of(&store.root)? { Vec::new() } else { owner.into_iter().collect() };
    let targets = 0..store.targets.len() as u32;
    for target in targets.clone() {
        for role in ObjectName::ROLES {
            objects::remove(store, id, (target, role), &owners)?;
        }
    }
    // The objects go for good before the entry that names them does: no object may outlive its file.
    for target in targets.filter(|target| !leave_away || store.away(*target as usize).is_none()) {
        objects::sync_target(store, target, FsyncPoint::ObjectsGone)?;
    }
    let parts = match store.medium.list(dir) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        parts => parts.doing("list", dir)?,
    };
    for part in parts {
        let part = dir.join(part);
        unless_gone(store.medium.unlink(&part)).doing("remove", &part)?;
    }
    unless_gone(store.medium.rmdir(dir)).doing("remove", dir)?;
    let parent = dir.parent().unwrap_or(dir);
    store.medium.sync_dir(parent, FsyncPoint::TrashDir).doing("flush", parent)
}

fn unless_gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
