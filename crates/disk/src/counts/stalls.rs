//! How long requests are kept waiting: the most that are held at once, the longest wait, and the time in which the oldest one had waited too long.

use std::collections::VecDeque;

use serde::Serialize;

use crate::time::in_seconds;

/// Requests that came and are not yet done, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stalls {
    bound_ns: u64,
    /// (arrival, done) of requests from number `first` on.
    held: VecDeque<(u64, bool)>,
    first: u64,
    open: u64,
    most: u64,
    longest_ns: u64,
    stalled_ns: u64,
    until_ns: u64,
}

/// Stalls of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StallReport {
    /// The longest that a request took, waiting included.
    pub longest_s: f64,
    /// The bound that was asked for.
    pub bound_s: f64,
    /// Time in which the oldest request that was not done had come longer ago than the bound.
    pub stalled_s: f64,
    /// That time, per cent of the run.
    pub stalled_percent: f64,
}

impl Stalls {
    pub(crate) fn new(bound_ns: u64) -> Self {
        Self { bound_ns, ..Self::default() }
    }

    /// The next request has come.
    #[inline]
    pub(crate) fn came(&mut self, arrival_ns: u64) {
        self.held.push_back((arrival_ns, false));
        self.open += 1;
        self.most = self.most.max(self.open);
    }

    /// Request `number` is done.
    #[inline]
    pub(crate) fn done(&mut self, number: u64, arrival_ns: u64, end_ns: u64) {
        if let Some(&(oldest_ns, _)) = self.held.front() {
            self.stalled_ns += end_ns.saturating_sub(self.until_ns.max(oldest_ns.saturating_add(self.bound_ns)));
        }
        self.until_ns = self.until_ns.max(end_ns);
        self.longest_ns = self.longest_ns.max(end_ns - arrival_ns.min(end_ns));
        self.open -= 1;
        if let Some(entry) = self.held.get_mut((number - self.first) as usize) {
            entry.1 = true;
        }
        while self.held.front().is_some_and(|entry| entry.1) {
            self.held.pop_front();
            self.first += 1;
        }
    }

    /// Counting begins at `ns`, with the requests that are held then.
    pub(crate) fn restart(&mut self, ns: u64) {
        self.until_ns = self.until_ns.max(ns);
        self.most = self.open;
        self.longest_ns = 0;
        self.stalled_ns = 0;
    }

    /// The most requests held at once.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    pub(crate) fn report(&self, seconds: f64) -> StallReport {
        let stalled_s = in_seconds(self.stalled_ns);
        StallReport {
            longest_s: in_seconds(self.longest_ns),
            bound_s: in_seconds(self.bound_ns),
            stalled_s,
            stalled_percent: if seconds > 0.0 { 100.0 * stalled_s / seconds } else { 0.0 },
        }
    }
}
