//! Random sequences of layouts: contents never change, the check stays clean, planes alternate, and a layout that cannot be
//! reached is refused with the file untouched.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;
use common::*;
use proptest::prelude::*;
use std::path::Path;
use stripewise_store::admin::fake::FakeDisk;
use stripewise_store::admin::findings::Options;
use stripewise_store::admin::fsck::fsck;
use stripewise_store::admin::medium::Medium;
use stripewise_store::admin::spec::{LayoutJson, RegionJson};
use stripewise_store::admin::{Store, StoreError, data};

const TARGETS: u32 = 4;
const REGION: u64 = 32 * K;

fn stripes() -> impl Strategy<Value = Vec<(u32, u64)>> {
    let widths = proptest::collection::vec(0u64..5, TARGETS as usize);
    (widths, 0..TARGETS).prop_map(|(widths, first)| {
        let cycle = (0..TARGETS).map(|i| (first + i) % TARGETS);
        let stripes: Vec<(u32, u64)> = cycle.map(|t| (t, widths[t as usize] * 4 * K)).filter(|s| s.1 > 0).collect();
        if stripes.is_empty() { vec![(first, 4 * K)] } else { stripes }
    })
}

fn layout() -> impl Strategy<Value = LayoutJson> {
    proptest::collection::vec(stripes(), 1..8).prop_map(|all| LayoutJson {
        regions: all.into_iter().enumerate().map(|(i, stripes)| RegionJson { start: i as u64 * REGION, len: REGION, stripes }).collect(),
    })
}

/// Like `layout`, with lengths that differ from region to region.
fn uneven_layout() -> impl Strategy<Value = LayoutJson> {
    proptest::collection::vec((stripes(), 1u64..20), 1..6).prop_map(|all| {
        let mut start = 0;
        let regions = all.into_iter().map(|(stripes, pages)| {
            let region = RegionJson { start, len: pages * 4 * K, stripes };
            start += pages * 4 * K;
            region
        });
        LayoutJson { regions: regions.collect() }
    })
}

fn clean(store: &Store<'_>) {
    let report = fsck(store, Options::default()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn contents_survive_any_sequence_of_layouts(
        layouts in proptest::collection::vec(layout(), 1..6),
        writes in proptest::collection::vec((0u64..220_000, 1usize..30_000), 0..6),
    ) {
        let disk = FakeDisk::new();
        let base = Path::new("/b");
        disk.mkdir(base).unwrap();
        let root = store_with_file(&disk, base, &spec(base, "dir", TARGETS as usize, 0, even(TARGETS, REGION, 4 * K)));
        let store = Store::open(&disk, &root).unwrap();
        let mut oracle = Vec::new();
        for (i, (at, len)) in writes.iter().enumerate() {
            let bytes = pattern(i as u8, *at, *len);
            data::write_file(&store, ID, *at, &bytes).unwrap();
            let end = *at as usize + len;
            if oracle.len() < end { oracle.resize(end, 0); }
            oracle[*at as usize..end].copy_from_slice(&bytes);
        }
        for wanted in &layouts {
            let before = store.layout(ID).unwrap();
            apply_all(&store, wanted).unwrap();
            let after = store.layout(ID).unwrap();
            for (old, new) in before.regions.iter().zip(&after.regions) {
                let end = oracle.len().min((old.start + old.len) as usize);
                let held = oracle.get(old.start as usize..end).is_some_and(|bytes| bytes.iter().any(|b| *b != 0));
                if (old.start, old.len) == (new.start, new.len) && old.placement != new.placement && held {
                    prop_assert_ne!(old.generation & 1, new.generation & 1);
                }
            }
            prop_assert_eq!(&read_all(&store, oracle.len() + 5000), &oracle);
            clean(&store);
        }
    }

    #[test]
    fn other_bounds_are_reached_or_refused_with_the_file_untouched(
        layouts in proptest::collection::vec(uneven_layout(), 1..5),
        size in 0usize..200_000,
    ) {
        let disk = FakeDisk::new();
        let base = Path::new("/b");
        disk.mkdir(base).unwrap();
        let root = store_with_file(&disk, base, &spec(base, "dir", TARGETS as usize, 0, even(TARGETS, REGION, 4 * K)));
        let store = Store::open(&disk, &root).unwrap();
        let content = pattern(9, 0, size);
        data::write_file(&store, ID, 0, &content).unwrap();
        for wanted in &layouts {
            match apply_all(&store, wanted) {
                Ok(_) | Err(StoreError::Invalid(_)) => {}
                Err(e) => prop_assert!(false, "{}", e),
            }
            prop_assert_eq!(&read_all(&store, size + 5000), &content);
            clean(&store);
        }
    }

    #[test]
    fn damaged_parts_never_make_the_check_panic(
        part in 0usize..5, at in 0usize..5000, value: u8, cut: Option<usize>, repair: bool,
    ) {
        let base = tempfile::tempdir().unwrap();
        let medium = stripewise_store::admin::disk::RealDisk;
        let root = store_with_file(&medium, base.path(), &spec(base.path(), "dir", 2, 0, even(2, REGION, 4 * K)));
        {
            let store = Store::open(&medium, &root).unwrap();
            data::write_file(&store, ID, 0, &pattern(1, 0, 50_000)).unwrap();
        }
        let id = format!("{ID:016x}");
        let path = match part {
            0 => root.join("store.bin"),
            1 => root.join("files").join(&id).join("layout"),
            2 => root.join("files").join(&id).join("ctl"),
            3 => root.join("files").join(&id).join("link"),
            _ => base.path().join("t0").join("stripewise-target"),
        };
        let mut bytes = std::fs::read(&path).unwrap();
        let len = bytes.len();
        bytes[at % len] = value;
        if let Some(cut) = cut { bytes.truncate(cut % len); }
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(store) = Store::open(&medium, &root) {
            let _ = fsck(&store, Options { repair, ..Options::default() });
            let _ = stripewise_store::admin::info::store_files(&store);
            let _ = apply_all(&store, &even(2, REGION, 8 * K));
        }
    }
}
