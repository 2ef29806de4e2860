//! Verbs on a store whose objects are in no directory: on another disk, and with another process that serves them over shared memory. Whatever reached for an
//! object other than through its target would find nothing.

use crate::common::*;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use stripewise_store::admin::check::findings::Options;
use stripewise_store::admin::check::fsck::fsck;
use stripewise_store::admin::check::scrub::{Pace, Scrubbed, scrub_file};
use stripewise_store::admin::fake::FakeDisk;
use stripewise_store::admin::gc::{self, gc};
use stripewise_store::admin::medium::{Names, Open};
use stripewise_store::admin::metadata::data;
use stripewise_store::admin::spec::LayoutJson;
use stripewise_store::admin::transfer::{adopt, export};
use stripewise_store::admin::{Store, capacity, create, info, objects};
use stripewise_target::any::Any;
use stripewise_target::fake::{Disk, Fake};
use stripewise_target::interface::Target;
use stripewise_target::shared_memory::{self, Remote};

const SIZE: usize = 400_003;
const TARGETS: u32 = 3;

fn base() -> PathBuf {
    PathBuf::from("/b")
}

/// A disk with a plain file at /b/d/f; the objects of a store on it come from `place`.
fn disk(place: impl Fn(&Path) -> Any + Send + Sync + 'static) -> FakeDisk {
    let disk = FakeDisk::new();
    disk.put_objects(place);
    disk.mkdir(&base()).unwrap();
    disk.mkdir(&base().join("d")).unwrap();
    create::create(&disk, &base().join("store"), &spec(&base(), "dir", TARGETS as usize, 0, even(2, 16 * K, 4 * K))).unwrap();
    let file = disk.open(&plain(), Open::CreateNew).unwrap();
    file.write_at(&pattern(3, 0, SIZE - 50_000), 0).unwrap();
    file.set_len(SIZE as u64).unwrap();
    disk
}

fn plain() -> PathBuf {
    base().join("d").join("f")
}

fn content() -> Vec<u8> {
    let mut bytes = pattern(3, 0, SIZE - 50_000);
    bytes.resize(SIZE, 0);
    bytes
}

fn new_home() -> LayoutJson {
    uneven(64 * K, &[&[(2, 16 * K), (0, 4 * K)], &[(0, 4 * K), (1, 4 * K)], &[(2, 64 * K)]])
}

fn check(store: &Store<'_>) {
    let report = fsck(store, Options::default()).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// A file's whole life: adopted, moved there and back, written, scrubbed, removed or exported.
fn lives(disk: &FakeDisk) {
    let store = Store::open(disk, &base().join("store")).unwrap();
    adopt::adopt(&store, ID, &plain(), None, true).unwrap();
    assert_eq!(read_all(&store, SIZE + 1000), content());
    check(&store);
    let used = capacity::used_bytes(&store).unwrap();
    assert!(used[0] > 0 && used[1] > 0 && used[2] == 0, "{used:?}");
    let moved = apply_all(&store, &new_home()).unwrap();
    assert!(moved.moved_bytes > 0);
    assert!(capacity::used_bytes(&store).unwrap()[2] > 0);
    assert_eq!(read_all(&store, SIZE + 1000), content());
    let expected = moved_about(&store, content());
    check(&store);
    let mut done = Scrubbed::default();
    for _ in 0..2 {
        scrub_file(&store, ID, &Pace::new(0), &mut done).unwrap();
    }
    assert!(done.rot.is_empty() && done.bytes > 0 && done.summed > 0, "{done:?}");
    assert_eq!(info::devices_json(&store).unwrap()["targets"][0]["files"], 1);
    export::export(&store, &plain()).unwrap();
    let mut got = vec![9; expected.len()];
    assert_eq!(disk.open(&plain(), Open::Read).unwrap().read_at(&mut got, 0).unwrap(), expected.len());
    assert!(got == expected, "an exported file has other bytes");
    gc(&store, &gc::Options::default()).unwrap();
    check(&store);
    for target in 0..TARGETS {
        assert_eq!(objects::list(&store, target).unwrap(), []);
        assert_eq!(disk.list(&base().join(format!("t{target}"))).unwrap(), ["stripewise-target"]);
    }
}

/// Writes behind the end, and moves some regions through both planes; returns what the file holds then.
fn moved_about(store: &Store<'_>, mut bytes: Vec<u8>) -> Vec<u8> {
    let more = pattern(7, 0, 30_000);
    data::write_file(store, ID, SIZE as u64 + 5000, &more).unwrap();
    bytes.resize(SIZE + 5000, 0);
    bytes.extend_from_slice(&more);
    let some = uneven(64 * K, &[&[(1, 4 * K)], &[(0, 4 * K), (1, 4 * K)], &[(2, 64 * K)]]);
    for layout in [&some, &even(3, 128 * K, 8 * K), &new_home(), &some] {
        apply_all(store, layout).unwrap();
        assert_eq!(read_all(store, bytes.len() + 1), bytes);
        check(store);
    }
    bytes
}

#[test]
fn verbs_work_on_objects_of_another_disk() {
    let other = Disk::new();
    lives(&disk(move |dir| {
        let place = PathBuf::from("/").join(dir.file_name().unwrap());
        let _ = other.make_dir(&place);
        Any::other(Fake::new(&other, &place))
    }));
}

#[test]
fn verbs_work_on_objects_that_another_process_serves() {
    let servers: Mutex<HashMap<PathBuf, Arc<Remote>>> = Mutex::default();
    lives(&disk(move |dir| {
        let mut servers = servers.lock().unwrap();
        let server = servers.entry(dir.to_path_buf()).or_insert_with(|| Arc::new(Remote::start("elsewhere::the_server_of_the_remote_kind")));
        assert!(server.free_bytes().unwrap() > 0);
        Any::other(Arc::clone(server))
    }));
}

/// Started by the test above, as a process of its own; otherwise it has nothing to do.
#[test]
fn the_server_of_the_remote_kind() {
    shared_memory::serve();
}
