//! Mechanical disks: seek, rotation, zones, switches, skew and cache of a drive described by its file, under any scheme of shingled writing
//! and any stream of block requests. All times are simulated.
//!
//! [`Mechanics`] is the moving parts of a [`DiskSpec`], [`TimedMedium`] what a scheme sees of them, [`run`] serves requests, and [`SimulatedDisk`] is a
//! device for other simulations.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod accounts;
mod ahead;
mod areas;
mod behind;
mod commands;
mod device;
mod error;
mod idle;
mod latency;
mod layout;
mod map;
mod mechanics;
mod medium;
mod queue;
mod report;
mod run;
mod scheme;
mod seek;
mod settings;
mod spec;
mod stalls;
mod tally;
mod time;
mod timed;

pub use accounts::{Account, AccountReport, Accounts, AccountsReport, SeekRange};
pub use areas::{Area, Areas};
pub use device::SimulatedDisk;
pub use error::Error;
pub use latency::{Latencies, Latency};
pub use layout::{Layout, Place};
pub use map::{TrackMap, TrackRun, TrackState, track_map};
pub use mechanics::{Mechanics, Motion};
pub use medium::{CacheUse, TimedMedium};
pub use queue::QueueOrder;
pub use report::{CounterReport, Report, TimeSplit};
pub use run::run;
pub use scheme::{SCHEMES, SchemeSpec};
pub use settings::{Arrivals, Background, CacheSpec, QueueSpec, SETTINGS_VERSION, Settings, Writes};
pub use spec::{CYLINDERS_MAX, DiskSpec, Overhead, Skew, TRACK_SECTORS_MAX, ZoneSpec};
pub use stalls::StallReport;
pub use timed::TimedScheme;
