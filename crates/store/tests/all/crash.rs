//! Kills and power cuts after every single step, on the fake disk. The same rig with one fsync left out must find a violation,
//! for each fsync that the store does: else that fsync, or the rig, would be worth nothing.

use crate::common::crashes::seeds;
use crate::common::*;
use std::path::{Path, PathBuf};
use stripewise_layout::{Origin, spans};
use stripewise_store::admin::check::findings::{Options, Severity};
use stripewise_store::admin::check::fsck::fsck;
use stripewise_store::admin::fake::FakeDisk;
use stripewise_store::admin::gc::{self, gc};
use stripewise_store::admin::medium::{FsyncPoint, Names, Open};
use stripewise_store::admin::metadata::size::open_ctl;
use stripewise_store::admin::metadata::{data, newfile};
use stripewise_store::admin::spec::{LayoutJson, OriginJson, SpecJson};
use stripewise_store::admin::{Store, create};

/// Not a multiple of a block, so that a size rounded to blocks is noticed.
const SIZE: usize = 75_001;
/// From here on the file is a hole that only its object's length tells of.
const DATA: usize = 73_728;

fn base() -> PathBuf {
    PathBuf::from("/b")
}

fn two_of_three() -> SpecJson {
    spec(&base(), "dir", 3, 0, even(2, 16 * K, 4 * K))
}

/// Its second region stays where it is: the move must punch in the plane it leaves, not only remove objects.
fn new_home() -> LayoutJson {
    uneven(
        16 * K,
        &[&[(2, 16 * K)], &[(0, 4 * K), (1, 4 * K)], &[(0, 4 * K), (2, 8 * K)], &[(1, 4 * K), (0, 4 * K)], &[(2, 4 * K), (1, 4 * K), (0, 4 * K)]],
    )
}

fn empty_disk() -> FakeDisk {
    let disk = FakeDisk::new();
    disk.mkdir(&base()).unwrap();
    disk.settle();
    disk
}

fn content() -> Vec<u8> {
    let mut bytes = pattern(3, 0, DATA);
    bytes.resize(SIZE, 0);
    bytes
}

/// A file with content, all durable, its size known to ctl and the objects only.
fn disk_with_content() -> (FakeDisk, PathBuf) {
    let disk = empty_disk();
    let root = store_with_file(&disk, &base(), &two_of_three());
    let store = Store::open(&disk, &root).unwrap();
    data::write_file(&store, ID, 0, &content()[..DATA]).unwrap();
    let layout = store.layout(ID).unwrap();
    open_ctl(&store, ID, &layout).unwrap().ctl().raise_size(SIZE as u64);
    // As fallocate leaves it: bytes 65,536.. of the window at 64 KiB; its third stripe of 4 KiB is the second one on target 0.
    let object = disk.open(&store.object(0, ID, 0).unwrap(), Open::Write).unwrap();
    object.set_len(64 * K + 4 * K + (SIZE - DATA) as u64).unwrap();
    drop(object);
    disk.settle();
    (disk, root)
}

/// What is wrong with the file after a crash; repairs on the way.
fn violation(disk: &FakeDisk, root: &Path, finished: bool) -> Option<String> {
    let store = match Store::open(disk, root) {
        Ok(store) => store,
        Err(e) => return Some(format!("store: {e}")),
    };
    let look = match fsck(&store, Options::default()) {
        Ok(report) => report,
        Err(e) => return Some(format!("fsck: {e}")),
    };
    let bad = look.findings.iter().find(|f| f.severity == Severity::Error || (finished && ["move-interrupted", "object-unused"].contains(&f.code)));
    if let Some(bad) = bad {
        return Some(bad.message.clone());
    }
    if let Err(e) = fsck(&store, Options { repair: true, ..Options::default() }) {
        return Some(format!("repair: {e}"));
    }
    let again = fsck(&store, Options::default()).unwrap();
    if !again.problems.is_empty() {
        return Some(format!("after repair: {:?}", again.problems));
    }
    let got = read_all(&store, SIZE + 20_000);
    (got != content()).then(|| format!("{} bytes of content, {} expected, or other bytes", got.len(), SIZE))
}

/// Cuts the power after every step of an apply there and back; returns the first violation.
fn cuts_during_apply(suppress: Option<FsyncPoint>, seeds: u64) -> Option<String> {
    for step in 0.. {
        let mut finished = false;
        for seed in 0..seeds {
            let (disk, root) = disk_with_content();
            disk.suppress(suppress);
            disk.stop_after(step);
            {
                let store = Store::open(&disk, &root).unwrap();
                finished = apply_all(&store, &new_home()).and_then(|_| apply_all(&store, &even(2, 16 * K, 4 * K))).is_ok();
            }
            disk.cut_power(seed * 7919 + step);
            disk.suppress(None);
            if let Some(what) = violation(&disk, &root, finished) {
                return Some(format!("step {step}, seed {seed}: {what}"));
            }
        }
        if finished {
            return None;
        }
    }
    None
}

#[test]
fn a_power_cut_after_any_step_of_an_apply_loses_nothing() {
    assert_eq!(cuts_during_apply(None, seeds()), None);
}

#[test]
fn each_fsync_of_an_apply_is_needed() {
    let (disk, root) = disk_with_content();
    let before = disk.points_seen();
    let store = Store::open(&disk, &root).unwrap();
    apply_all(&store, &new_home()).unwrap();
    apply_all(&store, &even(2, 16 * K, 4 * K)).unwrap();
    let mut used = disk.points_seen();
    used.retain(|p| !before.contains(p));
    used.extend([FsyncPoint::LayoutTmp, FsyncPoint::LayoutDir, FsyncPoint::SliceDir]);
    used.sort();
    used.dedup();
    use FsyncPoint::*;
    assert_eq!(used, [LayoutTmp, LayoutDir, SliceData, SliceDir, PunchData, HeadSize, ObjectsGone]);
    for point in used {
        let found = cuts_during_apply(Some(point), 4 * seeds());
        println!("without {point:?}: {}", found.as_deref().unwrap_or("nothing found"));
        assert!(found.is_some(), "leaving out {point:?} was not noticed");
    }
}

#[test]
fn a_kill_after_any_step_of_an_apply_leaves_a_whole_file() {
    let wanted = LayoutJson { origin: Some(OriginJson::Given), ..new_home() };
    for step in 0.. {
        let (disk, root) = disk_with_content();
        let before = Store::open(&disk, &root).unwrap().layout(ID).unwrap().regions;
        disk.stop_after(step);
        let finished = apply_all(&Store::open(&disk, &root).unwrap(), &wanted).is_ok();
        disk.restart();
        assert_eq!(violation(&disk, &root, finished), None, "step {step}");
        let store = Store::open(&disk, &root).unwrap();
        // It is somebody's layout as soon as a part of the file has it, and not before.
        let layout = store.layout(ID).unwrap();
        let is_moved = !spans(&before, &layout.regions, SIZE as u64).is_empty();
        assert_eq!((layout.origin, is_moved || !finished), (if is_moved { Origin::Given } else { Origin::Own }, true), "step {step}");
        apply_all(&store, &wanted).unwrap();
        assert_eq!(store.layout(ID).unwrap().origin, Origin::Given, "step {step}");
        assert_eq!(read_all(&store, SIZE + 10), content(), "step {step}");
        if finished {
            return;
        }
    }
}

/// Also without anybody who recovers: programs read on by the layout that is in force.
#[test]
fn a_kill_after_any_step_of_a_move_from_each_plane_into_the_other_leaves_a_whole_file() {
    for step in 0.. {
        let (disk, root) = disk_with_content();
        let wanted = in_two_planes(&Store::open(&disk, &root).unwrap());
        disk.stop_after(step);
        let finished = apply_all(&Store::open(&disk, &root).unwrap(), &wanted).is_ok_and(|applied| applied.groups == 1);
        disk.restart();
        assert_eq!(read_all(&Store::open(&disk, &root).unwrap(), SIZE + 10), content(), "step {step}");
        assert_eq!(violation(&disk, &root, finished), None, "step {step}");
        if finished {
            return;
        }
    }
}

#[test]
fn an_apply_after_a_kill_needs_no_fsck_in_between() {
    for step in 0.. {
        let (disk, root) = disk_with_content();
        disk.stop_after(step);
        let finished = apply_all(&Store::open(&disk, &root).unwrap(), &new_home()).is_ok();
        disk.restart();
        let store = Store::open(&disk, &root).unwrap();
        apply_all(&store, &even(3, 16 * K, 8 * K)).unwrap();
        assert_eq!(violation(&disk, &root, true), None, "step {step}");
        if finished {
            return;
        }
    }
}

/// Runs a creation up to each step, cuts the power or kills, and returns the first violation of `check(disk, finished)`.
fn crashes(
    suppress: Option<FsyncPoint>,
    cut: bool,
    start: &dyn Fn() -> FakeDisk,
    work: &dyn Fn(&FakeDisk) -> bool,
    check: &dyn Fn(&FakeDisk, bool) -> Option<String>,
) -> Option<String> {
    for step in 0.. {
        let mut finished = false;
        for seed in 0..if cut { 4 * seeds() } else { 1 } {
            let disk = start();
            disk.suppress(suppress);
            disk.stop_after(step);
            finished = work(&disk);
            if cut {
                disk.cut_power(seed * 104_729 + step)
            } else {
                disk.restart()
            }
            disk.suppress(None);
            if let Some(what) = check(&disk, finished) {
                return Some(format!("step {step}, seed {seed}: {what}"));
            }
        }
        if finished {
            return None;
        }
    }
    None
}

fn store_is_whole(disk: &FakeDisk, finished: bool) -> Option<String> {
    let root = base().join("store");
    let there = disk.stat(&root.join("store.bin")).unwrap().is_some();
    if !there {
        // What a killed create left is no obstacle, even with another uuid.
        let again = SpecJson { uuid: "22".repeat(16), ..two_of_three() };
        let retry = create::create(disk, &root, &again).err().map(|e| format!("second create: {e}"));
        return if finished { Some("the store is gone".into()) } else { retry };
    }
    let check = || -> stripewise_store::admin::Result<Vec<String>> { Ok(fsck(&Store::open(disk, &root)?, Options::default())?.problems) };
    match check() {
        Ok(problems) => problems.into_iter().next(),
        Err(e) => Some(e.to_string()),
    }
}

#[test]
fn each_fsync_of_creating_a_store_is_needed_and_all_together_suffice() {
    let work = |disk: &FakeDisk| create::create(disk, &base().join("store"), &two_of_three()).is_ok();
    for cut in [false, true] {
        assert_eq!(crashes(None, cut, &empty_disk, &work, &store_is_whole), None);
    }
    for point in [FsyncPoint::StoreTmp, FsyncPoint::StoreDir, FsyncPoint::Identity] {
        assert!(crashes(Some(point), true, &empty_disk, &work, &store_is_whole).is_some(), "leaving out {point:?} was not noticed");
    }
}

fn disk_with_store() -> FakeDisk {
    let disk = empty_disk();
    create::create(&disk, &base().join("store"), &two_of_three()).unwrap();
    disk.settle();
    disk
}

fn file_is_whole(disk: &FakeDisk, finished: bool) -> Option<String> {
    let root = base().join("store");
    let store = Store::open(disk, &root).unwrap();
    let link = disk.read_link(&base().join("file")).is_ok();
    if finished && !link {
        return Some("the name is gone".into());
    }
    let report = match fsck(&store, Options::default()) {
        Ok(report) => report,
        Err(e) => return Some(e.to_string()),
    };
    if let Some(bad) = report.findings.iter().find(|f| f.severity == Severity::Error || (finished && f.severity == Severity::Warning)) {
        return Some(bad.message.clone());
    }
    if link && finished && data::read_file(&store, ID, 0, &mut [0; 8]).is_err() {
        return Some("the name leads to no file".into());
    }
    fsck(&store, Options { repair: true, ..Options::default() }).unwrap();
    let again = fsck(&store, Options::default()).unwrap();
    (again.errors > 0).then(|| format!("{:?}", again.problems))
}

#[test]
fn each_fsync_of_creating_a_file_is_needed_and_all_together_suffice() {
    let work = |disk: &FakeDisk| {
        let store = Store::open(disk, &base().join("store")).unwrap();
        newfile::create_file(&store, ID, &base().join("file"), None).is_ok()
    };
    for cut in [false, true] {
        assert_eq!(crashes(None, cut, &disk_with_store, &work, &file_is_whole), None);
    }
    use FsyncPoint::*;
    for point in [NewFileParts, FilesDir, LinkDir, NewFileDir, LayoutTmp] {
        assert!(crashes(Some(point), true, &disk_with_store, &work, &file_is_whole).is_some(), "leaving out {point:?} was not noticed");
    }
}

#[test]
fn each_fsync_of_emptying_the_trash_is_needed_and_all_together_suffice() {
    let start = || {
        let (disk, root) = disk_with_content();
        let id = format!("{ID:016x}");
        disk.rename(&root.join("files").join(&id), &root.join("trash").join(&id)).unwrap();
        disk.unlink(&base().join("file")).unwrap();
        disk.settle();
        disk
    };
    let work =
        |disk: &FakeDisk| gc(&Store::open(disk, &base().join("store")).unwrap(), &gc::Options::default()).is_ok_and(|done| done.problems.is_empty());
    let check = |disk: &FakeDisk, finished: bool| {
        let store = Store::open(disk, &base().join("store")).unwrap();
        let report = fsck(&store, Options::default()).unwrap();
        if let Some(bad) = report.findings.iter().find(|f| f.severity > Severity::Info || finished) {
            return Some(bad.message.clone());
        }
        gc(&store, &gc::Options::default()).err().map(|e| e.to_string())
    };
    for cut in [false, true] {
        assert_eq!(crashes(None, cut, &start, &work, &check), None);
    }
    for point in [FsyncPoint::ObjectsGone, FsyncPoint::TrashDir] {
        assert!(crashes(Some(point), true, &start, &work, &check).is_some(), "leaving out {point:?} was not noticed");
    }
}
