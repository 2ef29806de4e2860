//! Editing region lists: nothing outside a span changes, spans are what differs, planes keep old and new apart.

use std::collections::BTreeSet;

use crate::common::{oracle, probes, regions, regions_of, striped, window};
use proptest::prelude::*;
use stripewise_layout::{
    GRANULE, Layout, LayoutError, MovePhase, ORIGINAL, Placement, Region, Span, Stripe, View, plane_for, rotated, spans, splice, unrolled, within,
};

const REACH: u64 = 300 * GRANULE;

fn borders(list: &[Region]) -> Vec<u64> {
    unrolled(list, REACH).iter().map(|r| r.start).collect()
}

fn on(target: u32) -> Placement {
    Placement::Striped(vec![Stripe { target, width_bytes: GRANULE }])
}

fn region(start: u64, len: u64, generation: u32, placement: Placement) -> Region {
    Region { start, len, generation, placement }
}

/// The same bounds as `list` inside the span, new placements, the generation that `plane_for` gives.
fn replaced(list: &[Region], span: Span, generation: u32, by: &[Placement]) -> Vec<Region> {
    let inside = within(list, span).unwrap();
    inside.into_iter().zip(by.iter().cycle()).map(|(r, p)| Region { generation, placement: p.clone(), ..r }).collect()
}

/// The granules of objects that the windows of a list own, up to `REACH`.
fn owned(list: &[Region], from: u64, to: u64) -> BTreeSet<(u32, u32, u64)> {
    (from..to).step_by(GRANULE as usize).map(|at| oracle(list, at)).filter(|(t, _, _)| *t != ORIGINAL).collect()
}

fn random_span(list: &[Region], a: usize, b: usize, to_end: bool) -> Span {
    let borders = borders(list);
    let (x, y) = (borders[a % borders.len()], borders[b % borders.len()]);
    let start = x.min(y);
    if to_end || x == y { Span::to_end(start) } else { Span { start, len: x.max(y) - start } }
}

fn borders_end(list: &[Region]) -> u64 {
    list.last().map_or(0, |r| r.start + r.len)
}

/// A file on the `home` regions, of which those of the span move to `copy`: while they are copied, and when that is published.
fn cuts_at(home: &[Region], copy: &[Region], span: Span, size: u64) -> Result<(), TestCaseError> {
    let copying = Layout { regions: home.to_vec(), pending: copy.to_vec(), phase: MovePhase::Copying, span, ..Layout::default() };
    // Regions that never come into step, which a move refuses.
    prop_assume!(copying.validate().is_ok());
    let (regions, retired) = (splice(home, copy, span).unwrap(), within(home, span).unwrap());
    let published = Layout { regions, pending: vec![], retired, phase: MovePhase::Punching, ..copying.clone() };
    for layout in [copying, published] {
        let bytes = layout.encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        for p in probes(0, REACH).chain([size.saturating_sub(1), size]) {
            let lists = [("home", home), ("copy", copy)];
            for (name, list) in lists.into_iter().filter(|(name, _)| *name == "home" || span.contains(p)) {
                let (target, plane, object) = oracle(list, p);
                // A copy in a plain file would be the plain file.
                if target != ORIGINAL || name == "home" {
                    prop_assert_eq!(object < view.end_with_copies(target, plane, size), p < size, "{} of {} on {} in {}", name, p, target, plane);
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn splicing_changes_nothing_outside_the_span(
        old in regions(), by in prop::collection::vec(striped(), 1..4), a in 0..200usize, b in 0..200usize, to_end: bool, generation in 0..9u32,
    ) {
        let span = random_span(&old, a, b, to_end);
        let new = replaced(&old, span, generation, &by);
        let list = splice(&old, &new, span).unwrap();
        Layout { regions: list.clone(), ..Layout::default() }.validate().unwrap();
        for p in probes(0, REACH) {
            if span.contains(p) {
                prop_assert_eq!(&window(&list, p).1.placement, &window(&new, p).1.placement);
            } else {
                prop_assert_eq!(oracle(&list, p), oracle(&old, p));
            }
        }
        // Putting the old ones back gives the old map again.
        let back = splice(&list, &within(&old, span).unwrap(), span).unwrap();
        for p in probes(0, REACH) {
            prop_assert_eq!(oracle(&back, p), oracle(&old, p));
        }
    }

    #[test]
    fn spans_are_minimal_unions_of_whole_regions_and_leave_out_what_is_equal(old in regions(), new in regions(), up_to in 0..REACH) {
        let found = spans(&old, &new, up_to);
        let common: BTreeSet<u64> = borders(&old).into_iter().filter(|b| borders(&new).contains(b)).collect();
        let mut end = 0;
        for span in &found {
            prop_assert!(span.start >= end);
            end = span.end();
            prop_assert!(span.start >= REACH || common.contains(&span.start));
            within(&old, *span).unwrap();
            within(&new, *span).unwrap();
            if !span.is_to_end() && end < REACH {
                prop_assert!(common.range(span.start + 1..end).next().is_none(), "a smaller span would do");
            }
        }
        let mut list = old.clone();
        for span in &found {
            list = splice(&list, &within(&new, *span).unwrap(), *span).unwrap();
        }
        for p in (0..REACH).step_by(GRANULE as usize) {
            let ((s, x), (t, y)) = (window(&list, p), window(&new, p));
            prop_assert_eq!((s, x.len, &x.placement), (t, y.len, &y.placement));
            if !found.iter().any(|s| s.contains(p)) {
                prop_assert_eq!(&window(&old, p).1.placement, &y.placement);
            }
        }
        prop_assert_eq!(spans(&new, &new, up_to), vec![]);
    }

    #[test]
    fn a_cut_during_a_move_drops_all_above_the_size_and_keeps_all_below(
        mut old in regions(), mut new in regions(), parity in 0..2u32, size in 0..REACH,
    ) {
        for r in &mut old {
            r.generation = r.generation / 2 * 2 + parity;
        }
        let generation = plane_for(&old, Span::to_end(0)).unwrap();
        new.iter_mut().for_each(|r| r.generation = generation);
        cuts_at(&old, &new, Span::to_end(0), size)?;
    }

    /// As a mover has them that moves several spans at once, each into the plane that its home leaves free.
    #[test]
    fn a_cut_does_so_where_neighbouring_spans_change_planes_each_for_itself(
        steps in prop::collection::vec((0..2u32, regions(), regions()), 1..6), before in striped(), behind in prop::option::of(striped()), size in 0..REACH,
    ) {
        let mut start = 8 * GRANULE;
        let (mut old, mut new) = (vec![], vec![]);
        for (parity, home, copy) in steps {
            let end = start + borders_end(&home).max(borders_end(&copy));
            for (list, rows, plane) in [(&mut old, home, parity), (&mut new, copy, 1 - parity)] {
                let mut at = start;
                let count = rows.len();
                for (i, row) in rows.into_iter().enumerate() {
                    let len = if i + 1 == count { end - at } else { row.len };
                    list.push(Region { start: at, len, generation: row.generation / 2 * 2 + plane, ..row });
                    at += len;
                }
            }
            start = end;
        }
        let span = if behind.is_some() { Span { start: 8 * GRANULE, len: start - 8 * GRANULE } } else { Span::to_end(8 * GRANULE) };
        old.insert(0, region(0, 8 * GRANULE, 0, before));
        old.extend(behind.map(|placement| region(start, 8 * GRANULE, 0, placement)));
        cuts_at(&old, &new, span, size)?;
    }

    #[test]
    fn a_move_within_equal_bounds_never_shares_object_bytes(
        mut old in regions(), parity in 0..2u32, by in prop::collection::vec(striped(), 1..4), a in 0..200usize, b in 0..200usize, to_end: bool,
    ) {
        for r in &mut old {
            r.generation = r.generation / 2 * 2 + parity;
        }
        let span = random_span(&old, a, b, to_end);
        let pending = replaced(&old, span, plane_for(&old, span).unwrap(), &by);
        let copying = Layout { regions: old.clone(), pending: pending.clone(), phase: MovePhase::Copying, span, ..Layout::default() };
        let bytes = copying.encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        prop_assert_eq!((view.phase(), view.span()), (MovePhase::Copying, span));
        let to = span.end().min(REACH);
        prop_assert!(owned(&old, 0, REACH).is_disjoint(&owned(&pending, span.start, to)));
        for piece in view.pending().pieces(span.start, to.saturating_sub(span.start)) {
            prop_assert_eq!(oracle(&pending, piece.logical), (piece.target, piece.plane, piece.object_offset));
        }
        let published = Layout {
            regions: splice(&old, &pending, span).unwrap(),
            retired: within(&old, span).unwrap(),
            phase: MovePhase::Punching,
            span,
            ..Layout::default()
        };
        prop_assert_eq!(Layout::decode(&published.encode().unwrap()).unwrap(), published);
    }

    #[test]
    fn a_move_that_would_share_object_bytes_is_refused(old in regions_of(striped()), new in regions_of(striped()), generation in 0..2u32) {
        // Any bounds, any planes: what is accepted is apart.
        let span = Span::to_end(0);
        let pending: Vec<_> = new.into_iter().map(|r| Region { generation: r.generation + generation, ..r }).collect();
        let copying = Layout { regions: old.clone(), pending: pending.clone(), phase: MovePhase::Copying, span, ..Layout::default() };
        match copying.validate() {
            Ok(()) => prop_assert!(owned(&old, 0, REACH).is_disjoint(&owned(&pending, 0, REACH))),
            Err(e) => prop_assert!(matches!(e, LayoutError::Collision { .. }), "{}", e),
        }
    }

    #[test]
    fn regions_of_the_other_plane_never_share_object_bytes_whatever_their_bounds(
        mut old in regions_of(striped()), mut new in regions_of(striped()), plane in 0..2u32, base in 0..4u32,
    ) {
        for (list, plane) in [(&mut old, plane), (&mut new, 1 - plane)] {
            list.iter_mut().for_each(|r| r.generation = 2 * base + plane);
        }
        prop_assert!(owned(&old, 0, REACH).is_disjoint(&owned(&new, 0, REACH)));
        let copying = Layout { regions: old, pending: new, phase: MovePhase::Copying, span: Span::to_end(0), ..Layout::default() };
        prop_assert_eq!(copying.validate(), Ok(()));
    }

    #[test]
    fn live_regions_never_share_object_bytes(list in regions()) {
        let all: Vec<_> = (0..REACH).step_by(GRANULE as usize).map(|at| oracle(&list, at)).collect();
        let distinct: BTreeSet<_> = all.iter().copied().collect();
        prop_assert_eq!(distinct.len(), all.len());
    }
}

#[test]
fn only_regions_of_one_plane_that_overlap_collide() {
    let halves = |generation, target| vec![region(0, 4 * GRANULE, generation, on(target)), region(4 * GRANULE, 4 * GRANULE, generation, on(target))];
    let copying = |pending| {
        Layout {
            regions: vec![region(0, 8 * GRANULE, 0, on(0))],
            pending,
            phase: MovePhase::Copying,
            span: Span { start: 0, len: 8 * GRANULE },
            ..Layout::default()
        }
        .validate()
    };
    assert_eq!(copying(halves(2, 0)), Err(LayoutError::Collision { home: 0, other: 0 }));
    assert_eq!(copying(halves(2, 1)), Ok(()), "other targets");
    assert_eq!(copying(halves(1, 0)), Ok(()), "the other plane");
}

#[test]
fn a_span_in_both_planes_has_no_free_plane() {
    let list = [region(0, 8192, 2, on(0)), region(8192, 8192, 3, on(0)), region(16_384, 8192, 3, Placement::Original)];
    assert_eq!(plane_for(&list, Span { start: 0, len: 16_384 }).unwrap_err().at, 8192);
    assert_eq!(plane_for(&list, Span { start: 0, len: 8192 }), Ok(3));
    assert_eq!(plane_for(&list, Span::to_end(8192)), Ok(4));
    assert_eq!(plane_for(&list, Span::to_end(16_384)), Ok(0));
}

#[test]
fn a_cut_repeating_region_goes_on_in_step() {
    let list = [region(0, 8192, 0, on(0))];
    let new = [region(16_384, 8192, 1, on(1))];
    let got = splice(&list, &new, Span { start: 16_384, len: 8192 }).unwrap();
    let starts: Vec<_> = got.iter().map(|r| (r.start, r.generation)).collect();
    assert_eq!(starts, [(0, 0), (8192, 0), (16_384, 1), (24_576, 0)]);
    assert!(splice(&list, &new, Span { start: 4096, len: 8192 }).is_err(), "cuts a repetition");
    assert!(splice(&list, &new, Span { start: 16_384, len: 16_384 }).is_err(), "new does not cover it");
    assert!(splice(&list, &[], Span { start: 16_384, len: 8192 }).is_err(), "new is empty");
    assert!(within(&list, Span { start: 0, len: u64::MAX - 4096 }).is_err(), "ends past the limit");
}

#[test]
fn a_span_may_end_past_the_file_when_regions_do() {
    let old = [region(0, 64 * GRANULE, 0, on(0))];
    let new: Vec<_> = (0..64).map(|i| region(i * GRANULE, GRANULE, 0, on(1))).chain([region(64 * GRANULE, 64 * GRANULE, 0, on(0))]).collect();
    assert_eq!(spans(&old, &new, 5), [Span { start: 0, len: 64 * GRANULE }]);
    // Lengths that come into step only far out: the rest is one span.
    let odd = [region(0, 1_000_003 * GRANULE, 0, on(0))];
    let even = [region(0, (1 << 20) * GRANULE, 0, on(0))];
    assert_eq!(spans(&odd, &even, 5), [Span::to_end(0)]);
}

#[test]
fn rotation_moves_the_first_target() {
    let cycle: Vec<_> = (0..3).map(|target| Stripe { target, width_bytes: GRANULE }).collect();
    assert_eq!(rotated(&cycle, 4).iter().map(|s| s.target).collect::<Vec<_>>(), [1, 2, 0]);
    assert_eq!(rotated(&[], 4), []);
}
