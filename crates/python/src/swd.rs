//! Shingled write disks for Python: JSON text in and out (docs/formats.md), the interpreter released while the clock runs.

use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use stripewise_swd::{Geometry, Order, SwdError, Zone, full_band_amplification, space_gain, uniform_update_amplification};

use crate::errors::raise;

/// Bands of the disk that averages are taken over: shares of a fill in percent are whole numbers of them.
const BANDS: u32 = 1000;
/// More tracks in a band would take gigabytes.
const BAND_TRACKS_MAX: u32 = 1 << 12;

/// Space gain and requests per update of the static mappings, as JSON: {"space_gain", "full_band", "orders": {name: [requests per update at each
/// share]}} for bands of `band_tracks`, a head of `head_tracks` and a disk of which `shares` (0 to 1) are used.
///
/// Raises Invalid for bands, heads and shares that cannot be.
#[pyfunction]
pub fn swd_amplification(py: Python<'_>, band_tracks: u32, head_tracks: u32, shares: Vec<f64>) -> PyResult<String> {
    if band_tracks > BAND_TRACKS_MAX || head_tracks > BAND_TRACKS_MAX {
        return Err(raise("invalid", format!("bands and heads have at most {BAND_TRACKS_MAX} tracks; give fewer")));
    }
    if let Some(share) = shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
        return Err(raise("invalid", format!("used = {share} is no share from 0 to 1; correct it")));
    }
    let invalid = |error: SwdError| raise("invalid", error.to_string());
    py.detach(|| {
        let zone = Zone { tracks: BANDS * (band_tracks + head_tracks.max(1) - 1), sectors: 1 };
        let geometry = Geometry::new(&[zone], head_tracks, 0, 0)?;
        let mut orders = Map::new();
        for order in Order::ALL.into_iter().filter(|&order| order != Order::Hdd) {
            let sectors = f64::from(BANDS * band_tracks);
            let averages = shares.iter().map(|share| uniform_update_amplification(order, &geometry, band_tracks, (share * sectors).round() as u64));
            orders.insert(order.name().to_owned(), Value::from(averages.collect::<Result<Vec<f64>, _>>()?));
        }
        Ok(json!({ "space_gain": space_gain(band_tracks, head_tracks), "full_band": full_band_amplification(band_tracks), "orders": orders })
            .to_string())
    })
    .map_err(invalid)
}
