//! A row of bits, one a track of a band, in which runs are found a word at a time. A band of the usual size needs no memory of its own.

use core::cmp::Reverse;
use core::ops::Range;

const WORD: usize = u64::BITS as usize;
const FEW: usize = u128::BITS as usize;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Words {
    Few(u128),
    Many(Box<[u64]>),
}

/// Bits 0 to `len`-1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bits {
    words: Words,
    len: usize,
}

impl Bits {
    /// All clear.
    pub(crate) fn new(len: usize) -> Self {
        let words = if len <= FEW { Words::Few(0) } else { Words::Many(vec![0; len.div_ceil(WORD)].into_boxed_slice()) };
        Self { words, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A bit; clear beyond the end.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> bool {
        match &self.words {
            Words::Few(word) => index < FEW && word >> index & 1 == 1,
            Words::Many(words) => words.get(index / WORD).is_some_and(|word| word >> (index % WORD) & 1 == 1),
        }
    }

    /// Sets or clears a bit; nothing beyond the end.
    pub(crate) fn set(&mut self, index: usize, value: bool) {
        if index >= self.len {
            return;
        }
        match &mut self.words {
            Words::Few(word) => *word = *word & !(1 << index) | u128::from(value) << index,
            Words::Many(words) => {
                if let Some(word) = words.get_mut(index / WORD) {
                    *word = *word & !(1 << (index % WORD)) | u64::from(value) << (index % WORD);
                }
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.len);
    }

    /// The first bit of that value from `from` on; the end if there is none.
    #[inline]
    pub(crate) fn next(&self, from: usize, value: bool) -> usize {
        match &self.words {
            Words::Few(_) if from >= self.len => self.len,
            Words::Few(word) => (from + (if value { *word } else { !word } >> from).trailing_zeros() as usize).min(self.len),
            Words::Many(words) => next_of_many(words, from, value).min(self.len),
        }
    }

    /// One more than the last bit of that value before `before`; 0 if there is none.
    #[inline]
    pub(crate) fn after_last(&self, before: usize, value: bool) -> usize {
        let before = before.min(self.len);
        match &self.words {
            Words::Few(_) if before == 0 => 0,
            Words::Few(word) => before.saturating_sub((if value { *word } else { !word } << (FEW - before)).leading_zeros() as usize),
            Words::Many(words) => after_last_of_many(words, before, value),
        }
    }

    /// The first maximal run of clear bits that begins at `from` or after it and has `length` bits, at least one. `from` is 0 or follows a set bit.
    pub(crate) fn clear_run(&self, from: usize, length: usize) -> Option<Range<usize>> {
        match &self.words {
            Words::Few(_) if from >= self.len || length > self.len => None,
            Words::Few(word) => {
                let start = starts_of_clear_runs(!word & mask(self.len) & u128::MAX << from, length).trailing_zeros() as usize;
                (start < self.len).then(|| start..self.next(start, true))
            }
            Words::Many(_) => self.clear_runs(from).find(|run| run.len() >= length),
        }
    }

    /// The first of the longest runs of clear bits before `end`, which is the end of all or follows a set bit.
    pub(crate) fn longest_clear_run(&self, end: usize) -> Option<Range<usize>> {
        match &self.words {
            Words::Few(word) => {
                let (mut starts, mut longer) = (0, !word & mask(end.min(self.len)));
                while longer != 0 {
                    (starts, longer) = (longer, longer & longer >> 1);
                }
                let start = starts.trailing_zeros() as usize;
                (start < self.len).then(|| start..self.next(start, true))
            }
            Words::Many(_) => self.clear_runs(0).take_while(|run| run.end <= end).min_by_key(|run| Reverse(run.len())),
        }
    }

    fn clear_runs(&self, from: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut at = from;
        core::iter::from_fn(move || {
            let start = self.next(at, false);
            at = self.next(start, true);
            (start < self.len).then_some(start..at)
        })
    }
}

/// The first `len` of few bits.
fn mask(len: usize) -> u128 {
    if len == 0 { 0 } else { u128::MAX >> (FEW - len) }
}

/// Of ones, those that `length`-1 more follow.
fn starts_of_clear_runs(mut ones: u128, length: usize) -> u128 {
    let mut has = 1;
    while has < length {
        let step = has.min(length - has);
        ones &= ones >> step;
        has += step;
    }
    ones
}

fn next_of_many(words: &[u64], from: usize, value: bool) -> usize {
    let flip = if value { 0 } else { u64::MAX };
    let mut mask = u64::MAX << (from % WORD);
    for (index, word) in words.iter().enumerate().skip(from / WORD) {
        let found = (word ^ flip) & mask;
        if found != 0 {
            return index * WORD + found.trailing_zeros() as usize;
        }
        mask = u64::MAX;
    }
    usize::MAX
}

fn after_last_of_many(words: &[u64], before: usize, value: bool) -> usize {
    let flip = if value { 0 } else { u64::MAX };
    let mut end = before;
    while end > 0 {
        let index = (end - 1) / WORD;
        let found = words.get(index).map_or(0, |word| (word ^ flip) & (u64::MAX >> (WORD * (index + 1) - end)));
        if found != 0 {
            return index * WORD + WORD - found.leading_zeros() as usize;
        }
        end = index * WORD;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

        #[test]
        fn runs_are_found_as_one_by_one(bools in prop::collection::vec(any::<bool>(), 0..300), sparse in any::<bool>()) {
            let bools: Vec<bool> = bools.iter().enumerate().map(|(index, &bit)| bit && (!sparse || index % 97 == 0)).collect();
            let mut bits = Bits::new(bools.len());
            bools.iter().enumerate().for_each(|(index, &bit)| bits.set(index, bit));
            bits.set(bools.len(), true);
            for value in [false, true] {
                for at in 0..=bools.len() {
                    if at == 0 || at == bools.len() || bools[at - 1] {
                        let runs: Vec<Range<usize>> = bits.clear_runs(at).collect();
                        prop_assert_eq!(runs.iter().map(Range::len).sum::<usize>(), bools[at..].iter().filter(|&&bit| !bit).count());
                        let before: Vec<Range<usize>> = bits.clear_runs(0).take_while(|run| run.end <= at).collect();
                        let longest = before.iter().min_by_key(|run| Reverse(run.len())).cloned();
                        prop_assert_eq!(bits.longest_clear_run(at), longest);
                        for length in 1..12 {
                            prop_assert_eq!(bits.clear_run(at, length), runs.iter().find(|run| run.len() >= length).cloned());
                        }
                    }
                    prop_assert_eq!(bits.get(at), bools.get(at).copied().unwrap_or(false));
                    let next = bools[at..].iter().position(|&bit| bit == value).map_or(bools.len(), |step| at + step);
                    let after_last = bools[..at].iter().rposition(|&bit| bit == value).map_or(0, |last| last + 1);
                    prop_assert_eq!((bits.next(at, value), bits.after_last(at, value)), (next, after_last));
                }
            }
        }
    }
}
