//! Time is whole nanoseconds in a u64 (584 years); figures become fixed point once, so that the engine multiplies integers.

/// Seconds as whole ns, the nearest; saturates.
pub(crate) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// ns as seconds.
pub(crate) fn in_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Time per byte in 2^-32 ns: exact to 0.3 ns per GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PerByte(u64);

impl PerByte {
    pub(crate) fn new(seconds_per_byte: f64) -> Self {
        PerByte((seconds_per_byte * 1e9 * 4_294_967_296.0).round() as u64)
    }

    /// Whole ns of so many bytes, rounded down; saturates.
    #[inline]
    pub(crate) fn of(self, bytes: u64) -> u64 {
        u64::try_from((u128::from(self.0) * u128::from(bytes)) >> 32).unwrap_or(u64::MAX)
    }

    pub(crate) fn is_zero(self) -> bool {
        self.0 == 0
    }
}
