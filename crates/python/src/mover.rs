//! The mover for Python, which says what moves next: `stripewise_store::admin::moves::session`, with the interpreter's signals looked at ten times a second.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use stripewise_store::admin::disk::RealDisk;
use stripewise_store::admin::moves::session::{MoveSession, Step};
use stripewise_store::admin::moves::throttle::Options;
use stripewise_store::admin::{Result, Store, StoreError};

use crate::errors::{class_of, from_store};
use crate::store::{absolute, as_json, text};

/// What one call into Python raised: handed on when the work has ended.
type Raised = Arc<Mutex<Option<PyErr>>>;

/// The session borrows the disk for as long as Python likes; what that holds open goes with the session.
struct Inner {
    session: Option<MoveSession<'static>>,
    disk: &'static RealDisk,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.session = None;
        self.disk.let_go();
    }
}

/// Moves files of one store. `look` is called with the bytes done and in all, and returns whether to go on; an exception in it stops the move, the file then
/// is whole.
#[pyclass(name = "MoveSession")]
pub struct SessionHandle {
    inner: Mutex<Option<Inner>>,
    raised: Raised,
}

fn ask(look: &Py<PyAny>, (done, total): (u64, u64), raised: &Raised) -> bool {
    let asked = Python::attach(|py| {
        py.check_signals()?;
        look.call1(py, (done, total))?.extract(py)
    });
    asked.unwrap_or_else(|e| {
        raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
        false
    })
}

fn map(json: &str) -> Result<Map<String, Value>> {
    serde_json::from_str(json).map_err(|e| StoreError::Invalid(format!("status of the mover: {e}; it is a JSON object")))
}

impl SessionHandle {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut MoveSession<'static>) -> Result<T> + Send) -> PyResult<T> {
        let result = py.detach(|| {
            let mut held = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            match held.as_mut().and_then(|inner| inner.session.as_mut()) {
                Some(session) => work(session),
                None => Err(StoreError::Invalid("the mover has ended; begin another".into())),
            }
        });
        match self.raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(e) => Err(e),
            None => result.map_err(from_store),
        }
    }
}

#[pymethods]
impl SessionHandle {
    #[new]
    fn new(py: Python<'_>, store: PathBuf, options_json: String, head_json: String, look: Py<PyAny>) -> PyResult<Self> {
        let raised = Raised::default();
        let theirs = Arc::clone(&raised);
        let inner = py.detach(|| -> Result<Inner> {
            let options: Options = serde_json::from_str(&options_json)
                .map_err(|e| StoreError::Invalid(format!("limits of the mover: {e}; see Options in throttle.rs")))?;
            let disk: &'static RealDisk = Box::leak(Box::default());
            let mut inner = Inner { session: None, disk };
            let store = Store::open(disk, &absolute(&store)?)?;
            let asked = move |done, total| ask(&look, (done, total), &theirs);
            inner.session = Some(MoveSession::begin(store, options, map(&head_json)?, Box::new(asked))?);
            Ok(inner)
        });
        Ok(Self { inner: Mutex::new(Some(inner.map_err(from_store)?)), raised })
    }

    /// So many bytes are to be moved from here on.
    fn expect(&self, py: Python<'_>, total_bytes: u64) -> PyResult<()> {
        self.with(py, |session| {
            session.expect(total_bytes);
            Ok(())
        })
    }

    /// The status says this besides (a JSON object).
    fn tell(&self, py: Python<'_>, said_json: String) -> PyResult<()> {
        self.with(py, |session| {
            session.tell(map(&said_json)?);
            Ok(())
        })
    }

    /// Gives a file a layout: {"spans", "groups", "moved_bytes", "generation", "seconds"}, or what kept it from it: {"error": kind, "class": that of
    /// `stripewise.errors`, "message", "target": the name of the target that failed, if one did, "moved_bytes": what has its new home nevertheless}.
    fn apply(&self, py: Python<'_>, path: String, id: String, layout_json: String, start: u64, size: u64) -> PyResult<String> {
        self.with(py, |session| {
            Ok(match session.apply(&Step { id: &id, path: &path, layout: &layout_json, start, bytes: size }) {
                Ok((applied, seconds)) => {
                    let mut value = as_json(&applied)?;
                    if let Some(object) = value.as_object_mut() {
                        object.insert("seconds".into(), json!(seconds));
                    }
                    text(&value)
                }
                Err(e) => text(&json!({
                    "error": e.kind(), "class": class_of(e.kind()), "message": e.to_string(), "target": failed_target(session.store(), &e),
                    "moved_bytes": session.moved_bytes(),
                })),
            })
        })
    }

    /// Waits for `seconds` and watches the programs meanwhile; false when it was told to stop.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let ns = (seconds.clamp(0.0, 1e9) * 1e9) as u64;
        self.with(py, |session| Ok(session.wait(ns)))
    }

    /// Says how it ended (`ended`, `stopped`, `failed`), and gives the store's mover lock back.
    fn end(&self, py: Python<'_>, state: String) {
        let held = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| {
            if let Some(mut inner) = held
                && let Some(session) = inner.session.take()
            {
                session.end(&state);
            }
        });
    }
}

/// The target on which a system call failed.
fn failed_target(store: &Store<'_>, e: &StoreError) -> Option<String> {
    let StoreError::Io { path, .. } = e else { return None };
    store.targets.iter().find(|t| path.starts_with(&t.path)).map(|t| t.name.clone())
}

/// Adds the class to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SessionHandle>()
}
