//! Shingled write disks for Python: JSON text in and out (docs/formats.md), the interpreter released while the clock runs.

use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use stripewise_blocks::{BlockWorkload, Error as BlocksError, Source};
use stripewise_disk::{Error, Settings, TimedScheme, run, track_map};
use stripewise_swd::{Geometry, Order, SwdError, Zone, full_band_amplification, space_gain, uniform_update_amplification};

use crate::errors::of_workload;

/// Bands of the disk that averages are taken over: shares of a fill in percent are whole numbers of them.
const BANDS: u32 = 1000;
/// More tracks in a band would take gigabytes.
const BAND_TRACKS_MAX: u32 = 1 << 12;

/// Space gain and requests per update of the static mappings, as JSON: {"space_gain", "full_band", "orders": {name: [requests per update at each
/// share]}} for bands of `band_tracks`, a head of `head_tracks` and a disk of which `shares` (0 to 1) are used.
///
/// Raises WorkloadError for bands, heads and shares that cannot be.
#[pyfunction]
pub fn swd_amplification(py: Python<'_>, band_tracks: u32, head_tracks: u32, shares: Vec<f64>) -> PyResult<String> {
    if band_tracks > BAND_TRACKS_MAX || head_tracks > BAND_TRACKS_MAX {
        return Err(of_workload(format!("bands and heads have at most {BAND_TRACKS_MAX} tracks; give fewer")));
    }
    if let Some(share) = shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
        return Err(of_workload(format!("used = {share} is not a share from 0 to 1; correct it")));
    }
    py.detach(|| {
        let zone = Zone { tracks: BANDS * (band_tracks + head_tracks.max(1) - 1), sectors: 1 };
        let geometry = Geometry::new(&[zone], head_tracks, 0, 0)?;
        let mut orders = Map::new();
        for order in Order::ALL.into_iter().filter(|&order| order != Order::Hdd) {
            let sectors = f64::from(BANDS * band_tracks);
            let averages = shares.iter().map(|share| uniform_update_amplification(order, &geometry, band_tracks, (share * sectors).round() as u64));
            orders.insert(order.name().to_owned(), Value::from(averages.collect::<Result<Vec<f64>, _>>()?));
        }
        let found =
            json!({ "space_gain": space_gain(band_tracks, head_tracks), "full_band": full_band_amplification(band_tracks), "orders": orders });
        Ok::<_, SwdError>(found.to_string())
    })
    .map_err(of_workload)
}

fn of_requests(error: BlocksError) -> Error {
    match error {
        BlocksError::Invalid(text) => Error::Invalid(text),
        BlocksError::Trace(text) => Error::Request(text),
    }
}

/// The settings with the shares, and the requests folded into the used space.
fn prepared(settings_json: &str, workload: &BlockWorkload, used_share: Option<f64>, filled_share: Option<f64>) -> Result<(Settings, Source), Error> {
    let settings = Settings::from_json(settings_json)?;
    let settings = Settings { used_share: used_share.or(settings.used_share), filled_share: filled_share.or(settings.filled_share), ..settings };
    let empty = Settings { filled_share: Some(0.0), ..settings.clone() };
    let used_sectors = TimedScheme::new(&empty)?.used_sectors(&settings)?;
    let blocks_per_sector = u64::from(settings.disk.block_bytes) / stripewise_blocks::BLOCK_BYTES;
    let requests = workload.open(Some(used_sectors * blocks_per_sector)).map_err(of_requests)?;
    Ok((settings, requests))
}

/// Runs `work`, which is given a watcher that looks at signals and calls `progress` with requests done and, where it is known, their number.
fn watched<T: Send>(
    py: Python<'_>,
    workload_json: &str,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&BlockWorkload, &mut dyn FnMut(u64) -> bool) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let mut raised_there = None;
    let outcome = py.detach(|| {
        let workload = BlockWorkload::from_json(workload_json).map_err(of_requests)?;
        let total = workload.requests.unwrap_or(0);
        let mut watch = |done: u64| {
            let seen = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (done, total)).map(|_| ()))
            });
            raised_there = seen.err();
            raised_there.is_none()
        };
        work(&workload, &mut watch)
    });
    match (raised_there, outcome) {
        (Some(error), _) => Err(error),
        (None, outcome) => outcome.map_err(of_workload),
    }
}

/// Simulates a block workload on a disk under a scheme and returns the report, all JSON (docs/formats.md, Shingled disk run). `used_share`, 0 to 1 of
/// the scheme's space, goes before the settings' `used_blocks`, `filled_share` of what is used before `filled_blocks`.
///
/// Raises WorkloadError for settings or a workload that cannot be, or requests that cannot be read or served.
#[pyfunction]
#[pyo3(signature = (settings_json, workload_json, used_share, filled_share, progress))]
pub fn swd_simulate(
    py: Python<'_>,
    settings_json: &str,
    workload_json: &str,
    used_share: Option<f64>,
    filled_share: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let report = watched(py, workload_json, progress, |workload, watch| {
        let (settings, requests) = prepared(settings_json, workload, used_share, filled_share)?;
        run(&settings, requests, watch)
    })?;
    serde_json::to_string(&report).map_err(|error| of_workload(format!("the report cannot be written as JSON: {error}")))
}

/// The tracks of the disk after the writes of a workload, JSON (docs/formats.md, Track map); arguments and errors as of `swd_simulate`.
#[pyfunction]
#[pyo3(signature = (settings_json, workload_json, used_share, filled_share, progress))]
pub fn swd_map(
    py: Python<'_>,
    settings_json: &str,
    workload_json: &str,
    used_share: Option<f64>,
    filled_share: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let map = watched(py, workload_json, progress, |workload, watch| {
        let (settings, requests) = prepared(settings_json, workload, used_share, filled_share)?;
        track_map(&settings, requests, watch)
    })?;
    serde_json::to_string(&map).map_err(|error| of_workload(format!("the map cannot be written as JSON: {error}")))
}
