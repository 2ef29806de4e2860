//! The descriptions of generated workloads (docs/formats.md, Block workload), and the sources they make.

use serde::Deserialize;
use stripewise_chance::SplitMix64;

use super::place::{Sequential, Uniform, Zipf};
use super::{Arrivals, Generated, LookAlike, PLACE_STREAM, PUBLISHED, TRACK_BLOCKS, published};
use crate::{Error, Source};

const REQUEST_BLOCKS: u32 = 8;
/// More chunks would take gigabytes.
const CHUNKS_MAX: u64 = 1 << 26;

fn blocks() -> u32 {
    REQUEST_BLOCKS
}

fn all() -> f64 {
    1.0
}

fn chunk() -> u64 {
    TRACK_BLOCKS
}

/// Of the uniform workload (thesis, chapter 5.3.4).
fn brisk() -> Arrivals {
    Arrivals::Normal { mean_ms: 5.0, deviation_ms: 2.0 }
}

/// Of SYN in chapter 4.6.2.
fn slow() -> Arrivals {
    Arrivals::Normal { mean_ms: 50.0, deviation_ms: 10.0 }
}

/// Anywhere in the space, at multiples of the request's size.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UniformSpec {
    #[serde(default = "blocks")]
    pub request_blocks: u32,
    /// Share of writes, 0 to 1.
    #[serde(default = "all")]
    pub write_share: f64,
    /// When requests arrive.
    #[serde(default = "brisk")]
    pub arrivals: Arrivals,
}

/// A chunk by Zipf's law, uniform within.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZipfSpec {
    #[serde(default = "blocks")]
    pub request_blocks: u32,
    /// Share of writes, 0 to 1.
    #[serde(default = "all")]
    pub write_share: f64,
    /// When requests arrive.
    #[serde(default = "brisk")]
    pub arrivals: Arrivals,
    /// Exponent.
    #[serde(default = "all")]
    pub alpha: f64,
    /// Blocks of what is popular: a track, or a request's size for blocks.
    #[serde(default = "chunk")]
    pub chunk_blocks: u64,
}

/// SYN: one request after the other from block 0 on.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SynSpec {
    #[serde(default = "blocks")]
    pub request_blocks: u32,
    /// Share of writes, 0 to 1.
    #[serde(default = "all")]
    pub write_share: f64,
    /// When requests arrive.
    #[serde(default = "slow")]
    pub arrivals: Arrivals,
    /// Begins anew when the space is full, instead of ending.
    #[serde(default)]
    pub again: bool,
}

/// The look-alike of a published trace.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookAlikeSpec {
    /// Of [`PUBLISHED`].
    pub name: String,
    /// Exponent of the popularity of tracks.
    #[serde(default = "all")]
    pub alpha: f64,
    /// In place of the law with the published mean.
    #[serde(default)]
    pub arrivals: Option<Arrivals>,
}

fn check(request_blocks: u32, write_share: f64, space_blocks: u64) -> Result<(), Error> {
    if request_blocks == 0 || u64::from(request_blocks) > space_blocks {
        return Err(Error::Invalid(format!("request_blocks = {request_blocks} is not from 1 to the {space_blocks} blocks of the space; correct it")));
    }
    if !(0.0..=1.0).contains(&write_share) {
        return Err(Error::Invalid(format!("write_share = {write_share} is not from 0 to 1; correct it")));
    }
    Ok(())
}

fn check_alpha(alpha: f64) -> Result<(), Error> {
    if (0.0..=20.0).contains(&alpha) {
        return Ok(());
    }
    Err(Error::Invalid(format!("alpha = {alpha} is not from 0 to 20; correct it")))
}

impl UniformSpec {
    pub(crate) fn source(&self, space_blocks: u64, seed: u64) -> Result<Source, Error> {
        check(self.request_blocks, self.write_share, space_blocks)?;
        let random = SplitMix64::new(seed, PLACE_STREAM);
        let slots = space_blocks / u64::from(self.request_blocks);
        let place = Uniform { random, slots, blocks: self.request_blocks, write_share: self.write_share };
        Ok(Box::new(Generated::new(&self.arrivals, place, seed)?))
    }
}

impl ZipfSpec {
    pub(crate) fn source(&self, space_blocks: u64, seed: u64) -> Result<Source, Error> {
        check(self.request_blocks, self.write_share, space_blocks)?;
        check_alpha(self.alpha)?;
        if self.chunk_blocks < u64::from(self.request_blocks) || self.chunk_blocks > space_blocks {
            return Err(Error::Invalid(format!(
                "chunk_blocks = {} is not from request_blocks ({}) to the {space_blocks} blocks of the space; correct it",
                self.chunk_blocks, self.request_blocks
            )));
        }
        let chunks = space_blocks / self.chunk_blocks;
        if chunks > CHUNKS_MAX {
            return Err(Error::Invalid(format!(
                "chunk_blocks = {} makes {chunks} chunks, more than {CHUNKS_MAX}; use larger ones",
                self.chunk_blocks
            )));
        }
        let random = SplitMix64::new(seed, PLACE_STREAM);
        let place = Zipf::new(random, chunks as u32, self.alpha, self.chunk_blocks, self.request_blocks, self.write_share, seed);
        Ok(Box::new(Generated::new(&self.arrivals, place, seed)?))
    }
}

impl SynSpec {
    pub(crate) fn source(&self, space_blocks: u64, seed: u64) -> Result<Source, Error> {
        check(self.request_blocks, self.write_share, space_blocks)?;
        let random = SplitMix64::new(seed, PLACE_STREAM);
        let place = Sequential { random, next: 0, space_blocks, blocks: self.request_blocks, write_share: self.write_share, again: self.again };
        Ok(Box::new(Generated::new(&self.arrivals, place, seed)?))
    }
}

impl LookAlikeSpec {
    pub(crate) fn source(&self, seed: u64) -> Result<Source, Error> {
        check_alpha(self.alpha)?;
        let Some(of) = published(&self.name) else {
            let known: Vec<&str> = PUBLISHED.iter().map(|each| each.name).collect();
            return Err(Error::Invalid(format!("look-alike:{}: its statistics are not known; give one of {}", self.name, known.join(", "))));
        };
        let law = match &self.arrivals {
            Some(law) => law.clone(),
            None if of.variation > 1.0 => Arrivals::Bursty { mean_ms: of.interarrival_ms, variation: of.variation },
            None => Arrivals::Exponential { mean_ms: of.interarrival_ms },
        };
        let place = LookAlike::new(of, self.alpha, seed, SplitMix64::new(seed, PLACE_STREAM))?;
        Ok(Box::new(Generated::new(&law, place, seed)?))
    }
}
