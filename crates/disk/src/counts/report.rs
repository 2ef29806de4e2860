//! What a run tells: simulated figures, as data. Times are in seconds.

use serde::Serialize;

use crate::counts::accounts::{AccountsReport, SeekRange};
use crate::counts::latency::Latency;
use crate::counts::stalls::StallReport;

/// The outcome of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The scheme's name.
    pub scheme: String,
    /// Logical blocks of 512 bytes that the scheme has on this disk.
    pub capacity_blocks: u64,
    /// Of these, blocks that requests were for.
    pub used_blocks: u64,
    /// Requests done.
    pub requests: u64,
    /// Of these, reads.
    pub reads: u64,
    pub writes: u64,
    /// When the last request was done, from the beginning or the end of the warm-up on.
    pub seconds: f64,
    /// From arrival to end, all requests.
    pub response_s: Option<Latency>,
    pub read_response_s: Option<Latency>,
    pub write_response_s: Option<Latency>,
    /// Where the time of all reads together went.
    pub read_time: TimeSplit,
    /// Where the time of all writes together went: the gross write time of the thesis, chapter 5.3.4.
    pub write_time: TimeSplit,
    /// Write amplification ratio: requests that writing took, over those that the user's writes are.
    pub amplification: f64,
    /// What the scheme counted.
    pub counters: CounterReport,
    /// What the disk did, by purpose.
    pub accounts: AccountsReport,
    /// How far the arm moved before accesses.
    pub seeks: Vec<SeekRange>,
    /// Steps of work that an idle disk did.
    pub idle_steps: u64,
    /// Their time.
    pub idle_s: f64,
    /// Requests kept waiting.
    pub stalls: StallReport,
    /// Time in which the disk moved or transferred, work of an idle disk included.
    pub busy_s: f64,
    /// `busy_s / seconds`.
    pub utilisation: f64,
    /// Mean number of requests that had come and were not done.
    pub queue_mean: f64,
    /// Most of them at once.
    pub queue_max: u64,
}

/// A sum of response times, taken apart: `total_s` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimeSplit {
    /// All of it.
    pub total_s: f64,
    /// Waiting for the disk, commands and the bus.
    pub waiting_s: f64,
    /// What a plain disk would have done too.
    pub own_s: f64,
    /// What updates took with them.
    pub amplification_s: f64,
    /// Collection on demand.
    pub collection_s: f64,
    /// Checkpoints, journal, tables.
    pub upkeep_s: f64,
}

/// What a scheme counted (`stripewise_swd::Counters`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CounterReport {
    /// Writes of a piece of one track that the user asked for.
    pub own_writes: u64,
    /// Reads of tracks that only amplification asked for.
    pub extra_reads: u64,
    /// Writes of tracks that only amplification asked for.
    pub extra_writes: u64,
    /// Sectors of the extra reads and writes.
    pub extra_sectors: u64,
    /// Steps of garbage collection.
    pub collections: u64,
    /// Tracks that those steps moved.
    pub collected_tracks: u64,
    /// Tracks moved because no free one could be written.
    pub gathered_tracks: u64,
    /// Checkpoints of the track table.
    pub checkpoints: u64,
    /// Records of a journal.
    pub journal_writes: u64,
    /// Flushes that the scheme needed for itself.
    pub own_flushes: u64,
}

impl From<stripewise_swd::Counters> for CounterReport {
    fn from(counters: stripewise_swd::Counters) -> Self {
        Self {
            own_writes: counters.own_writes,
            extra_reads: counters.extra_reads,
            extra_writes: counters.extra_writes,
            extra_sectors: counters.extra_sectors,
            collections: counters.collections,
            collected_tracks: counters.collected_tracks,
            gathered_tracks: counters.gathered_tracks,
            checkpoints: counters.checkpoints,
            journal_writes: counters.journal_writes,
            own_flushes: counters.own_flushes,
        }
    }
}
