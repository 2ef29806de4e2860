//! Simulations for Python: JSON text in and out (docs/formats.md), the interpreter released while the clock runs.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use stripewise_sim::source::{Description, Generator, Listed, Workload, request_rows};
use stripewise_sim::{Error, Layout, MoveSpec, RegionSpec, Report, Scenario, Source as _, Stripe, Trials};

use crate::errors::of_workload;

/// What a workload makes: {"processes", "requests", "requests_per_process" (null for a trace), "pieces"}; a trace is read once for it.
///
/// Raises WorkloadError for a description that cannot be, or a trace that cannot be read.
#[pyfunction]
pub fn workload_info(py: Python<'_>, workload_json: &str) -> PyResult<String> {
    let workload = py.detach(|| Workload::from_json(workload_json)).map_err(of_workload)?;
    let (per_process, pieces) = match &workload {
        Workload::Generated(generator) => (Some(generator.requests_per_process()), generator.pieces()),
        Workload::Traced(_) => (None, 1),
    };
    let info = json!({ "processes": workload.processes(), "requests": workload.requests(), "requests_per_process": per_process, "pieces": pieces });
    Ok(info.to_string())
}

/// Simulates a workload in a scenario and returns the report, both JSON (docs/formats.md). `progress` is called now and then with the requests that
/// were issued and their number in all; what it raises, or a signal handler does, ends the simulation.
///
/// Raises WorkloadError for a scenario or workload that cannot be, or a trace that cannot be read.
#[pyfunction]
pub fn simulate(py: Python<'_>, scenario_json: &str, workload_json: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let mut raised_there = None;
    let outcome = py.detach(|| -> Result<Report, Error> {
        let scenario = Scenario::from_json(scenario_json)?;
        let mut workload = Workload::from_json(workload_json)?;
        let total = workload.requests();
        let mut watch = |done: u64| {
            let seen = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (done, total)).map(|_| ()))
            });
            raised_there = seen.err();
            raised_there.is_none()
        };
        match &mut workload {
            Workload::Generated(generator) => stripewise_sim::simulate(&scenario, generator.as_mut(), &mut watch),
            Workload::Traced(traced) => stripewise_sim::simulate(&scenario, traced.as_mut(), &mut watch),
        }
    });
    match (raised_there, outcome) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(of_workload(error)),
        (None, Ok(report)) => as_json(&report),
    }
}

fn as_json(report: &Report) -> PyResult<String> {
    serde_json::to_string(report).map_err(|error| of_workload(format!("the report cannot be written as JSON: {error}")))
}

/// Simulates requests that are at hand in a scenario, as a closed loop, and returns the report: `tables` are those of file 0, 1 and so on as bytes of
/// rows of `stripewise.workload.REQUEST_DTYPE`; of every rank the first `most` are run.
///
/// Raises WorkloadError for a scenario or requests that cannot be.
#[pyfunction]
pub fn simulate_requests(py: Python<'_>, scenario_json: &str, tables: Vec<PyBuffer<u8>>, most: usize) -> PyResult<String> {
    let tables = tables.iter().map(|table| table.to_vec(py)).collect::<PyResult<Vec<Vec<u8>>>>()?;
    let outcome = py.detach(|| -> Result<Report, Error> {
        let listed = Listed::new(tables.iter().map(Vec::as_slice), most)?;
        drop(tables);
        let scenario = Scenario { in_flight: true, ..Scenario::from_json(scenario_json)? };
        stripewise_sim::simulate(&scenario, &mut listed.begin(), &mut |_| true)
    });
    as_json(&outcome.map_err(of_workload)?)
}

/// The requests of `processes` processes of a described workload from `first` on, as rows of `stripewise.workload.REQUEST_DTYPE`; with `per_process`
/// below their number a sample, one from each of so many equal parts of a process's run.
///
/// Raises WorkloadError for a description that cannot be.
#[pyfunction]
pub fn workload_requests<'py>(py: Python<'py>, workload_json: &str, first: u32, processes: u32, per_process: u64) -> PyResult<Bound<'py, PyBytes>> {
    let rows = py.detach(|| -> Result<Vec<u8>, Error> {
        let generator = Generator::new(Description::from_json(workload_json)?)?;
        Ok(request_rows(&generator, first, processes, per_process))
    });
    Ok(PyBytes::new(py, &rows.map_err(of_workload)?))
}

/// When it begins in seconds, file, start, length, cycle and its first entry.
type Move = (f64, u32, u64, u64, u32, u32);

/// Runs at hand, simulated under one layout after another.
#[pyclass(name = "Trials", frozen)]
pub struct TrialsHandle(Trials);

#[pymethods]
impl TrialsHandle {
    /// `scenario_json` has the servers, the network and the files; every run the tables of its files and of every rank the first `most`, as for
    /// `simulate_requests`, and whether it is a sample, whose processes begin at once.
    ///
    /// Raises WorkloadError for a scenario or requests that cannot be.
    #[new]
    fn new(py: Python<'_>, scenario_json: &str, runs: Vec<(Vec<PyBuffer<u8>>, usize, bool)>) -> PyResult<Self> {
        let mut listed = Vec::with_capacity(runs.len());
        for (tables, most, is_sample) in runs {
            let tables = tables.iter().map(|table| table.to_vec(py)).collect::<PyResult<Vec<Vec<u8>>>>()?;
            let run = Listed::new(tables.iter().map(Vec::as_slice), most).map_err(of_workload)?;
            listed.push(if is_sample { run.at_once() } else { run });
        }
        Trials::new(scenario_json, listed).map(Self).map_err(of_workload)
    }

    /// The seconds of runs number `which`, and of each what every server was busy for. `regions` are rows of five: file, start, length, cycle, and the
    /// entry of the cycle that is first; `moves` have when they begin (seconds) before these; entries of cycles are servers and widths.
    ///
    /// Raises WorkloadError for a layout that cannot be.
    fn run(
        &self,
        py: Python<'_>,
        cycles: Vec<Vec<[u64; 2]>>,
        regions: PyBuffer<i64>,
        moves: Vec<Move>,
        which: Vec<usize>,
    ) -> PyResult<Vec<(f64, Vec<f64>)>> {
        let rows = regions.to_vec(py)?;
        let found = py.detach(|| self.0.run(layout_of(cycles, &rows, moves), &which));
        Ok(found.map_err(of_workload)?.into_iter().map(|outcome| (outcome.seconds, outcome.busy_s)).collect())
    }

    /// The seconds of run number `which` with any read under way and those with any write, added; the layout as for `run`.
    ///
    /// Raises WorkloadError for a layout that cannot be.
    fn in_flight_s(&self, py: Python<'_>, cycles: Vec<Vec<[u64; 2]>>, regions: PyBuffer<i64>, moves: Vec<Move>, which: usize) -> PyResult<f64> {
        let rows = regions.to_vec(py)?;
        py.detach(|| self.0.in_flight_s(layout_of(cycles, &rows, moves), which)).map_err(of_workload)
    }
}

fn layout_of(cycles: Vec<Vec<[u64; 2]>>, regions: &[i64], moves: Vec<Move>) -> Layout {
    // What is negative is too large.
    let small = |value: i64| u32::try_from(value).unwrap_or(u32::MAX);
    let stripe = |[server, width_bytes]: [u64; 2]| Stripe { server: u32::try_from(server).unwrap_or(u32::MAX), width_bytes };
    let stripes = |cycle: Vec<[u64; 2]>| cycle.into_iter().map(stripe).collect();
    let large = |value: i64| u64::try_from(value).unwrap_or(u64::MAX);
    let region = |&[file, start, len, cycle, first]: &[i64; 5]| {
        (small(file), RegionSpec { start: large(start), len: large(len), cycle: small(cycle), first: small(first) })
    };
    Layout {
        cycles: cycles.into_iter().map(stripes).collect(),
        regions: regions.as_chunks().0.iter().map(region).collect(),
        moves: moves.into_iter().map(|(at_s, file, start, len, cycle, first)| MoveSpec { at_s, file, start, len, cycle, first }).collect(),
    }
}
