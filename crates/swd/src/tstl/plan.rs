//! Where the next track goes and what a step of garbage collection moves: Greedy and Smart (chapter 5.2.4), as functions of a band's state only.

use core::ops::Range;

use super::space::Space;

/// How free tracks are chosen and victims placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// `tstl-greedy`: what is nearest to the head.
    Greedy,
    /// `tstl-smart`: a bookmark walks the largest free element; victims go left.
    Smart,
    /// `tstl-adaptive`: free tracks are gaps after hot ones (not the seed's).
    Adaptive,
}

/// Tracks that a step moves: `from` to as many from `to` on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Move {
    /// Tracks of the band that move.
    pub from: Range<usize>,
    /// First track of their new place.
    pub to: usize,
}

/// The size, in tracks, below which a used element is a victim: `ceil(U / (1 - U))`, in whole tracks `ceil(used / free)` (thesis, equation 5.2).
/// `None` without free tracks.
#[must_use]
pub fn victim_limit(used_tracks: u64, free_tracks: u64) -> Option<u64> {
    (free_tracks > 0).then(|| used_tracks.div_ceil(free_tracks))
}

/// Tracks between a position and a run of tracks.
fn distance(position: usize, element: &Range<usize>) -> usize {
    if position < element.start { element.start - position } else { (position + 1).saturating_sub(element.end) }
}

/// Used elements by their distance from a run of tracks, the left one first where two are equally far. One that the run lies in or begins in is the first.
struct Outward<'a> {
    space: &'a Space,
    left: Option<Range<usize>>,
    right: Option<Range<usize>>,
    from: Range<usize>,
}

impl<'a> Outward<'a> {
    fn from_head(space: &'a Space, head: usize) -> Self {
        let right = space.next_element(true, if space.is_used(head) { space.end_of(head) } else { head });
        let left = if space.is_used(head) { space.previous_element(true, space.end_of(head)) } else { space.previous_element(true, head) };
        Self { space, left, right, from: head..head + 1 }
    }

    fn from_element(space: &'a Space, element: &Range<usize>) -> Self {
        let (left, right) = (space.previous_element(true, element.start), space.next_element(true, element.end));
        Self { space, left, right, from: element.clone() }
    }
}

impl Iterator for Outward<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let left = self.left.as_ref().map(|left| self.from.start.saturating_sub(left.end));
        let right = self.right.as_ref().map(|right| right.start.saturating_sub(self.from.end));
        let takes_left = left.is_some_and(|left| right.is_none_or(|right| left <= right));
        if takes_left {
            let element = self.left.take()?;
            self.left = self.space.previous_element(true, element.start);
            return Some(element);
        }
        let element = self.right.take()?;
        self.right = self.space.next_element(true, element.end);
        Some(element)
    }
}

impl Space {
    /// The end of the used element that a track is in.
    fn end_of(&self, track: usize) -> usize {
        self.next_element(true, track).map_or(track, |rest| rest.end)
    }

    /// The step of garbage collection from a head at track `head` (thesis, chapter 5.2.4): the nearest used element smaller than `limit`, which is
    /// doubled until one is found that has a place to go. `may_move` excludes elements. Steps that leave R as it was, or the band
    /// not steady, are not taken. [`Policy::Adaptive`] has rules of its own, here for tracks that are all alike.
    #[must_use]
    pub fn collection_step(&self, policy: Policy, head: usize, limit: u64, may_move: impl Fn(&Range<usize>) -> bool) -> Option<Move> {
        if policy == Policy::Adaptive {
            return self.collection_step_by_heat(|_| 0.0);
        }
        let (mut smallest, mut limit) = (0, limit.max(1));
        let longest = self.longest_free_element().map_or(0, |place| place.len());
        let most = (longest + 1).saturating_sub(self.head_tracks()) as u64;
        // Those below the last limit had no place to go, and larger ones than the longest free element takes have none.
        while smallest <= most {
            let mut victims = Outward::from_head(self, head)
                .filter(|victim| (smallest..limit.min(most + 1)).contains(&(victim.len() as u64)))
                .filter(|victim| (policy == Policy::Greedy || victim.start > 0) && may_move(victim));
            if let Some(step) = victims.find_map(|victim| self.place_for(policy, &victim)) {
                return Some(step);
            }
            smallest = limit;
            limit = limit.saturating_mul(2);
        }
        None
    }

    fn place_for(&self, policy: Policy, victim: &Range<usize>) -> Option<Move> {
        let needs = victim.len() + self.head_tracks() - 1;
        let serves = |place: &Range<usize>| place.len() >= needs && self.gains(victim, place) && self.stays_steady(victim, place.start);
        let place = match policy {
            Policy::Smart | Policy::Adaptive => self.free_elements(needs).find(serves),
            Policy::Greedy => Outward::from_element(self, victim)
                .filter_map(|neighbour| self.next_element(false, neighbour.end).filter(|place| place.start == neighbour.end))
                .find(serves),
        }?;
        Some(Move { from: victim.clone(), to: place.start })
    }

    /// Power may go after any track of a victim that moves, so the band must be steady after each.
    pub(super) fn stays_steady(&self, victim: &Range<usize>, to: usize) -> bool {
        let moved = |tracks: usize| self.after(victim.start..victim.start + tracks, to..to + tracks);
        self.is_steady_with(&(to..to + victim.len())) || (1..=victim.len()).all(|tracks| moved(tracks).is_steady())
    }

    /// Where to write one track, the first of `wanted` in a row; `pool` is Smart's allocation pool from its bookmark on. `None`: the free tracks must be
    /// brought together first.
    #[must_use]
    pub fn choose(&self, policy: Policy, head: usize, wanted: usize, pool: &Range<usize>) -> Option<usize> {
        if policy == Policy::Smart && !pool.is_empty() && self.can_take(pool.start) {
            return Some(pool.start);
        }
        match policy {
            Policy::Adaptive => self.choose_by_heat(|_| 0.0),
            Policy::Smart => self.first_writable(|place| self.tracks() - place.len()),
            Policy::Greedy => self.first_writable(|place| {
                let is_short = place.len() + 1 < wanted + self.head_tracks();
                distance(head, place) + if is_short { self.tracks() } else { 0 }
            }),
        }
    }

    /// Whether a track can be written and the band is steady with it. What becomes free by it does not hurt.
    pub(super) fn can_take(&self, track: usize) -> bool {
        self.is_usable(track) && self.is_steady_with(&(track..track + 1))
    }

    /// The start of the free element with the least key, the leftmost of equals, that can be written at its start.
    fn first_writable(&self, key: impl Fn(&Range<usize>) -> usize) -> Option<usize> {
        let mut passed = None;
        loop {
            let keys = self.free_elements(self.head_tracks()).map(|place| (key(&place), place.start));
            let least = keys.filter(|&key| passed.is_none_or(|passed| key > passed)).min()?;
            if self.can_take(least.1) {
                return Some(least.1);
            }
            passed = Some(least);
        }
    }

    /// The next single track to move so that free tracks come together; `None` only if the band is not steady, or all of it is one free element.
    #[must_use]
    pub fn gather_step(&self) -> Option<Move> {
        let longest = self.longest_inner_element()?;
        let last = || self.previous_element(false, self.tracks());
        let to = if longest.len() >= self.head_tracks() { longest.clone() } else { last().filter(|place| place.len() >= self.head_tracks())? };
        Some(Move { from: longest.end..longest.end + 1, to: to.start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seed's figure 5.1, 25 tracks.
    fn example() -> Space {
        let mut space = Space::new(25, 2);
        [0..=3, 6..=6, 10..=12, 14..=17, 20..=22].into_iter().flatten().for_each(|track| space.set(track, true));
        space
    }

    #[test]
    fn the_worked_example_has_the_seeds_elements_and_fragmentation() {
        let space = example();
        assert_eq!(space.elements(false).collect::<Vec<_>>(), [4..6, 7..10, 13..14, 18..20, 23..25]);
        assert!((space.fragmentation() - 0.5).abs() < 1e-12, "equation 5.1 with F = 10 and E = 5");
        assert_eq!(victim_limit(15, 10), Some(2), "equation 5.2 with U = 0.6");
    }

    #[test]
    fn the_worked_example_appends_track_6_to_the_first_element() {
        let step = example().collection_step(Policy::Greedy, 5, 2, |_| true).unwrap();
        assert_eq!(step, Move { from: 6..7, to: 4 });
        let after = example().after(step.from, 4..5);
        assert_eq!(after.elements(false).collect::<Vec<_>>(), [5..10, 13..14, 18..20, 23..25]);
        assert!((after.fragmentation() - 0.6).abs() < 1e-12);
    }

    #[test]
    fn victim_limits_are_those_of_equation_5_2() {
        assert_eq!([victim_limit(60, 40), victim_limit(80, 20), victim_limit(50, 50), victim_limit(1, 0)], [Some(2), Some(4), Some(1), None]);
    }

    #[test]
    fn smart_places_a_victim_in_the_leftmost_larger_element_and_walks_the_largest() {
        let space = example();
        assert_eq!(space.collection_step(Policy::Smart, 21, 2, |_| true), Some(Move { from: 6..7, to: 4 }));
        assert_eq!(space.choose(Policy::Smart, 21, 1, &(0..0)), Some(7));
        assert_eq!(space.choose(Policy::Smart, 21, 1, &(18..19)), Some(18));
        assert_eq!(space.choose(Policy::Greedy, 21, 1, &(0..0)), Some(18));
        assert_eq!(space.choose(Policy::Greedy, 24, 2, &(0..0)), Some(7), "two tracks in a row fit there only");
    }

    #[test]
    fn a_limit_without_victims_is_doubled() {
        let mut space = Space::new(20, 2);
        (0..4).chain(9..11).for_each(|track| space.set(track, true));
        assert_eq!(space.collection_step(Policy::Greedy, 0, 1, |_| true), Some(Move { from: 9..11, to: 4 }));
        assert_eq!(space.collection_step(Policy::Greedy, 0, 1, |victim| victim.end <= 9), None, "the first element gains nothing anywhere");
    }

    #[test]
    fn a_steady_band_stays_steady_when_a_track_becomes_free() {
        for head_tracks in 1..5u32 {
            let used_last = 12 - (head_tracks - 1);
            for bits in 0..1u32 << used_last {
                let mut space = Space::new(12, head_tracks);
                (0..used_last).filter(|track| bits >> track & 1 == 1).for_each(|track| space.set(track as usize, true));
                let freed = (0..12).filter(|&track| space.is_used(track)).map(|track| space.after(track..track + 1, 0..0));
                assert!(!space.is_steady() || freed.into_iter().all(|freed| freed.is_steady()), "W {head_tracks}, bits {bits:b}");
            }
        }
    }

    #[test]
    fn gathering_ends_with_a_writable_track_in_every_steady_band_that_has_2w_free() {
        for head_tracks in 1..5u32 {
            for bits in 0..1u32 << 12 {
                let mut space = Space::new(12, head_tracks);
                (0..12).filter(|track| bits >> track & 1 == 1).for_each(|track| space.set(track, true));
                let gap_is_free = (13 - head_tracks as usize..12).all(|track| !space.is_used(track));
                if !gap_is_free || !space.is_steady() || 12 - space.used_tracks() < 2 * head_tracks as usize {
                    continue;
                }
                let mut steps = 0;
                while space.choose(Policy::Greedy, 0, 1, &(0..0)).is_none() {
                    let step = space.gather_step().unwrap();
                    assert!(space.is_usable(step.to) && space.is_used(step.from.start));
                    space = space.after(step.from, step.to..step.to + 1);
                    steps += 1;
                    assert!(steps < 144, "bits {bits:b}");
                }
            }
        }
    }
}
