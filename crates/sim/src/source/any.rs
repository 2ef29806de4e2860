//! A workload as JSON, whichever kind it is: the one place that tells a description from a trace.

use super::{Description, Generator, Loop, TraceSource};
use crate::{Error, Request, Source};
use serde::Deserialize;
use std::path::PathBuf;

/// A source of either kind.
pub enum Workload {
    /// Requests by arithmetic.
    Generated(Box<Generator>),
    /// Requests from a collected trace.
    Traced(Box<TraceSource>),
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

/// `{"version": 1, "kind": "trace", "path": .., "files": [..], "loop": "closed"}`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Traced {
    version: u32,
    #[serde(rename = "kind")]
    _kind: String,
    path: PathBuf,
    files: Vec<String>,
    #[serde(rename = "loop")]
    mode: LoopName,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum LoopName {
    Closed,
    Open,
}

impl Workload {
    /// The source that a JSON object describes: a [`Description`], or a trace where its key `kind` is `trace`.
    ///
    /// # Errors
    /// [`Error::Invalid`] with key and cure, [`Error::Trace`] with the trace's name.
    pub fn from_json(text: &str) -> Result<Workload, Error> {
        let wrong = |error: serde_json::Error| Error::Invalid(format!("the workload: {error}; see docs/formats.md"));
        let Kind { kind } = serde_json::from_str(text).map_err(wrong)?;
        if kind != "trace" {
            let generator = Generator::new(Description::from_json(text)?)?;
            return Ok(Workload::Generated(Box::new(generator)));
        }
        let traced: Traced = serde_json::from_str(text).map_err(wrong)?;
        if traced.version != 1 {
            return Err(Error::Invalid(format!("the workload: version = {} is unknown; give 1", traced.version)));
        }
        let mode = match traced.mode {
            LoopName::Closed => Loop::Closed,
            LoopName::Open => Loop::Open,
        };
        Ok(Workload::Traced(Box::new(TraceSource::open(&traced.path, &traced.files, mode)?)))
    }

    /// Requests in all, the pieces of one counted apart.
    #[must_use]
    pub fn requests(&self) -> u64 {
        match self {
            Workload::Generated(generator) => {
                generator.requests_per_process().saturating_mul(generator.pieces()).saturating_mul(u64::from(generator.processes()))
            }
            Workload::Traced(traced) => traced.requests(),
        }
    }
}

impl Source for Workload {
    fn processes(&self) -> u32 {
        match self {
            Workload::Generated(generator) => generator.processes(),
            Workload::Traced(traced) => traced.processes(),
        }
    }

    fn ended(&self) -> &[u32] {
        match self {
            Workload::Generated(generator) => generator.ended(),
            Workload::Traced(traced) => traced.ended(),
        }
    }

    #[inline]
    fn next(&mut self, process: u32) -> Result<Option<Request>, Error> {
        match self {
            Workload::Generated(generator) => generator.next(process),
            Workload::Traced(traced) => traced.next(process),
        }
    }
}
