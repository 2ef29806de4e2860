//! Facts of T-STL on a medium that destroys, and whose power goes at any write.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use proptest::prelude::*;
use stripewise_swd::{CheckingMedium, Geometry, MediumError, Policy, Scan, Scheme, SwdError, TrackLayer, TrackParameters, Zone};

const SECTOR_BYTES: usize = 64;
const RANDOM_ACCESS_SECTORS: u32 = 48;

fn medium(zones: &[Zone], head_tracks: u32) -> CheckingMedium {
    CheckingMedium::new(Geometry::new(zones, head_tracks, SECTOR_BYTES as u32, RANDOM_ACCESS_SECTORS).unwrap())
}

fn sector(version: u64, lba: u64) -> Vec<u8> {
    let mut bytes = vec![0; SECTOR_BYTES];
    bytes[..8].copy_from_slice(&version.to_le_bytes());
    bytes[8..16].copy_from_slice(&(if version == 0 { 0 } else { lba }).to_le_bytes());
    bytes
}

/// A disk beside what every sector may hold: the version of the last flush and all since. Version 0 is zeros.
struct Checked {
    disk: Option<TrackLayer<CheckingMedium>>,
    parameters: TrackParameters,
    may_hold: Vec<Vec<u64>>,
    version: u64,
}

impl Checked {
    fn new(medium: CheckingMedium, parameters: TrackParameters) -> Self {
        let disk = TrackLayer::create(medium, parameters).unwrap();
        let may_hold = vec![vec![0]; disk.capacity_sectors() as usize];
        Self { disk: Some(disk), parameters, may_hold, version: 0 }
    }

    fn disk(&mut self) -> &mut TrackLayer<CheckingMedium> {
        self.disk.as_mut().unwrap()
    }

    fn write(&mut self, lba: u64, sectors: u64) -> Result<(), SwdError> {
        self.version += 1;
        let version = self.version;
        let bytes: Vec<u8> = (lba..lba + sectors).flat_map(|lba| sector(version, lba)).collect();
        self.may_hold[lba as usize..(lba + sectors) as usize].iter_mut().for_each(|versions| versions.push(version));
        self.disk().write(lba, sectors, &bytes)
    }

    fn trim(&mut self, lba: u64, sectors: u64) -> Result<(), SwdError> {
        self.may_hold[lba as usize..(lba + sectors) as usize].iter_mut().for_each(|versions| versions.push(0));
        self.disk().trim(lba, sectors)
    }

    fn flush(&mut self) -> Result<(), SwdError> {
        self.disk().flush()?;
        self.may_hold.iter_mut().for_each(|versions| *versions = vec![*versions.last().unwrap()]);
        Ok(())
    }

    fn contents(&mut self) -> Vec<u8> {
        let sectors = self.may_hold.len() as u64;
        let mut bytes = vec![0xff; sectors as usize * SECTOR_BYTES];
        self.disk().read(0, sectors, &mut bytes).unwrap();
        bytes
    }

    fn holds_the_last_writes(&mut self) {
        let bytes = self.contents();
        for (lba, found) in bytes.chunks(SECTOR_BYTES).enumerate() {
            assert_eq!(found, sector(*self.may_hold[lba].last().unwrap(), lba as u64), "sector {lba}");
        }
    }

    fn crash(&mut self, seed: u64, scan: Scan) {
        let mut medium = self.disk.take().unwrap().into_medium();
        medium.crash(seed);
        // Power goes again while the disk is opened, at one of its first writes.
        medium.cut_after(seed % 4);
        drop(TrackLayer::open(&mut medium, self.parameters, scan));
        medium.crash(!seed);
        self.disk = Some(TrackLayer::open(medium, self.parameters, scan).unwrap());
        let bytes = self.contents();
        for (lba, found) in bytes.chunks(SECTOR_BYTES).enumerate() {
            let version = self.may_hold[lba].iter().copied().find(|&version| found == sector(version, lba as u64));
            self.may_hold[lba] = vec![version.unwrap_or_else(|| panic!("sector {lba} holds neither flushed nor later data: {:?}", &found[..16]))];
        }
    }
}

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
        (policy, scan) in prop::sample::select(vec![(Policy::Greedy, Scan::All), (Policy::Smart, Scan::All), (Policy::Smart, Scan::Pools)]),
        head_tracks in 1u32..4,
        spare_tracks in 1u32..8,
        sectors in prop::collection::vec(1u32..4, 1..3),
        gc_threshold in 0.0..1.0f64,
        alternate_limit in prop::sample::select(vec![0.0, 0.3, 0.5, 1.0]),
        checkpoint_writes in 1u32..20,
        filled in any::<bool>(),
        steps in steps(),
    ) {
        let band_tracks = 2 * head_tracks + spare_tracks;
        let zones: Vec<Zone> = sectors.iter().map(|&sectors| Zone { tracks: 2 * band_tracks + 1, sectors }).collect();
        let parameters = TrackParameters { policy, band_tracks, gc_threshold, alternate_limit, checkpoint_writes, ..TrackParameters::default() };
        let mut checked = Checked::new(medium(&zones, head_tracks), parameters);
        let capacity = checked.may_hold.len() as u64;
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
                    checked.crash(seed, scan);
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
    for policy in [Policy::Greedy, Policy::Smart] {
        let parameters = TrackParameters { policy, band_tracks: 20, ..TrackParameters::default() };
        let mut checked = Checked::new(medium(&[Zone { tracks: 40, sectors: 4 }], 2), parameters);
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
fn cold_mode_writes_a_disk_in_order_from_the_start() {
    let parameters = TrackParameters { policy: Policy::Smart, band_tracks: 20, alternate_limit: 0.0, ..TrackParameters::default() };
    let mut checked = Checked::new(medium(&[Zone { tracks: 20, sectors: 4 }], 2), parameters);
    for track in 0..16 {
        checked.write(track * 4, 4).unwrap();
        let used: Vec<usize> = checked.disk().spaces().next().unwrap().elements(true).map(|element| element.len()).collect();
        assert_eq!(used, [track as usize + 1]);
    }
    assert_eq!(checked.disk().counters().amplification(), 1.0);
}

#[test]
fn a_full_disk_takes_updates_for_ever() {
    for policy in [Policy::Greedy, Policy::Smart] {
        let parameters = TrackParameters { policy, band_tracks: 12, ..TrackParameters::default() };
        let mut checked = Checked::new(medium(&[Zone { tracks: 12, sectors: 3 }], 2), parameters);
        let capacity = checked.may_hold.len() as u64;
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
    assert!(matches!(TrackLayer::open(medium(&zone, 2), greedy, Scan::Pools), Err(SwdError::Parameter { key: "policy", .. })));
    assert!(matches!(TrackLayer::open(medium(&zone, 2), base, Scan::All), Err(SwdError::NoTable)));
}
