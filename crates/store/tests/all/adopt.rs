//! Adopting and exporting on the fake disk: a kill or power cut after every step, with each fsync left out in turn, and somebody who
//! wants to open the file at every step.

use crate::common::crashes::Crashes;
use crate::common::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use stripewise_store::admin::check::findings::{Options, Severity};
use stripewise_store::admin::check::fsck::fsck;
use stripewise_store::admin::check::scrub;
use stripewise_store::admin::fake::FakeDisk;
use stripewise_store::admin::gc::{self, gc};
use stripewise_store::admin::medium::{FsyncPoint, Kind, Names, Open};
use stripewise_store::admin::metadata::data;
use stripewise_store::admin::transfer::{adopt, export};
use stripewise_store::admin::{Store, StoreError, create};

/// Data, a hole, data, and a hole at the end that only head can tell of.
const SIZE: usize = 90_001;
const PARTS: [(usize, usize); 2] = [(0, 30_000), (49_152, 70_000)];

fn base() -> PathBuf {
    PathBuf::from("/b")
}

fn path() -> PathBuf {
    base().join("d/f")
}

fn content() -> Vec<u8> {
    let mut bytes = vec![0; SIZE];
    for (from, to) in PARTS {
        bytes[from..to].copy_from_slice(&pattern(5, from as u64, to - from));
    }
    bytes
}

fn root() -> PathBuf {
    base().join("store")
}

fn disk_with_plain_file(exchange: bool) -> FakeDisk {
    let disk = FakeDisk::new();
    if !exchange {
        disk.forbid_exchange();
    }
    disk.mkdir(&base()).unwrap();
    disk.mkdir(&base().join("d")).unwrap();
    create::create(&disk, &root(), &spec(&base(), "dir", 2, 0, even(2, 16 * K, 4 * K))).unwrap();
    let file = disk.open(&path(), Open::CreateNew).unwrap();
    for (from, to) in PARTS {
        file.write_at(&content()[from..to], from as u64).unwrap();
    }
    file.set_len(SIZE as u64).unwrap();
    drop(file);
    disk.settle();
    disk
}

fn adopt_it(disk: &FakeDisk) -> Result<(), StoreError> {
    let store = Store::open(disk, &root())?;
    adopt::adopt(&store, ID, &path(), None, true).map(drop)
}

fn export_it(disk: &FakeDisk) -> Result<(), StoreError> {
    export::export(&Store::open(disk, &root())?, &path()).map(drop)
}

fn disk_with_adopted_file(exchange: bool) -> FakeDisk {
    let disk = disk_with_plain_file(exchange);
    adopt_it(&disk).unwrap();
    disk.settle();
    disk
}

fn is_managed(disk: &FakeDisk) -> Option<bool> {
    disk.stat(&path()).unwrap().map(|s| s.kind == Kind::Link)
}

/// What is wrong with the name and the bytes behind it.
fn wrong_bytes(disk: &FakeDisk, store: &Store<'_>) -> Option<String> {
    let mut got = vec![0xee; SIZE + 1000];
    let n = match is_managed(disk) {
        None => return Some("the name is gone".into()),
        Some(true) => match data::read_file(store, ID, 0, &mut got) {
            Ok(n) => n,
            Err(e) => return Some(format!("the managed file cannot be read: {e}")),
        },
        Some(false) => disk.open(&path(), Open::Read).unwrap().read_at(&mut got, 0).unwrap(),
    };
    got.truncate(n);
    (got != content()).then(|| format!("{n} bytes of content, {SIZE} expected, or other bytes"))
}

/// What is wrong after a crash; repairs on the way. `done`: whether the file must be managed, if that is certain.
fn violation(disk: &FakeDisk, done: Option<bool>) -> Option<String> {
    let store = Store::open(disk, &root()).unwrap();
    if let Some(wrong) = wrong_bytes(disk, &store) {
        return Some(format!("before repair: {wrong}"));
    }
    let look = fsck(&store, Options::default()).unwrap();
    if let Some(bad) = look.findings.iter().find(|f| f.severity == Severity::Error) {
        return Some(bad.message.clone());
    }
    if let Err(e) = fsck(&store, Options { repair: true, ..Options::default() }) {
        return Some(format!("repair: {e}"));
    }
    if let Err(e) = gc(&store, &gc::Options::default()) {
        return Some(format!("gc: {e}"));
    }
    let again = fsck(&store, Options::default()).unwrap();
    if !again.problems.is_empty() {
        return Some(format!("after repair: {:?}", again.problems));
    }
    if let Some(wrong) = wrong_bytes(disk, &store) {
        return Some(format!("after repair: {wrong}"));
    }
    if done.is_some() && is_managed(disk) != done {
        return Some("what was reported as done is undone".into());
    }
    let names = disk.list(&base().join("d")).unwrap();
    if names != ["f"] {
        return Some(format!("left beside the file: {names:?}"));
    }
    let files = store.ids().unwrap();
    let objects: usize = (0..2).map(|t| disk.list(&base().join(format!("t{t}"))).unwrap().len() - 1).sum();
    match (is_managed(disk), files.len(), objects) {
        (Some(true), 1, 2) | (Some(false), 0, 0) => None,
        (_, files, objects) => Some(format!("{files} files and {objects} objects are in the store")),
    }
}

/// Stops `work` after each step by kill or power cut, with one fsync left out; returns the first violation.
fn crashes_from(
    first_step: u64,
    suppress: Option<FsyncPoint>,
    cut: bool,
    start: &dyn Fn() -> FakeDisk,
    work: &dyn Fn(&FakeDisk) -> Result<(), StoreError>,
    managed_after: bool,
) -> Option<String> {
    Crashes { start, work, cut, suppress }.after_each_step(first_step, |disk, finished| violation(disk, finished.then_some(managed_after)))
}

fn crashes(
    suppress: Option<FsyncPoint>,
    cut: bool,
    start: &dyn Fn() -> FakeDisk,
    work: &dyn Fn(&FakeDisk) -> Result<(), StoreError>,
    managed_after: bool,
) -> Option<String> {
    crashes_from(0, suppress, cut, start, work, managed_after)
}

#[test]
fn a_kill_or_power_cut_after_any_step_of_an_adoption_leaves_the_file_plain_or_managed() {
    for exchange in [true, false] {
        for cut in [false, true] {
            assert_eq!(crashes(None, cut, &|| disk_with_plain_file(exchange), &adopt_it, true), None, "exchange {exchange}, cut {cut}");
        }
    }
}

#[test]
fn a_kill_or_power_cut_after_any_step_of_an_export_leaves_the_file_plain_or_managed() {
    for cut in [false, true] {
        assert_eq!(crashes(None, cut, &|| disk_with_adopted_file(true), &export_it, false), None, "cut {cut}");
    }
}

#[test]
fn each_fsync_of_an_adoption_is_needed() {
    use FsyncPoint::*;
    for point in [Journal, FilesDir, SliceDir, SliceData, LayoutTmp, HeadSize, NewFileParts, NewFileDir, Swapped] {
        let found = crashes(Some(point), true, &|| disk_with_plain_file(true), &adopt_it, true);
        println!("without {point:?}: {}", found.as_deref().unwrap_or("nothing found"));
        assert!(found.is_some(), "leaving out {point:?} was not noticed");
    }
}

#[test]
fn each_fsync_of_an_export_is_needed() {
    use FsyncPoint::*;
    for point in [Journal, ExportData, Swap, Trashed, ObjectsGone] {
        let found = crashes(Some(point), true, &|| disk_with_adopted_file(true), &export_it, false);
        println!("without {point:?}: {}", found.as_deref().unwrap_or("nothing found"));
        assert!(found.is_some(), "leaving out {point:?} was not noticed");
    }
}

#[test]
fn the_same_command_after_a_kill_needs_no_fsck_in_between() {
    for step in 0.. {
        let disk = disk_with_plain_file(true);
        disk.stop_after(step);
        let finished = adopt_it(&disk).is_ok();
        disk.restart();
        let store = Store::open(&disk, &root()).unwrap();
        match adopt::adopt(&store, ID + 1, &path(), None, true) {
            Ok(done) if !done.was_managed => {
                let mut got = vec![0; SIZE];
                data::read_file(&store, ID + 1, 0, &mut got).unwrap();
                assert_eq!(got, content(), "step {step}");
            }
            // It was finished by the kill's own half, or by this command.
            Ok(_) => assert_eq!(violation(&disk, Some(true)), None, "step {step}"),
            Err(e) => panic!("step {step}: {e}"),
        }
        // An empty directory may be left of the first try.
        fsck(&store, Options { repair: true, ..Options::default() }).unwrap();
        let report = fsck(&store, Options::default()).unwrap();
        assert!(report.problems.is_empty(), "step {step}: {:?}", report.problems);
        if finished {
            return;
        }
    }
}

#[test]
fn whoever_opens_the_file_at_any_step_stops_the_adoption_and_finds_the_plain_file() {
    for exchange in [true, false] {
        for step in 0.. {
            let disk = disk_with_plain_file(exchange);
            disk.want_after(Some(step));
            let result = adopt_it(&disk);
            disk.want_after(None);
            assert_eq!(violation(&disk, Some(result.is_ok())), None, "step {step}");
            match result {
                Ok(()) => {
                    assert!(step > 30);
                    break;
                }
                Err(e) => assert!(matches!(e, StoreError::InUse(_)), "step {step}: {e}"),
            }
        }
    }
}

#[test]
fn a_power_cut_while_the_names_change_back_leaves_the_file_whole() {
    for exchange in [true, false] {
        // The change of places and what follows it are the last steps.
        let disk = disk_with_plain_file(exchange);
        let before = disk.steps();
        adopt_it(&disk).unwrap();
        let steps = disk.steps() - before;
        let cuts = |point| {
            let work = |wanted: u64| {
                move |disk: &FakeDisk| {
                    disk.want_after(Some(wanted));
                    adopt_it(disk)
                }
            };
            (steps - 6..steps - 1).find_map(|wanted| crashes_from(wanted - 1, point, true, &|| disk_with_plain_file(exchange), &work(wanted), true))
        };
        assert_eq!(cuts(None), None, "exchange {exchange}");
        assert!(cuts(Some(FsyncPoint::Swap)).is_some(), "leaving out the fsync was not noticed");
    }
}

#[test]
fn a_file_with_another_name_is_not_adopted_and_stays_as_it_is() {
    let disk = disk_with_plain_file(true);
    disk.hard_link(&path(), &base().join("second")).unwrap();
    assert!(matches!(adopt_it(&disk), Err(StoreError::Invalid(e)) if e.contains("2 hard links")));
    disk.unlink(&base().join("second")).unwrap();
    assert_eq!(violation(&disk, Some(false)), None);
}

#[test]
fn a_file_without_room_is_refused_before_anything_is_changed() {
    let disk = disk_with_plain_file(true);
    disk.set_free_bytes(20_000);
    let before = disk.steps();
    assert!(matches!(adopt_it(&disk), Err(StoreError::NoSpace(_))));
    // The lock's file, made at the first use of the store, is all.
    assert!(disk.steps() <= before + 1);
    assert_eq!(violation(&disk, Some(false)), None);
}

#[test]
fn holes_stay_holes_in_and_out() {
    let disk = disk_with_plain_file(true);
    let before = disk.stat(&path()).unwrap().unwrap().allocated_bytes;
    adopt_it(&disk).unwrap();
    let objects: u64 = (0..2).map(|t| disk.stat(Path::new(&format!("/b/t{t}/{ID:016x}.data"))).unwrap().unwrap().allocated_bytes).sum();
    assert_eq!(objects, before);
    export_it(&disk).unwrap();
    let after = disk.stat(&path()).unwrap().unwrap();
    assert_eq!((after.allocated_bytes, after.size), (before, SIZE as u64));
}

/// Runs `work` on a store that is told to stop at its first question, at its second, and so on; returns how often it was stopped.
fn stopped_at_each_question(
    disk: impl Fn() -> FakeDisk,
    work: impl Fn(&Store<'_>) -> Result<(), StoreError>,
    is_whole: impl Fn(&FakeDisk) -> Option<String>,
) -> usize {
    for question in 0.. {
        let (disk, asked) = (disk(), AtomicUsize::new(0));
        let goes_on = || asked.fetch_add(1, Ordering::SeqCst) < question;
        let ended = work(&Store { asked: Some(&goes_on), ..Store::open(&disk, &root()).unwrap() });
        assert_eq!(is_whole(&disk), None, "question {question}");
        match ended {
            Ok(()) => return question,
            Err(e) => assert!(matches!(e, StoreError::Stopped(_)), "question {question}: {e}"),
        }
    }
    unreachable!()
}

#[test]
fn who_is_asked_to_stop_stops_and_leaves_the_file_plain_or_managed() {
    let adopt = |store: &Store<'_>| adopt::adopt(store, ID, &path(), None, true).map(drop);
    let export = |store: &Store<'_>| export::export(store, &path()).map(drop);
    let (plain, adopted) = (|| disk_with_plain_file(true), || disk_with_adopted_file(true));
    // Before each part that is copied, and each of the two objects that is summed.
    assert_eq!(stopped_at_each_question(plain, adopt, |disk| violation(disk, None)), PARTS.len() + 2);
    assert_eq!(stopped_at_each_question(adopted, export, |disk| violation(disk, None)), 1);
    type Look = fn(&Store<'_>) -> Result<(), StoreError>;
    let looks: [Look; 3] = [
        |store| fsck(store, Options::default()).map(drop),
        |store| gc(store, &gc::Options::default()).map(drop),
        |store| scrub::scrub_file(store, ID, &scrub::Pace::new(0), &mut scrub::Scrubbed::default()),
    ];
    for look in looks {
        assert!(stopped_at_each_question(adopted, look, |disk| violation(disk, Some(true))) > 0);
    }
}
