//! How long it takes to find the replica that holds a request: through the index, from its history, and by trying all.
//!
//! Prints JSON lines. `lookup_<n>`: n columns of two loops, four to a bin, requests of random clients at random blocks, so that the history is of little
//! use; `uneven`: strides that are no powers of two; `column_128`: RADAR's worst case, 128 columns in every bin (Table III); `history`: 64 requests of a
//! client in a row. Each gives `_ns` beside its goal, `_by_linear_ns` beside the linear look-up, and `_build_us`, in linear look-ups.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::hint::black_box;
use std::sync::atomic::AtomicU32;
use std::time::Instant;
use stripewise_chance::SplitMix64;

use stripewise_layout::{Bins, Dim, Layout, Logical, OnWrite, Placement, Region, Replica, ReplicaIndex, Stripe, View};

/// Some 0.2 ms per batch, as in `map`.
const REQUESTS: usize = 1 << 11;
const BATCHES: usize = 501;
/// Of linear look-ups: 0.1 s per batch of 4,000 replicas.
const BATCHES_LINEAR: usize = 21;

/// An array of planes of rows, cut into columns, each of `block` bytes.
struct Array {
    block: u64,
    columns: u64,
    rows: u64,
    planes: u64,
    /// Bytes between planes, after their rows.
    gap: u64,
}

impl Array {
    fn row(&self) -> u64 {
        self.block * self.columns
    }

    fn plane(&self) -> u64 {
        self.row() * self.rows + self.gap
    }

    /// From one array to the next, so that no bin has two.
    fn pitch(&self) -> u64 {
        (self.plane() * self.planes).next_power_of_two()
    }
}

fn home() -> Vec<Region> {
    let placement = Placement::Striped(vec![Stripe { target: 0, width_bytes: 65_536 }]);
    vec![Region { start: 0, len: 1 << 30, generation: 0, placement }]
}

/// `replicas` columns of as many arrays as that takes, one array behind the other.
fn layout(array: &Array, replicas: u64) -> Vec<u8> {
    let column = |i: u64| Replica {
        id: i as u32,
        base: i / array.columns * array.pitch() + i % array.columns * array.block,
        block: array.block,
        dims: vec![Dim { stride: array.plane(), count: array.planes }, Dim { stride: array.row(), count: array.rows }],
        domain_base: i << 31,
        is_home: false,
        on_write: OnWrite::Update,
        regions: home(),
    };
    Layout { regions: home(), replicas: (0..replicas).map(column).collect(), ..Layout::default() }.encode().expect("a sound layout")
}

/// Median over batches of the mean time per look-up, ns; `run` is how many requests in a row one replica gets.
fn measure(view: &View<'_>, array: &Array, run: usize, batches: usize, mut lookup: impl FnMut(Logical, u64) -> bool) -> f64 {
    let mut random = SplitMix64::at(1);
    let mut batch_ns = Vec::new();
    for _ in 0..batches {
        let mut replica = 0;
        let at: Vec<Logical> = (0..REQUESTS)
            .map(|n| {
                if n % run == 0 {
                    replica = random.below(view.replica_count() as u64);
                }
                let base = view.replica(replica as usize).expect("a replica").base;
                Logical(base + random.below(array.planes) * array.plane() + random.below(array.rows) * array.row())
            })
            .collect();
        let start = Instant::now();
        let found = at.iter().filter(|at| lookup(black_box(**at), black_box(array.block))).count();
        batch_ns.push(start.elapsed().as_nanos() as f64 / REQUESTS as f64);
        assert_eq!(found, REQUESTS, "each request is a block of a replica");
    }
    batch_ns.sort_by(f64::total_cmp);
    batch_ns.get(batches / 2).copied().unwrap_or(f64::NAN)
}

fn print(name: &str, value: f64, unit: &str, baseline: &str, base: f64) {
    println!(r#"{{"name":"replica.{name}","value":{value:.1},"unit":"{unit}","baseline":"{baseline}","ratio":{:.3}}}"#, value / base);
}

struct Case<'a> {
    name: &'a str,
    array: &'a Array,
    replicas: u64,
    run: usize,
    goal_ns: Option<f64>,
}

fn case(case: &Case<'_>) {
    let bytes = layout(case.array, case.replicas);
    let view = View::parse(&bytes).expect("a sound layout");
    let bins = Bins::of(&view);
    let mut memory = vec![0; ReplicaIndex::bytes_needed(&view, bins)];
    let start = Instant::now();
    let index = ReplicaIndex::build_into(&view, bins, &mut memory).expect("as many bytes as it needs");
    let build_us = start.elapsed().as_nanos() as f64 / 1e3;
    let most = (0..bins.count()).map(|bin| index.entries(bin).len()).max().unwrap_or(0);
    let history = AtomicU32::new(0);
    let linear = measure(&view, case.array, case.run, BATCHES_LINEAR, |at, len| black_box(&view).replica_lookup(at, len).is_some());
    let value = measure(&view, case.array, case.run, BATCHES, |at, len| black_box(&index).lookup(at, len, &history).is_some());
    let name = case.name;
    if let Some(goal) = case.goal_ns {
        print(&format!("{name}_ns"), value, "ns", &format!("goal {goal} ns; at most {most} entries in a bin"), goal);
    }
    print(&format!("{name}_by_linear_ns"), value, "ns", &format!("linear look-up: {linear:.1} ns; at most {most} entries in a bin"), linear);
    print(&format!("{name}_build_us"), build_us, "us", &format!("a linear look-up: {linear:.1} ns"), linear / 1e3);
}

fn main() {
    // Four columns of 16 KiB, 1,024 rows of four in a plane, 16 planes: 1 GiB, and bins of the same size for 1,000 arrays.
    let even = Array { block: 16_384, columns: 4, rows: 1024, planes: 16, gap: 0 };
    let uneven = Array { block: 12_000, columns: 4, rows: 1000, planes: 16, gap: 12_345 };
    // Four time steps of 256 x 256 rows of 256 elements of 32 bytes.
    let radar = Array { block: 64, columns: 128, rows: 65_536, planes: 4, gap: 0 };
    let cases = [
        ("lookup_10", &even, 10, 1, Some(60.0)),
        ("lookup_100", &even, 100, 1, None),
        ("lookup_4000", &even, 4000, 1, Some(120.0)),
        ("lookup_10_uneven", &uneven, 10, 1, Some(60.0)),
        ("lookup_100_uneven", &uneven, 100, 1, None),
        ("lookup_4000_uneven", &uneven, 4000, 1, Some(120.0)),
        ("lookup_4000_history", &uneven, 4000, 64, None),
        ("column_128", &radar, 128, 1, None),
        ("column_128_history", &radar, 128, 64, None),
    ];
    for (name, array, replicas, run, goal_ns) in cases {
        case(&Case { name, array, replicas, run, goal_ns });
    }
}
