//! Distributions of a profile (docs/formats.md, Profile of a workload), and stratified draws from them.
//!
//! Ours, where the thesis draws independently: n draws take the distribution at n equal steps of probability, from a random one on, so each value comes
//! its expected number of times, one more or less; the seed decides their order alone.

use serde::Deserialize;
use stripewise_chance::SplitMix64;

/// A distribution as a profile spells it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Distribution {
    /// A number alone: always that.
    Number(f64),
    /// Distinct values with weights.
    Values {
        /// Ascending.
        values: Vec<f64>,
        /// One for each.
        weights: Vec<f64>,
    },
    /// Piecewise linear between values at equal steps of probability.
    Quantiles {
        /// Ascending.
        quantiles: Vec<f64>,
    },
    /// Always the same.
    Constant {
        /// That.
        constant: f64,
    },
    /// Any number between two.
    Uniform {
        /// Lower and upper bound.
        uniform: [f64; 2],
    },
    Exponential {
        /// Its parameter.
        exponential: Mean,
    },
    Pareto {
        /// Its parameters.
        pareto: Pareto,
    },
    /// Normal, cut off at 0 by whoever draws what cannot be negative.
    Normal {
        /// Its parameters.
        normal: Normal,
    },
}

/// Parameter of an exponential law.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Mean {
    mean: f64,
}

/// Parameters of a Pareto law.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Pareto {
    scale: f64,
    shape: f64,
}

/// Parameters of a normal law.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Normal {
    mean: f64,
    deviation: f64,
}

/// Seconds between requests: a distribution, or short ones with a long one after every so many.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Slack {
    /// Bursts and pauses.
    Bursts {
        /// Within a burst.
        short: Distribution,
        /// Between bursts.
        long: Distribution,
        /// Requests from one long one to the next.
        every: Distribution,
    },
    /// Each like the others.
    Plain(Distribution),
}

impl Distribution {
    /// Always the same.
    #[must_use]
    pub fn constant(value: f64) -> Self {
        Self::Number(value)
    }

    fn only(&self) -> Option<f64> {
        match self {
            Self::Number(value) | Self::Constant { constant: value } => Some(*value),
            Self::Values { values, .. } if values.len() == 1 => values.first().copied(),
            _ => None,
        }
    }

    /// `count` stratified draws in ascending order (of a normal law in any).
    pub fn ascending(&self, count: usize, random: &mut SplitMix64) -> Vec<f64> {
        let first = random.unit();
        let mut strata = (0..count).map(|place| (place as f64 + first) / count as f64);
        match self {
            Self::Number(value) | Self::Constant { constant: value } => vec![*value; count],
            Self::Values { values, weights } => by_weight(values, weights, count, first),
            Self::Quantiles { quantiles } => {
                let step = common_step(quantiles);
                strata.map(|share| between(quantiles, share, step)).collect()
            }
            Self::Uniform { uniform: [low, high] } => strata.map(|share| low + (high - low) * share).collect(),
            Self::Exponential { exponential } => strata.map(|share| -exponential.mean * (1.0 - share).ln()).collect(),
            Self::Pareto { pareto } => strata.map(|share| pareto.scale * (1.0 - share).powf(-1.0 / pareto.shape)).collect(),
            // The middle of an even spread is not the law's, but each draw is normal, and so are all together up to their number.
            Self::Normal { normal } => strata.by_ref().map(|_| normal.mean + normal.deviation * random.normal()).collect(),
        }
    }

    /// The expected value of what `Deck` deals, from a fixed number of steps.
    #[must_use]
    pub fn mean(&self) -> f64 {
        const STEPS: usize = 1024;
        if let Self::Normal { normal } = self {
            return normal.mean;
        }
        self.ascending(STEPS, &mut SplitMix64::new(0, 0)).iter().sum::<f64>() / STEPS as f64
    }
}

/// Value k as often as there are n in its part of the cumulative weight.
fn by_weight(values: &[f64], weights: &[f64], count: usize, first: f64) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    let mut found = Vec::with_capacity(count);
    let mut up_to = 0.0;
    for (&value, &weight) in values.iter().zip(weights) {
        up_to += weight;
        let end = up_to * (count as f64 / sum);
        while found.len() < count && (found.len() as f64) + first < end {
            found.push(value);
        }
    }
    let last = values.last().copied().unwrap_or_default();
    found.resize(count, last);
    found
}

/// What divides all of them: an interpolated offset or size keeps the alignment of those seen. 0 where they are not whole.
fn common_step(values: &[f64]) -> f64 {
    let whole = values.iter().all(|value| value.fract() == 0.0 && value.abs() < 9e15);
    if !whole {
        return 0.0;
    }
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    values.iter().fold(0, |found, value| gcd(found, value.abs() as u64)).max(1) as f64
}

fn between(quantiles: &[f64], share: f64, step: f64) -> f64 {
    let place = share * (quantiles.len().saturating_sub(1)) as f64;
    let low = quantiles.get(place as usize).copied().unwrap_or_default();
    let high = quantiles.get(place as usize + 1).copied().unwrap_or(low);
    let found = low + (high - low) * place.fract();
    if step > 0.0 { (found / step).floor() * step } else { found }
}

/// Draws of a distribution, each dealt once; from the first again when all are dealt.
#[derive(Clone, Debug)]
pub struct Deck {
    cards: Vec<f64>,
    next: usize,
}

impl Deck {
    /// `count` draws in an order of the stream's.
    #[must_use]
    pub fn of(distribution: &Distribution, count: usize, random: &mut SplitMix64) -> Self {
        let mut cards = match distribution.only() {
            Some(only) => vec![only],
            None => distribution.ascending(count.max(1), random),
        };
        shuffle(&mut cards, random);
        Self { cards, next: 0 }
    }

    /// Cards in this order.
    #[must_use]
    pub const fn as_given(cards: Vec<f64>) -> Self {
        Self { cards, next: 0 }
    }

    /// Bursts keep their order: a long one ends each run of short ones.
    #[must_use]
    pub fn of_slack(slack: &Slack, count: usize, random: &mut SplitMix64) -> Self {
        let (short, long, every) = match slack {
            Slack::Plain(plain) => return Self::of(plain, count, random),
            Slack::Bursts { short, long, every } => (short, long, every),
        };
        let expected = (count as f64 / every.mean().max(1.0)).ceil() as usize;
        let (mut runs, mut longs) = (Self::of(every, expected, random), Self::of(long, expected, random));
        let mut shorts = Self::of(short, count.saturating_sub(expected), random);
        let mut cards = Vec::with_capacity(count);
        // Whole runs are dealt anew: they begin anywhere in the first.
        let mut left = (runs.draw().max(1.0) * random.unit()) as u64 + 1;
        while cards.len() < count.max(1) {
            left -= 1;
            if left == 0 {
                left = runs.draw().clamp(1.0, 1e15) as u64;
                cards.push(longs.draw());
            } else {
                cards.push(shorts.draw());
            }
        }
        Self { cards, next: 0 }
    }

    /// The next one.
    #[inline]
    pub fn draw(&mut self) -> f64 {
        let found = self.cards.get(self.next).copied().unwrap_or_default();
        self.next += 1;
        if self.next >= self.cards.len() {
            self.next = 0;
        }
        found
    }

    /// The next one as a whole number, not below `low`.
    #[inline]
    pub fn whole(&mut self, low: u64) -> u64 {
        (self.draw().round().clamp(0.0, 4e18) as u64).max(low)
    }
}

/// Any order is as likely as another (Fisher and Yates).
pub fn shuffle<T>(cards: &mut [T], random: &mut SplitMix64) {
    for place in (1..cards.len()).rev() {
        cards.swap(place, random.below(place as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dealt(json: &str, count: usize, seed: u64) -> Vec<f64> {
        let mut deck = Deck::of(&serde_json::from_str(json).unwrap(), count, &mut SplitMix64::new(seed, 0));
        (0..count).map(|_| deck.draw()).collect()
    }

    #[test]
    fn as_many_draws_as_a_trace_had_are_the_trace_s_own_in_another_order() {
        let json = r#"{"values": [1, 2, 4096], "weights": [3, 1, 96]}"#;
        let one = dealt(json, 100, 1);
        let count = |of: f64| one.iter().filter(|&&each| each == of).count();
        assert_eq!([count(1.0), count(2.0), count(4096.0)], [3, 1, 96]);
        assert_ne!(one, dealt(json, 100, 2));
        assert_eq!(one, dealt(json, 100, 1));
    }

    #[test]
    fn quantiles_keep_the_alignment_of_what_was_seen() {
        let found = dealt(r#"{"quantiles": [0, 8192, 65536]}"#, 1000, 3);
        assert!(found.iter().all(|each| each % 8192.0 == 0.0) && found.contains(&40960.0));
    }

    #[test]
    fn laws_have_their_means() {
        for (json, mean) in [
            (r#"{"exponential": {"mean": 5}}"#, 5.0),
            (r#"{"uniform": [2, 4]}"#, 3.0),
            (r#"{"pareto": {"scale": 2, "shape": 3}}"#, 3.0),
            (r#"{"normal": {"mean": 7, "deviation": 2}}"#, 7.0),
            ("12", 12.0),
        ] {
            let found = dealt(json, 20_000, 5);
            let of = found.iter().sum::<f64>() / found.len() as f64;
            assert!((of - mean).abs() < 0.02 * mean, "{json}: {of}");
        }
    }

    #[test]
    fn a_long_slack_follows_every_run_of_short_ones() {
        let slack: Slack = serde_json::from_str(r#"{"short": 0.001, "long": 1, "every": 10}"#).unwrap();
        let mut deck = Deck::of_slack(&slack, 1000, &mut SplitMix64::new(1, 1));
        let places: Vec<usize> = (0..1000).filter(|_| deck.draw() == 1.0).collect();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] == 10) && places.len() == 100, "{places:?}");
    }

    proptest! {
        #[test]
        fn every_value_comes_its_expected_number_of_times_but_one(
            weights in prop::collection::vec(0u32..50, 1..20), count in 1usize..500, seed: u64
        ) {
            prop_assume!(weights.iter().any(|&weight| weight > 0));
            let values: Vec<usize> = (0..weights.len()).collect();
            let found = dealt(&serde_json::json!({ "values": values, "weights": weights }).to_string(), count, seed);
            let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
            for (value, &weight) in weights.iter().enumerate() {
                let seen = found.iter().filter(|&&each| each == value as f64).count() as f64;
                prop_assert!((seen - f64::from(weight) * count as f64 / sum).abs() < 1.0 + 1e-6);
            }
        }
    }
}
