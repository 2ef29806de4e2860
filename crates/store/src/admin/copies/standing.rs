//! Copies that stand already: whether those of a plain file are the ones that are wanted, so that nothing need be made.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stripewise_layout::Layout;

use super::spec::Plan;
use super::{is_container_of, linked, marking, record_path};
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::info::current_size;
use crate::admin::medium::read_small;
use crate::admin::metadata::publish::{objects_of, targets_of};
use crate::admin::objects;
use crate::admin::store::Store;
use crate::copies::{IN_USE, Original, RECORD_BYTES_MAX, Record, encode, state_in};

/// The container of the copies `name`, where they count for the plain file as it is, hold the same blocks in the same places, and all of them are there.
///
/// # Errors
/// `Damaged` where a target that they lie on is away, which leaves them alone; `Io`.
pub(super) fn container_of_same(store: &Store<'_>, name: &str, path: &Path, original: &Original, plan: &Plan) -> Result<Option<u64>> {
    let bytes = read_small(store.medium, &record_path(store, name), RECORD_BYTES_MAX).unwrap_or_default();
    let Some(id) = Record::parse(&bytes).filter(|_| state_in(&bytes) == IN_USE).map(|record| record.container) else { return Ok(None) };
    // The record says all of them but where its container lies now: a mover may have been there.
    if !encode(original, id, path.as_os_str().as_bytes(), &plan.layout).is_ok_and(|wanted| wanted == bytes) {
        return Ok(None);
    }
    if linked(store, name)? != Some(id) || !is_container_of(store, id, name)? {
        return Ok(None);
    }
    if original.is_managed() && marking::stale_bytes(store, name, original, id)? != Some(0) {
        return Ok(None);
    }
    let Ok(layout) = store.layout(id) else { return Ok(None) };
    if layout.regions != plan.regions || !layout.pending.is_empty() || !is_whole(store, id, &layout, plan.bytes)? {
        return Ok(None);
    }
    Ok(Some(id))
}

/// Whether there is a record of the name, of copies that count or counted once.
pub(super) fn has_record(store: &Store<'_>, name: &str) -> Result<bool> {
    let record = record_path(store, name);
    Ok(store.medium.stat(&record).doing("look at", &record)?.is_some())
}

fn is_whole(store: &Store<'_>, id: u64, layout: &Layout, bytes: u64) -> Result<bool> {
    if let Some(why) = targets_of(layout).into_iter().find_map(|target| store.away(target as usize)) {
        return Err(StoreError::Damaged(why));
    }
    for object in objects_of(layout) {
        if !objects::is_there(store, id, object)? {
            return Ok(false);
        }
    }
    Ok(current_size(store, id, layout).is_ok_and(|size| size == bytes))
}
