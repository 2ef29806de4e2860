//! Regions onto choices: tables come in as buffers (numpy arrays), the assignment and its proof go out, the GIL released while working.

use crate::errors;
use crate::pricing::numbers;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stripewise_assign::{FEATURES, Limits, List, Problem, Tables};

/// The assignment, seconds per window, the bound, lambda, pi.
type Found<'py> = (Bound<'py, PyBytes>, Vec<f64>, f64, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

fn list(py: Python<'_>, first: &PyBuffer<i64>, at: &PyBuffer<i64>, value: &PyBuffer<f64>) -> PyResult<List<f64>> {
    Ok(List { first: first.to_vec(py)?, at: at.to_vec(py)?, value: value.to_vec(py)? })
}

fn invalid(reason: String) -> PyErr {
    errors::invalid(format!("assign: {reason}"))
}

/// The choice of every region in every window so that the busiest resources take least; sizes are windows, regions, shapes, choices, resources and
/// servers. None when no assignment that fits was found.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // one argument per table
pub fn assign<'py>(
    py: Python<'py>,
    sizes: (usize, usize, usize, usize, usize, usize),
    features: PyBuffer<f64>,
    valid_bytes: PyBuffer<f64>,
    capacity: PyBuffer<f64>,
    shape: PyBuffer<i64>,
    entry_first: PyBuffer<i64>,
    entry_resource: PyBuffer<i64>,
    entry_q: PyBuffer<f64>,
    store_first: PyBuffer<i64>,
    store_server: PyBuffer<i64>,
    store_share: PyBuffer<f64>,
    leave_first: PyBuffer<i64>,
    leave_resource: PyBuffer<i64>,
    leave_s_per_byte: PyBuffer<f64>,
    enter_first: PyBuffer<i64>,
    enter_resource: PyBuffer<i64>,
    enter_s_per_byte: PyBuffer<f64>,
    penalty_s: PyBuffer<f64>,
    starts: Vec<PyBuffer<i64>>,
    seconds: f64,
    gap: f64,
    seed: u64,
) -> PyResult<Option<Found<'py>>> {
    let (windows, regions, shapes, choices, resources, servers) = sizes;
    let entry_q = entry_q.to_vec(py)?;
    let (whole, rest) = entry_q.as_chunks::<FEATURES>();
    if !rest.is_empty() {
        return Err(invalid(format!("entry_q: {} numbers are not {FEATURES} per entry", entry_q.len())));
    }
    let tables = Tables {
        windows,
        regions,
        shapes,
        choices,
        resources,
        servers,
        features: features.to_vec(py)?,
        valid_bytes: valid_bytes.to_vec(py)?,
        capacity: capacity.to_vec(py)?,
        shape: shape.to_vec(py)?,
        entries: List { first: entry_first.to_vec(py)?, at: entry_resource.to_vec(py)?, value: whole.to_vec() },
        stores: list(py, &store_first, &store_server, &store_share)?,
        leave: list(py, &leave_first, &leave_resource, &leave_s_per_byte)?,
        enter: list(py, &enter_first, &enter_resource, &enter_s_per_byte)?,
        penalty_s: penalty_s.to_vec(py)?,
    };
    let starts = starts.iter().map(|start| start.to_vec(py)).collect::<PyResult<Vec<_>>>()?;
    if let Some(start) = starts.iter().find(|start| Some(start.len()) != windows.checked_mul(regions)) {
        return Err(invalid(format!("starts: {} numbers are not one per window and region", start.len())));
    }
    if seconds.is_nan() || gap.is_nan() {
        return Err(invalid("seconds and gap must be numbers".into()));
    }
    let problem = Problem::new(tables).map_err(invalid)?;
    let Some(found) = py.detach(|| stripewise_assign::solve(&problem, &starts, Limits { seconds, gap, seed })) else { return Ok(None) };
    Ok(Some((
        numbers(py, &found.assignment, i64::to_ne_bytes)?,
        found.window_s,
        found.bound_s,
        numbers(py, &found.lambda, f64::to_ne_bytes)?,
        numbers(py, &found.pi, f64::to_ne_bytes)?,
    )))
}
