//! The parameters of a disk of logical tracks.

use super::plan::Policy;
use crate::error::SwdError;

/// How a T-STL disk is run. The bands, the spread and the disk's id must be the same whenever it is opened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrackParameters {
    /// Greedy, Smart or Adaptive.
    pub policy: Policy,
    /// N, tracks per band.
    pub band_tracks: u32,
    /// Logical tracks per band; 0 stands for the most, N-2W.
    pub band_logical_tracks: u32,
    /// Logical tracks of a band before those of the next when a disk is filled from empty; 0 stands for what alternate tracks hold, (N-2)/W.
    pub first_tracks: u32,
    /// The same after that: the fewer, the more alike bands fill; 0 stands for all.
    pub spread_tracks: u32,
    /// A write to a band whose fragmentation ratio R is at most this takes a step of garbage collection first; not by
    /// [`Policy::Adaptive`], which waits until free tracks run out.
    pub gc_threshold: f64,
    /// Up to this share of a band's tracks only alternate ones are taken; 0 is the seed's cold mode (chapter 5.2.5).
    pub alternate_limit: f64,
    /// Copied tracks between two checkpoints at most.
    pub checkpoint_writes: u32,
    /// Whether the limit of a victim's size follows the used and free tracks of its band, not of the disk.
    pub victims_by_band: bool,
    /// Whether a power cut loses nothing that was flushed, at the price of flushes and of a checkpoint before a track that the last one does not have is
    /// written in place. Without, old copies are written over at once, as in the seed, and a cut may lose what was being updated.
    pub keeps_flushed: bool,
    /// Whether Smart writes down where it will write before it does, so that recovery need not look at all tracks
    /// ([`Scan::Pools`](super::recover::Scan::Pools); the seed's further improvement, chapter 5.2.6), at the price of a write to the random access zone for
    /// each pool.
    pub declares_pools: bool,
    /// What marks the records of this disk on the medium.
    pub disk_id: u32,
}

impl Default for TrackParameters {
    fn default() -> Self {
        Self {
            policy: Policy::Smart,
            band_tracks: 100,
            band_logical_tracks: 0,
            first_tracks: 0,
            spread_tracks: 4,
            gc_threshold: 0.5,
            alternate_limit: 0.5,
            checkpoint_writes: 1000,
            victims_by_band: false,
            keeps_flushed: true,
            declares_pools: true,
            disk_id: 1,
        }
    }
}

impl TrackParameters {
    /// Whether the log knows all places before they are written.
    pub(super) fn declares(&self) -> bool {
        self.policy != Policy::Greedy && self.declares_pools
    }

    pub(super) fn check(&self) -> Result<(), SwdError> {
        let refuse = |key, reason| Err(SwdError::Parameter { key, reason });
        if !(0.0..=1.0).contains(&self.gc_threshold) {
            return refuse("gc_threshold", "the fragmentation ratio is between 0 and 1");
        }
        if !(0.0..=1.0).contains(&self.alternate_limit) {
            return refuse("alternate_limit", "the share of a band's tracks is between 0 and 1");
        }
        if self.checkpoint_writes == 0 {
            return refuse("checkpoint_writes", "at least one track is written between checkpoints");
        }
        Ok(())
    }
}
