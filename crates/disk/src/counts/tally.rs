//! What a run counts as it goes, and the report made of it.

use stripewise_swd::{Counters, Purpose};

use crate::counts::accounts::Accounts;
use crate::counts::latency::Latencies;
use crate::counts::report::{Report, TimeSplit};
use crate::counts::stalls::Stalls;
use crate::error::Error;
use crate::idle::Worked;
use crate::time::in_seconds;

/// Times of one direction, ns.
#[derive(Clone, Debug)]
struct Direction {
    responses: Latencies,
    waiting_ns: u64,
    by_purpose_ns: [u64; 4],
}

impl Direction {
    fn new() -> Result<Self, Error> {
        Ok(Self { responses: Latencies::new()?, waiting_ns: 0, by_purpose_ns: [0; 4] })
    }

    fn split(&self) -> TimeSplit {
        let [own, amplification, collection, upkeep] = self.by_purpose_ns.map(in_seconds);
        TimeSplit {
            total_s: self.responses.sum_s(),
            waiting_s: in_seconds(self.waiting_ns),
            own_s: own,
            amplification_s: amplification,
            collection_s: collection,
            upkeep_s: upkeep,
        }
    }
}

/// The counts of a run.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    read: Direction,
    write: Direction,
    requests: u64,
    idle_steps: u64,
    idle_ns: u64,
    /// When counting began, and what the scheme had counted by then.
    from_ns: u64,
    before: Counters,
}

impl Tally {
    /// Counts from `from_ns` on, when the scheme had counted `before`.
    pub(crate) fn new(from_ns: u64, before: Counters) -> Result<Self, Error> {
        Ok(Self { read: Direction::new()?, write: Direction::new()?, requests: 0, idle_steps: 0, idle_ns: 0, from_ns, before })
    }

    /// A request is done; `before` and `after` are the disk's times by purpose.
    #[inline]
    pub(crate) fn done(&mut self, write: bool, response_ns: u64, waiting_ns: u64, before: [u64; 4], after: [u64; 4]) {
        self.requests += 1;
        let direction = if write { &mut self.write } else { &mut self.read };
        direction.responses.record(response_ns);
        direction.waiting_ns += waiting_ns;
        for ((sum, after), before) in direction.by_purpose_ns.iter_mut().zip(after).zip(before) {
            *sum += after - before;
        }
    }

    /// An idle disk worked.
    pub(crate) fn idle(&mut self, worked: Worked) {
        self.idle_steps += worked.steps;
        self.idle_ns += worked.ns;
    }

    pub(crate) fn report(&self, scheme: &str, sizes: (u64, u64), end_ns: u64, counters: Counters, accounts: &Accounts, stalls: &Stalls) -> Report {
        let seconds = in_seconds(end_ns.saturating_sub(self.from_ns));
        let counters = since(counters, self.before);
        let over = |sum: f64| if seconds > 0.0 { sum / seconds } else { 0.0 };
        let mut all = self.read.responses.clone();
        all.add(&self.write.responses);
        let purposes = [Purpose::Own, Purpose::Amplification, Purpose::Collection, Purpose::Upkeep];
        let busy_s = in_seconds(purposes.iter().map(|&purpose| accounts.of(purpose).ns()).sum());
        Report {
            scheme: scheme.to_owned(),
            capacity_blocks: sizes.0,
            used_blocks: sizes.1,
            requests: self.requests,
            reads: self.read.responses.len(),
            writes: self.write.responses.len(),
            seconds,
            response_s: all.report(),
            read_response_s: self.read.responses.report(),
            write_response_s: self.write.responses.report(),
            read_time: self.read.split(),
            write_time: self.write.split(),
            amplification: counters.amplification(),
            counters: counters.into(),
            accounts: accounts.report(),
            seeks: accounts.seeks(),
            idle_steps: self.idle_steps,
            idle_s: in_seconds(self.idle_ns),
            stalls: stalls.report(seconds),
            busy_s,
            utilisation: over(busy_s),
            queue_mean: over(all.sum_s()),
            queue_max: stalls.most(),
        }
    }
}

/// What was counted after `before`.
fn since(now: Counters, before: Counters) -> Counters {
    Counters {
        own_writes: now.own_writes - before.own_writes,
        extra_reads: now.extra_reads - before.extra_reads,
        extra_writes: now.extra_writes - before.extra_writes,
        extra_sectors: now.extra_sectors - before.extra_sectors,
        collections: now.collections - before.collections,
        collected_tracks: now.collected_tracks - before.collected_tracks,
        gathered_tracks: now.gathered_tracks - before.gathered_tracks,
        checkpoints: now.checkpoints - before.checkpoints,
        journal_writes: now.journal_writes - before.journal_writes,
        own_flushes: now.own_flushes - before.own_flushes,
    }
}
