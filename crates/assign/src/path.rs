//! A region's cheapest path through the windows: it stays where it is, or leaves for another choice. Because leaving and coming are priced apart, the
//! cheapest place to come from is the same for all, and a window takes one pass over the choices instead of one over all pairs.

use crate::prices::{Moves, Prices, least};
use crate::problem::{FEATURES, Problem, Run};

/// Working space: `[window][choice]` seconds in a window, and of the cheapest path up to it; `[choice]` seconds of staying there throughout.
pub(crate) struct Space {
    pub cost: Vec<f64>,
    pub total: Vec<f64>,
    value: Vec<f64>,
    from: Vec<(f64, usize)>,
}

impl Space {
    pub(crate) fn new(windows: usize, choices: usize) -> Space {
        let flat = vec![0.0; windows * choices];
        Space { cost: flat.clone(), total: vec![0.0; choices], value: flat, from: vec![(0.0, 0); windows] }
    }
}

/// What a region's cheapest path costs.
#[derive(Clone, Copy)]
pub(crate) struct Cheapest {
    /// Infinite: there is none.
    pub seconds: f64,
    /// No path on which the region moves costs less than this.
    pub moving: f64,
}

/// Seconds of a region on every choice in every window under prices, moves not counted.
#[inline(always)]
pub(crate) fn price(problem: &Problem, prices: &Prices, region: usize, cost: &mut [f64]) {
    let (choices, valid) = (problem.choices, problem.valid_bytes[region]);
    for (window, cost) in cost.chunks_exact_mut(choices).enumerate() {
        let byte = &prices.byte[window * choices..][..choices];
        for (((cost, byte), penalty), largest) in cost.iter_mut().zip(byte).zip(&problem.penalty_s).zip(&problem.largest) {
            *cost = if valid > *largest { f64::INFINITY } else { valid * byte + penalty };
        }
        for run in &problem.runs {
            let features = problem.features(window, region, run.shape);
            let table = &prices.feature[window * FEATURES * choices..][..FEATURES * choices];
            let cost = &mut cost[run.from..run.to];
            // A region that is only read has half of its features 0.
            let (mut used, mut count) = ([0; FEATURES], 0);
            for (feature, _) in features.iter().enumerate().filter(|(_, amount)| **amount != 0.0) {
                used[count] = feature;
                count += 1;
            }
            match count {
                0 => {}
                1..=2 => weigh::<2>(features, &used, table, choices, *run, cost),
                3..=4 => weigh::<4>(features, &used, table, choices, *run, cost),
                5..=6 => weigh::<6>(features, &used, table, choices, *run, cost),
                _ => weigh::<8>(features, &used, table, choices, *run, cost),
            }
        }
    }
}

/// Adds N (even) features times prices to the costs of choices of one shape: the loop that takes the solver's time.
#[inline(always)]
fn weigh<const N: usize>(features: &[f64; FEATURES], used: &[usize; FEATURES], table: &[f64], choices: usize, run: Run, cost: &mut [f64]) {
    let amounts: [f64; N] = std::array::from_fn(|i| features[used[i]]);
    // Where fewer than N are used the rest name feature 0, which must not count again.
    let amounts: [f64; N] = std::array::from_fn(|i| if i > 0 && used[i] == 0 { 0.0 } else { amounts[i] });
    let length = cost.len();
    let lines: [&[f64]; N] = std::array::from_fn(|i| &table[used[i] * choices + run.from..][..length]);
    for at in 0..length {
        let mut sums = [0.0; 2];
        for i in 0..N / 2 {
            sums[0] += amounts[2 * i] * lines[2 * i][at];
            sums[1] += amounts[2 * i + 1] * lines[2 * i + 1][at];
        }
        cost[at] += sums[0] + sums[1];
    }
}

fn first_at_most(numbers: &[f64], limit: f64) -> usize {
    numbers.iter().position(|number| *number <= limit).unwrap_or(0)
}

/// Cheapest leaving of a window: seconds up to it with the leaving, and from where.
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

/// The cheapest path under the costs of the space and the prices of moves (`[window][choice]`, as wide as the costs); where it leads, if asked for.
#[inline(always)]
pub(crate) fn cheapest(moves: &Moves, valid: f64, space: &mut Space, path: Option<&mut [u32]>) -> Cheapest {
    let choices = space.total.len();
    let mut windows = space.cost.chunks_exact(choices);
    let mut moving = valid * moves.least;
    if let Some(first) = windows.next() {
        space.total.copy_from_slice(first);
        moving += least(first);
    }
    for cost in windows {
        space.total.iter_mut().zip(cost).for_each(|(total, cost)| *total += cost);
        moving += least(cost);
    }
    let staying = least(&space.total);
    if staying <= moving {
        if let Some(path) = path {
            path.fill(first_at_most(&space.total, staying) as u32);
        }
        return Cheapest { seconds: staying, moving };
    }
    Cheapest { seconds: moved(moves, valid, space, path), moving }
}

/// The same where moving may pay.
#[inline(always)]
fn moved(moves: &Moves, valid: f64, space: &mut Space, path: Option<&mut [u32]>) -> f64 {
    let (choices, windows) = (space.total.len(), space.from.len());
    space.value[..choices].copy_from_slice(&space.cost[..choices]);
    for window in 1..windows {
        let (before, after) = space.value.split_at_mut(window * choices);
        let before = &before[(window - 1) * choices..];
        let from = leaving(before, &moves.leave[window * choices..][..choices], valid);
        space.from[window] = from;
        let enter = &moves.enter[window * choices..][..choices];
        let cost = &space.cost[window * choices..][..choices];
        for (((value, cost), enter), before) in after[..choices].iter_mut().zip(cost).zip(enter).zip(before) {
            let come = from.0 + valid * enter;
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
            if stay > space.from[window].0 + valid * moves.enter[window * choices + choice] {
                choice = space.from[window].1;
            }
        }
        path[0] = choice as u32;
    }
    seconds
}
