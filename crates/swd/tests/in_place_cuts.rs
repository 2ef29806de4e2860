//! Facts of the static schemes with a journal, when the power goes at any write.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use proptest::prelude::*;
use stripewise_swd::{CheckingMedium, Geometry, InPlace, MediumError, Order, Scheme, SwdError, Zone};

const SECTOR_BYTES: usize = 64;

fn medium(zones: &[Zone], head_tracks: u32, random_access_sectors: u32) -> CheckingMedium {
    CheckingMedium::new(Geometry::new(zones, head_tracks, SECTOR_BYTES as u32, random_access_sectors).unwrap())
}

/// The bytes of a version of a sector; version 0 is zeros.
fn sector(version: u64, lba: u64) -> Vec<u8> {
    let mut bytes = vec![0; SECTOR_BYTES];
    bytes[..8].copy_from_slice(&version.to_le_bytes());
    bytes[8..16].copy_from_slice(&(if version == 0 { 0 } else { lba }).to_le_bytes());
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn no_cut_at_any_write_loses_flushed_data_under_any_order_band_head_and_zones(
        order in prop::sample::select(&Order::ALL[..]),
        band_tracks in 1u32..7,
        head_tracks in 1u32..5,
        sectors in prop::collection::vec(1u32..5, 1..3),
        more_random_access in 0u32..40,
        filled in any::<bool>(),
        steps in prop::collection::vec((0u8..10, 0.0..1.0f64, 1u64..9, 0u64..12, any::<u64>()), 1..50),
    ) {
        let head_tracks = if order == Order::Hdd { 1 } else { head_tracks };
        let zones: Vec<Zone> = sectors.iter().map(|&sectors| Zone { tracks: (band_tracks + head_tracks - 1) * 2 + 1, sectors }).collect();
        let tracks: u32 = zones.iter().map(|zone| zone.tracks).sum();
        let medium = medium(&zones, head_tracks, tracks * 2 + 40 + more_random_access);
        let mut disk = InPlace::create(medium, order, band_tracks, 7).unwrap();
        let capacity = disk.capacity_sectors();
        let mut may_hold: Vec<Vec<u64>> = vec![vec![0]; capacity as usize];
        let mut version = 0;
        let mut write = |disk: &mut InPlace<CheckingMedium>, may_hold: &mut Vec<Vec<u64>>, lba: u64, sectors: u64| {
            version += 1;
            may_hold[lba as usize..(lba + sectors) as usize].iter_mut().for_each(|versions| versions.push(version));
            disk.write(lba, sectors, &(lba..lba + sectors).flat_map(|lba| sector(version, lba)).collect::<Vec<u8>>())
        };
        if filled {
            write(&mut disk, &mut may_hold, 0, capacity).unwrap();
        }
        for (what, at, sectors, cut, seed) in steps {
            let lba = (at * capacity as f64) as u64;
            let sectors = sectors.min(capacity - lba);
            match what {
                0 => {
                    may_hold[lba as usize..(lba + sectors) as usize].iter_mut().for_each(|versions| versions.push(0));
                    disk.trim(lba, sectors).unwrap();
                }
                1 => {
                    disk.flush().unwrap();
                    may_hold.iter_mut().for_each(|versions| *versions = vec![*versions.last().unwrap()]);
                }
                2 | 3 => {
                    disk.medium_mut().cut_after(cut);
                    let lost = (lba..lba + 100).map(|at| write(&mut disk, &mut may_hold, at % capacity, 1)).find(Result::is_err);
                    prop_assert_eq!(lost, Some(Err(SwdError::Medium(MediumError::PowerLost))));
                    let mut medium = disk.into_medium();
                    medium.crash(seed);
                    medium.cut_after(seed % 5);
                    drop(InPlace::open(&mut medium, order, band_tracks, 7));
                    medium.crash(!seed);
                    disk = InPlace::open(medium, order, band_tracks, 7).unwrap();
                }
                _ => write(&mut disk, &mut may_hold, lba, sectors).unwrap(),
            }
            let mut bytes = vec![0xff; capacity as usize * SECTOR_BYTES];
            disk.read(0, capacity, &mut bytes).unwrap();
            for (lba, found) in bytes.chunks(SECTOR_BYTES).enumerate() {
                let versions = &mut may_hold[lba];
                if what == 2 || what == 3 {
                    let held = versions.iter().copied().find(|&version| found == sector(version, lba as u64));
                    prop_assert!(held.is_some(), "sector {} holds {:?}, neither flushed nor later data: {:?}", lba, &found[..16], versions);
                    *versions = vec![held.unwrap()];
                } else {
                    prop_assert_eq!(found, sector(*versions.last().unwrap(), lba as u64), "sector {}", lba);
                }
            }
        }
    }
}

#[test]
fn a_random_access_zone_without_room_for_the_longest_chain_is_refused() {
    let zone = [Zone { tracks: 10, sectors: 50 }];
    let refused = InPlace::create(medium(&zone, 2, 60), Order::Sequential, 4, 1);
    assert!(matches!(refused, Err(SwdError::Parameter { key: "random_access_sectors", .. })));
    assert!(matches!(InPlace::open(medium(&zone, 2, 600), Order::Sequential, 4, 1), Err(SwdError::NoTable)));
}
