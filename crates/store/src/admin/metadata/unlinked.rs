//! Files that lost their last name while somebody had them open. Their last user removes them; a mover, which has a file open as a user does, is one of
//! those, and gc removes what a killed user has left.

use std::sync::atomic::Ordering;

use super::link::{names_file, recorded};
use super::settle::empty_trash;
use super::trash::to_trash;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::medium::Lock;
use crate::admin::store::Store;
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
    if let Some(_alone) = alone(store, id)?
        && to_trash(store, id)?
    {
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
    match store.medium.try_presence(&ctl, How::Exclusive) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Some(None)),
        taken => Ok(taken.doing("lock", &ctl)?.map(Some)),
    }
}
