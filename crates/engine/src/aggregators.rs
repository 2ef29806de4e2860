//! How many processes do the I/O of a collective call (section 3.5.2).

/// Whose rule the MPI library goes by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// ROMIO on Lustre: a number that goes with the stripe count.
    Lustre,
    /// ROMIO on any other file system: as many as it may.
    Other,
}

/// The aggregators of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aggregators {
    /// The most that there may be: hint `cb_nodes`, and one for each node (`cb_config_list` by default).
    pub most: u32,
    /// Those that there are.
    pub count: u32,
    /// Of Lustre, the stripe count is above `most` and no multiple of it.
    pub is_chasm: bool,
}

impl Aggregators {
    /// Those of a file in `stripes`; all from 1 on, `cb_nodes` and `co_ratio` as hinted.
    ///
    /// The text has ROMIO's Lustre driver take the largest number of at most `most` that divides the stripe count or is a multiple of it. ROMIO itself takes at
    /// most `co_ratio` times the stripe count, which is 1 for writes (step 8): so here, too.
    pub fn of(driver: Driver, cb_nodes: Option<u32>, nodes: u32, stripes: u32, co_ratio: u32) -> Aggregators {
        let (nodes, stripes) = (nodes.max(1), stripes.max(1));
        let most = cb_nodes.unwrap_or(nodes).clamp(1, nodes);
        if driver == Driver::Other {
            return Aggregators { most, count: most, is_chasm: false };
        }
        let count = if most >= stripes {
            stripes * (most / stripes).min(co_ratio.max(1))
        } else {
            (1..=most).rev().find(|count| stripes.is_multiple_of(*count)).unwrap_or(1)
        };
        Aggregators { most, count, is_chasm: most < stripes && !stripes.is_multiple_of(most) }
    }

    /// Whether so few are left that collective calls are not worth it: fewer than half. The text acts on every chasm; one that loses little is none here.
    pub fn are_too_few(self) -> bool {
        self.is_chasm && self.count < self.most.div_ceil(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the text has them.
    fn lustre(most: u32, stripes: u32) -> Aggregators {
        Aggregators::of(Driver::Lustre, None, most, stripes, u32::MAX)
    }

    #[test]
    fn the_chasms_of_the_text() {
        for (most, stripes) in [(12, 13), (60, 61), (64, 97)] {
            let found = lustre(most, stripes);
            assert_eq!(found, Aggregators { most, count: 1, is_chasm: true });
            assert!(found.are_too_few());
        }
        // 60 of 64 lose less than half, 8 and 16 of 60 none at all.
        assert_eq!(lustre(60, 64), Aggregators { most: 60, count: 32, is_chasm: true });
        assert!(!lustre(60, 64).are_too_few());
        assert_eq!(lustre(16, 8), Aggregators { most: 16, count: 16, is_chasm: false });
        assert_eq!(lustre(15, 60), Aggregators { most: 15, count: 15, is_chasm: false });
        assert_eq!(lustre(17, 8).count, 16);
    }

    #[test]
    fn a_server_has_no_more_of_them_than_co_ratio() {
        let of = |most, stripes, co_ratio| Aggregators::of(Driver::Lustre, None, most, stripes, co_ratio).count;
        // The example of ROMIO's own source, and the runs of the text by the ratio of step 8.
        assert_eq!([of(42, 20, 3), of(42, 20, 1), of(16, 8, 1), of(16, 8, 2), of(16, 8, 4)], [40, 20, 8, 16, 16]);
        assert_eq!([of(8, 60, 1), of(8, 60, 4)], [6, 6]);
    }

    #[test]
    fn hints_and_nodes_are_the_most() {
        assert_eq!(Aggregators::of(Driver::Other, Some(3), 16, 7, 1), Aggregators { most: 3, count: 3, is_chasm: false });
        assert_eq!(Aggregators::of(Driver::Other, Some(64), 16, 7, 1).count, 16);
        assert_eq!(Aggregators::of(Driver::Lustre, Some(4), 16, 8, 1).count, 4);
        assert_eq!(Aggregators::of(Driver::Lustre, Some(0), 0, 0, 0), Aggregators { most: 1, count: 1, is_chasm: false });
    }

    proptest! {
        #[test]
        fn no_larger_number_goes_with_the_stripe_count(most in 1u32..300, stripes in 1u32..300, co_ratio in 1u32..6) {
            let goes_with = |count: u32| count.is_multiple_of(stripes) || stripes.is_multiple_of(count);
            let found = lustre(most, stripes);
            prop_assert!(goes_with(found.count) && found.count <= most);
            prop_assert!((found.count + 1..=most).all(|count| !goes_with(count)));
            // There is no chasm where there are as many aggregators as may be, nor where every stripe has one.
            prop_assert!(!(found.is_chasm && (found.count == most || most >= stripes)));
            let fewer = Aggregators::of(Driver::Lustre, None, most, stripes, co_ratio).count;
            prop_assert!(goes_with(fewer) && fewer == found.count.min(co_ratio * stripes));
        }
    }
}
