//! The probe for Python: one target's timed requests. On a store's target it holds the store exclusively as long as it lives, as verbs do that need it
//! for themselves: a measurement beside running programs would measure them.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use serde_json::json;
use stripewise_store::admin::disk::RealDisk;
use stripewise_store::admin::identity::mismatch;
use stripewise_store::admin::medium::Lock;
use stripewise_store::admin::probe::{Clock, Request, Scratch, Series, Timed};
use stripewise_store::admin::{Result, Store, StoreError};
use stripewise_store::bin::Kind;

use crate::errors::from_store;
use crate::store::{absolute, text};

enum Subject {
    Clock(Clock),
    Scratch(Scratch),
}

struct Inner {
    // Dropped in this order: the counters are put right while the store is still held.
    subject: Subject,
    _lock: Option<Box<dyn Lock>>,
}

/// Timed requests on one target of a store (`target` is its number), or on a directory that belongs to none (`target` is None).
/// At most `scratch_bytes` of scratch file on a real one, a range of that length on an emulated one.
#[pyclass]
pub struct Probe {
    inner: Mutex<Option<Inner>>,
}

fn open(place: PathBuf, target: Option<u32>, scratch_bytes: u64) -> Result<Inner> {
    let Some(target) = target else {
        return Ok(Inner { subject: Subject::Scratch(Scratch::new(&absolute(&place)?, scratch_bytes)?), _lock: None });
    };
    let store = Store::open(&RealDisk, &absolute(&place)?)?;
    let lock = store.lock_exclusive()?;
    let info = store.target(target)?;
    if let Some(why) = mismatch(store.medium, &info.path, &store.uuid, target as usize) {
        return Err(StoreError::NotFound(format!("target {}: {why}", info.name)));
    }
    let subject = match info.kind {
        Kind::Emulated => Subject::Clock(Clock::new(&store, target, scratch_bytes)?),
        Kind::Dir => Subject::Scratch(Scratch::new(&info.path, scratch_bytes)?),
    };
    Ok(Inner { subject, _lock: Some(lock) })
}

impl Probe {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Inner) -> Result<T> + Send) -> PyResult<T> {
        py.detach(|| match self.inner.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(inner) => work(inner),
            None => Err(StoreError::Invalid("the probe is closed; make another".into())),
        })
        .map_err(from_store)
    }
}

#[pymethods]
impl Probe {
    #[new]
    #[pyo3(signature = (place, target, scratch_bytes))]
    fn new(py: Python<'_>, place: PathBuf, target: Option<u32>, scratch_bytes: u64) -> PyResult<Self> {
        let inner = py.detach(|| open(place, target, scratch_bytes)).map_err(from_store)?;
        Ok(Self { inner: Mutex::new(Some(inner)) })
    }

    /// Fills the scratch file for at most so long: {"method": "direct", "fadvise" or "emulated", "bytes", "filled_bytes"} (both 0: no file).
    fn fill(&self, py: Python<'_>, limit_ns: u64) -> PyResult<String> {
        self.with(py, |inner| {
            Ok(text(&match &mut inner.subject {
                Subject::Clock(_) => json!({"method": "emulated", "bytes": 0, "filled_bytes": 0}),
                Subject::Scratch(scratch) => {
                    let filled = scratch.fill(limit_ns)?;
                    json!({"method": scratch.cache().name(), "bytes": scratch.bytes(), "filled_bytes": filled})
                }
            }))
        })
    }

    /// Makes (offset, bytes) requests, `in_flight` at once, none begun later than `limit_ns` after the first: (start, end) of each in
    /// CLOCK_MONOTONIC ns.
    fn run(&self, py: Python<'_>, requests: Vec<(u64, u64)>, write: bool, in_flight: usize, limit_ns: u64) -> PyResult<Vec<(u64, u64)>> {
        let requests: Vec<Request> = requests.into_iter().map(|(offset, bytes)| Request { offset, bytes }).collect();
        let done: Vec<Timed> = self.with(py, |inner| {
            let series = Series { requests: &requests, write, in_flight, limit_ns };
            match &mut inner.subject {
                Subject::Clock(clock) => clock.run(&series),
                Subject::Scratch(scratch) => scratch.run(&series),
            }
        })?;
        Ok(done.into_iter().map(|t| (t.start_ns, t.end_ns)).collect())
    }

    /// Gives scratch file and store back.
    fn close(&self, py: Python<'_>) {
        let held = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(held));
    }
}

/// Adds the class to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Probe>()
}
