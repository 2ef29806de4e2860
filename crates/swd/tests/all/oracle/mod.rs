//! The space of a band and the plans on it as they read in the text, track by track and with a copy of the band for each what-if: what the quick ones are
//! compared with.
#![allow(dead_code)]

use core::cmp::Reverse;
use core::ops::Range;

use stripewise_swd::{Move, Policy};

/// The tracks of a band, numbered from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlainSpace {
    used: Vec<bool>,
    head_tracks: usize,
}

impl PlainSpace {
    /// A free band of `tracks` under a head of `head_tracks`.
    pub fn new(tracks: u32, head_tracks: u32) -> Self {
        Self { used: vec![false; tracks as usize], head_tracks: head_tracks.max(1) as usize }
    }

    /// Tracks of the band.
    pub fn tracks(&self) -> usize {
        self.used.len()
    }

    /// W, tracks.
    pub fn head_tracks(&self) -> usize {
        self.head_tracks
    }

    /// Whether a track is used; nothing beyond the band is.
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

    /// R: the share of the free tracks that can be written, `(F - E) / F` for W = 2 (thesis, equation 5.1); 0 without free tracks.
    pub fn fragmentation(&self) -> f64 {
        let (mut free, mut usable) = (0, 0);
        for element in self.elements(false) {
            free += element.len();
            usable += (element.len() + 1).saturating_sub(self.head_tracks);
        }
        if free == 0 { 0.0 } else { usable as f64 / free as f64 }
    }

    /// Whether a write of the track destroys only free tracks of this band.
    pub fn spares_others(&self, track: usize) -> bool {
        self.used.get(track + 1..track + self.head_tracks).is_some_and(|after| !after.contains(&true))
    }

    /// Whether a free track can be written.
    pub fn is_usable(&self, track: usize) -> bool {
        !self.is_used(track) && self.spares_others(track)
    }

    /// Whether the free tracks can always be brought together by moving single tracks into usable ones: there is a free element of W tracks with used
    /// tracks after it, or one at the band's end that can give W-s tracks and keep W, s being the longest of the others. An element of the first kind
    /// moves right through the used tracks after it until it meets the next free ones; one of the second makes the longest other one of the first kind.
    /// A track more that is free never hurts.
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
    pub fn after(&self, freed: Range<usize>, taken: Range<usize>) -> Self {
        let mut after = self.clone();
        freed.for_each(|track| after.set(track, false));
        taken.for_each(|track| after.set(track, true));
        after
    }
}

/// Tracks between a position and a run of tracks.
fn distance(position: usize, element: &Range<usize>) -> usize {
    if position < element.start { element.start - position } else { (position + 1).saturating_sub(element.end) }
}

/// Tracks between two elements that do not overlap.
fn gap(a: &Range<usize>, b: &Range<usize>) -> usize {
    if a.end <= b.start { b.start - a.end } else { a.start.saturating_sub(b.end) }
}

impl PlainSpace {
    /// The step of garbage collection from a head at track `head` (thesis, chapter 5.2.4): the nearest used element smaller than `limit`, which is
    /// doubled until one is found that has a place to go. `may_move` excludes tracks. Steps that leave R as it was, or the band
    /// not steady, are not taken.
    pub fn collection_step(&self, policy: Policy, head: usize, limit: u64, may_move: impl Fn(usize) -> bool) -> Option<Move> {
        let mut victims: Vec<Range<usize>> = self
            .elements(true)
            .filter(|victim| policy == Policy::Greedy || victim.start > 0)
            .filter(|victim| victim.clone().all(&may_move))
            .collect();
        victims.sort_by_key(|victim| distance(head, victim));
        let mut limit = limit.max(1);
        loop {
            let smaller = victims.iter().filter(|victim| (victim.len() as u64) < limit);
            if let Some(step) = smaller.filter_map(|victim| self.place_for(policy, victim)).next() {
                return Some(step);
            }
            if limit > self.tracks() as u64 {
                return None;
            }
            limit *= 2;
        }
    }

    fn place_for(&self, policy: Policy, victim: &Range<usize>) -> Option<Move> {
        let fits = |place: &Range<usize>| place.len() + 1 >= victim.len() + self.head_tracks();
        let gains = |to: usize| {
            // Power may go after any track of the victim, so the band must be steady after each.
            let moved = |tracks: usize| self.after(victim.start..victim.start + tracks, to..to + tracks);
            (1..=victim.len()).all(|tracks| moved(tracks).is_steady()) && moved(victim.len()).fragmentation() > self.fragmentation()
        };
        let to = match policy {
            Policy::Smart | Policy::Adaptive => self.elements(false).filter(fits).map(|place| place.start).find(|&to| gains(to)),
            Policy::Greedy => {
                let mut neighbours: Vec<Range<usize>> = self.elements(true).filter(|element| element != victim).collect();
                neighbours.sort_by_key(|neighbour| gap(victim, neighbour));
                let after = |neighbour: &Range<usize>| self.elements(false).find(|place| place.start == neighbour.end);
                neighbours.iter().filter_map(after).filter(fits).map(|place| place.start).find(|&to| gains(to))
            }
        }?;
        Some(Move { from: victim.clone(), to })
    }

    /// Where to write one track, the first of `wanted` in a row, when `source` becomes free by it; `pool` is Smart's allocation pool from its bookmark
    /// on. `None`: the free tracks must be brought together first.
    pub fn choose(&self, policy: Policy, head: usize, wanted: usize, source: Option<usize>, pool: &Range<usize>) -> Option<usize> {
        let freed = source.map_or(0..0, |track| track..track + 1);
        let writable =
            |to: usize| self.is_usable(to) && self.after(0..0, to..to + 1).is_steady() && self.after(freed.clone(), to..to + 1).is_steady();
        if policy == Policy::Smart && pool.contains(&(pool.start)) && writable(pool.start) {
            return Some(pool.start);
        }
        let mut places: Vec<Range<usize>> = self.elements(false).collect();
        match policy {
            Policy::Smart | Policy::Adaptive => places.sort_by_key(|place| Reverse(place.len())),
            Policy::Greedy => places.sort_by_key(|place| (place.len() + 1 < wanted + self.head_tracks(), distance(head, place))),
        }
        places.into_iter().map(|place| place.start).find(|&to| writable(to))
    }

    /// The next single track to move so that free tracks come together; `None` only if the band is not steady, or all of it is one free element.
    pub fn gather_step(&self) -> Option<Move> {
        let free: Vec<Range<usize>> = self.elements(false).collect();
        let inner = free.iter().filter(|place| place.end < self.tracks());
        let longest = inner.min_by_key(|place| Reverse(place.len()))?;
        let to = if longest.len() >= self.head_tracks() { longest } else { free.last().filter(|place| place.len() >= self.head_tracks())? };
        Some(Move { from: longest.end..longest.end + 1, to: to.start })
    }
}
