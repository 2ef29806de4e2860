//! Probing an emulated target: accesses are reserved on the device clock that programs share and waited for as programs wait. A series is kept in
//! flight by one thread, which reserves ahead and then waits for each: the device does not rest while the thread sleeps, so that the distance of two
//! completions is the device's own time and the timer's lateness cancels out.
//!
//! The caller holds the store exclusively. The counters say what programs and movers did, so what the probe added is taken back at the end (after
//! a kill it stays in them until the next boot). The position stays where the last access left it, and the device is idle again.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_target::devices::{Access, DeviceLine};
use stripewise_target::kind::{DeviceModel, Kind};
use stripewise_target::names::object_key;
use stripewise_target::time::{now_ns, sleep_until};

use super::{CLOCK_IN_FLIGHT_MAX, Series, Timed};
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::medium::DevicesMap;
use crate::admin::store::Store;

/// The object that a probe's accesses name: no file has this id.
const PROBE_OBJECT: u64 = u64::MAX;

/// Offsets of accesses lie below this: no bytes are moved, so it is as long as makes a chance meeting of two unlikely.
const RANGE_BYTES: u64 = 1 << 40;

type Counter = fn(&DeviceLine) -> &AtomicU64;

const COUNTERS: [Counter; 7] = [
    |line| &line.accesses_read,
    |line| &line.accesses_write,
    |line| &line.bytes_read,
    |line| &line.bytes_written,
    |line| &line.busy_read_ns,
    |line| &line.busy_write_ns,
    |line| &line.startups,
];

/// The clock of one emulated target.
pub struct Clock {
    map: Box<dyn DevicesMap>,
    target: u32,
    model: DeviceModel,
    before: [u64; COUNTERS.len()],
}

impl Clock {
    /// The clock of a target of a store that the caller holds exclusively.
    ///
    /// # Errors
    /// `Invalid` when the target is not emulated, `Io` when the clocks cannot be mapped.
    pub fn new(store: &Store<'_>, target: u32) -> Result<Self> {
        let info = store.target(target)?;
        if info.kind != Kind::Emulated {
            return Err(StoreError::Invalid(format!("target {} is a plain directory; probe it with a scratch file", info.name)));
        }
        let run = store.run_dir();
        let map = store.medium.devices(&run, store.targets.len(), true).doing("map the device clocks in", &run)?;
        let map = map.ok_or_else(|| StoreError::NotFound(format!("{} has no device clocks; run a store verb on it", run.display())))?;
        let mut made = Self { map, target, model: info.model, before: [0; COUNTERS.len()] };
        made.before = made.counters();
        Ok(made)
    }

    /// Length of the range that accesses lie in.
    pub fn bytes(&self) -> u64 {
        RANGE_BYTES
    }

    fn counters(&self) -> [u64; COUNTERS.len()] {
        let devices = self.map.devices();
        COUNTERS.map(|counter| devices.line(self.target).map_or(0, |line| counter(&line).load(Ordering::Relaxed)))
    }

    /// Makes a series; returns the times of those that were begun within its limit, at least one.
    ///
    /// # Errors
    /// `Invalid` for requests outside the range.
    pub fn run(&mut self, series: &Series<'_>) -> Result<Vec<Timed>> {
        series.check(RANGE_BYTES, CLOCK_IN_FLIGHT_MAX)?;
        let line = self.map.devices().line(self.target);
        let line = line.ok_or_else(|| StoreError::NotFound(format!("target {} has no device clock; run a store verb on the store", self.target)))?;
        let mut done = Vec::with_capacity(series.requests.len());
        let mut waiting = VecDeque::with_capacity(series.in_flight);
        let finish = |timed: Timed| {
            sleep_until(timed.end_ns);
            Timed { end_ns: now_ns(), ..timed }
        };
        let begin_ns = now_ns();
        for request in series.requests {
            if waiting.len() >= series.in_flight
                && let Some(first) = waiting.pop_front()
            {
                done.push(finish(first));
            }
            let start_ns = now_ns();
            if start_ns.saturating_sub(begin_ns) > series.limit_ns && !(waiting.is_empty() && done.is_empty()) {
                break;
            }
            let access = Access { write: series.write, object: object_key(PROBE_OBJECT, 0), offset: request.offset, bytes: request.bytes };
            let reserved = line.reserve(&self.model, access, start_ns);
            waiting.push_back(Timed { start_ns, end_ns: reserved.end_ns });
        }
        done.extend(waiting.into_iter().map(finish));
        Ok(done)
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let devices = self.map.devices();
        let Some(line) = devices.line(self.target) else { return };
        for ((counter, before), now) in COUNTERS.iter().zip(self.before).zip(self.counters()) {
            counter(&line).fetch_sub(now.saturating_sub(before), Ordering::Relaxed);
        }
    }
}
