//! Sizes: how long an object is for a file of so many bytes, and back; how many bytes a target holds.
//!
//! The windows of one plane stand in their object in the order of the file, so cutting a file at `size` is cutting each object at one place.

use crate::cycle::Cycle;
use crate::region::{RegionRef, Slice};
use crate::table::Table;
use crate::{MAX_LOGICAL, ORIGINAL};

impl Table<'_> {
    /// See [`crate::View::end_of`]. Constant time (plus the look-up): where the window has no byte of this object below `size`, the
    /// start of the window does.
    #[must_use]
    pub fn end_of(&self, target: u32, plane: u32, size: u64) -> u64 {
        if target == ORIGINAL {
            return size;
        }
        let Some(last) = size.min(self.end()).checked_sub(1) else {
            return 0;
        };
        let Some(region) = self.region_at(last) else {
            return 0;
        };
        let floor = region.slice;
        if region.is_original() || region.plane() != plane {
            return floor;
        }
        let Some(stripe) = region.cycle.find(target) else {
            return floor;
        };
        match Cycle::below(stripe, region.cycle.split(last + 1 - region.start)) {
            0 => floor,
            bytes => floor + bytes,
        }
    }

    /// Length of `target`'s object of `plane` that its bytes of offsets below `size` ask for, at least `known`: exact where [`Table::end_of`] gives the
    /// start of a window. Steps back over windows without such a byte, as far as they end behind `known`: linear in the regions at worst.
    pub(crate) fn reach_of(&self, target: u32, plane: u32, size: u64, known: u64) -> u64 {
        let last = size.min(self.end()).checked_sub(1);
        let mut next = last.and_then(|last| self.region_at(last));
        while let Some(window) = next.filter(|w| w.slice.saturating_add(w.len) > known) {
            let stripe = window.cycle.find(target).filter(|_| slice_in(&window, target, plane).is_some());
            let below = stripe.map_or(0, |s| Cycle::below(s, window.cycle.split(size.min(window.end()) - window.start)));
            if below > 0 {
                return known.max(window.slice + below);
            }
            let from = if stripe.is_some() { window.start } else { self.record(window.index).start };
            next = from.checked_sub(1).and_then(|at| self.region_at(at));
        }
        known
    }

    /// See [`crate::View::logical_end`]. Steps back over windows without a byte of this object: linear in the regions at worst.
    #[must_use]
    pub fn logical_end(&self, target: u32, plane: u32, object_len: u64) -> u64 {
        let Some(last) = object_len.checked_sub(1 + self.base()) else {
            return 0;
        };
        let Some(top) = self.end().checked_sub(1) else {
            return 0;
        };
        let mut region = self.region_at(last.min(top));
        while let Some(window) = region {
            let end = if target == ORIGINAL { original_end(&window, object_len) } else { striped_end(&window, target, plane, object_len) };
            if end > 0 {
                return end.min(self.end());
            }
            // Without a share here, no repetition of this region has one.
            let empty = if target == ORIGINAL { !window.is_original() } else { slice_in(&window, target, plane).is_none() };
            let from = if empty { self.record(window.index).start } else { window.start };
            region = from.checked_sub(1).and_then(|at| self.region_at(at));
        }
        0
    }

    /// See [`crate::View::target_bytes`].
    #[must_use]
    pub fn target_bytes(&self, target: u32, size: u64) -> u64 {
        let size = size.min(self.end());
        let mut sum = 0;
        for i in 0..self.len() {
            let Some(region) = self.region(i).filter(|r| r.start < size) else {
                break;
            };
            let bytes = size - region.start;
            if region.is_original() {
                let all = if region.repeats() { bytes } else { bytes.min(region.len) };
                sum += if target == ORIGINAL { all } else { 0 };
                continue;
            }
            let Some(stripe) = region.cycle.find(target) else {
                continue;
            };
            let (whole, rest) = if region.repeats() { (bytes / region.len, bytes % region.len) } else { (0, bytes.min(region.len)) };
            sum += whole * Cycle::below(stripe, region.cycle.split(region.len)) + Cycle::below(stripe, region.cycle.split(rest));
        }
        sum
    }
}

/// The slice of a window in one object.
fn slice_in(window: &RegionRef<'_>, target: u32, plane: u32) -> Option<Slice> {
    window.slice(target).filter(|s| s.plane == plane)
}

fn striped_end(window: &RegionRef<'_>, target: u32, plane: u32, object_len: u64) -> u64 {
    let Some(slice) = slice_in(window, target, plane) else {
        return 0;
    };
    let below = object_len.saturating_sub(slice.object_offset).min(slice.len);
    match (below.checked_sub(1), window.cycle.find(target)) {
        (Some(last), Some(stripe)) => window.start + window.cycle.window_offset(stripe, last) + 1,
        _ => 0,
    }
}

fn original_end(window: &RegionRef<'_>, object_len: u64) -> u64 {
    if window.is_original() && object_len > window.start { object_len.min(window.reach()).min(MAX_LOGICAL) } else { 0 }
}
