//! Simulations for Python: JSON text in and out (docs/formats.md), the interpreter released while the clock runs.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use stripewise_sim::Error;
use stripewise_sim::Source as _;
use stripewise_sim::source::{Description, Generator, Workload, request_rows};

use crate::errors::raise;

fn raised(error: &Error) -> PyErr {
    let kind = match error {
        Error::Invalid(_) => "invalid",
        Error::Trace(_) => "damaged",
        Error::Interrupted => "stopped",
    };
    raise(kind, error.to_string())
}

/// What a workload makes: {"processes", "requests", "requests_per_process" (null for a trace), "pieces"}; a trace is read once for it.
///
/// Raises Invalid for a description that cannot be, Damaged for a trace that cannot be read.
#[pyfunction]
pub fn workload_info(py: Python<'_>, workload_json: &str) -> PyResult<String> {
    let workload = py.detach(|| Workload::from_json(workload_json)).map_err(|error| raised(&error))?;
    let (per_process, pieces) = match &workload {
        Workload::Generated(generator) => (Some(generator.requests_per_process()), generator.pieces()),
        Workload::Traced(_) => (None, 1),
    };
    let info = json!({ "processes": workload.processes(), "requests": workload.requests(), "requests_per_process": per_process, "pieces": pieces });
    Ok(info.to_string())
}

/// The requests of `processes` processes of a described workload from `first` on, as rows of `stripewise.workload.REQUEST_DTYPE`; with `per_process`
/// below their number a sample, one from each of so many equal parts of a process's run.
///
/// Raises Invalid for a description that cannot be.
#[pyfunction]
pub fn workload_requests<'py>(py: Python<'py>, workload_json: &str, first: u32, processes: u32, per_process: u64) -> PyResult<Bound<'py, PyBytes>> {
    let rows = py.detach(|| -> Result<Vec<u8>, Error> {
        let generator = Generator::new(Description::from_json(workload_json)?)?;
        Ok(request_rows(&generator, first, processes, per_process))
    });
    Ok(PyBytes::new(py, &rows.map_err(|error| raised(&error))?))
}
