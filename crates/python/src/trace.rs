//! `trace_collect`: a directory of trace logs to trace.parquet and meta.json, for `stripewise collect`.
//!
//! Runs without the interpreter's lock: a large trace takes seconds, in which a progress bar wants to turn.

use crate::errors::of_workload;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Collects the logs in `dir` into `out`/trace.parquet and `out`/meta.json; returns meta.json's contents as JSON text. `lenient` counts and skips
/// what is damaged.
///
/// Raises WorkloadError, which names the file and what to do.
#[pyfunction]
#[pyo3(name = "trace_collect", signature = (dir, out, lenient = false))]
pub fn collect(py: Python<'_>, dir: PathBuf, out: PathBuf, lenient: bool) -> PyResult<String> {
    let summary = py.detach(|| stripewise_trace::collect(&dir, &out, lenient)).map_err(of_workload)?;
    serde_json::to_string(&summary).map_err(|error| of_workload(format!("the summary of {} cannot be written as JSON: {error}", out.display())))
}
