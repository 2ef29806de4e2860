//! The static mapping orders of chapter 4.5: in which order logical sectors take the tracks of the bands.
//!
//! A band is N data tracks and a gap of W-1. An order is a row of *classes*; a class is a set of positions in a band. The logical space fills the first
//! class in all bands, then the second in all bands, and so on; within a class it goes band by band, in each band through the positions of the class.
//!
//! How the orders go beyond N = 4 and W = 2, where the seed stops:
//! * `1234`: one class, 1 to N.
//! * `R(4123)`: N classes: N, 1, 2, ..., N-1. The name read literally.
//! * `124R(3)`: a class of 1 to N-W and N, then a class each for the W-1 tracks before the last. What is delayed is what keeps N free to be updated and
//!   N-W free to be written without a write of N: exactly one head's overlap.
//! * `14R(23)`: a class of 1 and N, then a class each for 2 to N-1.
//!
//! Bands lie inside of zones, so that all tracks of a band have one size; what remains of a zone stays unused.

use crate::error::SwdError;
use crate::geometry::Geometry;
use crate::medium::Extent;

/// A static mapping order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// An ordinary disk: tracks in order, no bands; needs a medium with W = 1.
    Hdd,
    /// `1234`: band by band, tracks in order.
    Sequential,
    /// `R(4123)`: the last track of all bands, then the first, the second, ...
    Rotated,
    /// `124R(3)`: all but the W-1 tracks before the last band by band, then those.
    LastButOneDelayed,
    /// `14R(23)`: first and last band by band, then the second of all bands, the third, ...
    EndsFirst,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Hdd, Self::Sequential, Self::Rotated, Self::LastButOneDelayed, Self::EndsFirst];

    /// The seed's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hdd => "hdd",
            Self::Sequential => "1234",
            Self::Rotated => "R(4123)",
            Self::LastButOneDelayed => "124R(3)",
            Self::EndsFirst => "14R(23)",
        }
    }

    /// The order of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }

    /// Classes of positions 0 to `band_tracks`-1.
    fn classes(self, band_tracks: u32, head_tracks: u32) -> Vec<Vec<u32>> {
        let last = band_tracks.saturating_sub(1);
        let each = |from: u32| (from..last).map(|position| vec![position]);
        match self {
            Self::Hdd | Self::Sequential => vec![(0..band_tracks).collect()],
            Self::Rotated => core::iter::once(vec![last]).chain(each(0)).collect(),
            Self::LastButOneDelayed => {
                let delayed = band_tracks.saturating_sub(head_tracks);
                core::iter::once((0..delayed).chain([last]).collect()).chain(each(delayed)).collect()
            }
            Self::EndsFirst if last == 0 => vec![vec![0]],
            Self::EndsFirst => core::iter::once(vec![0, last]).chain(each(1)).collect(),
        }
    }
}

/// A class in a zone: logical sectors that go through the zone's bands.
#[derive(Clone, Debug)]
struct Run {
    lba: u64,
    positions: Vec<u32>,
    first_track: u32,
    track_sectors: u32,
}

/// A static map from logical sectors to sectors of tracks.
#[derive(Clone, Debug)]
pub(crate) struct StaticMap {
    runs: Vec<Run>,
    pitch: u32,
    capacity: u64,
}

impl StaticMap {
    pub(crate) fn new(order: Order, geometry: &Geometry, band_tracks: u32) -> Result<Self, SwdError> {
        if band_tracks == 0 {
            return Err(SwdError::Parameter { key: "band_tracks", reason: "a band has at least one track" });
        }
        if order == Order::Hdd && geometry.head_tracks() != 1 {
            return Err(SwdError::Parameter { key: "head_tracks", reason: "hdd needs tracks that do not overlap, so a head of one track" });
        }
        let band_tracks = if order == Order::Hdd { 1 } else { band_tracks };
        let pitch = band_tracks
            .checked_add(geometry.head_tracks() - 1)
            .ok_or(SwdError::Parameter { key: "band_tracks", reason: "a band with its gap has at most 2^32 tracks" })?;
        let (mut runs, mut lba) = (Vec::new(), 0u64);
        for positions in order.classes(band_tracks, geometry.head_tracks()) {
            for (first_track, zone) in geometry.zones() {
                let sectors = u64::from(zone.tracks / pitch) * positions.len() as u64 * u64::from(zone.sectors);
                if sectors > 0 {
                    runs.push(Run { lba, positions: positions.clone(), first_track, track_sectors: zone.sectors });
                    lba += sectors;
                }
            }
        }
        if lba == 0 {
            return Err(SwdError::Parameter { key: "band_tracks", reason: "no zone has room for a band and its gap; take fewer tracks" });
        }
        Ok(Self { runs, pitch, capacity: lba })
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Where `lba` lies, with as many of `sectors` as lie on the same track.
    pub(crate) fn locate(&self, lba: u64, sectors: u64) -> Option<Extent> {
        if lba >= self.capacity {
            return None;
        }
        let run = self.runs.get(self.runs.partition_point(|run| run.lba <= lba).wrapping_sub(1))?;
        let (inside, size) = (lba - run.lba, u64::from(run.track_sectors));
        let (track, sector) = (inside / size, inside % size);
        let (band, position) = (track / run.positions.len() as u64, track % run.positions.len() as u64);
        let track = run.first_track + band as u32 * self.pitch + run.positions.get(position as usize)?;
        Some(Extent { track, sector: sector as u32, sectors: sectors.min(size - sector) as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Zone;

    fn tracks(order: Order, band_tracks: u32, head_tracks: u32, bands: u32) -> Vec<u32> {
        let zone = Zone { tracks: bands * (band_tracks + head_tracks - 1), sectors: 1 };
        let map = StaticMap::new(order, &Geometry::new(&[zone], head_tracks, 0, 0).unwrap(), band_tracks).unwrap();
        (0..map.capacity()).map(|lba| map.locate(lba, 1).unwrap().track).collect()
    }

    #[test]
    fn orders_take_the_tracks_that_their_names_say() {
        assert_eq!(tracks(Order::Sequential, 4, 2, 2), [0, 1, 2, 3, 5, 6, 7, 8]);
        assert_eq!(tracks(Order::Rotated, 4, 2, 2), [3, 8, 0, 5, 1, 6, 2, 7]);
        assert_eq!(tracks(Order::LastButOneDelayed, 4, 2, 2), [0, 1, 3, 5, 6, 8, 2, 7]);
        assert_eq!(tracks(Order::EndsFirst, 4, 2, 2), [0, 3, 5, 8, 1, 6, 2, 7]);
        assert_eq!(tracks(Order::LastButOneDelayed, 5, 3, 1), [0, 1, 4, 2, 3]);
    }

    #[test]
    fn every_order_takes_every_data_track_once() {
        for order in Order::ALL {
            for (band_tracks, head_tracks) in [(1, 2), (2, 3), (3, 2), (4, 2), (5, 3), (9, 4)] {
                if order == Order::Hdd {
                    continue;
                }
                let mut taken = tracks(order, band_tracks, head_tracks, 3);
                taken.sort_unstable();
                let pitch = band_tracks + head_tracks - 1;
                let data: Vec<u32> = (0..3 * pitch).filter(|track| track % pitch < band_tracks).collect();
                assert_eq!(taken, data, "{} with N {band_tracks} and W {head_tracks}", order.name());
            }
        }
    }

    #[test]
    fn bands_do_not_cross_zones() {
        let zones = [Zone { tracks: 7, sectors: 3 }, Zone { tracks: 5, sectors: 2 }];
        let map = StaticMap::new(Order::Sequential, &Geometry::new(&zones, 2, 0, 0).unwrap(), 4).unwrap();
        assert_eq!(map.capacity(), 4 * 3 + 4 * 2);
        assert_eq!(map.locate(12, 9).unwrap(), Extent { track: 7, sector: 0, sectors: 2 });
    }
}
