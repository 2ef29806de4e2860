//! What a simulation is fed with, as one description: where requests come from, how many, how time is stretched, into which space they are folded.

use serde::Deserialize;

use crate::adapt::{Beyond, fit, scatter, stretch};
use crate::generate::{LookAlikeSpec, SynSpec, UniformSpec, ZipfSpec};
use crate::trace::{Format, TraceSpec, open};
use crate::{Error, Source};

/// The version of the description that this crate reads.
pub const WORKLOAD_VERSION: u32 = 1;

/// Where requests come from.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum From {
    /// A trace file.
    Trace(TraceSpec),
    /// Anywhere in the space.
    Uniform(UniformSpec),
    /// By Zipf's law over chunks.
    Zipf(ZipfSpec),
    /// One after the other.
    Syn(SynSpec),
    /// Like a published trace.
    LookAlike(LookAlikeSpec),
}

fn one() -> f64 {
    1.0
}

fn one_time() -> u64 {
    1
}

/// A block workload (docs/formats.md).
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockWorkload {
    /// [`WORKLOAD_VERSION`].
    pub version: u32,
    /// Where requests come from.
    pub from: From,
    /// At most so many; a generator that does not end by itself needs it.
    #[serde(default)]
    pub requests: Option<u64>,
    /// Factor of all times of arrival.
    #[serde(default = "one")]
    pub stretch: f64,
    /// Factor of all first blocks, before they are folded. 512 takes offsets in bytes for blocks, which spreads requests over the whole space.
    #[serde(default = "one_time")]
    pub lba_factor: u64,
    /// What becomes of requests beyond the space.
    #[serde(default)]
    pub beyond: Beyond,
    /// Of the generators.
    #[serde(default)]
    pub seed: u64,
}

/// Stretched beyond this, times would not fit.
const STRETCH_MAX: f64 = 1e9;

/// Bytes of the largest blocks that disks have.
const LBA_FACTOR_MAX: u64 = 1 << 16;

impl BlockWorkload {
    /// The description in a JSON object.
    ///
    /// # Errors
    /// [`Error::Invalid`] with what is wrong in it.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| Error::Invalid(format!("the block workload: {error}; correct it")))
    }

    /// Its requests within `space_blocks`; `None` leaves traces and look-alikes in the space that they have of themselves.
    ///
    /// # Errors
    /// A description that cannot be, a trace that cannot be opened.
    pub fn open(&self, space_blocks: Option<u64>) -> Result<Source, Error> {
        self.open_told(space_blocks).map(|(_, source)| source)
    }

    /// As [`BlockWorkload::open`], with the format of a trace.
    ///
    /// # Errors
    /// As [`BlockWorkload::open`].
    pub fn open_told(&self, space_blocks: Option<u64>) -> Result<(Option<Format>, Source), Error> {
        self.check(space_blocks)?;
        let space = space_blocks.unwrap_or(0);
        let mut format = None;
        let source = match &self.from {
            From::Trace(spec) => {
                let opened = open(spec)?;
                format = Some(opened.format);
                opened.requests
            }
            From::Uniform(spec) => spec.source(space, self.seed)?,
            From::Zipf(spec) => spec.source(space, self.seed)?,
            From::Syn(spec) => spec.source(space, self.seed)?,
            From::LookAlike(spec) => spec.source(self.seed)?,
        };
        let source = if self.stretch == 1.0 { source } else { stretch(source, self.stretch) };
        let source = if self.lba_factor == 1 { source } else { scatter(source, self.lba_factor) };
        let source = match space_blocks {
            Some(blocks) => fit(source, blocks, self.beyond),
            None => source,
        };
        let source = match self.requests {
            Some(requests) => Box::new(source.take(usize::try_from(requests).unwrap_or(usize::MAX))),
            None => source,
        };
        Ok((format, source))
    }

    fn check(&self, space_blocks: Option<u64>) -> Result<(), Error> {
        let invalid = |text: &str| Err(Error::Invalid(text.to_owned()));
        if self.version != WORKLOAD_VERSION {
            return Err(Error::Invalid(format!("version = {} of the workload is not known; upgrade stripewise", self.version)));
        }
        if !(self.stretch >= 0.0 && self.stretch <= STRETCH_MAX) {
            return Err(Error::Invalid(format!("stretch = {} is not from 0 to 1e9; correct it", self.stretch)));
        }
        if !(1..=LBA_FACTOR_MAX).contains(&self.lba_factor) {
            return Err(Error::Invalid(format!("lba_factor = {} is not from 1 to {LBA_FACTOR_MAX}; correct it", self.lba_factor)));
        }
        if self.requests == Some(0) {
            return invalid("requests = 0 makes no workload; give at least 1");
        }
        let (needs_space, ends) = match &self.from {
            From::Trace(_) => (false, true),
            From::LookAlike(_) => (false, false),
            From::Syn(spec) => (true, !spec.again),
            From::Uniform(_) | From::Zipf(_) => (true, false),
        };
        if self.requests.is_none() && !ends {
            return invalid("requests is missing; this workload has no end of its own: give their number");
        }
        match space_blocks {
            Some(0) => invalid("the space has no blocks; give more"),
            None if needs_space => invalid("the workload needs a space; give its blocks"),
            _ => Ok(()),
        }
    }
}
