//! Synthetic paths from a profile (thesis, section 2.6.4, algorithm 1).
//!
//! First the frame: files, their sessions, the operations of each and their sequence ids ([`frame`]); then one stream, with the operations outside sessions in
//! its holes ([`holes`]); then the arguments of each request in that order ([`arguments`]), so that what depends on what came before can; then a file of it
//! ([`write`]). Draws are stratified ([`distribution`], [`dealer`]). Files that symbolic patterns cover have theirs put in between ([`weave`]).

pub mod arguments;
pub mod dealer;
mod decks;
pub mod distribution;
mod extent;
pub mod frame;
pub mod holes;
mod ids;
pub mod parts;
mod pauses;
pub mod profile;
pub mod states;
mod walk;
pub mod weave;
pub mod who;
pub mod write;

use arguments::{Filled, filled};
use decks::Decks;
use frame::{Frame, REQUESTS_MAX, Streams, frame};
use holes::{Place, merged};
use parts::Parts;
use profile::Profile;
use weave::among;

/// A synthetic path: the frame that it was made in, all requests in their order, and all files.
pub struct Synthetic {
    /// Sessions, and ids before holes were closed.
    pub frame: Frame,
    /// Requests and files.
    pub filled: Filled,
}

/// The path of a profile for so many processes, as the seed decides. Fails with a sentence that names key and cure.
pub fn synthesize(profile: &Profile, processes: u32, seed: u64) -> Result<Synthetic, String> {
    let streams = Streams::new(seed);
    let frame = framed(profile, processes, streams)?;
    let order = merged(profile, &frame, streams);
    ordered(profile, frame, &order, streams)
}

/// The same among `patterns` requests of symbolic patterns, where the traced run had a `sequence` of so many requests: the path, and before each of its
/// requests how many of the patterns' come.
pub fn synthesize_among(profile: &Profile, processes: u32, seed: u64, sequence: u64, patterns: u64) -> Result<(Synthetic, Vec<u64>), String> {
    let streams = Streams::new(seed);
    let frame = framed(profile, processes, streams)?;
    let (order, before) = among(profile, &frame, streams, sequence, patterns);
    Ok((ordered(profile, frame, &order, streams)?, before))
}

fn framed(profile: &Profile, processes: u32, streams: Streams) -> Result<Frame, String> {
    let outside: f64 = profile.classes.values().flat_map(|class| class.outside.values()).sum();
    if outside > REQUESTS_MAX as f64 {
        return Err(format!("RT2: more than {REQUESTS_MAX} requests; give smaller counts"));
    }
    frame(profile, Parts::of(profile, processes)?, streams)
}

fn ordered(profile: &Profile, frame: Frame, order: &[Place], streams: Streams) -> Result<Synthetic, String> {
    let decks = Decks::of(profile, &frame, streams);
    let filled = filled(order, &frame, decks, streams)?;
    Ok(Synthetic { frame, filled })
}

#[cfg(test)]
mod marked;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod woven;
