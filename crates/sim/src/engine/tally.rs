//! What is counted while requests end. Whole numbers only: sums do not depend on the order in which ends become known.

use stripewise_disk::Latencies;

use crate::request::{Request, Start};
use crate::timeline::{Ended, Timeline};
use crate::{Error, report};

/// All reads, or all writes: their bytes, and from when to when there were any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    pub bytes: u64,
    begin_ns: u64,
    end_ns: u64,
}

impl Phase {
    const NONE: Self = Phase { bytes: 0, begin_ns: u64::MAX, end_ns: 0 };

    #[inline]
    fn add(&mut self, bytes: u64, begin_ns: u64, end_ns: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.begin_ns = self.begin_ns.min(begin_ns);
        self.end_ns = self.end_ns.max(end_ns);
    }

    /// 10^6 bytes per second between the first issue and the last end.
    pub(crate) fn mb_s(&self) -> f64 {
        if self.end_ns > self.begin_ns { self.bytes as f64 * 1e3 / (self.end_ns - self.begin_ns) as f64 } else { 0.0 }
    }
}

pub(crate) struct Tally {
    pub requests: u64,
    pub sub_requests: u64,
    pub read: Phase,
    pub written: Phase,
    pub bytes_ahead: u64,
    pub last_ns: u64,
    /// When the last fetch ahead ended.
    pub fetched_ns: u64,
    /// Sum over requests of closed loops of the time each would have taken alone.
    pub alone_ns: u128,
    /// Latest end that open-loop requests could have had, each alone.
    pub open_ns: u64,
    reads: Latencies,
    writes: Latencies,
    pub timeline: Timeline,
    /// Begin and end of every read and of every write, where that is wanted.
    flights: Option<[Vec<(u64, u64)>; 2]>,
}

/// The time that the spans cover.
fn covered(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let mut reached = 0;
    let mut covered = 0;
    for (begin, end) in spans {
        covered += end.saturating_sub(begin.max(reached));
        reached = reached.max(end);
    }
    covered
}

impl Tally {
    pub(crate) fn new(buckets: u32, in_flight: bool) -> Result<Self, Error> {
        Ok(Tally {
            requests: 0,
            sub_requests: 0,
            read: Phase::NONE,
            written: Phase::NONE,
            bytes_ahead: 0,
            last_ns: 0,
            fetched_ns: 0,
            alone_ns: 0,
            open_ns: 0,
            reads: Latencies::new().map_err(|error| Error::Invalid(error.to_string()))?,
            writes: Latencies::new().map_err(|error| Error::Invalid(error.to_string()))?,
            timeline: Timeline::new(buckets),
            flights: in_flight.then(Default::default),
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
            self.written.add(request.bytes, begin_ns, end_ns);
            self.writes.record(end_ns - begin_ns);
            Ended::Write
        } else {
            self.read.add(request.bytes, begin_ns, end_ns);
            self.reads.record(end_ns - begin_ns);
            Ended::Read
        };
        self.timeline.ended(ended, end_ns, request.bytes);
        self.timeline.in_flight(begin_ns, end_ns);
        if let Some([reads, writes]) = &mut self.flights {
            if request.write { writes } else { reads }.push((begin_ns, end_ns));
        }
    }

    /// The time with any read under way and that with any write, added; `None` where that was not wanted.
    pub(crate) fn in_flight_ns(&self) -> Option<u64> {
        self.flights.as_ref().map(|kinds| kinds.iter().map(|spans| covered(spans.clone())).sum())
    }

    pub(crate) fn latencies(&self) -> report::Latencies {
        report::Latencies { read: self.reads.report(), write: self.writes.report() }
    }
}
