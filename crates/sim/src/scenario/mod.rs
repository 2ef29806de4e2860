//! What is simulated besides the requests: servers, network, files with their regions, moves. Read from JSON, checked once, then trusted.
//!
//! Times are seconds, sizes bytes. Unknown keys are refused: a misspelt one would silently simulate something else.

mod check;

pub(crate) use check::MAX_LOGICAL;
use serde::Deserialize;

use crate::Error;
use crate::device::DeviceSpec;

/// The version of the format that this library reads.
pub const SCENARIO_VERSION: u32 = 1;

/// Everything but the requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// [`SCENARIO_VERSION`].
    pub version: u32,
    /// Seed of everything that is drawn by chance.
    #[serde(default = "one_u64")]
    pub seed: u64,
    /// The servers; cycles name them by their position.
    pub servers: Vec<ServerSpec>,
    /// The network; without it moving bytes costs nothing.
    #[serde(default)]
    pub network: Network,
    /// Cycles of stripes that regions share.
    pub cycles: Vec<Vec<Stripe>>,
    /// The files; requests name them by their position.
    pub files: Vec<FileSpec>,
    /// Spans that get a new home during the run, in the order in which they are copied.
    #[serde(default)]
    pub moves: Vec<MoveSpec>,
    /// How moves are copied.
    #[serde(default)]
    pub copy: Copying,
    /// Bytes that are fetched ahead of a process that reads a file in sequence; 0 = no read-ahead.
    #[serde(default)]
    pub read_ahead_bytes: u64,
    /// At most so many buckets in the report's timeline.
    #[serde(default = "hundred")]
    pub timeline_buckets: u32,
    /// Whether [`crate::Report::in_flight_s`] is wanted: 16 bytes per request are kept for it.
    #[serde(skip)]
    pub in_flight: bool,
}

/// One server: a device behind a queue, and a link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// Name in the report.
    pub name: String,
    pub device: DeviceSpec,
    /// A mechanical disk under a scheme of shingled writing in place of `device`, whose figures then are only what planners believe of it.
    #[serde(default)]
    pub disk: Option<Box<stripewise_disk::Settings>>,
}

/// Links of client nodes and servers. All zero = no network is simulated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Time to establish one connection, `e` of cost-models section 1: paid per access at the server's link.
    #[serde(default)]
    pub establish_s: f64,
    /// Transfer time of a byte on any link, `t` of cost-models section 1.
    #[serde(default)]
    pub per_byte_s: f64,
    /// Processes that share a client node's link: `c` consecutive ones.
    #[serde(default = "one_u32")]
    pub processes_per_node: u32,
}

impl Default for Network {
    fn default() -> Self {
        Network { establish_s: 0.0, per_byte_s: 0.0, processes_per_node: 1 }
    }
}

/// One entry of a cycle; in JSON `[server, width_bytes]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Stripe {
    /// Position of the server.
    pub server: u32,
    /// Bytes of one stripe, at least 1.
    pub width_bytes: u64,
}

/// A file and where its bytes lie.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// Name in errors.
    pub name: String,
    /// Size: where read-ahead ends, and how far apart the files lie on a disk.
    pub size_bytes: u64,
    /// Sorted, without gaps, from 0; the last one repeats for ever.
    pub regions: Vec<RegionSpec>,
}

/// One region; in JSON `[start, len, cycle, first]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct RegionSpec {
    /// First byte in the file.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Position of the cycle.
    pub cycle: u32,
    /// The entry of the cycle on which the region's first stripe lies.
    pub first: u32,
}

/// One span that gets a new home: one region from `start`, `len` long.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveSpec {
    /// When its copy begins, unless the move before is still being copied.
    pub at_s: f64,
    /// Position of the file.
    pub file: u32,
    /// First byte of the span.
    pub start: u64,
    /// Bytes of the span.
    pub len: u64,
    /// Cycle of the new home.
    pub cycle: u32,
    /// Its first entry.
    #[serde(default)]
    pub first: u32,
}

/// How the mover copies.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copying {
    /// Bytes read, then written, at a time.
    #[serde(default = "chunk")]
    pub chunk_bytes: u64,
    /// Chunks under way at once.
    #[serde(default = "one_u32")]
    pub in_flight: u32,
    /// Chunks begin no faster than this; 0 = as fast as the servers allow.
    #[serde(default)]
    pub rate_bytes_per_s: f64,
}

impl Default for Copying {
    fn default() -> Self {
        Copying { chunk_bytes: chunk(), in_flight: 1, rate_bytes_per_s: 0.0 }
    }
}

impl Scenario {
    /// Reads and checks a scenario.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the first key that is wrong and what to do about it.
    pub fn from_json(text: &str) -> Result<Scenario, Error> {
        let scenario = Scenario::unchecked(text)?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Reads a scenario that lacks something yet.
    pub(crate) fn unchecked(text: &str) -> Result<Scenario, Error> {
        serde_json::from_str(text).map_err(|e| Error::Invalid(format!("scenario: {e}; correct it there")))
    }
}

fn one_u32() -> u32 {
    1
}

fn one_u64() -> u64 {
    1
}

fn hundred() -> u32 {
    100
}

fn chunk() -> u64 {
    8 << 20
}
