//! What killed programs leave behind the end of a file, as the verbs meet it: a cut half done, the bytes of a write that did not come to raise the size, and
//! control words that somebody has spoiled.

use crate::common::*;
use proptest::prelude::*;
use std::ops::Range;
use std::path::{Path, PathBuf};
use stripewise_store::admin::check::findings::Options;
use stripewise_store::admin::check::fsck::fsck;
use stripewise_store::admin::fake::FakeDisk;
use stripewise_store::admin::medium::{Names, Open};
use stripewise_store::admin::metadata::data;
use stripewise_store::admin::metadata::size::open_ctl;
use stripewise_store::admin::moves::apply;
use stripewise_store::admin::moves::guide::Guide;
use stripewise_store::admin::spec::LayoutJson;
use stripewise_store::admin::{Store, StoreError};
use stripewise_store::sizing::{Note, Sizes};

const SIZE: usize = 75_001;

fn base() -> PathBuf {
    PathBuf::from("/b")
}

/// A file of `SIZE` bytes on two of three targets.
fn disk() -> (FakeDisk, PathBuf) {
    let disk = FakeDisk::new();
    disk.mkdir(&base()).unwrap();
    let root = store_with_file(&disk, &base(), &spec(&base(), "dir", 3, 0, even(2, 16 * K, 4 * K)));
    let store = Store::open(&disk, &root).unwrap();
    data::write_file(&store, ID, 0, &pattern(3, 0, SIZE)).unwrap();
    disk.settle();
    (disk, root)
}

/// Killed when the size was cut to `size`, and no object yet.
fn killed_in_a_cut(store: &Store<'_>, size: u64) {
    let map = open_ctl(store, ID, &store.layout(ID).unwrap()).unwrap();
    map.ctl().intend_cut(true);
    map.ctl().set_size(size);
}

/// Killed when bytes were written behind the end, and the size not raised yet.
fn killed_in_a_write(store: &Store<'_>) {
    let map = open_ctl(store, ID, &store.layout(ID).unwrap()).unwrap();
    map.ctl().header().lines_used.store(6, std::sync::atomic::Ordering::SeqCst);
    map.ctl().set_note(5, Note { start: SIZE as u64, end: SIZE as u64 + 10_000 });
    data::write_file(store, ID, SIZE as u64, &pattern(5, 0, 10_000)).unwrap();
    map.ctl().set_size(SIZE as u64);
}

/// What the file holds when it has grown again.
fn grown(store: &Store<'_>) -> Vec<u8> {
    open_ctl(store, ID, &store.layout(ID).unwrap()).unwrap().ctl().raise_size(SIZE as u64 + 20_000);
    read_all(store, SIZE + 20_000)
}

fn expected(size: usize) -> Vec<u8> {
    let mut bytes = pattern(3, 0, size);
    bytes.resize(SIZE + 20_000, 0);
    bytes
}

fn codes(disk: &FakeDisk, root: &Path, repair: bool) -> Vec<&'static str> {
    let store = Store::open(disk, root).unwrap();
    let mut codes: Vec<_> = fsck(&store, Options { repair, ..Options::default() }).unwrap().findings.iter().map(|f| f.code).collect();
    codes.dedup();
    codes.retain(|code| *code != "head-size");
    codes
}

#[test]
fn fsck_names_what_a_killed_cut_left_and_takes_it_away() {
    for size in [0, 10, 40_000] {
        let (disk, root) = disk();
        let store = Store::open(&disk, &root).unwrap();
        killed_in_a_cut(&store, size);
        assert_eq!(codes(&disk, &root, false), ["beyond-size", "size-unsettled"]);
        assert_eq!(codes(&disk, &root, true), ["beyond-size", "size-unsettled"]);
        assert!(codes(&disk, &root, false).is_empty());
        assert_eq!(grown(&store), expected(size as usize));
    }
}

#[test]
fn fsck_names_what_a_killed_write_left_and_takes_it_away() {
    let (disk, root) = disk();
    let store = Store::open(&disk, &root).unwrap();
    killed_in_a_write(&store);
    assert_eq!(codes(&disk, &root, false), ["beyond-size", "size-unsettled"]);
    codes(&disk, &root, true);
    assert!(codes(&disk, &root, false).is_empty());
    assert_eq!(grown(&store), expected(SIZE));
}

#[test]
fn fsck_names_an_object_that_is_too_long_though_nothing_is_in_it() {
    let (disk, root) = disk();
    let store = Store::open(&disk, &root).unwrap();
    disk.open(&store.object(0, ID, 0).unwrap(), Open::Write).unwrap().set_len(200 * K).unwrap();
    assert_eq!(codes(&disk, &root, false), ["beyond-size"]);
    codes(&disk, &root, true);
    assert!(codes(&disk, &root, false).is_empty());
    // After a power cut the file is no longer than before.
    disk.cut_power(1);
    let store = Store::open(&disk, &root).unwrap();
    assert_eq!(read_all(&store, 2 * SIZE).len(), SIZE);
}

#[test]
fn a_move_ends_a_cut_whose_maker_died() {
    let (disk, root) = disk();
    let store = Store::open(&disk, &root).unwrap();
    killed_in_a_cut(&store, 10);
    let layout = uneven(16 * K, &[&[(2, 16 * K)], &[(0, 4 * K), (1, 4 * K)], &[(1, 4 * K), (2, 8 * K)]]);
    apply_all(&store, &layout).unwrap();
    let map = open_ctl(&store, ID, &store.layout(ID).unwrap()).unwrap();
    assert!(!map.ctl().is_cut_intended());
    assert_eq!(grown(&store), expected(10));
}

/// A program that dies in a cut to `CUT` while its file is copied; lets it grow and looks at it at the moment when its new home is published.
struct DiesWhileItMoves<'a> {
    disk: &'a FakeDisk,
    root: &'a Path,
    has_cut: bool,
    seen: Vec<u8>,
}

const CUT: u64 = 40_000;

impl Guide for DiesWhileItMoves<'_> {
    fn pace(&mut self, _bytes: u64) -> bool {
        if !std::mem::replace(&mut self.has_cut, true) {
            killed_in_a_cut(&Store::open(self.disk, self.root).unwrap(), CUT);
        }
        true
    }

    fn was_frozen(&mut self, _ns: u64, published: bool) {
        assert!(published);
        self.seen = grown(&Store::open(self.disk, self.root).unwrap());
    }
}

fn nothing_shows_when_it_has_moved_to(store: &Store<'_>, disk: &FakeDisk, root: &Path, layout: &LayoutJson) {
    let mut dies = DiesWhileItMoves { disk, root, has_cut: false, seen: vec![] };
    apply::apply(store, ID, layout, &mut dies).unwrap();
    assert!(dies.has_cut);
    assert_eq!(dies.seen, expected(CUT as usize));
}

fn planes(store: &Store<'_>) -> Vec<u32> {
    let mut planes: Vec<_> = store.layout(ID).unwrap().regions.iter().map(|region| region.generation & 1).collect();
    planes.dedup();
    planes
}

#[test]
fn a_new_home_holds_nothing_behind_the_end_where_the_object_goes_on() {
    let (disk, root) = disk();
    let store = Store::open(&disk, &root).unwrap();
    // The rest of the file stays in plane 1 of t2, where the span comes to last.
    let layout = |first: &[(u32, u64)]| uneven(128 * K, &[first, &[(2, 4 * K)]]);
    for first in [&[(0, 4 * K), (1, 4 * K)], &[(1, 4 * K), (0, 8 * K)]] {
        apply_all(&store, &layout(first)).unwrap();
    }
    nothing_shows_when_it_has_moved_to(&store, &disk, &root, &layout(&[(2, 4 * K)]));
    assert_eq!(planes(&store), [1]);
}

#[test]
fn a_new_home_holds_nothing_behind_the_end_where_it_stands_in_both_planes() {
    let (disk, root) = disk();
    let store = Store::open(&disk, &root).unwrap();
    let layout = in_two_planes(&store);
    nothing_shows_when_it_has_moved_to(&store, &disk, &root, &layout);
    assert_eq!(planes(&store), [1, 0, 1]);
}

/// Cuts the file to `CUT`, and dies in it, before chunk `at` is copied; where the move is published before that, then.
struct DiesSometime<'a> {
    disk: &'a FakeDisk,
    root: &'a Path,
    at: usize,
    has_cut: bool,
    /// Each new home that was published, and what the file would hold if it grew just then.
    seen: Vec<(Range<usize>, Vec<u8>)>,
}

impl DiesSometime<'_> {
    fn cut(&mut self) {
        if !std::mem::replace(&mut self.has_cut, true) {
            killed_in_a_cut(&Store::open(self.disk, self.root).unwrap(), CUT);
        }
    }
}

impl Guide for DiesSometime<'_> {
    fn pace(&mut self, _bytes: u64) -> bool {
        self.at = self.at.saturating_sub(1);
        if self.at == 0 {
            self.cut();
        }
        true
    }

    fn chunk_bytes(&self) -> u64 {
        16 * K
    }

    fn was_frozen(&mut self, _ns: u64, published: bool) {
        assert!(published);
        if self.has_cut {
            let store = Store::open(self.disk, self.root).unwrap();
            let span = store.layout(ID).unwrap().span;
            let bytes = grown(&store);
            self.seen.push((span.start.min(bytes.len() as u64) as usize..span.end().min(bytes.len() as u64) as usize, bytes));
            open_ctl(&store, ID, &store.layout(ID).unwrap()).unwrap().ctl().set_size(CUT);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Regions change one by one first, so that they stand in both planes.
    #[test]
    fn what_a_dead_program_cut_off_does_not_show_again_however_the_file_moves_and_the_mover_dies(
        first in bounds(), changes in proptest::collection::vec((0..8usize, stripes()), 0..6), last in proptest::option::of(bounds()),
        all in proptest::collection::vec(stripes(), 8), at in 1..12usize, steps in proptest::option::of(0..150u64),
    ) {
        let (disk, root) = disk();
        let store = Store::open(&disk, &root).unwrap();
        let mut layout = first;
        apply_all(&store, &layout).unwrap();
        for (region, stripes) in changes {
            let count = layout.regions.len();
            layout.regions[region % count].stripes = stripes;
            apply_all(&store, &layout).unwrap();
        }
        let mut wanted = last.unwrap_or(layout);
        wanted.regions.iter_mut().zip(all).for_each(|(region, stripes)| region.stripes = stripes);
        let mut dies = DiesSometime { disk: &disk, root: &root, at, has_cut: false, seen: vec![] };
        steps.into_iter().for_each(|steps| disk.stop_after(steps));
        let result = apply::apply(&store, ID, &wanted, &mut dies);
        prop_assert!(result.is_ok() || steps.is_some());
        disk.restart();
        let size = if dies.has_cut { CUT as usize } else { SIZE };
        for (span, bytes) in &dies.seen {
            prop_assert_eq!(&bytes[span.clone()], &expected(size)[span.clone()]);
        }
        prop_assert_eq!(read_all(&store, size), pattern(3, 0, size));
        if result.is_err() {
            codes(&disk, &root, true);
        }
        prop_assert_eq!(codes(&disk, &root, false), Vec::<&str>::new());
        prop_assert_eq!(grown(&store), expected(size));
    }
}

/// Regions of different lengths on random targets.
fn bounds() -> impl Strategy<Value = LayoutJson> {
    proptest::collection::vec((1..8u64, stripes()), 1..8).prop_map(|all| in_a_row(all.into_iter().map(|(pages, stripes)| (pages * 4 * K, stripes))))
}

/// One to three targets, in any order, with a width each.
fn stripes() -> impl Strategy<Value = Vec<(u32, u64)>> {
    (Just(vec![0u32, 1, 2]).prop_shuffle(), proptest::collection::vec(1..5u64, 1..4))
        .prop_map(|(targets, widths)| targets.into_iter().zip(widths).map(|(target, pages)| (target, pages * 4 * K)).collect())
}

#[test]
fn a_size_that_no_file_has_is_an_error_and_no_offset() {
    let (disk, root) = disk();
    let store = Store::open(&disk, &root).unwrap();
    for size in [1 << 62, u64::MAX] {
        open_ctl(&store, ID, &store.layout(ID).unwrap()).unwrap().ctl().set_size(size);
        assert!(matches!(data::read_file(&store, ID, 0, &mut [0; 10]), Err(StoreError::Damaged(_))));
        assert!(matches!(apply_all(&store, &even(3, 16 * K, 4 * K)), Err(StoreError::Damaged(_))));
    }
    assert!(codes(&disk, &root, true).contains(&"size-insane"));
    assert_eq!(read_all(&store, 2 * SIZE), pattern(3, 0, SIZE));
}

#[test]
fn a_repair_tells_what_it_found_and_not_what_it_left() {
    let (disk, root) = disk();
    let store = Store::open(&disk, &root).unwrap();
    let says = |words: &str| {
        let report = fsck(&store, Options { repair: true, ..Options::default() }).unwrap();
        let found = report.findings.iter().find(|finding| finding.repaired && finding.message.contains(words));
        assert!(found.is_some(), "{words}: {:?}", report.problems);
    };
    let map = open_ctl(&store, ID, &store.layout(ID).unwrap()).unwrap();
    map.ctl().header().generation.store(77, std::sync::atomic::Ordering::SeqCst);
    says("it names generation 77, the layout is 1");
    map.ctl().set_size(u64::MAX);
    says("the size 18446744073709551615 is past every layout");
    drop(map);
    assert_eq!(read_all(&store, 2 * SIZE), pattern(3, 0, SIZE));
}
