//! Which bytes of a request lie where: one piece per window and server, by the same arithmetic as the layout crate's, on flat tables.
//!
//! Regions of one file that are equally long are found by one division (a shift where the length is a power of two), so the price of a
//! request does not grow with the number of regions.

use crate::scenario::{FileSpec, RegionSpec, Scenario, Stripe};

/// A divisor that is a shift where it can be.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    value: u64,
    /// Its logarithm, or [`NO_SHIFT`].
    shift: u32,
}

const NO_SHIFT: u32 = 64;

impl Divisor {
    fn new(value: u64) -> Self {
        Divisor { value, shift: if value.is_power_of_two() { value.trailing_zeros() } else { NO_SHIFT } }
    }

    #[inline]
    fn div_rem(self, x: u64) -> (u64, u64) {
        if self.shift < NO_SHIFT {
            return (x >> self.shift, x & (self.value - 1));
        }
        (x.checked_div(self.value).unwrap_or(0), x.checked_rem(self.value).unwrap_or(0))
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    width: u64,
    /// First byte in the cycle, counted from entry 0.
    start: u64,
    server: u32,
}

/// One cycle of stripes; regions begin it at any entry.
#[derive(Clone, Debug)]
pub(crate) struct Cycle {
    bytes: Divisor,
    /// The width of all stripes where it is the same.
    equal: Option<Divisor>,
    entries: Vec<Entry>,
}

/// The contiguous bytes of one request in one window on one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub server: u32,
    pub address: u64,
    pub bytes: u64,
}

impl Cycle {
    pub(crate) fn new(stripes: &[Stripe]) -> Self {
        let mut bytes = 0;
        let mut entries = Vec::with_capacity(stripes.len());
        for stripe in stripes {
            entries.push(Entry { width: stripe.width_bytes, start: bytes, server: stripe.server });
            bytes += stripe.width_bytes;
        }
        let width = stripes.first().map_or(1, |s| s.width_bytes);
        let equal = stripes.iter().all(|s| s.width_bytes == width).then(|| Divisor::new(width));
        Cycle { bytes: Divisor::new(bytes.max(1)), equal, entries }
    }

    /// The entry that holds byte `at` of the cycle.
    #[inline]
    fn entry_at(&self, at: u64) -> usize {
        match self.equal {
            Some(width) => width.div_rem(at).0 as usize,
            None => self.entries.partition_point(|e| e.start <= at).saturating_sub(1),
        }
    }

    /// The pieces of bytes `[from, to)` of a window that begins at entry `first`; addresses are `base` + offset in the server's share.
    #[inline]
    fn pieces(&self, first: u32, from: u64, to: u64, base: u64, mut each: impl FnMut(Piece)) {
        let turned = self.entries.get(first as usize).map_or(0, |e| e.start);
        let (from_round, from_at) = self.bytes.div_rem(from);
        let (to_round, to_at) = self.bytes.div_rem(to);
        let unturned = from_at + turned;
        let mut i = self.entry_at(if unturned >= self.bytes.value { unturned - self.bytes.value } else { unturned });
        let mut left = to - from;
        for _ in 0..self.entries.len() {
            let Some(entry) = self.entries.get(i) else { return };
            let start = if entry.start >= turned { entry.start - turned } else { entry.start + self.bytes.value - turned };
            let low = from_round * entry.width + from_at.saturating_sub(start).min(entry.width);
            let high = to_round * entry.width + to_at.saturating_sub(start).min(entry.width);
            each(Piece { server: entry.server, address: base.wrapping_add(low), bytes: high - low });
            left -= high - low;
            if left == 0 {
                return;
            }
            i = if i + 1 == self.entries.len() { 0 } else { i + 1 };
        }
    }
}

/// A span that was moved: the region it has now.
#[derive(Clone, Copy, Debug)]
struct Moved {
    from: u64,
    to: u64,
    home: Home,
}

/// One window: where it begins in the file, its stripes, and where the file's bytes stand on the devices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home {
    pub start: u64,
    pub cycle: u32,
    pub first: u32,
    /// Device address of byte 0 of the objects.
    pub base: u64,
}

impl Home {
    /// The pieces of `[from, to)` of the file, which lies in this window.
    #[inline]
    pub(crate) fn pieces(&self, cycles: &[Cycle], from: u64, to: u64, each: impl FnMut(Piece)) {
        if let Some(cycle) = cycles.get(self.cycle as usize) {
            cycle.pieces(self.first, from - self.start, to - self.start, self.base.wrapping_add(self.start), each);
        }
    }
}

/// Where the bytes of one file lie.
#[derive(Clone, Debug)]
pub(crate) struct FileMap {
    pub size: u64,
    base: u64,
    regions: Vec<RegionSpec>,
    /// The length of all regions where it is the same.
    equal: Option<Divisor>,
    /// Sorted, disjoint; these bytes are found here and not in `regions`.
    moved: Vec<Moved>,
}

impl FileMap {
    pub(crate) fn new(file: &FileSpec, base: u64) -> Self {
        let len = file.regions.first().map_or(1, |r| r.len);
        let equal = file.regions.iter().all(|r| r.len == len).then(|| Divisor::new(len));
        FileMap { size: file.size_bytes, base, regions: file.regions.clone(), equal, moved: Vec::new() }
    }

    /// The window that holds `at`, and where its bytes end.
    #[inline]
    fn window(&self, at: u64) -> (Home, u64) {
        let (i, start) = self.region_at(at);
        let Some(region) = self.regions.get(i) else { return (Home { start: at, cycle: 0, first: 0, base: 0 }, u64::MAX) };
        let home = Home { start, cycle: region.cycle, first: region.first, base: self.base };
        let end = start.saturating_add(region.len);
        if self.moved.is_empty() { (home, end) } else { self.moved_window(at, home, end) }
    }

    #[inline]
    fn region_at(&self, at: u64) -> (usize, u64) {
        let last = self.regions.len().saturating_sub(1);
        if let Some(len) = self.equal {
            let (window, within) = len.div_rem(at);
            return ((window as usize).min(last), at - within);
        }
        let i = self.regions.partition_point(|r| r.start <= at).saturating_sub(1);
        let Some(region) = self.regions.get(i) else { return (0, 0) };
        let within = (at - region.start).checked_rem(region.len).unwrap_or(0);
        (i, at - within)
    }

    fn moved_window(&self, at: u64, home: Home, end: u64) -> (Home, u64) {
        let next = self.moved.partition_point(|m| m.from <= at);
        if let Some(moved) = next.checked_sub(1).and_then(|i| self.moved.get(i)).filter(|m| at < m.to) {
            return (moved.home, moved.to);
        }
        (home, self.moved.get(next).map_or(end, |m| end.min(m.from)))
    }

    /// Whether `[from, to)` has at most `most` pieces. The price is a comparison for what has no more bytes than that, else a visit per window,
    /// and never more than `most` of them.
    #[inline]
    pub(crate) fn has_at_most(&self, cycles: &[Cycle], from: u64, to: u64, most: u64) -> bool {
        to.saturating_sub(from) <= most || self.counted(cycles, from, to, most) <= most
    }

    /// How many pieces `[from, to)` has, or some number above `most`.
    fn counted(&self, cycles: &[Cycle], mut from: u64, to: u64, most: u64) -> u64 {
        let mut count = 0u64;
        while from < to && count <= most {
            let (home, end) = self.window(from);
            let until = end.min(to);
            home.pieces(cycles, from, until, |_| count += 1);
            from = until;
        }
        count
    }

    /// The pieces of `[from, to)`, window by window.
    #[inline]
    pub(crate) fn pieces(&self, cycles: &[Cycle], mut from: u64, to: u64, mut each: impl FnMut(Piece)) {
        while from < to {
            let (home, end) = self.window(from);
            let until = end.min(to);
            home.pieces(cycles, from, until, &mut each);
            from = until;
        }
    }

    /// Gives `[from, to)` a new home, from now on.
    pub(crate) fn settle(&mut self, from: u64, to: u64, home: Home) {
        let mut kept: Vec<Moved> = Vec::with_capacity(self.moved.len() + 2);
        for moved in &self.moved {
            // What lies on either side of the span keeps the home that it has.
            kept.extend([Moved { to: moved.to.min(from), ..*moved }, Moved { from: moved.from.max(to), ..*moved }].iter().filter(|m| m.from < m.to));
        }
        kept.push(Moved { from, to, home });
        kept.sort_unstable_by_key(|m| m.from);
        self.moved = kept;
    }
}

/// Device addresses are given out in steps of this many bytes, one of them left free between files: no access to one continues one to another.
const GAP: u64 = 1 << 20;

/// Everything that maps, and the first device address that no file has.
pub(crate) fn maps(scenario: &Scenario) -> (Vec<Cycle>, Vec<FileMap>, u64) {
    let mut base = 0u64;
    let mut files = Vec::with_capacity(scenario.files.len());
    for file in &scenario.files {
        files.push(FileMap::new(file, base));
        base = after(base, file.size_bytes);
    }
    (scenario.cycles.iter().map(|c| Cycle::new(c)).collect(), files, base)
}

/// The address after `bytes` at `base`, and the gap.
pub(crate) fn after(base: u64, bytes: u64) -> u64 {
    base.wrapping_add(bytes.div_ceil(GAP).wrapping_add(1).wrapping_mul(GAP))
}

#[cfg(test)]
mod tests;
