//! What is counted while requests end. Whole numbers only: sums do not depend on the order in which ends become known.

use crate::latency::Latencies;
use crate::request::{Request, Start};
use crate::timeline::{Ended, Timeline};
use crate::{Error, report};

pub(crate) struct Tally {
    pub requests: u64,
    pub sub_requests: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub bytes_ahead: u64,
    pub last_ns: u64,
    /// Sum over requests of closed loops of the time each would have taken alone.
    pub alone_ns: u128,
    /// Latest end that open-loop requests could have had, each alone.
    pub open_ns: u64,
    reads: Latencies,
    writes: Latencies,
    pub timeline: Timeline,
}

impl Tally {
    pub(crate) fn new(buckets: u32) -> Result<Self, Error> {
        Ok(Tally {
            requests: 0,
            sub_requests: 0,
            bytes_read: 0,
            bytes_written: 0,
            bytes_ahead: 0,
            last_ns: 0,
            alone_ns: 0,
            open_ns: 0,
            reads: Latencies::new()?,
            writes: Latencies::new()?,
            timeline: Timeline::new(buckets),
        })
    }

    /// A request, issued at `begin_ns`, ends at `end_ns`; alone it would have taken `alone_ns`.
    #[inline]
    pub(crate) fn done(&mut self, request: &Request, begin_ns: u64, end_ns: u64, alone_ns: u64) {
        self.requests += 1;
        self.last_ns = self.last_ns.max(end_ns);
        match request.start {
            Start::At(at_ns) => self.open_ns = self.open_ns.max(at_ns.saturating_add(alone_ns)),
            _ => self.alone_ns += u128::from(alone_ns),
        }
        let ended = if request.write {
            self.bytes_written += request.bytes;
            self.writes.record(end_ns - begin_ns);
            Ended::Write
        } else {
            self.bytes_read += request.bytes;
            self.reads.record(end_ns - begin_ns);
            Ended::Read
        };
        self.timeline.ended(ended, end_ns, request.bytes);
        self.timeline.in_flight(begin_ns, end_ns);
    }

    pub(crate) fn latencies(&self) -> report::Latencies {
        report::Latencies { read: self.reads.report(), write: self.writes.report() }
    }
}
