//! Several at once: handles, threads, and the ways beside reads and writes that a kind may offer.

use std::io::{IoSlice, IoSliceMut};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, munmap};

use super::{Subject, made, opened, pattern};
use crate::batch::{Request, read_at, submit, write_at};
use crate::interface::{Object, Target};
use crate::op::{Direction, Memory, Op};

/// At once, without a flush.
pub fn two_who_have_an_object_open_see_the_same_bytes(subject: &impl Subject) {
    let target = subject.fresh();
    let (one, other) = (made(&target, 1), opened(&target, 1));
    write_at(&one, b"one", 0).unwrap();
    let mut got = [0; 5];
    assert_eq!((read_at(&other, &mut got, 0), &got[..3]), (Ok(3), &b"one"[..]));
    write_at(&other, b"other", 0).unwrap();
    assert_eq!((read_at(&one, &mut got, 0), &got), (Ok(5), b"other"));
    one.set_len(1).unwrap();
    assert_eq!((other.len(), target.look(super::name(1)).unwrap().map(|facts| facts.len)), (Ok(1), Some(1)));
}

/// Each in objects of its own, and all in disjoint parts of one, by batches.
pub fn threads_do_not_mix_their_bytes(subject: &impl Subject) {
    const THREADS: u64 = 6;
    const ROUNDS: u64 = 40;
    const LEN: usize = 6000;
    let target = subject.fresh();
    let common = made(&target, 1000);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (target, common) = (&target, &common);
            scope.spawn(move || {
                let own = made(target, thread);
                for round in 0..ROUNDS {
                    let bytes = pattern(thread * ROUNDS + round, 0, LEN);
                    let parts = [IoSlice::new(&bytes[..1000]), IoSlice::new(&bytes[1000..])];
                    let at = (round * THREADS + thread) * LEN as u64;
                    let mut batch = [Request::new(&own, Op::write(&parts, round * 5000)), Request::new(common, Op::write(&parts, at))];
                    submit(&mut batch).wait();
                    assert!(batch.iter().all(|request| request.op.outcome.result() == Ok(LEN as u64)));
                    let (mut one, mut other) = (vec![0; LEN], vec![0; LEN]);
                    let (mut first, mut second) = ([IoSliceMut::new(&mut one)], [IoSliceMut::new(&mut other)]);
                    let mut batch = [Request::new(common, Op::read(&mut first, at)), Request::new(&own, Op::read(&mut second, round * 5000))];
                    submit(&mut batch).wait();
                    assert!(one == bytes && other == bytes, "thread {thread}, round {round}");
                }
                assert_eq!(own.len(), Ok((ROUNDS - 1) * 5000 + LEN as u64));
            });
        }
    });
    for piece in 0..THREADS * ROUNDS {
        let mut got = vec![0; LEN];
        read_at(&common, &mut got, piece * LEN as u64).unwrap();
        assert_eq!(got, pattern(piece % THREADS * ROUNDS + piece / THREADS, 0, LEN), "piece {piece}");
    }
}

/// Where there is one; and then a bad address is an error of the operation alone.
pub fn a_descriptor_reaches_the_same_bytes(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    let Some(fd) = object.descriptor() else { return };
    write_at(&object, b"by batch", 0).unwrap();
    let mut got = [0; 8];
    assert_eq!(rustix::io::pread(fd, &mut got, 0), Ok(8));
    assert_eq!(&got, b"by batch");
    rustix::io::pwrite(fd, b"by descriptor", 4).unwrap();
    let mut got = [0; 17];
    assert_eq!((read_at(&object, &mut got, 0), &got), (Ok(17), b"by bby descriptor"));
    for direction in [Direction::Read, Direction::Write] {
        let mut nowhere = [Memory { base: core::ptr::without_provenance_mut(64), len: 5 }];
        // SAFETY: no good address, which nothing but the kernel looks behind.
        let op = unsafe { Op::raw(direction, &mut nowhere, 0) };
        assert_eq!(crate::batch::alone(&object, op), Err(Errno::FAULT));
    }
}

/// Where objects can be mapped, both ways and without a flush.
pub fn a_map_shows_the_same_bytes(subject: &impl Subject) {
    const LEN: usize = 8192;
    let target = subject.fresh();
    let object = made(&target, 1);
    write_at(&object, &pattern(1, 0, 3 * LEN), 0).unwrap();
    // SAFETY: anywhere, and unmapped below.
    let mapped = unsafe { object.map(core::ptr::null_mut(), LEN, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, LEN as u64) };
    let base = match mapped {
        Err(errno) => {
            assert_eq!((errno, object.descriptor().is_none()), (Errno::NODEV, true), "what has a descriptor can be mapped");
            return;
        }
        Ok(base) => base,
    };
    // SAFETY: mapped for so many bytes of an object that is as long, until it is unmapped below.
    let bytes = unsafe { core::slice::from_raw_parts_mut(base, LEN) };
    assert_eq!(bytes, pattern(1, LEN as u64, LEN));
    bytes[100] = 0;
    let mut got = [9];
    assert_eq!((read_at(&object, &mut got, LEN as u64 + 100), got), (Ok(1), [0]));
    write_at(&object, b"new", LEN as u64).unwrap();
    // SAFETY: as above; read anew, for another has changed it.
    assert_eq!(unsafe { core::ptr::read_volatile(base.cast::<[u8; 3]>()) }, *b"new");
    // SAFETY: the mapping above, not used any more.
    unsafe { munmap(base.cast(), LEN).unwrap() };
}
