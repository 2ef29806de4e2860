//! Streams of a file's bytes: nothing before all can be opened, and no silence about an output that is cut short.

use crate::common::*;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;
use stripewise_store::admin::disk::RealDisk;
use stripewise_store::admin::error::Result;
use stripewise_store::admin::metadata::data;
use stripewise_store::admin::metadata::reader::{Objects, layout_bytes, view};
use stripewise_store::admin::{Store, StoreError};
use stripewise_target::interface::Opening;

/// More than is read at once, in two regions: the second lies on the second target alone.
const FIRST: u64 = 8 << 20;
const SIZE: u64 = FIRST + (1 << 20);

fn stream(store: &Store<'_>, range: (u64, u64), holes: bool, each: impl FnMut(u64, &[u8]) -> Result<bool>) -> Result<()> {
    let bytes = layout_bytes(store, ID)?;
    Objects::new(store, ID, view(store, ID, &bytes)?, Opening::READ).stream(range.0, range.1, holes, each)
}

fn with_two_regions(base: &Path, work: impl Fn(&Store<'_>)) {
    let disk = RealDisk::new();
    let root = store_with_file(&disk, base, &spec(base, "dir", 2, 0, uneven(FIRST, &[&[(0, 64 * K)], &[(1, 64 * K)]])));
    let store = Store::open(&disk, &root).unwrap();
    data::write_file(&store, ID, 0, &pattern(5, 0, SIZE as usize)).unwrap();
    work(&store);
}

#[test]
fn no_byte_is_handed_over_unless_all_objects_are_there() {
    let kept = tempfile::tempdir().unwrap();
    with_two_regions(kept.path(), |store| {
        fs::remove_file(store.object(1, ID, 0).unwrap()).unwrap();
        for holes in [true, false] {
            let error = stream(store, (0, SIZE), holes, |_, _| panic!("a byte was handed over")).unwrap_err().to_string();
            assert!(error.contains("is missing") && !error.contains("incomplete"), "{error}");
        }
        // What is not asked for need not be there.
        let mut count = 0;
        stream(store, (0, FIRST), true, |_, part| {
            Ok({
                count += part.len() as u64;
                true
            })
        })
        .unwrap();
        assert_eq!(count, FIRST);
    });
}

/// Puts a directory, which nobody can read, in place of an open object.
fn spoil(object: &Path) {
    let held = |fd: &fs::DirEntry| fs::read_link(fd.path()).is_ok_and(|leads_to| leads_to == object);
    let dir = File::open("/").unwrap();
    for fd in fs::read_dir("/proc/self/fd").unwrap().flatten().filter(held) {
        // SAFETY: a descriptor of this test's own object.
        unsafe { libc::dup2(dir.as_raw_fd(), fd.file_name().to_str().unwrap().parse().unwrap()) };
    }
}

#[test]
fn what_fails_on_the_way_says_that_the_output_is_incomplete() {
    let kept = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(kept.path()).unwrap();
    with_two_regions(&base, |store| {
        let object = store.object(1, ID, 0).unwrap();
        let read = |holes| {
            stream(store, (0, SIZE), holes, |at, _| {
                Ok({
                    spoil(&object);
                    at == 0
                })
            })
            .unwrap_err()
            .to_string()
        };
        let said = format!("the output is incomplete: it has at most {FIRST} of {SIZE} bytes");
        assert!(read(true).contains(&said), "{}", read(true));
        assert!(!read(false).contains("incomplete"), "{}", read(false));
        let full = |_, _: &[u8]| Err(StoreError::NoSpace("the disk is full".into()));
        assert_eq!(stream(store, (0, SIZE), true, full).unwrap_err().to_string(), format!("the disk is full; {said}"));
        assert_eq!(stream(store, (0, SIZE), false, full).unwrap_err().to_string(), "the disk is full");
    });
}
