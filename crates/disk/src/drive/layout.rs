//! Where tracks lie: a track's number, in the order in which the disk is filled and shingled, to its cylinder, surface, size and angle.
//!
//! Tracks are numbered in *runs*: so many adjacent cylinders of one surface, then the same cylinders back on the next surface, through all surfaces
//! (serpentine); then the next cylinders. A run of one cylinder is the order cylinder by cylinder. Within a run neighbouring numbers are neighbouring
//! tracks of one surface, which is what shingling needs. At the end of a run the next number is on another surface, where a wide head would destroy
//! nothing, while across the border of two groups of runs it would overlap a track whose number is not the next: a real disk leaves a guard of W-1
//! tracks there. Schemes are told only numbers and take each border for an overlap, so they keep as many tracks free as the guards would take.

use crate::drive::seek::SeekTable;
use crate::drive::spec::{DiskSpec, Skew, ZoneSpec};
use crate::error::Error;
use crate::time::{Angle, milliseconds};

/// Where a track is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    pub cylinder: u32,
    pub surface: u32,
    pub sectors: u32,
    /// Block number of its first sector, counted through all tracks in order.
    pub first_block: u64,
    /// Angle at which its first sector begins.
    pub(crate) angle: Angle,
    pub(crate) sector_angle: Angle,
    /// Time of a sector, 2^-20 ns.
    pub(crate) sector_fixed: u64,
}

/// Angles between a track's begin and the next one's, by where the next one lies.
#[derive(Clone, Copy, Debug, Default)]
struct Skews {
    step: Angle,
    switch: Angle,
    group: Angle,
}

/// Tracks of one size.
#[derive(Clone, Copy, Debug)]
struct Zone {
    first_track: u32,
    first_cylinder: u32,
    cylinders: u32,
    first_block: u64,
    sectors: u32,
    sector_angle: Angle,
    sector_fixed: u64,
    skews: Skews,
}

/// All tracks of a disk.
#[derive(Clone, Debug)]
pub struct Layout {
    zones: Vec<Zone>,
    /// For each 2^`shift` tracks, the zone of the first.
    coarse: Vec<u16>,
    shift: u32,
    surfaces: u32,
    run_cylinders: u32,
    tracks: u32,
    blocks: u64,
}

const COARSE_ENTRIES: u32 = 1024;

impl Layout {
    /// The disk's own order, or runs of `run_cylinders` instead.
    ///
    /// # Errors
    /// A disk that cannot be.
    pub fn new(spec: &DiskSpec, run_cylinders: Option<u32>) -> Result<Self, Error> {
        spec.check()?;
        Self::with_seek(spec, run_cylinders, &SeekTable::new(spec))
    }

    pub(crate) fn with_seek(spec: &DiskSpec, run_cylinders: Option<u32>, seek: &SeekTable) -> Result<Self, Error> {
        let run_cylinders = run_cylinders.or(spec.run_cylinders()).unwrap_or(1);
        if run_cylinders == 0 {
            return Err(Error::key("run_cylinders", "is 0", "give the cylinders of a run, at least 1"));
        }
        let run_cylinders = run_cylinders.min(spec.cylinders);
        let (mut zones, mut first_track, mut first_block) = (Vec::new(), 0u32, 0u64);
        for (zone, cylinders) in spec.zone_cylinders() {
            let sector_ns = 60e9 / spec.rpm / f64::from(zone.sectors());
            zones.push(Zone {
                first_track,
                first_cylinder: zone.first_cylinder(),
                cylinders,
                first_block,
                sectors: zone.sectors(),
                sector_angle: u64::MAX / u64::from(zone.sectors()),
                sector_fixed: (sector_ns * f64::from(1 << 20)).round() as u64,
                skews: skews(spec, zone, run_cylinders, seek),
            });
            first_track += cylinders * spec.surfaces;
            first_block += u64::from(cylinders) * u64::from(spec.surfaces) * u64::from(zone.sectors());
        }
        let tracks = first_track;
        let shift = (tracks / COARSE_ENTRIES).checked_ilog2().map_or(0, |log| log + 1);
        let zone_of = |track: u32| u16::try_from(zones.partition_point(|zone| zone.first_track <= track).saturating_sub(1)).unwrap_or(u16::MAX);
        let coarse = (0..=tracks >> shift).map(|entry| zone_of(entry << shift)).collect();
        Ok(Self { zones, coarse, shift, surfaces: spec.surfaces, run_cylinders, tracks, blocks: first_block })
    }

    /// Tracks of all surfaces.
    #[must_use]
    pub fn tracks(&self) -> u32 {
        self.tracks
    }

    /// Blocks of all tracks, spares among them.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Tracks of one size: (first track, tracks, sectors of each), in order.
    pub fn zones(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        self.zones.iter().map(|zone| (zone.first_track, zone.cylinders * self.surfaces, zone.sectors))
    }

    /// The track that holds a block; the last one's end where there is none.
    #[must_use]
    pub fn track_of(&self, block: u64) -> u32 {
        let after = self.zones.partition_point(|zone| zone.first_block <= block);
        let zone = self.zones.get(after.saturating_sub(1));
        let track = zone.map_or(0, |zone| u64::from(zone.first_track) + (block - zone.first_block.min(block)) / u64::from(zone.sectors));
        u32::try_from(track).unwrap_or(u32::MAX).min(self.tracks)
    }

    /// Where a track is; `None` beyond the last.
    #[inline]
    #[must_use]
    pub fn place(&self, track: u32) -> Option<Place> {
        if track >= self.tracks {
            return None;
        }
        let mut at = usize::from(*self.coarse.get((track >> self.shift) as usize)?);
        while self.zones.get(at + 1).is_some_and(|next| next.first_track <= track) {
            at += 1;
        }
        let zone = self.zones.get(at)?;
        let in_zone = track - zone.first_track;
        let (group, in_group) = (in_zone / (self.run_cylinders * self.surfaces), in_zone % (self.run_cylinders * self.surfaces));
        let before = group * self.run_cylinders;
        let run = self.run_cylinders.min(zone.cylinders - before);
        let (surface, in_run) = (in_group / run, in_group % run);
        let column = if surface % 2 == 1 { run - 1 - in_run } else { in_run };
        Some(Place {
            cylinder: zone.first_cylinder + before + column,
            surface,
            sectors: zone.sectors,
            first_block: zone.first_block + u64::from(in_zone) * u64::from(zone.sectors),
            angle: self.angle(zone, group, surface, run, in_run),
            sector_angle: zone.sector_angle,
            sector_fixed: zone.sector_fixed,
        })
    }

    #[inline]
    fn angle(&self, zone: &Zone, group: u32, surface: u32, run: u32, in_run: u32) -> Angle {
        let Skews { step, switch, group: between } = zone.skews;
        let runs = |steps: u32, runs: u32| step.wrapping_mul(u64::from(steps) * u64::from(runs)).wrapping_add(switch.wrapping_mul(u64::from(runs)));
        let whole = runs(self.run_cylinders - 1, self.surfaces).wrapping_sub(switch).wrapping_add(between);
        whole.wrapping_mul(u64::from(group)).wrapping_add(runs(run - 1, surface)).wrapping_add(step.wrapping_mul(u64::from(in_run)))
    }
}

/// What the next track's begin is behind, so that the head arrives in time.
fn skews(spec: &DiskSpec, zone: ZoneSpec, run_cylinders: u32, seek: &SeekTable) -> Skews {
    let sectors = zone.sectors();
    let sector_angle = u64::MAX / u64::from(sectors);
    let sector_ns = 60e9 / spec.rpm / f64::from(sectors);
    let settle_ns = milliseconds(spec.write_settle_ms);
    let switch_ns = milliseconds(spec.head_switch_ms);
    let behind = |ns: u64| sector_angle.wrapping_mul(((ns + settle_ns) as f64 / sector_ns).ceil() as u64);
    // Runs go forth and back: after an even number of surfaces the arm is where the group began.
    let back = if spec.surfaces.is_multiple_of(2) { run_cylinders } else { 1 };
    let group = behind(seek.ns(back.min(spec.cylinders.saturating_sub(1))).max(if spec.surfaces > 1 { switch_ns } else { 0 }));
    match (zone, spec.skew) {
        (ZoneSpec::Skewed(_, _, track, cylinder), _) => {
            let given = |skew: u32| sector_angle.wrapping_mul(u64::from(skew));
            Skews { step: given(cylinder), switch: given(track), group: if back == 1 { given(cylinder) } else { group } }
        }
        (ZoneSpec::Plain(..), Skew::None) => Skews::default(),
        (ZoneSpec::Plain(..), Skew::Computed) => Skews { step: behind(seek.ns(1)), switch: behind(switch_ns), group },
    }
}
