//! Access patterns for Python: columns of records in, patterns as JSON (docs/formats.md, Patterns) and records as columns out.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};
use stripewise_pattern::{Columns, Inner, Irregular, Patterns, RECORDS_MAX, Record, Segment, Stream, Tree, What, recognise, separate};

use crate::errors::invalid;
use crate::pricing::numbers;

/// Loops in a tree from Python, at most; a tree of the recogniser has fewer.
const DEPTH_MAX: usize = 64;

/// Kind (u32), offset and size (i64) as bytes.
type Bytes<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Adds class and functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RecognisedTrace>()?;
    module.add_function(wrap_pyfunction!(pattern_expand, module)?)
}

/// The patterns of all streams of a trace.
#[pyclass(name = "RecognisedTrace", frozen)]
pub struct RecognisedTrace {
    streams: Vec<(u64, Vec<u32>, Patterns)>,
}

#[pymethods]
impl RecognisedTrace {
    /// Records in columns of one length, in their order; those with one key are a stream.
    #[new]
    fn new(py: Python<'_>, key: PyBuffer<u64>, kind: PyBuffer<u32>, offset: PyBuffer<i64>, size: PyBuffer<i64>) -> PyResult<Self> {
        let (key, kind, offset, size) = (key.to_vec(py)?, kind.to_vec(py)?, offset.to_vec(py)?, size.to_vec(py)?);
        if [kind.len(), offset.len(), size.len()] != [key.len(); 3] || key.len() as u64 >= RECORDS_MAX {
            return Err(invalid(format!("patterns: columns of different lengths, or more than {RECORDS_MAX} records; give fewer files")));
        }
        let streams = py.detach(|| {
            let columns = Columns { kind: &kind, offset: &offset, size: &size };
            let of = |Stream { key, rows }: Stream| {
                let patterns = recognise(columns.at(&rows));
                (key, rows, patterns)
            };
            separate(&key).into_iter().map(of).collect()
        });
        Ok(Self { streams })
    }

    /// The streams as JSON: [{"key", "nodes" (loops and single records), "segments": [{"first", "records", "loop" | "irregular" | "scattered"}]}].
    fn json(&self, py: Python<'_>) -> String {
        py.detach(|| {
            let stream = |(key, _, patterns): &(u64, Vec<u32>, Patterns)| {
                let segments: Vec<Value> = patterns.segments().iter().map(segment_json).collect();
                json!({ "key": key, "nodes": patterns.len(), "segments": segments })
            };
            Value::Array(self.streams.iter().map(stream).collect()).to_string()
        })
    }

    /// The rows of a stream (u32, as bytes), by its number in `json`.
    fn rows<'py>(&self, py: Python<'py>, stream: usize) -> PyResult<Bound<'py, PyBytes>> {
        let (_, rows, _) = self.streams.get(stream).ok_or_else(|| invalid(format!("patterns: there is no stream {stream}")))?;
        numbers(py, rows, u32::to_ne_bytes)
    }

    /// All records of a stream from its patterns: the columns kind (u32), offset and size (i64), as bytes.
    fn expand<'py>(&self, py: Python<'py>, stream: usize) -> PyResult<Bytes<'py>> {
        let (_, _, patterns) = self.streams.get(stream).ok_or_else(|| invalid(format!("patterns: there is no stream {stream}")))?;
        columns(py, &py.detach(|| patterns.expand()))
    }
}

fn columns<'py>(py: Python<'py>, records: &[Record]) -> PyResult<Bytes<'py>> {
    Ok((
        numbers(py, records, |record| record.kind.to_ne_bytes())?,
        numbers(py, records, |record| record.offset.to_ne_bytes())?,
        numbers(py, records, |record| record.size.to_ne_bytes())?,
    ))
}

/// All records of a tree of loops, as `RecognisedTrace.json` writes it: the columns kind (u32), offset and size (i64), as bytes.
///
/// Raises InvalidError for what is no such tree, or has more than 2^32 records.
#[pyfunction]
fn pattern_expand<'py>(py: Python<'py>, tree_json: &str) -> PyResult<Bytes<'py>> {
    let value: Value = serde_json::from_str(tree_json).map_err(|e| invalid(format!("pattern: {e}; give a tree of loops")))?;
    let tree = tree_of(&value, DEPTH_MAX).ok_or_else(|| invalid("pattern: this is not a tree of loops; see docs/formats.md, Patterns".to_owned()))?;
    let records = py.detach(|| tree.expand());
    columns(py, &records.ok_or_else(|| invalid(format!("pattern: more than {RECORDS_MAX} records; make its loops shorter")))?)
}

fn tree_of(value: &Value, depth: usize) -> Option<Tree> {
    let number = |key: &str| value.get(key).and_then(Value::as_i64);
    let inner = match value.get("body") {
        None => Inner::Record { kind: u32::try_from(number("kind")?).ok()?, size: number("size")? },
        Some(body) => {
            let depth = depth.checked_sub(1)?;
            let body = body.as_array()?.iter().map(|part| tree_of(part, depth)).collect::<Option<_>>()?;
            Inner::Loop { count: value.get("count")?.as_u64()?, body }
        }
    };
    Some(Tree { at: number("at")?, stride: number("stride").unwrap_or(0), inner })
}

fn tree_json(tree: &Tree) -> Value {
    let (at, stride) = (tree.at, tree.stride);
    match &tree.inner {
        Inner::Record { kind, size } => json!({ "at": at, "stride": stride, "kind": kind, "size": size }),
        Inner::Loop { count, body } => {
            json!({ "at": at, "stride": stride, "count": count, "body": body.iter().map(tree_json).collect::<Vec<_>>() })
        }
    }
}

fn irregular_json(of: &Irregular) -> Value {
    json!({
        "kinds": of.kinds, "low": of.low, "high": of.high, "alignment_bytes": of.alignment_bytes, "size_min": of.size_min, "size_max": of.size_max,
        "size_classes": of.size_classes, "bytes": of.bytes, "forward": of.forward, "sequential": of.sequential, "backward": of.backward,
    })
}

fn segment_json(segment: &Segment) -> Value {
    let (first, records) = (segment.first, segment.records);
    match &segment.what {
        What::Regular(tree) => json!({ "first": first, "records": records, "loop": tree_json(tree) }),
        What::Irregular(irregular) => json!({ "first": first, "records": records, "irregular": irregular_json(irregular) }),
        What::Scattered(tree, places) => {
            json!({ "first": first, "records": records, "loop": tree_json(tree), "scattered": irregular_json(places) })
        }
    }
}
