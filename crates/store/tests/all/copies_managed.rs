//! Copies of managed files on the fake disk: a kill or power cut after every step of making and dropping them, and a program that writes at every step of the
//! making: no copy that counts is ever another than the file.

use crate::common::crashes::Crashes;
use crate::copies::{base, columns, make_them, path, plain, root, sparse};
use std::sync::atomic::{AtomicU32, Ordering};
use stripewise_store::admin::check::findings::{Options as Check, Severity};
use stripewise_store::admin::check::fsck::fsck;
use stripewise_store::admin::copies::list::{State, list};
use stripewise_store::admin::copies::make::{Earlier, make};
use stripewise_store::admin::copies::remove;
use stripewise_store::admin::fake::FakeDisk;
use stripewise_store::admin::gc::{self, gc};
use stripewise_store::admin::medium::{FsyncPoint, Meetings, Names, Open, read_small};
use stripewise_store::admin::metadata::data;
use stripewise_store::admin::moves::guide::Guide;
use stripewise_store::admin::transfer::{adopt, export};
use stripewise_store::admin::{Store, StoreError};
use stripewise_store::copies::{BUILDING, IN_USE, Original, RECORD_BYTES_MAX, Record, state_in};
use stripewise_store::ctl::boot_words;
use stripewise_store::marks::{self, Blocks, MARKS_HEAD_BYTES, Words};

const ID: u64 = 0x77;

fn name() -> String {
    format!("{:016x}-{ID:016x}", u64::MAX)
}

fn managed() -> FakeDisk {
    let disk = plain();
    adopt::adopt(&Store::open(&disk, &root()).unwrap(), ID, &path(), None, true).unwrap();
    disk.settle();
    disk
}

fn with_copies() -> FakeDisk {
    let disk = managed();
    make_them(&disk).unwrap();
    disk.settle();
    disk
}

fn drop_them(disk: &FakeDisk) -> Result<(), StoreError> {
    remove::drop(&Store::open(disk, &root())?, &name())
}

/// The marks of the file's copies, as a program has them mapped.
struct OnDisk<'a> {
    disk: &'a FakeDisk,
    size: u64,
}

impl OnDisk<'_> {
    fn at(block: u64) -> u64 {
        MARKS_HEAD_BYTES as u64 + block * 8
    }

    fn word(&self, at: u64) -> u64 {
        let file = self.disk.open(&root().join("copies").join(format!("{}.marks", name())), Open::Read).unwrap();
        let mut word = [0; 8];
        file.read_at(&mut word, at).unwrap();
        u64::from_ne_bytes(word)
    }

    fn put(&self, at: u64, value: u64) {
        let file = self.disk.open(&root().join("copies").join(format!("{}.marks", name())), Open::Write).unwrap();
        file.write_at(&value.to_ne_bytes(), at).unwrap();
    }
}

impl Words for OnDisk<'_> {
    fn blocks(&self) -> Blocks {
        Blocks::of(self.size)
    }

    fn load(&self, block: u64) -> u64 {
        self.word(Self::at(block))
    }

    fn add(&self, block: u64, value: u64) -> u64 {
        let before = self.load(block);
        self.put(Self::at(block), before.wrapping_add(value));
        before
    }

    fn set(&self, block: u64, bits: u64) {
        self.put(Self::at(block), self.load(block) | bits);
    }
}

/// The record, and the marks that go with it, as a program finds them by the control words.
fn found<'a>(disk: &'a FakeDisk, store: &Store<'_>, bytes: &'a mut Vec<u8>) -> Option<(Record<'a>, u32, OnDisk<'a>)> {
    let word = disk.ctl(&store.part(ID, "ctl"), false).ok()?.ctl().header().copies.load(Ordering::SeqCst);
    *bytes = read_small(disk, &root().join("copies").join(name()), RECORD_BYTES_MAX).ok()?;
    let state = state_in(bytes);
    let record = Record::parse(bytes).filter(|record| record.container == word && record.is_of(&Original::managed(ID, 0)))?;
    let size = record.original.size;
    let len = disk.open(&root().join("copies").join(format!("{}.marks", name())), Open::Read).ok()?.len().unwrap();
    let marks = OnDisk { disk, size };
    if len != Blocks::of(size).bytes() as u64 || marks.word(16) != record.container {
        return None;
    }
    let boot = [marks.word(24), marks.word(32)];
    let counts = boot == [0, 0] || boot == boot_words(&store.boot_id().unwrap());
    counts.then_some((record, state, marks))
}

/// What is wrong with what a reader would get, who reads block by block. How many blocks copies have given.
fn wrong_bytes(disk: &FakeDisk, store: &Store<'_>) -> Result<usize, String> {
    let mut bytes = Vec::new();
    let Some((record, IN_USE, marks)) = found(disk, store, &mut bytes) else { return Ok(0) };
    let (mut count, history) = (0, AtomicU32::new(0));
    for replica in &columns().replicas {
        let mut starts = vec![replica.base];
        for &(stride, steps) in &replica.dims {
            starts = starts.iter().flat_map(|at| (0..steps).map(move |n| at + n * stride)).collect();
        }
        for at in starts {
            let place = record.lookup(at, replica.block, &history).ok_or(format!("no copy of byte {at}"))?;
            if marks::look(&marks, at, replica.block, place.on_write).is_none() {
                continue;
            }
            let (mut copy, mut home) = (vec![0xee; replica.block as usize], vec![0; replica.block as usize]);
            data::read_file(store, record.container, place.at, &mut copy).map_err(|e| format!("the container cannot be read: {e}"))?;
            data::read_file(store, ID, at, &mut home).unwrap();
            if copy != home {
                return Err(format!("other bytes at {at}"));
            }
            count += 1;
        }
    }
    Ok(count)
}

/// As a program writes: marks, then the home. It brings no copies up to date, as one does that has no descriptor left for their container.
fn write(disk: &FakeDisk, at: u64, bytes: &[u8]) {
    let store = Store::open(disk, &root()).unwrap();
    let mut record = Vec::new();
    if let Some((of, IN_USE | BUILDING, marks)) = found(disk, &store, &mut record) {
        let boot = boot_words(&store.boot_id().unwrap());
        marks.put(24, boot[0]);
        marks.put(32, boot[1]);
        disk.settle();
        let (len, held) = (bytes.len() as u64, of.held(at, bytes.len() as u64));
        if held.is_invalidated {
            marks::invalidate_on_write(&marks, at, len);
        }
        if held.updated.count > 0 {
            marks::invalidate(&marks, at, len);
        }
    }
    data::write_file(&store, ID, at, bytes).unwrap();
}

/// This disk forgets all control words in a power cut; a real one may keep them.
fn bring_word_back(disk: &FakeDisk) {
    let store = Store::open(disk, &root()).unwrap();
    if let Ok(bytes) = read_small(disk, &root().join("copies").join(name()), RECORD_BYTES_MAX)
        && let Some(record) = Record::parse(&bytes)
    {
        disk.ctl(&store.part(ID, "ctl"), true).unwrap().ctl().header().copies.store(record.container, Ordering::SeqCst);
    }
}

/// What is wrong after a crash; repairs on the way. `done`: whether there must be copies, if that is certain.
fn violation(disk: &FakeDisk, done: Option<bool>) -> Option<String> {
    let store = Store::open(disk, &root()).unwrap();
    let before = match wrong_bytes(disk, &store) {
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
    let in_use = list(&store).unwrap().iter().any(|copies| copies.state == State::InUse);
    if before && !in_use {
        return Some("copies that are read are listed as others".into());
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
    match wrong_bytes(disk, &store) {
        Err(e) => return Some(format!("after gc: {e}")),
        Ok(count) if (count > 0) != before => return Some("gc dropped copies that count".into()),
        Ok(_) => {}
    }
    let mut now = vec![0; sparse().len()];
    data::read_file(&store, ID, 0, &mut now).unwrap();
    if now != sparse() {
        return Some("the file has other bytes".into());
    }
    let copies = disk.list(&root().join("copies")).map_or(0, |names| names.len());
    let files = store.ids().unwrap().len();
    let objects: usize = (0..2).map(|t| disk.list(&base().join(format!("t{t}"))).unwrap().len() - 1).sum();
    let trash = disk.list(&root().join("trash")).unwrap().len();
    match (in_use, copies, files, objects, trash) {
        (true, 3, 2, 4, 0) | (false, 0, 1, 2, 0) => None,
        left => Some(format!("left: {left:?}")),
    }
}

fn crashes(
    suppress: Option<FsyncPoint>,
    cut: bool,
    start: &dyn Fn() -> FakeDisk,
    work: &dyn Fn(&FakeDisk) -> Result<(), StoreError>,
    copies_after: bool,
) -> Option<String> {
    Crashes { start, work, cut, suppress }.after_each_step(0, |disk, finished| {
        if cut {
            bring_word_back(disk);
        }
        violation(disk, finished.then_some(copies_after))
    })
}

#[test]
fn a_kill_or_power_cut_after_any_step_leaves_copies_that_are_whole_or_none() {
    for cut in [false, true] {
        assert_eq!(crashes(None, cut, &managed, &make_them, true), None, "make, cut {cut}");
        assert_eq!(crashes(None, cut, &with_copies, &make_them, true), None, "make anew, cut {cut}");
        assert_eq!(crashes(None, cut, &with_copies, &drop_them, false), None, "drop, cut {cut}");
    }
}

#[test]
fn each_fsync_is_needed() {
    use FsyncPoint::*;
    // The record's own flush is made good by that of its state.
    for point in [SliceData, CopyMarks, CopyDir, CopyState] {
        let found = crashes(Some(point), true, &managed, &make_them, true);
        println!("without {point:?}: {}", found.as_deref().unwrap_or("nothing found"));
        assert!(found.is_some(), "leaving out {point:?} was not noticed");
    }
}

/// A guide that has little copied at once, and does something before each chunk.
struct InSmallSteps<F>(F);

impl<F: FnMut()> Guide for InSmallSteps<F> {
    fn chunk_bytes(&self) -> u64 {
        64 << 10
    }

    fn moved(&mut self, _done: u64, _total: u64) -> bool {
        (self.0)();
        true
    }
}

#[test]
fn a_program_that_writes_at_any_step_of_the_making_is_never_answered_by_a_copy() {
    let (patch, at) = (vec![0xab; 9_000], 20_000);
    for step in 0.. {
        let disk = managed();
        let mut asked = 0;
        let store = Store::open(&disk, &root()).unwrap();
        let made = make(
            &store,
            &path(),
            &columns(),
            true,
            &mut InSmallSteps(|| {
                asked += 1;
                if asked == step + 1 {
                    write(&disk, at, &patch);
                }
            }),
        );
        made.unwrap();
        let given = wrong_bytes(&disk, &store).unwrap_or_else(|e| panic!("written at step {step}: {e}"));
        assert!(given > 0);
        let stale = list(&store).unwrap()[0].stale_bytes;
        if asked <= step {
            assert_eq!(stale, 0);
            return;
        }
        assert_eq!(stale, 16 << 10);
    }
}

#[test]
fn what_was_written_does_not_count_in_another_boot_and_the_rest_does() {
    let disk = with_copies();
    disk.cut_power(1);
    bring_word_back(&disk);
    let store = Store::open(&disk, &root()).unwrap();
    assert!(wrong_bytes(&disk, &store).unwrap() > 0);
    write(&disk, 100, b"another text");
    assert!(wrong_bytes(&disk, &store).unwrap() > 0);
    disk.cut_power(2);
    bring_word_back(&disk);
    let store = Store::open(&disk, &root()).unwrap();
    assert_eq!(wrong_bytes(&disk, &store), Ok(0));
    assert_eq!(list(&store).unwrap()[0].state, State::Changed);
}

#[test]
fn the_same_copies_are_left_alone_until_the_file_is_written() {
    let disk = with_copies();
    let again = || make(&Store::open(&disk, &root()).unwrap(), &path(), &columns(), true, &mut |_, _| true).unwrap().earlier;
    assert_eq!(again(), Earlier::Same);
    write(&disk, 100, b"another text");
    assert_eq!(again(), Earlier::Replaced);
    assert_eq!(again(), Earlier::Same);
}

#[test]
fn a_file_that_is_a_plain_one_again_has_lost_its_copies() {
    let disk = with_copies();
    let store = Store::open(&disk, &root()).unwrap();
    assert!(export::export(&store, &path()).unwrap().dropped_copies);
    assert!(list(&store).unwrap().is_empty() && store.ids().unwrap().is_empty());
}

#[test]
fn a_kill_while_a_file_becomes_plain_leaves_copies_that_count_or_that_gc_takes() {
    let leave = |disk: &FakeDisk| export::export(&Store::open(disk, &root())?, &path()).map(drop);
    let broken = Crashes { start: &with_copies, work: &leave, cut: false, suppress: None }.after_each_step(0, |disk, _| {
        let store = Store::open(disk, &root()).unwrap();
        gc(&store, &gc::Options::default()).unwrap();
        let is_managed = store.ids().unwrap().contains(&ID);
        let (states, expected) = (list(&store).unwrap(), if is_managed { vec![State::InUse] } else { vec![] });
        (states.iter().map(|each| each.state).collect::<Vec<_>>() != expected).then(|| format!("{is_managed}: {states:?}"))
    });
    assert_eq!(broken, None);
}

#[test]
fn what_holds_copies_becomes_no_plain_file() {
    let disk = with_copies();
    let store = Store::open(&disk, &root()).unwrap();
    let link = root().join("copies").join(format!("{}.copy", name()));
    let refused = export::export(&store, &link).unwrap_err();
    assert!(matches!(&refused, StoreError::Invalid(why) if why.contains("stripewise store replica rm")), "{refused:?}");
    assert_eq!(list(&store).unwrap()[0].state, State::InUse);
}
