//! Facts of the solver on instances small enough to list every assignment.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use proptest::prelude::*;
use stripewise_assign::{FEATURES, Limits, List, Problem, Tables, solve};

/// One choice per server; each region has one feature, its work; servers differ in speed. Moves cost a second per byte on the server that is left.
fn tables(work: &[Vec<f64>], valid: &[f64], speed: &[f64], capacity: &[f64]) -> Tables {
    let servers = speed.len() as i64;
    let each = |value: &[f64]| List { first: (0..=servers).collect(), at: (0..servers).collect(), value: value.to_vec() };
    let mut features = Vec::new();
    for amount in work.iter().flatten() {
        features.push(*amount);
        features.extend([0.0; FEATURES - 1]);
    }
    let q = speed.iter().map(|seconds| std::array::from_fn(|i| if i == 0 { *seconds } else { 0.0 })).collect();
    Tables {
        windows: work.len(),
        regions: valid.len(),
        shapes: 1,
        choices: speed.len(),
        resources: speed.len(),
        servers: speed.len(),
        features,
        valid_bytes: valid.to_vec(),
        capacity: capacity.to_vec(),
        shape: vec![0; speed.len()],
        entries: List { first: (0..=servers).collect(), at: (0..servers).collect(), value: q },
        stores: each(&vec![1.0; speed.len()]),
        leave: each(&vec![1.0; speed.len()]),
        enter: List { first: vec![0; speed.len() + 1], ..List::default() },
        penalty_s: vec![0.0; speed.len()],
    }
}

fn seconds(work: &[Vec<f64>], valid: &[f64], speed: &[f64], capacity: &[f64], choice: impl Fn(usize, usize) -> usize) -> f64 {
    let mut total = 0.0;
    for (window, work) in work.iter().enumerate() {
        let (mut busy, mut used) = (vec![0.0; speed.len()], vec![0.0; speed.len()]);
        for (region, amount) in work.iter().enumerate() {
            let at = choice(window, region);
            busy[at] += amount * speed[at];
            used[at] += valid[region];
            if window > 0 && choice(window - 1, region) != at {
                busy[choice(window - 1, region)] += valid[region];
            }
        }
        if used.iter().zip(capacity).any(|(used, room)| *used > room * (1.0 + 1e-8)) {
            return f64::INFINITY;
        }
        total += busy.iter().fold(0.0, |a: f64, b| a.max(*b));
    }
    total
}

const LIMITS: Limits = Limits { seconds: 20.0, gap: 0.0, seed: 1 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn small_instances_are_solved_to_the_optimum_and_proven(
        work in prop::collection::vec(prop::collection::vec(0.0..4.0f64, 4), 2),
        valid in prop::collection::vec(0.1..1.0f64, 4),
        speed in prop::collection::vec(0.2..2.0f64, 2),
        room in prop::collection::vec(0.8..4.0f64, 2),
    ) {
        let best = (0..1usize << 8)
            .map(|bits| seconds(&work, &valid, &speed, &room, |window, region| bits >> (window * 4 + region) & 1))
            .fold(f64::INFINITY, f64::min);
        let found = solve(&Problem::new(tables(&work, &valid, &speed, &room)).unwrap(), &[], LIMITS);
        let Some(found) = found else {
            prop_assert_eq!(best, f64::INFINITY);
            return Ok(());
        };
        let total: f64 = found.window_s.iter().sum();
        let told = seconds(&work, &valid, &speed, &room, |window, region| found.assignment[window * 4 + region] as usize);
        prop_assert!((told - total).abs() <= 1e-9 * total);
        prop_assert!(found.bound_s <= best * (1.0 + 1e-9) && total <= best * (1.0 + 1e-6), "{} {best} {total}", found.bound_s);
    }
}

#[test]
fn tables_of_the_wrong_length_are_named() {
    let mut wrong = tables(&[vec![1.0]], &[1.0], &[1.0], &[1.0]);
    wrong.penalty_s.clear();
    assert!(Problem::new(wrong).unwrap_err().starts_with("penalty_s"));
}

/// Numbers between 0 and 1 that depend on the seed alone.
fn drawn(mut seed: u64) -> impl FnMut() -> f64 {
    move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[test]
fn many_uneven_servers_with_little_swift_room_and_a_hot_set_that_moves_are_near_the_bound() {
    let (servers, regions, windows) = (200, 1000, 2);
    let mut draw = drawn(7);
    let swift = |server: usize| server.is_multiple_of(4);
    let speed: Vec<f64> = (0..servers).map(|server| (1.0 + draw()) * if swift(server) { 0.2 } else { 1.0 }).collect();
    // Half as much room on swift servers as regions would like.
    let capacity: Vec<f64> = (0..servers).map(|server| if swift(server) { 4.0 + 4.0 * draw() } else { f64::INFINITY }).collect();
    let order: Vec<usize> = (0..regions).map(|region| region * 37 % regions).collect();
    let work: Vec<Vec<f64>> = (0..windows)
        .map(|window| (0..regions).map(|region| 2000.0 / (100 + (order[region] + window * regions / 20) % regions) as f64).collect())
        .collect();
    let valid = vec![1.0; regions];
    let found = solve(&Problem::new(tables(&work, &valid, &speed, &capacity)).unwrap(), &[], Limits { seconds: 60.0, gap: 0.01, seed: 1 }).unwrap();
    let total: f64 = found.window_s.iter().sum();
    let told = seconds(&work, &valid, &speed, &capacity, |window, region| found.assignment[window * regions + region] as usize);
    assert!((told - total).abs() <= 1e-9 * total);
    assert!(found.bound_s <= total && total <= 1.15 * found.bound_s, "{total} {}", found.bound_s);
}
