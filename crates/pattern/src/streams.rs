//! One trace into streams: what each thread did to each open file, in its order.

use std::collections::HashMap;

/// The records of one stream, by their places: columns are not copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// What its records have in common.
    pub key: u64,
    /// Their places in the trace, ascending.
    pub rows: Vec<u32>,
}

/// Streams that are found without the table: traces interleave tens of them.
const RECENT: usize = 256;

/// The streams in the order of their first records; rows beyond 2^32 do not count.
pub fn separate(keys: &[u64]) -> Vec<Stream> {
    let mut streams: Vec<Stream> = Vec::new();
    let mut numbers: HashMap<u64, usize> = HashMap::new();
    let mut recent = [None; RECENT];
    for (row, &key) in (0..=u32::MAX).zip(keys) {
        let Some(place) = recent.get_mut((key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize) else { continue };
        let number = match *place {
            Some((same, number)) if same == key => number,
            _ => *numbers.entry(key).or_insert_with(|| {
                streams.push(Stream { key, rows: Vec::new() });
                streams.len() - 1
            }),
        };
        *place = Some((key, number));
        if let Some(stream) = streams.get_mut(number) {
            stream.rows.push(row);
        }
    }
    streams
}
