//! The engine: requests are cut into accesses, accesses are served, figures are counted.
//!
//! Two engines share everything but the calendar. Without a network an access arrives at its server when its request is issued, so servers
//! can be reserved on the spot and only clients need a calendar ([`direct`]). With one, links delay arrivals by different amounts and each
//! stage is an event ([`events`]); without costs of its own it must tell the same, which tests and the benchmark use.

mod core;
mod direct;
mod events;
mod link;
mod tally;

use crate::device::Device;
use crate::{Error, Report, Scenario, Source};

/// A device from outside: the position of its server, and the device.
pub type Plugged = (u32, Box<dyn Device>);

/// Runs a scenario on the requests of a source, to the end of its last request and its last move.
///
/// Same scenario, same requests: same report, to the bit.
///
/// # Errors
/// [`Error::Invalid`] for a scenario that fails its check or a request that names no file or has no bytes, [`Error::Trace`] from the source,
/// [`Error::Interrupted`] when `progress` says so.
pub fn simulate<S: Source>(scenario: &Scenario, source: &mut S, progress: &mut dyn FnMut(u64) -> bool) -> Result<Report, Error> {
    simulate_on(scenario, Vec::new(), source, progress)
}

/// The same with some servers' devices replaced by devices of the caller's, each of one channel.
///
/// # Errors
/// As [`simulate`], and [`Error::Invalid`] for a server that there is not.
pub fn simulate_on<S: Source>(
    scenario: &Scenario,
    plugged: Vec<Plugged>,
    source: &mut S,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Report, Error> {
    scenario.check()?;
    if scenario.network.establish_s > 0.0 || scenario.network.per_byte_s > 0.0 {
        return events::run(scenario, plugged, source, progress);
    }
    direct::run(scenario, plugged, source, progress)
}

/// [`simulate`] with an event for every access on an ordinary binary heap, network or not: what the quick way is compared with.
///
/// # Errors
/// As [`simulate`].
#[doc(hidden)]
pub fn simulate_by_events<S: Source>(scenario: &Scenario, source: &mut S, progress: &mut dyn FnMut(u64) -> bool) -> Result<Report, Error> {
    scenario.check()?;
    events::run(scenario, Vec::new(), source, progress)
}
