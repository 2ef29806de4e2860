//! Each template is recognised as what it is: one loop nest of as many dimensions as it has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use stripewise_chance::SplitMix64;
use stripewise_pattern::{Inner, Record, Segment, Tree, What, recognise};

fn records(offsets: impl IntoIterator<Item = i64>, size: i64) -> Vec<Record> {
    offsets.into_iter().map(|offset| Record { kind: 0, offset, size }).collect()
}

fn found(records: &[Record]) -> Vec<Segment> {
    let patterns = recognise(records.iter().copied());
    assert_eq!(patterns.expand(), records);
    patterns.segments()
}

/// (count, stride) from the outermost loop inwards, where each has one part.
fn nest(tree: &Tree) -> Vec<(u64, i64)> {
    match &tree.inner {
        Inner::Record { .. } => Vec::new(),
        Inner::Loop { count, body } => {
            assert_eq!(body.len(), 1, "{tree:?}");
            [vec![(*count, body[0].stride)], nest(&body[0])].concat()
        }
    }
}

fn single(records: &[Record]) -> Tree {
    let segments = found(records);
    match segments.as_slice() {
        [Segment { what: What::Regular(tree), .. }] => tree.clone(),
        _ => panic!("{segments:?}"),
    }
}

#[test]
fn strides_of_one_dimension() {
    for stride in [4096, 10_000, 100, -4096, 0] {
        let tree = single(&records((0..1000).map(|i| 500_000_000 + i * stride), 4096));
        assert_eq!((tree.at, nest(&tree)), (500_000_000, vec![(1000, stride)]));
    }
}

#[test]
fn strides_of_eight_dimensions_whatever_their_counts() {
    for counts in [[2u64, 2, 2, 2, 2, 2, 2, 2], [3, 2, 4, 2, 3, 2, 2, 5], [2, 3, 2, 3, 2, 3, 2, 3], [9, 2, 2, 2, 2, 2, 2, 9]] {
        let mut offsets = vec![0i64];
        let mut expected = Vec::new();
        let mut stride = 64;
        for count in counts.into_iter().rev() {
            stride *= 3;
            offsets = (0..count as i64).flat_map(|i| offsets.iter().map(move |at| at + i * stride).collect::<Vec<_>>()).collect();
            expected.insert(0, (count, stride));
            stride *= count as i64;
        }
        assert_eq!(nest(&single(&records(offsets, 64))), expected);
    }
}

#[test]
fn cursors_that_advance_by_strides_of_their_own_are_one_loop() {
    let mut all = Vec::new();
    for i in 0..500 {
        all.push(Record { kind: 1, offset: 0, size: 8 });
        all.push(Record { kind: 1, offset: 4096 + i * 1000, size: 1000 });
        all.push(Record { kind: 0, offset: (1 << 40) + i * 77, size: 1000 });
    }
    let tree = single(&all);
    let Inner::Loop { count, body } = &tree.inner else { panic!("{tree:?}") };
    assert_eq!((*count, body.iter().map(|part| part.stride).collect::<Vec<_>>()), (500, vec![0, 1000, 77]));
}

#[test]
fn a_header_and_a_trailer_stand_for_themselves() {
    let mut all = records([0], 100);
    all.extend(records((0..100).map(|i| 4096 + i * 4096), 4096));
    all.extend(records([7], 50));
    let segments = found(&all);
    assert_eq!(segments.iter().map(|segment| segment.records).collect::<Vec<_>>(), [1, 100, 1]);
}

#[test]
fn random_offsets_are_a_distribution() {
    let mut random = SplitMix64::at(1);
    let all = records((0..20_000).map(|_| 4096 * (1 + random.below(1 << 20) as i64)), 4096);
    let segments = found(&all);
    let [Segment { what: What::Irregular(irregular), records: 20_000, .. }] = segments.as_slice() else { panic!("{segments:?}") };
    assert_eq!((irregular.alignment_bytes, irregular.size_min, irregular.size_classes), (4096, 4096, [20_000, 0, 0]));
    assert!(irregular.backward > 9_000 && irregular.forward > 9_000);
}

#[test]
fn blocks_here_and_there_are_scattered_blocks() {
    let mut random = SplitMix64::at(2);
    let all = records(
        (0..300).flat_map(|_| {
            let block = random.below(1 << 20) as i64 * 65_536;
            (0..16).map(move |i| block + i * 4096)
        }),
        4096,
    );
    let segments = found(&all);
    let [Segment { what: What::Scattered(block, places), records: 4800, .. }] = segments.as_slice() else { panic!("{segments:?}") };
    assert_eq!((nest(block), places.size_max, places.alignment_bytes), (vec![(16, 4096)], 65_536, 65_536));
}

#[test]
fn the_same_again_is_a_loop_without_stride() {
    let all = records((0..3).flat_map(|_| (0..50).map(|i| i * 8192)), 4096);
    assert_eq!(nest(&single(&all)), [(3, 0), (50, 8192)]);
}
