//! `is`, the S-block indirection system that the seed compares with (chapter 5.3.2): a cache buffer and an S-block buffer, both circular logs; a map of
//! blocks for the first, of S-blocks for the second; three collectors. In the seed's improved form: the cache is destaged when what is free or invalid in
//! it is less than the write and the safety gap.
//!
//! The seed gives this baseline no recovery, and it has none here: its maps are in memory, and a power cut loses the disk.

mod cached;
mod log;
mod ring;

use crate::error::SwdError;
use crate::medium::{Extent, Medium, Purpose};
use crate::scheme::{Counters, Scheme, check_buffer, check_empty, check_range};
use cached::Cached;
use ring::{Region, Ring};

/// The shape of an indirection system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndirectionParameters {
    /// Tracks of the cache buffer (E-region), from the first on, W-1 of them its gap.
    pub cache_tracks: u32,
    pub s_block_sectors: u32,
}

impl Default for IndirectionParameters {
    fn default() -> Self {
        Self { cache_tracks: 4000, s_block_sectors: 2000 }
    }
}

/// The indirection system on a medium.
#[derive(Clone, Debug)]
pub struct Indirection<M> {
    medium: M,
    /// Positions of the cache are sectors.
    cache: Ring,
    /// Which logical sector a sector of the cache holds; `u64::MAX` for none.
    owner: Vec<u64>,
    cached: Cached,
    /// No sector of the cache before this position of its log is valid.
    oldest: u64,
    /// Positions of the S-block buffer are S-blocks.
    store: Ring,
    stored_by: Vec<u32>,
    stored: Vec<u32>,
    s_block_sectors: u64,
    longest_track: u64,
    counters: Counters,
}

const NO_SECTOR: u64 = u64::MAX;
const NO_BLOCK: u32 = u32::MAX;

impl<M: Medium> Indirection<M> {
    /// An empty disk.
    ///
    /// # Errors
    /// Regions that are too small for a log with its safety gap.
    pub fn new(medium: M, parameters: IndirectionParameters) -> Result<Self, SwdError> {
        let geometry = medium.geometry();
        let (head_tracks, tracks) = (geometry.head_tracks(), geometry.tracks());
        if parameters.s_block_sectors == 0 {
            return Err(SwdError::Parameter { key: "s_block_sectors", reason: "an S-block has at least one sector" });
        }
        let s_block_sectors = u64::from(parameters.s_block_sectors);
        let longest_track = geometry.zones().map(|(_, zone)| u64::from(zone.sectors)).max().unwrap_or(1);
        let cache_tracks = parameters.cache_tracks.min(tracks);
        let cache = Region::new(geometry, 0, cache_tracks.saturating_sub(head_tracks - 1));
        let store = Region::new(geometry, cache_tracks, (tracks - cache_tracks).saturating_sub(head_tracks - 1));
        let gap = u64::from(head_tracks) * longest_track;
        // A write is at most an S-block; beside it there must be room for the gap and for the track that a collector moves.
        if cache.sectors() < 2 * (gap + 2 * longest_track) {
            return Err(SwdError::Parameter { key: "cache_tracks", reason: "the cache buffer needs 2W+4 of the longest tracks and W-1 more" });
        }
        let slots = store.sectors() / s_block_sectors;
        let gap_slots = gap.div_ceil(s_block_sectors);
        if slots < gap_slots + 3 || slots >= u64::from(NO_BLOCK) {
            return Err(SwdError::Parameter { key: "s_block_sectors", reason: "the S-block buffer must hold the gap and three S-blocks more" });
        }
        Ok(Self {
            owner: vec![NO_SECTOR; cache.sectors() as usize],
            cached: Cached::new((slots - gap_slots - 2) as usize),
            oldest: 0,
            stored_by: vec![NO_BLOCK; slots as usize],
            stored: vec![NO_BLOCK; (slots - gap_slots - 2) as usize],
            cache: Ring::new(cache.sectors(), gap, cache),
            store: Ring::new(slots, gap_slots, store),
            s_block_sectors,
            longest_track,
            medium,
            counters: Counters::default(),
        })
    }

    fn bytes(&self, sectors: u64) -> usize {
        self.medium.geometry().bytes(sectors) as usize
    }

    /// Cuts a request where S-blocks end, and into what a quarter of the cache holds.
    fn pieces(&self, lba: u64, sectors: u64) -> Vec<(u64, u64)> {
        let (mut pieces, mut at, end) = (Vec::new(), lba, lba + sectors);
        let most = (self.cache.size() / 4).max(1);
        while at < end {
            let count = (self.s_block_sectors - at % self.s_block_sectors).min(end - at).min(most);
            pieces.push((at, count));
            at += count;
        }
        pieces
    }
}

impl<M: Medium> Scheme for Indirection<M> {
    type Medium = M;

    fn medium(&self) -> &M {
        &self.medium
    }

    fn medium_mut(&mut self) -> &mut M {
        &mut self.medium
    }

    fn into_medium(self) -> M {
        self.medium
    }

    fn capacity_sectors(&self) -> u64 {
        self.stored.len() as u64 * self.s_block_sectors
    }

    fn locate(&self, lba: u64) -> Option<Extent> {
        let (region, at) = match self.cached.get((lba / self.s_block_sectors) as usize, lba % self.s_block_sectors) {
            Some(at) => (&self.cache.region, at),
            None => (&self.store.region, self.stored_at(lba)?),
        };
        region.extents(at, 1).first().copied()
    }

    /// S-blocks in order, the last one whole, and nothing in the cache.
    fn fill(&mut self, sectors: u64) -> Result<(), SwdError> {
        check_range(0, sectors, self.capacity_sectors())?;
        check_empty(self.cache.is_empty() && self.store.is_empty())?;
        for block in 0..sectors.div_ceil(self.s_block_sectors) {
            self.link(block as usize, self.store.head());
            self.store.advance_head(1);
        }
        Ok(())
    }

    fn read(&mut self, lba: u64, sectors: u64, into: &mut [u8]) -> Result<(), SwdError> {
        check_range(lba, sectors, self.capacity_sectors())?;
        check_buffer(into.len(), sectors, self.medium.geometry())?;
        let mut rest = into;
        for (lba, sectors) in self.pieces(lba, sectors) {
            let (part, after) = rest.split_at_mut(self.bytes(sectors).min(rest.len()));
            rest = after;
            self.medium.purpose(Purpose::Own);
            self.read_piece(lba, sectors, part)?;
        }
        Ok(())
    }

    fn write(&mut self, lba: u64, sectors: u64, from: &[u8]) -> Result<(), SwdError> {
        check_range(lba, sectors, self.capacity_sectors())?;
        check_buffer(from.len(), sectors, self.medium.geometry())?;
        let mut rest = from;
        for (lba, sectors) in self.pieces(lba, sectors) {
            let (part, after) = rest.split_at(self.bytes(sectors).min(rest.len()));
            rest = after;
            self.counters.own_writes += self.write_piece(lba, sectors, part, Purpose::Own)?;
        }
        Ok(())
    }

    fn trim(&mut self, lba: u64, sectors: u64) -> Result<(), SwdError> {
        check_range(lba, sectors, self.capacity_sectors())?;
        for (lba, sectors) in self.pieces(lba, sectors) {
            let block = (lba / self.s_block_sectors) as usize;
            if sectors == self.s_block_sectors {
                self.forget(lba, sectors);
                self.drop_block(block);
            } else if self.stored.get(block).is_some_and(|&slot| slot != NO_BLOCK) {
                self.counters.extra_writes += self.write_piece(lba, sectors, &vec![0; self.bytes(sectors)], Purpose::Amplification)?;
                self.counters.extra_sectors += sectors;
            } else {
                self.forget(lba, sectors);
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SwdError> {
        self.medium.purpose(Purpose::Own);
        Ok(self.medium.flush()?)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
