//! The bins of an index over replicas, and which of them the blocks of a pattern touch.
//!
//! Blocks of one pattern do not overlap, so they have an order, and one division by all strides finds the last block that starts at or below a byte. For
//! the last byte of a bin that block tells everything: whether any block touches the bin, and how far the only one that can leave it goes on.

use crate::replica::{Blocks, Patterns, steps};
use crate::{MAX_LOGICAL, View};

/// Bins of equal width over a range of a file. The first one also takes what lies before the range, the last one what lies behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bins {
    start: u64,
    shift: u32,
    count: u32,
}

impl Bins {
    /// Bins of a file, as RADAR has them (section III-A).
    pub const COUNT: u32 = 1024;

    /// Most bins: an entry of the index has 16 bits for the number of bins that a block goes on for.
    pub const COUNT_MAX: u32 = 1 << 16;

    /// At most `count` bins (1 to [`Bins::COUNT_MAX`]; others count as the nearer of the two) over `[start, end)`, of the smallest power of two of bytes
    /// that suffices: more than half of `count`, and all of them when `end - start` is `count` times a power of two.
    #[must_use]
    pub fn over(start: u64, end: u64, count: u32) -> Bins {
        let count = u64::from(count.clamp(1, Bins::COUNT_MAX));
        let start = start.min(MAX_LOGICAL);
        let last = end.min(MAX_LOGICAL).saturating_sub(start).saturating_sub(1);
        let shift = (0..62).find(|shift| last >> shift < count).unwrap_or(62);
        Bins { start, shift, count: (last >> shift) as u32 + 1 }
    }

    /// [`Bins::COUNT`] bins at most over what the replicas hold: of a file of which they hold a part, the bins are the finer.
    #[must_use]
    pub fn of(view: &View<'_>) -> Bins {
        let patterns = Patterns::of(view);
        let blocks = || (0..patterns.len()).filter_map(|index| patterns.get(index));
        let start = blocks().map(|b| b.base).min().unwrap_or(0);
        Bins::over(start, blocks().map(|b| b.end()).max().unwrap_or(0), Bins::COUNT)
    }

    /// Bins that were stored; `None` where they are none that [`Bins::over`] makes.
    pub(crate) fn stored(start: u64, shift: u32, count: u32) -> Option<Bins> {
        let fits = start <= MAX_LOGICAL && shift <= 62 && (1..=Bins::COUNT_MAX).contains(&count);
        (fits && u64::from(count - 1) <= MAX_LOGICAL >> shift).then_some(Bins { start, shift, count })
    }

    /// Number of bins, at least 1.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// First byte of the range.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// log2 of the bytes of a bin.
    #[must_use]
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// Number of the bin that holds byte `at`.
    #[inline]
    #[must_use]
    pub fn bin(&self, at: u64) -> u32 {
        (at.saturating_sub(self.start) >> self.shift).min(u64::from(self.count) - 1) as u32
    }

    /// First byte of a bin.
    fn first_byte(&self, bin: u32) -> u64 {
        if bin == 0 { 0 } else { self.start + (u64::from(bin) << self.shift) }
    }

    /// Last byte of a bin.
    fn last_byte(&self, bin: u32) -> u64 {
        if bin + 1 >= self.count { u64::MAX } else { self.first_byte(bin + 1) - 1 }
    }

    /// No fewer than the bins that `blocks` touch; what [`Bins::touched`] looks at.
    pub(crate) fn spanned(&self, blocks: &Blocks<'_>) -> u64 {
        u64::from(self.bin(blocks.end().saturating_sub(1)) - self.bin(blocks.base)) + 1
    }

    /// The bins that `blocks` touch, in order, each with the number of further bins over which the farthest-reaching block that overlaps it goes on.
    /// Exact; linear in the number of bins between the first and the last, whatever the number of blocks.
    pub(crate) fn touched(self, blocks: Blocks<'_>) -> impl Iterator<Item = (u32, u32)> {
        let (loops, n) = blocks.by_stride();
        let (first, last) = (self.bin(blocks.base), self.bin(blocks.end().saturating_sub(1)));
        (first..=last).filter_map(move |bin| {
            let (mut start, mut rest) = (blocks.base, self.last_byte(bin).saturating_sub(blocks.base));
            for step in loops.iter().take(n).filter(|l| l.count > 1) {
                let digit = steps(rest, step.stride).min(step.count - 1);
                start += digit * step.stride;
                rest -= digit * step.stride;
            }
            // The last block that starts at or before the bin's last byte: if it does not touch the bin, none does, and no other one can leave it.
            let end = start + blocks.block - 1;
            (end >= self.first_byte(bin)).then(|| (bin, self.bin(end) - bin))
        })
    }
}
