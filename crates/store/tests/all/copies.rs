//! Copies of plain files on the fake disk: a kill or power cut after every step of making and dropping them, somebody who wants to write the file at every
//! step, and patterns by chance whose bytes are looked up one block after another.

use crate::common::crashes::Crashes;
use crate::common::*;
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use stripewise_store::admin::check::findings::{Options as Check, Severity};
use stripewise_store::admin::check::fsck::fsck;
use stripewise_store::admin::copies::list::{State, list};
use stripewise_store::admin::copies::make::make;
use stripewise_store::admin::copies::remove;
use stripewise_store::admin::copies::spec::{OnWriteJson, ReplicaJson, ReplicasJson};
use stripewise_store::admin::fake::FakeDisk;
use stripewise_store::admin::gc::{self, gc};
use stripewise_store::admin::medium::{FsyncPoint, Machine, Names, Open, read_small};
use stripewise_store::admin::metadata::data;
use stripewise_store::admin::moves::apply;
use stripewise_store::admin::moves::guide::Unguided;
use stripewise_store::admin::spec::RegionJson;
use stripewise_store::admin::{Store, StoreError, create};
use stripewise_store::copies::{IN_USE, RECORD_BYTES_MAX, Record, state_in};

const SIZE: usize = 200_001;
/// From here on there is a hole.
const DATA: usize = 95_000;

pub fn base() -> PathBuf {
    PathBuf::from("/b")
}

pub fn path() -> PathBuf {
    base().join("d/f")
}

pub fn root() -> PathBuf {
    base().join("store")
}

/// No block is like another, and some are holes.
pub fn content(size: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..size as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    bytes.get_mut(30_000..50_000.min(size)).into_iter().for_each(|hole| hole.fill(0));
    bytes
}

/// The file of most tests.
pub fn sparse() -> Vec<u8> {
    let mut bytes = content(DATA);
    bytes.resize(SIZE, 0);
    bytes
}

fn disk_with(bytes: &[u8]) -> FakeDisk {
    let disk = FakeDisk::new();
    disk.mkdir(&base()).unwrap();
    disk.mkdir(&base().join("d")).unwrap();
    create::create(&disk, &root(), &spec(&base(), "dir", 2, 0, even(2, 16 * K, 4 * K))).unwrap();
    let file = disk.open(&path(), Open::CreateNew).unwrap();
    file.write_at(bytes, 0).unwrap();
    drop(file);
    disk.settle();
    disk
}

pub fn plain() -> FakeDisk {
    disk_with(&sparse())
}

fn region(start: u64, len: u64, stripes: &[(u32, u64)]) -> RegionJson {
    RegionJson { start, len, stripes: stripes.to_vec() }
}

/// Two columns of rows of 3,000 bytes, all of the first part in blocks of 1,000, and a hole, so that only head tells how long the container is.
pub fn columns() -> ReplicasJson {
    let column = |base, on_write| ReplicaJson {
        base,
        block: 700,
        dims: vec![(3000, 29)],
        regions: vec![region(0, 8 * K, &[(1, 8 * K)]), region(8 * K, 8 * K, &[(0, 4 * K), (1, 4 * K)])],
        on_write,
    };
    let regions = vec![region(0, 12 * K, &[(1, 8 * K), (0, 4 * K)])];
    let all = ReplicaJson { base: 0, block: 1000, dims: vec![(1000, 90)], regions, on_write: OnWriteJson::Update };
    let hole = ReplicaJson { base: 100_000, block: 50_000, dims: vec![(50_000, 2)], ..all.clone() };
    ReplicasJson { replicas: vec![column(100, OnWriteJson::Update), column(1500, OnWriteJson::Invalidate), all, hole] }
}

pub fn make_them(disk: &FakeDisk) -> Result<(), StoreError> {
    make(&Store::open(disk, &root())?, &path(), &columns(), true, &mut |_, _| true).map(drop)
}

fn name(disk: &FakeDisk) -> String {
    let stat = disk.stat(&path()).unwrap().unwrap();
    format!("{:016x}-{:016x}", stat.dev, stat.ino)
}

fn drop_them(disk: &FakeDisk) -> Result<(), StoreError> {
    remove::drop(&Store::open(disk, &root())?, &name(disk))
}

/// What is wrong with what a reader of the plain file would get: blocks that he finds, and other bytes in them. How many blocks he finds.
fn wrong_bytes(disk: &FakeDisk, store: &Store<'_>, bytes: &[u8], replicas: &ReplicasJson) -> Result<usize, String> {
    let record = root().join("copies").join(name(disk));
    let Ok(found) = read_small(disk, &record, RECORD_BYTES_MAX) else { return Ok(0) };
    let Some(parsed) = Record::parse(&found).filter(|_| state_in(&found) == IN_USE) else { return Ok(0) };
    let mut count = 0;
    let history = AtomicU32::new(0);
    for replica in &replicas.replicas {
        let mut starts = vec![replica.base];
        for &(stride, steps) in &replica.dims {
            starts = starts.iter().flat_map(|at| (0..steps).map(move |n| at + n * stride)).collect();
        }
        for at in starts {
            let place = parsed.lookup(at, replica.block, &history).ok_or(format!("no copy of byte {at}"))?;
            let mut got = vec![0xee; replica.block as usize];
            let n = data::read_file(store, parsed.container, place.at, &mut got).map_err(|e| format!("the container cannot be read: {e}"))?;
            if got[..n] != bytes[at as usize..(at + replica.block) as usize] {
                return Err(format!("other bytes at {at}"));
            }
            count += 1;
        }
    }
    Ok(count)
}

/// What is wrong after a crash; repairs on the way. `done`: whether there must be copies, if that is certain.
fn violation(disk: &FakeDisk, done: Option<bool>) -> Option<String> {
    let bytes = sparse();
    let store = Store::open(disk, &root()).unwrap();
    let before = match wrong_bytes(disk, &store, &bytes, &columns()) {
        Ok(count) => count > 0,
        Err(e) => return Some(e),
    };
    if done.is_some_and(|done| done != before) {
        return Some("what was reported as done is undone".into());
    }
    let look = fsck(&store, Check::default()).unwrap();
    if let Some(bad) = look.findings.iter().find(|f| f.severity == Severity::Error) {
        return Some(bad.message.clone());
    }
    let collected = match gc(&store, &gc::Options::default()) {
        Ok(collected) => collected,
        Err(e) => return Some(format!("gc: {e}")),
    };
    if !collected.orphans.is_empty() || !collected.problems.is_empty() {
        return Some(format!("gc: {:?} {:?}", collected.orphans, collected.problems));
    }
    if let Err(e) = fsck(&store, Check { repair: true, ..Check::default() }) {
        return Some(format!("repair: {e}"));
    }
    let again = fsck(&store, Check::default()).unwrap();
    if !again.problems.is_empty() {
        return Some(format!("after gc: {:?}", again.problems));
    }
    match wrong_bytes(disk, &store, &bytes, &columns()) {
        Err(e) => return Some(format!("after gc: {e}")),
        Ok(count) if (count > 0) != before => return Some("gc dropped copies that count".into()),
        Ok(_) => {}
    }
    let copies = disk.list(&root().join("copies")).map_or(0, |names| names.len());
    let files = store.ids().unwrap().len();
    let objects: usize = (0..2).map(|t| disk.list(&base().join(format!("t{t}"))).unwrap().len() - 1).sum();
    let trash = disk.list(&root().join("trash")).unwrap().len();
    match (before, copies, files, objects, trash) {
        (true, 2, 1, 2, 0) | (false, 0, 0, 0, 0) => None,
        left => Some(format!("left: {left:?}")),
    }
}

/// Stops `work` after each step by kill or power cut, with one fsync left out; returns the first violation.
fn crashes(
    suppress: Option<FsyncPoint>,
    cut: bool,
    start: &dyn Fn() -> FakeDisk,
    work: &dyn Fn(&FakeDisk) -> Result<(), StoreError>,
    copies_after: bool,
) -> Option<String> {
    Crashes { start, work, cut, suppress }.after_each_step(0, |disk, finished| violation(disk, finished.then_some(copies_after)))
}

/// Before anything was collected.
fn is_nothing_left(disk: &FakeDisk) -> bool {
    let count = |dir: &str| disk.list(&root().join(dir)).map_or(0, |names| names.len());
    (count("copies"), count("files"), count("trash")) == (0, 0, 0)
}

fn with_copies() -> FakeDisk {
    let disk = plain();
    make_them(&disk).unwrap();
    disk.settle();
    disk
}

#[test]
fn a_kill_or_power_cut_after_any_step_leaves_copies_that_are_whole_or_none() {
    for cut in [false, true] {
        assert_eq!(crashes(None, cut, &plain, &make_them, true), None, "make, cut {cut}");
        assert_eq!(crashes(None, cut, &with_copies, &make_them, true), None, "make anew, cut {cut}");
        assert_eq!(crashes(None, cut, &with_copies, &drop_them, false), None, "drop, cut {cut}");
    }
}

#[test]
fn each_fsync_is_needed() {
    use FsyncPoint::*;
    for point in [SliceDir, SliceData, LayoutTmp, FilesDir, HeadSize, NewFileParts, CopyRecord, CopyDir] {
        let found = crashes(Some(point), true, &plain, &make_them, true);
        println!("without {point:?}: {}", found.as_deref().unwrap_or("nothing found"));
        assert!(found.is_some(), "leaving out {point:?} was not noticed");
    }
    for point in [CopyState, Trashed, ObjectsGone] {
        let found = crashes(Some(point), true, &with_copies, &drop_them, false);
        println!("without {point:?}: {}", found.as_deref().unwrap_or("nothing found"));
        assert!(found.is_some(), "leaving out {point:?} was not noticed");
    }
}

#[test]
fn a_power_cut_takes_no_byte_from_the_plain_file_that_its_copies_have() {
    let fresh = || {
        let disk = plain();
        disk.unlink(&path()).unwrap();
        let file = disk.open(&path(), Open::CreateNew).unwrap();
        drop(file);
        disk.settle();
        disk.open(&path(), Open::Write).unwrap().set_len(SIZE as u64).unwrap();
        disk.settle();
        disk.open(&path(), Open::Write).unwrap().write_at(&sparse(), 0).unwrap();
        disk
    };
    let differs = |suppress| {
        (0..20).any(|seed| {
            let disk = fresh();
            disk.suppress(suppress);
            make_them(&disk).unwrap();
            disk.cut_power(seed);
            let mut now = vec![0; SIZE];
            disk.open(&path(), Open::Read).unwrap().read_at(&mut now, 0).unwrap();
            let store = Store::open(&disk, &root()).unwrap();
            wrong_bytes(&disk, &store, &now, &columns()).is_err()
        })
    };
    assert!(!differs(None));
    assert!(differs(Some(FsyncPoint::CopySource)), "leaving out the flush was not noticed");
}

#[test]
fn the_same_command_after_a_kill_needs_nothing_in_between() {
    for step in 0.. {
        let disk = plain();
        disk.stop_after(step);
        let finished = make_them(&disk).is_ok();
        disk.restart();
        make_them(&disk).unwrap_or_else(|e| panic!("step {step}: {e}"));
        assert_eq!(violation(&disk, Some(true)), None, "step {step}");
        if finished {
            return;
        }
    }
}

#[test]
fn whoever_opens_the_file_to_write_it_at_any_step_ends_it_and_nothing_is_left() {
    let steps = {
        let disk = plain();
        let before = disk.steps();
        make_them(&disk).unwrap();
        disk.steps() - before
    };
    for step in 0.. {
        let disk = plain();
        disk.want_after(Some(step));
        let result = make_them(&disk);
        disk.want_after(None);
        assert!(result.is_ok() || is_nothing_left(&disk), "step {step}");
        assert_eq!(violation(&disk, Some(result.is_ok())), None, "step {step}");
        match result {
            // The last step is after the last look.
            Ok(()) => {
                assert_eq!(step, steps);
                break;
            }
            Err(e) => assert!(matches!(e, StoreError::InUse(_)), "step {step}: {e}"),
        }
    }
}

#[test]
fn a_file_that_changes_on_the_way_gets_no_copies() {
    let disk = plain();
    let store = Store::open(&disk, &root()).unwrap();
    let mut calls = 0;
    let mut cut = |_, _| {
        calls += 1;
        if calls == 3 {
            disk.open(&path(), Open::Write).unwrap().set_len(SIZE as u64 - 1).unwrap();
        }
        true
    };
    let made = make(&store, &path(), &columns(), true, &mut cut);
    assert!(matches!(made, Err(StoreError::InUse(e)) if e.contains("was changed while it was being copied")));
    assert!(is_nothing_left(&disk));
    disk.open(&path(), Open::Write).unwrap().set_len(SIZE as u64).unwrap();
    assert_eq!(violation(&disk, Some(false)), None);
}

#[test]
fn a_file_is_left_alone_for_two_seconds_first() {
    let disk = plain();
    assert_eq!(disk.now_s(), 0);
    make_them(&disk).unwrap();
    assert_eq!(disk.now_s(), 2);
}

#[test]
fn who_is_told_to_stop_stops_and_leaves_nothing() {
    let disk = plain();
    let store = Store::open(&disk, &root()).unwrap();
    assert!(matches!(make(&store, &path(), &columns(), true, &mut |done, _| done == 0), Err(StoreError::Stopped(_))));
    assert!(is_nothing_left(&disk));
    assert_eq!(violation(&disk, Some(false)), None);
}

#[test]
fn nobody_moves_a_container_while_it_is_filled() {
    let disk = plain();
    let store = Store::open(&disk, &root()).unwrap();
    let mut refused = 0;
    let mut move_it = |_, _| {
        let other = Store::open(&disk, &root()).unwrap();
        let moved = apply::apply(&other, other.ids().unwrap()[0], &even(1, 16 * K, 4 * K), &mut Unguided);
        refused += usize::from(matches!(moved, Err(StoreError::InUse(_))));
        true
    };
    make(&store, &path(), &columns(), true, &mut move_it).unwrap();
    assert_eq!(refused, 4);
    let id = store.ids().unwrap()[0];
    apply::apply(&store, id, &even(1, 16 * K, 4 * K), &mut Unguided).unwrap();
    assert_eq!(violation(&disk, Some(true)).as_deref(), Some("left: (true, 2, 1, 1, 0)"), "all on one target");
}

#[test]
fn holes_stay_holes() {
    let disk = with_copies();
    let objects =
        (0..2).flat_map(|t| disk.list(&base().join(format!("t{t}"))).unwrap().into_iter().map(move |name| base().join(format!("t{t}")).join(name)));
    let data: u64 = objects.map(|path| disk.stat(&path).unwrap().unwrap().allocated_bytes).sum();
    let whole = list(&Store::open(&disk, &root()).unwrap()).unwrap()[0].bytes;
    assert!(data + 90_000 < whole, "{data} of {whole}");
}

#[test]
fn without_room_nothing_is_made() {
    let disk = plain();
    disk.set_free_bytes(20_000);
    let before = disk.steps();
    assert!(matches!(make_them(&disk), Err(StoreError::NoSpace(_))));
    // The lock's file, made at the first use of the store, is all.
    assert!(disk.steps() <= before + 1);
}

#[test]
fn states_tell_what_has_become_of_the_file() {
    let state = |disk: &FakeDisk| list(&Store::open(disk, &root()).unwrap()).unwrap().first().map(|copies| copies.state);
    let disk = with_copies();
    assert_eq!(state(&disk), Some(State::InUse));
    disk.open(&path(), Open::Write).unwrap().set_len(5).unwrap();
    assert_eq!(state(&disk), Some(State::Changed));
    disk.unlink(&path()).unwrap();
    assert_eq!(state(&disk), Some(State::Gone));
    let record = root().join("copies").join(disk.list(&root().join("copies")).unwrap()[0].clone());
    disk.open(&record, Open::Write).unwrap().write_at(&2u32.to_le_bytes(), 8).unwrap();
    assert_eq!(state(&disk), Some(State::Dropped));
    disk.open(&record, Open::Write).unwrap().write_at(b"x", 40).unwrap();
    assert_eq!(state(&disk), Some(State::Damaged));
    disk.unlink(&record).unwrap();
    assert_eq!(state(&disk), Some(State::Unfinished));
    let collected = gc(&Store::open(&disk, &root()).unwrap(), &gc::Options::default()).unwrap();
    assert_eq!((collected.copies, collected.orphans.len(), state(&disk)), (1, 0, None));
}

#[test]
fn a_record_that_names_another_file_takes_nothing_from_it() {
    let disk = with_copies();
    let store = Store::open(&disk, &root()).unwrap();
    stripewise_store::admin::metadata::newfile::create_file(&store, ID, &base().join("d/other"), None).unwrap();
    let record = root().join("copies").join(name(&disk));
    let mut bytes = read_small(&disk, &record, RECORD_BYTES_MAX).unwrap();
    let parsed = Record::parse(&bytes).unwrap();
    bytes = stripewise_store::copies::encode(&parsed.original, ID, parsed.path, &parsed.view.to_layout()).unwrap();
    disk.open(&record, Open::Write).unwrap().write_at(&bytes, 0).unwrap();
    assert_eq!(list(&store).unwrap()[0].state, State::Damaged);
    gc(&store, &gc::Options::default()).unwrap();
    assert_eq!(store.ids().unwrap(), [ID]);
}

prop_compose! {
    /// Loops whose blocks do not overlap, in any order.
    fn replicas()(
        block in 1u64..3000,
        loops in prop::collection::vec((0u64..2000, 2u64..4), 0..=8),
        order in any::<u64>(),
        base in 0u64..5000,
        cycle in prop::collection::vec(1u64..4, 1..=2),
        regions in 1usize..4,
        len in 1u64..6,
    ) -> ReplicaJson {
        let (mut reach, mut dims) = (block, Vec::new());
        for (gap, count) in loops {
            let stride = reach + gap;
            if reach + stride * (count - 1) > 400_000 {
                break;
            }
            dims.push((stride, count));
            reach += stride * (count - 1);
        }
        let turn = order as usize % dims.len().max(1);
        dims.rotate_left(turn);
        let stripes: Vec<_> = cycle.iter().enumerate().map(|(target, width)| (target as u32, width * 4 * K)).collect();
        let regions = (0..regions as u64).map(|n| region(n * len * 4 * K, len * 4 * K, &stripes)).collect();
        ReplicaJson { base, block, dims, regions, on_write: if order % 2 == 0 { OnWriteJson::Update } else { OnWriteJson::Invalidate } }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn each_block_of_any_pattern_reads_as_the_plain_file(replicas in prop::collection::vec(replicas(), 1..14)) {
        let end = |r: &ReplicaJson| r.base + r.block + r.dims.iter().map(|(stride, count)| stride * (count - 1)).sum::<u64>();
        let bytes = content(replicas.iter().map(end).max().unwrap() as usize);
        let disk = disk_with(&bytes);
        let store = Store::open(&disk, &root()).unwrap();
        let spec = ReplicasJson { replicas };
        let made = make(&store, &path(), &spec, true, &mut |_, _| true).unwrap();
        prop_assert_eq!(made.replicas, spec.replicas.len());
        let blocks: u64 = spec.replicas.iter().map(|r| r.dims.iter().map(|(_, count)| count).product::<u64>()).sum();
        prop_assert_eq!(wrong_bytes(&disk, &store, &bytes, &spec), Ok(blocks as usize));
    }
}
