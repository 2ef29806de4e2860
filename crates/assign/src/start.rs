//! A first assignment from the prices: regions one after the other on their cheapest path, the densest first, where resources that reach the level that
//! the bound foresees get dearer, and servers without room are left out.

use crate::descent::{among, gathered};
use crate::path::{cheapest, price};
use crate::power::{Measure, congest};
use crate::prices::Prices;
use crate::problem::{FEATURES, Problem, Run, dot};
use crate::shortlist::Shortlist;
use crate::state::{NOWHERE, State};

/// Loads to the 64th: a resource 10 % below its level costs as much again as its price where there are a thousand.
const SQUARINGS: u32 = 6;

/// Puts all regions that lie nowhere; false when one finds no room.
pub(crate) fn fill(state: &mut State, level: &[f64], prices: &Prices, shortlist: &Shortlist) -> bool {
    let problem = state.problem;
    state.recount(SQUARINGS, level, None);
    let density = densities(problem, prices);
    let lost = |region: &usize| state.path_of(*region).contains(&NOWHERE);
    let mut missing: Vec<(f64, usize)> = (0..problem.regions).filter(lost).map(|region| (density[region], region)).collect();
    missing.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let all: Vec<u32> = (0..problem.choices as u32).collect();
    let mut cost = vec![0.0; problem.windows * problem.choices];
    missing.into_iter().all(|(_, region)| {
        price(problem, prices, region, &mut cost);
        [shortlist.of(region), &all].into_iter().any(|listed| place(state, region, listed, prices, &cost))
    })
}

/// Puts the region on its cheapest path over some choices.
fn place(state: &mut State, region: usize, listed: &[u32], prices: &Prices, cost: &[f64]) -> bool {
    let problem = state.problem;
    let mut space = gathered(problem, listed, |at, _| cost[at]);
    congest(state, region, listed, Measure::Sum, &mut space.cost);
    let mut path = vec![0; problem.windows];
    let moves = among(problem, &prices.moves, listed);
    let found = cheapest(&moves, problem.valid_bytes[region], &mut space, Some(&mut path)).seconds.is_finite();
    if found {
        path.iter_mut().for_each(|place| *place = listed[*place as usize]);
        state.put(region, &path);
    }
    found
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
pub(crate) fn unload(state: &mut State, prices: &Prices, shortlist: &Shortlist) -> bool {
    let problem = state.problem;
    state.recount(SQUARINGS, &[], None);
    let density = densities(problem, prices);
    let mut order: Vec<usize> = (0..problem.regions).collect();
    order.sort_by(|a, b| density[*a].total_cmp(&density[*b]).then(a.cmp(b)));
    let all: Vec<u32> = (0..problem.choices as u32).collect();
    let mut cost = vec![0.0; problem.windows * problem.choices];
    let mut old = vec![0; problem.windows];
    for region in order {
        if state.crowded(state.path_of(region)) {
            state.take(region, &mut old);
            price(problem, prices, region, &mut cost);
            if ![shortlist.of(region), &all].into_iter().any(|listed| place(state, region, listed, prices, &cost)) {
                state.put(region, &old);
            }
        }
    }
    state.has_room()
}
