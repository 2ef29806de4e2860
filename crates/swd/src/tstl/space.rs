//! Which tracks of a band are used, and what follows from that: space elements, fragmentation, where may be written (chapter 5.2.3).
//!
//! For W > 2 a free element's last W-1 tracks are its gap, where the seed has one track. The last W-1 tracks of a band are never used: they are the
//! gap to the next band.

use core::ops::Range;

/// The tracks of a band, numbered from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Space {
    used: Vec<bool>,
    head_tracks: usize,
}

impl Space {
    /// A free band of `tracks` under a head of `head_tracks`.
    #[must_use]
    pub fn new(tracks: u32, head_tracks: u32) -> Self {
        Self { used: vec![false; tracks as usize], head_tracks: head_tracks.max(1) as usize }
    }

    /// Tracks of the band.
    #[must_use]
    pub fn tracks(&self) -> usize {
        self.used.len()
    }

    /// W, tracks.
    #[must_use]
    pub fn head_tracks(&self) -> usize {
        self.head_tracks
    }

    /// Whether a track is used; nothing beyond the band is.
    #[must_use]
    pub fn is_used(&self, track: usize) -> bool {
        self.used.get(track).copied().unwrap_or(false)
    }

    /// Marks a track used or free.
    pub fn set(&mut self, track: usize, used: bool) {
        if let Some(slot) = self.used.get_mut(track) {
            *slot = used;
        }
    }

    /// Number of used tracks.
    #[must_use]
    pub fn used_tracks(&self) -> usize {
        self.used.iter().filter(|&&used| used).count()
    }

    /// Maximal runs of used tracks or of free ones, from left to right.
    pub fn elements(&self, used: bool) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut at = 0;
        core::iter::from_fn(move || {
            let start = at + self.used.get(at..)?.iter().position(|&state| state == used)?;
            let rest = self.used.get(start..)?;
            at = start + rest.iter().position(|&state| state != used).unwrap_or(rest.len());
            Some(start..at)
        })
    }

    /// R: the share of the free tracks that can be written, `(F - E) / F` for W = 2 (seed 002, equation 5.1); 0 without free tracks.
    #[must_use]
    pub fn fragmentation(&self) -> f64 {
        let (mut free, mut usable) = (0, 0);
        for element in self.elements(false) {
            free += element.len();
            usable += (element.len() + 1).saturating_sub(self.head_tracks);
        }
        if free == 0 { 0.0 } else { usable as f64 / free as f64 }
    }

    /// Whether a write of the track destroys only free tracks of this band.
    #[must_use]
    pub fn spares_others(&self, track: usize) -> bool {
        self.used.get(track + 1..track + self.head_tracks).is_some_and(|after| !after.contains(&true))
    }

    /// Whether a free track can be written.
    #[must_use]
    pub fn is_usable(&self, track: usize) -> bool {
        !self.is_used(track) && self.spares_others(track)
    }

    /// Whether the free tracks can always be brought together by moving single tracks into usable ones: there is a free element of W tracks with used
    /// tracks after it, or one at the band's end that can give W-s tracks and keep W, s being the longest of the others. An element of the first kind
    /// moves right through the used tracks after it until it meets the next free ones; one of the second makes the longest other one of the first kind.
    /// A track more that is free never hurts.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        let (mut inner, mut last) = (1, 0);
        for element in self.elements(false) {
            if element.end == self.tracks() {
                last = element.len();
            } else {
                inner = inner.max(element.len());
            }
        }
        inner >= self.head_tracks || last + inner >= 2 * self.head_tracks
    }

    /// The same band after tracks became free and others used.
    #[must_use]
    pub fn after(&self, freed: Range<usize>, taken: Range<usize>) -> Self {
        let mut after = self.clone();
        freed.for_each(|track| after.set(track, false));
        taken.for_each(|track| after.set(track, true));
        after
    }
}
