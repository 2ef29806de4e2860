//! Which tracks of a band are used, and what follows from that: space elements, fragmentation, where may be written (chapter 5.2.3).
//!
//! For W > 2 a free element's last W-1 tracks are its gap, where the seed has one track. The last W-1 tracks of a band are never used: they are the
//! gap to the next band.
//!
//! Every update asks for these, so what sums over the band is kept as tracks change, and a what-if looks at the elements it touches only.

use core::ops::Range;

use super::bits::Bits;

/// The tracks of a band, numbered from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Space {
    used: Bits,
    head_tracks: u32,
    used_tracks: u32,
    /// Free tracks that can be written, the gaps not counted.
    usable_tracks: u32,
    /// Free elements of W tracks or more that have used tracks after them.
    roomy_elements: u32,
}

impl Space {
    /// A free band of `tracks` under a head of `head_tracks`.
    #[must_use]
    pub fn new(tracks: u32, head_tracks: u32) -> Self {
        let mut space =
            Self { used: Bits::new(tracks as usize), head_tracks: head_tracks.max(1), used_tracks: 0, usable_tracks: 0, roomy_elements: 0 };
        space.usable_tracks = space.usable(tracks as usize) as u32;
        space
    }

    /// Tracks of the band.
    #[must_use]
    pub fn tracks(&self) -> usize {
        self.used.len()
    }

    /// W, tracks.
    #[must_use]
    pub fn head_tracks(&self) -> usize {
        self.head_tracks as usize
    }

    /// Whether a track is used; nothing beyond the band is.
    #[must_use]
    pub fn is_used(&self, track: usize) -> bool {
        self.used.get(track)
    }

    /// Marks a track used or free.
    pub fn set(&mut self, track: usize, used: bool) {
        if track >= self.tracks() || self.is_used(track) == used {
            return;
        }
        let (start, end) = (self.used.after_last(track, true), self.used.next(track + 1, true));
        self.used.set(track, used);
        let count = |element: Range<usize>| (self.usable(element.len()) as u32, u32::from(self.is_roomy(&element)));
        let (whole, left, right) = (count(start..end), count(start..track), count(track + 1..end));
        let parts = (left.0 + right.0, left.1 + right.1);
        let (before, after) = if used { (whole, parts) } else { (parts, whole) };
        self.used_tracks = if used { self.used_tracks + 1 } else { self.used_tracks - 1 };
        self.usable_tracks = self.usable_tracks + after.0 - before.0;
        self.roomy_elements = self.roomy_elements + after.1 - before.1;
    }

    /// Tracks of a free element of that length that can be written.
    fn usable(&self, tracks: usize) -> usize {
        (tracks + 1).saturating_sub(self.head_tracks())
    }

    /// Whether a free element has W tracks, and used ones after them.
    fn is_roomy(&self, element: &Range<usize>) -> bool {
        element.len() >= self.head_tracks() && element.end < self.tracks()
    }

    /// Free tracks that can be written, the gaps not counted.
    pub(super) fn usable_tracks(&self) -> usize {
        self.usable_tracks as usize
    }

    /// Number of used tracks.
    #[must_use]
    pub fn used_tracks(&self) -> usize {
        self.used_tracks as usize
    }

    /// The first element of used tracks, or of free ones, that begins at a track or after it; of one that the track is in, the rest.
    pub(super) fn next_element(&self, used: bool, from: usize) -> Option<Range<usize>> {
        let start = self.used.next(from, used);
        (start < self.tracks()).then(|| start..self.used.next(start, !used))
    }

    /// The last element that ends at a track or before it; of one that goes on after it, what is before.
    pub(super) fn previous_element(&self, used: bool, before: usize) -> Option<Range<usize>> {
        let end = self.used.after_last(before, used);
        (end > 0).then(|| self.used.after_last(end, !used)..end)
    }

    /// Maximal runs of used tracks or of free ones, from left to right.
    pub fn elements(&self, used: bool) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut at = 0;
        core::iter::from_fn(move || {
            let element = self.next_element(used, at)?;
            at = element.end;
            Some(element)
        })
    }

    /// The free elements of at least so many tracks, from left to right.
    pub(super) fn free_elements(&self, tracks: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let first = self.used.clear_run(0, tracks.max(1));
        core::iter::successors(first, move |element| self.used.clear_run(element.end, tracks.max(1)))
    }

    /// The leftmost of the longest free elements.
    pub(super) fn longest_free_element(&self) -> Option<Range<usize>> {
        self.used.longest_clear_run(self.tracks())
    }

    /// The leftmost of the longest free elements that have used tracks after them.
    pub(super) fn longest_inner_element(&self) -> Option<Range<usize>> {
        self.used.longest_clear_run(self.used.after_last(self.tracks(), true))
    }

    /// The end of the free element that a track is in.
    pub(super) fn free_until(&self, track: usize) -> usize {
        self.used.next(track, true)
    }

    /// R: the share of the free tracks that can be written, `(F - E) / F` for W = 2 (thesis, equation 5.1); 0 without free tracks.
    #[must_use]
    pub fn fragmentation(&self) -> f64 {
        let free = self.tracks() - self.used_tracks();
        if free == 0 { 0.0 } else { f64::from(self.usable_tracks) / free as f64 }
    }

    /// Whether a write of the track destroys only free tracks of this band.
    #[must_use]
    pub fn spares_others(&self, track: usize) -> bool {
        let end = track + self.head_tracks();
        end <= self.tracks() && self.used.next(track + 1, true) >= end
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
        self.roomy_elements > 0 || self.is_steady_by_last(self.last_free_tracks(), || self.longest_inner_element().map_or(0, |element| element.len()))
    }

    /// Whether the free element at the band's end makes it steady where no other has W tracks; `inner` is the longest of those.
    fn is_steady_by_last(&self, last: usize, inner: impl Fn() -> usize) -> bool {
        let width = self.head_tracks();
        width == 1 || last + 1 >= 2 * width || (last > width && last + inner() >= 2 * width)
    }

    fn last_free_tracks(&self) -> usize {
        self.tracks() - self.used.after_last(self.tracks(), true)
    }

    /// Whether the band is steady when free tracks in a row become used.
    pub(super) fn is_steady_with(&self, taken: &Range<usize>) -> bool {
        let element = self.used.after_last(taken.start, true)..self.used.next(taken.start, true);
        let (left, right) = (element.start..taken.start, taken.end..element.end);
        let is_other_roomy = self.roomy_elements > u32::from(self.is_roomy(&element));
        let last = if element.end == self.tracks() { right.len() } else { self.last_free_tracks() };
        is_other_roomy
            || left.len() >= self.head_tracks()
            || self.is_roomy(&right)
            || self.is_steady_by_last(last, || self.after(0..0, taken.clone()).longest_inner_element().map_or(0, |element| element.len()))
    }

    /// Whether moving a used element to the start of a free one makes more tracks usable.
    pub(super) fn gains(&self, victim: &Range<usize>, place: &Range<usize>) -> bool {
        let left = victim.start - self.used.after_last(victim.start, true);
        let right = self.used.next(victim.end, true) - victim.end;
        let (moved, room) = (victim.len(), place.len());
        let (before, after) = if place.end == victim.start {
            (self.usable(left) + self.usable(right), self.usable(left + right))
        } else if place.start == victim.end {
            (self.usable(left) + self.usable(right), self.usable(left + moved) + self.usable(right.saturating_sub(moved)))
        } else {
            let before = self.usable(left) + self.usable(right) + self.usable(room);
            (before, self.usable(left + moved + right) + self.usable(room.saturating_sub(moved)))
        };
        after > before
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
