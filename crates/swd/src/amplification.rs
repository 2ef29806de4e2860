//! Space gain and write amplification of updates in place: the formulas of chapter 4 and the exact average for a mapping order.

use crate::error::SwdError;
use crate::geometry::Geometry;
use crate::order::{Order, StaticMap};
use crate::scheme::check_range;
use crate::span::{chain, fill};

/// Capacity over that of tracks as wide as the head: `W N / (N + W - 1)` (thesis, equation 4.1). 0 for bands of no tracks.
#[must_use]
pub fn space_gain(band_tracks: u32, head_tracks: u32) -> f64 {
    if band_tracks == 0 {
        return 0.0;
    }
    let (n, w) = (f64::from(band_tracks), f64::from(head_tracks));
    w * n / (n + w - 1.0)
}

/// Requests per update, uniform over the tracks of a full band: the mean of `1 + 2i` for i from 0 to N-1, which is N (thesis, equation 4.2).
#[must_use]
pub fn full_band_amplification(band_tracks: u32) -> f64 {
    let requests: u64 = (0..u64::from(band_tracks)).map(|i| 1 + 2 * i).sum();
    requests as f64 / f64::from(band_tracks.max(1))
}

/// Requests per update of one sector, uniform over the first `filled_sectors`, all live (thesis, chapter 4.5.5 and figure 4.2). 1 for an empty disk.
///
/// # Errors
/// As [`crate::InPlace::new`].
pub fn uniform_update_amplification(order: Order, geometry: &Geometry, band_tracks: u32, filled_sectors: u64) -> Result<f64, SwdError> {
    let map = StaticMap::new(order, geometry, band_tracks)?;
    check_range(0, filled_sectors, map.capacity())?;
    let spans = fill(&map, geometry, filled_sectors);
    let (mut lba, mut requests) = (0, 0u64);
    while let Some(at) = map.locate(lba, filled_sectors - lba).filter(|at| at.sectors > 0) {
        let successors = chain(&spans, at.track, geometry.head_tracks()).count() as u64;
        requests += u64::from(at.sectors) * (1 + 2 * successors);
        lba += u64::from(at.sectors);
    }
    Ok(if filled_sectors == 0 { 1.0 } else { requests as f64 / filled_sectors as f64 })
}
