//! A list of regions in its mapped form, and the look-up of the region that holds a byte, and of the object that it lies in.
//!
//! The home regions, the pending and retired ones of a move and the regions of a replica all are such tables. The home table has a bucket index, so
//! that a look-up touches one or two records whatever their number; the short ones are searched.

use crate::cycle::Places;
use crate::format::{INDEX, REGION, div_rem, record, u32_at, u64_at};
use crate::region::RegionRef;
use crate::{Extents, MAX_LOGICAL, ORIGINAL, Piece, Pieces};

/// An ordered list of regions without gaps. Copy it freely: it borrows the mapped bytes.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    regions: &'a [u8],
    index: &'a [u8],
    shift: u32,
    count: u32,
    /// Added to every object offset: a replica's domain.
    base: u64,
    start: u64,
    end: u64,
    places: Places<'a>,
}

impl<'a> Table<'a> {
    pub(crate) fn new(regions: &'a [u8], base: u64, places: Places<'a>) -> Table<'a> {
        let count = (regions.len() / REGION) as u32;
        let mut table = Table { regions, index: &[], shift: 0, count, base, start: 0, end: 0, places };
        if count > 0 {
            let last = table.record(count - 1);
            table.start = table.record_start(0);
            table.end = if last.repeats() { MAX_LOGICAL } else { last.end() };
        }
        table
    }

    pub(crate) fn with_index(mut self, index: &'a [u8], shift: u32) -> Table<'a> {
        self.index = index;
        self.shift = shift;
        self
    }

    /// Number of region records.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no region.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// First logical byte that the table maps.
    #[inline]
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// First logical byte that it does not map any more: [`MAX_LOGICAL`] when the last region repeats.
    #[inline]
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    #[inline]
    fn record_start(&self, i: u32) -> u64 {
        u64_at(record::<REGION>(self.regions, i as usize), 0)
    }

    /// Region record `i` as it stands: the first repetition of a repeating one.
    #[inline]
    pub(crate) fn record(&self, i: u32) -> RegionRef<'a> {
        let r = record::<REGION>(self.regions, i as usize);
        let start = u64_at(r, 0);
        RegionRef {
            start,
            len: u64_at(r, 8),
            generation: u32_at(r, 16),
            index: i,
            flags: u32_at(r, 24),
            cycle: self.places.get(u32_at(r, 20)),
            slice: self.slice_of(start),
        }
    }

    /// Region record `i`: the first repetition when it repeats; `None` past the end.
    #[must_use]
    pub fn region(&self, i: usize) -> Option<RegionRef<'a>> {
        (i < self.count as usize).then(|| self.record(i as u32))
    }

    /// Where the slices of a window that begins at `start` begin in their objects.
    #[inline]
    fn slice_of(&self, start: u64) -> u64 {
        // Wrapping: sums of validated values fit; unvalidated ones are only looked at by the check.
        start.wrapping_add(self.base)
    }

    #[inline]
    fn index_entry(&self, i: u64) -> u32 {
        u32_at(self.index, i as usize * INDEX)
    }

    /// Number of the region record that holds `at`; `at` must not lie before the first.
    #[inline(always)]
    fn find(&self, at: u64) -> u32 {
        let last = self.count.saturating_sub(1);
        let bucket = at >> self.shift;
        let entries = (self.index.len() / INDEX) as u64;
        let lo = match () {
            () if bucket < entries => self.index_entry(bucket),
            () if entries > 0 => last,
            () => 0,
        };
        let guess = record::<REGION>(self.regions, lo as usize);
        // Nearly always right, so the processor predicts it: most buckets lie wholly in one region.
        if at - u64_at(guess, 0) < u64_at(guess, 8) || lo == last {
            return lo;
        }
        let hi = if bucket + 1 < entries { self.index_entry(bucket + 1) } else { last };
        self.search(at, lo + 1, hi)
    }

    /// Number of the last record among `lo..=hi` that starts at or below `at`.
    fn search(&self, at: u64, mut lo: u32, mut hi: u32) -> u32 {
        while lo < hi {
            let mid = lo + (hi - lo).div_ceil(2);
            if self.record_start(mid) <= at {
                lo = mid;
            } else {
                hi = mid - 1;
            }
        }
        lo
    }

    /// The window that holds byte `at`; `None` outside `start()..end()`.
    #[inline(always)] // Its result would go through memory, in parts that the processor cannot forward.
    #[must_use]
    pub fn region_at(&self, at: u64) -> Option<RegionRef<'a>> {
        if at < self.start || at >= self.end {
            return None;
        }
        let mut region = self.record(self.find(at));
        let l = at - region.start;
        if region.repeats() && l >= region.len {
            let past = if region.len.is_power_of_two() { l & (region.len - 1) } else { div_rem(l, region.len).1 };
            region.start = at - past;
            region.slice = self.slice_of(region.start);
        }
        Some(region)
    }

    /// The window that follows.
    #[inline]
    pub(crate) fn after(&self, region: &RegionRef<'a>) -> Option<RegionRef<'a>> {
        if !region.repeats() {
            return (region.index + 1 < self.count).then(|| self.record(region.index + 1));
        }
        let start = region.end();
        (start < self.end).then(|| RegionRef { start, slice: self.slice_of(start), ..*region })
    }

    /// The windows that touch `[from, to)`, in order; a repeating region gives one per repetition.
    #[must_use]
    pub fn windows(&self, from: u64, to: u64) -> Windows<'a> {
        let next = if from < to { self.region_at(from.max(self.start)) } else { None };
        Windows { table: *self, next, to }
    }

    /// The run of one object that `[at, at + len)` is; `None` where it is several, though they may continue each other, where it is empty, and where it does
    /// not lie inside `start()..end()`.
    #[inline(always)] // Most requests are one: what an iterator keeps in memory would cost more than the look-up.
    #[must_use]
    pub fn single(&self, at: u64, len: u64) -> Option<Piece> {
        let end = at.saturating_add(len);
        if end > self.end || len == 0 {
            return None;
        }
        let piece = run(&self.region_at(at)?, at, end);
        (piece.len == len).then_some(piece)
    }

    /// Cuts `[at, at + len)` into pieces, in logical order. Empty when the request does not lie inside `start()..end()`.
    #[inline]
    #[must_use]
    pub fn pieces(&self, at: u64, len: u64) -> Pieces<'a> {
        Pieces::new(*self, at, len)
    }

    /// The contiguous object ranges of `[at, at + len)`, one per window and target. Empty when the request does not lie inside `start()..end()`.
    #[inline]
    #[must_use]
    pub fn extents(&self, at: u64, len: u64) -> Extents<'a> {
        Extents::new(*self, at, len)
    }

    /// The logical offset whose byte lies at `object_offset` of `target`'s object of `plane`, `None` when that byte is nobody's.
    /// [`ORIGINAL`] has no planes: any will do.
    #[must_use]
    pub fn inverse(&self, target: u32, plane: u32, object_offset: u64) -> Option<u64> {
        if target == ORIGINAL {
            return self.region_at(object_offset).filter(RegionRef::is_original).map(|_| object_offset);
        }
        // No byte lies further out in its object than in the file, so the window is the one at the same offset.
        let region = self.region_at(object_offset.checked_sub(self.base)?).filter(|r| r.plane() == plane)?;
        let slice = region.slice(target)?;
        let local = object_offset.checked_sub(slice.object_offset).filter(|l| *l < slice.len)?;
        let at = region.start + region.cycle.window_offset(region.cycle.find(target)?, local);
        // The last window may reach past the limit; its bytes below the limit are still its own.
        (at < self.end).then_some(at)
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }
}

/// The run that begins at `at`, within one stripe and one window, and ends at `end` at the latest.
#[inline(always)]
pub(crate) fn run(region: &RegionRef<'_>, at: u64, end: u64) -> Piece {
    let left = region.reach().min(end) - at;
    if region.is_original() {
        return Piece { target: ORIGINAL, plane: 0, object_offset: at, logical: at, len: left };
    }
    let slot = region.cycle.locate(at - region.start);
    // One target alone: the whole window is one run, however narrow its stripe.
    let len = if region.cycle.count == 1 { left } else { slot.run.min(left) };
    Piece { target: slot.target, plane: region.plane(), object_offset: region.slice + slot.local, logical: at, len }
}

/// Iterator over [`Table::windows`].
#[derive(Clone, Copy, Debug)]
pub struct Windows<'a> {
    table: Table<'a>,
    next: Option<RegionRef<'a>>,
    to: u64,
}

impl<'a> Iterator for Windows<'a> {
    type Item = RegionRef<'a>;

    fn next(&mut self) -> Option<RegionRef<'a>> {
        let region = self.next.filter(|r| r.start < self.to)?;
        self.next = self.table.after(&region);
        Some(region)
    }
}
