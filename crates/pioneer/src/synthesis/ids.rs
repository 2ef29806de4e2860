//! Sequence ids that are given once: the next free one where the wanted one is taken.

/// Ids that are taken, a bit each, and for full words where to look on.
#[derive(Debug, Default)]
pub struct Ids {
    taken: Vec<u64>,
    /// From a word, the first one behind it that may have room; itself where it has.
    next: Vec<u32>,
}

impl Ids {
    /// Wanted ids beyond this count as this: gaps of a profile written by hand may be any.
    pub const WANTED_MAX: u64 = 1 << 30;

    /// Takes the first free id from `wanted` on.
    pub fn take(&mut self, wanted: u64) -> u64 {
        let wanted = wanted.min(Self::WANTED_MAX);
        let mut word = (wanted / 64) as usize;
        self.grow(word);
        let mut free = self.free(word) & (u64::MAX << (wanted % 64));
        while free == 0 {
            word = self.with_room(word + 1);
            free = self.free(word);
        }
        let bit = free.trailing_zeros();
        if let Some(bits) = self.taken.get_mut(word) {
            *bits |= 1 << bit;
            if *bits == u64::MAX
                && let Some(next) = self.next.get_mut(word)
            {
                *next = word as u32 + 1;
            }
        }
        word as u64 * 64 + u64::from(bit)
    }

    fn free(&self, word: usize) -> u64 {
        !self.taken.get(word).copied().unwrap_or(0)
    }

    fn grow(&mut self, word: usize) {
        if word >= self.taken.len() {
            let length = (word + 1).max(self.taken.len() + self.taken.len() / 2);
            self.next.extend(self.taken.len() as u32..length as u32);
            self.taken.resize(length, 0);
        }
    }

    fn with_room(&mut self, from: usize) -> usize {
        let mut word = from;
        self.grow(word);
        while let Some(&next) = self.next.get(word) {
            if next as usize == word {
                break;
            }
            word = next as usize;
            self.grow(word);
        }
        // Everything on the way is led to the end at once.
        let mut at = from;
        while at < word {
            let Some(next) = self.next.get_mut(at) else { break };
            at = *next as usize;
            *next = word as u32;
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn an_id_is_the_first_free_one_from_the_wanted_on(wanted in prop::collection::vec(0u64..400, 0..600)) {
            let (mut ids, mut taken) = (Ids::default(), BTreeSet::new());
            for each in wanted {
                let expected = (each..).find(|id| !taken.contains(id)).unwrap();
                prop_assert_eq!(ids.take(each), expected);
                taken.insert(expected);
            }
        }
    }
}
