//! What every scheme offers to those above: a plain disk of logical sectors, and a count of what that took.

use crate::error::SwdError;
use crate::geometry::Geometry;
use crate::medium::{Extent, Medium};

/// What a scheme asked of the medium. Own requests are those that a plain disk would have made too.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counters {
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

impl Counters {
    /// Reads and writes of tracks that only amplification asked for.
    #[must_use]
    pub fn extra_requests(&self) -> u64 {
        self.extra_reads + self.extra_writes
    }

    /// Write amplification: all requests of writing over those that the user asked for (chapters 4.4.1 and 5.3.4); 1 before any write.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        if self.own_writes == 0 {
            return 1.0;
        }
        1.0 + self.extra_requests() as f64 / self.own_writes as f64
    }
}

/// A disk of logical sectors on a shingled medium. Sectors that were never written, and trimmed ones, read as zeros.
pub trait Scheme {
    /// What it is on.
    type Medium: Medium;

    /// The medium below.
    fn medium(&self) -> &Self::Medium;

    /// The medium below, for whoever cuts its power or asks its clock.
    fn medium_mut(&mut self) -> &mut Self::Medium;

    /// Gives the medium back, as a power cut would.
    fn into_medium(self) -> Self::Medium
    where
        Self: Sized;

    /// Logical sectors.
    fn capacity_sectors(&self) -> u64;

    /// Where a logical sector lies now, one sector long; `None` if nowhere. What a queue of requests is sorted by.
    fn locate(&self, lba: u64) -> Option<Extent>;

    /// Makes the first `sectors` of an empty disk live as the medium holds them, without asking it: the state that writing them in order leaves, with all
    /// of it durable. Where the medium carries data, the next flush writes the tables that say so.
    ///
    /// # Errors
    /// More than the capacity, a disk that is not empty.
    fn fill(&mut self, sectors: u64) -> Result<(), SwdError>;

    /// One step of work for an idle disk; false when there is none.
    ///
    /// # Errors
    /// A medium that fails.
    fn idle_step(&mut self) -> Result<bool, SwdError> {
        Ok(false)
    }

    /// Reads `sectors` from `lba` on.
    ///
    /// # Errors
    /// Ranges outside, buffers of another length, a medium that fails.
    fn read(&mut self, lba: u64, sectors: u64, into: &mut [u8]) -> Result<(), SwdError>;

    /// Writes `sectors` from `lba` on.
    ///
    /// # Errors
    /// As [`Scheme::read`].
    fn write(&mut self, lba: u64, sectors: u64, from: &[u8]) -> Result<(), SwdError>;

    /// Forgets `sectors` from `lba` on: they read as zeros.
    ///
    /// # Errors
    /// As [`Scheme::read`].
    fn trim(&mut self, lba: u64, sectors: u64) -> Result<(), SwdError>;

    /// Returns when all writes and trims before it are durable.
    ///
    /// # Errors
    /// A medium that fails.
    fn flush(&mut self) -> Result<(), SwdError>;

    /// What it took so far.
    fn counters(&self) -> Counters;
}

/// Refuses a request outside of the logical space.
pub(crate) fn check_range(lba: u64, sectors: u64, capacity: u64) -> Result<(), SwdError> {
    match lba.checked_add(sectors) {
        Some(end) if end <= capacity => Ok(()),
        _ => Err(SwdError::Beyond { lba, sectors, capacity }),
    }
}

/// Refuses to fill a disk that holds something.
pub(crate) fn check_empty(is_empty: bool) -> Result<(), SwdError> {
    if is_empty { Ok(()) } else { Err(SwdError::Parameter { key: "fill", reason: "only an empty disk is filled; fill it before the first write" }) }
}

/// Refuses a buffer that is not as long as its sectors.
pub(crate) fn check_buffer(bytes: usize, sectors: u64, geometry: &Geometry) -> Result<(), SwdError> {
    let expected = geometry.bytes(sectors);
    if bytes as u64 == expected { Ok(()) } else { Err(SwdError::Buffer { bytes: bytes as u64, expected }) }
}
