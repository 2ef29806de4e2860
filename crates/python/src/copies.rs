//! Copies of files for Python: made, in the programs' way no more than a mover is, listed, dropped.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pyo3::prelude::*;
use serde_json::json;
use stripewise_store::admin::StoreError;
use stripewise_store::admin::copies::make::make;
use stripewise_store::admin::copies::spec::ReplicasJson;
use stripewise_store::admin::copies::{list, remove};
use stripewise_store::admin::moves::throttle::{Options, Order, Throttle};
use stripewise_store::admin::transfer::places::place;
use stripewise_store::marks::Blocks;

use crate::store::{as_json, text, with_store};

/// Makes copies of a file, in place of earlier ones: {"name", "container", "replicas", "bytes", "seconds"}. `spec_json` is {"replicas": [{"base",
/// "block", "dims", "regions", "on_write"}]}; `limits_json` is as a mover's. A signal whose handler raises stops it, and nothing is left.
#[pyfunction]
#[pyo3(signature = (store, path, spec_json, lease=true, limits_json=String::from("{}")))]
fn store_copies_make(py: Python<'_>, store: PathBuf, path: PathBuf, spec_json: String, lease: bool, limits_json: String) -> PyResult<String> {
    let raised = Arc::new(Mutex::new(None));
    let theirs = Arc::clone(&raised);
    let watch = move |_: &_| match Python::attach(|py| py.check_signals()) {
        Ok(()) => Order::Go,
        Err(e) => {
            theirs.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
            Order::Stop
        }
    };
    let made = with_store(py, &store, |s| {
        let begin = Instant::now();
        let limits: Options = serde_json::from_str(&limits_json)
            .map_err(|e| StoreError::Invalid(format!("limits of making copies: {e}; see Options in throttle.rs")))?;
        let mut throttle = Throttle::new(limits, s.run()?, Box::new(watch));
        let made = make(s, &place(&path)?, &ReplicasJson::parse(&spec_json)?, lease, &mut throttle)?;
        let mut value = as_json(&made)?;
        if let Some(object) = value.as_object_mut() {
            object.insert("seconds".into(), json!(begin.elapsed().as_secs_f64()));
        }
        Ok(text(&value))
    });
    match raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(e) => Err(e),
        None => made,
    }
}

/// The copies of a store: {"copies": [{"name", "path", "container", "replicas", "invalidated", "bytes", "stale_bytes", "state"}]}.
#[pyfunction]
fn store_copies(py: Python<'_>, store: PathBuf) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&json!({"copies": as_json(&list::list(s)?)?}))))
}

/// What the replicas of these copies hold: {"replicas": [{"base", "block", "dims", "on_write", "at"}]}.
#[pyfunction]
fn store_copies_blocks(py: Python<'_>, store: PathBuf, name: String) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&json!({"replicas": as_json(&list::blocks(s, &name))?}))))
}

/// Drops the copies of a name, as `store_copies` tells it.
#[pyfunction]
fn store_copies_drop(py: Python<'_>, store: PathBuf, name: String) -> PyResult<()> {
    with_store(py, &store, |s| remove::drop(s, &name))
}

/// Bytes of a block of marks of a file of so many bytes.
#[pyfunction]
fn mark_bytes(size: u64) -> u64 {
    Blocks::of(size).block_bytes()
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(store_copies_make, module)?)?;
    module.add_function(wrap_pyfunction!(store_copies, module)?)?;
    module.add_function(wrap_pyfunction!(store_copies_blocks, module)?)?;
    module.add_function(wrap_pyfunction!(store_copies_drop, module)?)?;
    module.add_function(wrap_pyfunction!(mark_bytes, module)?)
}
