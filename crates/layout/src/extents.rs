//! The contiguous object ranges of a request: what a data path sends, one I/O per window and target.
//!
//! Round robin puts a target's stripes of one window one after another in its slice, so all that a request has on that target there is
//! one object range, however many stripes it crosses. Each range can list the slices of the request that it holds, for the I/O vector.

use crate::ORIGINAL;
use crate::cycle::{Cycle, StripeRef};
use crate::region::RegionRef;
use crate::table::Table;

/// The one contiguous object range that a request has on one target within one window.
#[derive(Clone, Copy, Debug)]
pub struct Extent<'a> {
    /// The target, or [`ORIGINAL`].
    pub target: u32,
    /// Which of the target's two objects; 0 for [`ORIGINAL`].
    pub plane: u32,
    /// First byte in that object (in the plain file for [`ORIGINAL`]).
    pub object_offset: u64,
    /// Bytes.
    pub len: u64,
    region: RegionRef<'a>,
    stripe: StripeRef,
    /// First byte in the target's slice.
    local: u64,
}

impl<'a> Extent<'a> {
    /// The `(logical, len)` slices of the request, in object order, adjacent ones merged; together as long as the extent.
    #[inline]
    #[must_use]
    pub fn pieces(&self) -> ExtentPieces<'a> {
        ExtentPieces { region: self.region, stripe: self.stripe, local: self.local, left: self.len, start: self.object_offset }
    }

    /// Start of the window that the extent lies in.
    #[inline]
    #[must_use]
    pub fn region(&self) -> RegionRef<'a> {
        self.region
    }
}

/// Iterator over [`Extent::pieces`].
#[derive(Clone, Copy, Debug)]
pub struct ExtentPieces<'a> {
    region: RegionRef<'a>,
    stripe: StripeRef,
    local: u64,
    left: u64,
    start: u64,
}

impl Iterator for ExtentPieces<'_> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        if self.left == 0 {
            return None;
        }
        if self.region.is_original() {
            return Some((self.start, core::mem::take(&mut self.left)));
        }
        let cycle = &self.region.cycle;
        if cycle.count == 1 {
            return Some((self.region.start + self.local, core::mem::take(&mut self.left)));
        }
        let l = cycle.window_offset(self.stripe, self.local);
        let within = cycle.split(l).1 - self.stripe.start;
        let len = (self.stripe.width - within).min(self.left);
        self.local += len;
        self.left -= len;
        Some((self.region.start + l, len))
    }
}

/// Iterator over the extents of a request: by window, then in the order in which the request first touches each target.
#[derive(Clone, Copy, Debug)]
pub struct Extents<'a> {
    table: Table<'a>,
    region: Option<RegionRef<'a>>,
    at: u64,
    end: u64,
    turn: Option<Turn>,
}

/// Where the iterator stands within one window.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// End of the request in the window, from the window's start.
    to: u64,
    /// First and last byte of the request there, as (cycle, offset in cycle).
    from_split: (u64, u64),
    to_split: (u64, u64),
    stripe: u32,
    done: u32,
    /// Where the request first touches `stripe`.
    touch: u64,
    /// From there to the stripe's end.
    run: u64,
}

impl<'a> Extents<'a> {
    #[inline]
    pub(crate) fn new(table: Table<'a>, at: u64, len: u64) -> Extents<'a> {
        let end = at.saturating_add(len);
        let region = if end <= table.end() && len > 0 { table.region_at(at) } else { None };
        Extents { table, region, at, end, turn: None }
    }

    #[inline]
    fn begin(&self, region: &RegionRef<'a>, upto: u64) -> Turn {
        let (from, to) = (self.at - region.start, upto - region.start);
        let slot = region.cycle.locate(from);
        Turn { to, from_split: region.cycle.split(from), to_split: region.cycle.split(to), stripe: slot.stripe, done: 0, touch: from, run: slot.run }
    }
}

impl<'a> Iterator for Extents<'a> {
    type Item = Extent<'a>;

    #[inline]
    fn next(&mut self) -> Option<Extent<'a>> {
        loop {
            if self.at >= self.end {
                return None;
            }
            let mut region = self.region?;
            if self.at >= region.reach() {
                self.region = self.table.after(&region);
                region = self.region?;
            }
            let upto = region.reach().min(self.end);
            if region.is_original() {
                let (at, len) = (self.at, upto - self.at);
                self.at = upto;
                let stripe = StripeRef { width: 0, start: 0, target: ORIGINAL };
                return Some(Extent { target: ORIGINAL, plane: 0, object_offset: at, len, region, stripe, local: 0 });
            }
            let mut turn = match self.turn {
                Some(turn) => turn,
                None => self.begin(&region, upto),
            };
            if turn.touch >= turn.to || turn.done == region.cycle.count {
                self.turn = None;
                self.at = upto;
                continue;
            }
            let stripe = region.cycle.stripe(turn.stripe);
            let local = Cycle::below(stripe, turn.from_split);
            let len = Cycle::below(stripe, turn.to_split) - local;
            turn.stripe = if turn.stripe + 1 == region.cycle.count { 0 } else { turn.stripe + 1 };
            turn.done += 1;
            turn.touch += turn.run;
            turn.run = region.cycle.stripe(turn.stripe).width;
            self.turn = Some(turn);
            return Some(Extent { target: stripe.target, plane: region.plane(), object_offset: region.slice + local, len, region, stripe, local });
        }
    }
}
