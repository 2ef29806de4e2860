//! The mover for Python: holds the store's mover lock as long as it lives, moves file after file under one throttle, and asks Python ten times a second
//! whether to go on.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pyo3::prelude::*;
use serde_json::json;
use stripewise_store::admin::disk::RealDisk;
use stripewise_store::admin::ids::id_from;
use stripewise_store::admin::moves::apply;
use stripewise_store::admin::moves::throttle::{Options, Order, Seen, Throttle};
use stripewise_store::admin::session::MoverLock;
use stripewise_store::admin::spec::LayoutJson;
use stripewise_store::admin::{Result, Store, StoreError};

use crate::errors::{class_of, from_store};
use crate::store::{absolute, as_json, text};

/// What one call into Python raised: handed on when the work has ended.
type Raised = Arc<Mutex<Option<PyErr>>>;

struct Inner {
    disk: &'static RealDisk,
    store: Store<'static>,
    _lock: MoverLock,
    throttle: Throttle,
}

/// A mover of one store. `watch` is called with JSON of how things are ({"copied_bytes", "duty", "baseline_ns", "latency_ns", "is_paused",
/// "frozen_ns_max", "aborted"}) and returns "go", "pause" or "stop"; an exception in it stops the move, the file then is whole.
#[pyclass]
pub struct Mover {
    inner: Mutex<Option<Inner>>,
    raised: Raised,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.disk.let_go();
    }
}

fn ask(watch: &Py<PyAny>, seen: &Seen, raised: &Raised) -> Order {
    let asked = Python::attach(|py| -> PyResult<Order> {
        py.check_signals()?;
        let told = as_json(seen).map_err(from_store)?;
        let said: String = watch.call1(py, (text(&told),))?.extract(py)?;
        Ok(match said.as_str() {
            "go" => Order::Go,
            "pause" => Order::Pause,
            _ => Order::Stop,
        })
    });
    asked.unwrap_or_else(|e| {
        raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
        Order::Stop
    })
}

impl Mover {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Inner) -> Result<T> + Send) -> PyResult<Result<T>> {
        let result = py.detach(|| {
            let mut held = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            match held.as_mut() {
                Some(inner) => work(inner),
                None => Err(StoreError::Invalid("the mover is closed; make another".into())),
            }
        });
        match self.raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(e) => Err(e),
            None => Ok(result),
        }
    }
}

#[pymethods]
impl Mover {
    #[new]
    fn new(py: Python<'_>, store: PathBuf, options_json: String, watch: Py<PyAny>) -> PyResult<Self> {
        let raised = Raised::default();
        let theirs = Arc::clone(&raised);
        let inner = py.detach(|| -> Result<Inner> {
            let options: Options =
                serde_json::from_str(&options_json).map_err(|e| StoreError::Invalid(format!("options of the mover: {e}; see Mover in mover.rs")))?;
            // The store borrows it for as long as Python likes; what it holds open goes with the mover.
            let disk: &'static RealDisk = Box::leak(Box::default());
            let store = Store::open(disk, &absolute(&store)?)?;
            let lock = store.lock_mover()?;
            let throttle = Throttle::new(options, store.run()?, Box::new(move |seen| ask(&watch, seen, &theirs)));
            Ok(Inner { disk, store, _lock: lock, throttle })
        });
        Ok(Self { inner: Mutex::new(Some(inner.map_err(from_store)?)), raised })
    }

    /// Gives a file a layout: {"spans", "groups", "moved_bytes", "generation", "seconds"}, or what kept it from it: {"error": kind, "class": that of
    /// `stripewise.errors`, "message", "target": the name of the target that failed, if one did}.
    fn apply(&self, py: Python<'_>, id: String, layout_json: String) -> PyResult<String> {
        let done = self.with(py, |inner| {
            let begin = Instant::now();
            let Inner { store, throttle, .. } = inner;
            let result = move_file(store, throttle, &id, &layout_json);
            throttle.ended();
            Ok(match result {
                Ok(applied) => {
                    let mut value = as_json(&applied)?;
                    if let Some(object) = value.as_object_mut() {
                        object.insert("seconds".into(), json!(begin.elapsed().as_secs_f64()));
                    }
                    text(&value)
                }
                Err(e) => {
                    text(&json!({"error": e.kind(), "class": class_of(e.kind()), "message": e.to_string(), "target": failed_target(store, &e)}))
                }
            })
        })?;
        done.map_err(from_store)
    }

    /// Waits for `seconds` and watches the programs meanwhile; false when it was told to stop.
    fn idle(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let ns = (seconds.clamp(0.0, 1e9) * 1e9) as u64;
        self.with(py, |inner| Ok(inner.throttle.idle(ns)))?.map_err(from_store)
    }

    /// Gives the store's mover lock back.
    fn close(&self, py: Python<'_>) {
        let held = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(held));
    }
}

fn move_file(store: &Store<'static>, throttle: &mut Throttle, id: &str, layout_json: &str) -> Result<apply::Applied> {
    let wanted = LayoutJson::parse(layout_json)?.regions(&format!("layout of file {id}"), store.targets.len())?;
    apply::move_to(store, id_from(id)?, wanted, throttle)
}

/// The target on which a system call failed.
fn failed_target(store: &Store<'_>, e: &StoreError) -> Option<String> {
    let StoreError::Io { path, .. } = e else { return None };
    store.targets.iter().find(|t| path.starts_with(&t.path)).map(|t| t.name.clone())
}

/// Adds the class to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Mover>()
}
