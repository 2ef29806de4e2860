//! Tracks and how many sectors each has. Outer tracks hold more: a medium is a row of zones, each of tracks of one size (chapter 4.2).

use crate::error::SwdError;

/// Tracks of one size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// How many tracks.
    pub tracks: u32,
    /// Sectors of each.
    pub sectors: u32,
}

/// The shape of a medium: tracks 0, 1, ... in the direction of shingling, zone after zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    zones: Vec<Zone>,
    first: Vec<u32>,
    tracks: u32,
    head_tracks: u32,
    sector_bytes: u32,
    random_access_sectors: u32,
}

impl Geometry {
    /// `head_tracks` is W: a write of a track destroys the next W-1 (1: an ordinary disk). `sector_bytes` 0 stands for a medium that carries no data,
    /// only times. `random_access_sectors` is the size of the random access zone.
    ///
    /// # Errors
    /// No zones, an empty zone, W of 0, or more than 2^31 tracks.
    pub fn new(zones: &[Zone], head_tracks: u32, sector_bytes: u32, random_access_sectors: u32) -> Result<Self, SwdError> {
        if zones.is_empty() || zones.iter().any(|zone| zone.tracks == 0 || zone.sectors == 0) {
            return Err(SwdError::Parameter { key: "zones", reason: "there must be one, and each must have tracks and sectors" });
        }
        if head_tracks == 0 {
            return Err(SwdError::Parameter { key: "head_tracks", reason: "the write head is at least one track wide" });
        }
        let mut first = Vec::with_capacity(zones.len());
        let mut tracks = 0u32;
        for zone in zones {
            first.push(tracks);
            tracks = tracks
                .checked_add(zone.tracks)
                .filter(|&sum| sum <= 1 << 31)
                .ok_or(SwdError::Parameter { key: "zones", reason: "a medium has at most 2^31 tracks" })?;
        }
        Ok(Self { zones: zones.to_vec(), first, tracks, head_tracks, sector_bytes, random_access_sectors })
    }

    /// Number of tracks.
    #[must_use]
    pub fn tracks(&self) -> u32 {
        self.tracks
    }

    /// W, tracks.
    #[must_use]
    pub fn head_tracks(&self) -> u32 {
        self.head_tracks
    }

    #[must_use]
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Sectors of the random access zone.
    #[must_use]
    pub fn random_access_sectors(&self) -> u32 {
        self.random_access_sectors
    }

    /// Sectors of a track; 0 beyond the last.
    #[must_use]
    pub fn track_sectors(&self, track: u32) -> u32 {
        if track >= self.tracks {
            return 0;
        }
        let zone = self.first.partition_point(|&first| first <= track).wrapping_sub(1);
        self.zones.get(zone).map_or(0, |zone| zone.sectors)
    }

    /// Each zone with its first track.
    pub fn zones(&self) -> impl Iterator<Item = (u32, Zone)> + '_ {
        self.first.iter().copied().zip(self.zones.iter().copied())
    }

    /// Bytes of so many sectors.
    #[must_use]
    pub fn bytes(&self, sectors: u64) -> u64 {
        sectors.saturating_mul(u64::from(self.sector_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_track_has_its_zones_sectors() {
        let zones = [Zone { tracks: 2, sectors: 9 }, Zone { tracks: 3, sectors: 5 }];
        let geometry = Geometry::new(&zones, 2, 16, 0).unwrap();
        let sectors: Vec<u32> = (0..6).map(|track| geometry.track_sectors(track)).collect();
        assert_eq!(sectors, [9, 9, 5, 5, 5, 0]);
    }

    #[test]
    fn shapes_without_tracks_or_head_are_refused() {
        assert!(Geometry::new(&[], 2, 16, 0).is_err());
        assert!(Geometry::new(&[Zone { tracks: 0, sectors: 1 }], 2, 16, 0).is_err());
        assert!(Geometry::new(&[Zone { tracks: 1, sectors: 1 }], 0, 16, 0).is_err());
    }
}
