//! Replicas of strided patterns against the flattened list of their blocks.

use crate::common::{oracle, regions_of, striped};
use proptest::prelude::*;
use stripewise_layout::{Dim, GRANULE, Layout, LayoutError, Logical, OnWrite, Placement, Region, Replica, ReplicaHit, ReplicaOffset, Stripe, View};

fn home() -> Vec<Region> {
    let placement = Placement::Striped(vec![Stripe { target: 0, width_bytes: GRANULE }]);
    vec![Region { start: 0, len: 1 << 20, generation: 0, placement }]
}

fn replica(id: u32, base: u64, block: u64, dims: &[(u64, u64)]) -> Replica {
    let dims = dims.iter().map(|(stride, count)| Dim { stride: *stride, count: *count }).collect();
    Replica { id, base, block, dims, domain_base: u64::from(id) << 40, is_home: false, on_write: OnWrite::Update, regions: home() }
}

/// Loops in any order whose blocks do not overlap: by stride each steps over all smaller ones, with a gap of its own.
fn pattern() -> impl Strategy<Value = Replica> {
    let loops = prop::collection::vec((1..5u64, 0..3000u64), 0..5);
    (loops, 1..5000u64, 0..100_000u64, regions_of(striped()), any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(loops, block, base, regions, turn, is_updated)| {
            let mut reach = block;
            let mut dims: Vec<Dim> = loops
                .into_iter()
                .map(|(count, gap)| {
                    let stride = reach + gap;
                    reach += stride * (count - 1);
                    Dim { stride, count }
                })
                .collect();
            let n = dims.len().max(1);
            dims.rotate_left(turn.index(n) % n);
            let on_write = if is_updated { OnWrite::Update } else { OnWrite::Invalidate };
            Replica { id: 7, base, block, dims, domain_base: 1 << 40, is_home: false, on_write, regions }
        },
    )
}

/// Starts of all blocks in access order.
fn flattened(r: &Replica) -> Vec<u64> {
    r.dims.iter().fold(vec![r.base], |starts, dim| starts.iter().flat_map(|s| (0..dim.count).map(move |k| s + k * dim.stride)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn division_finds_what_the_flattened_list_finds(r in pattern(), shift in 0..5000u64, len in 1..5000u64) {
        let layout = Layout { regions: home(), replicas: vec![r.clone()], ..Layout::default() };
        let bytes = layout.encode().unwrap();
        prop_assert_eq!(&Layout::decode(&bytes).unwrap(), &layout);
        let view = View::parse(&bytes).unwrap();
        let mapped = view.replica(0).unwrap();
        let starts = flattened(&r);
        prop_assert_eq!(mapped.total(), starts.len() as u64 * r.block);
        for (rank, start) in starts.iter().enumerate() {
            for (from, len) in [(0, r.block), (shift % r.block, 1), (r.block - 1, 1), (shift, len), (r.block, 1)] {
                let at = start + from;
                let holds = |s: &u64| *s <= at && at + len <= s + r.block;
                let expected = starts.iter().position(holds).map(|k| ReplicaOffset(k as u64 * r.block + at - starts[k]));
                prop_assert_eq!(mapped.locate(Logical(at), len), expected);
                prop_assert_eq!(view.replica_lookup(Logical(at), len), expected.map(|offset| ReplicaHit { index: 0, offset }));
                if from + len <= r.block {
                    prop_assert_eq!(expected, Some(ReplicaOffset(rank as u64 * r.block + from)));
                    prop_assert_eq!(mapped.inverse(expected.unwrap()), Some(Logical(at)));
                }
            }
        }
        prop_assert_eq!(mapped.inverse(ReplicaOffset(mapped.total())), None);
        // What a range holds of it, block by block.
        let last = starts.iter().max().unwrap() + r.block;
        for (at, len) in [(0, last + 9), (r.base + shift, len), (r.base + shift, len * 7), (r.base.saturating_sub(shift), len)] {
            let end = at + len;
            let inside = starts.iter().enumerate().filter(|(_, start)| **start < end && at < **start + r.block);
            let mut expected: Vec<(u64, u64, u64)> = inside
                .map(|(rank, start)| {
                    let from = at.max(*start);
                    (from, end.min(start + r.block) - from, rank as u64 * r.block + from - start)
                })
                .collect();
            expected.sort_unstable();
            let found: Vec<_> = mapped.overlaps(Logical(at), len).map(|o| (o.at.0, o.len, o.offset.0)).collect();
            prop_assert_eq!(found, expected);
        }
        let before = Logical(r.base.saturating_sub(1));
        prop_assert_eq!(mapped.locate(before, 1).is_some(), r.base == 0);
    }

    #[test]
    fn replica_bytes_lie_in_the_domain_where_its_regions_say(r in pattern(), at in 0..20_000u64, len in 1..20_000u64) {
        let bytes = Layout { regions: home(), replicas: vec![r.clone()], ..Layout::default() }.encode().unwrap();
        let mapped = View::parse(&bytes).unwrap().replica(0).unwrap();
        let inside = at + len <= mapped.total();
        let mut next = at;
        for piece in mapped.pieces(ReplicaOffset(at), len) {
            let (target, _, object) = oracle(&r.regions, piece.logical);
            prop_assert_eq!((piece.logical, piece.target, piece.object_offset), (next, target, object + r.domain_base));
            next += piece.len;
        }
        prop_assert_eq!(next, if inside { at + len } else { at });
        let sum: u64 = mapped.extents(ReplicaOffset(at), len).map(|e| e.len).sum();
        prop_assert_eq!(sum, next - at);
    }
}

#[test]
fn the_finest_block_that_holds_the_request_wins() {
    let replicas = vec![replica(1, 0, 65_536, &[(1 << 20, 4)]), replica(2, 0, 8192, &[(1 << 20, 4), (8192, 8)]), replica(3, 0, 16_384, &[])];
    let bytes = Layout { regions: home(), replicas, ..Layout::default() }.encode().unwrap();
    let view = View::parse(&bytes).unwrap();
    let index = |at, len| view.replica_lookup(Logical(at), len).map(|hit| hit.index);
    assert_eq!(index(4096, 4096), Some(1));
    assert_eq!(index(4096, 8192), Some(2));
    assert_eq!(index(12_288, 8192), Some(0));
    assert_eq!(index((1 << 20) + 12_288, 4096), Some(1));
    assert_eq!(index(1 << 19, 4096), None);
}

#[test]
fn blocks_that_overlap_and_domains_that_overlap_are_refused() {
    let refused = |replicas: Vec<Replica>| {
        let layout = Layout { regions: home(), replicas, ..Layout::default() };
        matches!(layout.validate(), Err(LayoutError::Replica { .. }))
    };
    assert!(!refused(vec![replica(1, 5, 100, &[(100, 3), (300, 4)])]));
    assert!(refused(vec![replica(1, 0, 100, &[(99, 3)])]));
    assert!(refused(vec![replica(1, 0, 100, &[(250, 3), (100, 3)])]), "the outer loop steps into the inner one's blocks");
    assert!(refused(vec![replica(1, 0, 100, &[(100, 0)])]));
    assert!(refused(vec![replica(1, 0, 0, &[])]));
    assert!(refused(vec![replica(1, 0, 1, &[(2, 2); 9])]), "nine loops");
    assert!(refused(vec![replica(1, 1 << 61, 1 << 60, &[(1 << 61, 4)])]), "past 2^62");
    assert!(refused(vec![replica(2, 0, 100, &[]), replica(1, 0, 100, &[])]), "not in the order of domains");
    assert!(refused(vec![replica(1, 0, 100, &[]), replica(1, 4096, 100, &[])]), "one domain twice");
    let whole = Region { placement: Placement::Original, ..home()[0].clone() };
    assert!(refused(vec![Replica { regions: vec![whole], ..replica(1, 0, 100, &[]) }]));
}
