//! How often logical tracks are written: a counter of one byte for each, halved now and then, so that it follows the workload. Only speed depends on it: a
//! disk that was just opened knows nothing and learns again.

/// Counters grow no further, so that what was hot for long is forgotten as fast as anything.
const HOTTEST: u8 = 15;
/// A band of so few updates may see no other.
const FEW_UPDATES: u8 = 8;
/// A band's counters are halved after so many visits for each of its tracks.
const VISITS_PER_TRACK: u32 = 2;

#[derive(Clone, Copy, Default, Debug)]
struct Visits {
    /// Since the counters were halved.
    recent: u32,
    /// Of all counters of the band.
    sum: u32,
    /// The number in its band of the track visited last, plus one.
    last: u32,
    /// Whether that one was written more than once in a row.
    is_stream: bool,
    /// Updates so far, as long as they are few.
    updates: u8,
}

/// The heat of a disk's logical tracks, band by band.
#[derive(Clone, Debug)]
pub(crate) struct Heat {
    counters: Vec<u8>,
    visits: Vec<Visits>,
    band_tracks: usize,
}

impl Heat {
    /// All tracks cold: `band_tracks` logical ones in each of `bands`.
    pub(crate) fn new(bands: usize, band_tracks: usize) -> Self {
        Self { counters: vec![0; bands * band_tracks], visits: vec![Visits::default(); bands], band_tracks: band_tracks.max(1) }
    }

    /// A track is written. Writes in a row to one track of a band are one visit, or a stream would heat what it never comes back to.
    pub(crate) fn visit(&mut self, logical_track: u32, is_new: bool) {
        let (band, number) = (logical_track as usize / self.band_tracks, logical_track as usize % self.band_tracks);
        let Some(visits) = self.visits.get_mut(band) else { return };
        visits.updates = (visits.updates + u8::from(!is_new)).min(FEW_UPDATES + 1);
        visits.is_stream = visits.last as usize == number + 1;
        if visits.is_stream {
            return;
        }
        let Some(counters) = self.counters.get_mut(band * self.band_tracks..(band + 1) * self.band_tracks) else { return };
        visits.last = number as u32 + 1;
        visits.recent += 1;
        if visits.recent >= VISITS_PER_TRACK * self.band_tracks as u32 {
            counters.iter_mut().for_each(|counter| *counter /= 2);
            visits.sum = counters.iter().copied().map(u32::from).sum();
            visits.recent = 0;
        }
        if let Some(counter) = counters.get_mut(number).filter(|counter| **counter < HOTTEST) {
            *counter += 1;
            visits.sum += 1;
        }
    }

    /// Whether more than a few tracks of a band were written again.
    pub(crate) fn is_updated(&self, band: usize) -> bool {
        self.visits.get(band).is_some_and(|visits| visits.updates > FEW_UPDATES)
    }

    /// A track's share of its band's visits, older ones counted less; 0 to 1. A track that a stream is writing to has all.
    pub(crate) fn share(&self, logical_track: u32) -> f64 {
        let (index, size) = (logical_track as usize, self.band_tracks);
        let visits = self.visits.get(index / size).copied().unwrap_or_default();
        if visits.is_stream && visits.last as usize == index % size + 1 {
            return 1.0;
        }
        self.counters.get(index).map_or(0.0, |&counter| f64::from(counter) / f64::from(visits.sum.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_visits_and_forget_them() {
        let mut heat = Heat::new(2, 10);
        (0..31).for_each(|visit| heat.visit(if visit % 3 == 0 { visit % 9 } else { 9 }, false));
        assert!((heat.share(9) - 0.5).abs() < 0.1, "every second visit, not counting those in a row");
        assert_eq!(heat.share(10), 0.0, "another band");
        (0..200).for_each(|visit| heat.visit(visit % 9, false));
        assert_eq!(heat.share(9), 0.0);
        let sum: f64 = (0..10).map(|track| heat.share(track)).sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_stream_over_a_track_is_one_visit() {
        let mut heat = Heat::new(1, 4);
        (0..100).for_each(|_| heat.visit(2, false));
        assert_eq!(heat.share(2), 1.0, "while it lasts");
        heat.visit(1, false);
        assert!((heat.share(2) - 0.5).abs() < 1e-9);
    }
}
