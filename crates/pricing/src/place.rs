//! Where a request lies among the cycles of a layout.

use crate::divisor::Divisor;

/// A request's place among cycles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Cycle borders between its ends.
    pub whole: u64,
    /// Its first byte in its cycle.
    pub from: u64,
    /// The byte after its last one in its cycle.
    pub to: u64,
}

impl Place {
    #[inline]
    pub fn new(offset: u64, size: u64, length: Divisor) -> Self {
        let (_, from) = length.divide(offset);
        let (whole, to) = length.divide(from + size);
        Self { whole, from, to }
    }
}
