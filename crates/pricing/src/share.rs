//! What a run of equal servers serves of one request: the most bytes on any of them, and how many it touches.
//!
//! A request [a, a + x) covers `whole` cycle borders. A server at position j of the run serves whole*w + cut(b, j) - cut(a, j), where a and b are the
//! request's ends in their cycles and cut(e, j) is how much of stripe j lies before e: w left of the stripe that e falls into, the rest in it, 0
//! right of it. So everything follows from the two stripes that the ends fall into.

use crate::cycle::Run;
use crate::place::Place;

/// The ends of a request in one run: the stripe that each falls into, and the bytes of that stripe before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub whole: u64,
    pub first: u64,
    pub first_bytes: u64,
    pub last: u64,
    pub last_bytes: u64,
}

impl Ends {
    #[inline]
    pub fn new<F>(place: Place, run: &Run<F>) -> Self {
        let span = run.width * run.count;
        let (from, to) = (place.from.saturating_sub(run.start).min(span), place.to.saturating_sub(run.start).min(span));
        let ((first, first_bytes), (last, last_bytes)) = (run.by_width.divide(from), run.by_width.divide(to));
        Self { whole: place.whole, first, first_bytes, last, last_bytes }
    }

    /// The most bytes that one server of the run serves, and how many servers it touches.
    ///
    /// Selections instead of branches: which case a request falls into is chance, and a branch that is guessed wrong costs more than all the cases.
    #[inline]
    pub fn most_bytes(&self, width: u64, count: u64) -> (u64, u64) {
        let begin = self.first * width + self.first_bytes;
        let end = self.last * width + self.last_bytes;
        let partly = u64::from(self.last_bytes > 0);
        // The end lies past the beginning: stripes between them are served once more, wholly or in part.
        let between = self.last.wrapping_sub(self.first);
        let edges = if between == 0 { end.wrapping_sub(begin) } else { (width - self.first_bytes).max(self.last_bytes) };
        let more = if between > 1 { width } else { edges };
        // The end lies before the beginning: servers between them miss their stripe of one cycle, wholly or in part.
        let gap = self.first.wrapping_sub(self.last);
        let missed = gap.wrapping_add(u64::from(self.first_bytes > 0));
        let tail = if self.first_bytes > 0 { self.first_bytes } else { width };
        let least = if gap == 0 { begin.wrapping_sub(end) } else { (width - self.last_bytes).min(tail) };
        let missing = if missed < count || (gap == 0 && count > 1) { 0 } else { least };
        let most = self.whole * width + if end > begin { more } else { 0 } - if end < begin { missing } else { 0 };
        let ahead = if end > begin { between + partly } else { 0 };
        let behind = if gap == 0 || self.last > self.first { 0 } else { gap - partly };
        let touched = match self.whole {
            0 => ahead,
            1 => count - behind,
            _ => count,
        };
        (most, touched)
    }

    /// The fewest bytes that a server of the run serves among those that the request touches; any number where it touches none.
    pub fn least_bytes(&self, width: u64, count: u64) -> u64 {
        let (served, partly) = (self.whole * width, self.last_bytes > 0);
        let (head, tail) = (width - self.first_bytes, if partly { self.last_bytes } else { width });
        if self.ahead() {
            let edges = if self.first == self.last { self.last_bytes - self.first_bytes } else { head.min(tail) };
            let touched = self.last - self.first + u64::from(partly);
            return if self.whole > 0 && touched < count { served } else { served + edges };
        }
        if self.last == self.first {
            return served - (self.first_bytes - self.last_bytes);
        }
        // Of one whole cycle nothing is left where a whole stripe is missed: the stripes of the ends are, in part.
        let all_missed = self.last + 1 < self.first || !partly;
        if self.whole > 1 && all_missed { served - width } else { served - width + head.min(tail) }
    }

    /// Whether the request's end lies past its beginning in this run, once whole cycles are taken off.
    #[inline]
    fn ahead(&self) -> bool {
        (self.last, self.last_bytes) > (self.first, self.first_bytes)
    }

    /// Positions [from, to) of the run that the request touches, or, when `inverted`, those that it does not touch.
    #[inline]
    pub fn touched(&self, count: u64) -> Touched {
        if self.ahead() && self.whole == 0 {
            return Touched { from: self.first, to: self.last + u64::from(self.last_bytes > 0), inverted: false };
        }
        if self.whole == 0 {
            return Touched { from: 0, to: 0, inverted: false };
        }
        if self.whole == 1 && self.last < self.first {
            return Touched { from: self.last + u64::from(self.last_bytes > 0), to: self.first, inverted: true };
        }
        Touched { from: 0, to: count, inverted: false }
    }
}

/// A range of positions, or its complement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touched {
    pub from: u64,
    pub to: u64,
    pub inverted: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::{Cycle, Server};
    use proptest::prelude::*;

    /// Bytes per server, stripe by stripe.
    fn walk(widths: &[u64], offset: u64, size: u64) -> Vec<u64> {
        let length: u64 = widths.iter().sum();
        let mut served = vec![0; widths.len()];
        let (mut at, end) = (offset, offset + size);
        while at < end {
            let mut start = at / length * length;
            for (server, width) in widths.iter().enumerate() {
                if at < end && start <= at && at < start + width {
                    let take = (start + width).min(end) - at;
                    served[server] += take;
                    at += take;
                }
                start += width;
            }
        }
        served
    }

    proptest! {
        #[test]
        fn every_run_serves_what_a_walk_over_the_stripes_finds(
            runs in proptest::collection::vec((0u8..2, 1u64..9, 1usize..5), 1..4),
            offset in 0u64..200, size in 1u64..200,
        ) {
            let servers: Vec<Server<u8>> =
                runs.iter().flat_map(|(kind, width, count)| vec![Server { kind: *kind, width_bytes: *width }; *count]).collect();
            let cycle = Cycle::new(&servers).unwrap();
            let widths: Vec<u64> = servers.iter().map(|server| server.width_bytes).collect();
            let served = walk(&widths, offset, size);
            let place = Place::new(offset, size, cycle.by_length);
            for run in &cycle.runs {
                let mine = &served[run.server..run.server + run.count as usize];
                let ends = Ends::new(place, run);
                let touches = mine.iter().filter(|bytes| **bytes > 0).count() as u64;
                prop_assert_eq!(ends.most_bytes(run.width, run.count), (*mine.iter().max().unwrap(), touches));
                if let Some(least) = mine.iter().filter(|bytes| **bytes > 0).min() {
                    prop_assert_eq!(ends.least_bytes(run.width, run.count), *least);
                }
                let touched = ends.touched(run.count);
                for (position, bytes) in mine.iter().enumerate() {
                    let inside = (touched.from..touched.to).contains(&(position as u64));
                    prop_assert_eq!(inside != touched.inverted, *bytes > 0);
                }
            }
        }
    }
}
