//! The adaptive policy. A used track with free ones after it is updated in place, for one request; every free element gives that to one track. So free
//! tracks are spent as gaps, as many as there are, and the tracks that lose theirs, because something is written or moved behind them, are the coldest.
//! Garbage collection waits until free tracks run out, and then moves what is smallest.
//!
//! Costs are counted in requests, tracks read or written. None of this is the seed's; the seed's policies are in `plan.rs`.

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
/// Weight of the heat of what moves: decides between equals.
const TIE: f64 = 0.02;

impl Space {
    /// Whether an update by copy should be preceded by a step of garbage collection: one free track that can be written is left, or two where a tenth of
    /// the band is free and the copied track, `from`, does not become one with those before it.
    pub(super) fn is_tight(&self, from: Option<usize>) -> bool {
        let is_roomy = 10 * (self.tracks() - self.used_tracks()) >= self.tracks();
        let joins = from.is_some_and(|track| track > 0 && !self.is_used(track - 1));
        self.usable_tracks() <= 1 + usize::from(is_roomy && !joins)
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
        let scattered = SCATTER_REQUESTS * (self.mean_element() - SCATTERED_TRACKS).max(0.0);
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

    pub(super) fn choose_by_heat(&self, band: usize) -> Option<usize> {
        self.table.bands.get(band)?.space.choose_by_heat(self.shares(band))
    }

    /// Collects until a copy finds room, before it is made.
    pub(super) fn make_room_by_heat(&mut self, band: usize, logical_track: u32) -> Result<(), SwdError> {
        while self.parameters.policy == Policy::Adaptive
            && self.table.bands.get(band).is_some_and(|state| state.space.is_tight(self.place(logical_track)))
            && self.collect_by_heat(band)?
        {}
        Ok(())
    }

    /// One step of garbage collection; false when none would gain anything.
    pub(super) fn collect_by_heat(&mut self, band: usize) -> Result<bool, SwdError> {
        let Some(state) = self.table.bands.get(band) else { return Ok(false) };
        let Some(step) = state.space.collection_step_by_heat(self.shares(band)) else {
            self.table.tidy(band);
            return Ok(false);
        };
        self.counters.collections += 1;
        self.counters.collected_tracks += step.from.len() as u64;
        self.move_tracks(band, step)?;
        Ok(true)
    }
}
