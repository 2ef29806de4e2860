//! Holes and lengths.

use rustix::io::Errno;

use super::{Subject, made, pattern};
use crate::batch::{read_at, write_at};
use crate::interface::Object;
use crate::op::OFFSET_MAX;

fn content(object: &impl Object) -> Vec<u8> {
    let mut bytes = vec![9; object.len().unwrap() as usize];
    assert_eq!(read_at(object, &mut bytes, 0), Ok(bytes.len()));
    bytes
}

/// Whatever pages the hole begins and ends in, and where it reaches past the end.
pub fn a_hole_reads_as_zeros_and_the_length_stays(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    let mut expected = pattern(1, 0, 50_000);
    write_at(&object, &expected, 0).unwrap();
    for (at, len) in [(10, 20), (4096, 8192), (15_000, 10_001), (49_990, 10), (49_000, 1 << 40), (30_000, 0), (1 << 50, 4096)] {
        object.punch(at, len).unwrap();
        let end = (at + len).min(50_000) as usize;
        expected.get_mut(at as usize..end).unwrap_or(&mut []).fill(0);
        assert_eq!((object.len(), content(&object) == expected), (Ok(50_000), true), "{at}+{len}");
    }
}

/// Bytes that were cut off do not come back.
pub fn cutting_takes_bytes_away_and_growing_brings_zeros(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    let mut expected = pattern(1, 0, 30_000);
    write_at(&object, &expected, 0).unwrap();
    for len in [20_001, 20_001, 40_000, 4096, 4095, 100_000, 0, 10] {
        object.set_len(len).unwrap();
        expected.resize(len as usize, 0);
        assert_eq!((object.len(), content(&object) == expected), (Ok(len), true), "{len}");
    }
    object.set_len(10).unwrap();
    write_at(&object, b"x", 5000).unwrap();
    assert_eq!(content(&object), [vec![0; 5000], vec![b'x']].concat());
}

/// They are in order, and what lies in none of them is zeros: a hole may be told as data, data never as a hole.
pub fn data_ranges_cover_all_data(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    let places = [(0u64, 10usize), (1 << 20, 4096), ((1 << 20) + 12_288, 1), (5 << 20, 1 << 20), (1 << 42, 9)];
    for (at, len) in places {
        write_at(&object, &pattern(1, at, len), at).unwrap();
    }
    object.set_len((1 << 42) + (1 << 30)).unwrap();
    object.punch(5 << 20, 1 << 19).unwrap();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let mut at = 0;
    while let Some((start, end)) = object.next_data(at).unwrap() {
        assert!(at <= start && start < end, "{start}-{end} after {at}");
        ranges.push((start, end));
        at = end;
    }
    assert!(at <= (1 << 42) + (1 << 30));
    let left = [places[0], places[1], places[2], ((5 << 20) + (1 << 19), 1 << 19), places[4]];
    for (at, len) in left {
        let mut covered = at;
        for (start, end) in &ranges {
            if (*start..*end).contains(&covered) {
                covered = *end;
            }
        }
        assert!(covered >= at + len as u64, "{at}+{len} is in no range of {ranges:?}");
    }
    // One that begins in the middle of data tells the rest of it.
    let (start, end) = object.next_data((1 << 20) + 100).unwrap().unwrap();
    assert!(start == (1 << 20) + 100 && end >= (1 << 20) + 4096, "{start}-{end}");
    assert_eq!(object.next_data((1 << 42) + (1 << 30)), Ok(None));
    assert!(at < (1 << 42) + (1 << 29), "a target that tells holes apart tells one of a gibibyte");
}

/// So that what has moved away takes no room.
pub fn a_punched_page_is_no_data_any_more(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    write_at(&object, &pattern(1, 0, 4 << 20), 0).unwrap();
    object.punch(0, 4 << 20).unwrap();
    assert_eq!((object.next_data(0), object.len()), (Ok(None), Ok(4 << 20)));
}

/// As for operations.
pub fn no_hole_or_length_lies_beyond_the_largest_offset(subject: &impl Subject) {
    let target = subject.fresh();
    let object = made(&target, 1);
    write_at(&object, b"abc", 0).unwrap();
    for (at, len) in [(OFFSET_MAX, 1), (u64::MAX, 1), (1, OFFSET_MAX), (u64::MAX, u64::MAX)] {
        assert_eq!(object.punch(at, len), Err(Errno::INVAL), "{at}+{len}");
    }
    for len in [OFFSET_MAX + 1, u64::MAX] {
        assert_eq!(object.set_len(len), Err(Errno::INVAL), "{len}");
    }
    if let Err(errno) = object.set_len(OFFSET_MAX) {
        assert!(matches!(errno, Errno::FBIG), "{errno:?}");
    }
    let mut got = [0; 3];
    assert_eq!(read_at(&object, &mut got, 0), Ok(3));
    assert_eq!(&got, b"abc");
}
