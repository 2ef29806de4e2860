//! Ticks to wall-clock nanoseconds, for all logs of one boot of one machine.
//!
//! Every log holds pairs (ticks, CLOCK_REALTIME). The pairs of all logs that share a boot id and a clock are pooled into one
//! piecewise linear map, so that threads of a machine stay in the order in which they ran, which maps of their own would blur.

/// Knots closer than this are thinned: a pair is good to some 100 ns, which over 10 ms is 10 ppm of rate.
const KNOT_GAP_NS: u64 = 10_000_000;
/// A span shorter than this gives a worse rate than the hardware's own statement.
const SPAN_MIN_NS: u64 = 1_000_000;

/// A map from ticks to nanoseconds since the epoch.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Strictly increasing in both.
    knots: Vec<(u64, u64)>,
    /// Nanoseconds per ticks, as a fraction, outside the knots.
    rate: (u64, u64),
}

impl Timeline {
    /// The map through these pairs; `nominal_hz` (0 unknown) is used when they span too little. `None` when neither tells the rate.
    #[must_use]
    pub fn new(mut pairs: Vec<(u64, u64)>, nominal_hz: u64) -> Option<Timeline> {
        pairs.sort_unstable();
        let mut knots: Vec<(u64, u64)> = Vec::new();
        let last = pairs.last().copied()?;
        for pair in pairs {
            let far = knots.last().is_none_or(|&(ticks, ns)| pair.0 > ticks && pair.1 >= ns.saturating_add(KNOT_GAP_NS));
            if far {
                knots.push(pair);
            }
        }
        // The last pair, in place of one that is too close before it (but not of the first).
        if knots.len() > 1 && knots.last().is_some_and(|&(ticks, ns)| last.0 > ticks && last.1 > ns) {
            knots.pop();
        }
        if knots.last().is_some_and(|&(ticks, ns)| last.0 > ticks && last.1 > ns) {
            knots.push(last);
        }
        let (first, last) = (knots.first().copied()?, knots.last().copied()?);
        let span = (last.1 - first.1, last.0 - first.0);
        if span.1 > 0 && (span.0 >= SPAN_MIN_NS || nominal_hz == 0) {
            return Some(Timeline { knots, rate: span });
        }
        knots.truncate(1);
        (nominal_hz > 0).then_some(Timeline { knots, rate: (1_000_000_000, nominal_hz) })
    }

    /// Nanoseconds since the epoch; saturating.
    #[must_use]
    pub fn wall_ns(&self, ticks: u64) -> u64 {
        let after = self.knots.partition_point(|knot| knot.0 <= ticks);
        let before = self.knots.get(after.wrapping_sub(1));
        match (before, self.knots.get(after)) {
            (Some(from), Some(to)) => from.1.saturating_add(scale(ticks - from.0, (to.1 - from.1, to.0 - from.0))),
            (Some(from), None) => from.1.saturating_add(scale(ticks - from.0, self.rate)),
            (None, Some(to)) => to.1.saturating_sub(scale(to.0 - ticks, self.rate)),
            (None, None) => 0,
        }
    }
}

fn scale(ticks: u64, (ns, per): (u64, u64)) -> u64 {
    let scaled = u128::from(ticks) * u128::from(ns) / u128::from(per.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    const EPOCH: u64 = 1_700_000_000_000_000_000;

    #[test]
    fn a_counter_of_2_5_ghz_is_read_in_nanoseconds() {
        let line = Timeline::new(vec![(1_000, EPOCH), (2_500_001_000, EPOCH + 1_000_000_000)], 0).unwrap();
        assert_eq!(line.wall_ns(1_000 + 25), EPOCH + 10);
        assert_eq!(line.wall_ns(2_500_001_000 + 2_500), EPOCH + 1_000_001_000);
        assert_eq!(line.wall_ns(0), EPOCH - 400);
    }

    #[test]
    fn one_pair_needs_the_hardwares_own_rate() {
        assert!(Timeline::new(vec![(5, EPOCH)], 0).is_none());
        assert_eq!(Timeline::new(vec![(5, EPOCH)], 1_000_000_000).unwrap().wall_ns(6), EPOCH + 1);
        assert!(Timeline::new(vec![], 1).is_none());
    }

    proptest! {
        #[test]
        fn time_never_runs_backwards_whatever_the_pairs(pairs: Vec<(u64, u64)>, hz: u64, mut at: Vec<u64>) {
            if let Some(line) = Timeline::new(pairs, hz) {
                at.sort_unstable();
                let wall: Vec<u64> = at.iter().map(|&ticks| line.wall_ns(ticks)).collect();
                prop_assert!(wall.is_sorted());
            }
        }
    }
}
