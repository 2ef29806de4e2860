//! The quick space of a band answers as the plain one, on random bands under any head.

use crate::oracle::PlainSpace;
use proptest::prelude::*;
use stripewise_swd::{Policy, Space};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn the_quick_space_answers_as_the_plain_one(
        head_tracks in 1u32..5,
        tracks in prop::sample::select(vec![9u32, 16, 40, 64, 100, 128, 129, 200]),
        bits in prop::collection::vec(0u8..100, 200),
        (used_percent, run) in (0u8..101, 1usize..9),
        changes in prop::collection::vec((0usize..200, any::<bool>()), 0..30),
        (head, limit, wanted) in (0usize..200, 0u64..9, 1usize..6),
        (pool_start, pool_tracks) in (0usize..200, 0usize..9),
        pinned in 0usize..200,
    ) {
        let (mut quick, mut plain) = (Space::new(tracks, head_tracks), PlainSpace::new(tracks, head_tracks));
        // The last W-1 tracks of a band are never used.
        let end = (tracks + 1 - head_tracks) as usize;
        let drawn = (0..end).map(|track| (track, bits[track / run] < used_percent));
        for (track, used) in drawn.chain(changes.into_iter().filter(|change| change.0 < end)) {
            quick.set(track, used);
            plain.set(track, used);
        }
        for used in [false, true] {
            prop_assert!(quick.elements(used).eq(plain.elements(used)));
        }
        prop_assert_eq!(quick.used_tracks(), plain.used_tracks());
        prop_assert_eq!(quick.fragmentation(), plain.fragmentation());
        prop_assert_eq!(quick.is_steady(), plain.is_steady());
        for track in 0..tracks as usize + 5 {
            prop_assert_eq!(quick.is_used(track), plain.is_used(track));
            prop_assert_eq!(quick.spares_others(track), plain.spares_others(track));
            prop_assert_eq!(quick.is_usable(track), plain.is_usable(track));
        }
        let (head, pool) = (head % tracks as usize, pool_start..pool_start + pool_tracks);
        for policy in [Policy::Greedy, Policy::Smart] {
            for pinned in [tracks as usize, pinned] {
                let quick = quick.collection_step(policy, head, limit, |victim| !victim.contains(&pinned));
                let plain = plain.collection_step(policy, head, limit, |track| track != pinned);
                prop_assert_eq!(quick, plain);
            }
            for source in [None, plain.elements(true).next().map(|element| element.start)] {
                prop_assert_eq!(quick.choose(policy, head, wanted, &pool), plain.choose(policy, head, wanted, source, &pool));
            }
        }
        prop_assert_eq!(quick.gather_step(), plain.gather_step());
    }
}
