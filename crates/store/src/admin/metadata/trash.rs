//! The trash: where a file goes that nobody shall find any more, and how it goes for good.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::publish::sync_dir;
use crate::admin::error::{Context, Result};
use crate::admin::ids::id_text;
use crate::admin::medium::FsyncPoint;
use crate::admin::store::Store;
use stripewise_target::names::{OBJECT_SUFFIXES, REPLICA_SUFFIX};

/// Moves a file to the trash, durably; returns where it is now.
///
/// # Errors
/// Those of the medium.
pub fn to_trash(store: &Store<'_>, id: u64) -> Result<PathBuf> {
    let to = store.trash_dir().join(id_text(id));
    store.medium.rename(&store.file_dir(id), &to).doing("move to the trash", &to)?;
    sync_dir(store, &store.files_dir(), FsyncPoint::Trashed)?;
    sync_dir(store, &store.trash_dir(), FsyncPoint::Trashed)?;
    Ok(to)
}

/// Removes a file's objects, then its directory `dir` (in `files/` or `trash/`).
///
/// # Errors
/// `Io`.
pub fn remove_file(store: &Store<'_>, id: u64, dir: &Path) -> Result<()> {
    for target in &store.targets {
        for suffix in OBJECT_SUFFIXES.iter().chain([&REPLICA_SUFFIX]) {
            let mut name = id_text(id).into_bytes();
            name.extend_from_slice(suffix);
            let path = target.path.join(std::ffi::OsStr::from_bytes(&name));
            if store.medium.stat(&path).doing("look at", &path)?.is_some() {
                store.medium.unlink(&path).doing("remove", &path)?;
            }
        }
    }
    // The objects go for good before the entry that names them does: no object may outlive its file.
    for target in &store.targets {
        store.medium.sync_dir(&target.path, FsyncPoint::ObjectsGone).doing("flush", &target.path)?;
    }
    for part in store.medium.list(dir).doing("list", dir)? {
        let part = dir.join(part);
        store.medium.unlink(&part).doing("remove", &part)?;
    }
    store.medium.rmdir(dir).doing("remove", dir)?;
    let parent = dir.parent().unwrap_or(dir);
    store.medium.sync_dir(parent, FsyncPoint::TrashDir).doing("flush", parent)
}
