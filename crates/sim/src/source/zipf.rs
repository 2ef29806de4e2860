//! Popularity by a Zipf law: popularity k (0 = hottest) gets a share proportional to 1 / (k + 1)^alpha; where that region lies is a shuffle fixed by
//! the seed.
//!
//! `workloads/pattern.c` finds the popularity of a draw by binary search. Here a guide table says where to begin, so that the same answer takes a
//! step or two however many regions there are.

use super::describe::Description;
use super::pattern::{below, mix, share};
use crate::Error;

/// More would take gigabytes.
const REGIONS_MAX: u64 = 1 << 26;

#[derive(Debug)]
pub(super) struct Zipf {
    region_bytes: u64,
    request_bytes: u64,
    shift: u64,
    /// Share of the requests that popularities 0..=k get.
    cumulative: Vec<f64>,
    /// Where the region of a popularity lies in window 0.
    places: Vec<u32>,
    /// For a draw in [b, b + 1) / len, the first popularity that it can mean. A power of two, so that the bucket of a draw is exact.
    guide: Vec<u32>,
}

impl Zipf {
    pub(super) fn new(described: &Description, request_bytes: u64) -> Result<Zipf, Error> {
        let region_bytes = described.region_bytes;
        let regions = described.file_bytes / region_bytes;
        if regions == 0 || !region_bytes.is_multiple_of(request_bytes) {
            return Err(Error::Invalid(format!(
                "region_bytes = {region_bytes} does not fit zipf; give a multiple of the request size ({request_bytes}) not larger than file_bytes ({})",
                described.file_bytes
            )));
        }
        if regions > REGIONS_MAX {
            return Err(Error::Invalid(format!(
                "region_bytes = {region_bytes} makes {regions} regions, more than {REGIONS_MAX}; use larger regions"
            )));
        }
        let cumulative = cumulative(regions, described.alpha);
        let guide = guide(&cumulative);
        let places = shuffled(regions as u32, described.seed);
        Ok(Zipf { region_bytes, request_bytes, shift: described.shift, cumulative, places, guide })
    }

    /// First byte of the request that `draw` means in `window`.
    pub(super) fn offset(&self, draw: u64, window: u64) -> u64 {
        let regions = self.places.len() as u64;
        let slot = below(mix(draw), self.region_bytes / self.request_bytes);
        let moved = (self.popularity(share(draw)) + self.shift % regions * window) % regions;
        let region = self.places.get(moved as usize).copied().unwrap_or(0);
        u64::from(region) * self.region_bytes + slot * self.request_bytes
    }

    /// The first popularity whose cumulative share is above `share`, the last one where rounding leaves none.
    fn popularity(&self, share: f64) -> u64 {
        let bucket = (share * self.guide.len() as f64) as usize;
        let mut k = self.guide.get(bucket).map_or(0, |&k| k as usize);
        while k + 1 < self.cumulative.len() && self.cumulative.get(k).is_some_and(|&up_to| up_to <= share) {
            k += 1;
        }
        k as u64
    }
}

fn cumulative(regions: u64, alpha: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let mut shares: Vec<f64> = (1..=regions)
        .map(|rank| {
            sum += (rank as f64).powf(-alpha);
            sum
        })
        .collect();
    shares.iter_mut().for_each(|each| *each /= sum);
    shares
}

fn guide(cumulative: &[f64]) -> Vec<u32> {
    let buckets = cumulative.len().next_power_of_two();
    let mut k = 0;
    (0..buckets)
        .map(|bucket| {
            let from = bucket as f64 / buckets as f64;
            while k + 1 < cumulative.len() && cumulative.get(k).is_some_and(|&up_to| up_to <= from) {
                k += 1;
            }
            k as u32
        })
        .collect()
}

fn shuffled(regions: u32, seed: u64) -> Vec<u32> {
    let mut places: Vec<u32> = (0..regions).collect();
    for k in (1..places.len()).rev() {
        let other = below(mix(mix(seed) ^ k as u64), k as u64 + 1);
        places.swap(k, other as usize);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_finds_what_a_binary_search_finds() {
        for (regions, alpha) in [(1, 0.8), (2, 0.0), (7, 1.0), (1000, 0.8), (1024, 3.0), (5000, 20.0)] {
            let cumulative = cumulative(regions, alpha);
            let guide = guide(&cumulative);
            let zipf = Zipf { region_bytes: 1, request_bytes: 1, shift: 0, places: vec![0; regions as usize], guide, cumulative };
            let edges = zipf.cumulative.iter().flat_map(|&at| [at.next_down(), at, at.next_up()]).filter(|&at| (0.0..1.0).contains(&at));
            for draw in (0..2000).map(|n| share(mix(n))).chain(edges) {
                let sought = zipf.cumulative.partition_point(|&up_to| up_to <= draw).min(regions as usize - 1);
                assert_eq!(zipf.popularity(draw), sought as u64, "{regions} regions, alpha {alpha}, draw {draw}");
            }
        }
    }

    #[test]
    fn every_region_has_one_popularity() {
        let mut places = shuffled(1000, 7);
        assert_ne!(places, (0..1000).collect::<Vec<_>>());
        places.sort_unstable();
        assert_eq!(places, (0..1000).collect::<Vec<_>>());
    }
}
