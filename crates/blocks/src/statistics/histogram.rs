//! How numbers from 0 to 2^64 are distributed, by powers of two: enough for a curve over a logarithmic axis, in a fixed space.

use serde::Serialize;

/// A point of a cumulative distribution.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Step {
    /// A power of two.
    pub below: u64,
    /// Share of the numbers that are below it.
    pub share: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Histogram {
    /// Bucket k: numbers of k binary digits.
    buckets: [u64; 65],
    count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: [0; 65], count: 0 }
    }
}

impl Histogram {
    pub(super) fn take(&mut self, number: u64) {
        let digits = u64::BITS - number.leading_zeros();
        if let Some(bucket) = self.buckets.get_mut(digits as usize) {
            *bucket += 1;
        }
        self.count += 1;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// From the first power of two that has a number below it to the first that has all.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut below = 0;
        let mut steps = Vec::new();
        for (digits, bucket) in self.buckets.iter().enumerate() {
            below += bucket;
            if below > 0 {
                steps.push(Step { below: 1u64.checked_shl(digits as u32).unwrap_or(u64::MAX), share: below as f64 / self.count as f64 });
            }
            if below == self.count {
                break;
            }
        }
        steps
    }
}
