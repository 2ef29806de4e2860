//! The statistics of requests small enough to count by hand, and stack distances beside their definition.

use proptest::prelude::*;

use super::*;

fn request(arrival_ms: u64, lba: u64, blocks: u32, write: bool) -> BlockRequest {
    BlockRequest { arrival_ns: arrival_ms * 1_000_000, lba, blocks, write }
}

fn of(requests: &[BlockRequest]) -> Summary {
    gather(requests.iter().copied().map(Ok), Measure { track_blocks: 10, near_blocks: 5 }).unwrap()
}

#[test]
fn columns_of_the_tables_are_what_a_hand_counts() {
    let all = of(&[request(0, 0, 8, true), request(10, 8, 2, false), request(40, 0, 5, true), request(50, 100, 5, true)]);
    assert_eq!((all.requests, all.writes, all.lba_max, all.request_blocks_max, all.blocks), (4, 3, 104, 8, 20));
    assert_eq!((all.write_share, all.request_blocks, all.duration_s), (0.75, 5.0, 0.05));
    assert!((all.interarrival_ms - 50.0 / 3.0).abs() < 1e-9);
    // Gaps 10, 30, 10: variance 800 / 9.
    assert!((all.interarrival_variation - (800.0f64 / 9.0).sqrt() / (50.0 / 3.0)).abs() < 1e-9);
    // 8 to 8, 10 to 0, 5 to 100.
    assert_eq!(all.distance_blocks, 105.0 / 3.0);
    // Writes: 8 to 0, 5 to 100.
    assert_eq!((all.write_distances.count, all.write_distances.near_share), (2, 0.0));
    assert_eq!(
        all.write_distances.steps,
        [Step { below: 16, share: 0.5 }, Step { below: 32, share: 0.5 }, Step { below: 64, share: 0.5 }, Step { below: 128, share: 1.0 }]
    );
}

#[test]
fn a_stack_distance_counts_the_other_tracks_between() {
    // Tracks 0, 1, 2, 1, 0, and a write over 0 and 1.
    let all = of(&[
        request(0, 0, 1, true),
        request(0, 10, 1, true),
        request(0, 20, 1, true),
        request(0, 11, 1, true),
        request(0, 5, 5, true),
        request(0, 9, 2, true),
    ]);
    // 1 after 2: 1. 0 after 1, 2: 2. 0 after 0: 0. 1 after 0: 1.
    assert_eq!((all.stack_distances.tracks, all.stack_distances.updates, all.stack_distances.repeated), (3, 7, 4));
    assert_eq!(all.stack_distances.steps, [Step { below: 1, share: 0.25 }, Step { below: 2, share: 0.75 }, Step { below: 4, share: 1.0 }]);
}

#[test]
fn of_no_request_everything_is_zero() {
    let none = of(&[]);
    assert_eq!((none.requests, none.interarrival_ms, none.distance_blocks, none.write_share), (0, 0.0, 0.0, 0.0));
    assert!(none.stack_distances.steps.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    /// Long enough to number the moments anew several times.
    #[test]
    fn stack_distances_are_those_of_a_list_kept_in_order(tracks in prop::collection::vec(0u64..40, 0..5000)) {
        let mut stack = Stack::default();
        let mut wanted = Histogram::default();
        let mut recent: Vec<u64> = Vec::new();
        for track in tracks {
            if let Some(at) = recent.iter().position(|&each| each == track) {
                wanted.take(at as u64);
                recent.remove(at);
            }
            recent.insert(0, track);
            stack.update(track);
        }
        prop_assert_eq!(stack.distances().steps(), wanted.steps());
        prop_assert_eq!(stack.tracks(), recent.len() as u64);
    }
}
