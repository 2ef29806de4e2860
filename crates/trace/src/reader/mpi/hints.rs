//! Hints of MPI files out of the notes of a run's processes: each set once for each path.

use crate::format::HINTS_MAX;
use crate::reader::summary::HintsSummary;
use crate::reader::{Run, printable};
use std::collections::{BTreeMap, HashMap};

/// Sets of one path that are told, the first ones.
const SETS_MAX: usize = 16;

/// All of a run, by path, in the order of the processes and of their notes.
pub(in crate::reader) fn hints_of(run: &Run) -> Vec<HintsSummary> {
    let mut by_path: HashMap<&[u8], Vec<HintsSummary>> = HashMap::new();
    for process in &run.processes {
        for (id, words) in run.hints(&process.identity) {
            let Some(name) = run.name(&process.identity, *id) else { continue };
            let Some(told) = hints(&name.path, words) else { continue };
            let sets = by_path.entry(&name.path).or_default();
            if sets.len() < SETS_MAX && !sets.contains(&told) {
                sets.push(told);
            }
        }
    }
    let mut paths: Vec<_> = by_path.into_iter().collect();
    paths.sort_by_key(|(path, _)| *path);
    paths.into_iter().flat_map(|(_, sets)| sets).collect()
}

/// One note; none: it is no such note.
fn hints(path: &[u8], words: &[u64]) -> Option<HintsSummary> {
    let (&[processes, given], text) = words.split_first_chunk()?;
    let bytes: Vec<u8> = text.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut texts = bytes.split(|byte| *byte == 0);
    let mut pairs = std::iter::from_fn(|| {
        let key = texts.next().filter(|key| !key.is_empty())?;
        Some((printable(key), printable(texts.next()?)))
    });
    // Who gives a number to go by gives more than there are at most.
    let given: BTreeMap<String, String> = pairs.by_ref().take((given as usize).min(HINTS_MAX)).collect();
    Some(HintsSummary { path: printable(path), processes, given, in_force: pairs.take(HINTS_MAX).collect() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    fn words(processes: u64, given: u64, text: &[u8]) -> Vec<u64> {
        let mut padded = text.to_vec();
        padded.resize(text.len().next_multiple_of(8), 0);
        let text = padded.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        [processes, given].into_iter().chain(text).collect()
    }

    fn pairs(of: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
        of.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }

    #[test]
    fn what_was_given_stands_before_what_is_in_force() {
        let told = hints(b"/f\xff", &words(4, 1, b"cb_nodes\x001\0cb_nodes\x002\0empty\0\0romio_cb_read\0enable\0")).unwrap();
        assert_eq!((told.path.as_str(), told.processes), ("/f\\xff", 4));
        assert_eq!(pairs(&told.given), [("cb_nodes", "1")]);
        assert_eq!(pairs(&told.in_force), [("cb_nodes", "2"), ("empty", ""), ("romio_cb_read", "enable")]);
    }

    #[test]
    fn no_hints_are_hints_too() {
        assert_eq!(hints(b"/f", &[2, 0]).unwrap(), HintsSummary { path: "/f".into(), processes: 2, ..HintsSummary::default() });
        assert_eq!(hints(b"/f", &[2]), None);
    }

    proptest! {
        #[test]
        fn whatever_a_note_holds_is_survived(words in prop::collection::vec(any::<u64>(), 0..400)) {
            let told = hints(b"/f", &words);
            prop_assert!(told.is_none_or(|told| told.given.len().max(told.in_force.len()) <= HINTS_MAX));
        }
    }
}
