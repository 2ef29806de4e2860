//! A workload that has the published statistics of a trace without being it: the look-alike.
//!
//! A request goes near the one before it of its own direction (spatial locality), or to a track drawn by Zipf's law (temporal locality). The
//! tracks' popularities lie shuffled in one area in the middle of the space, and a small share of the draws is uniform over all of it. The
//! area's width is what sets the mean distance between requests: independent draws from shares with cumulative F are 2 * sum of F * (1 - F)
//! tracks apart in the mean, which is solved for the width by bisection.

use stripewise_chance::{Shares, SplitMix64, shuffled};

use super::{Place, Published, TRACK_BLOCKS};
use crate::Error;

/// "A distance of 10000 blocks is considered small enough" (thesis, chapter 5.3.4).
pub(crate) const NEAR_BLOCKS: u64 = 10_000;
/// One request in so many has the largest size where the table prints it.
const LARGEST_ONE_IN: f64 = 2000.0;
/// Bisections: the width is then as exact as a float.
const HALVINGS: u32 = 50;
/// Rounds in which width and nearness, which depend on each other, settle.
const ROUNDS: u32 = 6;
/// More tracks would take gigabytes.
const TRACKS_MAX: u64 = 1 << 26;

/// Places and sizes of a look-alike.
#[derive(Debug)]
pub struct LookAlike {
    random: SplitMix64,
    tracks: Shares,
    space_blocks: u64,
    near_share: f64,
    write_share: f64,
    sizes: Sizes,
    /// End of the last read and of the last write.
    last: [Option<u64>; 2],
}

impl LookAlike {
    /// Like `of`, tracks by Zipf's law with exponent `alpha`.
    ///
    /// # Errors
    /// Statistics that no width of the hot area has.
    pub fn new(of: &Published, alpha: f64, seed: u64, random: SplitMix64) -> Result<LookAlike, Error> {
        let space_blocks = of.lba_max + 1;
        let count = space_blocks.div_ceil(TRACK_BLOCKS);
        if count > TRACKS_MAX {
            return Err(Error::Invalid(format!("look-alike:{}: {count} tracks are more than {TRACKS_MAX}; take a smaller trace", of.name)));
        }
        let shape = Shape::new(count as u32, alpha, of.distance_blocks / space_blocks as f64, seed);
        let (weights, near_share) = shape.settled(of)?;
        let sizes = Sizes::new(of.request_blocks, of.request_blocks_max);
        Ok(LookAlike {
            random,
            tracks: Shares::of(weights.into_iter()),
            space_blocks,
            near_share,
            write_share: of.write_share,
            sizes,
            last: [None; 2],
        })
    }
}

impl Place for LookAlike {
    fn next(&mut self) -> Option<(u64, u32, bool)> {
        let write = self.random.unit() < self.write_share;
        let blocks = self.sizes.draw(&mut self.random);
        let last_start = self.space_blocks.saturating_sub(u64::from(blocks));
        let is_near = self.random.unit() < self.near_share;
        let before = self.last.get_mut(usize::from(write))?;
        let lba = match *before {
            Some(end) if is_near => (end + self.random.below(2 * NEAR_BLOCKS + 1)).saturating_sub(NEAR_BLOCKS),
            _ => self.tracks.pick(self.random.unit()) as u64 * TRACK_BLOCKS + self.random.below(TRACK_BLOCKS),
        };
        let lba = lba.min(last_start);
        *before = Some(lba + u64::from(blocks));
        Some((lba, blocks, write))
    }
}

/// How popular tracks lie in the space, as a function of the width of the hot area.
struct Shape {
    tracks: u32,
    /// Share by popularity.
    popular: Vec<f64>,
    /// Where a popularity lies in a hot area of width 1.
    places: Vec<u32>,
    /// Share of draws that are uniform.
    cold: f64,
}

impl Shape {
    /// `spread` is the wanted mean distance over the space. A uniform draw is some quarter of the space away from a hot one, so twice that many
    /// uniform draws as `spread` make half of the distance; with few of them still the whole space is touched.
    fn new(tracks: u32, alpha: f64, spread: f64, seed: u64) -> Shape {
        let mut popular: Vec<f64> = (1..=tracks).map(|rank| f64::from(rank).powf(-alpha)).collect();
        let sum: f64 = popular.iter().sum();
        popular.iter_mut().for_each(|share| *share /= sum);
        Shape { tracks, popular, places: shuffled(tracks, seed), cold: spread.min(0.1) }
    }

    /// Share of each track when the hot area is `width` of the space.
    fn weights(&self, width: f64) -> Vec<f64> {
        let tracks = f64::from(self.tracks);
        let mut weights = vec![self.cold / tracks; self.tracks as usize];
        for (&share, &place) in self.popular.iter().zip(&self.places) {
            let at = tracks * 0.5 + ((f64::from(place) + 0.5) - tracks * 0.5) * width;
            if let Some(weight) = weights.get_mut(at as usize) {
                *weight += share * (1.0 - self.cold);
            }
        }
        weights
    }

    /// The shares whose mean distance is the published one, and the share of near requests that goes with them.
    fn settled(&self, of: &Published) -> Result<(Vec<f64>, f64), Error> {
        let mut near = of.near_share;
        let mut weights = Vec::new();
        for _ in 0..ROUNDS {
            // Near requests follow the one before them at once where that has their direction.
            let followed = near * (of.write_share * of.write_share + (1.0 - of.write_share) * (1.0 - of.write_share));
            let wanted = (of.distance_blocks - followed * NEAR_BLOCKS as f64 / 2.0) / (1.0 - followed);
            weights = self.weights(self.width(wanted).ok_or_else(|| {
                Error::Invalid(format!("look-alike:{}: a mean distance of {:.0} blocks is too far for its space", of.name, of.distance_blocks))
            })?);
            let by_chance = meetings(&weights);
            near = ((of.near_share - by_chance) / (1.0 - by_chance)).max(0.0);
        }
        Ok((weights, near))
    }

    /// The width at which independent draws are `wanted` blocks apart in the mean; `None` if not even the whole space is wide enough.
    fn width(&self, wanted: f64) -> Option<f64> {
        let (mut narrow, mut wide) = (0.0, 1.0);
        if distance(&self.weights(wide)) < wanted {
            return None;
        }
        for _ in 0..HALVINGS {
            let middle = 0.5 * (narrow + wide);
            if distance(&self.weights(middle)) < wanted { narrow = middle } else { wide = middle }
        }
        Some(wide)
    }
}

/// Mean distance of two independent draws, blocks.
fn distance(weights: &[f64]) -> f64 {
    let mut up_to = 0.0;
    let mut sum = 0.0;
    for weight in weights {
        up_to += weight;
        sum += up_to * (1.0 - up_to);
    }
    2.0 * sum * TRACK_BLOCKS as f64
}

/// Chance that two independent draws are within the reach of near ones: of the tracks at its very end, half are.
fn meetings(weights: &[f64]) -> f64 {
    let reach = (NEAR_BLOCKS / TRACK_BLOCKS) as usize;
    let within = |k: usize, reach: usize| -> f64 {
        let from = k.saturating_sub(reach);
        weights.get(from..(k + reach + 1).min(weights.len())).map_or(0.0, |tracks| tracks.iter().sum())
    };
    weights.iter().enumerate().map(|(k, weight)| weight * 0.5 * (within(k, reach) + within(k, reach - 1))).sum()
}

/// Sizes: geometric with the published mean, and now and then the largest.
#[derive(Debug)]
struct Sizes {
    /// ln of the chance that a request goes on for one more block; not negative for requests of one block.
    log_more: f64,
    largest: Option<u32>,
}

impl Sizes {
    fn new(mean: f64, largest: Option<u32>) -> Sizes {
        let rare = largest.map_or(0.0, |_| 1.0 / LARGEST_ONE_IN);
        let others = (mean - rare * largest.map_or(0.0, f64::from)) / (1.0 - rare);
        Sizes { log_more: (1.0 - 1.0 / others.max(1.0)).ln(), largest }
    }

    fn draw(&self, random: &mut SplitMix64) -> u32 {
        let is_largest = random.unit() * LARGEST_ONE_IN < 1.0;
        let more = (random.exponential() / -self.log_more).floor();
        let drawn = 1 + if more.is_finite() { more as u32 } else { 0 };
        match self.largest {
            Some(largest) if is_largest => largest,
            Some(largest) => drawn.min(largest),
            None => drawn,
        }
    }
}
