//! Making, finding and removing objects; what a target says of itself.

use rustix::io::Errno;

use super::{Subject, listed, made, name, opened, pattern};
use crate::batch::{read_at, write_at};
use crate::identity::Identity;
use crate::interface::{Object, Opening, Target};
use crate::names::{ObjectName, Role};
use crate::within::Refusal;

/// Bytes by which used bytes may be off: blocks of the target's own.
const SLACK_BYTES: u64 = 256 << 10;

/// A second creation is refused and touches nothing.
pub fn an_object_is_made_once_and_is_empty(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    assert_eq!((object.len(), object.next_data(0)), (Ok(0), Ok(None)));
    write_at(&object, b"first", 0).unwrap();
    assert_eq!(target.create(name(1), 0o600, None).err(), Some(Errno::EXIST));
    assert_eq!(target.create(name(1), 0o600, Some(&mut |_| Ok(()))).err(), Some(Errno::EXIST));
    assert_eq!(target.look(name(1)).unwrap().unwrap().len, 5);
}

/// Not even for reading, and removing it says so, too.
pub fn a_missing_object_is_an_error_and_never_a_hole(subject: &impl Subject) {
    let target = subject.fresh();
    drop(made(&target, 1));
    for opening in [Opening::READ, Opening::BOTH] {
        assert_eq!(target.open(name(2), opening).err(), Some(Refusal::Os(Errno::NOENT)));
    }
    assert_eq!(target.look(name(2)), Ok(None));
    assert_eq!(target.remove(name(2), &[]), Err(Refusal::Os(Errno::NOENT)));
    assert_eq!(listed(&target), [name(1)]);
}

/// Planes and replicas have names of their own.
pub fn the_objects_of_a_file_are_apart(subject: &impl Subject) {
    let target = subject.fresh();
    let names = ObjectName::ROLES.map(|role| ObjectName { file: 7, role });
    for (stamp, name) in (0..).zip(names) {
        write_at(&target.create(name, 0o600, None).unwrap(), &pattern(stamp, 0, 100), 0).unwrap();
    }
    for (stamp, name) in (0..).zip(names) {
        let mut got = [0; 100];
        assert_eq!(read_at(&target.open(name, Opening::READ).unwrap(), &mut got, 0), Ok(100));
        assert_eq!(got.as_slice(), pattern(stamp, 0, 100));
    }
    target.remove(ObjectName { file: 7, role: Role::Plane1 }, &[]).unwrap();
    assert_eq!(listed(&target), [names[0], names[2]]);
}

/// More than one buffer of names' worth of them.
pub fn a_list_names_what_was_made_and_not_what_was_removed(subject: &impl Subject) {
    let target = subject.fresh();
    assert_eq!(listed(&target), []);
    (0..300).for_each(|file| drop(made(&target, file << 40 | file)));
    (0..300).step_by(3).for_each(|file| target.remove(name(file << 40 | file), &[]).unwrap());
    target.identify(b"no object").unwrap();
    let left: Vec<_> = (0..300).filter(|file| file % 3 != 0).map(|file| name(file << 40 | file)).collect();
    assert_eq!(listed(&target), left);
    // An error ends it and is the caller's.
    let mut seen = 0;
    let ended = target.list(&mut |_| {
        seen += 1;
        Err(Errno::CANCELED)
    });
    assert_eq!((ended, seen), (Err(Errno::CANCELED), 1));
}

/// And of one whose preparation failed nothing is left.
pub fn nobody_finds_an_object_that_is_not_ready(subject: &impl Subject) {
    let target = subject.fresh();
    let mut calls = 0;
    let object = target.create(
        name(1),
        0o600,
        Some(&mut |object| {
            calls += 1;
            write_at(object, b"ready", 0)?;
            assert_eq!(target.open(name(1), Opening::READ).err(), Some(Refusal::Os(Errno::NOENT)));
            assert_eq!((target.look(name(1)), listed(&target)), (Ok(None), vec![]));
            Ok(())
        }),
    );
    let mut got = [0; 8];
    assert_eq!((read_at(&object.unwrap(), &mut got, 0), calls), (Ok(5), 1));
    assert_eq!(read_at(&opened(&target, 1), &mut got, 0), Ok(5));
    let failed = target.create(name(2), 0o600, Some(&mut |_| Err(Errno::DQUOT)));
    assert_eq!(failed.err(), Some(Errno::DQUOT));
    assert_eq!((target.look(name(2)), listed(&target)), (Ok(None), vec![name(1)]));
    drop(made(&target, 2));
}

/// A new object of the name is another one.
pub fn a_removed_object_keeps_its_bytes_for_whoever_has_it_open(subject: &impl Subject) {
    let target = subject.fresh();
    let old = made(&target, 1);
    write_at(&old, b"old", 0).unwrap();
    target.remove(name(1), &[]).unwrap();
    let new = made(&target, 1);
    write_at(&new, b"newer", 0).unwrap();
    let mut got = [0; 8];
    assert_eq!(read_at(&old, &mut got, 0), Ok(3));
    assert_eq!(&got[..3], b"old");
    write_at(&old, b"still", 3).unwrap();
    assert_eq!((old.len(), new.len()), (Ok(8), Ok(5)));
}

/// Holes take nothing, and what was removed gives back what it took.
pub fn used_bytes_follow_the_objects(subject: &impl Subject) {
    let target = subject.fresh();
    let empty = target.used_bytes().unwrap();
    assert!(empty <= SLACK_BYTES, "{empty} bytes used by no object");
    assert!(target.free_bytes().unwrap() > 4 << 20, "the suite needs some room");
    let object = made(&target, 1);
    object.set_len(1 << 30).unwrap();
    write_at(&object, &pattern(1, 0, 2 << 20), 512 << 20).unwrap();
    object.sync().unwrap();
    let (facts, used) = (target.look(name(1)).unwrap().unwrap(), target.used_bytes().unwrap());
    assert_eq!(facts.len, 1 << 30);
    for bytes in [facts.used_bytes, used - empty] {
        assert!((2 << 20..=(2 << 20) + SLACK_BYTES).contains(&bytes), "{bytes} bytes used by 2 MiB of data");
    }
    drop(object);
    target.remove(name(1), &[]).unwrap();
    let after = target.used_bytes().unwrap();
    assert!(after <= empty + SLACK_BYTES, "{after} bytes used after all was removed");
}

/// Even where its length does not: who keeps checksums goes by that.
pub fn what_is_told_of_an_object_changes_with_its_bytes(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    let mut before = target.look(name(1)).unwrap().unwrap();
    assert_eq!(Some(before), target.look(name(1)).unwrap());
    for change in 0..4 {
        // Clocks of file systems are coarse.
        std::thread::sleep(std::time::Duration::from_millis(30));
        match change {
            0 => object.set_len(20_000).unwrap(),
            1 => write_at(&object, b"same length", 5000).unwrap(),
            2 => write_at(&object, b"some length", 5000).unwrap(),
            _ => object.punch(4096, 4096).unwrap(),
        }
        let after = target.look(name(1)).unwrap().unwrap();
        let times = (after.modified_ns != before.modified_ns, after.changed_ns != before.changed_ns);
        assert_eq!((times, after.len), ((true, true), 20_000), "change {change}");
        before = after;
    }
}

/// As the store writes it, and as somebody else would.
pub fn an_identity_reads_back_until_another_takes_its_place(subject: &impl Subject) {
    let target = subject.fresh();
    let mut room = [0; 2048];
    assert_eq!(target.identity(&[], &mut room), Ok(0));
    for text in [&b"stripewise-target 1\nuuid abababababababababababababababab\nindex 7\nstore /s/a b\n"[..], b"another's", &[b'x'; 1500]] {
        target.identify(text).unwrap();
        let len = target.identity(&[], &mut room).unwrap();
        assert_eq!(&room[..len], text);
    }
    target.identify(b"stripewise-target 1\nuuid 00000000000000000000000000000001\nindex 0\nstore /\n").unwrap();
    let len = target.identity(&[], &mut room).unwrap();
    assert_eq!(Identity::parse(&room[..len]).map(|identity| (identity.index, identity.store)), Some((0, &b"/"[..])));
    assert_eq!(listed(&target), []);
}
