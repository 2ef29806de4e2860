//! Facts of the S-block indirection system on a medium that destroys.

use crate::common::{SECTOR_BYTES, follows_the_oracle, medium, sector, version_of};
use proptest::prelude::*;
use stripewise_swd::{Indirection, IndirectionParameters, Scheme, SwdError, Zone};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn reads_return_the_last_write_through_all_three_collectors(
        head_tracks in 1u32..4,
        more_cache in 0u32..8,
        sectors in prop::collection::vec(1u32..7, 1..3),
        s_block_sectors in 1u32..12,
        is_full in any::<bool>(),
        operations in prop::collection::vec((0u8..5, 0.0..1.0f64, 1u64..20), 1..80),
    ) {
        let zones: Vec<Zone> = sectors.iter().map(|&sectors| Zone { tracks: 60, sectors }).collect();
        let parameters = IndirectionParameters { cache_tracks: 30 + more_cache, s_block_sectors };
        let Ok(mut scheme) = Indirection::new(medium(&zones, head_tracks), parameters) else { return Ok(()) };
        let capacity = scheme.capacity_sectors();
        let mut oracle = vec![0u8; capacity as usize * SECTOR_BYTES];
        if is_full {
            for (lba, sector) in oracle.chunks_mut(SECTOR_BYTES).enumerate() {
                sector.copy_from_slice(&self::sector(1000, lba as u64));
            }
            scheme.write(0, capacity, &oracle).unwrap();
        }
        follows_the_oracle(&mut scheme, &mut oracle, operations)?;
    }
}

#[test]
fn random_updates_of_a_full_disk_amplify_from_the_start_and_for_ever() {
    let zone = [Zone { tracks: 80, sectors: 10 }];
    let parameters = IndirectionParameters { cache_tracks: 20, s_block_sectors: 25 };
    let mut scheme = Indirection::new(medium(&zone, 2), parameters).unwrap();
    let capacity = scheme.capacity_sectors();
    for update in 0..5000u64 {
        let lba = update.wrapping_mul(7919) % capacity;
        scheme.write(lba, 1, &sector(update + 1, lba)).unwrap();
    }
    assert!(scheme.counters().amplification() > 1.5, "{:?}", scheme.counters());
    let mut bytes = vec![0; capacity as usize * SECTOR_BYTES];
    scheme.read(0, capacity, &mut bytes).unwrap();
    for lba in 0..capacity {
        assert!(version_of(&bytes[lba as usize * SECTOR_BYTES..][..SECTOR_BYTES], lba).is_some_and(|version| version > 0), "sector {lba}");
    }
}

#[test]
fn regions_without_room_for_a_log_and_its_gap_are_refused_by_name() {
    let zone = [Zone { tracks: 80, sectors: 10 }];
    let key = |cache_tracks, s_block_sectors| match Indirection::new(medium(&zone, 2), IndirectionParameters { cache_tracks, s_block_sectors }) {
        Err(SwdError::Parameter { key, .. }) => key,
        other => panic!("not refused by parameter: {:?}", other.map(|scheme| scheme.capacity_sectors())),
    };
    assert_eq!(
        [key(5, 25), key(0, 25), key(80, 25), key(20, 0), key(20, 300)],
        ["cache_tracks", "cache_tracks", "s_block_sectors", "s_block_sectors", "s_block_sectors"]
    );
}
