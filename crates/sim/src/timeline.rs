//! The run in at most so many buckets, whatever its length: when it outgrows them, neighbours are joined and the width doubles.
//!
//! Widths are powers of two in ns, so that finding a bucket is a shift.

use crate::report::Bucket;
use crate::time::in_seconds;

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    read: u64,
    write: u64,
    copied: u64,
    /// Sum over requests of the time in flight within the bucket.
    flight_ns: u128,
}

/// What ends in a bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    Read,
    Write,
    Copy,
}

#[derive(Debug)]
pub(crate) struct Timeline {
    buckets: Vec<Sums>,
    /// Logarithm of a bucket's ns.
    shift: u32,
}

/// The first width: 2^10 ns, about a microsecond.
const FIRST_SHIFT: u32 = 10;

impl Timeline {
    pub(crate) fn new(buckets: u32) -> Self {
        Timeline { buckets: vec![Sums::default(); buckets as usize], shift: FIRST_SHIFT }
    }

    /// Makes room for `at_ns`.
    #[inline]
    fn reach(&mut self, at_ns: u64) {
        while (at_ns >> self.shift) as usize >= self.buckets.len() {
            self.join();
        }
    }

    #[cold]
    fn join(&mut self) {
        let mut joined: Vec<Sums> = self
            .buckets
            .chunks(2)
            .map(|pair| {
                pair.iter().fold(Sums::default(), |a, b| Sums {
                    read: a.read + b.read,
                    write: a.write + b.write,
                    copied: a.copied + b.copied,
                    flight_ns: a.flight_ns + b.flight_ns,
                })
            })
            .collect();
        joined.resize(self.buckets.len(), Sums::default());
        self.buckets = joined;
        self.shift += 1;
    }

    /// Counts what ended at `end_ns`.
    #[inline]
    pub(crate) fn ended(&mut self, what: Ended, end_ns: u64, bytes: u64) {
        self.reach(end_ns);
        if let Some(bucket) = self.buckets.get_mut((end_ns >> self.shift) as usize) {
            match what {
                Ended::Read => bucket.read += bytes,
                Ended::Write => bucket.write += bytes,
                Ended::Copy => bucket.copied += bytes,
            }
        }
    }

    /// Counts a request that was in flight from `begin_ns` to `end_ns`.
    #[inline]
    pub(crate) fn in_flight(&mut self, begin_ns: u64, end_ns: u64) {
        self.reach(end_ns);
        let (first, last) = ((begin_ns >> self.shift) as usize, (end_ns >> self.shift) as usize);
        if first == last {
            if let Some(bucket) = self.buckets.get_mut(first) {
                bucket.flight_ns += u128::from(end_ns - begin_ns);
            }
            return;
        }
        let Some(crossed) = self.buckets.get_mut(first..=last) else { return };
        let mut from = begin_ns;
        for (i, bucket) in (first as u64..).zip(crossed) {
            let to = end_ns.min((i + 1) << self.shift);
            bucket.flight_ns += u128::from(to - from);
            from = to;
        }
    }

    /// The buckets up to the one that holds the end of the run.
    pub(crate) fn report(&self, end_ns: u64) -> Vec<Bucket> {
        let width_s = in_seconds(1 << self.shift);
        // A run that ends on a border has nothing after it but what ended on it: that belongs to the piece before.
        let used = (end_ns >> self.shift) as usize + 1;
        let mb_s = |bytes: u64| bytes as f64 / 1e6 / width_s;
        let bucket = |(i, sums): (usize, &Sums)| Bucket {
            start_s: i as f64 * width_s,
            read_mb_s: mb_s(sums.read),
            write_mb_s: mb_s(sums.write),
            in_flight: sums.flight_ns as f64 / (1u64 << self.shift) as f64,
            copy_mb_s: mb_s(sums.copied),
        };
        self.buckets.iter().take(used).enumerate().map(bucket).collect()
    }
}
