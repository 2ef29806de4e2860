//! Discrete-event simulation of clients, network, servers and devices: what a layout would do to a workload, at any scale.
//!
//! A [`Source`] yields the requests of each process, generated or read from a trace, one at a time: memory does not grow with their number. What
//! is reported is simulated and called so.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod ahead;
mod clients;
mod device;
mod engine;
mod error;
mod heap;
mod map;
mod mover;
mod report;
mod request;
mod scenario;
mod server;
pub mod source;
mod time;
mod timeline;
mod trials;

pub use device::{Device, DeviceAccess, DeviceSpec, Figures, Service, Startup};
#[doc(hidden)]
pub use engine::simulate_by_events;
pub use engine::{Plugged, simulate, simulate_on};
pub use error::Error;
pub use report::{Bucket, Latencies, LinkSum, Links, MoveReport, Report, ServerReport};
pub use request::{Request, Source, Start};
pub use scenario::{Copying, FileSpec, MoveSpec, Network, RegionSpec, SCENARIO_VERSION, Scenario, ServerSpec, Stripe};
pub use stripewise_chance::SplitMix64;
pub use trials::{Layout, Outcome, Trials};
