//! A cycle as runs of neighbours that are alike, so that a request is priced in O(runs) however many servers there are.

use std::ops::Range;

use crate::divisor::Divisor;
use crate::place::Place;

/// One server of a cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server<F> {
    /// What tells its kind and its prices; neighbours are one run when this and the width are equal.
    pub kind: F,
    /// Bytes of one stripe; 0 leaves the server out.
    pub width_bytes: u64,
}

/// Neighbours with one kind and one width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Run<F> {
    pub kind: F,
    pub width: u64,
    pub by_width: Divisor,
    pub count: u64,
    /// Where it begins in the cycle, bytes.
    pub start: u64,
    /// Position of its first server.
    pub server: usize,
}

/// The servers in their order, as runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Cycle<F> {
    pub(crate) runs: Vec<Run<F>>,
    pub(crate) by_length: Divisor,
    pub(crate) length: u64,
    pub(crate) servers: usize,
}

impl<F: Copy + PartialEq> Cycle<F> {
    /// `None` when no server has a width, or the widths add up to more than 2^62 bytes.
    pub fn new(servers: &[Server<F>]) -> Option<Self> {
        let mut cycle = Self::empty(servers.len());
        for (position, server) in servers.iter().enumerate() {
            cycle.push(position, server.kind, 1, server.width_bytes)?;
        }
        cycle.whole()
    }

    /// So many servers of one kind with one width, then so many of another; (kind, count, width).
    pub fn pair(first: (F, u64, u64), second: (F, u64, u64)) -> Option<Self> {
        let mut cycle = Self::empty((first.1 + second.1) as usize);
        cycle.push(0, first.0, first.1, first.2)?;
        cycle.push(first.1 as usize, second.0, second.1, second.2)?;
        cycle.whole()
    }

    fn empty(servers: usize) -> Self {
        Self { runs: Vec::with_capacity(2), by_length: Divisor::new(0), length: 0, servers }
    }

    /// Adds `count` servers of one width, the first at `position`; `None` when the cycle gets too long.
    fn push(&mut self, position: usize, kind: F, count: u64, width: u64) -> Option<()> {
        if width == 0 || count == 0 {
            return Some(());
        }
        let start = self.length;
        self.length = count.checked_mul(width)?.checked_add(start).filter(|length| *length <= 1 << 62)?;
        match self.runs.last_mut() {
            Some(run) if run.kind == kind && run.width == width && run.server + run.count as usize == position => run.count += count,
            _ => self.runs.push(Run { kind, width, by_width: Divisor::new(width), count, start, server: position }),
        }
        Some(())
    }

    /// The runs that a request may meet, as two ranges: few where the cycle is long and its servers are all different.
    pub(crate) fn met_by(&self, place: Place) -> [Range<usize>; 2] {
        let all = self.runs.len();
        // The run that holds a byte of the cycle.
        let run_of = |byte: u64| self.runs.partition_point(|run| run.start <= byte).saturating_sub(1);
        let until = |end: u64| if end == 0 { 0 } else { run_of(end - 1) + 1 };
        match place.whole {
            0 if place.to > place.from => [run_of(place.from)..until(place.to), 0..0],
            1 if place.to <= place.from => {
                let from = run_of(place.from);
                [from..all, 0..until(place.to).min(from)]
            }
            _ => [0..all, 0..0],
        }
    }

    fn whole(mut self) -> Option<Self> {
        self.by_length = Divisor::new(self.length);
        (self.length > 0).then_some(self)
    }
}
