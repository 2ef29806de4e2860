//! Orders that depend on a seed only (SplitMix64).

use stripewise_chance::SplitMix64;

pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(SplitMix64::at(seed ^ 0x5851_f42d_4c95_7f2d))
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit as u64) as usize
    }

    /// Exponentially distributed with mean 1, never more than 37.
    pub(crate) fn exponential(&mut self) -> f64 {
        -((self.below(1 << 53) as f64 + 0.5) / (1u64 << 53) as f64).ln()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
