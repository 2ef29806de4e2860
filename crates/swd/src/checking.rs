//! A medium in memory that does what shingling does: a write destroys the next W-1 tracks, and whoever reads a destroyed sector is told. Its power can
//! be cut after any write; then every unflushed sector is kept or lost by the seed, in any order.

use core::ops::Range;
use stripewise_chance::SplitMix64;

use crate::error::MediumError;
use crate::geometry::Geometry;
use crate::medium::{Extent, Medium, Spare};

/// What the medium holds: the sectors of all tracks in a row, so that a copy is a few blocks of memory.
#[derive(Clone, Debug)]
struct Image {
    bytes: Vec<u8>,
    destroyed: Vec<bool>,
    spares: Vec<Option<Spare>>,
    random: Vec<u8>,
}

impl Image {
    fn copy_from(&mut self, other: &Self) {
        self.bytes.copy_from_slice(&other.bytes);
        self.destroyed.copy_from_slice(&other.destroyed);
        self.spares.copy_from_slice(&other.spares);
        self.random.copy_from_slice(&other.random);
    }
}

#[derive(Clone, Debug)]
enum Write {
    Sectors { at: Extent, bytes: Vec<u8>, spare: Option<Spare> },
    Random { byte: usize, bytes: Vec<u8> },
}

/// A medium that really destroys. Fresh sectors are zeros.
#[derive(Clone, Debug)]
pub struct CheckingMedium {
    geometry: Geometry,
    /// First sector of each track in the row of all, and the end.
    starts: Vec<usize>,
    now: Image,
    durable: Image,
    unflushed: Vec<Write>,
    writes_left: Option<u64>,
    dark: bool,
    writes: u64,
}

impl CheckingMedium {
    /// A fresh medium.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        let mut starts = vec![0];
        let mut sectors = 0;
        for track in 0..geometry.tracks() {
            sectors += geometry.track_sectors(track) as usize;
            starts.push(sectors);
        }
        let now = Image {
            bytes: vec![0; geometry.bytes(sectors as u64) as usize],
            destroyed: vec![false; sectors],
            spares: vec![None; geometry.tracks() as usize],
            random: vec![0; geometry.bytes(u64::from(geometry.random_access_sectors())) as usize],
        };
        Self { geometry, starts, durable: now.clone(), now, unflushed: Vec::new(), writes_left: None, dark: false, writes: 0 }
    }

    /// Sectors of a track in the row of all.
    fn row(starts: &[usize], track: u32) -> Range<usize> {
        let at = |index: usize| starts.get(index).or(starts.last()).copied().unwrap_or(0);
        at(track as usize)..at(track as usize + 1)
    }

    /// Writes and flushes served so far: the points at which power can be cut.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Lets the power go at the write or flush after `writes` more of them; that last one is itself unflushed.
    pub fn cut_after(&mut self, writes: u64) {
        self.writes_left = Some(writes);
    }

    /// Power comes back: of what was not flushed, each sector is there or not by the seed, as if it had been written in another order.
    pub fn crash(&mut self, seed: u64) {
        let mut random = SplitMix64::at(seed);
        let mut unflushed = core::mem::take(&mut self.unflushed);
        for last in (1..unflushed.len()).rev() {
            unflushed.swap(last, (random.bits() % (last as u64 + 1)) as usize);
        }
        for write in &unflushed {
            // A third of the writes is lost, a third is whole, a third is torn between sectors.
            match random.bits() % 3 {
                0 => {}
                1 => self.durable.apply(write, &self.geometry, &self.starts, |_| true),
                _ => self.durable.apply(write, &self.geometry, &self.starts, |_| random.bits() & 1 == 0),
            }
        }
        self.now.copy_from(&self.durable);
        self.writes_left = None;
        self.dark = false;
    }

    /// Whether a write to `track` or before has destroyed the sector.
    #[must_use]
    pub fn is_destroyed(&self, track: u32, sector: u32) -> bool {
        let row = Self::row(&self.starts, track);
        self.now.destroyed.get(row).and_then(|row| row.get(sector as usize)).copied().unwrap_or(false)
    }

    /// Counts a write or a flush; true when the power goes at it.
    fn cut(&mut self) -> Result<bool, MediumError> {
        self.powered()?;
        self.writes += 1;
        self.dark = self.writes_left == Some(0);
        self.writes_left = self.writes_left.map(|left| left.saturating_sub(1));
        Ok(self.dark)
    }

    fn record(&mut self, write: Write) -> Result<(), MediumError> {
        let cut = self.cut()?;
        if !cut {
            self.now.apply(&write, &self.geometry, &self.starts, |_| true);
        }
        self.unflushed.push(write);
        if cut { Err(MediumError::PowerLost) } else { Ok(()) }
    }

    fn check(&self, at: Extent, bytes: usize) -> Result<(), MediumError> {
        let end = at.sector.checked_add(at.sectors);
        let fits = end.is_some_and(|end| end <= self.geometry.track_sectors(at.track));
        let right_length = bytes as u64 == self.geometry.bytes(u64::from(at.sectors));
        if fits && right_length && at.sectors > 0 { Ok(()) } else { Err(MediumError::Range { track: at.track, sector: at.sector }) }
    }

    fn random_range(&self, sector: u32, sectors: u32, bytes: usize) -> Result<Range<usize>, MediumError> {
        let from = self.geometry.bytes(u64::from(sector)) as usize;
        match from.checked_add(bytes) {
            Some(to) if to <= self.now.random.len() && bytes as u64 == self.geometry.bytes(u64::from(sectors)) => Ok(from..to),
            _ => Err(MediumError::Range { track: self.geometry.tracks(), sector }),
        }
    }

    fn powered(&self) -> Result<(), MediumError> {
        if self.dark { Err(MediumError::PowerLost) } else { Ok(()) }
    }
}

impl Image {
    /// Carries a write out; `keep` says of each sector, and of the spare area, whether it arrives.
    fn apply(&mut self, write: &Write, geometry: &Geometry, starts: &[usize], mut keep: impl FnMut(u32) -> bool) {
        let size = geometry.sector_bytes() as usize;
        match write {
            Write::Sectors { at, bytes, spare } => {
                let shadow = at.track.saturating_add(1)..at.track.saturating_add(geometry.head_tracks()).min(geometry.tracks());
                for next in shadow {
                    if let Some(destroyed) = self.destroyed.get_mut(CheckingMedium::row(starts, next)) {
                        destroyed.fill(true);
                    }
                    if let Some(spare) = self.spares.get_mut(next as usize) {
                        *spare = None;
                    }
                }
                let first = CheckingMedium::row(starts, at.track).start + at.sector as usize;
                for index in 0..at.sectors {
                    let (sector, from) = (first + index as usize, index as usize * size);
                    if !keep(index) {
                        continue;
                    }
                    if let (Some(to), Some(new)) = (self.bytes.get_mut(sector * size..(sector + 1) * size), bytes.get(from..from + size)) {
                        to.copy_from_slice(new);
                    }
                    if let Some(destroyed) = self.destroyed.get_mut(sector) {
                        *destroyed = false;
                    }
                }
                if let (Some(new), Some(spare)) = (spare.filter(|_| keep(at.sectors)), self.spares.get_mut(at.track as usize)) {
                    *spare = Some(new);
                }
            }
            Write::Random { byte, bytes } => {
                for (index, new) in bytes.chunks(size.max(1)).enumerate() {
                    let from = byte + index * size;
                    if let Some(to) = self.random.get_mut(from..from + new.len()).filter(|_| keep(index as u32)) {
                        to.copy_from_slice(new);
                    }
                }
            }
        }
    }
}

impl Medium for CheckingMedium {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn read(&mut self, at: Extent, into: &mut [u8]) -> Result<(), MediumError> {
        self.powered()?;
        self.check(at, into.len())?;
        let outside = MediumError::Range { track: at.track, sector: at.sector };
        let first = Self::row(&self.starts, at.track).start + at.sector as usize;
        let sectors = first..first + at.sectors as usize;
        if let Some(index) = self.now.destroyed.get(sectors.clone()).ok_or(outside)?.iter().position(|&destroyed| destroyed) {
            return Err(MediumError::Destroyed { track: at.track, sector: at.sector + index as u32 });
        }
        let size = self.geometry.sector_bytes() as usize;
        into.copy_from_slice(self.now.bytes.get(sectors.start * size..sectors.end * size).ok_or(outside)?);
        Ok(())
    }

    fn write(&mut self, at: Extent, from: &[u8], spare: Option<&Spare>) -> Result<(), MediumError> {
        self.check(at, from.len())?;
        self.record(Write::Sectors { at, bytes: from.to_vec(), spare: spare.copied() })
    }

    fn read_spare(&mut self, track: u32) -> Result<Option<Spare>, MediumError> {
        self.powered()?;
        self.now.spares.get(track as usize).copied().ok_or(MediumError::Range { track, sector: 0 })
    }

    fn read_random(&mut self, sector: u32, sectors: u32, into: &mut [u8]) -> Result<(), MediumError> {
        self.powered()?;
        let range = self.random_range(sector, sectors, into.len())?;
        into.copy_from_slice(self.now.random.get(range).ok_or(MediumError::Range { track: self.geometry.tracks(), sector })?);
        Ok(())
    }

    fn write_random(&mut self, sector: u32, sectors: u32, from: &[u8]) -> Result<(), MediumError> {
        let range = self.random_range(sector, sectors, from.len())?;
        self.record(Write::Random { byte: range.start, bytes: from.to_vec() })
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        if self.cut()? {
            return Err(MediumError::PowerLost);
        }
        for write in core::mem::take(&mut self.unflushed) {
            self.durable.apply(&write, &self.geometry, &self.starts, |_| true);
        }
        Ok(())
    }
}
