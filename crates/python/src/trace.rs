//! `trace_collect`: a directory of trace logs to trace.parquet and meta.json, for `stripewise collect`.
//!
//! Runs without the interpreter's lock: a large trace takes seconds, in which a progress bar wants to turn.

use crate::errors::raise;
use pyo3::prelude::*;
use std::io::ErrorKind;
use std::path::PathBuf;
use stripewise_trace::reader::Error;

/// Collects the logs in `dir` into `out`/trace.parquet and `out`/meta.json; returns meta.json's contents as JSON text. `lenient` counts and skips
/// what is damaged.
///
/// Raises NotFound (no such directory, no logs in it), Damaged, NewerVersion, InputOutput.
#[pyfunction]
#[pyo3(name = "trace_collect", signature = (dir, out, lenient = false))]
pub fn collect(py: Python<'_>, dir: PathBuf, out: PathBuf, lenient: bool) -> PyResult<String> {
    let summary = py.detach(|| stripewise_trace::collect(&dir, &out, lenient)).map_err(|error| raised(&error))?;
    serde_json::to_string(&summary).map_err(|error| raise("io", format!("the summary of {} cannot be written as JSON: {error}", out.display())))
}

fn raised(error: &Error) -> PyErr {
    let kind = match error {
        Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => "not_found",
        Error::NoLogs { .. } => "not_found",
        Error::Newer { .. } => "newer_version",
        Error::Damaged { .. } => "damaged",
        _ => "io",
    };
    raise(kind, error.to_string())
}
