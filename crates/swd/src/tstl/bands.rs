//! Bands of equal numbers of tracks inside of the zones, and the logical tracks that each offers: logical track l belongs to band `l / K` and stays
//! there, because a track's size is its zone's (chapter 5.2.1).
//!
//! Logical sectors go band by band through as many tracks as alternate ones can hold, a W-th of each band, then through a few more of every band, then the
//! next few, and so on. So a little used disk is used from its begin on, as others are, and above that all bands fill alike, as the seed's figures for a
//! disk used to 60 or 90 % suppose; band by band to the end, such a disk would be full bands and half empty ones.

use super::parameters::TrackParameters;
use super::places::MOST_BAND_TRACKS;
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
    first_band: u32,
    /// Number of the first logical track in each band, and how many of them.
    first_index: u32,
    tracks: u32,
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
    /// Bands of `band_tracks` (N), of which `band_logical_tracks` (K) are offered; 0 stands for the most, N-2W. Logical sectors go through the bands
    /// `first_tracks` at a time, then `spread_tracks`; 0 stands for the alternate ones and for all.
    pub(crate) fn new(geometry: &Geometry, parameters: &TrackParameters) -> Result<Self, SwdError> {
        let &TrackParameters { band_tracks, band_logical_tracks: logical_tracks, first_tracks, spread_tracks, .. } = parameters;
        let most = u64::from(band_tracks).saturating_sub(2 * u64::from(geometry.head_tracks())) as u32;
        if band_tracks > MOST_BAND_TRACKS {
            return Err(SwdError::Parameter { key: "band_tracks", reason: "a band has at most 32,766 tracks" });
        }
        if most == 0 {
            return Err(SwdError::Parameter { key: "band_tracks", reason: "a band needs more tracks than two widths of the head" });
        }
        if logical_tracks > most {
            return Err(SwdError::Parameter { key: "band_logical_tracks", reason: "two widths of the head must stay free in a band" });
        }
        let logical_tracks = if logical_tracks == 0 { most } else { logical_tracks };
        let spread_tracks = if spread_tracks == 0 { logical_tracks } else { spread_tracks.min(logical_tracks) };
        let zones = || geometry.zones().map(|(first, zone)| (first, zone.sectors, zone.tracks / band_tracks));
        let bands: Vec<(u32, u32)> =
            zones().flat_map(|(first, sectors, count)| (0..count).map(move |band| (first + band * band_tracks, sectors))).collect();
        // One more alternate track, and bringing free tracks together would take moves of the others.
        let alternate = ((band_tracks - 2) / geometry.head_tracks()).max(1);
        let first_tracks = if first_tracks == 0 { alternate } else { first_tracks }.min(logical_tracks);
        let (mut runs, mut lba) = (Vec::new(), 0u64);
        for first_index in core::iter::once(0).chain((first_tracks..logical_tracks).step_by(spread_tracks as usize)) {
            let at_a_time = if first_index == 0 { first_tracks } else { spread_tracks };
            let (tracks, mut first_band) = (at_a_time.min(logical_tracks - first_index), 0);
            for (_, track_sectors, count) in zones().filter(|zone| zone.2 > 0) {
                runs.push(Run { lba, first_band, first_index, tracks, track_sectors });
                first_band += count;
                lba += u64::from(count) * u64::from(tracks) * u64::from(track_sectors);
            }
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

    /// The first piece of a request; `None` beyond the capacity.
    pub(crate) fn piece(&self, lba: u64, sectors: u64) -> Option<Piece> {
        let left = self.capacity.checked_sub(lba).filter(|&left| left > 0)?;
        let run = self.runs.get(self.runs.partition_point(|run| run.lba <= lba).wrapping_sub(1))?;
        let (inside, size) = (lba - run.lba, u64::from(run.track_sectors));
        let count = (size - inside % size).min(sectors).min(left);
        let track = (inside / size) as u32;
        let band = run.first_band + track / run.tracks;
        let logical_track = band * self.logical_tracks + run.first_index + track % run.tracks;
        Some(Piece { logical_track, sector: (inside % size) as u32, sectors: count as u32 })
    }

    /// The pieces of a request.
    pub(crate) fn pieces(&self, lba: u64, sectors: u64) -> Vec<Piece> {
        let (mut pieces, mut done) = (Vec::new(), 0);
        while done < sectors {
            let Some(piece) = self.piece(lba + done, sectors - done) else { break };
            pieces.push(piece);
            done += u64::from(piece.sectors);
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Zone;

    #[test]
    fn logical_sectors_take_some_tracks_of_every_band_then_a_few_more_in_turn() {
        let zones = [Zone { tracks: 17, sectors: 2 }, Zone { tracks: 3, sectors: 9 }, Zone { tracks: 8, sectors: 1 }];
        let geometry = Geometry::new(&zones, 2, 0, 0).unwrap();
        let tracks = |first_tracks, spread_tracks| {
            let shape = TrackParameters { band_tracks: 8, band_logical_tracks: 3, first_tracks, spread_tracks, ..TrackParameters::default() };
            let bands = Bands::new(&geometry, &shape).unwrap();
            bands.pieces(0, bands.capacity()).into_iter().map(|piece| piece.logical_track).collect::<Vec<u32>>()
        };
        assert_eq!(tracks(2, 2), [0, 1, 3, 4, 6, 7, 2, 5, 8]);
        assert_eq!(tracks(1, 0), [0, 3, 6, 1, 2, 4, 5, 7, 8]);
        assert_eq!(tracks(1, 1), [0, 3, 6, 1, 4, 7, 2, 5, 8]);
        assert_eq!(tracks(0, 1), [0, 1, 2, 3, 4, 5, 6, 7, 8], "there are three alternate tracks in a band of eight");
    }
}
