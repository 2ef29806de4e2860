//! Synthetic workload paths for Python: a profile's JSON in, a file of a path out.

use std::fs::File;
use std::io::{BufWriter, Cursor};
use std::path::PathBuf;

use pyo3::prelude::*;
use serde_json::json;
use stripewise_pioneer::synthesis::{profile::Profile, synthesize, synthesize_among, weave, write::write};
use stripewise_workpath::Path;

use crate::errors::of_workload;

/// Adds what is here to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(pioneer_synthesize, module)?)?;
    module.add_function(wrap_pyfunction!(pioneer_weave, module)?)
}

/// Writes the synthetic path of a profile (docs/formats.md, Profile of a workload, as JSON with all keys) for so many processes; says as JSON what it has:
/// {"requests", "sessions", "files"}.
///
/// Raises WorkloadError for what is no such profile, would be too long a path, or cannot be written.
#[pyfunction]
fn pioneer_synthesize(py: Python<'_>, profile_json: &str, processes: u32, seed: u64, out: PathBuf) -> PyResult<String> {
    py.detach(|| {
        let profile: Profile = serde_json::from_str(profile_json).map_err(|e| format!("this is no profile ({e})"))?;
        let made = synthesize(&profile, processes, seed)?;
        let file = File::create(&out).map_err(|e| e.to_string())?;
        write(&profile, &made, seed, BufWriter::with_capacity(1 << 20, file)).map_err(|e| format!("the path cannot be written ({e})"))?;
        let found = json!({ "requests": made.filled.requests.len(), "sessions": made.frame.sessions.len(), "files": made.filled.files.len() });
        Ok(found.to_string())
    })
    .map_err(|e: String| of_workload(e))
}

/// Writes the mixture of a path by symbolic patterns (the file `patterns`) and the synthetic path of the profile of what these do not cover, for a traced run
/// of `sequence` requests in all; says as JSON what it has: {"patterns", "statistics", "files_of_patterns"}: requests of either, and how many files, the
/// first ones, are the patterns'.
///
/// Raises WorkloadError as `pioneer_synthesize`, and for patterns that cannot be taken apart.
#[pyfunction]
fn pioneer_weave(py: Python<'_>, profile_json: &str, processes: u32, seed: u64, patterns: PathBuf, sequence: u64, out: PathBuf) -> PyResult<String> {
    py.detach(|| {
        let profile: Profile = serde_json::from_str(profile_json).map_err(|e| format!("this is no profile ({e})"))?;
        let bytes = std::fs::read(&patterns).map_err(|e| e.to_string())?;
        let patterns = Path::parse(&bytes).map_err(|e| e.to_string())?;
        let count = weave::requests(&patterns)?;
        let (made, before) = synthesize_among(&profile, processes, seed, sequence, count)?;
        let written = |e: std::io::Error| format!("the path cannot be written ({e})");
        let own = write(&profile, &made, seed, Cursor::new(Vec::new())).map_err(written)?.into_inner();
        let statistics = Path::parse(&own).map_err(|e| e.to_string())?;
        let file = File::create(&out).map_err(written)?;
        weave::woven(&patterns, &statistics, processes, &before, BufWriter::with_capacity(1 << 20, file))?;
        Ok(json!({ "patterns": count, "statistics": before.len(), "files_of_patterns": patterns.tables.files.len() }).to_string())
    })
    .map_err(|e: String| of_workload(e))
}
