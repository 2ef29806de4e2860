//! IO-Engine's rules for Python: JSON text in and out.

use crate::errors::invalid;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;
use stripewise_engine::{Call, Contention, Count, Driver, Intent, Mode, Operation, Pattern, Regions, Why, advised_count, decide};

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
