//! Arm, heads and rotation: how long an access to a track's sectors takes from where the disk stands.

use crate::drive::layout::{Layout, Place};
use crate::drive::seek::SeekTable;
use crate::drive::spec::DiskSpec;
use crate::error::Error;
use crate::time::{Rotation, milliseconds};

/// What an access to the medium took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Motion {
    /// Moving the arm, changing the head, settling.
    pub seek_ns: u64,
    /// Waiting for the first sector.
    pub rotation_ns: u64,
    /// From the first sector's begin to the last one's end.
    pub transfer_ns: u64,
    /// How far the arm moved.
    pub cylinders: u32,
}

impl Motion {
    /// All of it.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.seek_ns + self.rotation_ns + self.transfer_ns
    }
}

/// A disk's moving parts.
#[derive(Clone, Debug)]
pub struct Mechanics {
    layout: Layout,
    seek: SeekTable,
    rotation: Rotation,
    head_switch_ns: u64,
    write_settle_ns: u64,
    cylinder: u32,
    surface: u32,
}

impl Mechanics {
    /// At rest over cylinder 0 and surface 0. `run_cylinders` instead of the disk's own order of tracks.
    ///
    /// # Errors
    /// A disk that cannot be.
    pub fn new(spec: &DiskSpec, run_cylinders: Option<u32>) -> Result<Self, Error> {
        spec.check()?;
        let seek = SeekTable::new(spec);
        Ok(Self {
            layout: Layout::with_seek(spec, run_cylinders, &seek)?,
            rotation: Rotation::new(spec.rpm),
            head_switch_ns: milliseconds(spec.head_switch_ms),
            write_settle_ns: milliseconds(spec.write_settle_ms),
            seek,
            cylinder: 0,
            surface: 0,
        })
    }

    /// Where tracks lie.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Cylinder of the arm.
    #[must_use]
    pub fn cylinder(&self) -> u32 {
        self.cylinder
    }

    /// Time of a turn, ns.
    #[must_use]
    pub fn period_ns(&self) -> f64 {
        self.rotation.period_ns()
    }

    #[inline]
    fn seek_ns(&self, place: &Place, write: bool) -> (u64, u32) {
        let cylinders = self.cylinder.abs_diff(place.cylinder);
        let switch_ns = if place.surface == self.surface { 0 } else { self.head_switch_ns };
        let ns = self.seek.ns(cylinders).max(switch_ns);
        let moved = cylinders > 0 || place.surface != self.surface;
        (if write && moved { ns + self.write_settle_ns } else { ns }, cylinders)
    }

    /// What an access that begins at `begin_ns` would wait until its first sector, ns.
    #[inline]
    #[must_use]
    pub fn positioning_ns(&self, begin_ns: u64, place: &Place, sector: u32, write: bool) -> u64 {
        let (seek_ns, _) = self.seek_ns(place, write);
        seek_ns + self.wait_ns(begin_ns + seek_ns, place, sector)
    }

    #[inline]
    fn wait_ns(&self, ns: u64, place: &Place, sector: u32) -> u64 {
        let begin = place.angle.wrapping_add(place.sector_angle.wrapping_mul(u64::from(sector)));
        self.rotation.until(self.rotation.at(ns), begin)
    }

    /// Moves the arm and transfers sectors of one track, which must have them.
    #[inline]
    pub fn access(&mut self, begin_ns: u64, place: &Place, sector: u32, sectors: u32, write: bool) -> Motion {
        let (seek_ns, cylinders) = self.seek_ns(place, write);
        self.cylinder = place.cylinder;
        self.surface = place.surface;
        let rotation_ns = self.wait_ns(begin_ns + seek_ns, place, sector);
        Motion { seek_ns, rotation_ns, transfer_ns: transfer_ns(place, sectors), cylinders }
    }
}

/// Time of so many sectors under the head, ns.
#[inline]
pub(crate) fn transfer_ns(place: &Place, sectors: u32) -> u64 {
    (place.sector_fixed * u64::from(sectors)) >> 20
}
