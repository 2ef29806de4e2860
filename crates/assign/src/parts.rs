//! The same work on every part of the regions. The parts depend on the number of regions alone.

use std::ops::Range;

use stripewise_threads::{numbered, wanted};

/// Regions per part at least, and parts at most.
const PART: usize = 32;
const PARTS: usize = 48;
/// Below so many (window, region, choice) triples one thread is faster.
const WORTH_THREADS: usize = 1 << 17;

/// `f` of every part, with working space of its thread; `work` counts (window, region, choice) triples.
pub(crate) fn parts<S, R: Send>(regions: usize, work: usize, space: impl Fn() -> S + Sync, f: impl Fn(&mut S, Range<usize>) -> R + Sync) -> Vec<R> {
    let size = regions.div_ceil(PARTS).max(PART);
    let part = |number: usize| number * size..((number + 1) * size).min(regions);
    numbered(regions.div_ceil(size), wanted(work, WORTH_THREADS), space, |space, number| f(space, part(number)))
}
