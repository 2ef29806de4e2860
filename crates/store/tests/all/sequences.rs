//! Random sequences of layouts: contents never change, the check stays clean, planes alternate, and every layout is reached from every
//! other, whatever the bounds of its regions.

use crate::common::*;
use proptest::prelude::*;
use std::path::Path;
use stripewise_store::admin::Store;
use stripewise_store::admin::check::findings::Options;
use stripewise_store::admin::check::fsck::fsck;
use stripewise_store::admin::disk::RealDisk;
use stripewise_store::admin::fake::FakeDisk;
use stripewise_store::admin::medium::Names;
use stripewise_store::admin::metadata::data;
use stripewise_store::admin::metadata::publish::objects_of;
use stripewise_store::admin::spec::LayoutJson;

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
    proptest::collection::vec(stripes(), 1..8).prop_map(|all| in_a_row(all.into_iter().map(|stripes| (REGION, stripes))))
}

/// Like `layout`, with lengths that differ from region to region.
fn uneven_layout() -> impl Strategy<Value = LayoutJson> {
    proptest::collection::vec((1..20u64, stripes()), 1..6).prop_map(|all| in_a_row(all.into_iter().map(|(pages, stripes)| (pages * 4 * K, stripes))))
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
    fn any_bounds_are_reached_from_any_others(
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
            apply_all(&store, wanted).unwrap();
            prop_assert_eq!(&read_all(&store, size + 5000), &content);
            clean(&store);
            let layout = store.layout(ID).unwrap();
            let used = objects_of(&layout);
            for object in (0..TARGETS).flat_map(|t| [(t, 0), (t, 1)]) {
                let there = disk.stat(&store.object(object.0, ID, object.1).unwrap()).unwrap().is_some();
                prop_assert_eq!(there, used.contains(&object));
            }
        }
    }

    #[test]
    fn damaged_parts_never_make_the_check_panic(
        part in 0usize..5, at in 0usize..5000, value: u8, cut: Option<usize>, repair: bool,
    ) {
        let base = tempfile::tempdir().unwrap();
        let medium = stripewise_store::admin::disk::RealDisk::new();
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

#[test]
fn regions_of_1_mib_take_the_place_of_one_that_repeats_every_64_mib_and_back() {
    const M: u64 = 1024 * K;
    let disk = RealDisk::new();
    let base = tempfile::tempdir().unwrap();
    let wide = even(3, 64 * M, 64 * K);
    let root = store_with_file(&disk, base.path(), &spec(base.path(), "dir", 3, 0, wide.clone()));
    let store = Store::open(&disk, &root).unwrap();
    let mut content = pattern(5, 0, 7_000_003);
    data::write_file(&store, ID, 0, &content).unwrap();
    let far = 66 * M;
    content.resize(far as usize, 0);
    content.extend(pattern(6, far, 300_000));
    data::write_file(&store, ID, far, &content[far as usize..]).unwrap();
    let own: Vec<Vec<(u32, u64)>> = (0..70).map(|i| vec![(i % 3, 4 * K * u64::from(1 + i % 5)), ((i + 1) % 3, 64 * K)]).collect();
    let narrow = uneven(M, &own.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for wanted in [&narrow, &even(2, 3 * M, 8 * K), &wide, &narrow] {
        apply_all(&store, wanted).unwrap();
        assert!(read_all(&store, content.len() + 10) == content);
        clean(&store);
    }
}
