//! Mechanical disks: seek, rotation, zones, switches, skew and cache of a drive described by its file, under any scheme of shingled writing
//! and any stream of block requests. All times are simulated.
//!
//! [`Mechanics`] is the moving parts of a [`DiskSpec`], [`TimedMedium`] what a scheme sees of them, [`run`] serves requests, and [`SimulatedDisk`] is a
//! device for other simulations.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod commands;
mod counts;
mod device;
mod drive;
mod error;
mod idle;
mod map;
mod medium;
mod queue;
mod run;
mod scheme;
mod settings;
mod time;
mod timed;

pub use counts::accounts::{Account, AccountReport, Accounts, AccountsReport, SeekRange};
pub use counts::latency::{Latencies, Latency};
pub use counts::report::{CounterReport, Report, TimeSplit};
pub use counts::stalls::StallReport;
pub use device::SimulatedDisk;
pub use drive::areas::{Area, Areas};
pub use drive::layout::{Layout, Place};
pub use drive::mechanics::{Mechanics, Motion};
pub use drive::spec::{CYLINDERS_MAX, DiskSpec, Overhead, Skew, TRACK_SECTORS_MAX, ZoneSpec};
pub use error::Error;
pub use map::{TrackMap, TrackRun, TrackState, track_map};
pub use medium::{CacheUse, TimedMedium};
pub use queue::QueueOrder;
pub use run::run;
pub use scheme::{SCHEMES, SchemeSpec};
pub use settings::{Arrivals, Background, CacheSpec, QueueSpec, SETTINGS_VERSION, Settings, Writes};
pub use timed::TimedScheme;
