//! Ways in and out of a store for Python, and its upkeep: adopt, export, cat, relink, gc, scrub, upgrade.

use std::io::Write;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use serde_json::json;
use stripewise_layout::Origin;
use stripewise_store::admin::check::scrub;
use stripewise_store::admin::ids::{id_from, id_text};
use stripewise_store::admin::info::current_size;
use stripewise_store::admin::metadata::lost::lost;
use stripewise_store::admin::metadata::newfile;
use stripewise_store::admin::metadata::reader::{Objects, layout_bytes, view};
use stripewise_store::admin::spec::LayoutJson;
use stripewise_store::admin::transfer::places::{place, resolved};
use stripewise_store::admin::transfer::{adopt, export, relink};
use stripewise_store::admin::{Result, Store, StoreError, gc, upgrade};
use stripewise_target::interface::Opening;

use crate::store::{as_json, text, with_store};

/// Makes a plain file a managed one; without `layout_json` it gets the store's default layout. Returns {"id", "size", "data_bytes",
/// "was_managed", "dropped_copies"}.
#[pyfunction]
#[pyo3(signature = (store, path, layout_json=None, lease=true))]
fn store_adopt(py: Python<'_>, store: PathBuf, path: PathBuf, layout_json: Option<String>, lease: bool) -> PyResult<String> {
    with_store(py, &store, |s| {
        let layout = match layout_json.map(|text| LayoutJson::parse(&text)).transpose()? {
            Some(json) => Some((json.regions("the layout", s.targets.len())?, json.origin.map(Origin::from).unwrap_or_default())),
            None => None,
        };
        Ok(text(&as_json(&adopt::adopt(s, newfile::fresh_id(s)?, &place(&path)?, layout, lease)?)?))
    })
}

/// Makes a managed file a plain one again: {"path", "size", "data_bytes", "dropped_copies"}.
#[pyfunction]
fn store_export(py: Python<'_>, store: PathBuf, path: PathBuf) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&as_json(&export::export(s, &place(&path)?)?)?)))
}

/// Copies a managed file to a plain one: {"path", "size", "data_bytes"}.
#[pyfunction]
fn store_export_to(py: Python<'_>, store: PathBuf, id: String, to: PathBuf) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&as_json(&export::export_to(s, id_from(&id)?, &place(&to)?)?)?)))
}

/// Writes bytes of a file to a descriptor: {"bytes", "size"}. A reader that went away ends it. Without `holes` each stretch of data is preceded by its offset
/// and length (u64, little-endian), and nothing is written of the others.
#[pyfunction]
#[pyo3(signature = (store, id, fd, offset=0, length=None, holes=true))]
fn store_cat(py: Python<'_>, store: PathBuf, id: String, fd: i32, offset: u64, length: Option<u64>, holes: bool) -> PyResult<String> {
    // SAFETY: Python's own descriptor, open for the length of the call.
    let sink = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()?;
    let mut sink = std::fs::File::from(sink);
    with_store(py, &store, |s| {
        let _session = s.lock_shared()?;
        let id = id_from(&id)?;
        let size = current_size(s, id, &s.layout(id)?)?;
        let bytes = layout_bytes(s, id)?;
        let end = length.map_or(size, |l| size.min(offset.saturating_add(l)));
        let mut done = 0u64;
        Objects::new(s, id, view(s, id, &bytes)?, Opening::READ).stream(offset, end, holes, |at, part| {
            let head = [at.to_le_bytes(), (part.len() as u64).to_le_bytes()];
            let headed = if holes { Ok(()) } else { sink.write_all(head.as_flattened()) };
            match headed.and_then(|()| sink.write_all(part)) {
                Ok(()) => {
                    done += part.len() as u64;
                    Ok(true)
                }
                Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
                Err(e) => Err(StoreError::io("write to", Path::new("standard output"), e)),
            }
        })?;
        Ok(text(&json!({"bytes": done, "size": size})))
    })
}

/// Makes a link the name of the file it leads to: {"id"}.
#[pyfunction]
#[pyo3(signature = (store, path, force=false))]
fn store_relink(py: Python<'_>, store: PathBuf, path: PathBuf, force: bool) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&json!({"id": relink::relink(s, &place(&path)?, force)?}))))
}

/// Rewrites the links of a store that was moved: {"rewritten", "current", "missing"}.
#[pyfunction]
fn store_relink_moved(py: Python<'_>, store: PathBuf, dirs: Vec<PathBuf>) -> PyResult<String> {
    with_store(py, &store, |s| {
        let dirs = dirs.iter().map(|d| resolved(d)).collect::<Result<Vec<_>>>()?;
        Ok(text(&as_json(&relink::relink_moved(s, &dirs)?)?))
    })
}

/// Frees what nobody can reach. Options: {"purge", "older_than_s", "search", "leave_away"}. Returns {"trash", "unlinked", "unfinished", "journals",
/// "slots", "copies", "orphans", "problems"}.
#[pyfunction]
#[pyo3(signature = (store, options_json="{}".to_string()))]
fn store_gc(py: Python<'_>, store: PathBuf, options_json: String) -> PyResult<String> {
    with_store(py, &store, |s| {
        let options: gc::Options = serde_json::from_str(&options_json)
            .map_err(|e| StoreError::Invalid(format!("gc options: {e}; known are purge, older_than_s, search and leave_away")))?;
        Ok(text(&as_json(&gc::gc(s, &options)?)?))
    })
}

/// Compares files with their checksums, all when `ids` is empty: {"files", "verified", "summed", "busy", "bytes", "rot", "suspect", "away"}.
#[pyfunction]
#[pyo3(signature = (store, ids, bytes_per_s=0))]
fn store_scrub(py: Python<'_>, store: PathBuf, ids: Vec<String>, bytes_per_s: u64) -> PyResult<String> {
    with_store(py, &store, |s: &Store<'_>| {
        let ids = if ids.is_empty() { s.ids()? } else { ids.iter().map(|id| id_from(id)).collect::<Result<Vec<_>>>()? };
        Ok(text(&as_json(&scrub::scrub_files(s, &ids, &scrub::Pace::new(bytes_per_s))?)?))
    })
}

/// What is gone of files, each as the file's id, a sentence and its cure (none: it is in the sentence, and the file cannot be read), without reading
/// any. Those that cannot be looked at are left out.
#[pyfunction]
fn store_lost(py: Python<'_>, store: PathBuf, ids: Vec<String>) -> PyResult<Vec<(String, String, String)>> {
    with_store(py, &store, |s: &Store<'_>| {
        let ids = ids.iter().map(|id| id_from(id)).collect::<Result<Vec<_>>>()?;
        let found = ids.into_iter().flat_map(|id| lost(s, id).unwrap_or_default().into_iter().map(move |(what, cure)| (id_text(id), what, cure)));
        Ok(found.collect())
    })
}

/// Checks every version and brings the store to this one: {"version", "files", "changed"}.
#[pyfunction]
fn store_upgrade(py: Python<'_>, store: PathBuf) -> PyResult<String> {
    with_store(py, &store, |s| Ok(text(&as_json(&upgrade::upgrade(s)?)?)))
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(store_adopt, module)?)?;
    module.add_function(wrap_pyfunction!(store_export, module)?)?;
    module.add_function(wrap_pyfunction!(store_export_to, module)?)?;
    module.add_function(wrap_pyfunction!(store_cat, module)?)?;
    module.add_function(wrap_pyfunction!(store_relink, module)?)?;
    module.add_function(wrap_pyfunction!(store_relink_moved, module)?)?;
    module.add_function(wrap_pyfunction!(store_gc, module)?)?;
    module.add_function(wrap_pyfunction!(store_scrub, module)?)?;
    module.add_function(wrap_pyfunction!(store_lost, module)?)?;
    module.add_function(wrap_pyfunction!(store_upgrade, module)?)
}
