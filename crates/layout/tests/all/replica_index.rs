//! The index over replicas against the flattened list of all blocks and against the linear look-up: random patterns of up to eight loops, whole families
//! that interleave, blocks of one replica over those of others, any bins, any history, any damage.

use crate::common::{oracle, regions_of, striped};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use stripewise_layout::{
    BinEntry, Bins, Dim, GRANULE, Layout, Logical, OnWrite, Placement, Region, Replica, ReplicaHit, ReplicaIndex, ReplicaOffset, Stripe, View,
};

const BLOCKS_MAX: u64 = 256;

pub fn home() -> Vec<Region> {
    let placement = Placement::Striped(vec![Stripe { target: 0, width_bytes: GRANULE }]);
    vec![Region { start: 0, len: 1 << 20, generation: 0, placement }]
}

/// The mapped form of a layout of these patterns: base, block, (stride, count) of the loops, outermost first.
pub fn encoded(patterns: &[Pattern]) -> Vec<u8> {
    let replica = |(i, p): (usize, &Pattern)| Replica {
        id: i as u32,
        base: p.base,
        block: p.block,
        dims: p.dims.iter().map(|(stride, count)| Dim { stride: *stride, count: *count }).collect(),
        domain_base: (i as u64) << 41,
        is_home: false,
        on_write: OnWrite::Update,
        regions: home(),
    };
    Layout { generation: 9, file_id: [3, 4], regions: home(), replicas: patterns.iter().enumerate().map(replica).collect(), ..Layout::default() }
        .encode()
        .unwrap()
}

pub fn built(view: &View<'_>, bins: Bins) -> Vec<u8> {
    let mut bytes = vec![0xa5; ReplicaIndex::bytes_needed(view, bins)];
    assert!(ReplicaIndex::build_into(view, bins, &mut bytes).is_some());
    bytes
}

#[derive(Clone, Debug)]
pub struct Pattern {
    pub base: u64,
    pub block: u64,
    pub dims: Vec<(u64, u64)>,
}

impl Pattern {
    /// Starts of all blocks, in access order.
    fn flattened(&self) -> Vec<u64> {
        let step = |starts: Vec<u64>, (stride, count): &(u64, u64)| starts.iter().flat_map(|s| (0..*count).map(move |k| s + k * stride)).collect();
        self.dims.iter().fold(vec![self.base], step)
    }

    fn shifted(&self, by: u64) -> Pattern {
        Pattern { base: self.base + by, ..self.clone() }
    }
}

/// Up to eight loops in any order, each stepping over all that smaller strides cover, with a gap of its own; those of one step have any stride.
fn pattern() -> impl Strategy<Value = Pattern> {
    let gap = prop_oneof![Just(0), 1..40u64, 1..3000u64, Just(1u64 << 17)];
    let loops = prop::collection::vec((1..5u64, gap), 0..9).prop_flat_map(|loops| {
        let turn = Just((0..loops.len()).collect::<Vec<_>>()).prop_shuffle();
        (Just(loops), turn)
    });
    let block = prop_oneof![Just(1u64), Just(7), Just(64), Just(1000), 1..3000u64];
    (loops, block, 0..20_000u64).prop_map(|((loops, turn), block, base)| {
        let (mut reach, mut blocks) = (block, 1);
        let mut dims = Vec::new();
        for (count, gap) in loops {
            let count = if blocks * count > BLOCKS_MAX { 1 } else { count };
            blocks *= count;
            let stride = if count == 1 { gap } else { reach + gap };
            reach += stride * (count - 1);
            dims.push((stride, count));
        }
        Pattern { base, block, dims: turn.iter().map(|i| dims[*i]).collect() }
    })
}

/// Patterns, and beside each some of its kind, shifted by a block, a step and a bit, or anything: the columns of an array, and replicas that overlap.
fn patterns() -> impl Strategy<Value = Vec<Pattern>> {
    let family = (pattern(), 1..5u64, prop_oneof![Just(0u64), 1..4000u64], any::<prop::sample::Index>());
    prop::collection::vec(family, 0..6).prop_map(|families| {
        let shifted = |(p, n, by, dim): (Pattern, u64, u64, prop::sample::Index)| {
            let stride = if p.dims.is_empty() || by % 2 == 0 { 0 } else { dim.get(&p.dims).0 };
            let by = if by == 0 { p.block } else { stride + by };
            (0..n).map(move |k| p.shifted(k * by)).collect::<Vec<_>>()
        };
        families.into_iter().flat_map(shifted).collect()
    })
}

/// Those of the replicas, or of a range that may miss them.
fn bins_over(view: &View<'_>, range: Option<(u64, u64)>, count: u32) -> Bins {
    range.map_or_else(|| Bins::of(view), |(start, len)| Bins::over(start, start + len, count))
}

fn range() -> impl Strategy<Value = (Option<(u64, u64)>, u32)> {
    let count = prop_oneof![0..5u32, 5..200u32, Just(Bins::COUNT), Just(u32::MAX)];
    (prop::option::of((0..30_000u64, 0..1_000_000u64)), count)
}

/// Requests at the edges of blocks, and anywhere.
fn requests(patterns: &[Pattern], seeds: &[(prop::sample::Index, prop::sample::Index, u64, u64)]) -> Vec<(u64, u64)> {
    let mut out = vec![(0, 1), (u64::MAX, 1), (u64::MAX, u64::MAX), (5, 0), (0, u64::MAX)];
    for (which, rank, from, len) in seeds {
        out.push((from * 37 % 600_000, *len));
        if !patterns.is_empty() {
            let p = which.get(patterns);
            let starts = p.flattened();
            let (start, inside) = (*rank.get(&starts), from % p.block);
            out.extend([(start, p.block), (start + inside, 1), (start + inside, p.block - inside), (start + inside, *len), (start + p.block, 1)]);
            out.extend([(start + p.block - 1, 2), (start.saturating_sub(1), 2), (start, p.block + 1)]);
        }
    }
    out
}

fn seeds() -> impl Strategy<Value = Vec<(prop::sample::Index, prop::sample::Index, u64, u64)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..100_000u64, 1..3000u64), 1..12)
}

/// The finest block of all flattened ones that holds a request, among equals the first replica's.
fn brute(flattened: &[(u64, Vec<u64>)], at: u64, len: u64) -> Option<ReplicaHit> {
    let end = at.checked_add(len).filter(|_| len > 0)?;
    let in_replica = |(index, (block, starts)): (usize, &(u64, Vec<u64>))| {
        let rank = starts.iter().position(|s| *s <= at && end <= s + block)?;
        Some((*block, index, ReplicaHit { index, offset: ReplicaOffset(rank as u64 * block + at - starts[rank]) }))
    };
    flattened.iter().enumerate().filter_map(in_replica).min_by_key(|(block, index, _)| (*block, *index)).map(|(_, _, hit)| hit)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_look_up_finds_what_the_flattened_blocks_and_the_linear_one_find(
        patterns in patterns(), (range, count) in range(), seeds in seeds(), history: u32,
    ) {
        let bytes = encoded(&patterns);
        let view = View::parse(&bytes).unwrap();
        let index_bytes = built(&view, bins_over(&view, range, count));
        let index = ReplicaIndex::open(&view, &index_bytes).unwrap();
        let flattened: Vec<_> = patterns.iter().map(|p| (p.block, p.flattened())).collect();
        let history = AtomicU32::new(history % 20);
        for (at, len) in requests(&patterns, &seeds) {
            let expected = brute(&flattened, at, len);
            prop_assert_eq!(view.replica_lookup(Logical(at), len), expected, "linear, [{}, +{})", at, len);
            prop_assert_eq!(index.lookup(Logical(at), len, &AtomicU32::new(0)), expected, "index, [{}, +{})", at, len);
            prop_assert_eq!(index.lookup(Logical(at), len, &history), expected, "index with a history, [{}, +{})", at, len);
            if let Some(hit) = expected {
                prop_assert_eq!(history.load(Relaxed), hit.index as u32 + 1);
                prop_assert_eq!(view.replica(hit.index).unwrap().inverse(hit.offset), Some(Logical(at)));
            }
        }
    }

    #[test]
    fn a_bin_lists_what_touches_it_and_how_far_it_goes_on(patterns in patterns(), (range, count) in range()) {
        let bytes = encoded(&patterns);
        let view = View::parse(&bytes).unwrap();
        let bins = bins_over(&view, range, count);
        let index_bytes = built(&view, bins);
        let index = ReplicaIndex::open(&view, &index_bytes).unwrap();
        prop_assert_eq!(index.bins(), bins);
        let mut expected = BTreeMap::<u32, BTreeMap<(u64, usize), u32>>::new();
        for (number, p) in patterns.iter().enumerate() {
            for start in p.flattened() {
                let last = bins.bin(start + p.block - 1);
                for bin in bins.bin(start)..=last {
                    let extension = expected.entry(bin).or_default().entry((p.block, number)).or_default();
                    *extension = (last - bin).max(*extension);
                }
            }
        }
        for bin in 0..=bins.count() {
            let of_bin = expected.get(&bin).into_iter().flatten();
            let wanted: Vec<_> = of_bin.map(|((_, index), extension)| BinEntry { index: *index, extension: *extension }).collect();
            prop_assert_eq!(index.entries(bin).collect::<Vec<_>>(), wanted, "bin {} of {:?}", bin, bins);
        }
    }

    #[test]
    fn replicas_called_alone_share_no_byte_with_one_that_could_answer_for_them(patterns in patterns(), (range, count) in range()) {
        let bytes = encoded(&patterns);
        let view = View::parse(&bytes).unwrap();
        let index_bytes = built(&view, bins_over(&view, range, count));
        let index = ReplicaIndex::open(&view, &index_bytes).unwrap();
        for (i, one) in patterns.iter().enumerate().filter(|(i, _)| index.is_alone(*i)) {
            for (_, other) in patterns.iter().enumerate().filter(|(k, other)| *k != i && other.block <= one.block) {
                let mut ranges: Vec<(u64, u64)> = one.flattened().iter().map(|s| (*s, s + one.block)).collect();
                ranges.extend(other.flattened().iter().map(|s| (*s, s + other.block)));
                ranges.sort_unstable();
                prop_assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{:?} and {:?}", one, other);
            }
        }
        prop_assert!(!index.is_alone(patterns.len()) && !index.is_alone(usize::MAX));
    }

    #[test]
    fn bins_are_equal_and_cover_everything(
        start in prop_oneof![0..1u64 << 40, 0..1u64 << 63], len in prop_oneof![0..1u64 << 45, 0..1u64 << 63, Just(1u64 << 62)],
        count in prop_oneof![0..5u32, 0..100_000u32], at: u64,
    ) {
        let bins = Bins::over(start, start + len, count);
        let start = start.min(1 << 62);
        let len = (start + len).min(1 << 62) - start;
        let most = u64::from(count.clamp(1, Bins::COUNT_MAX));
        let width = 1u64 << bins.shift();
        prop_assert_eq!(u64::from(bins.count()), len.div_ceil(width).max(1));
        prop_assert!(u64::from(bins.count()) <= most);
        prop_assert!(width == 1 || len.div_ceil(width / 2) > most, "half as wide would do");
        prop_assert_eq!(u64::from(bins.bin(at)), (at.saturating_sub(start) / width).min(u64::from(bins.count()) - 1));
    }

    #[test]
    fn damage_is_refused_or_never_makes_a_replica_answer_for_what_it_does_not_hold(
        patterns in patterns(), seeds in seeds(), hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..8u32), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()), noise in prop::collection::vec(any::<u8>(), 0..300), history: u32,
    ) {
        let bytes = encoded(&patterns);
        let view = View::parse(&bytes).unwrap();
        let mut damaged = built(&view, Bins::of(&view));
        for (at, value, bit) in hits {
            let at = at.index(damaged.len());
            if value % 2 == 0 { damaged[at] ^= 1 << bit } else { damaged[at] = value }
        }
        if let Some(cut) = cut {
            damaged.truncate(cut.index(damaged.len()));
        }
        let mut behind_a_sound_header = built(&view, Bins::of(&view));
        behind_a_sound_header.truncate(64);
        behind_a_sound_header.extend(&noise);
        for bytes in [&damaged, &behind_a_sound_header, &noise] {
            let Some(index) = ReplicaIndex::open(&view, bytes) else { continue };
            for (at, len) in requests(&patterns, &seeds) {
                for history in [0, 1, history] {
                    if let Some(hit) = index.lookup(Logical(at), len, &AtomicU32::new(history)) {
                        prop_assert_eq!(view.replica(hit.index).unwrap().locate(Logical(at), len), Some(hit.offset));
                    }
                }
            }
            let listed: usize = (0..index.bins().count()).map(|bin| index.entries(bin).len()).sum();
            prop_assert!(listed * 4 <= bytes.len());
        }
    }

    #[test]
    fn a_byte_of_eight_loops_is_redirected_to_its_rank_and_back(p in pattern(), regions in regions_of(striped()), inside: u64) {
        let replica = Replica {
            id: 7,
            base: p.base,
            block: p.block,
            dims: p.dims.iter().map(|(stride, count)| Dim { stride: *stride, count: *count }).collect(),
            domain_base: 1 << 40,
            is_home: true,
            on_write: OnWrite::Update,
            regions: regions.clone(),
        };
        let bytes = Layout { regions: home(), replicas: vec![replica], ..Layout::default() }.encode().unwrap();
        let mapped = View::parse(&bytes).unwrap().replica(0).unwrap();
        let starts = p.flattened();
        prop_assert_eq!(mapped.total(), starts.len() as u64 * p.block);
        let within = inside % p.block;
        for (rank, start) in starts.iter().enumerate() {
            let offset = ReplicaOffset(rank as u64 * p.block + within);
            prop_assert_eq!(mapped.locate(Logical(start + within), p.block - within), Some(offset));
            prop_assert_eq!(mapped.locate(Logical(start + within), p.block - within + 1), None);
            prop_assert_eq!(mapped.inverse(offset), Some(Logical(start + within)));
            let piece = mapped.pieces(offset, 1).next().unwrap();
            let (target, _, object) = oracle(&regions, offset.0);
            prop_assert_eq!((piece.target, piece.object_offset), (target, object + (1 << 40)));
        }
        let mut sorted: Vec<_> = starts.iter().map(|s| (*s, s + p.block)).collect();
        sorted.sort_unstable();
        for gap in sorted.windows(2).filter(|pair| pair[0].1 < pair[1].0) {
            prop_assert_eq!(mapped.locate(Logical(gap[0].1), 1), None);
            prop_assert_eq!(mapped.locate(Logical(gap[1].0 - 1), 1), None);
        }
    }
}

#[test]
fn an_index_of_another_layout_is_refused() {
    let pattern = |base| Pattern { base, block: 100, dims: vec![(1000, 5)] };
    let (few, more) = (encoded(&[pattern(0)]), encoded(&[pattern(0), pattern(100)]));
    let (few, more) = (View::parse(&few).unwrap(), View::parse(&more).unwrap());
    let bytes = built(&few, Bins::of(&few));
    assert!(ReplicaIndex::open(&few, &bytes).is_some());
    assert!(ReplicaIndex::open(&more, &bytes).is_none());
    let layout = Layout { generation: 10, ..few.to_layout() }.encode().unwrap();
    assert!(ReplicaIndex::open(&View::parse(&layout).unwrap(), &bytes).is_none(), "its next generation");
    let layout = Layout { file_id: [3, 5], ..few.to_layout() }.encode().unwrap();
    assert!(ReplicaIndex::open(&View::parse(&layout).unwrap(), &bytes).is_none(), "another file");
}

#[test]
fn a_file_without_replicas_has_an_index_that_finds_nothing() {
    let bytes = encoded(&[]);
    let view = View::parse(&bytes).unwrap();
    let index_bytes = built(&view, Bins::of(&view));
    let index = ReplicaIndex::open(&view, &index_bytes).unwrap();
    assert_eq!(index.bins().count(), 1);
    assert_eq!(index.entries(0).len(), 0);
    assert_eq!(index.lookup(Logical(0), 1, &AtomicU32::new(1)), None);
}

#[test]
fn too_short_a_buffer_is_left_as_it_is() {
    let bytes = encoded(&[Pattern { base: 0, block: 100, dims: vec![(1000, 5)] }]);
    let view = View::parse(&bytes).unwrap();
    let bins = Bins::of(&view);
    let mut short = vec![7; ReplicaIndex::bytes_needed(&view, bins) - 1];
    assert!(ReplicaIndex::build_into(&view, bins, &mut short).is_none());
    assert!(short.iter().all(|byte| *byte == 7));
    let mut longer = vec![7; ReplicaIndex::bytes_needed(&view, bins) + 13];
    assert!(ReplicaIndex::build_into(&view, bins, &mut longer).is_some());
}

#[test]
fn threads_that_share_a_history_find_what_each_would_find_alone() {
    // Columns, rows over them, and the whole array over both: answers of three kinds of replicas take turns.
    let columns = (0..16u64).map(|c| Pattern { base: c * 64, block: 64, dims: vec![(1024, 256)] });
    let rows = (0..16u64).map(|r| Pattern { base: r * 16_384, block: 16_384, dims: vec![] });
    let patterns: Vec<_> = columns.chain(rows).chain([Pattern { base: 0, block: 1 << 18, dims: vec![] }]).collect();
    let bytes = encoded(&patterns);
    let view = View::parse(&bytes).unwrap();
    let index_bytes = built(&view, Bins::of(&view));
    let index = ReplicaIndex::open(&view, &index_bytes).unwrap();
    let history = AtomicU32::new(0);
    let (view, index, history) = (&view, &index, &history);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || {
                let mut random = stripewise_chance::SplitMix64::at(thread);
                for _ in 0..20_000 {
                    let (at, len) = (random.bits() % (1 << 18), [1, 64, 1024, 16_384, 40_000][(random.bits() % 5) as usize]);
                    let at = at / len * len;
                    assert_eq!(index.lookup(Logical(at), len, history), view.replica_lookup(Logical(at), len));
                }
            });
        }
    });
}

#[test]
fn replicas_that_meet_across_a_row_s_end_are_not_alone() {
    // Of rows of 1,000 bytes the first one's blocks begin in one and end in the next, in those of the second; the third's lie apart.
    let patterns = [990, 1020, 1500].map(|base| Pattern { base, block: 100, dims: vec![(1000, 5)] });
    let bytes = encoded(&patterns);
    let view = View::parse(&bytes).unwrap();
    let index_bytes = built(&view, Bins::of(&view));
    let index = ReplicaIndex::open(&view, &index_bytes).unwrap();
    assert_eq!([0, 1, 2].map(|replica| index.is_alone(replica)), [false, false, true]);
}

#[test]
fn among_hundreds_of_equal_replicas_the_first_wins() {
    let patterns: Vec<_> = (0..300).map(|i| Pattern { base: 0, block: [300, 100, 200][i % 3], dims: vec![(1000, 5)] }).collect();
    let bytes = encoded(&patterns);
    let view = View::parse(&bytes).unwrap();
    let index_bytes = built(&view, Bins::of(&view));
    let index = ReplicaIndex::open(&view, &index_bytes).unwrap();
    let in_order: Vec<usize> = [1, 2, 0].into_iter().flat_map(|kind| (kind..300).step_by(3)).collect();
    assert_eq!(index.entries(0).map(|entry| entry.index).collect::<Vec<_>>(), in_order);
    for (len, first) in [(1, 1), (100, 1), (101, 2), (201, 0), (300, 0)] {
        let answers = [view.replica_lookup(Logical(2000), len), index.lookup(Logical(2000), len, &AtomicU32::new(300))];
        assert_eq!(answers.map(|hit| hit.map(|hit| hit.index)), [Some(first); 2]);
    }
}
