//! What a power cut leaves: the newest checkpoint, and the tracks written since, known by their back pointers (chapter 5.2.6).

use super::bands::Bands;
use super::spare::BackPointer;
use super::table::NONE;
use crate::error::{MediumError, SwdError};
use crate::log::{Log, half_of};
use crate::medium::{Extent, Medium};
use stripewise_checksum::crc32c;

/// Which tracks recovery looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scan {
    /// The spare areas of all tracks.
    All,
    /// Only those of the pools that Smart declared since the checkpoint.
    Pools,
}

/// The state before the power cut: the log, physical tracks by logical track, and the highest timestamp that was ever given.
pub(crate) struct State {
    pub(crate) log: Log,
    pub(crate) physical: Vec<u32>,
    pub(crate) clock: u64,
}

pub(crate) fn recover<M: Medium>(medium: &mut M, bands: &Bands, disk: u32, scan: Scan) -> Result<State, SwdError> {
    let (log, checkpoint) = Log::recover(medium, disk, half_of(medium))?.ok_or(SwdError::NoTable)?;
    let mut physical = vec![NONE; bands.logical_tracks()];
    for (logical_track, track) in checkpoint.entries {
        *physical.get_mut(logical_track as usize).ok_or(SwdError::Table { logical_track })? = track;
    }
    let tracks: Vec<u32> = match scan {
        Scan::All => (0..bands.count()).flat_map(|band| bands.first_track(band)..bands.first_track(band) + bands.band_tracks()).collect(),
        Scan::Pools => checkpoint.pools.iter().flat_map(|&(first, tracks)| first..first.saturating_add(tracks)).collect(),
    };
    let (mut newer, mut clock) = (Vec::new(), checkpoint.timestamp);
    for track in tracks {
        let Some(pointer) = medium.read_spare(track)?.and_then(|spare| BackPointer::decode(&spare)).filter(|pointer| pointer.disk == disk) else {
            continue;
        };
        clock = clock.max(pointer.timestamp);
        if pointer.timestamp > checkpoint.timestamp {
            newer.push((pointer, track));
        }
    }
    // Oldest first, so that the newest whole copy of a logical track has the last word.
    newer.sort_by_key(|(pointer, _)| pointer.timestamp);
    for (pointer, track) in newer {
        if is_whole(medium, bands, &pointer, track)? {
            *physical.get_mut(pointer.logical_track as usize).ok_or(SwdError::Table { logical_track: pointer.logical_track })? = track;
        }
    }
    Ok(State { log, physical, clock })
}

/// Whether the track's bytes are those that were written with the back pointer.
fn is_whole<M: Medium>(medium: &mut M, bands: &Bands, pointer: &BackPointer, track: u32) -> Result<bool, SwdError> {
    let sectors = bands.track_sectors(bands.band_of(pointer.logical_track));
    let mut bytes = vec![0; medium.geometry().bytes(u64::from(sectors)) as usize];
    match medium.read(Extent { track, sector: 0, sectors }, &mut bytes) {
        Ok(()) => Ok(crc32c(&bytes) == pointer.checksum),
        Err(MediumError::Destroyed { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
