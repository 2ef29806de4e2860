//! Pictures of a trace for Python: columns of requests in, sums by bin as columns of u64 out, slices of a Perfetto trace as bytes.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use stripewise_view::{Bins, Columns, Distribution, Grid, Kind, bucket_low, by_file, distribution, heat, perfetto, phases, raster, timeline};

use crate::errors::invalid;
use crate::pricing::numbers;

/// Bins of a picture, in all its rows, at most: 256 MiB.
const CELLS_MAX: usize = 1 << 25;

/// Adds class and functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ViewTrace>()?;
    module.add_function(wrap_pyfunction!(view_phases, module)?)?;
    module.add_function(wrap_pyfunction!(view_names, module)?)?;
    module.add_function(wrap_pyfunction!(view_process, module)?)?;
    module.add_function(wrap_pyfunction!(view_lane, module)?)
}

/// The requests of a trace: columns of one length, a row each; numbers of files are 0..files.
#[pyclass(name = "ViewTrace", frozen)]
pub struct ViewTrace {
    columns: Columns,
    rows: Vec<Vec<u32>>,
}

/// Cells (u64, as bytes) layer by layer and row by row; width of a bin; bins of a row.
type Cells<'py> = (Bound<'py, PyBytes>, u64, usize);

fn cells<'py>(py: Python<'py>, grid: &Grid) -> PyResult<Cells<'py>> {
    Ok((numbers(py, &grid.cells, u64::to_ne_bytes)?, grid.bins.width, grid.bins.count))
}

fn distribution_json(found: &Distribution) -> String {
    let lows: Vec<u64> = (0..found.latency.first().map_or(0, Vec::len)).map(bucket_low).collect();
    json!({
        "size": found.size, "latency": found.latency, "latency_low_ns": lows, "requests": found.requests, "bytes": found.bytes, "busy_ns": found.busy,
        "without_offset": found.without_offset, "begin_ns": found.begin_ns, "end_ns": found.end_ns, "extent": found.extent,
        "size_min": found.size_min, "size_max": found.size_max,
    })
    .to_string()
}

#[pymethods]
impl ViewTrace {
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        start_ns: PyBuffer<i64>,
        end_ns: PyBuffer<i64>,
        process: PyBuffer<u32>,
        file: PyBuffer<u32>,
        write: PyBuffer<u8>,
        offset: PyBuffer<i64>,
        size: PyBuffer<i64>,
        files: usize,
    ) -> PyResult<Self> {
        let columns = Columns {
            start_ns: start_ns.to_vec(py)?,
            end_ns: end_ns.to_vec(py)?,
            process: process.to_vec(py)?,
            file: file.to_vec(py)?,
            write: write.to_vec(py)?,
            offset: offset.to_vec(py)?,
            size: size.to_vec(py)?,
        };
        if !columns.is_sound() || u32::try_from(columns.len()).is_err() || files > columns.len() {
            return Err(invalid("pictures: columns of different lengths, or 2^32 rows and more; choose fewer files with --file".to_owned()));
        }
        let rows = py.detach(|| by_file(&columns.file, files));
        Ok(Self { columns, rows })
    }

    /// Nanoseconds in calls, bytes read and bytes written, each in `rows` rows of bins over 0..end_ns; process p stands in row p / together.
    fn timeline<'py>(&self, py: Python<'py>, end_ns: u64, limit: usize, rows: usize, together: u32) -> PyResult<Cells<'py>> {
        let bins = bins(end_ns, limit, rows.saturating_mul(3))?;
        let row_of = |process: u32| (process / together.max(1)) as usize;
        let grid = py.detach(|| timeline(self.columns.iter(), rows, bins, row_of));
        cells(py, &grid)
    }

    /// Bytes read and written of a file: a row of bins of offsets for each bin of time over 0..end_ns. Then the width of those, and how many.
    fn raster<'py>(&self, py: Python<'py>, file: usize, range: (u64, u64), limits: (usize, usize)) -> PyResult<(Cells<'py>, u64, usize)> {
        let rows = self.rows(file)?;
        let time = bins(range.0, limits.0, 2)?;
        let offsets = bins(range.1, limits.1, time.count * 2)?;
        let grid = py.detach(|| raster(self.columns.of(rows), time, offsets));
        Ok((cells(py, &grid)?, time.width, time.count))
    }

    /// Bytes read and written of a file by bins of offsets.
    fn heat<'py>(&self, py: Python<'py>, file: usize, extent: u64, limit: usize) -> PyResult<Cells<'py>> {
        let rows = self.rows(file)?;
        let offsets = bins(extent, limit, 2)?;
        let grid = py.detach(|| heat(self.columns.of(rows), offsets));
        cells(py, &grid)
    }

    /// What the requests of a file, or all, are in sum: JSON; pairs are (reads, writes).
    #[pyo3(signature = (file=None))]
    fn distribution(&self, py: Python<'_>, file: Option<usize>) -> PyResult<String> {
        let columns = &self.columns;
        let Some(file) = file else { return Ok(distribution_json(&py.detach(|| distribution(columns.iter())))) };
        let rows = self.rows(file)?;
        Ok(distribution_json(&py.detach(|| distribution(columns.of(rows)))))
    }

    /// The rows of a file (u32, as bytes).
    fn file_rows<'py>(&self, py: Python<'py>, file: usize) -> PyResult<Bound<'py, PyBytes>> {
        numbers(py, self.rows(file)?, u32::to_ne_bytes)
    }

    /// Rows begin..end as slices of a Perfetto trace, row by row on the track of this number (u64), with the number of the replica that served it (i64,
    /// below 0 none).
    fn slices<'py>(&self, py: Python<'py>, begin: usize, end: usize, track: PyBuffer<u64>, replica: PyBuffer<i64>) -> PyResult<Bound<'py, PyBytes>> {
        let (track, replica) = (track.to_vec(py)?, replica.to_vec(py)?);
        let made = py.detach(|| {
            let mut made = Vec::new();
            for ((row, &track), &replica) in (begin..end).zip(&track).zip(&replica) {
                if let (Some(request), Some(&file)) = (self.columns.at(row), self.columns.file.get(row)) {
                    perfetto::slice(&mut made, track, file, &request, u64::try_from(replica).ok());
                }
            }
            made
        });
        Ok(PyBytes::new(py, &made))
    }

    /// The lane of each of these rows of one thread (u32), in the order of their starts: requests of a lane do not overlap.
    fn lanes<'py>(&self, py: Python<'py>, rows: PyBuffer<u32>) -> PyResult<Bound<'py, PyBytes>> {
        let rows = rows.to_vec(py)?;
        let found = py.detach(|| perfetto::lanes(self.columns.of(&rows).map(|request| (request.start_ns, request.end_ns))));
        numbers(py, &found, u32::to_ne_bytes)
    }
}

impl ViewTrace {
    fn rows(&self, file: usize) -> PyResult<&[u32]> {
        self.rows.get(file).map(Vec::as_slice).ok_or_else(|| invalid(format!("pictures: there is no file {file}")))
    }
}

fn bins(end: u64, limit: usize, rows: usize) -> PyResult<Bins> {
    let bins = Bins::over(end, limit);
    if bins.count.saturating_mul(rows) > CELLS_MAX {
        return Err(invalid(format!("pictures: more than {CELLS_MAX} bins; take fewer")));
    }
    Ok(bins)
}

/// A phase: first bin, end, kind, bytes read, bytes written.
type Told = (usize, usize, &'static str, u64, u64);

/// The phases in bins of (nanoseconds in calls, bytes read, bytes written): (first bin, end, kind, bytes read, written); quiet of `gap` bins ends none.
#[pyfunction]
fn view_phases(py: Python<'_>, busy: PyBuffer<u64>, read: PyBuffer<u64>, written: PyBuffer<u64>, gap: usize) -> PyResult<Vec<Told>> {
    let word = |kind: Kind| match kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Both => "both",
    };
    let found = phases(&busy.to_vec(py)?, &read.to_vec(py)?, &written.to_vec(py)?, gap);
    Ok(found.into_iter().map(|phase| (phase.begin, phase.end, word(phase.kind), phase.read, phase.written)).collect())
}

/// The first packet of a Perfetto trace, with the names of all files.
#[pyfunction]
fn view_names<'py>(py: Python<'py>, files: Vec<String>) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &perfetto::names(files.iter().map(String::as_str)))
}

/// The track of a process.
#[pyfunction]
fn view_process<'py>(py: Python<'py>, uuid: u64, pid: u64, name: &str) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &perfetto::process_track(uuid, pid, name))
}

/// A track below that of a process.
#[pyfunction]
fn view_lane<'py>(py: Python<'py>, uuid: u64, process_uuid: u64, name: &str) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &perfetto::lane_track(uuid, process_uuid, name))
}
