//! The probe for Python: timed requests on one target after the other. It holds their store exclusively as long as it lives, as verbs do that need it
//! for themselves: a measurement beside running programs would measure them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use serde_json::json;
use stripewise_store::admin::disk::RealDisk;
use stripewise_store::admin::identity::mismatch;
use stripewise_store::admin::medium::Lock;
use stripewise_store::admin::probe::{Clock, Request, Scratch, Series, Timed};
use stripewise_store::admin::{Result, Store, StoreError};

use crate::errors::from_store;
use crate::store::{absolute, text};

enum Subject {
    Clock(Clock),
    Scratch(Scratch),
}

struct Inner {
    // Dropped in this order: the counters are put right while the store is still held.
    subject: Option<Subject>,
    store: Option<PathBuf>,
    _lock: Option<Box<dyn Lock>>,
}

/// Timed requests on targets of a store, or on directories that belong to none (`store` is None).
#[pyclass]
pub struct Probe {
    inner: Mutex<Option<Inner>>,
}

fn hold(store: Option<PathBuf>) -> Result<Inner> {
    let Some(store) = store else { return Ok(Inner { subject: None, store: None, _lock: None }) };
    let root = absolute(&store)?;
    let disk = RealDisk::new();
    let lock = Store::open(&disk, &root)?.lock_exclusive()?;
    Ok(Inner { subject: None, store: Some(root), _lock: Some(lock) })
}

fn subject(root: &Path, target: u32, scratch_bytes: u64) -> Result<Subject> {
    let disk = RealDisk::new();
    let store = Store::open(&disk, root)?;
    let info = store.target(target)?;
    if let Some(why) = mismatch(store.medium, &info.path, &store.uuid, target as usize) {
        return Err(StoreError::NotFound(format!("target {}: {}", info.name, why.told(root, &info.name))));
    }
    Ok(if info.kind.is_emulated() { Subject::Clock(Clock::new(&store, target)?) } else { Subject::Scratch(Scratch::new(&info.path, scratch_bytes)?) })
}

fn begun(inner: &mut Inner) -> Result<&mut Subject> {
    inner.subject.as_mut().ok_or_else(|| StoreError::Invalid("the probe has no target; call begin".into()))
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
    #[pyo3(signature = (store))]
    fn new(py: Python<'_>, store: Option<PathBuf>) -> PyResult<Self> {
        let inner = py.detach(|| hold(store)).map_err(from_store)?;
        Ok(Self { inner: Mutex::new(Some(inner)) })
    }

    /// Turns to the target of this number of the store or, without one, to `directory`. A scratch file has at most `scratch_bytes`.
    #[pyo3(signature = (directory, target, scratch_bytes))]
    fn begin(&self, py: Python<'_>, directory: PathBuf, target: u32, scratch_bytes: u64) -> PyResult<()> {
        self.with(py, |inner| {
            inner.subject = None;
            inner.subject = Some(match &inner.store {
                Some(root) => subject(root, target, scratch_bytes)?,
                None => Subject::Scratch(Scratch::new(&absolute(&directory)?, scratch_bytes)?),
            });
            Ok(())
        })
    }

    /// Fills the scratch file for at most so long: {"method": "direct", "fadvise" or "emulated", "bytes", "filled_bytes"}: requests lie in what is filled.
    fn fill(&self, py: Python<'_>, limit_ns: u64) -> PyResult<String> {
        self.with(py, |inner| {
            Ok(text(&match begun(inner)? {
                Subject::Clock(clock) => json!({"method": "emulated", "bytes": clock.bytes(), "filled_bytes": clock.bytes()}),
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
            match begun(inner)? {
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
