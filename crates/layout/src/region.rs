//! One window: a region, or one repetition of the repeating one, and the slices that it owns on its targets.
//!
//! Pieces and extents are cut inside a window; movers punch and `fsck` checks whole slices.

use crate::MAX_LOGICAL;
use crate::cycle::{Cycle, StripeRef};
use crate::format::REPEATS;

/// One region, or one repetition of the repeating one: the unit that has a slice of its own on every target.
#[derive(Clone, Copy, Debug)]
pub struct RegionRef<'a> {
    /// First logical byte of the window (of this repetition).
    pub start: u64,
    /// Bytes of the window.
    pub len: u64,
    /// Generation of the region: its lowest bit is the plane.
    pub generation: u32,
    /// Number of the region in its list.
    pub index: u32,
    /// The record's: a word, for a bool's padding would be copied in pieces that the processor cannot forward.
    pub(crate) flags: u32,
    pub(crate) cycle: Cycle<'a>,
    pub(crate) slice: u64,
}

/// The bytes that one window owns on one target, in the object of the window's plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// The target; never [`ORIGINAL`].
    pub target: u32,
    /// Which of the target's two objects.
    pub plane: u32,
    /// First byte in that object.
    pub object_offset: u64,
    /// Bytes: the target's whole share of the window.
    pub len: u64,
}

impl<'a> RegionRef<'a> {
    /// First logical byte after the window.
    #[inline]
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// Whether the region repeats for ever.
    #[inline]
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.flags & REPEATS != 0
    }

    /// Whether the bytes lie in the plain file.
    #[inline]
    #[must_use]
    pub fn is_original(&self) -> bool {
        self.cycle.is_original()
    }

    /// 0 or 1: which of a target's two objects holds the slice. Replicas have one object per target, whatever the plane.
    #[inline]
    #[must_use]
    pub fn plane(&self) -> u32 {
        self.generation & 1
    }

    /// The slice on `target`, `None` when the window has no byte there.
    #[must_use]
    pub fn slice(&self, target: u32) -> Option<Slice> {
        if self.is_original() {
            return None;
        }
        self.slice_of(self.cycle.find(target)?)
    }

    fn slice_of(&self, s: StripeRef) -> Option<Slice> {
        let len = Cycle::below(s, self.cycle.split(self.len));
        (len > 0).then_some(Slice { target: s.target, plane: self.plane(), object_offset: self.slice, len })
    }

    /// The slices on all targets, in the order of the cycle; none when original. What a mover punches and `fsck` checks.
    #[must_use]
    pub fn slices(&self) -> Slices<'a> {
        Slices { region: *self, next: 0 }
    }

    /// The `(target, width in bytes)` pairs of the cycle, in order; none when original.
    pub fn stripes(&self) -> impl Iterator<Item = (u32, u64)> + use<'a> {
        let cycle = self.cycle;
        (0..cycle.count).map(move |i| cycle.stripe(i)).map(|s| (s.target, s.width))
    }

    /// Where the window ends for addressing: original bytes are contiguous through all repetitions.
    #[inline]
    pub(crate) fn reach(&self) -> u64 {
        if self.repeats() && self.is_original() { MAX_LOGICAL } else { self.end() }
    }
}

/// Iterator over [`RegionRef::slices`].
#[derive(Clone, Copy, Debug)]
pub struct Slices<'a> {
    region: RegionRef<'a>,
    next: u32,
}

impl Iterator for Slices<'_> {
    type Item = Slice;

    fn next(&mut self) -> Option<Slice> {
        while !self.region.is_original() && self.next < self.region.cycle.count {
            let stripe = self.region.cycle.stripe(self.next);
            self.next += 1;
            if let Some(slice) = self.region.slice_of(stripe) {
                return Some(slice);
            }
        }
        None
    }
}
