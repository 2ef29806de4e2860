//! Files that lost their last name while somebody had them open. Their last user removes them; a mover, which has a file open as a user does, is one of
//! those, and gc removes what a killed user has left.

use std::sync::atomic::Ordering;

use super::error::{Context, Result, StoreError};
use super::fsck::empty_trash;
use super::journal::names_file;
use super::medium::{FsyncPoint, Lock};
use super::publish::sync_dir;
use super::relink::recorded;
use super::store::{Store, id_text};
use crate::ctl::FLAG_UNLINKED;
use crate::locks::How;

/// For one who has just closed file `id`: removes it if it has no name and nobody has it open any more.
///
/// # Errors
/// Those of the medium; what is left then gc removes.
pub fn remove_if_last(store: &Store<'_>, id: u64) -> Result<()> {
    if !was_unlinked(store, id)? {
        return Ok(());
    }
    if let Some(_alone) = alone(store, id)? {
        to_trash(store, id)?;
        empty_trash(store, id)?;
    }
    Ok(())
}

/// Unlinked through the library while somebody had it open. One whose name stands all the same is left alone.
///
/// # Errors
/// Those of the medium.
pub fn was_unlinked(store: &Store<'_>, id: u64) -> Result<bool> {
    let path = store.part(id, "ctl");
    let flagged = match store.medium.ctl(&path, false) {
        Ok(map) => map.ctl().is_valid() && map.ctl().header().flags.load(Ordering::SeqCst) & FLAG_UNLINKED != 0,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::InvalidData) => false,
        Err(e) => return Err(StoreError::io("map", &path, e)),
    };
    Ok(flagged && !has_name(store, id)?)
}

/// Whether the recorded name of a file leads to it.
///
/// # Errors
/// Those of the medium.
pub fn has_name(store: &Store<'_>, id: u64) -> Result<bool> {
    match recorded(store, id)? {
        Some((_, _, name)) => names_file(store, &name, id),
        None => Ok(false),
    }
}

/// The file for ourselves; `None` when a program has it open. A file without ctl is nobody's.
///
/// # Errors
/// Those of the medium.
pub fn alone(store: &Store<'_>, id: u64) -> Result<Option<Option<Box<dyn Lock>>>> {
    let ctl = store.part(id, "ctl");
    if store.medium.stat(&ctl).doing("look at", &ctl)?.is_none() {
        return Ok(Some(None));
    }
    Ok(store.medium.try_presence(&ctl, How::Exclusive).doing("lock", &ctl)?.map(Some))
}

/// Moves a file to the trash, durably.
///
/// # Errors
/// Those of the medium.
pub fn to_trash(store: &Store<'_>, id: u64) -> Result<()> {
    let to = store.trash_dir().join(id_text(id));
    store.medium.rename(&store.file_dir(id), &to).doing("move to the trash", &to)?;
    sync_dir(store, &store.files_dir(), FsyncPoint::Trashed)?;
    sync_dir(store, &store.trash_dir(), FsyncPoint::Trashed)
}
