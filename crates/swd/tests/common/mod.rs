//! A T-STL disk beside an oracle of what each of its sectors may hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, dead_code)]

use stripewise_swd::{CheckingMedium, Geometry, Scan, Scheme, SwdError, TrackLayer, TrackParameters, Zone};

pub const SECTOR_BYTES: usize = 64;
pub const RANDOM_ACCESS_SECTORS: u32 = 48;

pub fn medium(zones: &[Zone], head_tracks: u32) -> CheckingMedium {
    CheckingMedium::new(Geometry::new(zones, head_tracks, SECTOR_BYTES as u32, RANDOM_ACCESS_SECTORS).unwrap())
}

pub fn sector(version: u64, lba: u64) -> Vec<u8> {
    let mut bytes = vec![0; SECTOR_BYTES];
    bytes[..8].copy_from_slice(&version.to_le_bytes());
    bytes[8..16].copy_from_slice(&(if version == 0 { 0 } else { lba }).to_le_bytes());
    bytes
}

/// A disk beside what every sector may hold: the version of the last flush and all since. Version 0 is zeros.
#[derive(Clone)]
pub struct Checked {
    pub disk: Option<TrackLayer<CheckingMedium>>,
    pub parameters: TrackParameters,
    pub may_hold: Vec<Vec<u64>>,
    pub version: u64,
}

impl Checked {
    pub fn new(medium: CheckingMedium, parameters: TrackParameters) -> Self {
        let disk = TrackLayer::create(medium, parameters).unwrap();
        let may_hold = vec![vec![0]; disk.capacity_sectors() as usize];
        Self { disk: Some(disk), parameters, may_hold, version: 0 }
    }

    pub fn disk(&mut self) -> &mut TrackLayer<CheckingMedium> {
        self.disk.as_mut().unwrap()
    }

    pub fn write(&mut self, lba: u64, sectors: u64) -> Result<(), SwdError> {
        self.version += 1;
        let version = self.version;
        let bytes: Vec<u8> = (lba..lba + sectors).flat_map(|lba| sector(version, lba)).collect();
        self.may_hold[lba as usize..(lba + sectors) as usize].iter_mut().for_each(|versions| versions.push(version));
        self.disk().write(lba, sectors, &bytes)
    }

    pub fn trim(&mut self, lba: u64, sectors: u64) -> Result<(), SwdError> {
        self.may_hold[lba as usize..(lba + sectors) as usize].iter_mut().for_each(|versions| versions.push(0));
        self.disk().trim(lba, sectors)
    }

    pub fn flush(&mut self) -> Result<(), SwdError> {
        self.disk().flush()?;
        self.may_hold.iter_mut().for_each(|versions| *versions = vec![*versions.last().unwrap()]);
        Ok(())
    }

    pub fn contents(&mut self) -> Vec<u8> {
        let sectors = self.may_hold.len() as u64;
        let mut bytes = vec![0xff; sectors as usize * SECTOR_BYTES];
        self.disk().read(0, sectors, &mut bytes).unwrap();
        bytes
    }

    pub fn holds_the_last_writes(&mut self) {
        let bytes = self.contents();
        for (lba, found) in bytes.chunks(SECTOR_BYTES).enumerate() {
            assert_eq!(found, sector(*self.may_hold[lba].last().unwrap(), lba as u64), "sector {lba}");
        }
    }

    pub fn crash(&mut self, seed: u64, scan: Scan) {
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
