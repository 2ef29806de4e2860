//! Requests cut at region borders, equal pieces counted.

use crate::map;

/// More regions than any plan has.
const REGIONS_MAX: u64 = 1 << 24;
/// More pieces than fit in memory: requests far longer than regions.
const PIECES_MAX: u64 = 1 << 31;

/// Distinct pieces with their counts, sorted by region, offset, size and direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// Number of the region in the file.
    pub region: Vec<i64>,
    /// First byte, counted from the region.
    pub offset: Vec<i64>,
    /// Bytes.
    pub size: Vec<i64>,
    /// 1 writes, 0 reads.
    pub write: Vec<u8>,
    /// Requests of which this is a piece.
    pub count: Vec<i64>,
}

impl Pieces {
    fn push(&mut self, region: u64, (offset, size_and_write): (u64, u64), count: i64) {
        self.region.push(region as i64);
        self.offset.push(offset as i64);
        self.size.push((size_and_write >> 1) as i64);
        self.write.push((size_and_write & 1) as u8);
        self.count.push(count);
    }

    fn append(&mut self, mut other: Self) {
        self.region.append(&mut other.region);
        self.offset.append(&mut other.offset);
        self.size.append(&mut other.size);
        self.write.append(&mut other.write);
        self.count.append(&mut other.count);
    }
}

/// Cuts requests of one file into pieces by regions of `region_bytes` and counts equal ones; requests of no bytes are left out.
///
/// `None` when the columns differ in length, a number is negative, or there are more regions or pieces than memory holds.
pub fn group(offset: &[i64], size: &[i64], write: &[u8], region_bytes: u64) -> Option<Pieces> {
    if size.len() != offset.len() || write.len() != offset.len() || region_bytes == 0 {
        return None;
    }
    let requests = || offset.iter().zip(size).zip(write).filter(|((_, size), _)| **size > 0);
    let mut ends: Vec<usize> = Vec::new();
    let mut total = 0u64;
    for ((&offset, &size), _) in requests() {
        let (offset, size) = (u64::try_from(offset).ok()?, u64::try_from(size).ok()?);
        let (first, last) = (offset / region_bytes, offset.checked_add(size - 1)? / region_bytes);
        total += last - first + 1;
        if last >= REGIONS_MAX || total > PIECES_MAX {
            return None;
        }
        if ends.len() <= last as usize {
            ends.resize(last as usize + 1, 0);
        }
        ends.get_mut(first as usize..=last as usize)?.iter_mut().for_each(|count| *count += 1);
    }
    let mut start = 0;
    for end in &mut ends {
        let count = *end;
        *end = start;
        start += count;
    }
    let mut sorted = vec![(0u64, 0u64); total as usize];
    for ((&offset, &size), &write) in requests() {
        let (offset, end) = (offset as u64, offset as u64 + size as u64);
        for region in offset / region_bytes..=(end - 1) / region_bytes {
            let (low, high) = (offset.max(region * region_bytes), end.min((region + 1) * region_bytes));
            let place = ends.get_mut(region as usize)?;
            *sorted.get_mut(*place)? = (low - region * region_bytes, (high - low) << 1 | u64::from(write != 0));
            *place += 1;
        }
    }
    let ranges: Vec<(u64, usize, usize)> = ends
        .iter()
        .enumerate()
        .scan(0, |low, (region, &high)| Some((region as u64, std::mem::replace(low, high), high)))
        .filter(|(_, low, high)| low < high)
        .collect();
    let mut pieces = Pieces::default();
    for part in map(&ranges, total as usize, |(region, low, high)| counted(*region, sorted.get(*low..*high).unwrap_or_default())) {
        pieces.append(part);
    }
    Some(pieces)
}

/// The distinct ones of a region's pieces.
fn counted(region: u64, pieces: &[(u64, u64)]) -> Pieces {
    let mut mine = pieces.to_vec();
    mine.sort_unstable();
    let mut result = Pieces::default();
    for same in mine.chunk_by(|a, b| a == b) {
        if let Some(first) = same.first() {
            result.push(region, *first, same.len() as i64);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn pieces_are_those_of_a_cut_request_by_request(
            requests in proptest::collection::vec((0i64..300, 0i64..120, 0u8..2), 0..60), region_bytes in 1u64..50,
        ) {
            let mut expected: BTreeMap<(i64, i64, i64, u8), i64> = BTreeMap::new();
            for (offset, size, write) in &requests {
                let (mut at, end) = (*offset, offset + size);
                while at < end {
                    let region = at / region_bytes as i64;
                    let stop = end.min((region + 1) * region_bytes as i64);
                    *expected.entry((region, at - region * region_bytes as i64, stop - at, *write)).or_default() += 1;
                    at = stop;
                }
            }
            let column = |pick: fn(&(i64, i64, u8)) -> i64| requests.iter().map(pick).collect::<Vec<_>>();
            let write: Vec<u8> = requests.iter().map(|r| r.2).collect();
            let found = group(&column(|r| r.0), &column(|r| r.1), &write, region_bytes).unwrap();
            let rows: Vec<_> = (0..found.count.len())
                .map(|i| ((found.region[i], found.offset[i], found.size[i], found.write[i]), found.count[i]))
                .collect();
            prop_assert_eq!(rows, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn threads_give_the_same_as_one() {
        let offset: Vec<i64> = (0..200_000).map(|i| (i * 7919 % 1000) * 4096).collect();
        let size = vec![8192; offset.len()];
        let write = vec![1; offset.len()];
        let found = group(&offset, &size, &write, 1 << 16).unwrap();
        assert_eq!(found.size.iter().zip(&found.count).map(|(size, count)| size * count).sum::<i64>(), 200_000 * 8192);
        assert!(found.region.is_sorted());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(group(&[0], &[1, 2], &[0], 4096), None);
        assert_eq!(group(&[-1], &[4096], &[0], 4096), None);
        assert_eq!(group(&[i64::MAX], &[i64::MAX], &[0], 4096), None);
        assert_eq!(group(&[0], &[1 << 50], &[0], 4096), None);
    }
}
