//! Directories: what stands in the place of an object and is none, and whose it is.

use std::ffi::CString;
use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::io::Errno;
use stripewise_target::dir::Dir;
use stripewise_target::interface::{Object, Opening, Target};
use stripewise_target::names::ObjectName;
use stripewise_target::within::{Refusal, open_root};

fn place() -> (tempfile::TempDir, Dir) {
    let dir = tempfile::tempdir().unwrap();
    let made = Dir::new(open_root(&CString::new(dir.path().to_str().unwrap()).unwrap(), &[]).unwrap().0);
    (dir, made)
}

#[test]
fn what_stands_in_the_place_of_an_object_is_never_opened() {
    let (dir, target) = place();
    let name = ObjectName::of_plane(7, 0);
    let at = dir.path().join(String::from_utf8_lossy(name.text().as_bytes()).as_ref());
    std::fs::write(dir.path().join("victim"), b"precious").unwrap();
    symlink("victim", &at).unwrap();
    assert_eq!(target.open(name, Opening::BOTH).err(), Some(Refusal::Link));
    assert_eq!(target.create(name, 0o600, None).err(), Some(Errno::EXIST));
    std::fs::remove_file(&at).unwrap();
    std::fs::hard_link(dir.path().join("victim"), &at).unwrap();
    assert_eq!(target.open(name, Opening::READ).err(), Some(Refusal::HardLink));
    std::fs::remove_file(&at).unwrap();
    drop(target.create(name, 0o640, None).unwrap());
    assert_eq!(std::fs::metadata(&at).unwrap().permissions().mode() & 0o7777, 0o640);
    let (me, other) = (rustix::process::geteuid().as_raw(), [rustix::process::geteuid().as_raw() + 1]);
    assert_eq!(target.open(name, Opening::READ.of(&other)).err(), Some(Refusal::Owner));
    assert_eq!(target.remove(name, &other), Err(Refusal::Owner));
    assert!(target.open(name, Opening::READ.of(&[me])).is_ok());
    assert_eq!(target.remove(name, &[me]), Ok(()));
    assert_eq!(std::fs::read(dir.path().join("victim")).unwrap(), b"precious");
}

#[test]
fn an_object_opened_for_one_thing_does_no_other() {
    let (_dir, target) = place();
    let name = ObjectName::of_plane(7, 0);
    drop(target.create(name, 0o600, None).unwrap());
    let read = target.open(name, Opening::READ).unwrap();
    assert_eq!(stripewise_target::batch::write_at(&read, b"x", 0), Err(Errno::BADF));
    let write = target.open(name, Opening { reads: false, writes: true, keeps_times: false, owners: &[] }).unwrap();
    assert_eq!(stripewise_target::batch::read_at(&write, &mut [0], 0), Err(Errno::BADF));
    assert_eq!(read.len(), Ok(0));
}

#[test]
fn a_creation_leaves_nothing_but_the_object() {
    let (dir, target) = place();
    let name = ObjectName::of_plane(7, 1);
    drop(target.create(name, 0o600, Some(&mut |_| Ok(()))).unwrap());
    assert!(target.create(name, 0o600, Some(&mut |_| Ok(()))).is_err());
    assert!(target.create(ObjectName::of_plane(8, 1), 0o600, Some(&mut |_| Err(Errno::PERM))).is_err());
    target.identify(b"identity").unwrap();
    let mut left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, ["0000000000000007.data1", "stripewise-target"]);
}
