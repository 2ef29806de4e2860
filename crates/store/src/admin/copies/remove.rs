//! Dropping copies: first the word that stops their use, then the record, then the container. A kill on the way leaves what the next command on the same file,
//! or `gc`, ends; a container that programs have open goes with its last user.

use std::sync::atomic::Ordering;

use super::{FILLING, is_container_of, link_path, linked, marking, marks_path, record_path};
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::medium::{FsyncPoint, Open, read_small};
use crate::admin::metadata::container::parse_name;
use crate::admin::metadata::settle::empty_trash;
use crate::admin::metadata::trash::to_trash;
use crate::admin::metadata::unlinked::alone;
use crate::admin::store::Store;
use crate::copies::{BUILDING, DROPPED, RECORD_BYTES_MAX, Record, STATE_AT, STATE_BYTES, state_in};
use crate::ctl::FLAG_UNLINKED;

/// Drops the copies of a name (`<dev>-<ino>`), or what is left of them.
///
/// # Errors
/// `NotFound` when there are none, `InUse` while another command makes them, `Io`.
pub fn drop(store: &Store<'_>, name: &str) -> Result<()> {
    let _session = store.lock_shared()?;
    if parse_name(name.as_bytes()).is_none() {
        return Err(StoreError::Invalid(format!(
            "{name:?} is no name of copies, which are called by device and inode; see `stripewise store replica ls`"
        )));
    }
    if clear(store, name)? {
        return Ok(());
    }
    Err(StoreError::NotFound(format!("{}: has no copies {name}; see `stripewise store replica ls`", store.root.display())))
}

/// The same for one who has the store's lock; false where there was nothing.
///
/// # Errors
/// As [`drop`], but for `NotFound`.
pub(crate) fn clear(store: &Store<'_>, name: &str) -> Result<bool> {
    let (record, link, marks) = (record_path(store, name), link_path(store, name), marks_path(store, name));
    let is_there = |path: &std::path::Path| -> Result<bool> { Ok(store.medium.stat(path).doing("look at", path)?.is_some()) };
    let (has_record, has_link) = (is_there(&record)?, is_there(&link)?);
    if !has_record && !has_link && !is_there(&marks)? {
        return Ok(false);
    }
    let id = match linked(store, name)? {
        None if has_record => container_in(store, name),
        linked => linked,
    };
    if (!has_record || is_building(store, name))
        && let Some(id) = id
        && is_being_filled(store, id)?
    {
        return Err(busy(&link));
    }
    retract(store, name)?;
    let Some(id) = id else {
        unlink(store, &link)?;
        return Ok(true);
    };
    let is_ours = is_container_of(store, id, name)?;
    unlink(store, &link)?;
    if is_ours {
        discard(store, id)?;
    }
    Ok(true)
}

/// Takes the record away. From the word on, which is durable, nobody uses the copies, even where a power cut brings the record back.
///
/// # Errors
/// `Io`.
pub(super) fn retract(store: &Store<'_>, name: &str) -> Result<()> {
    let record = record_path(store, name);
    if store.medium.stat(&record).doing("look at", &record)?.is_none() {
        return unlink(store, &marks_path(store, name));
    }
    let file = store.medium.open(&record, Open::Write).doing("open", &record)?;
    if file.len().doing("look at", &record)? >= STATE_BYTES as u64 {
        marking::note_boot(store, name)?;
        file.write_at(&DROPPED.to_le_bytes(), STATE_AT as u64).doing("write", &record)?;
        file.sync(FsyncPoint::CopyState).doing("flush", &record)?;
        if let Some(container) = container_in(store, name) {
            marking::forget(store, name, container);
        }
    }
    unlink(store, &record)?;
    // Nobody looks for them without a record.
    unlink(store, &marks_path(store, name))
}

/// Whether a record says that its copies are being made.
fn is_building(store: &Store<'_>, name: &str) -> bool {
    read_small(store.medium, &record_path(store, name), RECORD_BYTES_MAX).is_ok_and(|bytes| state_in(&bytes) == BUILDING)
}

/// Removes a container that has no name any more; where somebody has it open, he does.
///
/// # Errors
/// `Io`.
pub(super) fn discard(store: &Store<'_>, id: u64) -> Result<()> {
    let dir = store.file_dir(id);
    if store.medium.stat(&dir).doing("look at", &dir)?.is_none() {
        return Ok(());
    }
    if let Ok(map) = store.medium.ctl(&store.part(id, "ctl"), false)
        && map.ctl().is_valid()
    {
        map.ctl().header().flags.fetch_or(FLAG_UNLINKED, Ordering::SeqCst);
    }
    if let Some(_alone) = alone(store, id)?
        && to_trash(store, id)?
    {
        match empty_trash(store, id) {
            // Nobody uses them any more; what lies on a target that is away goes with the trash once that is back.
            Err(StoreError::Damaged(_)) if (0..store.targets.len()).any(|index| store.away(index).is_some()) => {}
            emptied => emptied?,
        }
    }
    Ok(())
}

/// Another command is at what stands at a path.
pub(super) fn busy(path: &std::path::Path) -> StoreError {
    StoreError::InUse(format!("another stripewise command is making the copies {}; wait until it is done", path.display()))
}

/// Whether a command is filling the container right now.
pub(super) fn is_being_filled(store: &Store<'_>, id: u64) -> Result<bool> {
    let path = store.part(id, FILLING);
    if store.medium.stat(&path).doing("look at", &path)?.is_none() {
        return Ok(false);
    }
    match store.medium.try_lock(&path, true) {
        Ok(lock) => Ok(lock.is_none()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(StoreError::io("lock", &path, e)),
    }
}

/// The container that a record names, as far as it can be read.
pub(super) fn container_in(store: &Store<'_>, name: &str) -> Option<u64> {
    let bytes = read_small(store.medium, &record_path(store, name), RECORD_BYTES_MAX).ok()?;
    Record::parse(&bytes).map(|record| record.container)
}

fn unlink(store: &Store<'_>, path: &std::path::Path) -> Result<()> {
    match store.medium.unlink(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        gone => gone.doing("remove", path),
    }
}
