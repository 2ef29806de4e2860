//! Requests made by a seed: where they go is a [`Place`], when they come an arrival law, and both are described by numbers that papers print.

mod arrivals;
mod look_alike;
mod place;
mod published;
mod spec;

pub use arrivals::Arrivals;
pub use look_alike::LookAlike;
pub use published::{PUBLISHED, Published, published};
pub use spec::{LookAlikeSpec, SynSpec, UniformSpec, ZipfSpec};

use stripewise_chance::SplitMix64;

use crate::{BlockRequest, Error};
use arrivals::Clock;

/// Blocks that stand for a track where popularity is by track (thesis, chapter 4.6.1).
pub(crate) const TRACK_BLOCKS: u64 = 1000;

/// Where requests go.
trait Place: Send {
    /// First block, number of blocks and direction of the next request; `None` when there is no more.
    fn next(&mut self) -> Option<(u64, u32, bool)>;
}

/// Streams of one seed.
const ARRIVAL_STREAM: u64 = 1;
const PLACE_STREAM: u64 = 2;

/// Requests of a place at the times of a law.
struct Generated<P> {
    clock: Clock,
    place: P,
}

impl<P: Place> Generated<P> {
    fn new(arrivals: &Arrivals, place: P, seed: u64) -> Result<Self, Error> {
        Ok(Generated { clock: Clock::new(arrivals, SplitMix64::new(seed, ARRIVAL_STREAM))?, place })
    }
}

impl<P: Place> Iterator for Generated<P> {
    type Item = Result<BlockRequest, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let (lba, blocks, write) = self.place.next()?;
        Some(Ok(BlockRequest { arrival_ns: self.clock.tick(), lba, blocks, write }))
    }
}

#[cfg(test)]
mod tests;
