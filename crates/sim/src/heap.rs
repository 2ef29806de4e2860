//! The calendar of the engine without events per access: a heap of (time, actor) with four children per node.
//!
//! A client that is taken out is nearly always put back at once with a later time, so a taken root is left as a hole that the next entry
//! fills: one walk down instead of two. Keys are unique per actor and time only in their sum; equal keys are equal entries.

/// Calls of actors in the order of time, then of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// Time in the high half, actor in the low one.
    keys: Vec<u128>,
    hole: bool,
}

const CHILDREN: usize = 4;

impl Heap {
    /// Puts a call in.
    #[inline]
    pub(crate) fn push(&mut self, at_ns: u64, actor: u32) {
        let key = u128::from(at_ns) << 64 | u128::from(actor);
        if self.hole {
            self.hole = false;
            self.sink(key);
        } else {
            self.keys.push(key);
            self.rise(key);
        }
    }

    /// Takes the first call out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, u32)> {
        if self.hole {
            self.hole = false;
            let last = self.keys.pop()?;
            if !self.keys.is_empty() {
                self.sink(last);
            }
        }
        let key = *self.keys.first()?;
        self.hole = true;
        Some(((key >> 64) as u64, key as u32))
    }

    /// Writes `key` at the root and lets it sink.
    #[inline]
    fn sink(&mut self, key: u128) {
        let keys = self.keys.as_mut_slice();
        let mut at = 0;
        loop {
            let child = at * CHILDREN + 1;
            let Some(children) = keys.get(child..keys.len().min(child + CHILDREN)) else { break };
            let mut least = (key, at);
            for (i, candidate) in children.iter().enumerate() {
                if *candidate < least.0 {
                    least = (*candidate, child + i);
                }
            }
            if least.1 == at {
                break;
            }
            if let Some(slot) = keys.get_mut(at) {
                *slot = least.0;
            }
            at = least.1;
        }
        if let Some(slot) = keys.get_mut(at) {
            *slot = key;
        }
    }

    /// Lets the last key, which is `key`, rise to its place.
    fn rise(&mut self, key: u128) {
        let mut at = self.keys.len() - 1;
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if self.keys.get(parent).is_none_or(|p| *p <= key) {
                break;
            }
            self.keys.swap(at, parent);
            at = parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn calls_come_in_the_order_of_time_then_actor(steps in prop::collection::vec((any::<bool>(), 0..50u64), 1..300)) {
            let mut heap = Heap::default();
            let mut plain = BTreeSet::new();
            for (actor, (put, at)) in steps.into_iter().enumerate() {
                if put {
                    heap.push(at, actor as u32);
                    plain.insert((at, actor as u32));
                } else {
                    prop_assert_eq!(heap.pop(), plain.pop_first());
                }
            }
            while let Some(first) = plain.pop_first() {
                prop_assert_eq!(heap.pop(), Some(first));
            }
            prop_assert_eq!(heap.pop(), None);
        }
    }
}
