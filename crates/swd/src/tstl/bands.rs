//! Bands of equal numbers of tracks inside of the zones, and the logical tracks that each offers: logical track l belongs to band `l / K` and stays
//! there, because a track's size is its zone's (chapter 5.2.1).

use crate::error::SwdError;
use crate::geometry::Geometry;

/// A piece of a request: sectors of one logical track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) logical_track: u32,
    pub(crate) sector: u32,
    pub(crate) sectors: u32,
}

#[derive(Clone, Debug)]
struct Run {
    lba: u64,
    logical_track: u32,
    track_sectors: u32,
}

/// The bands of a disk.
#[derive(Clone, Debug)]
pub(crate) struct Bands {
    runs: Vec<Run>,
    /// First physical track and sectors per track of each band.
    bands: Vec<(u32, u32)>,
    band_tracks: u32,
    logical_tracks: u32,
    capacity: u64,
}

impl Bands {
    /// Bands of `band_tracks` (N), of which `logical_tracks` (K) are offered; 0 stands for the most, N-2W.
    pub(crate) fn new(geometry: &Geometry, band_tracks: u32, logical_tracks: u32) -> Result<Self, SwdError> {
        let most = u64::from(band_tracks).saturating_sub(2 * u64::from(geometry.head_tracks())) as u32;
        if most == 0 {
            return Err(SwdError::Parameter { key: "band_tracks", reason: "a band needs more tracks than two widths of the head" });
        }
        if logical_tracks > most {
            return Err(SwdError::Parameter { key: "band_logical_tracks", reason: "two widths of the head must stay free in a band" });
        }
        let logical_tracks = if logical_tracks == 0 { most } else { logical_tracks };
        let (mut runs, mut bands, mut lba) = (Vec::new(), Vec::new(), 0u64);
        for (first, zone) in geometry.zones() {
            let count = zone.tracks / band_tracks;
            runs.push(Run { lba, logical_track: bands.len() as u32 * logical_tracks, track_sectors: zone.sectors });
            bands.extend((0..count).map(|band| (first + band * band_tracks, zone.sectors)));
            lba += u64::from(count) * u64::from(logical_tracks) * u64::from(zone.sectors);
        }
        if bands.is_empty() {
            return Err(SwdError::Parameter { key: "band_tracks", reason: "no zone has room for a band; take fewer tracks" });
        }
        Ok(Self { runs, bands, band_tracks, logical_tracks, capacity: lba })
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(crate) fn count(&self) -> usize {
        self.bands.len()
    }

    pub(crate) fn band_tracks(&self) -> u32 {
        self.band_tracks
    }

    /// Logical tracks of the disk.
    pub(crate) fn logical_tracks(&self) -> usize {
        self.bands.len() * self.logical_tracks as usize
    }

    /// First physical track of a band.
    pub(crate) fn first_track(&self, band: usize) -> u32 {
        self.bands.get(band).map_or(0, |band| band.0)
    }

    /// Sectors of a band's tracks.
    pub(crate) fn track_sectors(&self, band: usize) -> u32 {
        self.bands.get(band).map_or(0, |band| band.1)
    }

    /// A logical track's band.
    pub(crate) fn band_of(&self, logical_track: u32) -> usize {
        (logical_track / self.logical_tracks) as usize
    }

    /// A logical track's number in its band.
    pub(crate) fn index_of(&self, logical_track: u32) -> usize {
        (logical_track % self.logical_tracks) as usize
    }

    /// The pieces of a request.
    pub(crate) fn pieces(&self, lba: u64, sectors: u64) -> Vec<Piece> {
        let (mut pieces, mut at, end) = (Vec::new(), lba, (lba + sectors).min(self.capacity));
        while at < end {
            // Zones too small for a band share the next one's first sector: the last run that begins there has it.
            let Some(run) = self.runs.get(self.runs.partition_point(|run| run.lba <= at).wrapping_sub(1)) else { break };
            let (inside, size) = (at - run.lba, u64::from(run.track_sectors));
            let count = (size - inside % size).min(end - at);
            let logical_track = run.logical_track + (inside / size) as u32;
            pieces.push(Piece { logical_track, sector: (inside % size) as u32, sectors: count as u32 });
            at += count;
        }
        pieces
    }
}
