//! What a run of equal servers serves of one request: the most bytes on any of them, and how many it touches.
//!
//! A request [a, a + x) covers `whole` cycle borders. A server at position j of the run serves whole*w + cut(b, j) - cut(a, j), where a and b are the
//! request's ends in their cycles and cut(e, j) is how much of stripe j lies before e: w left of the stripe that e falls into, the rest in it, 0
//! right of it. So everything follows from the two stripes that the ends fall into.

use crate::cycle::Run;

/// A request's place among cycles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Cycle borders between its ends.
    pub whole: u64,
    /// Its first byte in its cycle.
    pub from: u64,
    /// The byte after its last one in its cycle.
    pub to: u64,
}

impl Place {
    #[inline]
    pub fn new(offset: u64, size: u64, length: u64) -> Self {
        let from = offset % length;
        let end = from + size;
        if end < length {
            return Self { whole: 0, from, to: end };
        }
        Self { whole: end / length, from, to: end % length }
    }
}

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
        Self { whole: place.whole, first: from / run.width, first_bytes: from % run.width, last: to / run.width, last_bytes: to % run.width }
    }

    /// Whether the request's end lies past its beginning in this run, once whole cycles are taken off.
    #[inline]
    fn ahead(&self) -> bool {
        (self.last, self.last_bytes) > (self.first, self.first_bytes)
    }

    /// The most bytes that one server of the run serves.
    #[inline]
    pub fn most_bytes(&self, width: u64, count: u64) -> u64 {
        if (self.last, self.last_bytes) == (self.first, self.first_bytes) {
            return self.whole * width;
        }
        if self.ahead() {
            let more = if self.first == self.last {
                self.last_bytes - self.first_bytes
            } else if self.last - self.first > 1 {
                width
            } else {
                (width - self.first_bytes).max(self.last_bytes)
            };
            return self.whole * width + more;
        }
        // The end lies before the beginning: servers between them miss their stripe of one cycle, wholly or in part.
        let missing = if self.first == self.last {
            if count > 1 { 0 } else { self.first_bytes - self.last_bytes }
        } else {
            let damaged = self.first - self.last + u64::from(self.first_bytes > 0);
            if damaged < count {
                0
            } else {
                let tail = if self.first_bytes > 0 { self.first_bytes } else { width };
                (width - self.last_bytes).min(tail)
            }
        };
        self.whole * width - missing
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

impl Touched {
    /// How many positions of `count` it is.
    #[inline]
    pub fn number(&self, count: u64) -> u64 {
        let inside = self.to.saturating_sub(self.from);
        if self.inverted { count - inside } else { inside }
    }
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
            let place = Place::new(offset, size, cycle.length);
            for run in &cycle.runs {
                let mine = &served[run.server..run.server + run.count as usize];
                let ends = Ends::new(place, run);
                prop_assert_eq!(ends.most_bytes(run.width, run.count), *mine.iter().max().unwrap());
                let touched = ends.touched(run.count);
                for (position, bytes) in mine.iter().enumerate() {
                    let inside = (touched.from..touched.to).contains(&(position as u64));
                    prop_assert_eq!(inside != touched.inverted, *bytes > 0);
                }
                prop_assert_eq!(touched.number(run.count), mine.iter().filter(|bytes| **bytes > 0).count() as u64);
            }
        }
    }
}
