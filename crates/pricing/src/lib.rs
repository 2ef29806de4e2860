//! Requests grouped and priced by the million: the formulas of `python/stripewise/model` where they run once per request key.
//!
//! Python decides which layouts are compared and what the prices mean; this crate cuts requests at region borders, counts equal ones, prices
//! them on candidate cycles (cost-models section 1, general case) and adds up the service demand of every server (section 7). The tests of the
//! Python package hold its results against the vectorised formulas there.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod cost;
mod cycle;
mod demand;
mod divisor;
mod group;
mod place;
mod search;
mod share;

pub use cost::{Figures, Params, cycle_costs};
pub use cycle::{Cycle, Server};
pub use demand::{Demand, Load, Network, demand};
pub use group::{Pieces, group};
pub use search::{Choice, Objective, search};

/// Below so many keys one thread is faster.
const WORTH_THREADS: usize = 1 << 15;

/// Request keys in columns of equal length: offset in the region, bytes, write or read, how many such requests.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// First byte, counted from the region.
    pub offset: &'a [i64],
    /// Bytes, at least 1.
    pub size: &'a [i64],
    /// 1 writes, 0 reads.
    pub write: &'a [u8],
    /// Requests of this key.
    pub count: &'a [i64],
}

/// One key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub offset: u64,
    pub size: u64,
    pub write: bool,
}

/// `f` of every item, in order, on as many threads as `work` (keys, roughly) deserves.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: usize, f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    stripewise_threads::map(items, stripewise_threads::wanted(work, WORTH_THREADS), f)
}

impl<'a> Keys<'a> {
    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.offset.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.offset.is_empty()
    }

    /// Whether all columns have one length and `first` cuts them into regions.
    pub(crate) fn is_cut_by(&self, first: &[i64]) -> bool {
        let rows = self.len() as i64;
        self.size.len() == self.len()
            && self.write.len() == self.len()
            && self.count.len() == self.len()
            && first.first() == Some(&0)
            && first.last() == Some(&rows)
            && first.iter().zip(first.iter().skip(1)).all(|(low, high)| low <= high)
    }

    /// The keys and counts of rows `low..high`.
    pub(crate) fn rows(&self, low: i64, high: i64) -> impl Iterator<Item = (Key, f64)> + use<'a> {
        let range = low.max(0) as usize..high.max(0) as usize;
        let offset = self.offset.get(range.clone()).unwrap_or_default();
        let size = self.size.get(range.clone()).unwrap_or_default();
        let write = self.write.get(range.clone()).unwrap_or_default();
        let count = self.count.get(range).unwrap_or_default();
        offset.iter().zip(size).zip(write.iter().zip(count)).map(|((&offset, &size), (&write, &count))| {
            (Key { offset: offset.max(0) as u64, size: size.max(0) as u64, write: write != 0 }, count as f64)
        })
    }
}
