//! Stores for Python: JSON text in and out (docs/formats.md), the interpreter released while the disk works.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};
use stripewise_store::admin::check::{findings, fsck, marking};
use stripewise_store::admin::disk::RealDisk;
use stripewise_store::admin::ids::{id_from, id_text};
use stripewise_store::admin::moves::apply;
use stripewise_store::admin::spec::{LayoutJson, SpecJson, regions_json};
use stripewise_store::admin::{Result, Store, StoreError, create, info, trusting};

use crate::errors::from_store;

/// A path in full with the links of its directories resolved: file links name the store by it.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    if let Ok(found) = std::fs::canonicalize(path) {
        return Ok(found);
    }
    let full = std::path::absolute(path).map_err(|e| StoreError::io("find", path, e))?;
    match (full.parent().map(std::fs::canonicalize), full.file_name()) {
        (Some(Ok(parent)), Some(name)) => Ok(parent.join(name)),
        _ => Ok(full),
    }
}

/// Opens a store and works on it. A signal whose handler raises ends what takes long, at a place where that does no harm.
pub(crate) fn with_store<T: Send>(py: Python<'_>, path: &Path, work: impl FnOnce(&Store<'_>) -> Result<T> + Send) -> PyResult<T> {
    let stopped = Mutex::new(None);
    let goes_on = || match Python::attach(|py| py.check_signals()) {
        Ok(()) => true,
        Err(e) => {
            stopped.lock().unwrap_or_else(PoisonError::into_inner).replace(e);
            false
        }
    };
    let result = py.detach(|| {
        let disk = RealDisk::new();
        work(&Store { asked: Some(&goes_on), ..Store::open(&disk, &absolute(path)?)? })
    });
    match stopped.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(e) => Err(e),
        None => result.map_err(from_store),
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.to_string()
}

pub(crate) fn as_json<T: serde::Serialize>(value: &T) -> Result<Value> {
    serde_json::to_value(value).map_err(|e| StoreError::Invalid(format!("the result cannot be written as JSON: {e}; report it")))
}

/// Makes a store from its specification, for its maker or for all users.
#[pyfunction]
#[pyo3(signature = (store, spec_json, shared=false))]
fn store_create(py: Python<'_>, store: PathBuf, spec_json: String, shared: bool) -> PyResult<()> {
    let users = if shared { create::Users::All } else { create::Users::Owner };
    py.detach(|| create::create_for(&RealDisk::new(), &absolute(&store)?, &SpecJson::parse(&spec_json)?, users)).map_err(from_store)
}

/// Compiles a changed specification.
#[pyfunction]
fn store_configure(py: Python<'_>, store: PathBuf, spec_json: String) -> PyResult<()> {
    py.detach(|| create::configure(&RealDisk::new(), &absolute(&store)?, &SpecJson::parse(&spec_json)?)).map_err(from_store)
}

/// Compiles the specification of a store whose store.bin is missing or damaged; tells whether it was.
#[pyfunction]
fn store_recompile(py: Python<'_>, store: PathBuf, spec_json: String) -> PyResult<String> {
    let is_anew = py.detach(|| create::recompile(&RealDisk::new(), &absolute(&store)?, &SpecJson::parse(&spec_json)?)).map_err(from_store)?;
    Ok(text(&json!(is_anew)))
}

/// Notes which directories the store's targets have now.
#[pyfunction]
fn store_note_targets(py: Python<'_>, store: PathBuf) -> PyResult<()> {
    py.detach(|| marking::note_seen(&RealDisk::new(), &absolute(&store)?)).map_err(from_store)
}

/// Writes the mark of a target's directory anew, where it is lost; tells whether it was.
#[pyfunction]
fn store_mark(py: Python<'_>, store: PathBuf, target: String) -> PyResult<String> {
    let is_anew = py.detach(|| marking::mark(&RealDisk::new(), &absolute(&store)?, &target)).map_err(from_store)?;
    Ok(text(&json!(is_anew)))
}

/// What `store_configure` would write, as bytes, for a file of its own.
#[pyfunction]
fn store_compile<'py>(py: Python<'py>, spec_json: &str) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = py.detach(|| SpecJson::parse(spec_json)?.compile()).map_err(from_store)?;
    Ok(PyBytes::new(py, &bytes))
}

/// Describes a store: path, version, uuid, toml_sha256, region_bytes, targets.
#[pyfunction]
fn store_info(py: Python<'_>, store: PathBuf) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&info::store_info(s))))
}

/// Lists the files: {"files": [{"id", "path", "size", "generation", "regions"}]}.
#[pyfunction]
fn store_files(py: Python<'_>, store: PathBuf) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&json!({"files": as_json(&info::store_files(s)?)?}))))
}

/// Files whose recorded name leads to them no more, of the first `most`: {"files": as of store_files, "looked_at", "of"}.
#[pyfunction]
fn store_nameless(py: Python<'_>, store: PathBuf, most: usize) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&as_json(&info::nameless(s, most)?)?)))
}

/// The layout of a file: {"id", "generation", "size", "regions", "pending", "retired"}.
#[pyfunction]
fn store_layout(py: Python<'_>, store: PathBuf, id: String) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&info::layout_json(s, id_from(&id)?)?)))
}

/// What a new file gets in place of a template, {"regions"}, on targets of so much room each; `chance` turns it, where given.
#[pyfunction]
#[pyo3(signature = (layout_json, room, chance=None))]
fn store_spread(layout_json: &str, room: Vec<u64>, chance: Option<u64>) -> PyResult<String> {
    let spread = LayoutJson::parse(layout_json).and_then(|layout| layout.spread("layout", &room, chance)).map_err(from_store)?;
    Ok(text(&json!({"regions": regions_json(&spread)})))
}

/// Gives a file a layout. `progress` is called with bytes done and in all; an exception in it stops between two steps, the file
/// then is whole. Returns {"spans", "groups", "moved_bytes", "generation", "seconds"}.
#[pyfunction]
#[pyo3(signature = (store, id, layout_json, progress=None))]
fn store_apply(py: Python<'_>, store: PathBuf, id: String, layout_json: String, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let mut stopped: Option<PyErr> = None;
    let result = py.detach(|| -> Result<String> {
        let disk = RealDisk::new();
        let opened = Store::open(&disk, &absolute(&store)?)?;
        let begin = Instant::now();
        let mut step = |done: u64, total: u64| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                match &progress {
                    Some(call) => call.call1(py, (done, total)).map(drop),
                    None => Ok(()),
                }
            });
            told.map_err(|e| stopped = Some(e)).is_ok()
        };
        let applied = apply::apply(&opened, id_from(&id)?, &LayoutJson::parse(&layout_json)?, &mut step)?;
        let mut value = as_json(&applied)?;
        if let Some(object) = value.as_object_mut() {
            object.insert("seconds".into(), json!(begin.elapsed().as_secs_f64()));
        }
        Ok(text(&value))
    });
    match stopped {
        Some(e) => Err(e),
        None => result.map_err(from_store),
    }
}

/// The first of the files [id, layout] that would find no room for its move, all moved in this order: {"file", "why"}, its number; none where all find room.
#[pyfunction]
fn store_without_room(py: Python<'_>, store: PathBuf, files: Vec<(String, String)>) -> PyResult<Option<String>> {
    with_store(py, &store, |s| {
        let files = files.iter().map(|(id, layout)| Ok((id_from(id)?, LayoutJson::parse(layout)?))).collect::<Result<Vec<_>>>()?;
        Ok(apply::without_room(s, &files)?.map(|(file, why)| text(&json!({"file": file, "why": why}))))
    })
}

/// Checks a store. Options: {"repair", "purge"}, both false when left out. Returns {"findings", "files", "objects",
/// "data_bytes", "errors", "warnings", "mended", "problems", "repaired"}.
#[pyfunction]
#[pyo3(signature = (store, options_json="{}".to_string()))]
fn store_fsck(py: Python<'_>, store: PathBuf, options_json: String) -> PyResult<String> {
    with_store(py, &store, |s| {
        let options: findings::Options =
            serde_json::from_str(&options_json).map_err(|e| StoreError::Invalid(format!("fsck options: {e}; known are repair and purge")))?;
        Ok(text(&as_json(&fsck::fsck(s, options)?)?))
    })
}

/// The store and id of the file that a path leads to: {"store", "id"}, or null.
#[pyfunction]
fn store_resolve(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let found = py.detach(|| info::resolve(&RealDisk::new(), &path)).map_err(from_store)?;
    Ok(text(&found.map_or(Value::Null, |(store, id)| json!({"store": store.to_string_lossy(), "id": id_text(id)}))))
}

/// Whether a store that a link names is used: {"owner", "by_owner", "by_list"}. `listed` are the user's own entries, one a line.
#[pyfunction]
fn store_judge(py: Python<'_>, store: PathBuf, listed: Vec<u8>) -> PyResult<String> {
    py.detach(|| Ok(text(&as_json(&trusting::judge(&store, &listed)?)?))).map_err(from_store)
}

/// Counters of the targets since boot: {"targets": [..]}.
#[pyfunction]
fn store_devices(py: Python<'_>, store: PathBuf) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&info::devices_json(s)?)))
}

/// Living programs that use the store: {"programs": [{"pid", "is_stale", "targets"}]}.
#[pyfunction]
fn store_programs(py: Python<'_>, store: PathBuf) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&json!({"programs": as_json(&s.programs()?)?}))))
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(store_create, module)?)?;
    module.add_function(wrap_pyfunction!(store_configure, module)?)?;
    module.add_function(wrap_pyfunction!(store_recompile, module)?)?;
    module.add_function(wrap_pyfunction!(store_mark, module)?)?;
    module.add_function(wrap_pyfunction!(store_note_targets, module)?)?;
    module.add_function(wrap_pyfunction!(store_compile, module)?)?;
    module.add_function(wrap_pyfunction!(store_info, module)?)?;
    module.add_function(wrap_pyfunction!(store_files, module)?)?;
    module.add_function(wrap_pyfunction!(store_nameless, module)?)?;
    module.add_function(wrap_pyfunction!(store_layout, module)?)?;
    module.add_function(wrap_pyfunction!(store_spread, module)?)?;
    module.add_function(wrap_pyfunction!(store_apply, module)?)?;
    module.add_function(wrap_pyfunction!(store_without_room, module)?)?;
    module.add_function(wrap_pyfunction!(store_fsck, module)?)?;
    module.add_function(wrap_pyfunction!(store_resolve, module)?)?;
    module.add_function(wrap_pyfunction!(store_judge, module)?)?;
    module.add_function(wrap_pyfunction!(store_devices, module)?)?;
    module.add_function(wrap_pyfunction!(store_programs, module)?)
}
