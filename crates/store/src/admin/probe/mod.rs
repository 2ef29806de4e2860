//! Timed requests on one target, for calibration: when each of thousands began and ended. A real target gets them in a scratch file of its own
//! ([`Scratch`]), an emulated one on the very clock that programs wait for ([`Clock`]). What to ask for, and what the times mean, is decided by
//! the caller; nothing here is part of a store's durable state.

mod clock;
mod scratch;

pub use clock::Clock;
pub use scratch::{CacheControl, Scratch};

use super::error::{Result, StoreError};

/// Offsets and sizes are multiples of this: what every device and file system takes without going through the page cache.
pub const PROBE_GRANULE: u64 = 4096;
/// Longest single request.
pub const PROBE_BYTES_MAX: u64 = 64 << 20;
/// Most requests in flight on a real target, each of which has a thread and a buffer of its own.
pub const SCRATCH_IN_FLIGHT_MAX: usize = 256;
/// Most on an emulated one, where they are numbers in a queue.
pub const CLOCK_IN_FLIGHT_MAX: usize = 65_536;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// First byte in the probed range.
    pub offset: u64,
    pub bytes: u64,
}

/// When a request began and ended, CLOCK_MONOTONIC ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    /// When it was handed over.
    pub start_ns: u64,
    /// When whoever asked for it knew that it was done.
    pub end_ns: u64,
}

/// A series of requests and how they are to be made.
#[derive(Clone, Copy, Debug)]
pub struct Series<'a> {
    /// In this order.
    pub requests: &'a [Request],
    /// Writes, else reads.
    pub write: bool,
    /// How many are under way at once.
    pub in_flight: usize,
    /// None is begun later than so long after the first.
    pub limit_ns: u64,
}

impl Series<'_> {
    /// Refuses what cannot be asked of a range of `bytes` bytes that takes `in_flight_max` requests at once.
    fn check(&self, bytes: u64, in_flight_max: usize) -> Result<()> {
        if self.in_flight == 0 || self.in_flight > in_flight_max {
            return Err(StoreError::Invalid(format!("{} requests in flight: give a number from 1 to {in_flight_max}", self.in_flight)));
        }
        let fits = |r: &Request| {
            r.bytes > 0
                && r.bytes <= PROBE_BYTES_MAX
                && r.bytes.is_multiple_of(PROBE_GRANULE)
                && r.offset.is_multiple_of(PROBE_GRANULE)
                && r.offset.checked_add(r.bytes).is_some_and(|end| end <= bytes)
        };
        match self.requests.iter().find(|r| !fits(r)) {
            None => Ok(()),
            Some(r) => Err(StoreError::Invalid(format!(
                "a request of {} bytes at {} does not fit the probed {bytes} bytes: give multiples of {PROBE_GRANULE} inside them, at most \
                 {PROBE_BYTES_MAX} at once",
                r.bytes, r.offset
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn series(requests: &[Request], in_flight: usize) -> Series<'_> {
        Series { requests, write: false, in_flight, limit_ns: 0 }
    }

    #[test]
    fn requests_outside_the_range_or_off_the_granule_are_refused() {
        for (offset, bytes) in [(0, 8193), (1, 4096), (8192, 4096), (0, 0), (u64::MAX - 4095, 4096), (0, 1 << 40)] {
            assert!(series(&[Request { offset, bytes }], 1).check(8192, 8).is_err(), "{offset} {bytes}");
        }
        assert!(series(&[Request { offset: 4096, bytes: 4096 }], 1).check(8192, 8).is_ok());
        assert!(series(&[], 0).check(8192, 8).is_err() && series(&[], 9).check(8192, 8).is_err());
    }
}
