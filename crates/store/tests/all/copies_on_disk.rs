//! Copies of plain files on the real file system: leases, times, rights, and what cannot be copied.

use crate::common::*;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use stripewise_store::admin::copies::list::{State, list};
use stripewise_store::admin::copies::make::{Earlier, Made, make};
use stripewise_store::admin::copies::remove;
use stripewise_store::admin::copies::spec::{OnWriteJson, ReplicaJson, ReplicasJson};
use stripewise_store::admin::disk::RealDisk;
use stripewise_store::admin::gc::{self, gc};
use stripewise_store::admin::metadata::{data, newfile};
use stripewise_store::admin::spec::RegionJson;
use stripewise_store::admin::{Result, Store, StoreError, create};

static DISK: RealDisk = RealDisk::new();

struct Rig {
    _kept: tempfile::TempDir,
    base: PathBuf,
    store: Store<'static>,
}

impl Rig {
    fn new(users: create::Users) -> Self {
        let kept = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(kept.path()).unwrap();
        let root = base.join("store");
        create::create_for(&DISK, &root, &spec(&base, "dir", 2, 0, even(2, 16 * K, 4 * K)), users).unwrap();
        fs::write(base.join("f"), pattern(1, 0, 50_000)).unwrap();
        Self { _kept: kept, store: Store::open(&DISK, &root).unwrap(), base }
    }

    fn file(&self) -> PathBuf {
        self.base.join("f")
    }

    fn make(&self, path: &Path) -> Result<Made> {
        make(&self.store, path, &columns(), true, &mut |_, _| true)
    }

    fn states(&self) -> Vec<State> {
        list(&self.store).unwrap().iter().map(|copies| copies.state).collect()
    }
}

fn columns() -> ReplicasJson {
    let regions = vec![RegionJson { start: 0, len: 8 * K, stripes: vec![(0, 4 * K), (1, 4 * K)] }];
    ReplicasJson { replicas: vec![ReplicaJson { base: 0, block: 500, dims: vec![(1000, 50)], regions, on_write: OnWriteJson::Update }] }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn who_has_the_file_open_to_write_it_keeps_it_from_being_copied_and_readers_do_not() {
    let rig = Rig::new(create::Users::Owner);
    let reader = File::open(rig.file()).unwrap();
    let writer = OpenOptions::new().append(true).open(rig.file()).unwrap();
    assert!(matches!(rig.make(&rig.file()), Err(StoreError::InUse(e)) if e.contains("is open for writing in a program")));
    assert!(rig.states().is_empty() && rig.store.ids().unwrap().is_empty());
    drop(writer);
    rig.make(&rig.file()).unwrap();
    assert_eq!(rig.states(), [State::InUse]);
    drop(reader);
}

#[test]
fn a_writer_is_seen_by_the_times_and_copies_are_made_anew() {
    let rig = Rig::new(create::Users::Owner);
    fs::hard_link(rig.file(), rig.base.join("second")).unwrap();
    let first = rig.make(&rig.file()).unwrap();
    let now = fs::metadata(rig.file()).unwrap();
    fs::write(rig.base.join("second"), pattern(2, 0, 50_000)).unwrap();
    assert_eq!(rig.states(), [State::Changed]);
    let second = rig.make(&rig.base.join("second")).unwrap();
    assert!(first.name == second.name && first.container != second.container && now.ino() == fs::metadata(rig.file()).unwrap().ino());
    assert_eq!(rig.states(), [State::InUse]);
    let mut got = vec![0; 500];
    data::read_file(&rig.store, rig.store.ids().unwrap()[0], 500, &mut got).unwrap();
    assert_eq!(got, pattern(2, 1000, 500));
    fs::remove_file(rig.base.join("second")).unwrap();
    assert_eq!(rig.states(), [State::Gone]);
    assert_eq!(gc(&rig.store, &gc::Options::default()).unwrap().copies, 1);
    assert!(rig.states().is_empty() && rig.store.ids().unwrap().is_empty());
}

#[test]
fn the_same_copies_are_left_alone_while_they_count_and_lie_where_they_are_wanted() {
    let rig = Rig::new(create::Users::Owner);
    let first = rig.make(&rig.file()).unwrap();
    assert_eq!(first.earlier, Earlier::None);
    let record = rig.store.root.join("copies").join(&first.name);
    let inode = fs::metadata(&record).unwrap().ino();
    assert_eq!(rig.make(&rig.file()).unwrap(), Made { earlier: Earlier::Same, ..first.clone() });
    assert_eq!(fs::metadata(&record).unwrap().ino(), inode);
    // Other blocks, a touched file, a lost object: each is made anew, and said to replace what stood.
    let mut other = columns();
    other.replicas[0].block = 400;
    let mut before = make(&rig.store, &rig.file(), &other, true, &mut |_, _| true).unwrap();
    assert!(before.earlier == Earlier::Replaced && before.container != first.container);
    for lose in [false, false, true] {
        let id = rig.store.ids().unwrap()[0];
        if lose {
            fs::remove_file(rig.store.object(1, id, 0).unwrap()).unwrap();
        } else {
            File::options().write(true).open(rig.file()).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
        }
        let made = rig.make(&rig.file()).unwrap();
        assert!(made.earlier == Earlier::Replaced && made.container != before.container, "{made:?}");
        before = made;
    }
    // A target that is away is no reason to take away what lies on the others.
    let (there, away) = (rig.base.join("t1"), rig.base.join("elsewhere"));
    fs::rename(&there, &away).unwrap();
    let disk = RealDisk::new();
    let anew = Store::open(&disk, &rig.store.root).unwrap();
    let refused = make(&anew, &rig.file(), &columns(), true, &mut |_, _| true).unwrap_err();
    assert!(matches!(&refused, StoreError::Damaged(why) if why.contains("is away")), "{refused:?}");
    fs::rename(&away, &there).unwrap();
    assert_eq!(rig.make(&rig.file()).unwrap(), Made { earlier: Earlier::Same, ..before });
}

#[test]
fn copies_are_the_store_owners_alone_whoever_may_read_the_file() {
    let rig = Rig::new(create::Users::Owner);
    fs::set_permissions(rig.file(), Permissions::from_mode(0o666)).unwrap();
    // As root: a file of somebody else.
    let is_root = std::os::unix::fs::chown(rig.file(), Some(1003), Some(1004)).is_ok();
    let made = rig.make(&rig.file()).unwrap();
    let id = rig.store.ids().unwrap()[0];
    let own = fs::metadata(&rig.store.root).unwrap().uid();
    let copies = rig.store.root.join("copies");
    for path in [copies.join(&made.name), rig.store.part(id, "head"), rig.store.object(0, id, 0).unwrap(), rig.store.object(1, id, 0).unwrap()] {
        assert_eq!((mode(&path), fs::metadata(&path).unwrap().uid()), (0o600, own), "{}", path.display());
    }
    assert_eq!(mode(&copies), mode(&rig.store.root.join("files")));
    assert!(is_root || own != 0);
    assert_eq!(rig.states(), [State::InUse]);
    assert_eq!(stripewise_store::admin::check::fsck::fsck(&rig.store, Default::default()).unwrap().problems, Vec::<String>::new());
    remove::drop(&rig.store, &made.name).unwrap();
    assert!(rig.store.ids().unwrap().is_empty());
    assert!(matches!(remove::drop(&rig.store, &made.name), Err(StoreError::NotFound(_))));
    assert!(matches!(remove::drop(&rig.store, "../files"), Err(StoreError::Invalid(_))));
}

#[test]
fn a_shared_store_takes_no_copies() {
    let rig = Rig::new(create::Users::All);
    assert!(matches!(rig.make(&rig.file()), Err(StoreError::Invalid(why)) if why.contains("shared")));
    assert!(rig.store.ids().unwrap().is_empty() && !rig.store.root.join("copies").exists());
}

#[test]
fn of_commands_that_copy_one_file_at_a_time_at_least_one_succeeds_and_one_set_of_copies_is_left() {
    let rig = Rig::new(create::Users::Owner);
    let made: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| rig.make(&rig.file()))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(made.iter().any(Result::is_ok), "{made:?}");
    let refused = made.iter().filter_map(|made| made.as_ref().err()).all(|e| matches!(e, StoreError::InUse(_)));
    assert!(refused, "{made:?}");
    assert_eq!(rig.states(), [State::InUse]);
    gc(&rig.store, &gc::Options::default()).unwrap();
    assert_eq!((rig.states(), rig.store.ids().unwrap().len()), (vec![State::InUse], 1));
}

#[test]
fn what_can_have_no_copies_is_refused_by_name() {
    let rig = Rig::new(create::Users::Owner);
    let refused = |path: &Path, why: &str| {
        let error = rig.make(path).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    symlink("f", rig.base.join("link")).unwrap();
    newfile::create_file(&rig.store, newfile::fresh_id(&rig.store).unwrap(), &rig.base.join("managed"), None).unwrap();
    fs::write(rig.store.root.join("inside"), "x").unwrap();
    fs::write(rig.base.join("short"), "x").unwrap();
    refused(&rig.base.join("none"), "does not exist");
    refused(&rig.base.join("link"), "is a symbolic link; name the file it leads to");
    refused(&rig.base.join("managed"), "replicas[0] ends at byte 49500, the file has 0 bytes");
    symlink("/stripewise:/elsewhere/0123456789abcdef", rig.base.join("others")).unwrap();
    refused(&rig.base.join("others"), "is a managed file of the store /elsewhere; give that one");
    refused(&rig.base.join("store"), "is not a regular file");
    refused(&rig.store.root.join("inside"), "which belongs to the store");
    refused(&rig.base.join("short"), "replicas[0] ends at byte 49500, the file has 1 bytes");
    assert!(rig.states().is_empty() && rig.store.ids().unwrap().len() == 1);
}
