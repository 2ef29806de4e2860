//! What every kind of target must do, run for `dir` and `emulated` alike, on the real file system.

use crate::common::*;
use std::path::{Path, PathBuf};
use stripewise_layout::Origin;
use stripewise_store::admin::check::findings::{Options, Report};
use stripewise_store::admin::check::fsck::fsck;
use stripewise_store::admin::disk::RealDisk;
use stripewise_store::admin::gc::{self, gc};
use stripewise_store::admin::medium::{Machine, Meetings};
use stripewise_store::admin::metadata::data;
use stripewise_store::admin::moves::apply;
use stripewise_store::admin::spec::{LayoutJson, OriginJson};
use stripewise_store::admin::{Store, StoreError, capacity, create, info};
use stripewise_store::locks::How;

struct Rig {
    base: tempfile::TempDir,
    root: PathBuf,
}

static DISK: RealDisk = RealDisk::new();

impl Rig {
    fn new(kind: &str, capacity_bytes: u64) -> Self {
        let base = tempfile::tempdir().unwrap();
        let root = store_with_file(&DISK, base.path(), &spec(base.path(), kind, 3, capacity_bytes, even(3, 64 * K, 4 * K)));
        Self { base, root }
    }

    fn store(&self) -> Store<'static> {
        Store::open(&DISK, &self.root).unwrap()
    }

    fn fill(&self, size: usize) -> Vec<u8> {
        let content = pattern(7, 0, size);
        data::write_file(&self.store(), ID, 0, &content).unwrap();
        content
    }

    fn check(&self, repair: bool) -> Report {
        fsck(&self.store(), Options { repair, ..Options::default() }).unwrap()
    }

    fn codes(&self) -> Vec<&'static str> {
        self.check(false).findings.iter().map(|f| f.code).collect()
    }

    fn part(&self, part: &str) -> PathBuf {
        self.store().part(ID, part)
    }

    fn object(&self, target: u32) -> PathBuf {
        self.store().object(target, ID, 0).unwrap()
    }
}

fn skewed() -> stripewise_store::admin::spec::LayoutJson {
    uneven(64 * K, &[&[(0, 8 * K), (2, 20 * K)], &[(1, 64 * K)], &[(0, 4 * K), (1, 4 * K), (2, 4 * K)]])
}

fn contents_survive_a_move(kind: &str) {
    let rig = Rig::new(kind, 0);
    let content = rig.fill(300_123);
    let applied = apply_all(&rig.store(), &skewed()).unwrap();
    assert!(applied.moved_bytes > 0);
    assert_eq!(read_all(&rig.store(), 400_000), content);
    let again = apply_all(&rig.store(), &skewed()).unwrap();
    assert_eq!((again.moved_bytes, again.spans, again.generation), (0, 0, applied.generation));
    apply_all(&rig.store(), &even(3, 64 * K, 4 * K)).unwrap();
    assert_eq!(read_all(&rig.store(), 400_000), content);
    assert_eq!(rig.check(false).findings, []);
}

fn a_layout_keeps_its_origin_until_another_is_given(kind: &str) {
    let rig = Rig::new(kind, 0);
    rig.fill(300_000);
    let store = rig.store();
    let of = |origin, layout: LayoutJson| LayoutJson { origin, ..layout };
    let (even, own, given) = (even(3, 64 * K, 4 * K), Some(OriginJson::Own), Some(OriginJson::Given));
    let now = || store.layout(ID).unwrap().origin;
    let told = || info::layout_json(&store, ID).unwrap()["origin"].as_str().unwrap().to_owned();
    assert_eq!((now(), told()), (Origin::Own, "own".into()));
    // Of a file of which a part alone has it, too, but not where nothing could be moved.
    apply::apply(&store, ID, &of(given, skewed()), &mut |_, _| false).unwrap_err();
    assert_eq!((now(), told()), (Origin::Given, "given".into()));
    apply::apply(&store, ID, &of(own, even.clone()), &mut |_, _| false).unwrap_err();
    assert_eq!(now(), Origin::Given);
    apply_all(&store, &of(own, even.clone())).unwrap();
    assert_eq!(now(), Origin::Own);
    let broad = in_a_row([(64 * K, vec![(9, 4 * K)])]);
    apply_all(&store, &of(given, broad)).unwrap_err();
    assert_eq!(now(), Origin::Own);
    // Also where no byte moves.
    let applied = apply_all(&store, &of(given, even.clone())).unwrap();
    assert_eq!((now(), applied.moved_bytes), (Origin::Given, 0));
    assert_eq!(apply_all(&store, &of(given, even.clone())).unwrap().generation, applied.generation);
    // Who says nothing leaves it.
    apply_all(&store, &skewed()).unwrap();
    assert_eq!(now(), Origin::Given);
    apply_all(&store, &of(Some(OriginJson::Drained), even)).unwrap();
    assert_eq!((now(), told()), (Origin::Drained, "drained".into()));
    assert_eq!(rig.check(false).findings, []);
}

fn holes_stay_holes(kind: &str) {
    let rig = Rig::new(kind, 0);
    let far = 1 << 30;
    data::write_file(&rig.store(), ID, far, &pattern(1, far, 10_000)).unwrap();
    data::write_file(&rig.store(), ID, 100_000, &pattern(1, 100_000, 10_000)).unwrap();
    let before: u64 = capacity::used_bytes(&rig.store()).unwrap().iter().sum();
    let applied = apply_all(&rig.store(), &even(2, 64 * K, 8 * K)).unwrap();
    assert!(applied.moved_bytes < 100_000, "{applied:?}");
    let after: u64 = capacity::used_bytes(&rig.store()).unwrap().iter().sum();
    assert!(after <= before + 16 * K, "{before} {after}");
    let mut bytes = vec![0; 10_000];
    data::read_file(&rig.store(), ID, far, &mut bytes).unwrap();
    assert_eq!(bytes, pattern(1, far, 10_000));
    assert_eq!(rig.check(false).findings, []);
}

fn no_target_ever_holds_more_than_its_capacity(kind: &str) {
    // 1 MiB over three targets of 400 KiB: there is room for the data and for a few regions twice, not for all twice.
    let rig = Rig::new(kind, 400 * K);
    let content = rig.fill(1 << 20);
    let rotated: Vec<Vec<(u32, u64)>> = (0..16).map(|i| (0..3).map(|t| ((t + i) % 3, 8 * K)).collect()).collect();
    let wanted = uneven(64 * K, &rotated.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let mut worst = 0;
    let store = rig.store();
    apply::apply(&store, ID, &wanted, &mut |_, _| {
        worst = worst.max(*capacity::used_bytes(&store).unwrap().iter().max().unwrap());
        true
    })
    .unwrap();
    assert!(worst <= 400 * K, "{worst}");
    assert_eq!(read_all(&store, 2 << 20), content);
    let error = apply_all(&store, &even(1, 64 * K, 64 * K)).unwrap_err();
    assert!(matches!(error, StoreError::NoSpace(_)) && error.to_string().contains("target t0 has no room"), "{error}");
    assert!(error.to_string().contains(" KiB short; raise its capacity_bytes, free space there"), "{error}");
    assert_eq!(read_all(&store, 2 << 20), content);
}

fn a_move_that_lacks_room_on_the_way_changes_nothing(kind: &str) {
    // One region of 1 MiB over three targets of 400 KiB: turned by a target it fits, but nowhere beside itself. The small ones before it could move.
    let rig = Rig::new(kind, 400 * K);
    let turned = |by: u32| (0..3).map(|t| ((t + by) % 3, 8 * K)).collect::<Vec<_>>();
    let wanted = |by| in_a_row([(16 * K, turned(by)), (16 * K, turned(by)), (1024 * K, turned(by)), (1024 * K, turned(by))]);
    apply_all(&rig.store(), &wanted(0)).unwrap();
    let content = rig.fill(1024 * K as usize);
    let before = rig.store().layout(ID).unwrap().regions;
    let error = apply_all(&rig.store(), &wanted(1)).unwrap_err();
    assert!(matches!(error, StoreError::NoSpace(_)) && error.to_string().contains("no target has room to keep it while it moves"), "{error}");
    // Who asks first is told the same, and that what stands before it would move.
    let small_ones = in_a_row([(16 * K, turned(1)), (16 * K, turned(1)), (1024 * K, turned(0)), (1024 * K, turned(0))]);
    let told = |files: &[LayoutJson]| apply::without_room(&rig.store(), &files.iter().map(|f| (ID, f.clone())).collect::<Vec<_>>()).unwrap();
    assert_eq!(told(&[wanted(0), small_ones.clone()]), None);
    assert_eq!(told(&[small_ones, wanted(1)]), Some((1, error.to_string())));
    assert_eq!(rig.store().layout(ID).unwrap().regions, before);
    assert_eq!(read_all(&rig.store(), 2 << 20), content);
}

fn a_stopped_apply_leaves_the_growth_of_the_file_as_it_was(kind: &str) {
    let rig = Rig::new(kind, 0);
    rig.fill(3 * 64 * K as usize);
    let before = rig.store().layout(ID).unwrap().regions;
    apply::apply(&rig.store(), ID, &even(1, 64 * K, 64 * K), &mut |_, _| false).unwrap_err();
    let after = rig.store().layout(ID).unwrap().regions;
    assert_ne!(after, before);
    assert_eq!(after.last().unwrap().placement, before.last().unwrap().placement);
}

fn a_stopped_apply_leaves_a_whole_file_and_can_go_on(kind: &str) {
    let rig = Rig::new(kind, 0);
    let content = rig.fill(300_000);
    let error = apply::apply(&rig.store(), ID, &skewed(), &mut |_, _| false).unwrap_err();
    assert!(error.to_string().contains("run the same again for the rest"), "{error}");
    assert_eq!(read_all(&rig.store(), 400_000), content);
    assert_eq!(rig.check(false).findings, []);
    apply_all(&rig.store(), &skewed()).unwrap();
    assert_eq!(read_all(&rig.store(), 400_000), content);
}

fn a_mover_shares_the_store_with_programs_but_not_with_another_mover(kind: &str) {
    let rig = Rig::new(kind, 0);
    rig.fill(100_000);
    let session = rig.root.join("run/session.lock");
    let held = DISK.try_presence(&session, How::Shared).unwrap().unwrap();
    let name = format!("{}.7-{:016x}.slot", DISK.boot_id().unwrap(), 1);
    std::fs::write(rig.store().run_dir().join(&name), b"").unwrap();
    let slot = DISK.try_lock(&rig.store().run_dir().join(&name), true).unwrap().unwrap();
    assert!(matches!(fsck(&rig.store(), Options { repair: true, ..Options::default() }), Err(StoreError::InUse(_))));
    assert_eq!(rig.codes(), ["in-use"]);
    let mover = rig.store().lock_mover().unwrap();
    let error = apply_all(&rig.store(), &skewed()).unwrap_err();
    let expected = format!("process {} is moving files", std::process::id());
    assert!(matches!(error, StoreError::InUse(_)) && error.to_string().starts_with(&expected), "{error}");
    drop(mover);
    apply_all(&rig.store(), &skewed()).unwrap();
    drop((held, slot));
    let offline = rig.store().lock_exclusive().unwrap();
    assert!(matches!(apply_all(&rig.store(), &skewed()), Err(StoreError::InUse(_))));
    drop(offline);
}

fn the_check_sees_and_mends_what_is_wrong(kind: &str) {
    let rig = Rig::new(kind, 0);
    let content = rig.fill(100_000);
    assert_eq!(rig.codes(), ["head-size"]);
    rig.check(true);
    // Behind the slice of the first window, which is at most 24 KiB long.
    std::os::unix::fs::FileExt::write_all_at(&std::fs::File::options().write(true).open(rig.object(0)).unwrap(), b"leak", 40 * K).unwrap();
    assert_eq!(rig.codes(), ["foreign-bytes"]);
    assert_eq!(rig.check(true).mended, 1);
    let unused = rig.store().object(0, ID, 1).unwrap();
    std::fs::write(&unused, b"left by a killed move").unwrap();
    assert_eq!(rig.codes(), ["object-unused"]);
    assert_eq!(rig.check(true).mended, 1);
    assert!(!unused.exists());
    std::fs::write(rig.part("ctl"), b"short").unwrap();
    assert_eq!(rig.codes(), ["ctl-damaged"]);
    assert!(rig.check(true).findings[0].repaired);
    assert_eq!(read_all(&rig.store(), 200_000).len(), 100_000, "the size comes back from the objects");
    assert_eq!(read_all(&rig.store(), 200_000), content);
    std::fs::write(rig.root.join("files/stranger"), b"").unwrap();
    std::fs::write(rig.base.path().join("t1/00000000000000ff.data"), b"data").unwrap();
    assert_eq!(rig.codes(), ["stranger", "object-orphaned"]);
    rig.check(true);
    assert!(rig.base.path().join("t1/00000000000000ff.data").exists(), "bytes are never removed unasked");
    fsck(&rig.store(), Options { repair: true, purge: true }).unwrap();
    assert!(!rig.base.path().join("t1/00000000000000ff.data").exists());
    std::fs::remove_file(rig.object(2)).unwrap();
    assert!(rig.codes().contains(&"object-missing"));
    let problems = rig.check(false).problems.join("\n");
    let name = rig.base.path().join("file");
    for part in [format!("({})", name.display()), format!("run --store {} -- rm FILE", rig.root.display())] {
        assert!(problems.contains(&part), "{part}: {problems}");
    }
}

fn a_missing_name_is_reported_and_nothing_deleted(kind: &str) {
    let rig = Rig::new(kind, 0);
    let content = rig.fill(5000);
    let link = rig.base.path().join("file");
    std::fs::rename(&link, rig.base.path().join("moved")).unwrap();
    assert_eq!(rig.codes(), ["head-size", "orphaned"]);
    let told = |part: &str| assert!(rig.check(false).problems.join("\n").contains(part), "{part}: {:?}", rig.check(false).problems);
    let moved = rig.base.path().join("moved");
    told(&format!("{} is gone, but {} leads to it", link.display(), moved.display()));
    assert_eq!(info::nameless(&rig.store(), 10).unwrap().files.len(), 1);
    assert_eq!(info::nameless(&rig.store(), 0).unwrap().files.len(), 0);
    std::fs::write(&link, b"other").unwrap();
    assert!(rig.codes().contains(&"name-taken"));
    let far = rig.base.path().join("far");
    std::fs::create_dir(&far).unwrap();
    std::fs::rename(&moved, far.join("moved")).unwrap();
    told(&format!("stripewise store gc {} --purge", rig.root.display()));
    std::fs::rename(far.join("moved"), &moved).unwrap();
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(std::fs::read_link(rig.base.path().join("moved")).unwrap(), &link).unwrap();
    assert!(rig.codes().contains(&"link-copied"));
    rig.check(true);
    assert_eq!(read_all(&rig.store(), 10_000), content);
}

fn a_wrong_or_missing_target_directory_is_noticed(kind: &str) {
    let rig = Rig::new(kind, 0);
    rig.fill(100_000);
    let (a, b, aside) = (rig.base.path().join("t0"), rig.base.path().join("t1"), rig.base.path().join("aside"));
    std::fs::rename(&a, &aside).unwrap();
    let missing = rig.check(false);
    assert!(missing.problems[0].contains("t0 is missing"), "{:?}", missing.problems);
    // Another target comes all the same; one whose directory changes must be found there.
    let mut more = spec(rig.base.path(), kind, 3, 0, even(3, 64 * K, 4 * K));
    more.targets.push(target("t3", kind, &rig.base.path().join("t3"), 0));
    create::configure(&DISK, &rig.root, &more).unwrap();
    more.targets[0].path = rig.base.path().join("elsewhere").to_str().unwrap().into();
    assert!(matches!(create::configure(&DISK, &rig.root, &more), Err(StoreError::Invalid(_))));
    std::fs::rename(&b, &a).unwrap();
    std::fs::rename(&aside, &b).unwrap();
    let swapped = rig.check(true);
    assert_eq!(swapped.findings.iter().filter(|f| f.code == "target-wrong").count(), 2);
    assert!(swapped.problems[0].contains("swapped"), "{:?}", swapped.problems);
}

fn the_trash_is_emptied_only_when_asked_and_old_enough(kind: &str) {
    let rig = Rig::new(kind, 0);
    rig.fill(100_000);
    let id = format!("{ID:016x}");
    std::fs::rename(rig.root.join("files").join(&id), rig.root.join("trash").join(&id)).unwrap();
    assert_eq!(rig.codes(), ["in-trash"]);
    assert_eq!(gc(&rig.store(), &gc::Options::default()).unwrap().trash, 1);
    assert_eq!(rig.codes(), Vec::<&str>::new());
    assert_eq!(capacity::used_bytes(&rig.store()).unwrap(), [0, 0, 0]);
}

fn another_machines_slots_keep_the_store_closed_for_a_day(kind: &str) {
    let rig = Rig::new(kind, 0);
    if DISK.machine_id().unwrap().is_empty() {
        return;
    }
    let boot = "00000000-1111-4222-8333-444444444444";
    let slot = rig.root.join(format!("run/{boot}.9-{:016x}.slot", 1));
    let write = |machine: &str| {
        let mut header = vec![0u8; 56];
        header[..8].copy_from_slice(b"SWSLOT01");
        header[24..24 + machine.len()].copy_from_slice(machine.as_bytes());
        std::fs::write(&slot, header).unwrap();
    };
    write("elsewhere");
    let error = apply_all(&rig.store(), &skewed()).unwrap_err();
    assert!(error.to_string().contains("in use by machine elsewhere"), "{error}");
    write(&DISK.machine_id().unwrap());
    apply_all(&rig.store(), &skewed()).unwrap();
    assert!(!slot.exists(), "this machine's earlier boots are cleaned up");
}

fn what_an_older_version_left_of_a_boot_keeps_the_store_closed_or_goes(kind: &str) {
    let rig = Rig::new(kind, 0);
    let old = rig.root.join("run/00000000-1111-4222-8333-444444444444");
    std::fs::create_dir(&old).unwrap();
    std::fs::write(old.join("host"), "elsewhere\n").unwrap();
    std::fs::write(old.join("9-0.slot"), b"").unwrap();
    let error = apply_all(&rig.store(), &skewed()).unwrap_err();
    assert!(error.to_string().contains("in use by machine elsewhere"), "{error}");
    std::fs::write(old.join("host"), DISK.machine_id().unwrap()).unwrap();
    let now = rig.root.join("run").join(DISK.boot_id().unwrap());
    std::fs::create_dir(&now).unwrap();
    apply_all(&rig.store(), &skewed()).unwrap();
    assert!(!old.exists() && !now.exists());
}

macro_rules! for_every_kind {
    ($($name:ident),* $(,)?) => {
        mod dir { $(#[test] fn $name() { super::$name("dir"); })* }
        mod emulated { $(#[test] fn $name() { super::$name("emulated"); })* }
    };
}
for_every_kind!(
    contents_survive_a_move,
    a_layout_keeps_its_origin_until_another_is_given,
    holes_stay_holes,
    no_target_ever_holds_more_than_its_capacity,
    a_move_that_lacks_room_on_the_way_changes_nothing,
    a_stopped_apply_leaves_the_growth_of_the_file_as_it_was,
    a_stopped_apply_leaves_a_whole_file_and_can_go_on,
    a_mover_shares_the_store_with_programs_but_not_with_another_mover,
    the_check_sees_and_mends_what_is_wrong,
    a_missing_name_is_reported_and_nothing_deleted,
    a_wrong_or_missing_target_directory_is_noticed,
    the_trash_is_emptied_only_when_asked_and_old_enough,
    another_machines_slots_keep_the_store_closed_for_a_day,
    what_an_older_version_left_of_a_boot_keeps_the_store_closed_or_goes,
);

#[test]
fn each_bad_input_to_create_and_configure_is_one_clear_error() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path();
    let good = || spec(base, "dir", 2, 0, even(2, 64 * K, 4 * K));
    let root = base.join("store");
    let refuse = |change: &dyn Fn(&mut stripewise_store::admin::spec::SpecJson), part: &str| {
        let mut bad = good();
        change(&mut bad);
        let error = create::create(&DISK, &root, &bad).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
        assert!(!root.join("store.bin").exists());
    };
    refuse(&|s| s.targets.clear(), "0 targets");
    refuse(&|s| s.targets[1].name = "t0".into(), "both called");
    refuse(&|s| s.targets[1].path = s.targets[0].path.clone(), "both lie in");
    refuse(&|s| s.targets[0].path = "here".into(), "must be an absolute path");
    refuse(&|s| s.targets[0].path = base.join("no/such/place").to_str().unwrap().into(), "does not exist");
    refuse(&|s| s.targets[1].path = base.join("no/such/place").to_str().unwrap().into(), "does not exist");
    assert!(!base.join("t0/stripewise-target").exists(), "no target is taken for a store that is not made");
    refuse(&|s| s.targets[0].class = "tape".into(), "class is \"tape\"");
    refuse(&|s| s.targets[0].kind = "rados".into(), "kind is \"rados\"");
    refuse(&|s| s.uuid = "12".into(), "uuid");
    refuse(&|s| s.toml_sha256 = "zz".repeat(32), "toml_sha256");
    refuse(&|s| s.default_layout.regions.clear(), "regions is empty");
    refuse(&|s| s.default_layout.regions[0].stripes[0].0 = 9, "names target 9");
    refuse(&|s| s.default_layout.regions[0].stripes[0].1 = 5, "width 5");
    refuse(&|s| s.default_layout.regions[0].start = 4096, "without gaps");
    assert!(matches!(create::create(&DISK, Path::new("store"), &good()), Err(StoreError::Invalid(_))));
    create::create(&DISK, &root, &good()).unwrap();
    assert!(matches!(create::create(&DISK, &root, &good()), Err(StoreError::Exists(_))));
    let mut thief = good();
    thief.uuid = "33".repeat(16);
    let error = create::create(&DISK, &base.join("other"), &thief).unwrap_err();
    assert!(matches!(error, StoreError::Exists(_)) && error.to_string().contains("belongs to the store"), "{error}");
    assert!(matches!(create::configure(&DISK, &root, &thief), Err(StoreError::Invalid(_))));
    let mut more = good();
    more.targets.push(target("t2", "dir", &base.join("t2"), 0));
    create::configure(&DISK, &root, &more).unwrap();
    assert_eq!(Store::open(&DISK, &root).unwrap().targets.len(), 3);
    assert!(matches!(Store::open(&DISK, base), Err(StoreError::NotFound(_))));
    let mut newer = std::fs::read(root.join("store.bin")).unwrap();
    newer[8] = 9;
    std::fs::write(root.join("store.bin"), newer).unwrap();
    assert!(matches!(Store::open(&DISK, &root), Err(StoreError::Newer(_))));
}

#[test]
fn a_target_that_holds_data_cannot_be_dropped() {
    let rig = Rig::new("dir", 0);
    rig.fill(100_000);
    let mut fewer = spec(rig.base.path(), "dir", 2, 0, even(2, 64 * K, 4 * K));
    fewer.uuid = "11".repeat(16);
    let error = create::configure(&DISK, &rig.root, &fewer).unwrap_err();
    assert!(error.to_string().contains("no [[target]] table for target t2 any more, which holds data of "), "{error}");
    apply_all(&rig.store(), &even(2, 64 * K, 4 * K)).unwrap();
    create::configure(&DISK, &rig.root, &fewer).unwrap();
    assert_eq!(read_all(&rig.store(), 200_000), pattern(7, 0, 100_000));
}

#[test]
fn links_lead_to_files_through_other_links_and_loops_are_errors() {
    let rig = Rig::new("dir", 0);
    let at = |name: &str| rig.base.path().join(name);
    std::os::unix::fs::symlink("file", at("second")).unwrap();
    assert_eq!(info::resolve(&DISK, &at("second")).unwrap(), Some((rig.root.clone(), ID)));
    assert_eq!(info::resolve(&DISK, &at("t0")).unwrap(), None);
    std::os::unix::fs::symlink("loop", at("loop")).unwrap();
    assert!(info::resolve(&DISK, &at("loop")).is_err());
}
