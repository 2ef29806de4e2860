//! Facts of a disk that other simulations plug in, and of the medium below every scheme.

use proptest::prelude::*;
use serde_json::json;
use stripewise_disk::{Areas, CacheUse, Mechanics, SimulatedDisk, TimedMedium};
use stripewise_swd::{Extent, Medium, Purpose};

use crate::runs::{at, ran, settings};
use crate::spec::with;

#[test]
fn a_device_takes_as_long_as_a_run_of_one_request_at_a_time() {
    for scheme in [json!({"name": "hdd"}), json!({"name": "R(4123)"}), json!({"name": "tstl-smart", "band_tracks": 20})] {
        let settings = settings(&scheme, &json!({"random_access_bytes": 2_000_000}));
        let requests = || (0..200u64).map(|i| at(i * 200_000_000, i * 7919 % 9000, i % 3 == 0));
        let report = ran(&settings, requests());
        let mut device = SimulatedDisk::new(&settings).unwrap();
        let mut ns = 0;
        for request in requests() {
            ns += device.serve(request.arrival_ns, request.lba * 512, u64::from(request.blocks) * 512, request.write).unwrap();
        }
        let total = report.read_time.total_s + report.write_time.total_s;
        assert!((ns as f64 / 1e9 - total).abs() < 1e-9, "{scheme}: {ns} {total}");
        assert_eq!(device.counters(), report.counters);
    }
}

#[test]
fn addresses_beyond_the_disk_are_folded_onto_it() {
    let mut device = SimulatedDisk::new(&settings(&json!({"name": "hdd"}), &json!({"used_blocks": 1000}))).unwrap();
    assert_eq!(device.used_bytes(), 512_000);
    let mut folded = device.clone();
    assert_eq!(device.serve(0, 5120, 512, false).unwrap(), folded.serve(0, 5120 + 3 * 512_000, 512, false).unwrap());
    // Across the end: two accesses.
    device.serve(1_000_000_000, 511_488, 1024, true).unwrap();
    assert_eq!(device.medium().accounts().of(Purpose::Own).accesses, 3);
}

#[test]
fn work_of_an_idle_device_makes_the_next_access_wait_where_it_lasts_too_long() {
    let scheme = json!({"name": "tstl-smart", "band_tracks": 50});
    let changes = |used: u64| json!({"random_access_bytes": 1_000_000, "used_blocks": used, "background": {"after_ms": 5.0}});
    let capacity = ran(&settings(&scheme, &json!({"random_access_bytes": 1_000_000, "filled_blocks": 0})), std::iter::empty()).capacity_blocks;
    let mut device = SimulatedDisk::new(&settings(&scheme, &changes(capacity * 9 / 10))).unwrap();
    let mut now = 0;
    for i in 0..400u64 {
        now += device.serve(now, i * 7919 * 512 * 100, 4096, true).unwrap();
    }
    assert_eq!(device.idle(now, now + 4_000_000).unwrap(), 0);
    now += 4_000_000;
    let worked = device.idle(now, now + 6_000_000).unwrap();
    assert!(worked > 6_000_000, "a step that moves tracks takes more than the millisecond left: {worked}");
}

/// What a scheme may ask.
#[derive(Clone, Debug)]
enum Ask {
    Read(u32, u32, u32),
    Write(u32, u32, u32),
    ReadRandom(u32, u32),
    WriteRandom(u32, u32),
    Spare(u32),
    Flush,
    Idle(u64),
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let extent = || (0u32..500, 0u32..64, 1u32..100);
    let one = prop_oneof![
        4 => extent().prop_map(|(track, sector, sectors)| Ask::Read(track, sector, sectors)),
        4 => extent().prop_map(|(track, sector, sectors)| Ask::Write(track, sector, sectors)),
        1 => (0u32..400, 1u32..150).prop_map(|(sector, sectors)| Ask::ReadRandom(sector, sectors)),
        1 => (0u32..400, 1u32..150).prop_map(|(sector, sectors)| Ask::WriteRandom(sector, sectors)),
        1 => (0u32..500).prop_map(Ask::Spare),
        1 => Just(Ask::Flush),
        2 => (0u64..200_000_000).prop_map(Ask::Idle),
    ];
    prop::collection::vec(one, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Time goes on and is all accounted for: each access by its motion, the rest is idle.
    #[test]
    fn the_clock_is_accesses_and_idle_time(asks in asks(), reads: bool, write_back: bool, run in 1u32..20) {
        let spec = with(&json!({"cache_segments": 3, "cache_segment_blocks": 90, "cache_write_segments": 2}));
        let mechanics = Mechanics::new(&spec, Some(run)).unwrap();
        let areas = Areas::new(mechanics.layout(), 512, 512 * 400, 512 * 300).unwrap();
        let mut medium = TimedMedium::new(&spec, mechanics, &areas, areas.data, 2, CacheUse { reads, write_back }).unwrap();
        prop_assert_eq!(medium.geometry().random_access_sectors(), 400);
        prop_assert_eq!(medium.geometry().tracks(), 600 - 4 - 3);
        let mut idle_ns = 0;
        for ask in asks {
            let before = medium.now_ns();
            let busy = busy_ns(&medium);
            let served = match ask {
                Ask::Read(track, sector, sectors) => medium.read(Extent { track, sector, sectors }, &mut []),
                Ask::Write(track, sector, sectors) => medium.write(Extent { track, sector, sectors }, &[], None),
                Ask::ReadRandom(sector, sectors) => medium.read_random(sector, sectors, &mut []),
                Ask::WriteRandom(sector, sectors) => medium.write_random(sector, sectors, &[]),
                Ask::Spare(track) => medium.read_spare(track).map(|_| ()),
                Ask::Flush => medium.flush(),
                Ask::Idle(ns) => {
                    medium.idle_until(before + ns);
                    idle_ns += medium.now_ns() - before - (busy_ns(&medium) - busy);
                    Ok(())
                }
            };
            prop_assert!(medium.now_ns() >= before);
            prop_assert_eq!(medium.now_ns(), busy_ns(&medium) + idle_ns);
            if served.is_err() {
                prop_assert_eq!(medium.now_ns(), before, "what is refused takes no time");
            }
        }
    }
}

fn busy_ns(medium: &TimedMedium) -> u64 {
    [Purpose::Own, Purpose::Amplification, Purpose::Collection, Purpose::Upkeep].iter().map(|&purpose| medium.accounts().of(purpose).ns()).sum()
}
