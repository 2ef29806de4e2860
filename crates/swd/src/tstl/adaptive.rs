//! The adaptive policy. A used track with free ones after it is updated in place, for one request; every free element gives that to one track. So free
//! tracks are spent as gaps, as many as there are, and the tracks that lose theirs, because something is written or moved behind them, are the coldest.
//! Garbage collection waits until free tracks run out, and then moves what is smallest.
//!
//! Costs are counted in requests, tracks read or written. None of this is the seed's; the seed's policies are in `plan.rs`. A band in which these rules cost
//! more than Greedy's would have is left to Greedy's (`shadow.rs`), and so are new tracks.

use core::ops::Range;

use super::layer::TrackLayer;
use super::plan::{Move, Policy};
use super::space::Space;
use crate::error::SwdError;
use crate::medium::Medium;

/// Updates of a band over which a gap that is lost is regretted: each that meets the track copies it, for a request more.
const HORIZON_UPDATES: f64 = 50.0;
/// Requests that a moved track takes.
const MOVE_REQUESTS: f64 = 2.0;
/// Requests to win back a track that is left as a gap, for each track of an average used element: an update falls into an element anywhere, and what it
/// splits off is a quarter of it in the mean.
const GAP_REQUESTS: f64 = 0.5;
/// Moves that do not push free tracks on through their neighbours, but leave them in two places, cost so much more per track that the average used element
/// has beyond [`SCATTERED_TRACKS`]: what was swept over lately has few holes to find.
const SCATTER_REQUESTS: f64 = 2.0;
const SCATTERED_TRACKS: f64 = 2.5;
/// And no more than so much: where few tracks are written, the others are best left where they are.
const SCATTER_REQUESTS_MAX: f64 = 8.0;
/// Bands that one record of the log declares.
const DECLARED_BANDS: usize = 64;
/// Copies that an idle disk prepares each band for.
const IDLE_COPIES: usize = 1;
/// Weight of the heat of what moves: decides between equals.
const TIE: f64 = 0.02;

impl Space {
    /// Whether an update by copy should be preceded by a step of garbage collection: one free track that can be written is left, or two where a tenth of
    /// the band is free, more updates are to be expected, and the copied track, `from`, does not become one with those before it.
    pub(super) fn is_tight(&self, from: Option<usize>, expects_more: bool) -> bool {
        let joins = from.is_some_and(|track| track > 0 && !self.is_used(track - 1));
        self.usable_tracks() <= 1 + usize::from(expects_more && self.is_roomy_band() && !joins)
    }

    fn is_roomy_band(&self) -> bool {
        10 * (self.tracks() - self.used_tracks()) >= self.tracks()
    }

    /// Tracks of an average used element.
    fn mean_element(&self) -> f64 {
        self.used_tracks() as f64 / (self.tracks() - self.used_tracks()).saturating_sub(self.usable_tracks()).max(1) as f64
    }

    /// What writing behind a track costs it: its gap.
    fn regret(&self, place: &Range<usize>, share: &impl Fn(usize) -> f64) -> f64 {
        place.start.checked_sub(1).map_or(0.0, |before| HORIZON_UPDATES * share(before))
    }

    /// Where to write one track: behind the coldest track that free ones follow, or, where they are enough, a gap farther. `share` is a place's share of
    /// the band's visits. `None`: the free tracks must be brought together first.
    pub(super) fn choose_by_heat(&self, share: impl Fn(usize) -> f64) -> Option<usize> {
        let (gap, price) = (self.head_tracks() - 1, GAP_REQUESTS * self.mean_element());
        let mut best: Option<(f64, usize)> = None;
        for place in self.elements(false).filter(|place| place.len() > gap) {
            let farther = (place.len() > 2 * gap).then_some((price, place.start + gap));
            for (cost, to) in [Some((self.regret(&place, &share), place.start)), farther].into_iter().flatten() {
                if best.is_none_or(|best| cost < best.0) && self.can_take(to) {
                    best = Some((cost, to));
                }
            }
        }
        best.map(|best| best.1)
    }

    /// The step of garbage collection that costs least: a used element goes to the start of a free one that has room, or one track after the other into
    /// the free element right before it, which thereby moves to the next. Every step makes more tracks usable.
    pub(super) fn collection_step_by_heat(&self, share: impl Fn(usize) -> f64) -> Option<Move> {
        let scattered = (SCATTER_REQUESTS * (self.mean_element() - SCATTERED_TRACKS)).clamp(0.0, SCATTER_REQUESTS_MAX);
        let mut best: Option<(f64, Move)> = None;
        for place in self.elements(false).filter(|place| place.len() >= self.head_tracks()) {
            let regret = self.regret(&place, &share);
            for victim in self.elements(true).filter(|victim| victim.end != place.start) {
                let is_pushed = place.end == victim.start;
                let fits = is_pushed || place.len() + 1 >= victim.len() + self.head_tracks();
                let heat = TIE * HORIZON_UPDATES * share(victim.end - 1);
                let cost = MOVE_REQUESTS * victim.len() as f64 + regret + heat + if is_pushed { 0.0 } else { scattered };
                let is_better = fits && best.as_ref().is_none_or(|best| cost < best.0);
                if is_better && self.gains(&victim, &place) && self.stays_steady(&victim, place.start) {
                    best = Some((cost, Move { from: victim, to: place.start }));
                }
            }
        }
        best.map(|best| best.1)
    }
}

impl<M: Medium> TrackLayer<M> {
    /// The share of a band's visits that its places have, by the tracks that they hold.
    fn shares(&self, band: usize) -> impl Fn(usize) -> f64 {
        move |place| self.table.at(band, place).map_or(0.0, |logical_track| self.heat.share(logical_track))
    }

    /// Declares all tracks of a band and its neighbours: copies go to free tracks anywhere, and a record for each band would cost more than the copies.
    pub(super) fn declare_bands(&mut self, band: usize) -> Result<(), SwdError> {
        let bands = band - band % DECLARED_BANDS..(band - band % DECLARED_BANDS + DECLARED_BANDS).min(self.bands.count());
        let (first, end) = (self.bands.first_track(bands.start), self.bands.first_track(bands.end - 1) + self.bands.band_tracks());
        self.log.pool(&mut self.medium, self.clock, first, end - first)?;
        for band in bands {
            self.table.declare(band, 0..self.bands.band_tracks() as usize);
        }
        Ok(())
    }

    pub(super) fn choose_by_heat(&self, band: usize) -> Option<usize> {
        self.table.bands.get(band)?.space.choose_by_heat(self.shares(band))
    }

    /// Collects until a copy finds room, before it is made.
    pub(super) fn make_room_by_heat(&mut self, band: usize, logical_track: u32) -> Result<(), SwdError> {
        while self.table.bands.get(band).is_some_and(|state| state.space.is_tight(self.place(logical_track), self.heat.is_updated(band)))
            && self.collect_by_heat(band, usize::MAX)?
        {}
        Ok(())
    }

    /// A step in a band while nobody waits. It moves one track where it can, so that whoever comes waits for one, and ends when the next copies need no
    /// collection: more would cost gaps.
    pub(super) fn collect_in_idle_band(&mut self, band: usize) -> Result<bool, SwdError> {
        if self.parameters.policy != Policy::Adaptive {
            return self.collect_band(band);
        }
        self.renew_credit(band);
        let is_ready = |space: &Space| space.usable_tracks() > 1 + usize::from(space.is_roomy_band()) + IDLE_COPIES;
        let Some(state) = self.table.bands.get(band).filter(|state| !is_ready(&state.space)) else { return Ok(false) };
        // A stream's gap is worth more than what can wait.
        let takes_a_streams_gap = |step: &Move| step.to.checked_sub(1).is_some_and(|before| self.shares(band)(before) >= 1.0);
        if state.space.collection_step_by_heat(self.shares(band)).is_some_and(|step| takes_a_streams_gap(&step)) {
            return Ok(false);
        }
        self.collect_by_heat(band, 1)
    }

    /// One step of garbage collection, or so many tracks of it where free ones are pushed on and it can go on at any time; false when none would gain
    /// anything.
    pub(super) fn collect_by_heat(&mut self, band: usize, tracks: usize) -> Result<bool, SwdError> {
        let Some(state) = self.table.bands.get(band) else { return Ok(false) };
        let Some(mut step) = state.space.collection_step_by_heat(self.shares(band)) else {
            self.table.tidy(band);
            return Ok(false);
        };
        if state.space.next_element(true, step.to).is_some_and(|next| next.start == step.from.start) {
            step.from.end = step.from.end.min(step.from.start.saturating_add(tracks));
        }
        self.counters.collections += 1;
        self.counters.collected_tracks += step.from.len() as u64;
        self.move_tracks(band, step)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(tracks: u32, used: &[Range<usize>]) -> Space {
        let mut space = Space::new(tracks, 2);
        used.iter().cloned().flatten().for_each(|track| space.set(track, true));
        space
    }

    #[test]
    fn a_copy_goes_behind_the_coldest_track_or_beyond_a_gap() {
        let space = space(20, &[0..4, 6..10, 13..16]);
        let share = |hot: usize| move |place: usize| if place == hot { 0.9 } else { 0.001 * place as f64 };
        assert_eq!(space.choose_by_heat(share(15)), Some(4), "behind track 3");
        assert_eq!(space.choose_by_heat(share(3)), Some(10), "behind track 9");
        let only_hot = |place: usize| if [3, 9, 15].contains(&place) { 0.3 } else { 0.0 };
        assert_eq!(space.choose_by_heat(only_hot), Some(11), "track 9 keeps the gap");
    }

    #[test]
    fn the_smallest_and_coldest_victim_moves() {
        let space = space(20, &[0..4, 5..6, 7..8, 9..15]);
        let hot = |place: usize| if place == 5 { 0.5 } else { 0.0 };
        assert_eq!(space.collection_step_by_heat(hot), Some(Move { from: 7..8, to: 15 }));
    }

    #[test]
    fn every_step_makes_more_tracks_usable_and_leaves_the_band_steady() {
        for head_tracks in 1..5u32 {
            let used_last = 13 - head_tracks;
            for bits in 0..1u32 << used_last {
                let mut space = Space::new(12, head_tracks);
                (0..used_last).filter(|track| bits >> track & 1 == 1).for_each(|track| space.set(track as usize, true));
                while let Some(step) = space.collection_step_by_heat(|place| place as f64 / 100.0).filter(|_| space.is_steady()) {
                    let after = space.after(step.from.clone(), step.to..step.to + step.from.len());
                    assert!(after.usable_tracks() > space.usable_tracks() && after.is_steady(), "W {head_tracks}, bits {bits:b}");
                    space = after;
                }
            }
        }
    }
}
