//! What every kind of target must do, run for `dir` and `emulated` alike, on the real file system.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;
use common::*;
use stripewise_store::admin::disk::RealDisk;
use stripewise_store::admin::{Store, data};

fn contents_survive_a_move(kind: &str) {
    let base = tempfile::tempdir().unwrap();
    let medium = RealDisk;
    let root = store_with_file(&medium, base.path(), &spec(base.path(), kind, 3, 0, even(3, 64 * K, 4 * K)));
    let store = Store::open(&medium, &root).unwrap();
    let content = pattern(7, 0, 300_123);
    data::write_file(&store, ID, 0, &content).unwrap();
    let wanted = uneven(64 * K, &[&[(0, 8 * K), (2, 20 * K)], &[(1, 64 * K)], &[(0, 4 * K), (1, 4 * K), (2, 4 * K)]]);
    let applied = apply_all(&store, &wanted).unwrap();
    assert!(applied.moved_bytes > 0);
    assert_eq!(read_all(&store, 400_000), content);
    let again = apply_all(&store, &wanted).unwrap();
    assert_eq!((again.moved_bytes, again.spans), (0, 0));
    apply_all(&store, &even(3, 64 * K, 4 * K)).unwrap();
    assert_eq!(read_all(&store, 400_000), content);
}

macro_rules! for_every_kind {
    ($($name:ident),*) => {
        mod dir { $(#[test] fn $name() { super::$name("dir"); })* }
        mod emulated { $(#[test] fn $name() { super::$name("emulated"); })* }
    };
}
for_every_kind!(contents_survive_a_move);
