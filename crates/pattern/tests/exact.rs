//! Whatever the stream, its patterns give back every record, and its segments lie one behind the other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use proptest::collection::vec;
use proptest::prelude::*;
use stripewise_pattern::{Columns, Patterns, Record, What, recognise, separate};

struct Owned {
    kind: Vec<u32>,
    offset: Vec<i64>,
    size: Vec<i64>,
}

impl Owned {
    fn of(records: &[Record]) -> Self {
        let kind = records.iter().map(|record| record.kind).collect();
        let offset = records.iter().map(|record| record.offset).collect();
        Self { kind, offset, size: records.iter().map(|record| record.size).collect() }
    }

    fn columns(&self) -> Columns<'_> {
        Columns { kind: &self.kind, offset: &self.offset, size: &self.size }
    }
}

fn patterns(records: &[Record]) -> Patterns {
    recognise(records.iter().copied())
}

/// What must hold for any stream.
fn check(records: &[Record]) -> Patterns {
    let found = patterns(records);
    assert_eq!(found.expand(), records);
    assert!(found.len() <= records.len());
    let mut at = 0;
    for segment in found.segments() {
        assert_eq!(segment.first as usize, at);
        let next = at + segment.records as usize;
        assert!(segment.records > 0);
        match &segment.what {
            What::Regular(tree) => assert_eq!(tree.expand().unwrap(), &records[at..next]),
            What::Irregular(irregular) => assert_eq!(irregular.kinds.iter().map(|(_, count)| count).sum::<u64>(), segment.records),
            What::Scattered(tree, places) => {
                let block = tree.expand().unwrap();
                assert_eq!(block, &records[at..at + block.len()]);
                assert_eq!(places.kinds[0].1 * block.len() as u64, segment.records);
            }
        }
        at = next;
    }
    assert_eq!(at, records.len());
    found
}

fn record() -> impl Strategy<Value = Record> {
    (0..3u32, prop_oneof![0..8i64, any::<i64>()], prop_oneof![Just(4096i64), 0..3i64, any::<i64>()]).prop_map(|(kind, offset, size)| Record {
        kind,
        offset,
        size,
    })
}

/// Loops of loops with literal records between them: what the recogniser looks for, spoilt.
fn nested() -> impl Strategy<Value = Vec<Record>> {
    let leaf = vec((0..2u32, 0..3i64, 1..3i64).prop_map(|(kind, offset, size)| Record { kind, offset: offset * 10, size }), 1..4);
    leaf.prop_recursive(5, 400, 4, |inner| {
        prop_oneof![
            (inner.clone(), 1..6i64, -50..50i64).prop_map(|(body, count, stride)| {
                (0..count)
                    .flat_map(|round| body.iter().map(move |of| Record { offset: of.offset + round * stride, ..*of }).collect::<Vec<_>>())
                    .collect()
            }),
            (inner.clone(), inner).prop_map(|(a, b)| [a, b].concat()),
        ]
    })
}

/// Few different steps and sizes: repetitions everywhere, none of them for long.
fn chatter() -> impl Strategy<Value = Vec<Record>> {
    vec((0..2u32, 0..3i64, 0..2i64), 0..600).prop_map(|steps| {
        let mut offset = 0;
        let mut next = |(kind, step, size): (u32, i64, i64)| {
            offset += [0, 8, -8][step as usize];
            Record { kind, offset, size: size + 8 }
        };
        steps.into_iter().map(&mut next).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn patterns_of_random_records_give_them_back(records in vec(record(), 0..200)) {
        check(&records);
    }

    #[test]
    fn patterns_of_nested_loops_give_them_back(records in nested()) {
        check(&records);
    }

    #[test]
    fn patterns_of_few_steps_give_them_back(records in chatter()) {
        check(&records);
    }

    /// Bytes as columns: nothing that a file can hold makes it panic.
    #[test]
    fn any_bytes_are_records(bytes in vec(any::<u8>(), 0..3000)) {
        let of = |at: usize| bytes[at..at + 8].try_into().map(i64::from_ne_bytes).unwrap();
        let records: Vec<Record> = (0..bytes.len() / 20)
            .map(|row| row * 20)
            .map(|at| Record { kind: u32::from_ne_bytes(bytes[at + 16..at + 20].try_into().unwrap()), offset: of(at), size: of(at + 8) })
            .collect();
        check(&records);
    }

    // Of two rounds alone the second may begin at another distance than the first, and then only a part of the body repeats.
    #[test]
    fn a_long_body_is_found_wherever_it_begins(
        body in vec((0..4u32, 0..1_000_000i64), 9..60), lead in vec(record(), 0..5), rounds in 3..9i64, stride in 1..1000i64
    ) {
        let body: Vec<Record> = body.into_iter().enumerate().map(|(n, (kind, offset))| Record { kind, offset, size: 100 + (n as i64 * n as i64) % 97 }).collect();
        let mut records = lead.clone();
        for round in 0..rounds {
            records.extend(body.iter().map(|of| Record { offset: of.offset + round * stride, ..*of }));
        }
        let found = check(&records);
        prop_assert!(found.len() <= lead.len() + body.len() + 8, "{} nodes for a body of {}", found.len(), body.len());
    }

    #[test]
    fn streams_that_interleave_are_separated(records in vec((0..5u64, record()), 0..300)) {
        let owned = Owned::of(&records.iter().map(|(_, record)| *record).collect::<Vec<_>>());
        let keys: Vec<u64> = records.iter().map(|(key, _)| *key).collect();
        let streams = separate(&keys);
        let mut rows: Vec<(u32, Record)> = Vec::new();
        for stream in &streams {
            assert!(stream.rows.is_sorted());
            assert!(stream.rows.iter().all(|row| keys[*row as usize] == stream.key));
            rows.extend(stream.rows.iter().copied().zip(recognise(owned.columns().at(&stream.rows)).expand()));
        }
        rows.sort_by_key(|(row, _)| *row);
        assert_eq!(rows.iter().map(|(_, record)| *record).collect::<Vec<_>>(), owned.columns().records().collect::<Vec<_>>());
    }
}
