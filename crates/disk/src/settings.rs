//! What a run is made of: the disk, how it is divided, the scheme on it, its cache, its queue, and what it does when nobody asks.

use serde::Deserialize;

use crate::drive::spec::DiskSpec;
use crate::error::Error;
use crate::queue::QueueOrder;
use crate::scheme::SchemeSpec;

pub const SETTINGS_VERSION: u32 = 1;

/// A run, but for its requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// [`SETTINGS_VERSION`].
    pub version: u32,
    /// The drive.
    pub disk: DiskSpec,
    /// Cylinders of a run of tracks on one surface; `None`: as the disk's layout says, but a band where that is cylinder by cylinder and the
    /// disk has several surfaces, for neighbours must lie on one surface to be shingled.
    #[serde(default)]
    pub run_cylinders: Option<u32>,
    /// Size of the random access zone, from the outermost track on.
    #[serde(default)]
    pub random_access_bytes: u64,
    /// Size of the E-region after it, which only `is` uses.
    #[serde(default)]
    pub e_region_bytes: u64,
    pub scheme: SchemeSpec,
    /// Logical blocks of 512 bytes that requests are for; `None`: all.
    #[serde(default)]
    pub used_blocks: Option<u64>,
    /// The same as a share of what the scheme has, 0 to 1; goes before `used_blocks`.
    #[serde(default)]
    pub used_share: Option<f64>,
    /// How many of them hold something when the run begins; `None`: all that are used.
    #[serde(default)]
    pub filled_blocks: Option<u64>,
    /// The same as a share of those that are used, 0 to 1; goes before `filled_blocks`.
    #[serde(default)]
    pub filled_share: Option<f64>,
    /// How the disk's memory is used.
    #[serde(default)]
    pub cache: CacheSpec,
    /// The order of service.
    #[serde(default)]
    pub queue: QueueSpec,
    /// Work of an idle disk; `None`: all work is done on demand.
    #[serde(default)]
    pub background: Option<Background>,
    /// When requests come.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Requests at the beginning that are served but not counted, until the disk is in the state that is of interest.
    #[serde(default)]
    pub warm_requests: u64,
    /// From which wait on a request counts as stalled.
    #[serde(default = "default_stall_bound_ms")]
    pub stall_bound_ms: f64,
}

/// How the disk's memory is used.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Reads fill segments, which are read ahead.
    #[serde(default)]
    pub reads: bool,
    /// Where writes end.
    #[serde(default)]
    pub writes: Writes,
}

/// When a write is done.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Writes {
    /// When it is on the medium.
    #[default]
    Through,
    /// When it is in the disk's memory.
    Back,
}

/// The queue of a disk.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// The order of service.
    #[serde(default)]
    pub order: QueueOrder,
    /// Requests that the disk holds at once, others wait before it in the order they came; `None`: all.
    #[serde(default)]
    pub depth: Option<u32>,
}

/// Work of an idle disk.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// How long nobody has asked when it begins.
    pub after_ms: f64,
    /// Steps that begin later than so long after that have to wait for the next idle time; `None`: all are done.
    #[serde(default)]
    pub budget_ms: Option<f64>,
}

/// When requests come.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At their arrival times.
    #[default]
    Open,
    /// Each when the one before is done.
    Closed,
}

impl Settings {
    /// From JSON text.
    ///
    /// # Errors
    /// Keys that are unknown or missing, values out of their limits.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let settings: Self = serde_json::from_str(text).map_err(|error| Error::key("settings", error, "correct the key"))?;
        settings.check()?;
        Ok(settings)
    }

    /// # Errors
    /// The first thing that cannot be, but for what only the scheme on its medium can tell.
    pub fn check(&self) -> Result<(), Error> {
        if self.version != SETTINGS_VERSION {
            return Err(Error::key("version", format!("is {}", self.version), &format!("give {SETTINGS_VERSION}, or use a version that knows it")));
        }
        self.disk.check()?;
        for (key, share) in [("used_share", self.used_share), ("filled_share", self.filled_share)] {
            if share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
                return Err(Error::key(key, format!("is {}", share.unwrap_or_default()), "give a share from 0 to 1"));
            }
        }
        if self.queue.depth == Some(0) {
            return Err(Error::key("queue.depth", "is 0", "give the requests that the disk holds at once, at least 1"));
        }
        let background = self
            .background
            .map(|background| [("background.after_ms", background.after_ms), ("background.budget_ms", background.budget_ms.unwrap_or(0.0))]);
        for (key, ms) in background.into_iter().flatten().chain([("stall_bound_ms", self.stall_bound_ms)]) {
            if !(0.0..=1e12).contains(&ms) {
                return Err(Error::key(key, format!("is {ms}"), "give milliseconds, at least 0"));
            }
        }
        self.scheme.check()
    }
}

fn default_stall_bound_ms() -> f64 {
    1000.0
}
