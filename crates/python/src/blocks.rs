//! Block workloads for Python: JSON text in and out (docs/formats.md), the interpreter released while requests are read or made.

use std::fs::File;
use std::io::BufWriter;

use pyo3::prelude::*;
use serde_json::json;
use stripewise_blocks::statistics::{Measure, gather};
use stripewise_blocks::trace::{Export, Format, export};
use stripewise_blocks::{BlockWorkload, Error, Source};

use crate::errors::of_workload;

/// Requests between two looks at progress and signals.
const TOLD_EVERY: u64 = 1 << 16;

/// What becomes of a workload's requests when `work` gets them; `progress` hears of them now and then, and what it or a signal handler raises ends it.
fn watched<T: Send>(
    py: Python<'_>,
    workload_json: &str,
    space_blocks: Option<u64>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(Option<Format>, Source) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (mut told, outcome) = py.detach(|| {
        let (sender, told) = std::sync::mpsc::channel();
        let outcome = BlockWorkload::from_json(workload_json).and_then(|workload| {
            let total = workload.requests.unwrap_or(0);
            let (format, source) = workload.open_told(space_blocks)?;
            let mut done = 0u64;
            let seen = source.take_while(move |_| {
                done += 1;
                if !done.is_multiple_of(TOLD_EVERY) {
                    return true;
                }
                let seen = Python::attach(|py| {
                    py.check_signals()?;
                    progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (done, total)).map(|_| ()))
                });
                seen.map_err(|error| sender.send(error)).is_ok()
            });
            work(format, Box::new(seen))
        });
        (told.into_iter(), outcome)
    });
    match told.next() {
        Some(error) => Err(error),
        None => outcome.map_err(of_workload),
    }
}

/// The statistics of a workload's requests as JSON: {"format" (of a trace, else null), and the summary of docs/formats.md, Block statistics}.
/// `space_blocks` None leaves traces and look-alikes in their own space.
///
/// Raises WorkloadError for a description that cannot be, or a trace that cannot be read.
#[pyfunction]
#[pyo3(signature = (workload_json, space_blocks, track_blocks, near_blocks, progress))]
pub fn block_statistics(
    py: Python<'_>,
    workload_json: &str,
    space_blocks: Option<u64>,
    track_blocks: u64,
    near_blocks: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, workload_json, space_blocks, progress, |format, source| {
        let summary = gather(source, Measure { track_blocks, near_blocks })?;
        Ok(json!({ "format": format, "summary": summary }).to_string())
    })
}

/// Writes a workload's requests to `path` in `format` (msr or disksim); returns how many, as JSON.
///
/// Raises as `block_statistics`.
#[pyfunction]
#[pyo3(signature = (workload_json, space_blocks, format, path, progress))]
pub fn block_export(
    py: Python<'_>,
    workload_json: &str,
    space_blocks: Option<u64>,
    format: &str,
    path: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let format = match format {
        "msr" => Export::Msr,
        "disksim" => Export::DiskSim,
        _ => return Err(of_workload(format!("export format \"{format}\" is not known; give msr or disksim"))),
    };
    watched(py, workload_json, space_blocks, progress, |_, source| {
        let file = File::create(path).map_err(|error| Error::Trace(format!("{path}: cannot be made ({error}); check the path")))?;
        Ok(export(format, source, &mut BufWriter::new(file), path)?.to_string())
    })
}
