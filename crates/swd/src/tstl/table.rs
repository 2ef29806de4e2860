//! The track table in memory, both directions (chapter 5.2.2), with each band's space, and what of it is not yet safe: tracks whose older copy a power
//! cut may bring back are *held*, and entries that no checkpoint has are *dirty*.

use core::ops::Range;

use super::bands::Bands;
use super::bits::Bits;
use super::space::Space;

/// No track.
pub(crate) const NONE: u32 = u32::MAX;

/// A band as its scheme sees it.
#[derive(Clone, Debug)]
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
    physical: Vec<u32>,
    /// By band and track of the band.
    logical: Vec<u32>,
    is_dirty: Vec<bool>,
    dirty: Vec<u32>,
    released: Vec<(usize, usize)>,
    /// Bands with declared pools, some more than once.
    declaring: Vec<usize>,
    band_tracks: usize,
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
            physical: vec![NONE; bands.logical_tracks()],
            logical: vec![NONE; bands.count() * band_tracks],
            is_dirty: vec![false; bands.logical_tracks()],
            dirty: Vec::new(),
            released: Vec::new(),
            declaring: Vec::new(),
            band_tracks,
            holds,
            used_tracks: 0,
        }
    }

    /// Whether no track is used, nor held for a power cut.
    pub(crate) fn is_empty(&self) -> bool {
        self.used_tracks == 0 && self.released.is_empty()
    }

    /// Used and free tracks of the disk's bands.
    pub(crate) fn usage(&self) -> (u64, u64) {
        (self.used_tracks, self.logical.len() as u64 - self.used_tracks)
    }

    /// Physical tracks by logical track.
    pub(crate) fn entries(&self) -> &[u32] {
        &self.physical
    }

    /// A logical track's place in its band.
    pub(crate) fn place(&self, logical_track: u32, first_track: u32) -> Option<usize> {
        let track = self.physical.get(logical_track as usize).copied().filter(|&track| track != NONE)?;
        Some(track.wrapping_sub(first_track) as usize)
    }

    /// The logical track at a place of a band.
    pub(crate) fn at(&self, band: usize, place: usize) -> Option<u32> {
        self.logical.get(band * self.band_tracks + place).copied().filter(|&logical_track| logical_track != NONE)
    }

    pub(crate) fn is_dirty(&self, logical_track: u32) -> bool {
        self.is_dirty.get(logical_track as usize).copied().unwrap_or(false)
    }

    /// Gives a logical track another place, or none. The old place is held until [`Table::release`].
    pub(crate) fn assign(&mut self, logical_track: u32, band: usize, first_track: u32, to: Option<usize>) {
        let old = self.place(logical_track, first_track);
        let Some(state) = self.bands.get_mut(band) else { return };
        state.is_tidy = false;
        if let Some(old) = old {
            state.space.set(old, false);
            if self.holds {
                self.released.push((band, old));
            }
            self.used_tracks -= 1;
            if let Some(slot) = self.logical.get_mut(band * self.band_tracks + old) {
                *slot = NONE;
            }
        }
        if let Some(to) = to {
            state.space.set(to, true);
            if self.holds {
                state.held.set(to, true);
            }
            self.used_tracks += 1;
            if let Some(slot) = self.logical.get_mut(band * self.band_tracks + to) {
                *slot = logical_track;
            }
        }
        if let Some(slot) = self.physical.get_mut(logical_track as usize) {
            *slot = to.map_or(NONE, |to| first_track + to as u32);
        }
        if let Some(is_dirty) = self.is_dirty.get_mut(logical_track as usize).filter(|is_dirty| !**is_dirty) {
            *is_dirty = true;
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
    pub(crate) fn changes(&self) -> Vec<(u32, u32)> {
        let entry = |&logical_track: &u32| Some((logical_track, *self.physical.get(logical_track as usize)?));
        self.dirty.iter().filter_map(entry).collect()
    }

    /// No checkpoint has the entries of live tracks.
    pub(crate) fn touch_all(&mut self) {
        for (logical_track, is_dirty) in (0u32..).zip(&mut self.is_dirty) {
            if !*is_dirty && self.physical.get(logical_track as usize).is_some_and(|&track| track != NONE) {
                *is_dirty = true;
                self.dirty.push(logical_track);
            }
        }
    }

    /// A checkpoint has all entries; pools begin anew.
    pub(crate) fn checkpointed(&mut self) {
        self.release();
        for logical_track in self.dirty.drain(..) {
            if let Some(is_dirty) = self.is_dirty.get_mut(logical_track as usize) {
                *is_dirty = false;
            }
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
