//! Layouts against type maps written out byte by byte.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
use super::*;
use crate::datatype::{distribution, order};
use proptest::prelude::*;

/// A type as its description and as the bytes that it shows, in the order of its data.
#[derive(Clone, Debug)]
struct Drawn {
    words: Vec<u64>,
    bytes: Vec<i64>,
    lower: i64,
    extent: i64,
}

fn of(kind: u64, integers: &[i64], addresses: &[i64], inner: &[&Drawn], bytes: Vec<i64>, lower: i64, extent: i64) -> Drawn {
    let mut words = vec![kind, integers.len() as u64, addresses.len() as u64, 0, inner.len() as u64, lower as u64, extent as u64];
    words.extend(integers.iter().chain(addresses).map(|number| *number as u64));
    for drawn in inner {
        words.extend(&drawn.words);
    }
    Drawn { words, bytes, lower, extent }
}

fn named(size: i64) -> Drawn {
    of(combiner::NAMED, &[size], &[], &[], (0..size).collect(), 0, size)
}

/// Blocks of elements at displacements in bytes: the type map of all constructors but the arrays.
fn placed(kind: u64, integers: &[i64], addresses: &[i64], inner: &Drawn, blocks: &[(i64, i64)]) -> Drawn {
    let starts: Vec<i64> = blocks.iter().flat_map(|(at, length)| (0..*length).map(move |n| at + n * inner.extent)).collect();
    let bytes = starts.iter().flat_map(|start| inner.bytes.iter().map(move |byte| start + byte)).collect();
    let lower = starts.iter().map(|start| start + inner.lower).min().unwrap_or(0);
    let upper = starts.iter().map(|start| start + inner.lower + inner.extent).max().unwrap_or(0);
    of(kind, integers, addresses, &[inner], bytes, lower, upper - lower)
}

fn subarray_of(inner: &Drawn, sizes: &[i64], parts: &[i64], starts: &[i64], in_order: u64) -> Drawn {
    let n = sizes.len();
    let mut integers = vec![n as i64];
    integers.extend(sizes.iter().chain(parts).chain(starts));
    integers.push(in_order as i64);
    let owned = |dim: usize, index: i64| (starts[dim]..starts[dim] + parts[dim]).contains(&index);
    array_of(combiner::SUBARRAY, &integers, inner, sizes, in_order, owned)
}

/// An array of which the indices count that `owned` takes in each dimension.
fn array_of(kind: u64, integers: &[i64], inner: &Drawn, sizes: &[i64], in_order: u64, owned: impl Fn(usize, i64) -> bool) -> Drawn {
    let cells: i64 = sizes.iter().product();
    let fast_first: Vec<usize> = if in_order == order::FORTRAN { (0..sizes.len()).collect() } else { (0..sizes.len()).rev().collect() };
    let mut bytes = Vec::new();
    for cell in 0..cells {
        let mut left = cell;
        let mine = fast_first.iter().all(|&dim| {
            let index = left % sizes[dim];
            left /= sizes[dim];
            owned(dim, index)
        });
        if mine {
            bytes.extend(inner.bytes.iter().map(|byte| cell * inner.extent + byte));
        }
    }
    of(kind, integers, &[], &[inner], bytes, 0, cells * inner.extent)
}

fn darray_of(inner: &Drawn, rank: i64, sizes: &[i64], kinds: &[u64], arguments: &[i64], processes: &[i64], in_order: u64) -> Drawn {
    let n = sizes.len();
    let mut integers = vec![processes.iter().product(), rank, n as i64];
    integers.extend(sizes);
    integers.extend(kinds.iter().map(|kind| *kind as i64));
    integers.extend(arguments);
    integers.extend(processes);
    integers.push(in_order as i64);
    let mut places = vec![0; n];
    let mut left = rank;
    for dim in (0..n).rev() {
        places[dim] = left % processes[dim];
        left /= processes[dim];
    }
    let owned = |dim: usize, index: i64| {
        let block = match (kinds[dim], arguments[dim]) {
            (distribution::NONE, _) => return true,
            (distribution::BLOCK, -1) => (sizes[dim] + processes[dim] - 1) / processes[dim],
            (_, -1) => 1,
            (_, given) => given,
        };
        index / block % processes[dim] == places[dim]
    };
    array_of(combiner::DARRAY, &integers, inner, sizes, in_order, owned)
}

/// Rising displacements with gaps, in units.
fn rising(gaps: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut at = 0;
    gaps.iter()
        .map(|(gap, length)| {
            let block = (at + gap, *length);
            at += gap + length;
            block
        })
        .collect()
}

fn drawn() -> impl Strategy<Value = Drawn> {
    prop_oneof![Just(1i64), Just(4), Just(8)].prop_map(named).prop_recursive(4, 12, 3, |inner| {
        let gaps = || prop::collection::vec((0i64..4, 0i64..4), 0..6);
        prop_oneof![
            inner.clone().prop_map(|t| of(combiner::DUP, &[], &[], &[&t], t.bytes.clone(), t.lower, t.extent)),
            (inner.clone(), 0i64..5).prop_map(|(t, n)| placed(combiner::CONTIGUOUS, &[n], &[], &t, &[(0, n)])),
            (inner.clone(), 0i64..4, 0i64..3, 0i64..3).prop_map(|(t, n, length, gap)| {
                let by = length + gap;
                let blocks: Vec<_> = (0..n).map(|k| (k * by * t.extent, length)).collect();
                placed(combiner::VECTOR, &[n, length, by], &[], &t, &blocks)
            }),
            (inner.clone(), 0i64..4, 0i64..3, 0i64..9).prop_map(|(t, n, length, gap)| {
                let by = length * t.extent + gap;
                let blocks: Vec<_> = (0..n).map(|k| (k * by, length)).collect();
                placed(combiner::HVECTOR, &[n, length], &[by], &t, &blocks)
            }),
            (inner.clone(), gaps()).prop_map(|(t, gaps)| {
                let blocks = rising(&gaps);
                let mut integers = vec![blocks.len() as i64];
                integers.extend(blocks.iter().map(|(_, length)| length));
                integers.extend(blocks.iter().map(|(at, _)| at));
                let blocks: Vec<_> = blocks.iter().map(|(at, length)| (at * t.extent, *length)).collect();
                placed(combiner::INDEXED, &integers, &[], &t, &blocks)
            }),
            (inner.clone(), gaps(), 0i64..4).prop_map(|(t, gaps, more)| {
                let blocks: Vec<_> = rising(&gaps).iter().enumerate().map(|(k, (at, length))| (at * t.extent + k as i64 * more, *length)).collect();
                let mut integers = vec![blocks.len() as i64];
                integers.extend(blocks.iter().map(|(_, length)| length));
                let addresses: Vec<_> = blocks.iter().map(|(at, _)| *at).collect();
                placed(combiner::HINDEXED, &integers, &addresses, &t, &blocks)
            }),
            (inner.clone(), prop::collection::vec(0i64..3, 0..6), 1i64..3, any::<bool>()).prop_map(|(t, gaps, length, in_bytes)| {
                let mut at = 0;
                let starts: Vec<i64> = gaps
                    .iter()
                    .map(|gap| {
                        let start = at + gap;
                        at = start + length;
                        start
                    })
                    .collect();
                let blocks: Vec<_> = starts.iter().map(|start| (start * t.extent, length)).collect();
                let n = starts.len() as i64;
                if in_bytes {
                    let addresses: Vec<_> = blocks.iter().map(|(at, _)| *at).collect();
                    placed(combiner::HINDEXED_BLOCK, &[n, length], &addresses, &t, &blocks)
                } else {
                    let integers: Vec<_> = [n, length].into_iter().chain(starts).collect();
                    placed(combiner::INDEXED_BLOCK, &integers, &[], &t, &blocks)
                }
            }),
            (inner.clone(), inner.clone(), 0i64..3, 0i64..3, 0i64..5).prop_map(|(a, b, n, m, gap)| {
                let by = n * a.extent + gap;
                let (first, second) = (placed(0, &[], &[], &a, &[(0, n)]), placed(0, &[], &[], &b, &[(by, m)]));
                let upper = (first.lower + first.extent).max(second.lower + second.extent);
                let lower = first.lower.min(second.lower);
                let bytes = first.bytes.into_iter().chain(second.bytes).collect();
                of(combiner::STRUCT, &[2, n, m], &[0, by], &[&a, &b], bytes, lower, upper - lower)
            }),
            (inner.clone(), 0i64..9).prop_map(|(t, more)| of(
                combiner::RESIZED,
                &[],
                &[t.lower, t.extent + more],
                &[&t],
                t.bytes.clone(),
                t.lower,
                t.extent + more
            )),
            (inner.clone(), prop::collection::vec((1i64..4, 0i64..4, 0i64..4), 1..4), 0..2u64).prop_map(|(t, dims, in_order)| {
                let sizes: Vec<_> = dims.iter().map(|d| d.0).collect();
                let starts: Vec<_> = dims.iter().map(|d| d.2 % d.0).collect();
                let parts: Vec<_> = dims.iter().zip(&starts).map(|(d, start)| 1 + d.1 % (d.0 - start)).collect();
                subarray_of(&t, &sizes, &parts, &starts, in_order)
            }),
            (inner, prop::collection::vec((1i64..7, 0..3u64, -1i64..4, 1i64..4), 1..4), any::<u16>(), 0..2u64).prop_map(
                |(t, dims, rank, in_order)| {
                    let sizes: Vec<_> = dims.iter().map(|d| d.0).collect();
                    let kinds: Vec<_> = dims.iter().map(|d| d.1).collect();
                    let processes: Vec<_> = dims.iter().map(|d| if d.1 == distribution::NONE { 1 } else { d.3 }).collect();
                    let argument = |d: &(i64, u64, i64, i64)| match d.1 {
                        // A block distribution must cover the array.
                        distribution::BLOCK if d.2 * d.3 < d.0 => -1,
                        _ if d.2 < 1 => -1,
                        _ => d.2,
                    };
                    let arguments: Vec<_> = dims.iter().map(argument).collect();
                    let rank = i64::from(rank) % processes.iter().product::<i64>();
                    darray_of(&t, rank, &sizes, &kinds, &arguments, &processes, in_order)
                }
            ),
        ]
    })
}

/// All bytes of ranges, in their order.
fn written_out(ranges: &[Extent]) -> Vec<i64> {
    let mut all = Vec::new();
    for range in ranges {
        let mut starts = vec![range.offset];
        for (stride, count) in &range.levels {
            starts = (0..*count as i64).flat_map(|n| starts.iter().map(move |start| start + n * stride)).collect();
        }
        all.extend(starts.iter().flat_map(|start| *start..start + range.bytes as i64));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn ranges_are_those_of_the_type_map(t in drawn(), displacement in 0i64..100, from in 0u64..300, bytes in 0u64..300) {
        prop_assume!(t.extent > 0 || t.bytes.is_empty());
        let Some(layout) = Layout::of_words(&t.words) else {
            prop_assert!(t.bytes.is_empty(), "{:?} was not understood", t);
            return Ok(());
        };
        let size = t.bytes.len() as u64;
        let expected = |position: u64| displacement + (position / size) as i64 * t.extent + t.bytes[(position % size) as usize];
        let mut wanted: Vec<i64> = (from..from + bytes).map(expected).collect();
        let ranges = layout.ranges(displacement, from, bytes).unwrap();
        let mut found = written_out(&ranges);
        prop_assert_eq!(ranges.iter().map(Extent::end).max(), wanted.iter().max().map(|last| last + 1));
        let mut flat = Vec::new();
        layout.tile().each_range(displacement, from, bytes, &mut |at, len| { flat.extend(at..at + len as i64); Some(()) }).unwrap();
        prop_assert_eq!(&flat, &wanted, "in the order of the data");
        let rising = (0..2 * size).map(expected).is_sorted_by(|a, b| a < b);
        wanted.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(&found, &wanted);
        if rising {
            for position in from..from + bytes.min(20) {
                prop_assert_eq!(layout.position_of(displacement, expected(position)), Some(position));
            }
        }
    }

    #[test]
    fn damaged_words_are_no_layout_or_one_that_answers(mut words in drawn().prop_map(|t| t.words), at: prop::sample::Index, word: u64, cut: prop::sample::Index) {
        let place = at.index(words.len());
        words[place] = word;
        let _ = Layout::of_words(&words).map(|layout| layout.ranges(0, 5, 100));
        words.truncate(cut.index(words.len()));
        let _ = Layout::of_words(&words).map(|layout| layout.ranges(0, 5, 100));
    }
}

#[test]
fn a_plane_of_four_dimensions_is_one_range_of_two_levels() {
    // 8 x 6 x 10 x 4 doubles, of which the middle two are cut.
    let t = subarray_of(&named(8), &[8, 6, 10, 4], &[8, 3, 5, 4], &[0, 1, 2, 0], order::C);
    let layout = Layout::of_words(&t.words).unwrap();
    let ranges = layout.ranges(0, 0, t.bytes.len() as u64).unwrap();
    assert_eq!(ranges, [Extent { offset: (10 + 2) * 32, bytes: 5 * 32, levels: vec![(320, 3), (1920, 8)] }]);
}

#[test]
fn a_column_of_records_is_one_range() {
    let t = placed(combiner::VECTOR, &[1, 1, 1], &[], &named(4), &[(0, 1)]);
    let column = of(combiner::RESIZED, &[], &[0, 64], &[&t], t.bytes.clone(), 0, 64);
    let layout = Layout::of_words(&column.words).unwrap();
    assert_eq!(layout.ranges(8, 4, 40), Some(vec![Extent { offset: 72, bytes: 4, levels: vec![(64, 10)] }]));
}
