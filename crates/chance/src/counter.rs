//! Draws by number instead of by turn: the n-th draw is a function of n, so nothing is remembered from one to the next.

use crate::splitmix::{GOLDEN, mixed};

/// SplitMix64's output function.
#[must_use]
pub fn mix(number: u64) -> u64 {
    mixed(number.wrapping_add(GOLDEN))
}

/// Uniform in 0..bound-1; the bias of the product method is below 2^-32 for any bound that a file has.
#[must_use]
pub fn below(random: u64, bound: u64) -> u64 {
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

/// Uniform in [0, 1), from the upper 53 bits.
#[must_use]
pub fn share(random: u64) -> f64 {
    (random >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// The numbers 0..count in an order that `seed` decides.
#[must_use]
pub fn shuffled(count: u32, seed: u64) -> Vec<u32> {
    let mut places: Vec<u32> = (0..count).collect();
    for k in (1..places.len()).rev() {
        let other = below(mix(mix(seed) ^ k as u64), k as u64 + 1);
        places.swap(k, other as usize);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_stands_once_in_a_shuffle() {
        let mut places = shuffled(1000, 7);
        assert_ne!(places, (0..1000).collect::<Vec<_>>());
        places.sort_unstable();
        assert_eq!(places, (0..1000).collect::<Vec<_>>());
    }
}
