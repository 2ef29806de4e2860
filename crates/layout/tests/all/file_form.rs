//! The layout file: what is written is read back; damage, limits and newer versions are refused; nothing panics on any bytes.

use crate::common::{layout, regions};
use proptest::prelude::*;
use stripewise_layout::{
    Dim, GRANULE, Layout, LayoutError, Logical, MAX_LOGICAL, MAX_TARGETS, MovePhase, ORIGINAL, ObjectOffset, OnWrite, Origin, Placement, Region,
    Replica, ReplicaOffset, Span, Stripe, View, stamp,
};

fn reseal(bytes: &mut [u8]) {
    if bytes.len() >= 16 {
        bytes[12..16].fill(0);
        let crc = stripewise_checksum::crc32c(bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    }
}

/// A layout with something in every section.
fn full() -> impl Strategy<Value = Layout> {
    (regions(), crate::common::regions_of(crate::common::striped()), 0..3u8, any::<[u64; 2]>(), any::<u64>()).prop_map(
        |(mut regions, rows, phase, file_id, generation)| {
            for r in &mut regions {
                r.generation &= !1;
            }
            let moved: Vec<_> = regions.iter().map(|r| Region { generation: r.generation + 1, ..r.clone() }).collect();
            let replica = Replica {
                id: 3,
                base: 10,
                block: 100,
                dims: vec![Dim { stride: 5000, count: 3 }, Dim { stride: 200, count: 9 }],
                domain_base: 1 << 30,
                is_home: true,
                on_write: OnWrite::Update,
                regions: rows,
            };
            let origin = [Origin::Unknown, Origin::Own, Origin::Given, Origin::Drained][generation as usize % 4];
            let mut layout = Layout { generation, file_id, origin, regions, replicas: vec![replica], ..Layout::default() };
            match phase {
                1 => (layout.pending, layout.phase, layout.span) = (moved, MovePhase::Copying, Span::to_end(0)),
                2 => (layout.retired, layout.phase, layout.span) = (moved, MovePhase::Punching, Span::to_end(0)),
                _ => {}
            }
            layout
        },
    )
}

/// Asks a view everything; returns whether all answers hold together.
fn exercise(view: &View<'_>) {
    let targets = view.target_count();
    for at in [0, 4095, 1 << 20, 1 << 40, MAX_LOGICAL - 9000, MAX_LOGICAL, u64::MAX] {
        let region = view.region_at(Logical(at));
        assert!(region.index as usize <= view.region_count());
        for table in [view.home(), view.pending(), view.retired()] {
            for len in [1, 9000, 1 << 30] {
                let (mut next, mut sum) = (at, 0);
                for p in table.pieces(at, len).take(300) {
                    assert!(p.len > 0 && p.logical == next && (p.target < targets || p.target == ORIGINAL));
                    next += p.len;
                }
                for e in table.extents(at, len).take(300) {
                    assert!(e.len > 0 && (e.target < targets || e.target == ORIGINAL));
                    sum += e.pieces().take(300).map(|(_, n)| n).sum::<u64>();
                }
                assert!(next - at <= len && sum <= len);
            }
        }
        for t in (0..3).chain([targets, ORIGINAL]) {
            let _ = (
                view.inverse(t, 1, ObjectOffset(at)),
                view.end_of(t, 1, at),
                view.logical_end(t, 1, at),
                view.target_bytes(t, at),
                view.uses_target(t),
            );
        }
        for i in 0..view.replica_count() {
            let replica = view.replica(i).unwrap();
            let _ = (view.replica_lookup(Logical(at), 50), replica.inverse(ReplicaOffset(at)), replica.total());
            assert!(replica.pieces(ReplicaOffset(at), 50).all(|p| p.target < targets));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_encoded_is_decoded(layout in full()) {
        let bytes = layout.encode().unwrap();
        prop_assert_eq!(Layout::decode(&bytes).unwrap(), layout);
        exercise(&View::parse(&bytes).unwrap());
    }

    #[test]
    fn damaged_bytes_are_refused_and_resealed_damage_never_leads_outside(
        layout in full(), hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..8u32), 1..6), seal: bool, cut in any::<prop::sample::Index>(), shorten: bool,
    ) {
        let mut bytes = layout.encode().unwrap();
        let sound = bytes.clone();
        for (at, value, bit) in hits {
            let at = at.index(bytes.len());
            // Half of the hits flip one bit: near misses get further than noise.
            if value % 2 == 0 { bytes[at] ^= 1 << bit } else { bytes[at] = value }
        }
        if shorten {
            bytes.truncate(cut.index(sound.len()));
        }
        if seal {
            reseal(&mut bytes);
        }
        match View::parse(&bytes) {
            Ok(view) => {
                prop_assert!(seal || bytes == sound);
                exercise(&view);
                prop_assert_eq!(view.to_layout().encode().map(|b| View::parse(&b).map(|v| v.to_layout())), Ok(Ok(view.to_layout())));
            }
            Err(e) => prop_assert!(e.to_string().len() > 20),
        }
    }

    #[test]
    fn fields_of_structure_with_extreme_values_never_lead_outside(layout in full(), word in any::<prop::sample::Index>(), pick in 0..9usize, wide: bool) {
        let mut bytes = layout.encode().unwrap();
        let extreme = [0, 1, 2, 4096, u64::from(u32::MAX), 1 << 62, (1 << 63) - 4096, u64::MAX - 4095, u64::MAX][pick];
        let size = if wide { 8 } else { 4 };
        let at = word.index(bytes.len() / size) * size;
        bytes[at..at + size].copy_from_slice(&extreme.to_le_bytes()[..size]);
        reseal(&mut bytes);
        if let Ok(view) = View::parse(&bytes) {
            exercise(&view);
        }
    }

    #[test]
    fn random_bytes_are_no_layout(mut bytes in prop::collection::vec(any::<u8>(), 0..600), head: bool) {
        if head && bytes.len() >= 24 {
            bytes[..8].copy_from_slice(b"SWLAYOUT");
            bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
            let len = bytes.len() as u64;
            bytes[16..24].copy_from_slice(&len.to_le_bytes());
            reseal(&mut bytes);
        }
        prop_assert!(View::parse(&bytes).is_err());
    }

    #[test]
    fn a_stamped_template_is_the_same_layout_with_an_id(layout in layout(), id in any::<[u64; 2]>()) {
        let mut bytes = layout.encode().unwrap();
        stamp(&mut bytes, id).unwrap();
        prop_assert_eq!(View::parse(&bytes).unwrap().file_id(), id);
        prop_assert_eq!(Layout::decode(&bytes).unwrap(), Layout { file_id: id, ..layout });
        // A damaged template does not get a good checksum.
        bytes[130] ^= 1;
        let damaged = bytes.clone();
        let refused = matches!(stamp(&mut bytes, id), Err(LayoutError::Checksum { .. }));
        prop_assert!(refused);
        prop_assert_eq!(bytes, damaged);
    }
}

fn one(placement: Placement) -> Layout {
    Layout { regions: vec![Region { start: 0, len: 1 << 20, generation: 0, placement }], ..Layout::default() }
}

fn stripes(list: &[(u32, u64)]) -> Placement {
    Placement::Striped(list.iter().map(|(target, width_bytes)| Stripe { target: *target, width_bytes: *width_bytes }).collect())
}

#[test]
fn a_newer_version_is_refused_before_anything_else_of_it_is_read() {
    let mut bytes = one(stripes(&[(0, 4096)])).encode().unwrap();
    bytes[8] = 3;
    assert_eq!(View::parse(&bytes).unwrap_err(), LayoutError::Newer { version: 3 });
    bytes[0] = b'X';
    assert_eq!(View::parse(&bytes).unwrap_err(), LayoutError::Magic);
    assert_eq!(View::parse(&bytes[..100]).unwrap_err(), LayoutError::TooShort { bytes: 100 });
}

#[test]
fn version_one_opens_and_is_the_present_one_once_it_is_stamped() {
    let present = one(stripes(&[(0, 4096), (1, 8192)])).encode().unwrap();
    let mut bytes = present.clone();
    bytes[8] = 1;
    reseal(&mut bytes);
    assert_eq!(Layout::decode(&bytes).unwrap(), Layout::decode(&present).unwrap());
    stamp(&mut bytes, [0, 0]).unwrap();
    assert_eq!(bytes, present);
    bytes[8] = 0;
    assert!(matches!(View::parse(&bytes).unwrap_err(), LayoutError::Header { .. }));
}

#[test]
fn each_rule_of_placements_is_kept() {
    let refused = |p: Placement| matches!(one(p).validate(), Err(LayoutError::Placement { index: 0, .. }));
    assert!(!refused(stripes(&[(0, 4096), (MAX_TARGETS - 1, 8192)])));
    assert!(refused(stripes(&[])));
    assert!(refused(stripes(&[(0, 0)])));
    assert!(refused(stripes(&[(0, 4097)])));
    assert!(refused(stripes(&[(0, 4096), (0, 4096)])));
    assert!(refused(stripes(&[(MAX_TARGETS, 4096)])));
    assert!(refused(stripes(&[(ORIGINAL, 4096)])));
    assert!(refused(stripes(&[(0, MAX_LOGICAL), (1, MAX_LOGICAL)])));
    assert!(refused(stripes(&[(0, u64::MAX - 4095), (1, 4096)])));
}

#[test]
fn each_rule_of_regions_and_moves_is_kept() {
    let good = one(stripes(&[(0, 4096)]));
    let at = |start, len| Region { start, len, ..good.regions[0].clone() };
    let refused = |regions: Vec<Region>| matches!(Layout { regions, ..Layout::default() }.validate(), Err(LayoutError::Region { .. }));
    assert!(refused(vec![]));
    assert!(refused(vec![at(4096, 4096)]));
    assert!(refused(vec![at(0, 0)]));
    assert!(refused(vec![at(0, 100)]));
    assert!(refused(vec![at(0, 4096), at(8192, 4096)]));
    assert!(refused(vec![at(0, 8192), at(4096, 8192)]));
    assert!(refused(vec![at(0, MAX_LOGICAL), at(MAX_LOGICAL, GRANULE)]));
    let moves = |pending: Vec<Region>, phase, span| Layout { pending, phase, span, ..good.clone() }.validate();
    let odd = |start, len| Region { generation: 1, ..at(start, len) };
    let two = Span { start: 0, len: 2 << 20 };
    assert_eq!(moves(vec![odd(0, 1 << 20), odd(1 << 20, 1 << 20)], MovePhase::Copying, two), Ok(()));
    for (pending, phase, span) in [
        (vec![odd(0, 1 << 20)], MovePhase::None, Span::default()),
        (vec![], MovePhase::None, two),
        (vec![odd(0, 1 << 20)], MovePhase::Copying, two),
        (vec![odd(0, 2 << 20)], MovePhase::Punching, two),
        (vec![odd(0, 1 << 19)], MovePhase::Copying, Span { start: 0, len: 1 << 19 }),
        (vec![], MovePhase::Copying, Span::default()),
    ] {
        assert!(matches!(moves(pending, phase, span), Err(LayoutError::Move { .. })));
    }
    let same_plane = moves(vec![at(0, 1 << 20)], MovePhase::Copying, Span { start: 0, len: 1 << 20 });
    assert_eq!(same_plane, Err(LayoutError::Collision { home: 0, other: 0 }));
}

#[test]
fn the_header_is_the_one_drawn_in_the_formats_document() {
    let mut layout = one(stripes(&[(0, 65_536), (3, 65_536)]));
    layout.generation = 5;
    layout.file_id = [6, 7];
    layout.origin = Origin::Drained;
    let mut bytes = layout.encode().unwrap();
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!(&bytes[..8], b"SWLAYOUT");
    assert_eq!([8, 16, 24, 32, 44, 48, 64, 72, 76, 96, 104, 112].map(u32_at), [2, 236, 5, 1, 1, 2, 1, 0, 4, 6, 7, 3]);
    // Region, placement (cycle of 2^17; flags: equal, width 2^16, cycle 2^17), stripes, one index entry.
    assert_eq!(bytes.len(), 128 + 32 + 24 + 48 + 4);
    assert_eq!(u32_at(128 + 24), 1);
    assert_eq!([160, 172, 180].map(u32_at), [131_072, 2, 1 | 16 << 8 | 17 << 16]);
    assert_eq!([184, 200, 208, 216, 224, 232].map(u32_at), [65_536, 0, 65_536, 65_536, 3, 0]);
    for (at, unknown) in [(112, 4), (113, 1), (116, 1), (120, 1), (127, 1)] {
        let known = std::mem::replace(&mut bytes[at], unknown);
        reseal(&mut bytes);
        assert!(matches!(View::parse(&bytes), Err(LayoutError::Header { .. })), "byte {at}");
        bytes[at] = known;
    }
}

#[test]
fn what_a_write_does_to_a_copy_is_a_flag_of_its_own_and_flags_that_are_not_known_are_refused() {
    let placement = Placement::Striped(vec![Stripe { target: 0, width_bytes: GRANULE }]);
    let regions = vec![Region { start: 0, len: 1 << 20, generation: 0, placement }];
    let encoded = |is_home, on_write| {
        let replica = Replica { id: 1, base: 0, block: 100, dims: vec![], domain_base: 0, is_home, on_write, regions: regions.clone() };
        Layout { regions: regions.clone(), replicas: vec![replica], ..Layout::default() }.encode()
    };
    let (updated, mut bytes) = (encoded(false, OnWrite::Update).unwrap(), encoded(false, OnWrite::Invalidate).unwrap());
    assert_eq!(View::parse(&bytes).unwrap().replica(0).unwrap().on_write, OnWrite::Invalidate);
    let flags = (16..bytes.len()).find(|at| bytes[*at] != updated[*at]).unwrap();
    assert_eq!((updated[flags], bytes[flags]), (0, 2));
    for unknown in [3, 4, 6, 255] {
        bytes[flags] = unknown;
        reseal(&mut bytes);
        assert!(matches!(View::parse(&bytes), Err(LayoutError::Replica { index: 0, .. })), "{unknown}");
    }
    assert!(encoded(true, OnWrite::Invalidate).is_err());
}
