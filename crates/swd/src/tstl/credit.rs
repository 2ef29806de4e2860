//! What a band may lose to Greedy. It goes by Adaptive's rules while it has credit, and by Greedy's until that is made up.
//!
//! A write adds to a band's credit what Greedy would have taken and a share of it, and takes off what was taken. So if Greedy's rules cost what they cost
//! Greedy, a band never takes more than Greedy, that share, [`CREDIT_REQUESTS`] and the last write of each spell. They may cost more, because a band cannot be
//! put into the state that Greedy would have left without moving all of it; then Adaptive's get a new credit. What that comes to is searched for by a test
//! (`tests/all/adversary.rs`).

/// One request may be lost for each so many that Greedy takes.
const LOSS_PART: i64 = 8;
/// What a spell of either rules may lose beside that. It is also the most that a band saves up: what was gained long ago is no licence.
const CREDIT_REQUESTS: i64 = 32;
const CREDIT_PARTS: i64 = LOSS_PART * CREDIT_REQUESTS;

/// A band's credit, in parts of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Credit {
    parts: i64,
    /// Whether the band goes by Greedy's rules.
    pub(crate) is_greedy: bool,
}

impl Credit {
    /// Of a band that goes by Adaptive's rules.
    pub(crate) const FULL: Self = Self { parts: CREDIT_PARTS, is_greedy: false };
    /// Of a band that goes by Greedy's.
    const NONE: Self = Self { parts: 0, is_greedy: true };

    /// A write took so many requests, and would have taken Greedy so many.
    pub(crate) fn spent(self, requests: u64, greedy: u64) -> Self {
        let parts = self.parts + (LOSS_PART + 1) * greedy as i64 - LOSS_PART * requests as i64;
        match self.is_greedy {
            false if parts < 0 => Self::NONE,
            true if !(-CREDIT_PARTS..CREDIT_PARTS).contains(&parts) => Self::FULL,
            _ => Self { parts: parts.min(CREDIT_PARTS), ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_spell_of_either_rules_loses_no_more_than_its_credit_before_its_last_write(writes in prop::collection::vec((0u64..200, 1u64..60), 1..400)) {
            let (mut credit, mut own, mut greedy) = (Credit::FULL, 0, 0);
            for (requests, greedy_requests) in writes {
                let was_greedy = credit.is_greedy;
                credit = credit.spent(requests, greedy_requests);
                (own, greedy) = if credit.is_greedy == was_greedy { (own + requests as i64, greedy + greedy_requests as i64) } else { (0, 0) };
                prop_assert!(LOSS_PART * own <= (LOSS_PART + 1) * greedy + CREDIT_PARTS);
            }
        }

        #[test]
        fn as_long_as_greedys_rules_cost_what_they_cost_greedy_the_loss_is_bounded(writes in prop::collection::vec((0u64..200, 1u64..60), 1..400)) {
            let (mut credit, mut own, mut greedy) = (Credit::FULL, 0, 0);
            for (requests, greedy_requests) in writes {
                let requests = if credit.is_greedy { greedy_requests } else { requests };
                (own, greedy) = (own + requests as i64, greedy + greedy_requests as i64);
                credit = credit.spent(requests, greedy_requests);
                // The last write of a spell overdraws: by all of it, each time.
                let overdrawn = if credit == Credit::NONE { requests as i64 } else { 0 };
                prop_assert!(LOSS_PART * (own - overdrawn) <= (LOSS_PART + 1) * greedy + CREDIT_PARTS);
                own -= overdrawn;
            }
        }
    }

    #[test]
    fn what_was_saved_long_ago_is_no_licence() {
        let mut credit = Credit::FULL;
        (0..1000).for_each(|_| credit = credit.spent(1, 10));
        assert_eq!(credit, Credit::FULL);
        assert!(credit.spent(44, 10).is_greedy && !credit.spent(43, 10).is_greedy, "10, an eighth of it, and 32");
    }
}
