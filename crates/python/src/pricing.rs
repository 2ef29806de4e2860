//! Prices over request keys: columns come in as buffers (numpy arrays) and go out as bytes, the GIL released while working.

use crate::errors::invalid;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stripewise_pricing::{Cycle, Figures, Keys, Network, Objective, Params, Server};

/// Request keys: columns of equal length; rows `first[g]..first[g + 1]` are those of region g.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct KeyColumns {
    offset: PyBuffer<i64>,
    size: PyBuffer<i64>,
    write: PyBuffer<u8>,
    count: PyBuffer<i64>,
    first: PyBuffer<i64>,
}

/// What one server takes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct DeviceFigures {
    startup_read_s: f64,
    per_byte_read_s: f64,
    startup_write_s: f64,
    per_byte_write_s: f64,
}

/// What the model knows of job, network and servers; [`Params`] says what its letters mean.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct CostParameters {
    p: f64,
    c: f64,
    e: f64,
    t: f64,
    hdd: DeviceFigures,
    ssd: DeviceFigures,
}

/// What makes a pair of widths the best: weights per pair and the other seconds per region; both empty: the seconds alone.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Weighing {
    weight: Vec<f64>,
    others_s: PyBuffer<f64>,
}

/// Service demand in seconds, accesses, bytes.
type Load = (f64, i64, f64);

/// The columns copied, to be read without the interpreter.
struct Owned {
    offset: Vec<i64>,
    size: Vec<i64>,
    write: Vec<u8>,
    count: Vec<i64>,
    first: Vec<i64>,
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(group_requests, module)?)?;
    module.add_function(wrap_pyfunction!(cycle_costs, module)?)?;
    module.add_function(wrap_pyfunction!(cheapest_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(service_demand, module)?)
}

impl From<DeviceFigures> for Figures {
    fn from(of: DeviceFigures) -> Self {
        let DeviceFigures { startup_read_s, per_byte_read_s, startup_write_s, per_byte_write_s } = of;
        Self { startup_read_s, per_byte_read_s, startup_write_s, per_byte_write_s }
    }
}

impl From<CostParameters> for Params {
    fn from(of: CostParameters) -> Self {
        Self { p: of.p, c: of.c, e: of.e, t: of.t, hdd: of.hdd.into(), ssd: of.ssd.into() }
    }
}

impl KeyColumns {
    fn read(&self, py: Python<'_>) -> PyResult<Owned> {
        Ok(Owned {
            offset: self.offset.to_vec(py)?,
            size: self.size.to_vec(py)?,
            write: self.write.to_vec(py)?,
            count: self.count.to_vec(py)?,
            first: self.first.to_vec(py)?,
        })
    }
}

impl Owned {
    fn keys(&self) -> Keys<'_> {
        Keys { offset: &self.offset, size: &self.size, write: &self.write, count: &self.count }
    }
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

/// Seconds of every region on the cycle of (is it an SSD, width) pairs.
#[pyfunction]
fn cycle_costs<'py>(py: Python<'py>, parameters: CostParameters, cycle: Vec<(bool, u64)>, keys: KeyColumns) -> PyResult<Bound<'py, PyBytes>> {
    let (owned, params) = (keys.read(py)?, parameters.into());
    let costs = py.detach(|| {
        let servers: Vec<Server<bool>> = cycle.into_iter().map(|(kind, width_bytes)| Server { kind, width_bytes }).collect();
        stripewise_pricing::cycle_costs(&params, &Cycle::new(&servers)?, owned.keys(), &owned.first)
    });
    numbers(py, &costs.ok_or_else(|| unsound("cycle_costs"))?, f64::to_ne_bytes)
}

/// For every region the position of the best (h, s) pair on M HServers and N SServers, and its seconds.
///
/// Best is the least of weight * T + (1 - weight) * others, of T alone where both are empty; the last among equals.
#[pyfunction]
fn cheapest_pairs<'py>(
    py: Python<'py>,
    parameters: CostParameters,
    servers: (u64, u64),
    pairs: Vec<(u64, u64)>,
    keys: KeyColumns,
    weighing: Weighing,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (owned, others_s, params) = (keys.read(py)?, weighing.others_s.to_vec(py)?, parameters.into());
    let objective = Objective { weight: &weighing.weight, others_s: &others_s };
    let choices = py
        .detach(|| stripewise_pricing::search(&params, servers, &pairs, owned.keys(), &owned.first, objective))
        .ok_or_else(|| unsound("cheapest_pairs"))?;
    Ok((numbers(py, &choices, |choice| (choice.pair as i64).to_ne_bytes())?, numbers(py, &choices, |choice| choice.cost_s.to_ne_bytes())?))
}

/// (service demand in seconds, accesses, bytes) of every server of the cycle of (width, figures), and the sum over requests of their time alone,
/// on a network of (establish_s, per_byte_s).
#[pyfunction]
fn service_demand(py: Python<'_>, cycle: Vec<(u64, DeviceFigures)>, keys: KeyColumns, network: (f64, f64)) -> PyResult<(Vec<Load>, f64)> {
    let owned = keys.read(py)?;
    let found = py.detach(|| {
        let servers: Vec<Server<Figures>> = cycle.into_iter().map(|(width_bytes, of)| Server { kind: of.into(), width_bytes }).collect();
        stripewise_pricing::demand(&Cycle::new(&servers)?, owned.keys(), Network { establish_s: network.0, per_byte_s: network.1 })
    });
    let found = found.ok_or_else(|| unsound("service_demand"))?;
    Ok((found.servers.iter().map(|load| (load.demand_s, load.accesses, load.bytes as f64)).collect(), found.alone_s))
}
