//! Popularity by a Zipf law: popularity k (0 = hottest) gets a share proportional to 1 / (k + 1)^alpha; where that region lies is a shuffle fixed by
//! the seed.
//!
//! The same arithmetic as `workloads/pattern.c`, which finds the popularity of a draw by binary search.

use stripewise_chance::{Shares, below, mix, share, shuffled};

use super::describe::Description;
use crate::Error;

/// More would take gigabytes.
const REGIONS_MAX: u64 = 1 << 26;

#[derive(Debug)]
pub(super) struct Zipf {
    region_bytes: u64,
    request_bytes: u64,
    shift: u64,
    /// Popularities by their share of the requests.
    popularity: Shares,
    /// Where the region of a popularity lies in window 0.
    places: Vec<u32>,
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
        let popularity = Shares::zipf(regions as u32, described.alpha);
        let places = shuffled(regions as u32, described.seed);
        Ok(Zipf { region_bytes, request_bytes, shift: described.shift, popularity, places })
    }

    /// First byte of the request that `draw` means in `window`.
    pub(super) fn offset(&self, draw: u64, window: u64) -> u64 {
        let regions = self.places.len() as u64;
        let slot = below(mix(draw), self.region_bytes / self.request_bytes);
        let moved = (self.popularity.pick(share(draw)) as u64 + self.shift % regions * window) % regions;
        let region = self.places.get(moved as usize).copied().unwrap_or(0);
        u64::from(region) * self.region_bytes + slot * self.request_bytes
    }
}
