//! Copies of files for Python: made, listed, dropped.

use std::path::PathBuf;
use std::time::Instant;

use pyo3::prelude::*;
use serde_json::json;
use stripewise_store::admin::copies::make::{Options, make};
use stripewise_store::admin::copies::spec::ReplicasJson;
use stripewise_store::admin::copies::{list, remove};
use stripewise_store::admin::transfer::places::place;

use crate::store::{as_json, text, with_store};

/// Makes copies of a file, in place of earlier ones: {"name", "container", "replicas", "bytes", "seconds"}. `spec_json` is {"replicas": [{"base",
/// "block", "dims", "regions", "on_write"}]}. A signal whose handler raises stops it, and nothing is left.
#[pyfunction]
#[pyo3(signature = (store, path, spec_json, lease=true, bytes_per_s=0))]
fn store_copies_make(py: Python<'_>, store: PathBuf, path: PathBuf, spec_json: String, lease: bool, bytes_per_s: u64) -> PyResult<String> {
    with_store(py, &store, |s| {
        let begin = Instant::now();
        let mut step = |_, _| s.go_on().is_ok();
        let made = make(s, &place(&path)?, &ReplicasJson::parse(&spec_json)?, Options { lease, bytes_per_s }, &mut step)?;
        let mut value = as_json(&made)?;
        if let Some(object) = value.as_object_mut() {
            object.insert("seconds".into(), json!(begin.elapsed().as_secs_f64()));
        }
        Ok(text(&value))
    })
}

/// The copies of a store: {"copies": [{"name", "path", "container", "replicas", "invalidated", "bytes", "stale_bytes", "state"}]}.
#[pyfunction]
fn store_copies(py: Python<'_>, store: PathBuf) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&json!({"copies": as_json(&list::list(s)?)?}))))
}

/// What the replicas of these copies hold: {"replicas": [{"base", "block", "dims", "on_write"}]}.
#[pyfunction]
fn store_copies_blocks(py: Python<'_>, store: PathBuf, name: String) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&json!({"replicas": as_json(&list::blocks(s, &name))?}))))
}

/// Drops the copies of a name, as `store_copies` tells it.
#[pyfunction]
fn store_copies_drop(py: Python<'_>, store: PathBuf, name: String) -> PyResult<()> {
    with_store(py, &store, |s| remove::drop(s, &name))
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(store_copies_make, module)?)?;
    module.add_function(wrap_pyfunction!(store_copies, module)?)?;
    module.add_function(wrap_pyfunction!(store_copies_blocks, module)?)?;
    module.add_function(wrap_pyfunction!(store_copies_drop, module)?)
}
