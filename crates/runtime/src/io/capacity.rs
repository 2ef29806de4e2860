//! Capacities: a target with a configured capacity must not be overfilled. The common case costs one load and one add on a shared
//! estimate that only errs upwards; only near the limit are blocks really counted.

use crate::base::sys::{Errno, Sys, of_target};
use crate::file::File;
use crate::store::OpenObject;
use core::sync::atomic::Ordering;
use stripewise_target::interface::{Object, Target};

/// Estimate not made yet.
const UNKNOWN: u64 = u64::MAX;

/// Whether `[offset, offset + len)` of an object may be written without exceeding its target's capacity.
pub fn is_there(file: &'static File, target: u32, object: &OpenObject, offset: u64, len: u64) -> Sys<bool> {
    let store = file.store()?;
    let Some(config) = store.view()?.target(target as usize) else { return Err(Errno(libc::EIO)) };
    if config.capacity_bytes == 0 {
        return Ok(true);
    }
    let Some(line) = store.devices().and_then(|d| d.line(target)) else { return Ok(true) };
    // Whole blocks are allocated.
    let need = len.next_multiple_of(4096) + 4096;
    let mut used = line.used_bytes.load(Ordering::Relaxed);
    if used == 0 || used == UNKNOWN {
        used = count(file, target)?;
        line.used_bytes.store(used.max(1), Ordering::Relaxed);
    }
    if used.saturating_add(need) <= config.capacity_bytes {
        line.used_bytes.fetch_add(need, Ordering::Relaxed);
        return Ok(true);
    }
    if is_allocated(object, offset, len) {
        return Ok(true);
    }
    let counted = count(file, target)?;
    let fits = counted.saturating_add(len.next_multiple_of(4096)) <= config.capacity_bytes;
    line.used_bytes.store(if fits { counted + need } else { counted.max(1) }, Ordering::Relaxed);
    Ok(fits)
}

/// Whether a range of an object has its blocks already.
fn is_allocated(object: &OpenObject, offset: u64, len: u64) -> bool {
    matches!(object.next_data(offset), Ok(Some((start, end))) if start <= offset && end >= offset + len)
}

/// Bytes that the objects of a target take.
fn count(file: &'static File, target: u32) -> Sys<u64> {
    of_target(file.store()?.target(target)?.any().used_bytes())
}
