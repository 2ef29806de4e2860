//! A region's cheapest path through the windows: it stays where it is, or leaves for another choice. Because leaving and coming are priced apart, the
//! cheapest place to come from is the same for all, and a window takes one pass over the choices instead of one over all pairs.

use crate::prices::Prices;
use crate::problem::{FEATURES, Problem};

/// Working space: `[window][choice]` seconds in a window, and of the cheapest path up to it.
pub(crate) struct Space {
    pub cost: Vec<f64>,
    pub value: Vec<f64>,
}

impl Space {
    pub(crate) fn new(problem: &Problem) -> Space {
        Space { cost: vec![0.0; problem.windows * problem.choices], value: vec![0.0; problem.windows * problem.choices] }
    }
}

/// Seconds of a region on every choice in every window under prices, moves not counted.
pub(crate) fn price(problem: &Problem, prices: &Prices, region: usize, cost: &mut [f64]) {
    let (choices, valid) = (problem.choices, problem.valid_bytes[region]);
    for (window, cost) in cost.chunks_exact_mut(choices).enumerate() {
        let byte = &prices.byte[window * choices..][..choices];
        for (((cost, byte), penalty), largest) in cost.iter_mut().zip(byte).zip(&problem.penalty_s).zip(&problem.largest) {
            *cost = if valid > *largest { f64::INFINITY } else { valid * byte + penalty };
        }
        for run in &problem.runs {
            let features = problem.features(window, region, run.shape);
            if features.iter().all(|feature| *feature == 0.0) {
                continue;
            }
            let lines: [&[f64]; FEATURES] =
                std::array::from_fn(|feature| &prices.feature[(window * FEATURES + feature) * choices..][run.from..run.to]);
            weigh(features, &lines, &mut cost[run.from..run.to]);
        }
    }
}

/// Adds features times prices to the costs of choices of one shape: the loop that takes the solver's time.
#[inline(always)]
fn weigh(features: &[f64; FEATURES], lines: &[&[f64]; FEATURES], cost: &mut [f64]) {
    let length = cost.len();
    let [a, b, c, d, e, f, g, h] = lines.map(|line| &line[..length]);
    for i in 0..length {
        let first = features[0] * a[i] + features[1] * b[i] + (features[2] * c[i] + features[3] * d[i]);
        let second = features[4] * e[i] + features[5] * f[i] + (features[6] * g[i] + features[7] * h[i]);
        cost[i] += first + second;
    }
}

/// The least of the numbers; infinite when there are none.
pub(crate) fn least(numbers: &[f64]) -> f64 {
    let (whole, rest) = numbers.as_chunks::<8>();
    let mut lanes = [f64::INFINITY; 8];
    for chunk in whole {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane = if *number < *lane { *number } else { *lane };
        }
    }
    lanes.iter().chain(rest).fold(f64::INFINITY, |a, b| if *b < a { *b } else { a })
}

fn first_at_most(numbers: &[f64], limit: f64) -> usize {
    numbers.iter().position(|number| *number <= limit).unwrap_or(0)
}

/// Cheapest leaving of window - 1: seconds up to it with the leaving, and from where.
fn leaving(value: &[f64], leave: &[f64], valid: f64) -> (f64, usize) {
    let mut best = (f64::INFINITY, 0);
    for (choice, (value, leave)) in value.iter().zip(leave).enumerate() {
        let seconds = value + valid * leave;
        if seconds < best.0 {
            best = (seconds, choice);
        }
    }
    best
}

/// Seconds of the cheapest path under the costs of the space and the prices of moves; the path where there is room for it. Infinite: there is none.
pub(crate) fn cheapest(problem: &Problem, prices: &Prices, region: usize, space: &mut Space, path: Option<&mut [u32]>) -> f64 {
    let (choices, windows, valid) = (problem.choices, problem.windows, problem.valid_bytes[region]);
    let mut from = vec![(0.0, 0); windows];
    space.value[..choices].copy_from_slice(&space.cost[..choices]);
    for window in 1..windows {
        let (before, after) = space.value.split_at_mut(window * choices);
        let before = &before[(window - 1) * choices..];
        from[window] = leaving(before, &prices.leave[window * choices..][..choices], valid);
        let (moved, enter) = (from[window].0, &prices.enter[window * choices..][..choices]);
        let cost = &space.cost[window * choices..][..choices];
        for (((value, cost), enter), before) in after[..choices].iter_mut().zip(cost).zip(enter).zip(before) {
            let come = moved + valid * enter;
            *value = cost + if *before <= come { *before } else { come };
        }
    }
    let last = &space.value[(windows - 1) * choices..];
    let seconds = least(last);
    if let Some(path) = path {
        let mut choice = first_at_most(last, seconds);
        for window in (1..windows).rev() {
            path[window] = choice as u32;
            let stay = space.value[(window - 1) * choices + choice];
            if stay > from[window].0 + valid * prices.enter[window * choices + choice] {
                choice = from[window].1;
            }
        }
        path[0] = choice as u32;
    }
    seconds
}
