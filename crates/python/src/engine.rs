//! IO-Engine for Python: its rules, and the memory in which the processes of a run decide. JSON text in and out.

use std::sync::atomic::Ordering::Relaxed;

use crate::errors::invalid;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use stripewise_engine::shared::board::{Board, MAGIC, Note, NotedSieving};
use stripewise_engine::shared::site::{Policy, Reason, mode_number, mode_of};
use stripewise_engine::{Call, Contention, Count, Driver, Intent, Mode, Operation, Pattern, Regions, Why, advised_count, decide};
use stripewise_trace::clock::calibrate;

/// What is known of a file's calls; sizes in bytes, numbers from 1 on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Inputs {
    write: bool,
    strided: bool,
    processes: u32,
    nodes: u32,
    cb_nodes: Option<u32>,
    request_bytes: u64,
    region_bytes: u64,
    stripes: u32,
    stripe_bytes: u64,
    /// Requests begin at multiples of the stripe.
    is_aligned: bool,
    /// There are so many.
    targets: u32,
    lustre: bool,
    /// The file is to be made.
    is_new: bool,
}

/// What IO-Engine decides for a file's calls by rule, as JSON: {"count", "count_why", "contention", "stripe_bytes", "mode", "why", "aggregators",
/// "aggregators_most", "is_chasm", "co_ratio", "buffer_bytes"}. The count of a new file is the advised one, and the rest is for it.
///
/// Raises InvalidError for numbers of which none may be 0.
#[pyfunction]
pub fn engine_rules(inputs_json: &str) -> PyResult<String> {
    let inputs: Inputs = serde_json::from_str(inputs_json).map_err(|error| invalid(error.to_string()))?;
    let numbers = [inputs.processes, inputs.nodes, inputs.cb_nodes.unwrap_or(1), inputs.stripes, inputs.targets];
    if numbers.contains(&0) || [inputs.request_bytes, inputs.region_bytes, inputs.stripe_bytes].contains(&0) {
        return Err(invalid("a number of the engine's inputs is 0; give 1 or more".to_owned()));
    }
    let count = match (inputs.is_new, inputs.lustre) {
        (true, true) => advised_count(inputs.stripes, inputs.targets),
        // No driver counts its aggregators by stripes.
        (true, false) if inputs.stripes > inputs.targets => Count::Cut(inputs.targets),
        _ => Count::Kept(inputs.stripes),
    };
    let operation = if inputs.write { Operation::Write } else { Operation::Read };
    let pattern = if inputs.strided { Pattern::Strided } else { Pattern::Contiguous };
    let decided = decide(&Call {
        operation,
        pattern,
        processes: inputs.processes,
        nodes: inputs.nodes,
        cb_nodes: inputs.cb_nodes,
        request_bytes: inputs.request_bytes,
        stripes: count.count(),
        driver: if inputs.lustre { Driver::Lustre } else { Driver::Other },
        is_old: !inputs.is_new,
    });
    let regions = Regions { request: inputs.request_bytes, region: inputs.region_bytes, stripe: inputs.stripe_bytes };
    let intent = if inputs.write { Intent::Write } else { Intent::Read };
    let found = json!({
        "count": count.count(),
        "count_why": match count {
            Count::Kept(_) => "kept",
            Count::Cut(_) => "cut",
            Count::Rounded(_) => "rounded",
        },
        "contention": match regions.contention(pattern, inputs.is_aligned) {
            Contention::Least => "least",
            Contention::Aligned => "aligned",
            Contention::Moderate => "moderate",
            Contention::AtEnds => "at ends",
            Contention::Most => "most",
        },
        "stripe_bytes": intent.stripe_bytes(regions),
        "mode": match decided.mode {
            Mode::Independent => "independent",
            Mode::Collective => "collective",
        },
        "why": match decided.why {
            Why::Read => "read",
            Why::ContiguousWrite => "contiguous write",
            Why::StridedWrite => "strided write",
            Why::Chasm => "chasm",
        },
        "aggregators": decided.aggregators.count,
        "aggregators_most": decided.aggregators.most,
        "is_chasm": decided.aggregators.is_chasm,
        "co_ratio": decided.co_ratio,
        "buffer_bytes": decided.buffer_bytes,
    });
    Ok(found.to_string())
}

/// What was known of one operation on a file before a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    /// Its absolute name.
    file: String,
    write: bool,
    processes: u32,
    independent: bool,
    /// What the other mode costs over this one.
    ratio: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    policy: String,
    overrides: bool,
    known: Vec<Known>,
}

const BOARD_WORDS: usize = Board::BYTES.div_ceil(8);

fn operation_of(write: bool) -> Operation {
    if write { Operation::Write } else { Operation::Read }
}

/// The memory in which the processes of a run decide, before the first of them. `begin_json` is {"policy": "price", "rules" or "dry", "overrides", "known":
/// [{"file", "write", "processes", "independent", "ratio"}]}.
///
/// Raises InvalidError for a policy that there is not.
#[pyfunction]
pub fn engine_board(begin_json: &str) -> PyResult<Vec<u8>> {
    let begin: Begin = serde_json::from_str(begin_json).map_err(|error| invalid(error.to_string()))?;
    let policy = match begin.policy.as_str() {
        "price" => Policy::Price,
        "rules" => Policy::Rules,
        "dry" => Policy::Dry,
        other => return Err(invalid(format!("there is no policy '{other}'; give price, rules or dry"))),
    };
    let mut words = vec![0u64; BOARD_WORDS];
    let board = Board::of(&mut words).ok_or_else(|| invalid("the board is too short".to_owned()))?;
    for known in &begin.known {
        if let Some(note) = board.note(known.file.as_bytes(), operation_of(known.write), known.processes) {
            note.known_mode.store(mode_number(if known.independent { Mode::Independent } else { Mode::Collective }), Relaxed);
            note.known_ratio.store(known.ratio.unwrap_or(0.0).to_bits(), Relaxed);
        }
    }
    let (ticks, ns) = calibrate();
    board.begin(policy, begin.overrides, ticks, ns);
    Ok(words.iter().flat_map(|word| word.to_ne_bytes()).collect())
}

/// What became of a run, from its board: {"files": [{"file", "write", "processes", "opens", "calls", "independent", "bytes", "contests", "changes", "mode",
/// "reason", "strided", "ratio", "collective_s_per_byte", "independent_s_per_byte", "sieving": null or {"is_sieved", "servers", "piece_bytes", "stride_bytes",
/// "sieved_ns", "unsieved_ns"}}], "unposted", "unnoted"}. Of a file that was not used nothing is told.
///
/// Raises InvalidError for anything else.
#[pyfunction]
pub fn engine_board_told(bytes: &[u8]) -> PyResult<String> {
    let mut words: Vec<u64> = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes)).collect();
    let board = Board::of(&mut words).filter(|board| board.magic.load(Relaxed) == MAGIC);
    let board = board.ok_or_else(|| invalid("is no board of this version".to_owned()))?;
    let (ticks, ns) = calibrate();
    let ticks = ticks.saturating_sub(board.ticks.load(Relaxed)) as f64;
    let tick_s = ns.saturating_sub(board.ns.load(Relaxed)) as f64 / 1e9 / ticks.max(1.0);
    let files: Vec<Value> = board.notes().filter(|note| note.calls.load(Relaxed) > 0).map(|note| told(note, tick_s)).collect();
    Ok(json!({"files": files, "unposted": board.unposted.load(Relaxed), "unnoted": board.unnoted.load(Relaxed)}).to_string())
}

fn told(note: &Note, tick_s: f64) -> Value {
    let (name, length) = note.name();
    let [collective, independent] =
        note.price.each_ref().map(|price| f64::from_bits(price.load(Relaxed))).map(|price| (price > 0.0).then_some(price * tick_s));
    let reason = match Reason::of(note.reason.load(Relaxed)) {
        Reason::Unknown => "unknown",
        Reason::Read => "read",
        Reason::Contiguous => "contiguous",
        Reason::Strided => "strided",
        Reason::Crowded => "crowded",
        Reason::Profile => "profile",
        Reason::Given => "given",
        Reason::Alone => "alone",
        Reason::Deferred => "deferred",
        Reason::Scattered => "scattered",
    };
    json!({
        "file": String::from_utf8_lossy(name.get(..length).unwrap_or(&[])),
        "write": note.operation.load(Relaxed) == Operation::Write as u32,
        "processes": note.processes.load(Relaxed),
        "opens": note.opens.load(Relaxed),
        "calls": note.calls.load(Relaxed),
        "independent": note.independent.load(Relaxed),
        "bytes": note.bytes.load(Relaxed),
        "contests": note.contests.load(Relaxed),
        "changes": note.changes.load(Relaxed),
        "mode": mode_of(note.mode.load(Relaxed)).map(|mode| if mode == Mode::Independent { "independent" } else { "collective" }),
        "reason": reason,
        "strided": match note.pattern.load(Relaxed) {
            1 => Some(true),
            2 => Some(false),
            _ => None,
        },
        "ratio": Some(f64::from_bits(note.ratio.load(Relaxed))).filter(|ratio| *ratio > 0.0),
        "collective_s_per_byte": collective,
        "independent_s_per_byte": independent,
        "sieving": sieving(&note.sieving),
    })
}

fn sieving(noted: &NotedSieving) -> Option<Value> {
    let is_sieved = match noted.way.load(Relaxed) {
        1 => true,
        2 => false,
        _ => return None,
    };
    Some(json!({
        "is_sieved": is_sieved,
        "servers": noted.servers.load(Relaxed),
        "piece_bytes": noted.piece_bytes.load(Relaxed),
        "stride_bytes": noted.stride_bytes.load(Relaxed),
        "sieved_ns": noted.sieved_ns.load(Relaxed),
        "unsieved_ns": noted.unsieved_ns.load(Relaxed),
    }))
}
