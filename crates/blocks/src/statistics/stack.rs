//! Stack distances (Mattson et al. 1970) in the logarithm of the number of tracks each: a binary indexed tree counts the tracks whose latest
//! update lies after a moment. Moments are numbered anew when they are used up, so the tree is as long as there are tracks.

use std::collections::HashMap;

use super::histogram::Histogram;

/// Moments at first.
const MOMENTS_MIN: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Stack {
    /// Moment of each track's latest update.
    latest: HashMap<u64, usize>,
    /// Binary indexed tree over moments: 1 where it is a track's latest.
    tree: Vec<u64>,
    now: usize,
    updates: u64,
    distances: Histogram,
}

impl Stack {
    pub(super) fn update(&mut self, track: u64) {
        if self.now == self.tree.len() {
            self.renumber();
        }
        self.updates += 1;
        if let Some(before) = self.latest.insert(track, self.now) {
            let distance = (self.latest.len() as u64).saturating_sub(self.up_to(before));
            self.distances.take(distance);
            self.add(before, 1u64.wrapping_neg());
        }
        self.add(self.now, 1);
        self.now += 1;
    }

    pub(super) fn tracks(&self) -> u64 {
        self.latest.len() as u64
    }

    pub(super) fn updates(&self) -> u64 {
        self.updates
    }

    pub(super) fn distances(&self) -> &Histogram {
        &self.distances
    }

    fn add(&mut self, moment: usize, number: u64) {
        let mut at = moment;
        while let Some(node) = self.tree.get_mut(at) {
            *node = node.wrapping_add(number);
            at |= at + 1;
        }
    }

    /// Tracks whose latest update is at `moment` or before.
    fn up_to(&self, moment: usize) -> u64 {
        let mut sum = 0u64;
        let mut end = moment + 1;
        while let Some(node) = end.checked_sub(1).and_then(|at| self.tree.get(at)) {
            sum = sum.wrapping_add(*node);
            end &= end - 1;
        }
        sum
    }

    fn renumber(&mut self) {
        let mut tracks: Vec<(usize, u64)> = self.latest.iter().map(|(&track, &moment)| (moment, track)).collect();
        tracks.sort_unstable();
        self.tree = vec![0; (2 * tracks.len()).max(MOMENTS_MIN)];
        self.now = tracks.len();
        for (moment, (_, track)) in tracks.into_iter().enumerate() {
            self.latest.insert(track, moment);
            self.add(moment, 1);
        }
    }
}
