//! How long it takes to map one request among 10,000 regions: region look-up and place in the object, at random offsets.
//!
//! Prints one JSON line per case; `layout.map_ns` (equal widths, regions of 1 MiB, 24 placements) is the one that the goal of 40 ns is set for.
//! The others say what uneven widths and regions of uneven lengths cost.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::hint::black_box;
use std::time::Instant;
use stripewise_chance::SplitMix64;

use stripewise_layout::{Layout, Logical, Placement, Region, Stripe, View};

const GOAL_NS: f64 = 40.0;
const REGIONS: u64 = 10_000;
/// Some 0.2 ms per batch: short against a scheduler's time slice, so that the median is of batches that were not interrupted.
const REQUESTS: usize = 1 << 12;
const BATCHES: usize = 1001;

fn layout(widths: impl Fn(u64, u32) -> u64, len: impl Fn(u64) -> u64) -> Layout {
    let mut regions = Vec::new();
    let mut start = 0;
    for i in 0..REGIONS {
        let stripes = (0..6u32)
            .map(|k| {
                let target = (k + i as u32) % 6;
                Stripe { target, width_bytes: widths(i, target) }
            })
            .collect();
        let placement = Placement::Striped(stripes);
        regions.push(Region { start, len: len(i), generation: (i % 3) as u32, placement });
        start += len(i);
    }
    Layout { regions, ..Layout::default() }
}

/// Median over batches of the mean time per request, ns.
fn measure(layout: &Layout) -> f64 {
    let bytes = layout.encode().expect("a sound layout");
    let view = View::parse(&bytes).expect("a sound layout");
    let last = layout.regions.last().expect("regions");
    let size = last.start + last.len;
    let mut random = SplitMix64::at(1);
    let mut batch_ns = Vec::new();
    for _ in 0..BATCHES {
        let at: Vec<u64> = (0..REQUESTS).map(|_| random.bits() % (size - 4096)).collect();
        let start = Instant::now();
        for at in &at {
            black_box(black_box(&view).single(Logical(black_box(*at)), 4096));
        }
        batch_ns.push(start.elapsed().as_nanos() as f64 / REQUESTS as f64);
    }
    batch_ns.sort_by(f64::total_cmp);
    batch_ns.get(BATCHES / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    let even = layout(|_, _| 65_536, |_| 1 << 20);
    // h = 36 KiB, s = 148 KiB: a pair as H2DP's search gives it, changing every 400 regions.
    let pair = layout(
        |i, t| {
            if t < 4 { 36_864 + i / 400 * 4096 } else { 151_552 }
        },
        |_| 1 << 20,
    );
    let uneven = layout(|_, _| 65_536, |i| (1 + i * i % 97) << 16);
    for (name, layout) in [("layout.map_ns", &even), ("layout.map_uneven_widths_ns", &pair), ("layout.map_uneven_regions_ns", &uneven)] {
        let value = measure(layout);
        let ratio = value / GOAL_NS;
        println!(r#"{{"name":"{name}","value":{value:.1},"unit":"ns","baseline":"goal 40 ns","ratio":{ratio:.3}}}"#);
    }
}
