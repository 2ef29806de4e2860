//! Where an object holds data, and whose it is: the walk over allocated ranges that recovery, fsck and punching share; and ranges of a file that hold data, for
//! those who copy, read or sum them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use rustix::io::Errno;
use stripewise_layout::{Extent, RegionRef, Slice, Table};
use stripewise_target::any::AnyObject;
use stripewise_target::interface::{Object, Opening};

use crate::admin::error::{Context, Result};
use crate::admin::objects::{self, ObjectId};
use crate::admin::store::Store;

/// What an object answers.
type Done<T> = std::result::Result<T, Errno>;

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
pub fn stretches<'a>(table: Table<'a>, (target, plane): ObjectId, from: u64, to: u64, mut each: impl FnMut(Stretch<'a>) -> Done<()>) -> Done<()> {
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
pub fn data_within(object: &dyn Object, at: u64, end: u64) -> Done<Option<(u64, u64)>> {
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
pub fn punch_slices(object: &dyn Object, table: Table<'_>, (target, plane): ObjectId) -> Done<()> {
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
fn punch_data(object: &dyn Object, table: Table<'_>, id: ObjectId, mut at: u64) -> Done<()> {
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

/// What the object range `[start, stop)` of an extent is in the file: (logical offset, place in the range).
fn logical_parts(extent: &Extent<'_>, start: u64, stop: u64) -> Vec<(u64, Range<usize>)> {
    let mut parts = Vec::new();
    let mut at = extent.object_offset;
    for (logical, len) in extent.pieces() {
        let (low, high) = (at.max(start), (at + len).min(stop));
        if low < high {
            parts.push((logical + (low - at), (low - start) as usize..(high - start) as usize));
        }
        at += len;
        if at >= stop {
            break;
        }
    }
    parts
}

/// Puts `run`, read at `start` of an extent's object, where it belongs in `into`, which begins at byte `from` of the file; notes the ranges in `data`.
pub fn put_parts(extent: &Extent<'_>, start: u64, run: &[u8], from: u64, into: &mut [u8], data: &mut Vec<(u64, u64)>) {
    for (logical, part) in logical_parts(extent, start, start + run.len() as u64) {
        let len = part.len();
        let place = (logical - from) as usize;
        if let (Some(to), Some(bytes)) = (into.get_mut(place..place + len), run.get(part)) {
            to.copy_from_slice(bytes);
        }
        data.push((logical, logical + len as u64));
    }
}

/// Sorts ranges and joins those that touch.
pub fn joined(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        match out.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => out.push((from, to)),
        }
    }
    out
}

/// The parts of sorted ranges that lie in `[from, to)`.
pub fn overlapping(ranges: &[(u64, u64)], from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
    let first = ranges.partition_point(|r| r.1 <= from);
    ranges.get(first..).unwrap_or(&[]).iter().take_while(move |r| r.0 < to).map(move |r| (r.0.max(from), r.1.min(to)))
}

/// The logical ranges of `[from, to)` that hold data at home in `table`, sorted and joined.
///
/// # Errors
/// `Io`; a missing object holds nothing.
pub fn data_ranges(
    store: &Store<'_>,
    id: u64,
    table: Table<'_>,
    from: u64,
    to: u64,
    handles: &mut BTreeMap<ObjectId, Option<AnyObject>>,
) -> Result<Vec<(u64, u64)>> {
    let mut data = Vec::new();
    for extent in table.extents(from, to.saturating_sub(from)) {
        let path = store.object(extent.target, id, extent.plane)?;
        if let Entry::Vacant(room) = handles.entry((extent.target, extent.plane)) {
            let there = objects::is_there(store, id, (extent.target, extent.plane))?;
            room.insert(if there { Some(objects::open(store, id, (extent.target, extent.plane), Opening::READ)?) } else { None });
        }
        let Some(Some(object)) = handles.get(&(extent.target, extent.plane)) else { continue };
        let end = extent.object_offset + extent.len;
        let mut at = extent.object_offset;
        while at < end {
            let Some((start, stop)) = data_within(object, at, end).doing("read", &path)? else { break };
            data.extend(logical_parts(&extent, start, stop).into_iter().map(|(logical, part)| (logical, logical + part.len() as u64)));
            at = stop;
        }
    }
    Ok(joined(data))
}
