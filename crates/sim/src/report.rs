//! What a simulation tells: simulated figures, as data. Bandwidths are 10^6 bytes per second.

use serde::Serialize;
use stripewise_disk::Latency;

/// The outcome of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// When the last request was done.
    pub seconds: f64,
    /// When the last request, fetch ahead and copy were done: what utilisations and mean queues are relative to.
    pub end_s: f64,
    /// Processes that had requests.
    pub processes: u32,
    /// Requests done.
    pub requests: u64,
    /// Accesses to servers that requests and read-ahead made.
    pub sub_requests: u64,
    /// Bytes that requests read.
    pub bytes_read: u64,
    /// Bytes that requests wrote.
    pub bytes_written: u64,
    /// Bytes that were fetched ahead, used or not.
    pub bytes_ahead: u64,
    /// Read and written per second, over the whole run.
    pub mb_s: f64,
    /// Read per second, between the first read's issue and the last one's end.
    pub read_mb_s: f64,
    /// Written per second, likewise.
    pub write_mb_s: f64,
    /// Server by server, in the scenario's order.
    pub servers: Vec<ServerReport>,
    /// The network; `None` where none was simulated.
    pub links: Option<Links>,
    /// Busiest server's busy time over the mean, less 1.
    pub imbalance: f64,
    /// From issue to end of requests.
    pub latency_s: Latencies,
    /// The run in buckets of equal length.
    pub timeline: Vec<Bucket>,
    /// No schedule of these requests on these servers could have been shorter (cost-models section 7, startups as paid in this run).
    pub bound_s: f64,
    /// `bound_s / seconds`: 1 = nothing could have been faster.
    pub bound_ratio: f64,
    /// Bytes that moves wrote to their new homes.
    pub moved_bytes: u64,
    /// Move by move, in the scenario's order.
    pub moves: Vec<MoveReport>,
    /// The seconds with any read under way and those with any write, added: `tune`'s I/O time. `None` where it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight_s: Option<f64>,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerReport {
    /// From the scenario.
    pub name: String,
    /// Service time given, over all channels, background work included.
    pub busy_s: f64,
    /// Busy part of the channels' time.
    pub utilisation: f64,
    /// Mean number of accesses at the server, waiting or in service.
    pub queue_mean: f64,
    /// Most accesses at the server at once.
    pub queue_max: u64,
    /// Accesses served.
    pub accesses: u64,
    /// Accesses that did not continue the one before (all, where sequence earns no discount).
    pub startups: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

/// All links, in sums over those of a kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Links {
    /// Links of client nodes, the mover's included.
    pub nodes: LinkSum,
    /// Links of servers.
    pub servers: LinkSum,
}

/// The links of one kind; each has two directions, which do not disturb each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkSum {
    /// How many there are.
    pub count: u64,
    /// Time that they were busy, summed over links and directions.
    pub busy_s: f64,
    /// Busy time of the busiest direction of the busiest link.
    pub busy_max_s: f64,
    /// `busy_max_s` over the whole run.
    pub utilisation_max: f64,
    /// Bytes carried, both directions.
    pub bytes: u64,
}

/// Latencies by operation; `None` where there was no such request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latencies {
    pub read: Option<Latency>,
    pub write: Option<Latency>,
}

/// One piece of the timeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bucket {
    /// Its begin.
    pub start_s: f64,
    /// Reads that ended in it.
    pub read_mb_s: f64,
    /// Writes that ended in it.
    pub write_mb_s: f64,
    /// Mean number of requests in flight.
    pub in_flight: f64,
    /// Chunks of moves whose copy ended in it.
    pub copy_mb_s: f64,
}

/// One move.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MoveReport {
    /// When its copy began.
    pub at_s: f64,
    /// When its span had its new home.
    pub done_s: f64,
}
