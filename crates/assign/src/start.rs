//! A first assignment from the prices: regions one after the other on their cheapest path, first those that would lose most without a server of limited
//! room, then the densest. Resources that reach the level that the bound foresees get dearer, servers without room are left out, and a region stays with
//! its server as long as it stays with its kind.

use crate::parts;
use crate::path::{Space, cheapest, price};
use crate::power::{Listed, Measure, congest, slopes_of_sum};
use crate::prices::{Moves, Prices};
use crate::problem::{FEATURES, Problem, Run, dot};
use crate::state::{NOWHERE, State};

/// Loads to the 64th: a resource 10 % below its level costs as much again as its price where there are a thousand.
const SQUARINGS: u32 = 6;
/// Regions between two looks at what moves cost where servers are busy.
const STRIDE: usize = 32;

/// Puts all regions that lie nowhere, each staying with its server as long as it stays with its kind if `staying`; false when one finds no room.
pub(crate) fn fill(state: &mut State, level: &[f64], prices: &Prices, lambda: &[f64], staying: bool) -> bool {
    let problem = state.problem;
    state.recount(SQUARINGS, level, None);
    let (density, regret) = (densities(problem, prices), regrets(problem, prices));
    let mut missing: Vec<usize> = (0..problem.regions).filter(|region| state.path_of(*region).contains(&NOWHERE)).collect();
    missing.sort_by(|a, b| regret[*b].total_cmp(&regret[*a]).then(density[*b].total_cmp(&density[*a])).then(a.cmp(b)));
    place_all(state, missing.into_iter(), prices, lambda, staying)
}

/// Puts regions that lie nowhere, one after the other, on any choices; false when one finds no room.
fn place_all(state: &mut State, regions: impl Iterator<Item = usize>, prices: &Prices, lambda: &[f64], staying: bool) -> bool {
    let problem = state.problem;
    let mut space = Space::new(problem.windows, problem.choices);
    let mut moves = Moves::new(problem, lambda);
    let scarce: Vec<bool> = (0..problem.choices).map(|choice| is_scarce(problem, choice)).collect();
    let mut path = vec![0; problem.windows];
    for (number, region) in regions.enumerate() {
        if number % STRIDE == 0 && problem.moves_cost() {
            let crowded: Vec<f64> = slopes_of_sum(state).iter().zip(lambda).map(|(slope, price)| slope + price).collect();
            moves = Moves::new(problem, &crowded);
        }
        let valid = problem.valid_bytes[region];
        price(problem, prices, region, &mut space.cost);
        let found = staying && problem.windows > 1 && cheapest(&prices.moves, valid, &mut space, Some(&mut path)).seconds.is_finite();
        congest(state, region, Listed::All, Measure::Sum, &mut space.cost);
        let settled = found && stretch(problem, &moves, valid, &space.cost, &scarce, &mut path);
        if !settled && !cheapest(&moves, valid, &mut space, Some(&mut path)).seconds.is_finite() {
            return false;
        }
        state.put(region, &path);
    }
    true
}

/// Whether a choice has limited room.
fn is_scarce(problem: &Problem, choice: usize) -> bool {
    problem.stores.of(choice).iter().any(|(at, _)| problem.capacity[*at as usize].is_finite())
}

/// Turns a path into one that leaves a choice only where the path leaves scarce choices for others, or comes to them: prices of single windows are not
/// exact, and would send a region from one server to its like and back. False where there is no room for it.
fn stretch(problem: &Problem, moves: &Moves, valid: f64, cost: &[f64], scarce: &[bool], path: &mut [u32]) -> bool {
    let (choices, windows) = (problem.choices, problem.windows);
    let mut from = 0;
    while from < windows {
        let kind = scarce[path[from] as usize];
        let to = (from..windows).find(|window| scarce[path[*window] as usize] != kind).unwrap_or(windows);
        let mut best = (f64::INFINITY, 0);
        for choice in (0..choices).filter(|choice| scarce[*choice] == kind) {
            let mut seconds: f64 = (from..to).map(|window| cost[window * choices + choice]).sum();
            if from > 0 {
                seconds += valid * moves.enter[from * choices + choice];
            }
            if to < windows {
                seconds += valid * moves.leave[to * choices + choice];
            }
            if seconds < best.0 {
                best = (seconds, choice);
            }
        }
        if best.0 == f64::INFINITY {
            return false;
        }
        path[from..to].fill(best.1 as u32);
        from = to;
    }
    true
}

/// What it costs more, per byte, to keep each region off servers of limited room: who would lose most chooses first.
fn regrets(problem: &Problem, prices: &Prices) -> Vec<f64> {
    let scarce: Vec<usize> = (0..problem.choices).filter(|choice| is_scarce(problem, *choice)).collect();
    if scarce.is_empty() || scarce.len() == problem.choices {
        return vec![0.0; problem.regions];
    }
    let regret = |space: &mut Space, region: usize| {
        let valid = problem.valid_bytes[region];
        price(problem, prices, region, &mut space.cost);
        let best = cheapest(&prices.moves, valid, space, None).seconds;
        for cost in space.cost.chunks_exact_mut(problem.choices) {
            scarce.iter().for_each(|choice| cost[*choice] = f64::INFINITY);
        }
        let without = cheapest(&prices.moves, valid, space, None).seconds;
        if valid > 0.0 { ((without - best) / valid).max(0.0) } else { 0.0 }
    };
    let work = problem.windows * problem.regions * problem.choices;
    let space = || Space::new(problem.windows, problem.choices);
    let parts = parts::parts(problem.regions, work, space, |space, regions| regions.map(|region| regret(space, region)).collect::<Vec<_>>());
    parts.into_iter().flatten().collect()
}

/// What each region's requests cost at the mean price per feature, per byte that it stores where room has a price.
fn densities(problem: &Problem, prices: &Prices) -> Vec<f64> {
    let priced = prices.byte.iter().any(|price| *price > 0.0);
    let mean = |window: usize, run: &Run| -> [f64; FEATURES] {
        std::array::from_fn(|feature| {
            let line = &prices.feature[(window * FEATURES + feature) * problem.choices..][run.from..run.to];
            line.iter().sum::<f64>() / (run.to - run.from) as f64
        })
    };
    let mut seconds = vec![0.0; problem.regions];
    for window in 0..problem.windows {
        for run in &problem.runs {
            let mean = mean(window, run);
            seconds.iter_mut().enumerate().for_each(|(region, sum)| *sum += dot(problem.features(window, region, run.shape), &mean));
        }
    }
    if priced {
        seconds.iter_mut().zip(&problem.valid_bytes).filter(|(_, valid)| **valid > 0.0).for_each(|(seconds, valid)| *seconds /= valid);
    }
    seconds
}

/// Moves regions off overfull servers, the least dense first, until none is overfull; false when one cannot be helped.
pub(crate) fn unload(state: &mut State, prices: &Prices, lambda: &[f64]) -> bool {
    let problem = state.problem;
    state.recount(SQUARINGS, &[], None);
    let density = densities(problem, prices);
    let mut order: Vec<usize> = (0..problem.regions).collect();
    order.sort_by(|a, b| density[*a].total_cmp(&density[*b]).then(a.cmp(b)));
    let mut old = vec![0; problem.windows];
    let mut out = Vec::new();
    for region in order {
        if state.crowded(state.path_of(region)) {
            state.take(region, &mut old);
            out.push((region, old.clone()));
        }
    }
    for (region, old) in out.iter().rev() {
        if state.fits_path(*region, old) {
            state.put(*region, old);
        }
    }
    let lost: Vec<usize> = out.iter().rev().map(|(region, _)| *region).filter(|region| state.path_of(*region).contains(&NOWHERE)).collect();
    place_all(state, lost.into_iter(), prices, lambda, true)
}
