//! The tracks of a shingled disk after a workload, as run lengths: what is live, what is hot, what is free and what is free but cannot be written.

use serde::Serialize;
use stripewise_blocks::{BlockRequest, Error as SourceError};
use stripewise_swd::{Geometry, Medium, Scheme, SwdError};

use crate::error::Error;
use crate::medium::TimedMedium;
use crate::settings::Settings;
use crate::timed::TimedScheme;

/// Logical sectors whose updates are counted together; also how finely a scheme that scatters sectors is looked at.
const GRAIN_SECTORS: u64 = 64;
/// How often whoever watches is asked whether to go on, in requests.
const WATCH_EVERY: u64 = 1 << 14;

/// What a track is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrackState {
    /// Holds nothing, and can be written.
    Free,
    /// Holds nothing, but a write of it would destroy a live track behind it.
    Gap,
    /// Holds live sectors.
    Used,
    /// Used, and updated as often as one of the fewest that got half of all updates.
    Hot,
}

/// So many tracks of one state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TrackRun(pub TrackState, pub u32);

/// The tracks of a disk in the order of shingling; simulated.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TrackMap {
    /// The scheme's name.
    pub scheme: String,
    /// Logical blocks of 512 bytes of the scheme.
    pub capacity_blocks: u64,
    /// Of these, those that requests were for.
    pub used_blocks: u64,
    /// Writes that were done.
    pub writes: u64,
    /// Tracks that the scheme works on.
    pub tracks: u32,
    /// Their states.
    pub runs: Vec<TrackRun>,
}

/// Does the writes of a source one after the other, and maps the tracks. Reads change nothing and are left out.
///
/// # Errors
/// As [`crate::run`].
pub fn track_map(
    settings: &Settings,
    requests: impl Iterator<Item = Result<BlockRequest, SourceError>>,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<TrackMap, Error> {
    let scheme = TimedScheme::new(settings)?;
    let used_sectors = scheme.used_sectors(settings)?;
    match scheme {
        TimedScheme::InPlace(scheme) => mapped(settings, *scheme, used_sectors, u64::MAX, requests, watch),
        TimedScheme::Track(scheme) => mapped(settings, *scheme, used_sectors, u64::MAX, requests, watch),
        TimedScheme::Indirection(scheme) => mapped(settings, *scheme, used_sectors, GRAIN_SECTORS, requests, watch),
    }
}

/// `together` is how many logical sectors on one track can be relied on to lie together.
fn mapped<S: Scheme<Medium = TimedMedium>>(
    settings: &Settings,
    mut scheme: S,
    used_sectors: u64,
    together: u64,
    requests: impl Iterator<Item = Result<BlockRequest, SourceError>>,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<TrackMap, Error> {
    let blocks_per_sector = u64::from(settings.disk.block_bytes) / stripewise_blocks::BLOCK_BYTES;
    let mut updates = vec![0u64; used_sectors.div_ceil(GRAIN_SECTORS) as usize];
    let (mut writes, mut number) = (0u64, 0u64);
    for request in requests {
        let request = request.map_err(|error| Error::Request(error.to_string()))?;
        number += 1;
        if number.is_multiple_of(WATCH_EVERY) && !watch(number) {
            return Err(Error::Interrupted);
        }
        if !request.write {
            continue;
        }
        let (first, end) = (request.lba / blocks_per_sector, request.end().div_ceil(blocks_per_sector));
        let done = scheme.write(first, end - first, &[]);
        done.map_err(|error: SwdError| Error::Request(format!("request {}: {error}", number - 1)))?;
        writes += 1;
        for grain in first / GRAIN_SECTORS..=(end - 1) / GRAIN_SECTORS {
            if let Some(count) = updates.get_mut(grain as usize) {
                *count += 1;
            }
        }
    }
    let geometry = scheme.medium().geometry();
    let heat = heat(&scheme, geometry, &updates, used_sectors, together);
    Ok(TrackMap {
        scheme: settings.scheme.name.clone(),
        capacity_blocks: scheme.capacity_sectors() * blocks_per_sector,
        used_blocks: used_sectors * blocks_per_sector,
        writes,
        tracks: geometry.tracks(),
        runs: runs(&states(&heat, geometry.head_tracks())),
    })
}

/// Updates of what lies on each track now; `None` for tracks that hold nothing.
fn heat<S: Scheme>(scheme: &S, geometry: &Geometry, updates: &[u64], used_sectors: u64, together: u64) -> Vec<Option<u64>> {
    let mut heat = vec![None; geometry.tracks() as usize];
    let mut lba = 0;
    while lba < used_sectors {
        let next_grain = (lba / GRAIN_SECTORS + 1) * GRAIN_SECTORS;
        let Some(at) = scheme.locate(lba) else {
            lba = next_grain;
            continue;
        };
        let on_track = u64::from(geometry.track_sectors(at.track).saturating_sub(at.sector)).max(1);
        let end = used_sectors.min(lba + if together == u64::MAX { on_track } else { on_track.min(next_grain - lba) });
        let grains = lba.div_ceil(GRAIN_SECTORS)..end.div_ceil(GRAIN_SECTORS);
        let counted: u64 = grains.filter_map(|grain| updates.get(grain as usize)).sum();
        if let Some(track) = heat.get_mut(at.track as usize) {
            *track = Some(track.unwrap_or(0) + counted);
        }
        lba = end;
    }
    heat
}

fn states(heat: &[Option<u64>], head_tracks: u32) -> Vec<TrackState> {
    let mut hottest: Vec<u64> = heat.iter().filter_map(|track| *track).filter(|&updates| updates > 0).collect();
    hottest.sort_unstable_by(|a, b| b.cmp(a));
    let half = hottest.iter().sum::<u64>().div_ceil(2);
    let mut sum = 0;
    let fewest = hottest.iter().take_while(|&&updates| {
        let wanted = sum < half;
        sum += updates;
        wanted
    });
    let bound = fewest.last().copied().unwrap_or(u64::MAX);
    // How many tracks a live one lies behind; beyond the head's reach it is safe.
    let mut distance = u32::MAX;
    let mut states: Vec<TrackState> = heat
        .iter()
        .rev()
        .map(|track| match track {
            Some(updates) => {
                distance = 0;
                if *updates >= bound { TrackState::Hot } else { TrackState::Used }
            }
            None => {
                distance = distance.saturating_add(1);
                if distance < head_tracks { TrackState::Gap } else { TrackState::Free }
            }
        })
        .collect();
    states.reverse();
    states
}

fn runs(states: &[TrackState]) -> Vec<TrackRun> {
    states.chunk_by(|a, b| a == b).filter_map(|run| Some(TrackRun(*run.first()?, run.len() as u32))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use TrackState::{Free, Gap, Hot, Used};

    #[test]
    fn a_free_track_before_a_live_one_is_a_gap_as_far_as_the_head_reaches() {
        let heat = [None, None, None, Some(0), None, Some(0), None];
        assert_eq!(states(&heat, 2), [Free, Free, Gap, Used, Gap, Used, Free]);
        assert_eq!(states(&heat, 3), [Free, Gap, Gap, Used, Gap, Used, Free]);
        assert_eq!(states(&heat, 1), [Free, Free, Free, Used, Free, Used, Free]);
    }

    #[test]
    fn the_fewest_tracks_with_half_of_the_updates_are_hot() {
        assert_eq!(states(&[Some(1), Some(4), Some(4), Some(1)], 2), [Used, Hot, Hot, Used]);
        assert_eq!(states(&[Some(3), Some(3), Some(3), Some(0)], 2), [Hot, Hot, Hot, Used]);
    }

    #[test]
    fn equal_neighbours_make_one_run() {
        assert_eq!(runs(&[Free, Free, Gap, Used, Used]), [TrackRun(Free, 2), TrackRun(Gap, 1), TrackRun(Used, 2)]);
    }
}
