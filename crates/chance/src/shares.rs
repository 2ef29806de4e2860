//! Draws by weight: of many choices, each with its share, the one that a uniform number means.
//!
//! Binary search would do; a guide table says where to begin, so that the same answer takes a step or two however many choices there are.

/// Choices 0, 1, ... with their shares.
#[derive(Clone, Debug)]
pub struct Shares {
    /// Share of choices 0..=k.
    cumulative: Vec<f64>,
    /// For a draw in [b, b + 1) / len, the first choice that it can mean. A power of two, so that the bucket of a draw is exact.
    guide: Vec<u32>,
}

impl Shares {
    /// Choices of the given weights, fewer than 2^32 of them, not negative, their sum positive.
    #[must_use]
    pub fn of(weights: impl Iterator<Item = f64>) -> Shares {
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|each| *each /= sum);
        let guide = guide(&cumulative);
        Shares { cumulative, guide }
    }

    /// Zipf's law: choice k gets a share proportional to 1 / (k + 1)^alpha.
    #[must_use]
    pub fn zipf(choices: u32, alpha: f64) -> Shares {
        Shares::of((1..=choices).map(|rank| f64::from(rank).powf(-alpha)))
    }

    /// The first choice whose cumulative share is above `draw` in [0, 1), the last one where rounding leaves none.
    #[inline]
    #[must_use]
    pub fn pick(&self, draw: f64) -> usize {
        let bucket = (draw * self.guide.len() as f64) as usize;
        let mut k = self.guide.get(bucket).map_or(0, |&k| k as usize);
        while k + 1 < self.cumulative.len() && self.cumulative.get(k).is_some_and(|&up_to| up_to <= draw) {
            k += 1;
        }
        k
    }
}

fn guide(cumulative: &[f64]) -> Vec<u32> {
    let buckets = cumulative.len().next_power_of_two();
    let mut k = 0;
    (0..buckets)
        .map(|bucket| {
            let from = bucket as f64 / buckets as f64;
            while k + 1 < cumulative.len() && cumulative.get(k).is_some_and(|&up_to| up_to <= from) {
                k += 1;
            }
            k as u32
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{mix, share};

    #[test]
    fn the_guide_finds_what_a_binary_search_finds() {
        for (choices, alpha) in [(1, 0.8), (2, 0.0), (7, 1.0), (1000, 0.8), (1024, 3.0), (5000, 20.0)] {
            let shares = Shares::zipf(choices, alpha);
            let edges = shares.cumulative.iter().flat_map(|&at| [at.next_down(), at, at.next_up()]).filter(|&at| (0.0..1.0).contains(&at));
            for draw in (0..2000).map(|n| share(mix(n))).chain(edges) {
                let sought = shares.cumulative.partition_point(|&up_to| up_to <= draw).min(choices as usize - 1);
                assert_eq!(shares.pick(draw), sought, "{choices} choices, alpha {alpha}, draw {draw}");
            }
        }
    }
}
