//! A disk that promises what a flush promises, beside an oracle of what each of its sectors may hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, dead_code)]

use core::fmt::Debug;

use proptest::prelude::*;
use stripewise_swd::{CheckingMedium, Geometry, InPlace, Order, Scan, Scheme, SwdError, TrackLayer, TrackParameters, Zone};

pub const SECTOR_BYTES: usize = 64;
pub const RANDOM_ACCESS_SECTORS: u32 = 48;

pub fn medium(zones: &[Zone], head_tracks: u32) -> CheckingMedium {
    medium_with(zones, head_tracks, SECTOR_BYTES as u32, RANDOM_ACCESS_SECTORS)
}

pub fn medium_with(zones: &[Zone], head_tracks: u32, sector_bytes: u32, random_access_sectors: u32) -> CheckingMedium {
    CheckingMedium::new(Geometry::new(zones, head_tracks, sector_bytes, random_access_sectors).unwrap())
}

/// Fills a sector with a version of its data; version 0 is zeros.
pub fn stamp(sector: &mut [u8], version: u64, lba: u64) {
    sector.fill(0);
    sector[..8].copy_from_slice(&version.to_le_bytes());
    sector[8..16].copy_from_slice(&(if version == 0 { 0 } else { lba }).to_le_bytes());
}

/// A sector with a version of its data.
pub fn sector(version: u64, lba: u64) -> [u8; SECTOR_BYTES] {
    let mut bytes = [0; SECTOR_BYTES];
    stamp(&mut bytes, version, lba);
    bytes
}

/// The version that a sector holds, if it is this sector's and whole.
pub fn version_of(sector: &[u8], lba: u64) -> Option<u64> {
    let version = u64::from_le_bytes(sector[..8].try_into().unwrap());
    let holds_lba = sector[8..16] == (if version == 0 { 0 } else { lba }).to_le_bytes();
    (holds_lba && sector[16..].iter().all(|&byte| byte == 0)).then_some(version)
}

pub fn read_all<S: Scheme>(scheme: &mut S) -> Vec<u8> {
    let sectors = scheme.capacity_sectors();
    let mut bytes = vec![0xff; sectors as usize * SECTOR_BYTES];
    scheme.read(0, sectors, &mut bytes).unwrap();
    bytes
}

/// A trim (0) or a write, where it begins as a share of the capacity, and its sectors.
pub type Operation = (u8, f64, u64);

/// After each operation the scheme holds what the oracle's bytes do.
pub fn follows_the_oracle<S: Scheme>(scheme: &mut S, oracle: &mut [u8], operations: Vec<Operation>) -> Result<(), TestCaseError> {
    let capacity = scheme.capacity_sectors();
    for (version, (what, at, length)) in operations.into_iter().enumerate() {
        let lba = (at * capacity as f64) as u64;
        let length = length.min(capacity - lba);
        let expected = &mut oracle[lba as usize * SECTOR_BYTES..(lba + length) as usize * SECTOR_BYTES];
        if what == 0 {
            expected.fill(0);
            scheme.trim(lba, length).unwrap();
        } else {
            for (lba, sector) in (lba..).zip(expected.chunks_mut(SECTOR_BYTES)) {
                stamp(sector, version as u64 + 1, lba);
            }
            scheme.write(lba, length, expected).unwrap();
        }
        prop_assert_eq!(&read_all(scheme)[..], &oracle[..]);
    }
    Ok(())
}

/// A scheme that loses nothing flushed to a power cut.
pub trait Safe: Scheme<Medium = CheckingMedium> + Clone {
    type Parameters: Copy + Debug;

    fn create(medium: CheckingMedium, parameters: Self::Parameters) -> Result<Self, SwdError>;

    fn open(medium: CheckingMedium, parameters: Self::Parameters) -> Result<Self, SwdError>;

    /// Opens a disk whose power may go meanwhile.
    fn open_in_part(medium: &mut CheckingMedium, parameters: Self::Parameters);

    /// Work of the disk's own: a checkpoint, a step of garbage collection.
    fn upkeep(&mut self, what: u64) -> Result<(), SwdError>;
}

impl Safe for TrackLayer<CheckingMedium> {
    type Parameters = (TrackParameters, Scan);

    fn create(medium: CheckingMedium, parameters: Self::Parameters) -> Result<Self, SwdError> {
        Self::create(medium, parameters.0)
    }

    fn open(medium: CheckingMedium, (parameters, scan): Self::Parameters) -> Result<Self, SwdError> {
        Self::open(medium, parameters, scan)
    }

    fn open_in_part(medium: &mut CheckingMedium, (parameters, scan): Self::Parameters) {
        drop(TrackLayer::open(medium, parameters, scan));
    }

    fn upkeep(&mut self, what: u64) -> Result<(), SwdError> {
        match what % 4 {
            0 => self.checkpoint(),
            1 => self.idle_step().map(drop),
            _ => {
                let bands = self.spaces().count() as u64;
                self.collect_band((what / 4 % bands) as usize).map(drop)
            }
        }
    }
}

impl Safe for InPlace<CheckingMedium> {
    type Parameters = (Order, u32);

    fn create(medium: CheckingMedium, (order, band_tracks): Self::Parameters) -> Result<Self, SwdError> {
        Self::create(medium, order, band_tracks, 1)
    }

    fn open(medium: CheckingMedium, (order, band_tracks): Self::Parameters) -> Result<Self, SwdError> {
        Self::open(medium, order, band_tracks, 1)
    }

    fn open_in_part(medium: &mut CheckingMedium, (order, band_tracks): Self::Parameters) {
        drop(InPlace::open(medium, order, band_tracks, 1));
    }

    fn upkeep(&mut self, _: u64) -> Result<(), SwdError> {
        self.idle_step().map(drop)
    }
}

/// A disk beside what every sector may hold: the version of the last flush and all since. Version 0 is zeros.
#[derive(Clone)]
pub struct Checked<S: Safe> {
    pub disk: Option<S>,
    pub parameters: S::Parameters,
    pub may_hold: Vec<Vec<u64>>,
    version: u64,
    bytes: Vec<u8>,
}

impl<S: Safe> Checked<S> {
    pub fn new(medium: CheckingMedium, parameters: S::Parameters) -> Self {
        let disk = S::create(medium, parameters).unwrap();
        let may_hold = vec![vec![0]; disk.capacity_sectors() as usize];
        Self { disk: Some(disk), parameters, may_hold, version: 0, bytes: Vec::new() }
    }

    pub fn disk(&mut self) -> &mut S {
        self.disk.as_mut().unwrap()
    }

    pub fn capacity(&self) -> u64 {
        self.may_hold.len() as u64
    }

    fn sector_bytes(&mut self) -> usize {
        stripewise_swd::Medium::geometry(self.disk().medium()).sector_bytes() as usize
    }

    pub fn write(&mut self, lba: u64, sectors: u64) -> Result<(), SwdError> {
        self.version += 1;
        let (version, size) = (self.version, self.sector_bytes());
        self.bytes.resize(sectors as usize * size, 0);
        for (lba, sector) in (lba..).zip(self.bytes.chunks_mut(size)) {
            stamp(sector, version, lba);
        }
        self.may_hold[lba as usize..(lba + sectors) as usize].iter_mut().for_each(|versions| versions.push(version));
        self.disk.as_mut().unwrap().write(lba, sectors, &self.bytes)
    }

    pub fn trim(&mut self, lba: u64, sectors: u64) -> Result<(), SwdError> {
        self.may_hold[lba as usize..(lba + sectors) as usize].iter_mut().for_each(|versions| versions.push(0));
        self.disk().trim(lba, sectors)
    }

    pub fn flush(&mut self) -> Result<(), SwdError> {
        self.disk().flush()?;
        for versions in self.may_hold.iter_mut().filter(|versions| versions.len() > 1) {
            versions.drain(..versions.len() - 1);
        }
        Ok(())
    }

    fn read_all(&mut self) {
        let (sectors, size) = (self.may_hold.len() as u64, self.sector_bytes());
        self.bytes.clear();
        self.bytes.resize(sectors as usize * size, 0xff);
        self.disk.as_mut().unwrap().read(0, sectors, &mut self.bytes).unwrap();
    }

    pub fn holds_the_last_writes(&mut self) {
        self.read_all();
        let size = self.sector_bytes();
        for (lba, found) in self.bytes.chunks(size).enumerate() {
            assert_eq!(version_of(found, lba as u64), self.may_hold[lba].last().copied(), "sector {lba} holds {:?}", &found[..16]);
        }
    }

    /// The power goes, comes back for a few writes while the disk is opened, goes again, and the disk is opened.
    pub fn crash(&mut self, seed: u64) {
        let mut medium = self.disk.take().unwrap().into_medium();
        medium.crash(seed);
        for again in 0..seed % 3 {
            medium.cut_after((seed >> 8 >> (4 * again)) % 7);
            S::open_in_part(&mut medium, self.parameters);
            medium.crash(!seed ^ again);
        }
        self.disk = Some(S::open(medium, self.parameters).unwrap());
        self.read_all();
        let size = self.sector_bytes();
        for (lba, found) in self.bytes.chunks(size).enumerate() {
            let version = version_of(found, lba as u64).filter(|version| self.may_hold[lba].contains(version));
            let Some(version) = version else {
                panic!("sector {lba} holds {:?}, neither flushed nor later data: {:?}", &found[..16], self.may_hold[lba])
            };
            self.may_hold[lba].clear();
            self.may_hold[lba].push(version);
        }
    }

    /// Another disk in place of this one, on the same medium, whatever that holds.
    pub fn create_anew(&mut self, parameters: S::Parameters) {
        let version = self.version;
        let mut medium = self.disk.take().unwrap().into_medium();
        medium.cut_after(u64::MAX);
        *self = Self::new(medium, parameters);
        self.version = version;
    }
}
