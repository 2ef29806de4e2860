//! The plain places: uniform, by Zipf's law over tracks, and one after the other.

use stripewise_chance::{Shares, SplitMix64, shuffled};

use super::Place;

/// Anywhere, at multiples of the request's size.
pub(super) struct Uniform {
    pub random: SplitMix64,
    pub slots: u64,
    pub blocks: u32,
    pub write_share: f64,
}

impl Place for Uniform {
    fn next(&mut self) -> Option<(u64, u32, bool)> {
        let slot = self.random.below(self.slots);
        Some((slot * u64::from(self.blocks), self.blocks, self.random.unit() < self.write_share))
    }
}

/// A chunk by its popularity, and uniform within it. Where a popularity lies is a shuffle that the seed fixes.
pub(super) struct Zipf {
    random: SplitMix64,
    popularity: Shares,
    places: Vec<u32>,
    chunk_blocks: u64,
    blocks: u32,
    write_share: f64,
}

impl Zipf {
    pub(super) fn new(random: SplitMix64, chunks: u32, alpha: f64, chunk_blocks: u64, blocks: u32, write_share: f64, seed: u64) -> Zipf {
        Zipf { random, popularity: Shares::zipf(chunks, alpha), places: shuffled(chunks, seed), chunk_blocks, blocks, write_share }
    }
}

impl Place for Zipf {
    fn next(&mut self) -> Option<(u64, u32, bool)> {
        let popularity = self.popularity.pick(self.random.unit());
        let chunk = u64::from(self.places.get(popularity).copied().unwrap_or(0));
        let slot = self.random.below(self.chunk_blocks / u64::from(self.blocks));
        Some((chunk * self.chunk_blocks + slot * u64::from(self.blocks), self.blocks, self.random.unit() < self.write_share))
    }
}

/// From block 0 on until the space is full; then from the beginning again, or no more.
pub(super) struct Sequential {
    pub random: SplitMix64,
    pub next: u64,
    pub space_blocks: u64,
    pub blocks: u32,
    pub write_share: f64,
    pub again: bool,
}

impl Place for Sequential {
    fn next(&mut self) -> Option<(u64, u32, bool)> {
        if self.next + u64::from(self.blocks) > self.space_blocks {
            if !self.again {
                return None;
            }
            self.next = 0;
        }
        let lba = self.next;
        self.next += u64::from(self.blocks);
        Some((lba, self.blocks, self.random.unit() < self.write_share))
    }
}
