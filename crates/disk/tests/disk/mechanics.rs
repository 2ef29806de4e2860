//! Facts of arm, heads and rotation.

use proptest::prelude::*;
use serde_json::json;
use stripewise_disk::{Layout, Mechanics};

use crate::spec::with;

/// Reads whole tracks in order from `first` on; ns in all, from standing at the first one's begin.
fn sequential(mechanics: &mut Mechanics, first: u32, tracks: u32) -> u64 {
    let place = mechanics.layout().place(first).unwrap();
    let begin = mechanics.access(0, &place, 0, 1, false);
    let mut now = begin.seek_ns + begin.rotation_ns;
    let start = now;
    for track in first..first + tracks {
        let place = mechanics.layout().place(track).unwrap();
        now += mechanics.access(now, &place, 0, place.sectors, false).ns();
    }
    now - start
}

#[test]
fn a_track_is_read_in_one_turn_and_the_next_one_after_a_switch() {
    for layout in ["", "serpentine, runs of 7 cylinders per surface"] {
        let mut mechanics = Mechanics::new(&with(&json!({"layout": layout})), None).unwrap();
        let turn = mechanics.period_ns();
        // 2 ms for the farthest switch, a tenth of settling, and a sector of rounding.
        for (first, sectors) in [(0, 100.0), (30, 100.0), (250, 80.0), (500, 64.0)] {
            let ns = sequential(&mut mechanics, first, 20) as f64;
            assert!(ns >= 20.0 * turn - 20.0, "{ns}");
            assert!(ns <= 20.0 * turn + 19.0 * (2.1e6 + 2.0 * turn / sectors), "{layout} {first}: {ns}");
        }
    }
}

#[test]
fn without_skew_each_switch_costs_a_turn() {
    let mut mechanics = Mechanics::new(&with(&json!({"skew": "none"})), None).unwrap();
    let turn = mechanics.period_ns();
    let ns = sequential(&mut mechanics, 0, 10) as f64;
    assert!((ns - 19.0 * turn).abs() < 1000.0, "{ns}");
}

#[test]
fn given_skews_are_taken() {
    // 10 ms and 100 sectors: a head switch of 0.5 ms fits in 6 sectors, not in 4.
    for (skew, turns) in [(6, 1.06), (4, 2.04)] {
        let spec = with(&json!({"zones": [[0, 100, skew, 20]]}));
        let mut mechanics = Mechanics::new(&spec, None).unwrap();
        let ns = sequential(&mut mechanics, 0, 2) as f64;
        assert!((ns / mechanics.period_ns() - 1.0 - turns).abs() < 0.001, "{ns}");
    }
}

#[test]
fn runs_go_forth_and_back_over_the_surfaces() {
    let spec = with(&json!({"layout": "serpentine, runs of about 3 cylinders per surface"}));
    let layout = Layout::new(&spec, None).unwrap();
    let places: Vec<(u32, u32)> = (0..8).map(|track| layout.place(track).map(|place| (place.cylinder, place.surface)).unwrap()).collect();
    assert_eq!(places, [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1), (3, 0), (4, 0)]);
    let by_cylinder = Layout::new(&with(&json!({})), None).unwrap();
    let places: Vec<(u32, u32)> = (0..4).map(|track| by_cylinder.place(track).map(|place| (place.cylinder, place.surface)).unwrap()).collect();
    assert_eq!(places, [(0, 0), (0, 1), (1, 0), (1, 1)]);
}

#[test]
fn a_run_longer_than_the_disk_is_a_whole_surface() {
    let spec = with(&json!({"zones": [[0, 100]]}));
    let layout = Layout::new(&spec, Some(u32::MAX)).unwrap();
    let at = |track: u32| layout.place(track).map(|place| (place.cylinder, place.surface)).unwrap();
    assert_eq!([at(0), at(299), at(300), at(599)], [(0, 0), (299, 0), (299, 1), (0, 1)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every cylinder of every surface is one track, in its zone, and neighbours inside of a run are neighbours on the disk.
    #[test]
    fn tracks_are_the_disk(run in 1u32..40, surfaces in 1u32..5, zone in 1u32..299) {
        let spec = with(&json!({"surfaces": surfaces, "zones": [[0, 90], [zone, 70]]}));
        let layout = Layout::new(&spec, Some(run)).unwrap();
        prop_assert_eq!(layout.tracks(), 300 * surfaces);
        let mut seen = vec![false; 300 * surfaces as usize];
        let (mut block, mut before) = (0, None);
        for track in 0..layout.tracks() {
            let place = layout.place(track).unwrap();
            let at = (place.cylinder * surfaces + place.surface) as usize;
            prop_assert!(!seen[at]);
            seen[at] = true;
            prop_assert_eq!(place.sectors, if place.cylinder < zone { 90 } else { 70 });
            prop_assert_eq!(place.first_block, block);
            prop_assert_eq!(layout.track_of(block), track);
            block += u64::from(place.sectors);
            prop_assert_eq!(layout.track_of(block - 1), track);
            if let Some((cylinder, surface)) = before.replace((place.cylinder, place.surface)) && surface == place.surface && run > 1 && surfaces > 1 {
                prop_assert_eq!(place.cylinder.abs_diff(cylinder), 1);
            }
        }
        prop_assert!(layout.place(layout.tracks()).is_none());
    }

    /// The wait is less than a turn, and at its end the sector begins, whatever came before.
    #[test]
    fn a_sector_is_waited_for_less_than_a_turn(accesses in prop::collection::vec((0u32..600, any::<u32>(), 1u32..64, any::<bool>(), 0u64..50_000_000), 1..40)) {
        let mut mechanics = Mechanics::new(&with(&json!({})), None).unwrap();
        let turn = mechanics.period_ns();
        let mut now = 0u64;
        for (track, sector, sectors, write, idle) in accesses {
            now += idle;
            let place = mechanics.layout().place(track).unwrap();
            let sector = sector % (place.sectors - sectors.min(place.sectors - 1));
            let guess = mechanics.positioning_ns(now, &place, sector, write);
            let motion = mechanics.access(now, &place, sector, sectors.min(place.sectors - sector), write);
            prop_assert_eq!(guess, motion.seek_ns + motion.rotation_ns);
            prop_assert!((motion.rotation_ns as f64) < turn + 1.0);
            let whole = sectors.min(place.sectors - sector);
            prop_assert!((motion.transfer_ns as f64 - turn * f64::from(whole) / f64::from(place.sectors)).abs() < 2.0);
            now += motion.ns();
            // The next sector is under the head now; the one just read comes a turn later.
            if sector + whole < place.sectors {
                prop_assert!(mechanics.positioning_ns(now, &place, sector + whole, write) <= 2);
            }
            let again = mechanics.positioning_ns(now, &place, sector, write) as f64 + motion.transfer_ns as f64;
            prop_assert!((again - turn).abs() < 5.0 || again < 5.0, "{again}");
        }
    }

    /// Farther is not sooner where the curve says so, no arm moves for nothing, and writes settle only after a move.
    #[test]
    fn seeks_follow_the_curve(cylinder in 1u32..300) {
        let mechanics = Mechanics::new(&with(&json!({"surfaces": 1})), None).unwrap();
        let ns = |write: bool| {
            let mut mechanics = mechanics.clone();
            let place = mechanics.layout().place(cylinder).unwrap();
            mechanics.access(0, &place, 0, 1, write).seek_ns
        };
        let expected = if cylinder <= 10 { 1.0 + f64::from(cylinder - 1) / 9.0 } else { 2.0 + f64::from(cylinder - 10) * 6.0 / 289.0 };
        prop_assert!((ns(false) as f64 / 1e6 - expected).abs() < 1e-5);
        prop_assert_eq!(ns(true), ns(false) + 100_000);
        let mut still = mechanics.clone();
        let place = still.layout().place(0).unwrap();
        prop_assert_eq!(still.access(0, &place, 0, 1, true).seek_ns, 0);
    }
}
