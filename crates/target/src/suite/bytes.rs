//! Reading and writing, alone and in batches.

use std::io::{IoSlice, IoSliceMut};

use rustix::io::Errno;

use super::{Subject, made, pattern};
use crate::batch::{Request, read_at, submit, write_at};
use crate::interface::Object;
use crate::op::{OFFSET_MAX, Op};

/// Whatever the boundaries of pages.
pub fn what_is_written_reads_back_from_any_offset(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    for (at, len) in [(0, 1), (4095, 2), (4096, 4096), (8191, 10_000), (70_001, 300_000), (1 << 40, 5000)] {
        write_at(&object, &pattern(1, at, len), at).unwrap();
        for (skip, want) in [(0, len), (len / 2, len - len / 2), (len - 1, 1)] {
            let mut got = vec![0; want];
            assert_eq!(read_at(&object, &mut got, at + skip as u64), Ok(want), "{at}+{skip}");
            assert_eq!(got, pattern(1, at + skip as u64, want), "{at}+{skip}");
        }
    }
    write_at(&object, &pattern(2, 0, 100), 70_050).unwrap();
    let mut got = vec![0; 200];
    read_at(&object, &mut got, 70_001).unwrap();
    assert_eq!(got, [pattern(1, 70_001, 49), pattern(2, 0, 100), pattern(1, 70_150, 51)].concat());
}

/// Behind it there is nothing, and no error.
pub fn a_read_is_short_at_the_end_only(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    let mut got = vec![9; 100];
    assert_eq!(read_at(&object, &mut got, 0), Ok(0));
    write_at(&object, &pattern(1, 0, 10_000), 0).unwrap();
    for (at, want) in [(9_950, 50), (9_999, 1), (10_000, 0), (10_001, 0), (1 << 50, 0)] {
        got.fill(9);
        assert_eq!(read_at(&object, &mut got, at), Ok(want), "{at}");
        assert_eq!(got[..want], pattern(1, at, want));
        assert!(got[want..].iter().all(|byte| *byte == 9), "behind the end nothing is touched");
    }
    assert_eq!(object.len(), Ok(10_000));
}

/// Before, between and behind those that somebody wrote.
pub fn bytes_that_nobody_wrote_are_zeros(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    write_at(&object, b"x", 1_000_000).unwrap();
    write_at(&object, b"y", 3_000_001).unwrap();
    let mut got = vec![9; 3_000_002];
    assert_eq!(read_at(&object, &mut got, 0), Ok(3_000_002));
    assert_eq!((got[1_000_000], got[3_000_001]), (b'x', b'y'));
    assert!(got.iter().enumerate().all(|(at, byte)| *byte == 0 || at == 1_000_000 || at == 3_000_001));
}

/// Begun in one order, whatever order the target does them in; reads and writes side by side.
pub fn a_batch_moves_the_bytes_of_several_objects(subject: &impl Subject) {
    const OBJECTS: usize = 9;
    const LEN: usize = 70_000;
    let target = subject.fresh();
    let objects: Vec<_> = (0..OBJECTS as u64).map(|file| made(&target, file)).collect();
    let data: Vec<_> = (0..OBJECTS as u64).map(|file| pattern(file, 0, LEN)).collect();
    let mut parts: Vec<_> =
        data.iter().map(|bytes| [IoSlice::new(&bytes[..10]), IoSlice::new(&bytes[10..40_000]), IoSlice::new(&bytes[40_000..])]).collect();
    let mut batch: Vec<_> = objects.iter().zip(&mut parts).map(|(object, parts)| Request::new(object, Op::write(parts, 5000))).collect();
    submit(&mut batch).wait();
    for request in &batch {
        assert_eq!((request.op.outcome.done, request.op.outcome.error), (LEN as u64, None));
    }
    drop(batch);
    // Each object twice, in two halves, the last one first; every third is written meanwhile, elsewhere.
    let mut halves = vec![(vec![0; LEN / 2], vec![0; LEN / 2]); OBJECTS];
    let more = pattern(99, 0, 1000);
    let mut slices: Vec<_> =
        halves.iter_mut().map(|(one, other)| ([IoSliceMut::new(one)], [IoSliceMut::new(other)], [IoSlice::new(&more)])).collect();
    let mut batch = Vec::new();
    for (file, (object, (one, other, extra))) in objects.iter().zip(&mut slices).enumerate().rev() {
        batch.push(Request::new(object, Op::read(other, 5000 + LEN as u64 / 2)));
        if file % 3 == 0 {
            batch.push(Request::new(object, Op::write(extra, 200_000)));
        }
        batch.push(Request::new(object, Op::read(one, 5000)));
    }
    submit(&mut batch).wait();
    assert!(batch.iter().all(|request| request.op.outcome.result() == Ok(request.op.len())));
    drop(batch);
    for (file, (one, other)) in halves.iter().enumerate() {
        assert_eq!([&one[..], &other[..]].concat(), data[file], "object {file}");
        assert_eq!(objects[file].len(), Ok(if file % 3 == 0 { 201_000 } else { 5000 + LEN as u64 }));
    }
}

/// Far more than one call of the kernel takes, empty ones among them.
pub fn an_operation_has_any_number_of_stretches(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    let lens: Vec<usize> = (0..3000).map(|i| if i % 7 == 0 { 0 } else { i % 61 }).collect();
    let total: usize = lens.iter().sum();
    let bytes = pattern(1, 0, total);
    let mut rest = bytes.as_slice();
    let parts: Vec<_> = lens
        .iter()
        .map(|len| {
            let (part, behind) = rest.split_at(*len);
            rest = behind;
            IoSlice::new(part)
        })
        .collect();
    let mut batch = [Request::new(&object, Op::write(&parts, 777))];
    submit(&mut batch).wait();
    assert_eq!(batch[0].op.outcome.result(), Ok(total as u64));
    let mut room: Vec<Vec<u8>> = lens.iter().rev().map(|len| vec![0; *len]).collect();
    let mut parts: Vec<_> = room.iter_mut().map(|part| IoSliceMut::new(part)).collect();
    let mut batch = [Request::new(&object, Op::read(&mut parts, 777))];
    submit(&mut batch).wait();
    assert_eq!(batch[0].op.outcome.result(), Ok(total as u64));
    assert_eq!(room.concat(), bytes);
}

/// Wherever it is; it makes no object longer.
pub fn an_operation_without_bytes_does_nothing(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    write_at(&object, b"abc", 0).unwrap();
    for at in [0, 3, 100, OFFSET_MAX] {
        let (empty, mut into) = ([IoSlice::new(&[]), IoSlice::new(&[])], []);
        let mut batch = [Request::new(&object, Op::write(&empty, at)), Request::new(&object, Op::write(&[], at))];
        submit(&mut batch).wait();
        assert!(batch.iter().all(|request| request.op.outcome.result() == Ok(0)));
        assert_eq!(read_at(&object, &mut into, at), Ok(0));
    }
    assert_eq!(object.len(), Ok(3));
    submit::<crate::erased::DynObject>(&mut []).wait();
}

/// 2^63 - 1, as the kernel's. Near it a target does what it is asked to, or says that it cannot.
pub fn no_operation_ends_beyond_the_largest_offset(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    let mut got = [9; 10];
    for at in [OFFSET_MAX - 9, OFFSET_MAX, OFFSET_MAX + 1, u64::MAX - 9, u64::MAX] {
        assert_eq!(write_at(&object, b"0123456789", at), Err(Errno::INVAL), "{at}");
        assert_eq!(read_at(&object, &mut got, at), Err(Errno::INVAL), "{at}");
    }
    assert_eq!((object.len(), object.next_data(OFFSET_MAX), object.next_data(u64::MAX)), (Ok(0), Ok(None), Ok(None)));
    let last = OFFSET_MAX - 10;
    assert_eq!(read_at(&object, &mut got, last), Ok(0));
    match write_at(&object, b"0123456789", last) {
        Ok(()) => {
            assert_eq!((read_at(&object, &mut got, last), object.len()), (Ok(10), Ok(OFFSET_MAX)));
            assert_eq!(&got, b"0123456789");
        }
        Err(errno) => assert!(matches!(errno, Errno::FBIG | Errno::NOSPC), "{errno:?}"),
    }
}

/// Its memory is the caller's again, and nothing of it is half done.
pub fn a_batch_that_is_dropped_is_done(subject: &impl Subject) {
    let target = subject.fresh();
    let objects: Vec<_> = (0..4).map(|file| made(&target, file)).collect();
    let bytes = pattern(1, 0, 100_000);
    let parts = [IoSlice::new(&bytes)];
    let mut batch: Vec<_> = objects.iter().map(|object| Request::new(object, Op::write(&parts, 0))).collect();
    drop(submit(&mut batch));
    drop(batch);
    for object in &objects {
        let mut got = vec![0; bytes.len()];
        assert_eq!(read_at(object, &mut got, 0), Ok(bytes.len()));
        assert_eq!(got, bytes);
    }
}

/// Its error is its own.
pub fn one_wrong_operation_of_a_batch_spoils_no_other(subject: &impl Subject) {
    let target = subject.fresh();
    let objects = [made(&target, 1), made(&target, 2)];
    let bytes = pattern(1, 0, 5000);
    let parts = [IoSlice::new(&bytes)];
    let at = [0, OFFSET_MAX, 5000];
    let mut batch: Vec<_> = at.iter().zip([0, 1, 1]).map(|(at, which)| Request::new(&objects[which], Op::write(&parts, *at))).collect();
    submit(&mut batch).wait();
    let results: Vec<_> = batch.iter().map(|request| request.op.outcome.result()).collect();
    assert_eq!(results, [Ok(5000), Err(Errno::INVAL), Ok(5000)]);
    assert_eq!((objects[0].len(), objects[1].len()), (Ok(5000), Ok(10_000)));
}

/// Never wrong bytes, and never an error of another kind.
pub fn a_read_that_may_not_wait_gives_what_is_there_or_says_again(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    let bytes = pattern(1, 0, 50_000);
    write_at(&object, &bytes, 0).unwrap();
    let mut got = vec![0; bytes.len()];
    let mut parts = [IoSliceMut::new(&mut got)];
    let mut batch = [Request::new(&object, Op::read(&mut parts, 0).without_waiting())];
    submit(&mut batch).wait();
    let outcome = batch[0].op.outcome;
    assert!(outcome.error.is_none_or(|errno| matches!(errno, Errno::AGAIN | Errno::OPNOTSUPP)), "{outcome:?}");
    assert!(outcome.error.is_some() || outcome.done == 50_000, "{outcome:?}");
    assert_eq!(got[..outcome.done as usize], bytes[..outcome.done as usize]);
}
