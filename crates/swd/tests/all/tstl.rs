//! Facts of T-STL on a medium that destroys, and whose power goes at any write.

use crate::common::{Checked, SECTOR_BYTES, medium, medium_with};
use proptest::prelude::*;
use stripewise_swd::{CheckingMedium, Geometry, MediumError, Policy, Scan, Scheme, SwdError, TrackLayer, TrackParameters, Zone};

type Layer = Checked<TrackLayer<CheckingMedium>>;

#[derive(Clone, Debug)]
enum Step {
    Write(f64, u64),
    Trim(f64, u64),
    Flush,
    Checkpoint,
    Cut(u64, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0.0..1.0f64, 1u64..9).prop_map(|(at, sectors)| Step::Write(at, sectors)),
        2 => (0.0..1.0f64, 1u64..9).prop_map(|(at, sectors)| Step::Trim(at, sectors)),
        2 => Just(Step::Flush),
        1 => Just(Step::Checkpoint),
        2 => (0u64..12, any::<u64>()).prop_map(|(writes, seed)| Step::Cut(writes, seed)),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn no_cut_at_any_write_loses_flushed_data_under_any_parameters(
        (policy, scan) in prop::sample::select(vec![
            (Policy::Greedy, Scan::All),
            (Policy::Smart, Scan::All),
            (Policy::Smart, Scan::Pools),
            (Policy::Adaptive, Scan::All),
            (Policy::Adaptive, Scan::Pools),
        ]),
        head_tracks in 1u32..4,
        spare_tracks in 1u32..8,
        sectors in prop::collection::vec(1u32..4, 1..3),
        (first_tracks, spread_tracks) in (0u32..4, 0u32..4),
        gc_threshold in 0.0..1.0f64,
        alternate_limit in prop::sample::select(vec![0.0, 0.3, 0.5, 1.0]),
        checkpoint_writes in 1u32..20,
        filled in any::<bool>(),
        steps in steps(),
    ) {
        let band_tracks = 2 * head_tracks + spare_tracks;
        let zones: Vec<Zone> = sectors.iter().map(|&sectors| Zone { tracks: 2 * band_tracks + 1, sectors }).collect();
        let parameters = TrackParameters { policy, band_tracks, first_tracks, spread_tracks, gc_threshold, alternate_limit, checkpoint_writes, ..TrackParameters::default() };
        let mut checked = Layer::new(medium(&zones, head_tracks), (parameters, scan));
        let capacity = checked.capacity();
        if filled {
            checked.write(0, capacity).unwrap();
        }
        for step in steps {
            let range = |at: f64, sectors: u64| {
                let lba = (at * capacity as f64) as u64;
                (lba, sectors.min(capacity - lba))
            };
            let result = match step {
                Step::Write(at, sectors) => { let (lba, sectors) = range(at, sectors); checked.write(lba, sectors) }
                Step::Trim(at, sectors) => { let (lba, sectors) = range(at, sectors); checked.trim(lba, sectors) }
                Step::Flush => checked.flush(),
                Step::Checkpoint => checked.disk().checkpoint(),
                Step::Cut(writes, seed) => {
                    checked.disk().medium_mut().cut_after(writes);
                    let lost = (0..200).map(|at| checked.write(at % capacity, 1)).find(Result::is_err);
                    prop_assert_eq!(lost, Some(Err(SwdError::Medium(MediumError::PowerLost))));
                    checked.crash(seed);
                    Ok(())
                }
            };
            prop_assert_eq!(result, Ok(()));
            checked.holds_the_last_writes();
        }
    }
}

#[test]
fn alternate_tracks_are_updated_in_place_without_amplification_below_half() {
    for policy in [Policy::Greedy, Policy::Smart, Policy::Adaptive] {
        let parameters = TrackParameters { policy, band_tracks: 20, first_tracks: 16, ..TrackParameters::default() };
        let mut checked = Layer::new(medium(&[Zone { tracks: 40, sectors: 4 }], 2), (parameters, Scan::All));
        // Eight of sixteen logical tracks in each of two bands of 20.
        for track in (0..8).chain(16..24) {
            checked.write(track * 4, 4).unwrap();
        }
        let before = checked.disk().counters();
        for lba in (0..32).chain(64..96) {
            checked.write(lba, 1).unwrap();
        }
        let after = checked.disk().counters();
        assert_eq!((after.extra_reads, after.extra_writes, after.collections), (before.extra_reads, before.extra_writes, 0));
        checked.holds_the_last_writes();
    }
}

#[test]
fn a_disk_filled_with_all_alternate_tracks_needs_no_other_moved() {
    for (band_tracks, head_tracks) in [(100, 2), (21, 2), (30, 3), (12, 1)] {
        let parameters = TrackParameters { policy: Policy::Smart, band_tracks, alternate_limit: 1.0, ..TrackParameters::default() };
        let zone = [Zone { tracks: 2 * band_tracks, sectors: 1 }];
        let mut checked = Layer::new(medium_with(&zone, head_tracks, 64, 4000), (parameters, Scan::All));
        let alternate = u64::from((band_tracks - 2) / head_tracks).min(u64::from(band_tracks - 2 * head_tracks));
        for round in 0..2 {
            for track in 0..2 * alternate {
                checked.write(track, 1).unwrap();
            }
            let counters = checked.disk().counters();
            assert_eq!((counters.gathered_tracks, counters.collections), (0, 0), "N {band_tracks}, W {head_tracks}, round {round}");
        }
        assert_eq!(checked.disk().counters().amplification(), 1.0);
    }
}

#[test]
fn cold_mode_writes_a_disk_in_order_from_the_start() {
    let parameters = TrackParameters { policy: Policy::Smart, band_tracks: 20, alternate_limit: 0.0, ..TrackParameters::default() };
    let mut checked = Layer::new(medium(&[Zone { tracks: 20, sectors: 4 }], 2), (parameters, Scan::All));
    for track in 0..16 {
        checked.write(track * 4, 4).unwrap();
        let used: Vec<usize> = checked.disk().spaces().next().unwrap().elements(true).map(|element| element.len()).collect();
        assert_eq!(used, [track as usize + 1]);
    }
    assert_eq!(checked.disk().counters().amplification(), 1.0);
}

#[test]
fn a_full_disk_takes_updates_for_ever() {
    for policy in [Policy::Greedy, Policy::Smart, Policy::Adaptive] {
        let parameters = TrackParameters { policy, band_tracks: 12, ..TrackParameters::default() };
        let mut checked = Layer::new(medium(&[Zone { tracks: 12, sectors: 3 }], 2), (parameters, Scan::All));
        let capacity = checked.capacity();
        checked.write(0, capacity).unwrap();
        for update in 0..2000u64 {
            checked.write(update.wrapping_mul(7919) % capacity, 1).unwrap();
        }
        checked.holds_the_last_writes();
        assert!(checked.disk().counters().collections > 0);
    }
}

#[test]
fn parameters_that_do_not_fit_are_refused_by_name() {
    let zone = [Zone { tracks: 20, sectors: 4 }];
    let base = TrackParameters { band_tracks: 10, ..TrackParameters::default() };
    let key = |parameters| match TrackLayer::create(medium(&zone, 2), parameters) {
        Err(SwdError::Parameter { key, .. }) => key,
        other => panic!("not refused by parameter: {other:?}"),
    };
    assert_eq!(key(TrackParameters { band_tracks: 4, ..base }), "band_tracks");
    assert_eq!(key(TrackParameters { band_tracks: 21, ..base }), "band_tracks");
    assert_eq!(key(TrackParameters { band_logical_tracks: 7, ..base }), "band_logical_tracks");
    assert_eq!(key(TrackParameters { gc_threshold: f64::NAN, ..base }), "gc_threshold");
    assert_eq!(key(TrackParameters { alternate_limit: 1.5, ..base }), "alternate_limit");
    assert_eq!(key(TrackParameters { checkpoint_writes: 0, ..base }), "checkpoint_writes");
    let tight = CheckingMedium::new(Geometry::new(&zone, 2, SECTOR_BYTES as u32, 4).unwrap());
    assert!(matches!(TrackLayer::create(tight, base), Err(SwdError::Parameter { key: "random_access_sectors", .. })));
    let greedy = TrackParameters { policy: Policy::Greedy, ..base };
    assert!(matches!(TrackLayer::open(medium(&zone, 2), greedy, Scan::Pools), Err(SwdError::Parameter { key: "declares_pools", .. })));
    assert!(matches!(TrackLayer::open(medium(&zone, 2), base, Scan::All), Err(SwdError::NoTable)));
}

#[test]
fn without_the_promise_of_a_flush_a_disk_needs_no_flushes_and_reads_the_same() {
    for policy in [Policy::Greedy, Policy::Smart, Policy::Adaptive] {
        let parameters = TrackParameters { policy, band_tracks: 12, keeps_flushed: false, ..TrackParameters::default() };
        let mut checked = Layer::new(medium(&[Zone { tracks: 24, sectors: 3 }], 2), (parameters, Scan::All));
        let capacity = checked.capacity();
        checked.write(0, capacity).unwrap();
        for update in 0..1000u64 {
            checked.write(update.wrapping_mul(7919) % capacity, 1).unwrap();
        }
        checked.holds_the_last_writes();
        assert_eq!(checked.disk().counters().own_flushes, 0);
    }
}

#[test]
fn a_new_disk_in_place_of_an_old_one_of_the_same_id_takes_none_of_its_records() {
    for scan in [Scan::All, Scan::Pools] {
        let parameters = TrackParameters { band_tracks: 8, ..TrackParameters::default() };
        let mut checked = Layer::new(medium(&[Zone { tracks: 16, sectors: 2 }], 2), (parameters, scan));
        for _ in 0..3 {
            checked.write(0, 5).unwrap();
            checked.disk().checkpoint().unwrap();
            checked.create_anew((parameters, scan));
            checked.crash(3);
            checked.holds_the_last_writes();
        }
    }
}
