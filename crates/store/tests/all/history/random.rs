//! The one source of chance of a history: SplitMix64, so that a seed tells all.

use stripewise_chance::SplitMix64;

pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::at(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True `of` times in `all`.
    pub fn chance(&mut self, of: usize, all: usize) -> bool {
        self.below(all) < of
    }
}
