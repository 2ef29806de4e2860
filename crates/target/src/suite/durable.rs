//! What lasts. A kind whose power can be cut in a test is held to its word; of the others, that flushing works at all.

use super::{Subject, listed, made, name, opened, pattern};
use crate::batch::{read_at, write_at};
use crate::interface::{Object, Target};

const SEEDS: u64 = 20;

/// Bytes by the object's flush, the name by the target's. What was not flushed may be there or not.
pub fn what_was_flushed_survives_a_power_cut(subject: &impl Subject) {
    for seed in 0..SEEDS {
        let target = subject.fresh();
        let object = made(&target, 1);
        let mut bytes = pattern(seed, 0, 60_000);
        write_at(&object, &bytes, 0).unwrap();
        object.punch(8192, 8192).unwrap();
        bytes[8192..16_384].fill(0);
        object.sync().unwrap();
        drop(made(&target, 2));
        target.sync().unwrap();
        drop(made(&target, 3));
        // Elsewhere in the object, and never flushed.
        write_at(&object, &pattern(9, 0, 5000), 100_000).unwrap();
        drop(object);
        if !subject.cut_power(&target, seed) {
            return;
        }
        let names = listed(&target);
        assert!(names.starts_with(&[name(1), name(2)]) && names.len() <= 3, "seed {seed}: {names:?}");
        let object = opened(&target, 1);
        assert!(object.len().unwrap() >= 60_000, "seed {seed}");
        let mut got = vec![9; 60_000];
        assert_eq!(read_at(&object, &mut got, 0), Ok(60_000));
        assert_eq!(got, bytes, "seed {seed}");
    }
}

/// Nor does what was removed come back.
pub fn a_cut_that_was_flushed_stays_cut(subject: &impl Subject) {
    for seed in 0..SEEDS {
        let target = subject.fresh();
        let object = made(&target, 1);
        write_at(&object, &pattern(1, 0, 60_000), 0).unwrap();
        object.sync().unwrap();
        drop(made(&target, 2));
        target.sync().unwrap();
        object.set_len(10_001).unwrap();
        object.sync_range(20_480, 40_960).unwrap();
        target.remove(name(2), &[]).unwrap();
        target.sync().unwrap();
        drop(object);
        if !subject.cut_power(&target, seed) {
            return;
        }
        let object = opened(&target, 1);
        assert_eq!((object.len(), listed(&target)), (Ok(10_001), vec![name(1)]), "seed {seed}");
        object.set_len(60_000).unwrap();
        let mut got = vec![9; 60_000];
        read_at(&object, &mut got, 0).unwrap();
        assert_eq!(got, [pattern(1, 0, 10_001), vec![0; 49_999]].concat(), "seed {seed}");
    }
}

/// Of a whole object, or of any range.
pub fn flushing_changes_nothing_that_is_seen(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    object.sync().unwrap();
    let bytes = pattern(1, 0, 30_000);
    write_at(&object, &bytes, 0).unwrap();
    for (from, to) in [(0, 30_000), (4096, 8192), (5, 77), (0, u64::MAX), (28_672, 1 << 40), (1 << 40, 1 << 41), (9, 9)] {
        object.sync_range(from, to).unwrap();
    }
    object.sync().unwrap();
    let mut got = vec![0; 30_000];
    assert_eq!((object.len(), read_at(&object, &mut got, 0)), (Ok(30_000), Ok(30_000)));
    assert_eq!(got, bytes);
}
