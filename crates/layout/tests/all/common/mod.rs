//! Random layouts and the slow, obvious mapping that the fast one is compared with.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use proptest::prelude::*;
use stripewise_layout::{GRANULE, Layout, ORIGINAL, Placement, Region, Stripe};

pub const TARGETS: u32 = 6;

pub fn striped() -> impl Strategy<Value = Placement> {
    let targets = Just((0..TARGETS).collect::<Vec<_>>()).prop_shuffle();
    let uneven = prop::collection::vec(1..6u64, TARGETS as usize);
    let even = (0..4u32).prop_map(|shift| vec![1u64 << shift; TARGETS as usize]);
    let same = (1..6u64).prop_map(|w| vec![w; TARGETS as usize]);
    (targets, prop_oneof![uneven, even, same], 1..=TARGETS as usize).prop_map(|(targets, widths, n)| {
        let stripes = targets.iter().zip(&widths).take(n);
        Placement::Striped(stripes.map(|(t, w)| Stripe { target: *t, width_bytes: w * GRANULE }).collect())
    })
}

pub fn placement() -> impl Strategy<Value = Placement> {
    prop_oneof![9 => striped(), 1 => Just(Placement::Original)]
}

pub fn regions_of(place: impl Strategy<Value = Placement>) -> impl Strategy<Value = Vec<Region>> {
    let len = prop_oneof![1..40u64, (0..6u32).prop_map(|s| 1 << s)];
    prop::collection::vec((len, 0..4u32, place), 1..8).prop_map(|rows| {
        let mut start = 0;
        let mut out = Vec::new();
        for (len, generation, placement) in rows {
            out.push(Region { start, len: len * GRANULE, generation, placement });
            start += len * GRANULE;
        }
        out
    })
}

pub fn regions() -> impl Strategy<Value = Vec<Region>> {
    regions_of(placement())
}

pub fn layout() -> impl Strategy<Value = Layout> {
    regions().prop_map(|regions| Layout { regions, ..Layout::default() })
}

/// The window `(start, region)` of a list whose last region repeats.
pub fn window(list: &[Region], at: u64) -> (u64, &Region) {
    let mut start = list[0].start;
    let mut i = 0;
    while at >= start + list[i].len {
        start += list[i].len;
        i = (i + 1).min(list.len() - 1);
    }
    (start, &list[i])
}

/// (target, plane, object offset) of a byte, by walking the cycle from the start of the window (ARCHITECTURE.md, "Slice addresses").
pub fn oracle(list: &[Region], at: u64) -> (u32, u32, u64) {
    let (start, region) = window(list, at);
    let Placement::Striped(stripes) = &region.placement else {
        return (ORIGINAL, 0, at);
    };
    let plane = region.generation & 1;
    let mut held = vec![0; TARGETS as usize];
    let mut walked = start;
    loop {
        for s in stripes {
            if at < walked + s.width_bytes {
                let local = held[s.target as usize] + (at - walked);
                return (s.target, plane, start + local);
            }
            walked += s.width_bytes;
            held[s.target as usize] += s.width_bytes;
        }
    }
}

/// Bytes that show the mapping of a range: its ends, and both sides of every granule's border.
pub fn probes(at: u64, len: u64) -> impl Iterator<Item = u64> {
    let first = at.next_multiple_of(GRANULE);
    let borders = (first..at + len).step_by(GRANULE as usize).flat_map(|b| [b.saturating_sub(1), b]);
    [at, at + len - 1].into_iter().chain(borders).filter(move |p| *p >= at && *p < at + len)
}
