//! Slack from a distribution: a function of seed, node and round, so that nothing is remembered. Ranks that compute equally long draw alike: independent draws
//! would make the slowest of many processes hold up each collective call, and the more so the more there are. Those that do not draw with a seed of their own.

use stripewise_chance::{below, mix};

use crate::tables::Distribution;

/// The seed that a rank draws with where each draws for itself.
#[must_use]
pub fn seed_of(seed: u64, rank: u32) -> u64 {
    mix(seed ^ mix(!u64::from(rank)))
}

/// Slack, ns. The player has the same integer arithmetic.
#[must_use]
pub fn draw(distribution: &Distribution, seed: u64, node: u64, round: u64) -> u64 {
    let random = mix(mix(seed ^ mix(node)) ^ round);
    match distribution {
        Distribution::Values(values) => {
            let total = values.iter().fold(0u64, |sum, (_, weight)| sum.wrapping_add(*weight));
            let mut left = below(random, total);
            for (value, weight) in values {
                match left.checked_sub(*weight) {
                    None => return *value,
                    Some(rest) => left = rest,
                }
            }
            0
        }
        Distribution::Quantiles(quantiles) => {
            let steps = (quantiles.len() as u64).saturating_sub(1);
            let place = (random >> 32) * steps;
            let at = (place >> 32) as usize;
            let low = quantiles.get(at).copied().unwrap_or(0);
            let high = quantiles.get(at + 1).copied().unwrap_or(low);
            low + ((u128::from(high - low) * u128::from(place & 0xffff_ffff)) >> 32) as u64
        }
    }
}
