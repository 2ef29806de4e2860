//! Prices over request keys: columns come in as buffers (numpy arrays) and go out as bytes, the GIL released while working.

use crate::errors::invalid;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stripewise_pricing::{Cycle, Figures, Keys, Network, Objective, Params, Server};

/// Columns of request keys: offset, size (int64), write (uint8), count (int64).
type Columns = (PyBuffer<i64>, PyBuffer<i64>, PyBuffer<u8>, PyBuffer<i64>);
/// startup_read_s, per_byte_read_s, startup_write_s, per_byte_write_s.
type FourFigures = (f64, f64, f64, f64);
/// Service demand in seconds, accesses, bytes.
type Load = (f64, i64, f64);
/// Offset, size, write, count.
type Owned = (Vec<i64>, Vec<i64>, Vec<u8>, Vec<i64>);

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(group_requests, module)?)?;
    module.add_function(wrap_pyfunction!(cycle_costs, module)?)?;
    module.add_function(wrap_pyfunction!(cheapest_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(service_demand, module)?)
}

fn figures((startup_read_s, per_byte_read_s, startup_write_s, per_byte_write_s): FourFigures) -> Figures {
    Figures { startup_read_s, per_byte_read_s, startup_write_s, per_byte_write_s }
}

fn params((p, c, e, t): (f64, f64, f64, f64), hdd: FourFigures, ssd: FourFigures) -> Params {
    Params { p, c, e, t, hdd: figures(hdd), ssd: figures(ssd) }
}

fn owned(py: Python<'_>, (offset, size, write, count): &Columns) -> PyResult<Owned> {
    Ok((offset.to_vec(py)?, size.to_vec(py)?, write.to_vec(py)?, count.to_vec(py)?))
}

fn keys((offset, size, write, count): &Owned) -> Keys<'_> {
    Keys { offset, size, write, count }
}

pub(crate) fn numbers<'py, T: Copy, const N: usize>(py: Python<'py>, column: &[T], bytes: impl Fn(T) -> [u8; N]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, column.len() * N, |buffer| {
        for (place, number) in buffer.chunks_exact_mut(N).zip(column) {
            place.copy_from_slice(&bytes(*number));
        }
        Ok(())
    })
}

fn unsound(what: &str) -> PyErr {
    invalid(format!("{what}: the columns do not fit together, or sizes are out of range; use a larger --region-size"))
}

/// Cuts requests (offset, size, write) at region borders and counts equal pieces; five columns: region, offset, size, write, count.
#[pyfunction]
fn group_requests<'py>(
    py: Python<'py>,
    offset: PyBuffer<i64>,
    size: PyBuffer<i64>,
    write: PyBuffer<u8>,
    region_bytes: u64,
) -> PyResult<[Bound<'py, PyBytes>; 5]> {
    let (offset, size, write) = (offset.to_vec(py)?, size.to_vec(py)?, write.to_vec(py)?);
    let pieces = py.detach(|| stripewise_pricing::group(&offset, &size, &write, region_bytes)).ok_or_else(|| unsound("group_requests"))?;
    Ok([
        numbers(py, &pieces.region, i64::to_ne_bytes)?,
        numbers(py, &pieces.offset, i64::to_ne_bytes)?,
        numbers(py, &pieces.size, i64::to_ne_bytes)?,
        PyBytes::new(py, &pieces.write),
        numbers(py, &pieces.count, i64::to_ne_bytes)?,
    ])
}

/// Seconds of every region, rows `first[g]..first[g + 1]` of the columns, on the cycle of (is it an SSD, width) pairs.
#[pyfunction]
fn cycle_costs<'py>(
    py: Python<'py>,
    job: (f64, f64, f64, f64),
    hdd: FourFigures,
    ssd: FourFigures,
    cycle: Vec<(bool, u64)>,
    columns: Columns,
    first: PyBuffer<i64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (columns, first, params) = (owned(py, &columns)?, first.to_vec(py)?, params(job, hdd, ssd));
    let costs = py.detach(|| {
        let servers: Vec<Server<bool>> = cycle.into_iter().map(|(kind, width_bytes)| Server { kind, width_bytes }).collect();
        stripewise_pricing::cycle_costs(&params, &Cycle::new(&servers)?, keys(&columns), &first)
    });
    numbers(py, &costs.ok_or_else(|| unsound("cycle_costs"))?, f64::to_ne_bytes)
}

/// For every region the position of the best (h, s) pair on M HServers and N SServers, and its seconds.
///
/// Best is the least of weight * T + (1 - weight) * beside, of T alone where both are empty; the last among equals.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // one argument per thing that Python names
fn cheapest_pairs<'py>(
    py: Python<'py>,
    job: (f64, f64, f64, f64),
    hdd: FourFigures,
    ssd: FourFigures,
    servers: (u64, u64),
    pairs: Vec<(u64, u64)>,
    columns: Columns,
    first: PyBuffer<i64>,
    weight: Vec<f64>,
    beside: PyBuffer<f64>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (columns, first, beside, params) = (owned(py, &columns)?, first.to_vec(py)?, beside.to_vec(py)?, params(job, hdd, ssd));
    let objective = Objective { weight: &weight, beside: &beside };
    let choices = py
        .detach(|| stripewise_pricing::search(&params, servers, &pairs, keys(&columns), &first, objective))
        .ok_or_else(|| unsound("cheapest_pairs"))?;
    Ok((numbers(py, &choices, |choice| (choice.pair as i64).to_ne_bytes())?, numbers(py, &choices, |choice| choice.cost_s.to_ne_bytes())?))
}

/// (service demand in seconds, accesses, bytes) of every server of the cycle of (width, figures), and the sum over requests of their time alone,
/// on a network of (establish_s, per_byte_s).
#[pyfunction]
fn service_demand(py: Python<'_>, cycle: Vec<(u64, FourFigures)>, columns: Columns, network: (f64, f64)) -> PyResult<(Vec<Load>, f64)> {
    let columns = owned(py, &columns)?;
    let found = py.detach(|| {
        let servers: Vec<Server<Figures>> = cycle.into_iter().map(|(width_bytes, four)| Server { kind: figures(four), width_bytes }).collect();
        stripewise_pricing::demand(&Cycle::new(&servers)?, keys(&columns), Network { establish_s: network.0, per_byte_s: network.1 })
    });
    let found = found.ok_or_else(|| unsound("service_demand"))?;
    Ok((found.servers.iter().map(|load| (load.demand_s, load.accesses, load.bytes as f64)).collect(), found.alone_s))
}
