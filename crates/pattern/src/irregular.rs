//! Records without a pattern in their offsets: how they are distributed.

use std::collections::BTreeMap;

use crate::record::Record;

/// Up to this a request is small, above [`LARGE_BYTES`] it is large (bytes).
pub const SMALL_BYTES: i64 = 64 << 10;
/// See [`SMALL_BYTES`].
pub const LARGE_BYTES: i64 = 1 << 20;

/// What is known of irregular records together.
#[derive(Clone, Debug, PartialEq)]
pub struct Irregular {
    /// Records of each kind, by kind.
    pub kinds: Vec<(u32, u64)>,
    /// Lowest offset.
    pub low: i64,
    /// Highest end (offset + size); saturates.
    pub high: i64,
    /// Largest number that divides all offsets; 0 when all are 0.
    pub alignment_bytes: u64,
    /// Smallest and largest request.
    pub size_min: i64,
    /// See `size_min`.
    pub size_max: i64,
    /// Small, medium and large requests.
    pub size_classes: [u64; 3],
    /// Sum of the sizes; saturates.
    pub bytes: i64,
    /// Requests that begin behind the end of the one before; those that begin just there; those that begin before its offset.
    pub forward: u64,
    /// See `forward`.
    pub sequential: u64,
    /// See `forward`.
    pub backward: u64,
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Irregular {
    pub(crate) fn of(records: &[Record]) -> Self {
        let mut kinds = BTreeMap::new();
        let mut found = Self {
            kinds: Vec::new(),
            low: i64::MAX,
            high: i64::MIN,
            alignment_bytes: 0,
            size_min: i64::MAX,
            size_max: i64::MIN,
            size_classes: [0; 3],
            bytes: 0,
            forward: 0,
            sequential: 0,
            backward: 0,
        };
        for record in records {
            *kinds.entry(record.kind).or_insert(0) += 1;
            found.low = found.low.min(record.offset);
            found.high = found.high.max(record.offset.saturating_add(record.size));
            let offset = record.offset.unsigned_abs();
            // Nearly always the divisor stays what it is, which one division shows.
            if found.alignment_bytes == 0 || !offset.is_multiple_of(found.alignment_bytes) {
                found.alignment_bytes = common_divisor(found.alignment_bytes, offset);
            }
            found.size_min = found.size_min.min(record.size);
            found.size_max = found.size_max.max(record.size);
            let [small, medium, large] = &mut found.size_classes;
            *match record.size {
                size if size <= SMALL_BYTES => small,
                size if size <= LARGE_BYTES => medium,
                _ => large,
            } += 1;
            found.bytes = found.bytes.saturating_add(record.size);
        }
        for (before, record) in records.iter().zip(records.iter().skip(1)) {
            let end = before.offset.saturating_add(before.size);
            found.sequential += u64::from(record.offset == end);
            found.forward += u64::from(record.offset > end);
            found.backward += u64::from(record.offset < before.offset);
        }
        found.kinds = kinds.into_iter().collect();
        found
    }
}
