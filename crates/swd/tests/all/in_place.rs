//! Facts of the static schemes, by formula and on a medium that destroys.

use crate::common::{Operation, SECTOR_BYTES, follows_the_oracle, medium, medium_with, read_all, sector};
use proptest::prelude::*;
use stripewise_swd::{
    CheckingMedium, Geometry, InPlace, Order, Scheme, SwdError, Zone, full_band_amplification, space_gain, uniform_update_amplification,
};

/// The table of the seed's figure 4.2 (read as 4 for every full disk, 5/3 where one of three live tracks has one live successor).
const GOLDEN: [(Order, [f64; 4]); 4] = [
    (Order::Sequential, [4.0, 4.0, 4.0, 4.0]),
    (Order::Rotated, [1.0, 1.0, 5.0 / 3.0, 4.0]),
    (Order::EndsFirst, [1.0, 1.0, 5.0 / 3.0, 4.0]),
    (Order::LastButOneDelayed, [5.0 / 3.0, 5.0 / 3.0, 5.0 / 3.0, 4.0]),
];

#[test]
fn amplification_is_that_of_the_golden_table_by_count_and_by_updates() {
    // 12 bands: every quarter of the space is whole bands for `1234` and for the three tracks of `124R(3)`.
    let zone = [Zone { tracks: 12 * 5, sectors: 3 }];
    for (order, expected) in GOLDEN {
        for (quarter, expected) in (1..=4).zip(expected) {
            let filled = 12 * 4 * 3 / 4 * quarter;
            let counted = uniform_update_amplification(order, stripewise_swd::Medium::geometry(&medium(&zone, 2)), 4, filled).unwrap();
            assert!((counted - expected).abs() < 1e-12, "{} at {quarter}/4: {counted}", order.name());
            let mut scheme = InPlace::new(medium(&zone, 2), order, 4, filled).unwrap();
            for lba in 0..filled {
                scheme.write(lba, 1, &sector(1, lba)).unwrap();
            }
            assert!((scheme.counters().amplification() - expected).abs() < 1e-12, "{} at {quarter}/4 by updates", order.name());
            let bytes = read_all(&mut scheme);
            for lba in 0..filled {
                assert_eq!(bytes[lba as usize * SECTOR_BYTES..][..SECTOR_BYTES], sector(1, lba));
            }
        }
    }
}

#[test]
fn space_gain_and_full_band_amplification_are_equations_4_1_and_4_2() {
    assert!((space_gain(4, 2) - 1.6).abs() < 1e-12);
    assert!((space_gain(5, 3) - 15.0 / 7.0).abs() < 1e-12);
    for band_tracks in 1..20 {
        assert!((full_band_amplification(band_tracks) - f64::from(band_tracks)).abs() < 1e-12);
        let geometry = Geometry::new(&[Zone { tracks: 3 * (band_tracks + 2), sectors: 2 }], 3, 0, 0).unwrap();
        let counted = uniform_update_amplification(Order::Sequential, &geometry, band_tracks, u64::from(band_tracks) * 6).unwrap();
        assert!((counted - f64::from(band_tracks)).abs() < 1e-12, "a full disk counts as the equation says");
    }
}

#[test]
fn cold_sequential_writes_to_an_empty_disk_amplify_only_where_a_live_track_follows() {
    let zone = [Zone { tracks: 20, sectors: 4 }];
    let amplification = |order, share: u64| {
        let mut scheme = InPlace::new(medium(&zone, 2), order, 4, 0).unwrap();
        for lba in 0..scheme.capacity_sectors() * share / 4 {
            scheme.write(lba, 1, &sector(1, lba)).unwrap();
        }
        scheme.counters().amplification()
    };
    assert_eq!(amplification(Order::Sequential, 4), 1.0);
    assert_eq!(amplification(Order::Rotated, 3), 1.0);
    assert!(amplification(Order::Rotated, 4) > 1.0, "the third tracks are written before live fourth ones");
}

#[test]
fn wrong_parameters_and_requests_are_refused_by_name() {
    let zone = [Zone { tracks: 20, sectors: 4 }];
    let key = |result: Result<InPlace<CheckingMedium>, SwdError>| match result {
        Err(SwdError::Parameter { key, .. }) => key,
        other => panic!("not refused by parameter: {other:?}"),
    };
    assert_eq!(key(InPlace::new(medium(&zone, 2), Order::Hdd, 4, 0)), "head_tracks");
    assert_eq!(key(InPlace::new(medium(&zone, 2), Order::Rotated, 0, 0)), "band_tracks");
    assert_eq!(key(InPlace::new(medium(&zone, 2), Order::Rotated, 20, 0)), "band_tracks");
    assert!(matches!(InPlace::new(medium(&zone, 2), Order::Rotated, 4, 65), Err(SwdError::Beyond { capacity: 64, .. })));
    let mut scheme = InPlace::new(medium(&zone, 2), Order::Rotated, 4, 0).unwrap();
    assert!(matches!(scheme.write(64, 1, &[0; SECTOR_BYTES]), Err(SwdError::Beyond { .. })));
    assert!(matches!(scheme.write(u64::MAX, 2, &[0; 2 * SECTOR_BYTES]), Err(SwdError::Beyond { .. })));
    assert!(matches!(scheme.write(0, 1, &[0; 15]), Err(SwdError::Buffer { bytes: 15, expected: 64 })));
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec((0u8..4, 0.0..1.0f64, 1u64..20), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn reads_return_the_last_write_whatever_the_order_band_head_zones_and_requests(
        order in prop::sample::select(&Order::ALL[..]),
        band_tracks in 1u32..8,
        head_tracks in 1u32..5,
        sectors in prop::collection::vec(1u32..7, 1..4),
        operations in operations(),
    ) {
        let head_tracks = if order == Order::Hdd { 1 } else { head_tracks };
        let tracks = (band_tracks + head_tracks - 1) * 2 + 1;
        let zones: Vec<Zone> = sectors.iter().map(|&sectors| Zone { tracks, sectors }).collect();
        let mut scheme = InPlace::new(medium(&zones, head_tracks), order, band_tracks, 0).unwrap();
        let mut oracle = vec![0u8; scheme.capacity_sectors() as usize * SECTOR_BYTES];
        follows_the_oracle(&mut scheme, &mut oracle, operations)?;
    }
}

#[test]
fn a_random_access_zone_without_room_for_the_longest_chain_is_refused() {
    let zone = [Zone { tracks: 10, sectors: 50 }];
    let refused = InPlace::create(medium_with(&zone, 2, 64, 60), Order::Sequential, 4, 1);
    assert!(matches!(refused, Err(SwdError::Parameter { key: "random_access_sectors", .. })));
    assert!(matches!(InPlace::open(medium_with(&zone, 2, 64, 600), Order::Sequential, 4, 1), Err(SwdError::NoTable)));
}
