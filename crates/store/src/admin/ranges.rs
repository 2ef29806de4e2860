//! Where an object holds data, and whose it is: the walk over allocated ranges that recovery, fsck and punching share.

use std::io;

use stripewise_layout::{RegionRef, Slice, Table};

use super::medium::Handle;
use super::publish::ObjectId;

/// Windows that a walk visits one by one before it follows the data instead: enough for every finite layout, few enough to be quick.
const WINDOWS_MAX: u64 = 65_536;

/// A stretch of an object: [from, to), and the window it lies in when it is that window's slice.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// First byte.
    pub from: u64,
    /// First byte after it.
    pub to: u64,
    /// The window whose slice holds all of it; `None`: no slice does.
    pub owner: Option<RegionRef<'a>>,
}

/// Cuts `[from, to)` of `target`'s object of `plane` into stretches that belong to one slice of `table` or to none.
pub fn stretches<'a>(
    table: Table<'a>,
    (target, plane): ObjectId,
    from: u64,
    to: u64,
    mut each: impl FnMut(Stretch<'a>) -> io::Result<()>,
) -> io::Result<()> {
    let mut at = from;
    while at < to {
        // Windows lie in the object where they lie in the file.
        let Some(region) = table.region_at(at) else {
            // Before or after the table: nobody's, up to where the table begins.
            let end = if at < table.start() { to.min(table.start()) } else { to };
            each(Stretch { from: at, to: end, owner: None })?;
            at = end;
            continue;
        };
        let window_end = region.end().min(to);
        match region.slice(target).filter(|s| s.plane == plane) {
            Some(s) if at < s.object_offset => {
                let end = s.object_offset.min(window_end);
                each(Stretch { from: at, to: end, owner: None })?;
                at = end;
            }
            Some(s) if at < end_of(&s) => {
                let end = end_of(&s).min(to);
                each(Stretch { from: at, to: end, owner: Some(region) })?;
                at = end;
            }
            _ => {
                each(Stretch { from: at, to: window_end, owner: None })?;
                at = window_end;
            }
        }
    }
    Ok(())
}

/// The next data of an object in `[at, end)`; `None` when only holes are left.
///
/// # Errors
/// Those of the object.
pub fn data_within(object: &dyn Handle, at: u64, end: u64) -> io::Result<Option<(u64, u64)>> {
    let found = object.next_data(at)?.map(|(from, to)| (from.max(at), to.min(end)));
    Ok(found.filter(|(from, _)| *from < end))
}

/// First byte after a slice.
pub fn end_of(s: &Slice) -> u64 {
    s.object_offset.saturating_add(s.len)
}

/// Punches all slices of `table` in one object: each slice as a whole, and only as far as the object reaches.
///
/// # Errors
/// Those of the object.
pub fn punch_slices(object: &dyn Handle, table: Table<'_>, (target, plane): ObjectId) -> io::Result<()> {
    let len = object.len()?;
    let upto = len.min(table.end());
    let mut windows = 0;
    for region in table.windows(table.start(), upto) {
        if let Some(s) = region.slice(target).filter(|s| s.plane == plane && s.object_offset < len) {
            object.punch(s.object_offset, s.len)?;
        }
        windows += 1;
        if windows == WINDOWS_MAX {
            return punch_data(object, table, (target, plane), region.end());
        }
    }
    Ok(())
}

/// The same from object offset `at` on, following the data: for objects with very many windows that are nearly all holes.
fn punch_data(object: &dyn Handle, table: Table<'_>, id: ObjectId, mut at: u64) -> io::Result<()> {
    while let Some((from, to)) = object.next_data(at)? {
        at = to;
        stretches(table, id, from, to, |s| {
            if let Some(slice) = s.owner.and_then(|r| r.slice(id.0)) {
                object.punch(slice.object_offset, slice.len)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}
