//! What Greedy would have taken: beside Adaptive a Greedy of the same bands, on a medium that does nothing, gets the same requests, and each band's credit
//! (`credit.rs`) is kept by what both took. What an idle disk moves costs nobody, and the shadow is never idle.

use super::bands::Piece;
use super::credit::Credit;
use super::layer::TrackLayer;
use super::parameters::TrackParameters;
use super::plan::Policy;
use crate::blank::BlankMedium;
use crate::error::SwdError;
use crate::medium::{Medium, Purpose};

impl<M: Medium> TrackLayer<M> {
    /// Begins a shadow of the tracks as they are, where the policy asks for one.
    pub(super) fn begin_shadow(&mut self) -> Result<(), SwdError> {
        if self.parameters.policy == Policy::Adaptive {
            // Nobody opens it again, so it needs no checkpoint.
            let parameters = TrackParameters { policy: Policy::Greedy, keeps_flushed: false, checkpoint_writes: u32::MAX, ..self.parameters };
            let greedy = self.on(BlankMedium::new(self.medium.geometry())?, parameters, self.table.without_holds());
            (self.shadow, self.credits) = (Some(Box::new(greedy)), vec![Credit::FULL; self.bands.count()]);
        }
        Ok(())
    }

    /// By whose rules a track at a place of a band is written. A new track is nobody's yet: its gap would be wasted, and to bring free tracks together later,
    /// between used elements that have grown long, costs more.
    pub(super) fn policy_of(&self, band: usize, place: Option<usize>) -> Policy {
        let is_greedy = |credit: &Credit| credit.is_greedy || place.is_none();
        if self.credits.get(band).is_some_and(is_greedy) { Policy::Greedy } else { self.parameters.policy }
    }

    /// An idle disk looks after a band: nobody waits for what it moves, and that is what Adaptive's rules count on.
    pub(super) fn renew_credit(&mut self, band: usize) {
        if let Some(credit) = self.credits.get_mut(band).filter(|credit| credit.is_greedy) {
            *credit = Credit::FULL;
        }
    }

    pub(super) fn shadow_read(&mut self, logical_track: u32) {
        if let Some(shadow) = &mut self.shadow
            && let Some(place) = shadow.place(logical_track)
        {
            shadow.head = shadow.bands.first_track(shadow.bands.band_of(logical_track)) + place as u32;
        }
    }

    /// A whole track is trimmed.
    pub(super) fn shadow_trim(&mut self, logical_track: u32, band: usize) {
        if let Some(shadow) = &mut self.shadow {
            shadow.table.assign(logical_track, band, None);
        }
    }

    /// A write, the first of `wanted` tracks in a row, took `extra_requests` beside its own.
    pub(super) fn shadow_write(&mut self, piece: Piece, wanted: usize, extra_requests: u64) -> Result<(), SwdError> {
        let Some(shadow) = &mut self.shadow else { return Ok(()) };
        let before = shadow.counters.extra_requests();
        shadow.update(piece, &[], wanted, Purpose::Own)?;
        let greedy = shadow.counters.extra_requests() - before;
        if let Some(credit) = self.credits.get_mut(self.bands.band_of(piece.logical_track)) {
            *credit = credit.spent(1 + extra_requests, 1 + greedy);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Geometry, Zone};
    use crate::scheme::Scheme;
    use proptest::prelude::*;

    fn layer(policy: Policy) -> TrackLayer<BlankMedium> {
        let geometry = Geometry::new(&[Zone { tracks: 60, sectors: 3 }], 2, 0, 10_000).unwrap();
        let parameters = TrackParameters { policy, band_tracks: 20, keeps_flushed: false, ..TrackParameters::default() };
        TrackLayer::create(BlankMedium::new(&geometry).unwrap(), parameters).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_shadow_is_the_greedy_that_gets_the_same_requests(filled in 0u64..=100, requests in prop::collection::vec((0u8..8, 0u64..200, 1u64..9), 0..200)) {
            let (mut adaptive, mut greedy) = (layer(Policy::Adaptive), layer(Policy::Greedy));
            let capacity = greedy.capacity_sectors();
            adaptive.fill(capacity * filled / 100).unwrap();
            greedy.fill(capacity * filled / 100).unwrap();
            let filling = adaptive.shadow.as_ref().unwrap().counters;
            for (kind, lba, sectors) in requests {
                let lba = lba % capacity;
                let sectors = sectors.min(capacity - lba);
                for disk in [&mut adaptive, &mut greedy] {
                    match kind {
                        0 => disk.trim(lba, sectors).unwrap(),
                        1 | 2 => disk.read(lba, sectors, &mut []).unwrap(),
                        3 => disk.flush().unwrap(),
                        _ => disk.write(lba, sectors, &[]).unwrap(),
                    }
                }
            }
            let shadow = adaptive.shadow.as_ref().unwrap();
            prop_assert!((0..capacity).all(|lba| shadow.locate(lba) == greedy.locate(lba)));
            prop_assert_eq!(shadow.counters.collected_tracks - filling.collected_tracks, greedy.counters.collected_tracks);
        }
    }
}
