//! The description of a generated workload, as JSON (docs/formats.md, Workload description): what is asked for, checked as a whole.

use crate::Error;
use crate::request::REQUEST_BYTES_MAX;
use serde::Deserialize;

/// Bytes of a file at most, and of all offsets.
const OFFSET_MAX: u64 = 1 << 62;
/// Windows of a run, pieces of a request.
const COUNT_MAX: u64 = 1 << 20;
/// Requests of a process in a phase.
const REQUESTS_MAX: u64 = 1 << 48;
/// A run's windows span less than this.
const SPAN_S_MAX: f64 = 1e9;
/// Sizes that requests are drawn from.
const SIZES_MAX: usize = 64;

/// How a process walks through the file; each is drawn in `workloads/pattern.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Sequential,
    Interleaved,
    Strided,
    Random,
    Zipf,
    Nested,
    Tiles,
}

impl Kind {
    /// Whether a request is several pieces.
    pub(super) fn in_pieces(self) -> bool {
        matches!(self, Kind::Strided | Kind::Nested | Kind::Tiles)
    }
}

/// One file for all processes, or one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Files {
    Shared,
    PerProcess,
}

/// How think times are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Think {
    Constant,
    Exponential,
}

/// How requests of an open loop arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Arrivals {
    Poisson,
    Fixed,
}

/// A workload as arithmetic. Times are seconds, sizes bytes; keys and meaning as in docs/formats.md.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    pub(super) version: u32,
    pub(super) kind: Kind,
    pub(super) processes: u32,
    /// (bytes, weight) of every size that is drawn.
    pub(super) request_bytes: Vec<(u64, f64)>,
    pub(super) file_bytes: u64,
    pub(super) files: Files,
    pub(super) region_bytes: u64,
    pub(super) alpha: f64,
    pub(super) pieces: u64,
    pub(super) gap_bytes: u64,
    /// Of each process; `None`: those that cover the file once.
    pub(super) reads: Option<u64>,
    pub(super) writes: Option<u64>,
    pub(super) windows: u64,
    pub(super) shift: u64,
    pub(super) window_seconds: f64,
    pub(super) think_s: f64,
    pub(super) think: Think,
    /// Requests per second of all processes together; 0: closed loop.
    pub(super) rate_per_s: f64,
    pub(super) arrivals: Arrivals,
    pub(super) collective: bool,
    pub(super) seed: u64,
}

impl Description {
    /// The description in a JSON object.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the key and the cure.
    pub fn from_json(text: &str) -> Result<Description, Error> {
        let described: Description = serde_json::from_str(text).map_err(|error| Error::Invalid(format!("the workload description: {error}")))?;
        described.check()?;
        Ok(described)
    }

    /// Whether all processes work on one file.
    pub(super) fn is_shared(&self) -> bool {
        self.files == Files::Shared
    }

    /// The largest request.
    pub(super) fn largest_bytes(&self) -> u64 {
        self.request_bytes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0)
    }

    fn check(&self) -> Result<(), Error> {
        let sane = |number: f64, most: f64| (0.0..=most).contains(&number);
        let fits = [
            (self.version == 1, "version: only 1 is known; upgrade stripewise"),
            (self.processes > 0, "processes = 0 makes no request; give at least 1"),
            ((1..=SIZES_MAX).contains(&self.request_bytes.len()), "request_bytes: give 1 to 64 sizes"),
            (self.request_bytes.iter().all(|(_, weight)| sane(*weight, 1e12)), "request_bytes: a weight is not a number from 0 to 1e12; correct it"),
            (self.request_bytes.iter().any(|(_, weight)| *weight > 0.0), "request_bytes: all weights are 0; give one that is not"),
            (
                self.request_bytes.iter().all(|(bytes, _)| (1..=REQUEST_BYTES_MAX).contains(bytes)),
                "request_bytes: a size is not from 1 byte to 1 TiB; correct it",
            ),
            (self.file_bytes <= OFFSET_MAX, "file_bytes is above 2^62; give a smaller file"),
            (self.region_bytes > 0, "region_bytes = 0 is not a region; give at least the request size"),
            ((1..=COUNT_MAX).contains(&self.pieces), "pieces is not from 1 to 2^20; correct it"),
            (self.gap_bytes <= OFFSET_MAX, "gap_bytes is above 2^62; give a smaller gap"),
            ((1..=COUNT_MAX).contains(&self.windows), "windows is not from 1 to 2^20; correct it"),
            (self.reads.unwrap_or(0) <= REQUESTS_MAX, "reads is above 2^48; give fewer"),
            (self.writes.unwrap_or(0) <= REQUESTS_MAX, "writes is above 2^48; give fewer"),
            (sane(self.alpha, 20.0), "alpha is not from 0 to 20; correct it"),
            (sane(self.window_seconds, 1e6), "window_seconds is not from 0 to 1e6; correct it"),
            (sane(self.think_s, 1e6), "think_s is not from 0 to 1e6; correct it"),
            (sane(self.rate_per_s, 1e12), "rate_per_s is not from 0 to 1e12; correct it"),
        ];
        if let Some((_, problem)) = fits.iter().find(|(fits, _)| !fits) {
            return Err(Error::Invalid((*problem).to_owned()));
        }
        self.check_together()
    }

    fn check_together(&self) -> Result<(), Error> {
        let invalid = |text: String| Err(Error::Invalid(text));
        let odd = |bytes: u64| self.kind.in_pieces() && !bytes.is_multiple_of(self.pieces);
        if let Some((bytes, _)) = self.request_bytes.iter().find(|(bytes, _)| odd(*bytes)) {
            return invalid(format!("request_bytes = {bytes} is not a multiple of pieces ({}); change one of them", self.pieces));
        }
        if self.gap_bytes > 0 && matches!(self.kind, Kind::Zipf | Kind::Nested | Kind::Tiles) {
            return invalid("gap_bytes: zipf, nested and tiles have no gaps; leave it out".to_owned());
        }
        if self.rate_per_s > 0.0 {
            for (given, key) in [(self.think_s > 0.0, "think_s"), (self.window_seconds > 0.0, "window_seconds"), (self.collective, "collective")] {
                if given {
                    return invalid(format!("{key}: belongs to a closed loop, but rate_per_s makes the loop open; give one of the two"));
                }
            }
        }
        if self.windows as f64 * self.window_seconds > SPAN_S_MAX {
            return invalid("window_seconds times windows is above 1e9 s; use shorter windows".to_owned());
        }
        // The whole of what all processes span must be within a file's offsets, products included.
        let widest = u128::from(self.largest_bytes()) + u128::from(self.gap_bytes);
        if widest * u128::from(self.processes) * u128::from(self.pieces) > u128::from(OFFSET_MAX) {
            return invalid("request_bytes times processes and pieces is above 2^62; use smaller requests".to_owned());
        }
        Ok(())
    }
}
