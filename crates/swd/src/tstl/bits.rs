//! A row of bits, one a track of a band, in which runs are found a word at a time. A band of the usual size needs no memory of its own.

const WORD: usize = u64::BITS as usize;
const FEW: usize = 2;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Words {
    Few([u64; FEW]),
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
        let words = if len <= FEW * WORD { Words::Few([0; FEW]) } else { Words::Many(vec![0; len.div_ceil(WORD)].into_boxed_slice()) };
        Self { words, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn words(&self) -> &[u64] {
        match &self.words {
            Words::Few(words) => words,
            Words::Many(words) => words,
        }
    }

    fn words_mut(&mut self) -> &mut [u64] {
        match &mut self.words {
            Words::Few(words) => words,
            Words::Many(words) => words,
        }
    }

    /// A bit; clear beyond the end.
    pub(crate) fn get(&self, index: usize) -> bool {
        self.words().get(index / WORD).is_some_and(|word| word >> (index % WORD) & 1 == 1)
    }

    /// Sets or clears a bit; nothing beyond the end.
    pub(crate) fn set(&mut self, index: usize, value: bool) {
        let is_inside = index < self.len;
        if let Some(word) = self.words_mut().get_mut(index / WORD).filter(|_| is_inside) {
            *word = *word & !(1 << (index % WORD)) | u64::from(value) << (index % WORD);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.words_mut().fill(0);
    }

    /// The first bit of that value from `from` on; the end if there is none.
    pub(crate) fn next(&self, from: usize, value: bool) -> usize {
        let flip = if value { 0 } else { u64::MAX };
        let first = from / WORD;
        let mut mask = u64::MAX << (from % WORD);
        for (index, word) in self.words().iter().enumerate().skip(first) {
            let found = (word ^ flip) & mask;
            if found != 0 {
                return (index * WORD + found.trailing_zeros() as usize).min(self.len);
            }
            mask = u64::MAX;
        }
        self.len
    }

    /// One more than the last bit of that value before `before`; 0 if there is none.
    pub(crate) fn after_last(&self, before: usize, value: bool) -> usize {
        let flip = if value { 0 } else { u64::MAX };
        let mut end = before.min(self.len);
        while end > 0 {
            let index = (end - 1) / WORD;
            let found = self.words().get(index).map_or(0, |word| (word ^ flip) & (u64::MAX >> (WORD * (index + 1) - end)));
            if found != 0 {
                return index * WORD + WORD - found.leading_zeros() as usize;
            }
            end = index * WORD;
        }
        0
    }
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
                    prop_assert_eq!(bits.get(at), bools.get(at).copied().unwrap_or(false));
                    let next = bools[at..].iter().position(|&bit| bit == value).map_or(bools.len(), |step| at + step);
                    let after_last = bools[..at].iter().rposition(|&bit| bit == value).map_or(0, |last| last + 1);
                    prop_assert_eq!((bits.next(at, value), bits.after_last(at, value)), (next, after_last));
                }
            }
        }
    }
}
