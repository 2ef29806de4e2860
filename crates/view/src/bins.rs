//! A range of numbers (nanoseconds or bytes) cut into bins of equal width.

/// `count` bins of `width`, the first beginning at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bins {
    pub width: u64,
    pub count: usize,
}

impl Bins {
    /// At most `limit` bins (at least one) that hold 0..end; fewer where the range has fewer numbers.
    #[must_use]
    pub fn over(end: u64, limit: usize) -> Self {
        let width = end.div_ceil(limit.max(1) as u64).max(1);
        Self { width, count: usize::try_from(end.div_ceil(width)).unwrap_or(limit).max(1) }
    }

    /// The bin of a number; numbers beyond the last bin belong to it.
    #[must_use]
    pub fn of(&self, at: u64) -> usize {
        usize::try_from(at / self.width).unwrap_or(usize::MAX).min(self.count - 1)
    }

    /// How much of begin..end lies in the first bin that it touches, in each bin between, and in the last one; with their numbers.
    ///
    /// `None` for an empty range.
    #[must_use]
    pub fn cut(&self, begin: u64, end: u64) -> Option<Cut> {
        let length = end.checked_sub(begin).filter(|&length| length > 0)?;
        let (first, last) = (self.of(begin), self.of(end - 1));
        if first == last {
            return Some(Cut { first, last, head: length, tail: 0, width: self.width });
        }
        let head = (first as u64 + 1) * self.width - begin;
        let tail = end - last as u64 * self.width;
        Some(Cut { first, last, head, tail, width: self.width })
    }
}

/// A range cut at the borders of bins: `head` in bin `first`, `tail` in bin `last` where that is another, `width` in each between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    pub first: usize,
    pub last: usize,
    pub head: u64,
    pub tail: u64,
    pub width: u64,
}

impl Cut {
    /// The parts of `amount` in proportion to length, whole numbers that sum to it: in the first bin, in each between, in the last.
    #[must_use]
    pub fn shares(&self, amount: u64, length: u64) -> (u64, u64, u64) {
        if self.first == self.last {
            return (amount, 0, 0);
        }
        let part = |of: u64| u64::try_from(u128::from(amount) * u128::from(of) / u128::from(length.max(1))).unwrap_or(amount);
        let (head, each) = (part(self.head), part(self.width));
        (head, each, amount - head - each * (self.last - self.first - 1) as u64)
    }
}
