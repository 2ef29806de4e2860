//! Which place in its band each logical track has, and back: two bytes for each, all of a band side by side. Every update of a full disk looks at several
//! tracks of one band, and most of its time is waiting for these.

/// Of an entry: no place, and the mark that no checkpoint has it.
const NOWHERE: u16 = 0x7fff;
const DIRTY: u16 = 0x8000;
/// No logical track.
const NOBODY: u16 = u16::MAX;

/// Tracks that a band may have.
pub(crate) const MOST_BAND_TRACKS: u32 = NOWHERE as u32 - 1;

/// The map of all bands. Of each band the entries of its logical tracks, then those of its places.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    rows: Vec<u16>,
    logical_tracks: usize,
    band_tracks: usize,
}

impl Places {
    /// Bands of so many logical tracks on so many places, nothing placed.
    pub(crate) fn new(bands: usize, logical_tracks: usize, band_tracks: usize) -> Self {
        let row = || core::iter::repeat_n(NOWHERE, logical_tracks).chain(core::iter::repeat_n(NOBODY, band_tracks));
        Self { rows: (0..bands).flat_map(|_| row()).collect(), logical_tracks, band_tracks }
    }

    /// Logical tracks of all bands.
    pub(crate) fn count(&self) -> usize {
        self.rows.len() / (self.logical_tracks + self.band_tracks) * self.logical_tracks
    }

    /// Places of all bands.
    pub(crate) fn places(&self) -> usize {
        self.rows.len() - self.count()
    }

    fn entry(&self, logical_track: u32) -> usize {
        let logical_track = logical_track as usize;
        logical_track + logical_track / self.logical_tracks * self.band_tracks
    }

    fn slot(&self, band: usize, place: usize) -> usize {
        band * (self.logical_tracks + self.band_tracks) + self.logical_tracks + place
    }

    /// A logical track's place in its band.
    pub(crate) fn of(&self, logical_track: u32) -> Option<usize> {
        let place = self.rows.get(self.entry(logical_track))? & !DIRTY;
        (place != NOWHERE).then_some(usize::from(place))
    }

    /// The logical track at a place of a band.
    pub(crate) fn at(&self, band: usize, place: usize) -> Option<u32> {
        let index = *self.rows.get(self.slot(band, place)).filter(|_| place < self.band_tracks)?;
        (index != NOBODY).then(|| (band * self.logical_tracks) as u32 + u32::from(index))
    }

    /// Gives a logical track another place in its band, or none, and marks it dirty; its old place, and whether it was clean.
    pub(crate) fn assign(&mut self, logical_track: u32, to: Option<usize>) -> (Option<usize>, bool) {
        let (at, band) = (self.entry(logical_track), logical_track as usize / self.logical_tracks);
        let Some(entry) = self.rows.get_mut(at) else { return (None, false) };
        let (old, was_clean) = (*entry & !DIRTY, *entry & DIRTY == 0);
        *entry = DIRTY | to.map_or(NOWHERE, |to| to as u16);
        let old = (old != NOWHERE).then_some(usize::from(old));
        let index = (logical_track as usize % self.logical_tracks) as u16;
        for (place, holds) in [(old, NOBODY), (to, index)] {
            if let Some(slot) = place.map(|place| self.slot(band, place)).and_then(|slot| self.rows.get_mut(slot)) {
                *slot = holds;
            }
        }
        (old, was_clean)
    }

    pub(crate) fn is_dirty(&self, logical_track: u32) -> bool {
        self.rows.get(self.entry(logical_track)).is_some_and(|entry| entry & DIRTY != 0)
    }

    /// Marks an entry dirty or clean; whether it was dirty.
    pub(crate) fn mark(&mut self, logical_track: u32, dirty: bool) -> bool {
        let at = self.entry(logical_track);
        let Some(entry) = self.rows.get_mut(at) else { return false };
        let was_dirty = *entry & DIRTY != 0;
        *entry = *entry & !DIRTY | if dirty { DIRTY } else { 0 };
        was_dirty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_tell_the_same() {
        let mut places = Places::new(3, 5, 8);
        assert_eq!((places.count(), places.places()), (15, 24));
        assert_eq!(places.assign(7, Some(6)), (None, true));
        assert_eq!(places.assign(7, Some(1)), (Some(6), false));
        assert_eq!((places.of(7), places.at(1, 1), places.at(1, 6), places.at(2, 1)), (Some(1), Some(7), None, None));
        assert!(places.is_dirty(7) && !places.is_dirty(6));
        assert!(places.mark(7, false) && !places.mark(7, false));
        assert_eq!(places.assign(7, None), (Some(1), true));
        assert_eq!((places.of(7), places.at(1, 1), places.at(1, 8), places.of(15)), (None, None, None, None));
    }
}
