//! Regions onto choices: tables come in as buffers (numpy arrays), the assignment and its proof go out, the GIL released while working.

use crate::errors;
use crate::pricing::numbers;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stripewise_assign::{FEATURES, Limits, List, Problem, Tables};

/// The assignment, seconds per window, the bound, lambda, pi.
type Found<'py> = (Bound<'py, PyBytes>, Vec<f64>, f64, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// A list per choice, of all choices one after the other: those of choice c are members `first[c]..first[c + 1]`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ListOf {
    first: PyBuffer<i64>,
    at: PyBuffer<i64>,
    value: PyBuffer<f64>,
}

impl ListOf {
    fn read(&self, py: Python<'_>) -> PyResult<List<f64>> {
        Ok(List { first: self.first.to_vec(py)?, at: self.at.to_vec(py)?, value: self.value.to_vec(py)? })
    }
}

/// The problem as a dict; [`Tables`] says what its keys mean.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Described {
    windows: usize,
    regions: usize,
    shapes: usize,
    choices: usize,
    resources: usize,
    servers: usize,
    features: PyBuffer<f64>,
    valid_bytes: PyBuffer<f64>,
    capacity: PyBuffer<f64>,
    shape: PyBuffer<i64>,
    entries: ListOf,
    stores: ListOf,
    leave: ListOf,
    enter: ListOf,
    penalty_s: PyBuffer<f64>,
}

impl Described {
    fn read(&self, py: Python<'_>) -> PyResult<Tables> {
        let entries = self.entries.read(py)?;
        let (whole, rest) = entries.value.as_chunks::<FEATURES>();
        if !rest.is_empty() {
            return Err(invalid(format!("entries: {} numbers are not {FEATURES} per entry", entries.value.len())));
        }
        Ok(Tables {
            windows: self.windows,
            regions: self.regions,
            shapes: self.shapes,
            choices: self.choices,
            resources: self.resources,
            servers: self.servers,
            features: self.features.to_vec(py)?,
            valid_bytes: self.valid_bytes.to_vec(py)?,
            capacity: self.capacity.to_vec(py)?,
            shape: self.shape.to_vec(py)?,
            entries: List { value: whole.to_vec(), first: entries.first, at: entries.at },
            stores: self.stores.read(py)?,
            leave: self.leave.read(py)?,
            enter: self.enter.read(py)?,
            penalty_s: self.penalty_s.to_vec(py)?,
        })
    }
}

fn invalid(reason: String) -> PyErr {
    errors::invalid(format!("assign: {reason}"))
}

/// The choice of every region in every window so that the busiest resources take least. `starts` are assignments to improve. None when no assignment
/// that fits was found.
#[pyfunction]
pub fn assign<'py>(
    py: Python<'py>,
    problem: Described,
    starts: Vec<PyBuffer<i64>>,
    seconds: f64,
    gap: f64,
    seed: u64,
) -> PyResult<Option<Found<'py>>> {
    let tables = problem.read(py)?;
    let starts = starts.iter().map(|start| start.to_vec(py)).collect::<PyResult<Vec<_>>>()?;
    if let Some(start) = starts.iter().find(|start| Some(start.len()) != tables.windows.checked_mul(tables.regions)) {
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
