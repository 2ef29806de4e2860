//! Statistics of requests as the thesis prints them: the columns of tables 4.1 and 5.2, stack distances of track updates (figure 5.6) and distances
//! of successive writes (figure 5.8). One pass; memory grows with the tracks that are updated, not with the requests.

mod histogram;
mod stack;

use serde::Serialize;

use crate::{BlockRequest, Error};
use histogram::Histogram;
pub use histogram::Step;
use stack::Stack;

/// What is counted as a track and as near.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measure {
    /// Blocks of a track, at least 1.
    pub track_blocks: u64,
    /// A write no further than this from the write before is near.
    pub near_blocks: u64,
}

impl Default for Measure {
    /// Tracks of 1,000 blocks (thesis, chapter 4.6.1), near within 10,000 (chapter 5.3.4).
    fn default() -> Self {
        Measure { track_blocks: crate::generate::TRACK_BLOCKS, near_blocks: 10_000 }
    }
}

/// Distances between successive writes: from the end of one to the start of the next, blocks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Distances {
    /// How many.
    pub count: u64,
    /// The distance that counts as near, blocks.
    pub near_blocks: u64,
    /// Share of those that are near.
    pub near_share: f64,
    /// Their cumulative distribution.
    pub steps: Vec<Step>,
}

/// Stack distances: how many other tracks were updated between two updates of a track.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Stacks {
    pub track_blocks: u64,
    /// Tracks that were updated.
    pub tracks: u64,
    /// Updates of tracks; a write that crosses into another track updates both.
    pub updates: u64,
    /// Updates of a track that had been updated before: those have a distance.
    pub repeated: u64,
    /// Their cumulative distribution.
    pub steps: Vec<Step>,
}

/// The statistics of a source.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Reads and writes.
    pub requests: u64,
    pub writes: u64,
    /// Writes over requests.
    pub write_share: f64,
    /// From the first arrival to the last, s.
    pub duration_s: f64,
    /// Mean inter-arrival time, ms.
    pub interarrival_ms: f64,
    /// Its standard deviation over its mean.
    pub interarrival_variation: f64,
    /// Mean distance from the end of a request to the start of the next, blocks.
    pub distance_blocks: f64,
    /// Highest block touched.
    pub lba_max: u64,
    /// Mean size, blocks.
    pub request_blocks: f64,
    /// Largest size, blocks.
    pub request_blocks_max: u32,
    /// Blocks read and written.
    pub blocks: u64,
    /// Of successive writes.
    pub write_distances: Distances,
    /// Of updates of tracks.
    pub stack_distances: Stacks,
}

/// Statistics that are being gathered.
#[derive(Debug)]
pub struct Statistics {
    measure: Measure,
    requests: u64,
    writes: u64,
    blocks: u64,
    first_ns: u64,
    lba_max: u64,
    blocks_max: u32,
    distance_sum: u128,
    gap_squares_ns: f64,
    near: u64,
    last: Option<BlockRequest>,
    last_write_end: Option<u64>,
    write_distances: Histogram,
    stack: Stack,
}

impl Statistics {
    /// Nothing yet.
    #[must_use]
    pub fn new(measure: Measure) -> Statistics {
        let measure = Measure { track_blocks: measure.track_blocks.max(1), ..measure };
        Statistics {
            measure,
            requests: 0,
            writes: 0,
            blocks: 0,
            first_ns: 0,
            lba_max: 0,
            blocks_max: 0,
            distance_sum: 0,
            gap_squares_ns: 0.0,
            near: 0,
            last: None,
            last_write_end: None,
            write_distances: Histogram::default(),
            stack: Stack::default(),
        }
    }

    /// One request more.
    pub fn take(&mut self, request: &BlockRequest) {
        match self.last {
            Some(last) => {
                self.distance_sum += u128::from(request.lba.abs_diff(last.end()));
                let gap_ns = request.arrival_ns.saturating_sub(last.arrival_ns) as f64;
                self.gap_squares_ns += gap_ns * gap_ns;
            }
            None => self.first_ns = request.arrival_ns,
        }
        self.requests += 1;
        self.blocks = self.blocks.saturating_add(u64::from(request.blocks));
        self.lba_max = self.lba_max.max(request.end().saturating_sub(1));
        self.blocks_max = self.blocks_max.max(request.blocks);
        if request.write {
            self.take_write(request);
        }
        self.last = Some(*request);
    }

    fn take_write(&mut self, request: &BlockRequest) {
        self.writes += 1;
        if let Some(end) = self.last_write_end.replace(request.end()) {
            let distance = request.lba.abs_diff(end);
            self.near += u64::from(distance <= self.measure.near_blocks);
            self.write_distances.take(distance);
        }
        let track = self.measure.track_blocks;
        for updated in request.lba / track..=request.end().saturating_sub(1) / track {
            self.stack.update(updated);
        }
    }

    /// What was gathered; of no request at all, zeros.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let gaps = self.requests.saturating_sub(1);
        let duration_ns = self.last.map_or(0, |last| last.arrival_ns.saturating_sub(self.first_ns)) as f64;
        let mean_ns = over(duration_ns, gaps);
        let variance = (over(self.gap_squares_ns, gaps) - mean_ns * mean_ns).max(0.0);
        Summary {
            requests: self.requests,
            writes: self.writes,
            write_share: over(self.writes as f64, self.requests),
            duration_s: duration_ns / 1e9,
            interarrival_ms: mean_ns / 1e6,
            interarrival_variation: if mean_ns > 0.0 { variance.sqrt() / mean_ns } else { 0.0 },
            distance_blocks: over(self.distance_sum as f64, gaps),
            lba_max: self.lba_max,
            request_blocks: over(self.blocks as f64, self.requests),
            request_blocks_max: self.blocks_max,
            blocks: self.blocks,
            write_distances: Distances {
                count: self.write_distances.count(),
                near_blocks: self.measure.near_blocks,
                near_share: over(self.near as f64, self.write_distances.count()),
                steps: self.write_distances.steps(),
            },
            stack_distances: Stacks {
                track_blocks: self.measure.track_blocks,
                tracks: self.stack.tracks(),
                updates: self.stack.updates(),
                repeated: self.stack.distances().count(),
                steps: self.stack.distances().steps(),
            },
        }
    }
}

fn over(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// The statistics of all requests of a source.
///
/// # Errors
/// The source's.
pub fn gather(requests: impl Iterator<Item = Result<BlockRequest, Error>>, measure: Measure) -> Result<Summary, Error> {
    let mut statistics = Statistics::new(measure);
    for request in requests {
        statistics.take(&request?);
    }
    Ok(statistics.summary())
}

#[cfg(test)]
mod tests;
