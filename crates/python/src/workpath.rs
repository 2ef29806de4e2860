//! Files of workload paths for Python (docs/formats.md, Workload path): what one holds, the requests of a rank as columns, and paths made by hand.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufWriter};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use serde_json::{Value, json};
use stripewise_workpath::node::{ALONE, APART, TOGETHER, TOGETHER_REST};
use stripewise_workpath::op::{Kind, Layer, OPS, Place};
use stripewise_workpath::{Class, Comm, Distribution, File, Group, Node, Numbers, Op, Path, PathWriter, Request, Tables, View, Who, check_playable};

use crate::errors::of_workload;
use crate::pricing::numbers;

/// Requests that are given to Python at a time, at most.
const REQUESTS_MAX: u64 = 1 << 27;

/// Adds what is here to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(workpath_ops, module)?)?;
    module.add_function(wrap_pyfunction!(workpath_info, module)?)?;
    module.add_function(wrap_pyfunction!(workpath_text, module)?)?;
    module.add_function(wrap_pyfunction!(workpath_from_json, module)?)?;
    module.add_function(wrap_pyfunction!(workpath_requests, module)?)
}

/// All operations as JSON: [{"name", "number", "kind", "place", "layer", "collective"}].
#[pyfunction]
fn workpath_ops() -> String {
    let one = |op: &Op| {
        let facts = op.facts();
        json!({
            "name": facts.name,
            "number": op.number(),
            "kind": if facts.kind == Kind::Data { "data" } else { "metadata" },
            "place": match facts.place { Place::Inside => "inside", Place::Outside => "outside", Place::Both => "both" },
            "layer": if facts.layer == Layer::Mpi { "mpi" } else { "posix" },
            "collective": facts.collective,
        })
    };
    Value::Array(OPS.iter().map(one).collect()).to_string()
}

fn read(path: &PathBuf) -> PyResult<Vec<u8>> {
    fs::read(path).map_err(|e| of_workload(format!("{}: cannot be read ({e}); give a path that 'stripewise synth' wrote", path.display())))
}

/// Works on the path of a file; what is wrong with that is a WorkloadError which names it.
fn with_path<T: Send>(py: Python<'_>, file: &PathBuf, work: impl FnOnce(&Path<'_>) -> Result<T, String> + Send) -> PyResult<T> {
    let bytes = read(file)?;
    let done = py.detach(|| {
        let path = Path::parse(&bytes).map_err(|e| e.to_string())?;
        work(&path)
    });
    done.map_err(|e| of_workload(format!("{}: {e}", file.display())))
}

/// A summary as JSON: {"version", "processes" (0 = any), "seed", "nodes", "requests" (of rank 0), "files": [...], "comms", "groups", "views",
/// "distributions", "numbers"}.
#[pyfunction]
fn workpath_info(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    with_path(py, &path, |path| {
        let tables = &path.tables;
        let files: Vec<Value> = tables.files.iter().map(file_json).collect();
        Ok(json!({
            "version": 1, "processes": tables.processes, "seed": tables.seed, "nodes": path.len(),
            "requests": path.count(0, tables.processes.max(1)), "files": files, "comms": tables.comms.len(), "groups": tables.groups.len(),
            "views": tables.views.len(), "distributions": tables.distributions.len(), "numbers": tables.numbers.len(),
        })
        .to_string())
    })
}

const CLASSES: [(&str, Class); 3] = [("root", Class::Root), ("shared", Class::Shared), ("private", Class::Private)];

fn file_json(file: &File) -> Value {
    let class = CLASSES.iter().find(|(_, class)| *class == file.class).map_or("", |(name, _)| name);
    json!({ "name": file.name, "class": class, "bytes": file.bytes, "present": file.present, "directory": file.directory })
}

fn who_text(who: Who) -> String {
    match who {
        Who::All => "all".to_owned(),
        Who::Root => "root".to_owned(),
        Who::AllButRoot => "all but root".to_owned(),
        Who::Last => "last".to_owned(),
        Who::AllButLast => "all but last".to_owned(),
        Who::Group(group) => format!("group {group}"),
    }
}

fn slack_text(node: &Node) -> String {
    let together = match (node.flags & TOGETHER != 0, node.flags & TOGETHER_REST != 0) {
        (false, false) => "",
        (true, true) => ", together",
        (true, false) => ", together in the first round",
        (false, true) => ", together in other rounds",
    };
    let slack = match (node.slack_first, node.slack_rest) {
        (0, 0) if node.slack_ns == 0 => String::new(),
        (0, 0) => format!(" slack {} ns", node.slack_ns),
        (first, rest) => format!(" slack {} ns, distributions {first} and {rest}", node.slack_ns),
    };
    format!("{together}{slack}")
}

/// A listing as a JSON string, a line for each node, bodies of loops moved to the right.
#[pyfunction]
fn workpath_text(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    with_path(py, &path, |path| {
        let mut out = String::new();
        let mut ends: Vec<usize> = Vec::new();
        for index in 0..path.len() {
            while ends.last() == Some(&index) {
                ends.pop();
            }
            let Some(node) = path.node(index) else { continue };
            let (depth, Node { at, at_rank, stride, size, table, .. }) = (2 * ends.len(), node);
            let place = format!("at {at} + {at_rank} a rank + {stride} a round");
            let table = if table == 0 { String::new() } else { format!(", numbers {table}") };
            let (who, slack) = (who_text(node.who), slack_text(&node));
            let written = match node.op {
                None => {
                    ends.push(index + 1 + node.link as usize);
                    writeln!(out, "{index:6} {:depth$}{size} times, {who}, {place}{table}", "")
                }
                Some(op) => {
                    let name = path.tables.files.get(node.link as usize).map_or("", |file| file.name.as_str());
                    writeln!(out, "{index:6} {:depth$}{} {} size {size}, {who}, {place}{table}{slack}", "", op.name(), name.escape_debug())
                }
            };
            written.map_err(|e| e.to_string())?;
        }
        Ok(Value::String(out).to_string())
    })
}

/// The requests of a rank in columns, as bytes: op (u8), file (u32), offset (i64, -1 = none), size (u64), slack_ns (u64), together (u8), comm (u16),
/// node (u32).
///
/// Raises WorkloadError for a file that is no path, a number of processes that it cannot be played by, and beyond 2^27 requests.
#[pyfunction]
fn workpath_requests<'py>(py: Python<'py>, path: PathBuf, processes: u32, rank: u32) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let made: Vec<Request> = with_path(py, &path, |path| {
        check_playable(path, processes).map_err(|e| e.to_string())?;
        if rank >= processes {
            return Err(format!("there is no rank {rank} of {processes} processes; give one below"));
        }
        let count = path.count(rank, processes);
        if count > REQUESTS_MAX {
            return Err(format!("{count} requests are more than {REQUESTS_MAX}; make a smaller path"));
        }
        Ok(path.requests(rank, processes).collect())
    })?;
    Ok(vec![
        numbers(py, &made, |one| [one.op.number()])?,
        numbers(py, &made, |one| one.file.to_ne_bytes())?,
        numbers(py, &made, |one| one.offset.to_ne_bytes())?,
        numbers(py, &made, |one| one.size.to_ne_bytes())?,
        numbers(py, &made, |one| one.slack_ns.to_ne_bytes())?,
        numbers(py, &made, |one| [u8::from(one.together)])?,
        numbers(py, &made, |one| one.comm.to_ne_bytes())?,
        numbers(py, &made, |one| one.node.to_ne_bytes())?,
    ])
}

/// A path as a person writes it for a test; see `workpath_from_json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    processes: u32,
    #[serde(default)]
    seed: u64,
    files: Vec<WrittenFile>,
    #[serde(default)]
    comms: Vec<WrittenComm>,
    #[serde(default)]
    groups: Vec<WrittenGroup>,
    #[serde(default)]
    distributions: Vec<WrittenDistribution>,
    #[serde(default)]
    views: Vec<WrittenView>,
    #[serde(default)]
    numbers: Vec<Vec<(i64, i64, u64)>>,
    nodes: Vec<WrittenNode>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFile {
    name: String,
    class: String,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    present: bool,
    #[serde(default)]
    directory: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenComm {
    World,
    #[serde(rename = "self")]
    Own,
    Blocks(u32),
    Congruent(u32),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenGroup {
    Span(u32, u32),
    Congruent(u32, u32),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenDistribution {
    Values(Vec<(u64, u64)>),
    Quantiles(Vec<u64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenView {
    piece: u64,
    distance: u64,
    pieces: u64,
    tile: u64,
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "lowercase")]
enum WrittenWho {
    All,
    Root,
    #[serde(rename = "all but root")]
    AllButRoot,
    Last,
    #[serde(rename = "all but last")]
    AllButLast,
    Group(u8),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenNode {
    op: Option<String>,
    rounds: Option<u64>,
    #[serde(default)]
    body: Vec<WrittenNode>,
    #[serde(default)]
    file: u32,
    who: Option<WrittenWho>,
    #[serde(default)]
    alone: bool,
    #[serde(default)]
    apart: bool,
    #[serde(default)]
    together_first: bool,
    #[serde(default)]
    together_rest: bool,
    #[serde(default)]
    comm: u16,
    #[serde(default)]
    view: u16,
    #[serde(default)]
    table: u32,
    #[serde(default)]
    at: i64,
    #[serde(default)]
    at_rank: i64,
    #[serde(default)]
    stride: i64,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    slack_ns: u64,
    #[serde(default)]
    slack_first: u32,
    #[serde(default)]
    slack_rest: u32,
}

/// Writes a path from its JSON form: {"processes", "seed", "files": [{"name", "class", "bytes", "present", "directory"}], "comms": ["world", "self",
/// {"blocks": k}, {"congruent": k}], "groups": [{"span": [low, high]}, {"congruent": [by, rest]}], "distributions": [{"values": [[ns, weight]]},
/// {"quantiles": [ns]}], "views": [{"piece", "distance", "pieces", "tile"}], "numbers": [[[at, stride, size] of each rank]], "nodes": [{"op", "file", "who",
/// "comm", "view", "table", "at", "at_rank", "stride", "size", "slack_ns", "slack_first", "slack_rest", "alone", "apart", "together_first",
/// "together_rest"} or {"rounds", "body": [...]}]}.
///
/// Raises WorkloadError for what is no such path.
#[pyfunction]
fn workpath_from_json(py: Python<'_>, text: &str, out: PathBuf) -> PyResult<()> {
    py.detach(|| from_json(text))
        .and_then(|bytes| fs::write(&out, bytes).map_err(|e| e.to_string()))
        .map_err(|e| of_workload(format!("{}: {e}", out.display())))
}

fn from_json(text: &str) -> Result<Vec<u8>, String> {
    let written: Written = serde_json::from_str(text).map_err(|e| format!("this is not the JSON form of a path ({e})"))?;
    let mut nodes = Vec::new();
    flattened(&written.nodes, &mut nodes)?;
    let tables = tables_of(written)?;
    let io = |e: io::Error| e.to_string();
    let mut writer = PathWriter::new(BufWriter::new(io::Cursor::new(Vec::new()))).map_err(io)?;
    for node in &nodes {
        writer.node(node).map_err(io)?;
    }
    let finish = |writer: PathWriter<_>, requests| writer.finish(&tables, requests).map_err(io);
    let bytes = finish(writer, 0)?.into_inner().map_err(|e| e.to_string())?.into_inner();
    // Once more, with the number of requests that only a whole path tells.
    let requests = Path::parse(&bytes).map_err(|e| e.to_string())?.count(0, tables.processes.max(1));
    let mut writer = PathWriter::new(BufWriter::new(io::Cursor::new(Vec::new()))).map_err(io)?;
    for node in &nodes {
        writer.node(node).map_err(io)?;
    }
    Ok(writer.finish(&tables, requests).map_err(io)?.into_inner().map_err(|e| e.to_string())?.into_inner())
}

fn flattened(written: &[WrittenNode], nodes: &mut Vec<Node>) -> Result<(), String> {
    for one in written {
        let index = nodes.len();
        let base = match (&one.op, one.rounds) {
            (Some(name), None) => Node::request(Op::named(name).ok_or_else(|| format!("node {index}: '{name}' is no operation"))?, one.file),
            (None, Some(rounds)) => Node::rounds(rounds, 0),
            _ => return Err(format!("node {index}: give one of 'op' and 'rounds'")),
        };
        let who = match one.who {
            None | Some(WrittenWho::All) => Who::All,
            Some(WrittenWho::Root) => Who::Root,
            Some(WrittenWho::AllButRoot) => Who::AllButRoot,
            Some(WrittenWho::Last) => Who::Last,
            Some(WrittenWho::AllButLast) => Who::AllButLast,
            Some(WrittenWho::Group(group)) => Who::Group(group),
        };
        let (comm, view, table, at, at_rank, stride) = (one.comm, one.view, one.table, one.at, one.at_rank, one.stride);
        let (slack_ns, slack_first, slack_rest) = (one.slack_ns, one.slack_first, one.slack_rest);
        let given = [(one.alone, ALONE), (one.apart, APART), (one.together_first, TOGETHER), (one.together_rest, TOGETHER_REST)];
        let flags = given.iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, flag)| flags | flag);
        let size = one.rounds.unwrap_or(one.size);
        nodes.push(Node { who, flags, comm, view, table, at, at_rank, stride, size, slack_ns, slack_first, slack_rest, ..base });
        if one.rounds.is_some() {
            flattened(&one.body, nodes)?;
            let body = u32::try_from(nodes.len() - index - 1).map_err(|e| e.to_string())?;
            if let Some(node) = nodes.get_mut(index) {
                node.link = body;
            }
        }
    }
    Ok(())
}

fn tables_of(written: Written) -> Result<Tables, String> {
    let file = |file: WrittenFile| {
        let class = CLASSES.iter().find(|(name, _)| *name == file.class).map(|(_, class)| *class);
        let class = class.ok_or_else(|| format!("file '{}': '{}' is no class; give root, shared or private", file.name, file.class))?;
        Ok(File { class, name: file.name, bytes: file.bytes, present: file.present, directory: file.directory })
    };
    let ranks = written.processes as usize;
    if written.numbers.iter().any(|entry| entry.len() != ranks) {
        return Err(format!("an entry of 'numbers' is not of {ranks} ranks"));
    }
    Ok(Tables {
        processes: written.processes,
        seed: written.seed,
        files: written.files.into_iter().map(file).collect::<Result<_, String>>()?,
        comms: written
            .comms
            .iter()
            .map(|comm| match *comm {
                WrittenComm::World => Comm::World,
                WrittenComm::Own => Comm::Own,
                WrittenComm::Blocks(ranks) => Comm::Blocks(ranks),
                WrittenComm::Congruent(by) => Comm::Congruent(by),
            })
            .collect(),
        groups: written
            .groups
            .iter()
            .map(|group| match *group {
                WrittenGroup::Span(low, high) => Group::Span { low, high },
                WrittenGroup::Congruent(by, rest) => Group::Congruent { by, rest },
            })
            .collect(),
        distributions: written
            .distributions
            .into_iter()
            .map(|distribution| match distribution {
                WrittenDistribution::Values(values) => Distribution::Values(values),
                WrittenDistribution::Quantiles(quantiles) => Distribution::Quantiles(quantiles),
            })
            .collect(),
        views: written.views.iter().map(|view| View { piece: view.piece, distance: view.distance, pieces: view.pieces, tile: view.tile }).collect(),
        numbers: written
            .numbers
            .into_iter()
            .map(|entry| entry.into_iter().map(|(at, stride, size)| Numbers { at, stride, size }).collect())
            .collect(),
    })
}
