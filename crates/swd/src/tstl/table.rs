//! The track table in memory, both directions (chapter 5.2.2), with each band's space, and what of it is not yet safe: tracks whose older copy a power
//! cut may bring back are *held*, and entries that no checkpoint has are *dirty*.

use core::ops::Range;

use super::bands::Bands;
use super::bits::Bits;
use super::places::Places;
use super::space::Space;

/// No track.
pub(crate) const NONE: u32 = u32::MAX;

/// A band as its scheme sees it.
///
/// It begins at a cache line, of which it needs one for what every update asks.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Band {
    /// Tracks that hold live data.
    pub(crate) space: Space,
    /// Those, and the ones whose data a power cut would bring back to life.
    pub(crate) held: Space,
    /// Smart's allocation pool from the bookmark on.
    pub(crate) pool: Range<usize>,
    /// Tracks that the log knows as pools since the last checkpoint.
    pub(crate) declared: Bits,
    /// Whether no step of garbage collection would gain anything.
    pub(crate) is_tidy: bool,
}

impl Band {
    /// Whether all of the tracks are declared.
    pub(crate) fn are_declared(&self, tracks: &Range<usize>) -> bool {
        self.declared.next(tracks.start, false) >= tracks.end
    }

    /// Whether any of the tracks is declared.
    pub(crate) fn is_any_declared(&self, tracks: &Range<usize>) -> bool {
        self.declared.next(tracks.start, true) < tracks.end
    }
}

/// Logical to physical tracks and back.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) bands: Vec<Band>,
    places: Places,
    dirty: Vec<u32>,
    released: Vec<(usize, usize)>,
    /// Bands with declared pools, some more than once.
    declaring: Vec<usize>,
    holds: bool,
    used_tracks: u64,
}

impl Table {
    /// `holds` is false where a power cut may lose what was flushed: then nothing is held.
    pub(crate) fn new(bands: &Bands, head_tracks: u32, holds: bool) -> Self {
        let space = Space::new(bands.band_tracks(), head_tracks);
        let band = Band { held: space.clone(), space, pool: 0..0, declared: Bits::new(bands.band_tracks() as usize), is_tidy: false };
        let band_tracks = bands.band_tracks() as usize;
        Self {
            bands: vec![band; bands.count()],
            places: Places::new(bands.count(), bands.logical_tracks() / bands.count().max(1), band_tracks),
            dirty: Vec::new(),
            released: Vec::new(),
            declaring: Vec::new(),
            holds,
            used_tracks: 0,
        }
    }

    /// The same tracks where a power cut may lose what was flushed.
    pub(crate) fn without_holds(&self) -> Self {
        Self { holds: false, released: Vec::new(), ..self.clone() }
    }

    /// Whether no track is used, nor held for a power cut.
    pub(crate) fn is_empty(&self) -> bool {
        self.used_tracks == 0 && self.released.is_empty()
    }

    /// Used and free tracks of the disk's bands.
    pub(crate) fn usage(&self) -> (u64, u64) {
        (self.used_tracks, self.places.places() as u64 - self.used_tracks)
    }

    /// Physical tracks by logical track.
    pub(crate) fn entries(&self, bands: &Bands) -> Vec<u32> {
        (0..self.places.count() as u32).map(|logical_track| self.track(bands, logical_track)).collect()
    }

    /// The physical track of a logical one.
    fn track(&self, bands: &Bands, logical_track: u32) -> u32 {
        self.places.of(logical_track).map_or(NONE, |place| bands.first_track(bands.band_of(logical_track)) + place as u32)
    }

    /// A logical track's place in its band.
    pub(crate) fn place(&self, logical_track: u32) -> Option<usize> {
        self.places.of(logical_track)
    }

    /// The logical track at a place of a band.
    pub(crate) fn at(&self, band: usize, place: usize) -> Option<u32> {
        self.places.at(band, place)
    }

    pub(crate) fn is_dirty(&self, logical_track: u32) -> bool {
        self.places.is_dirty(logical_track)
    }

    /// Gives a logical track of a band another place, or none. The old place is held until [`Table::release`].
    pub(crate) fn assign(&mut self, logical_track: u32, band: usize, to: Option<usize>) {
        let (old, was_clean) = self.places.assign(logical_track, to);
        let Some(state) = self.bands.get_mut(band) else { return };
        state.is_tidy = false;
        if let Some(old) = old {
            state.space.set(old, false);
            self.used_tracks -= 1;
            if self.holds {
                self.released.push((band, old));
            }
        }
        if let Some(to) = to {
            state.space.set(to, true);
            self.used_tracks += 1;
            if self.holds {
                state.held.set(to, true);
            }
        }
        if was_clean {
            self.dirty.push(logical_track);
        }
    }

    /// No step of garbage collection gains anything in this band as it is.
    pub(crate) fn tidy(&mut self, band: usize) {
        if let Some(state) = self.bands.get_mut(band) {
            state.is_tidy = true;
        }
    }

    /// All writes so far are durable: old copies need not be held any more.
    pub(crate) fn release(&mut self) {
        for (band, place) in self.released.drain(..) {
            if let Some(band) = self.bands.get_mut(band) {
                band.held.set(place, band.space.is_used(place));
            }
        }
    }

    /// The entries that no checkpoint has.
    pub(crate) fn changes(&self, bands: &Bands) -> Vec<(u32, u32)> {
        self.dirty.iter().map(|&logical_track| (logical_track, self.track(bands, logical_track))).collect()
    }

    /// No checkpoint has the entries of live tracks.
    pub(crate) fn touch_all(&mut self) {
        for logical_track in 0..self.places.count() as u32 {
            if self.places.of(logical_track).is_some() && !self.places.mark(logical_track, true) {
                self.dirty.push(logical_track);
            }
        }
    }

    /// A checkpoint has all entries; pools begin anew.
    pub(crate) fn checkpointed(&mut self) {
        self.release();
        for logical_track in self.dirty.drain(..) {
            self.places.mark(logical_track, false);
        }
        for band in self.declaring.drain(..) {
            if let Some(band) = self.bands.get_mut(band) {
                band.declared.clear();
            }
        }
    }

    /// The log knows these tracks of a band as a pool.
    pub(crate) fn declare(&mut self, band: usize, pool: Range<usize>) {
        if let Some(state) = self.bands.get_mut(band) {
            pool.for_each(|track| state.declared.set(track, true));
            self.declaring.push(band);
        }
    }
}
