//! The map of random layouts against the slow, obvious one: tiling, bijection, merging, extents, sizes.

use std::collections::BTreeMap;

use crate::common::{TARGETS, layout, oracle, probes, window};
use proptest::prelude::*;
use stripewise_layout::{GRANULE, Layout, Logical, MAX_LOGICAL, ORIGINAL, ObjectOffset, Placement, Region, Stripe, View};

const REACH: u64 = 400 * GRANULE;

fn all_targets() -> impl Iterator<Item = u32> {
    (0..TARGETS).chain([ORIGINAL])
}

/// Every object, (target, plane); the plain file once.
fn objects() -> impl Iterator<Item = (u32, u32)> {
    (0..TARGETS).flat_map(|t| [(t, 0), (t, 1)]).chain([(ORIGINAL, 0)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn an_object_holds_a_byte_of_the_file_once_it_reaches_past_its_first(layout in layout(), size in 0..REACH) {
        let bytes = layout.encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        for (target, plane) in objects().filter(|o| o.0 != ORIGINAL) {
            let first = view.first_byte(target, plane);
            prop_assert_eq!(first.is_some(), view.uses_object(target, plane));
            let first = first.unwrap_or(MAX_LOGICAL);
            let has_bytes = view.pieces(Logical(0), size).any(|p| (p.target, p.plane) == (target, plane));
            prop_assert_eq!(has_bytes, first < size, "target {} plane {} first {}", target, plane, first);
        }
    }

    #[test]
    fn pieces_tile_the_request_and_lie_where_the_formula_says(layout in layout(), at in 0..REACH, len in 1..REACH) {
        let bytes = layout.encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        let mut next = at;
        for piece in view.pieces(Logical(at), len) {
            prop_assert_eq!(piece.logical, next);
            prop_assert!(piece.len > 0);
            for p in probes(piece.logical, piece.len) {
                prop_assert_eq!(oracle(&layout.regions, p), (piece.target, piece.plane, piece.object_offset + (p - piece.logical)));
            }
            next += piece.len;
        }
        prop_assert_eq!(next, at + len);
    }

    #[test]
    fn neighbouring_pieces_that_continue_in_the_object_are_one(layout in layout(), at in 0..REACH, len in 1..REACH) {
        let bytes = layout.encode().unwrap();
        let pieces: Vec<_> = View::parse(&bytes).unwrap().pieces(Logical(at), len).collect();
        for pair in pieces.windows(2) {
            prop_assert!((pair[0].target, pair[0].plane) != (pair[1].target, pair[1].plane) || pair[0].object_offset + pair[0].len != pair[1].object_offset);
        }
    }

    #[test]
    fn a_request_of_one_run_has_one_piece_and_so_has_each_that_is_shorter(layout in layout(), at in 0..REACH, len in 1..REACH) {
        let bytes = layout.encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        let pieces: Vec<_> = view.pieces(Logical(at), len).collect();
        match view.single(Logical(at), len) {
            Some(piece) => {
                prop_assert_eq!(&pieces, &vec![piece]);
                prop_assert_eq!(view.single(Logical(at), 1 + len / 2).map(|piece| piece.len), Some(1 + len / 2));
            }
            None => prop_assert!(len > 1 || pieces.is_empty()),
        }
    }

    #[test]
    fn extents_hold_the_bytes_of_the_pieces_one_per_window_and_target(layout in layout(), at in 0..REACH, len in 1..REACH) {
        let bytes = layout.encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        let mut seen = BTreeMap::new();
        let mut covered: Vec<(u64, u64)> = Vec::new();
        for extent in view.extents(Logical(at), len) {
            let first = extent.pieces().next().unwrap().0;
            let start = if extent.target == ORIGINAL { extent.region().start } else { window(&layout.regions, first).0 };
            prop_assert_eq!(seen.insert((start, extent.target), ()), None);
            prop_assert!(extent.len > 0);
            let mut offset = extent.object_offset;
            let mut before = None;
            for (logical, n) in extent.pieces() {
                prop_assert_ne!(before, Some(logical), "adjacent slices are merged");
                for p in probes(logical, n) {
                    prop_assert_eq!(oracle(&layout.regions, p), (extent.target, extent.plane, offset + (p - logical)));
                }
                covered.push((logical, n));
                offset += n;
                before = Some(logical + n);
            }
            prop_assert_eq!(offset, extent.object_offset + extent.len);
        }
        covered.sort_unstable();
        let mut next = at;
        for (logical, n) in covered {
            prop_assert_eq!(logical, next);
            next += n;
        }
        prop_assert_eq!(next, at + len);
    }

    #[test]
    fn the_map_is_a_bijection(layout in layout(), offsets in prop::collection::vec(0..2 * REACH, 40)) {
        let bytes = layout.encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        for x in offsets {
            let (target, plane, object) = oracle(&layout.regions, x);
            prop_assert!(object <= x);
            prop_assert_eq!(view.inverse(target, plane, ObjectOffset(object)), Some(Logical(x)));
            for (target, plane) in objects() {
                if let Some(Logical(at)) = view.inverse(target, plane, ObjectOffset(x)) {
                    prop_assert_eq!(oracle(&layout.regions, at), (target, plane, x));
                }
            }
        }
    }

    #[test]
    fn bytes_per_target_over_one_cycle_are_the_widths(place in crate::common::striped(), cycles in 1..5u64) {
        let Placement::Striped(stripes) = place.clone() else { panic!("striped") };
        let cycle: u64 = stripes.iter().map(|s| s.width_bytes).sum();
        let region = Region { start: 0, len: cycle * cycles, generation: 1, placement: place };
        let bytes = Layout { regions: vec![region], ..Layout::default() }.encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        for s in &stripes {
            let held: u64 = view.pieces(Logical((cycles - 1) * cycle), cycle).filter(|p| p.target == s.target).map(|p| p.len).sum();
            prop_assert_eq!(held, s.width_bytes);
            prop_assert_eq!(view.target_bytes(s.target, cycle), s.width_bytes);
            prop_assert_eq!(view.home().region(0).unwrap().slice(s.target).unwrap().len, s.width_bytes * cycles);
        }
    }

    #[test]
    fn a_cut_at_end_of_keeps_what_is_below_the_size_and_drops_the_rest(layout in layout(), size in 0..REACH) {
        let bytes = layout.encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        let mut ends = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for p in probes(0, REACH + 60 * GRANULE).chain([size.saturating_sub(1), size]) {
            let (target, plane, object) = oracle(&layout.regions, p);
            let end = *ends.entry((target, plane)).or_insert_with(|| view.end_of(target, plane, size));
            prop_assert_eq!(object < end, p < size, "byte {} on {} in {}", p, target, plane);
        }
        for piece in view.pieces(Logical(0), size) {
            *counts.entry(piece.target).or_insert(0) += piece.len;
        }
        for target in all_targets() {
            prop_assert_eq!(view.target_bytes(target, size), counts.get(&target).copied().unwrap_or(0));
        }
    }

    #[test]
    fn logical_end_is_one_past_the_last_byte_below_the_object_length(layout in layout(), object_len in 0..REACH, size in 0..REACH) {
        let bytes = layout.encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        let mut largest = BTreeMap::new();
        for p in view.pieces(Logical(0), 2 * REACH) {
            if p.object_offset < object_len {
                let bytes = (object_len - p.object_offset).min(p.len);
                largest.insert((p.target, p.plane), p.logical + bytes);
            }
        }
        for (t, p) in objects() {
            prop_assert_eq!(view.logical_end(t, p, object_len), largest.get(&(t, p)).copied().unwrap_or(0));
            prop_assert!(view.logical_end(t, p, view.end_of(t, p, size)) <= size);
        }
        // The longest object tells the size: what recovery after a power cut relies on.
        let recovered = objects().map(|(t, p)| view.logical_end(t, p, view.end_of(t, p, size))).max();
        prop_assert_eq!(recovered, Some(size));
    }

    #[test]
    fn offsets_up_to_the_limit_map_and_beyond_it_are_empty(layout in layout(), back in 1..100_000u64, len in 1..200_000u64) {
        let bytes = layout.encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        let at = MAX_LOGICAL - back;
        let sum: u64 = view.pieces(Logical(at), len).map(|p| p.len).sum();
        let extents: u64 = view.extents(Logical(at), len).map(|e| e.len).sum();
        let expected = if len <= back { len } else { 0 };
        prop_assert_eq!((sum, extents), (expected, expected));
        for (at, len) in [(u64::MAX, 1), (u64::MAX, u64::MAX), (0, u64::MAX), (MAX_LOGICAL, 1), (5, 0)] {
            prop_assert_eq!(view.pieces(Logical(at), len).next(), None);
            prop_assert!(view.extents(Logical(at), len).next().is_none());
            prop_assert_eq!(view.single(Logical(at), len), None);
        }
        if let Some(piece) = view.single(Logical(at), len) {
            prop_assert_eq!(view.pieces(Logical(at), len).collect::<Vec<_>>(), vec![piece]);
        }
        let region = view.region_at(Logical(at));
        prop_assert!(region.start <= at && at < region.end());
        let piece = view.pieces(Logical(at), 1).next().unwrap();
        prop_assert_eq!(view.inverse(piece.target, piece.plane, ObjectOffset(piece.object_offset)), Some(Logical(at)));
        for (t, p) in objects() {
            for extreme in [0, 1, MAX_LOGICAL, 1 << 63, u64::MAX] {
                let _ = (view.inverse(t, p, ObjectOffset(extreme)), view.end_of(t, p, extreme), view.logical_end(t, p, extreme), view.target_bytes(t, extreme));
            }
        }
    }
}

#[test]
fn default_striping_of_64_kib_over_four_targets_is_round_robin() {
    let stripes = (0..4).map(|target| Stripe { target, width_bytes: 65_536 }).collect();
    let region = Region { start: 0, len: 64 << 20, generation: 0, placement: Placement::Striped(stripes) };
    let bytes = Layout { regions: vec![region], ..Layout::default() }.encode().unwrap();
    let view = View::parse(&bytes).unwrap();
    let found: Vec<_> = view.pieces(Logical(5 * 65_536 + 10), 65_536).map(|p| (p.target, p.object_offset, p.len)).collect();
    assert_eq!(found, [(1, 65_546, 65_526), (2, 65_536, 10)]);
    // The second repetition has the window that begins at 64 MiB.
    let second = view.pieces(Logical(64 << 20), 1).next().unwrap();
    assert_eq!((second.target, second.object_offset), (0, 64 << 20));
    assert!(view.uses_target(3) && !view.uses_target(4) && !view.uses_target(ORIGINAL));
    assert_eq!(view.target_count(), 4);
}

#[test]
fn full_slices_of_neighbours_are_one_piece_only_within_a_plane() {
    let region =
        |start, generation| Region { start, len: 8192, generation, placement: Placement::Striped(vec![Stripe { target: 2, width_bytes: 4096 }]) };
    for (generation, pieces) in [(1, 1), (3, 1), (0, 2)] {
        let bytes = Layout { regions: vec![region(0, 1), region(8192, generation)], ..Layout::default() }.encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        assert_eq!(view.pieces(Logical(0), 16_384).count(), pieces);
        assert_eq!(view.extents(Logical(0), 16_384).count(), 2);
        assert_eq!(view.uses_object(2, 0), generation == 0);
        assert!(view.uses_object(2, 1) && !view.uses_object(1, 1));
    }
}
