//! Which logical sectors the cache buffer holds, and where: of each S-block a sorted row of runs. Random updates leave a run or two in a block, so a block
//! is looked through, destaged and forgotten without asking for each of its sectors.

/// Sectors of an S-block, `from` up to `to`, that lie in a row in the cache from `at` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) at: u64,
}

impl Run {
    /// The part of it in a range.
    fn clip(self, from: u64, to: u64) -> Option<Self> {
        let (start, end) = (self.from.max(from), self.to.min(to));
        (start < end).then(|| Self { from: start, to: end, at: self.at + (start - self.from) })
    }

    fn continues(self, before: Self) -> bool {
        before.to == self.from && before.at + (before.to - before.from) == self.at
    }
}

/// The runs of all S-blocks.
#[derive(Clone, Debug)]
pub(super) struct Cached {
    blocks: Vec<Vec<Run>>,
    sectors: u64,
}

impl Cached {
    /// Nothing cached of so many S-blocks.
    pub(super) fn new(blocks: usize) -> Self {
        Self { blocks: vec![Vec::new(); blocks], sectors: 0 }
    }

    /// Sectors in the cache.
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Where a sector of a block lies.
    pub(super) fn get(&self, block: usize, sector: u64) -> Option<u64> {
        self.runs(block, sector, sector + 1).next().map(|run| run.at)
    }

    /// What is cached of a range of a block, in order.
    pub(super) fn runs(&self, block: usize, from: u64, to: u64) -> impl Iterator<Item = Run> + '_ {
        self.blocks.get(block).into_iter().flatten().filter_map(move |run| run.clip(from, to))
    }

    /// Forgets a range of a block; the runs that were cached of it.
    pub(super) fn remove(&mut self, block: usize, from: u64, to: u64) -> Vec<Run> {
        let removed: Vec<Run> = self.runs(block, from, to).collect();
        if let Some(runs) = self.blocks.get_mut(block).filter(|_| !removed.is_empty()) {
            *runs = runs.iter().flat_map(|run| [run.clip(0, from), run.clip(to, u64::MAX)]).flatten().collect();
        }
        self.sectors -= removed.iter().map(|run| run.to - run.from).sum::<u64>();
        removed
    }

    /// Remembers where a range of a block lies now; the runs that were cached of it before.
    pub(super) fn insert(&mut self, block: usize, run: Run) -> Vec<Run> {
        let removed = self.remove(block, run.from, run.to);
        let Some(runs) = self.blocks.get_mut(block) else { return removed };
        self.sectors += run.to - run.from;
        let index = runs.partition_point(|other| other.from < run.from);
        runs.insert(index, run);
        runs.dedup_by(|next, before| {
            let continues = next.continues(*before);
            before.to = if continues { next.to } else { before.to };
            continues
        });
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

        #[test]
        fn runs_tell_of_every_sector_what_a_map_of_sectors_tells(steps in prop::collection::vec((any::<bool>(), 0u64..30, 1u64..9, 0u64..60), 1..40)) {
            let (mut cached, mut plain) = (Cached::new(1), [None; 40]);
            for (is_insert, from, length, at) in steps {
                let range = from as usize..(from + length) as usize;
                let before: Vec<(u64, u64)> = (from..from + length).filter_map(|sector| Some((sector, plain[sector as usize]?))).collect();
                let removed = if is_insert {
                    plain[range].iter_mut().zip(at..).for_each(|(slot, at)| *slot = Some(at));
                    cached.insert(0, Run { from, to: from + length, at })
                } else {
                    plain[range].fill(None);
                    cached.remove(0, from, from + length)
                };
                let removed: Vec<(u64, u64)> = removed.iter().flat_map(|run| (run.from..run.to).zip(run.at..)).collect();
                prop_assert_eq!(removed, before);
                prop_assert_eq!(cached.sectors(), plain.iter().flatten().count() as u64);
                for (sector, &at) in plain.iter().enumerate() {
                    prop_assert_eq!(cached.get(0, sector as u64), at);
                }
                let runs: Vec<Run> = cached.runs(0, 0, 40).collect();
                prop_assert!(runs.windows(2).all(|pair| pair[0].to <= pair[1].from && !pair[1].continues(pair[0])));
            }
        }
    }
}
