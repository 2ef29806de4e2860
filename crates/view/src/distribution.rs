//! Distributions of request sizes (by powers of two) and of the time that a call takes (by quarters of them).

use crate::columns::Request;

/// Buckets of latency in each power of two.
pub const LATENCY_PARTS: usize = 4;
const SIZE_BUCKETS: usize = 65;
const LATENCY_BUCKETS: usize = 64 * LATENCY_PARTS + 1;

/// Counts of requests by bucket, of reads and of writes; bucket 0 holds zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Bucket b from 1 on: 2^(b-1) <= bytes < 2^b.
    pub size: [Vec<u64>; 2],
    /// Bucket b from 1 on begins at [`bucket_low`]; nanoseconds.
    pub latency: [Vec<u64>; 2],
    pub requests: [u64; 2],
    pub bytes: [u64; 2],
    /// Of all calls, nanoseconds.
    pub busy: [u64; 2],
    pub without_offset: u64,
    /// First start and last end; highest byte that was touched, plus one.
    pub begin_ns: u64,
    pub end_ns: u64,
    pub extent: u64,
    pub size_min: u64,
    pub size_max: u64,
}

fn size_bucket(size: u64) -> usize {
    (u64::BITS - size.leading_zeros()) as usize
}

/// Nanoseconds at which a bucket of latency begins.
#[must_use]
pub fn bucket_low(bucket: usize) -> u64 {
    let Some(place) = bucket.checked_sub(1) else { return 0 };
    let (power, part) = (place / LATENCY_PARTS, place % LATENCY_PARTS);
    let low = 1u128 << power.min(63);
    u64::try_from(low + low * part as u128 / LATENCY_PARTS as u128).unwrap_or(u64::MAX)
}

fn latency_bucket(ns: u64) -> usize {
    if ns == 0 {
        return 0;
    }
    let power = ns.ilog2() as usize;
    let part = ((u128::from(ns - (1 << power)) * LATENCY_PARTS as u128) >> power) as usize;
    1 + power * LATENCY_PARTS + part
}

fn count(buckets: &mut [u64], bucket: usize) {
    if let Some(held) = buckets.get_mut(bucket) {
        *held += 1;
    }
}

/// What the requests are in sum.
#[must_use]
pub fn distribution(requests: impl Iterator<Item = Request>) -> Distribution {
    let mut found = Distribution {
        size: [vec![0; SIZE_BUCKETS], vec![0; SIZE_BUCKETS]],
        latency: [vec![0; LATENCY_BUCKETS], vec![0; LATENCY_BUCKETS]],
        requests: [0; 2],
        bytes: [0; 2],
        busy: [0; 2],
        without_offset: 0,
        begin_ns: u64::MAX,
        end_ns: 0,
        extent: 0,
        size_min: u64::MAX,
        size_max: 0,
    };
    for request in requests {
        let Request { start_ns, end_ns, size, .. } = request;
        let Distribution { size: [read_size, write_size], latency: [read_ns, write_ns], requests: [reads, writes], .. } = &mut found;
        let (sizes, times, calls) = if request.is_write { (write_size, write_ns, writes) } else { (read_size, read_ns, reads) };
        count(sizes, size_bucket(size));
        count(times, latency_bucket(end_ns - start_ns));
        *calls += 1;
        let Distribution { bytes: [read, written], busy: [reading, writing], .. } = &mut found;
        let (bytes, busy) = if request.is_write { (written, writing) } else { (read, reading) };
        *bytes += size;
        *busy += end_ns - start_ns;
        found.begin_ns = found.begin_ns.min(start_ns);
        found.end_ns = found.end_ns.max(end_ns);
        found.size_min = found.size_min.min(size);
        found.size_max = found.size_max.max(size);
        match request.offset {
            Some(offset) => found.extent = found.extent.max(offset.saturating_add(size)),
            None => found.without_offset += 1,
        }
    }
    found.begin_ns = found.begin_ns.min(found.end_ns);
    found.size_min = found.size_min.min(found.size_max);
    found
}
