//! A first assignment from the prices: regions one after the other on their cheapest path, the densest first, where resources that reach the level that
//! the bound foresees get dearer, and servers without room are left out.

use crate::dual::Bound;
use crate::path::{Space, cheapest, price};
use crate::power::{Measure, congest};
use crate::prices::Prices;
use crate::problem::{FEATURES, Problem};
use crate::state::{NOWHERE, State};

/// Loads to the 64th: a resource 10 % below its level costs as much again as its price where there are a thousand.
const SQUARINGS: u32 = 6;

/// Puts all regions that lie nowhere; false when one finds no room.
pub(crate) fn fill(state: &mut State, bound: &Bound) -> bool {
    let problem = state.problem;
    let prices = Prices::new(problem, &bound.duals);
    let mut space = Space::new(problem);
    state.recount(SQUARINGS, &bound.level);
    let mut missing: Vec<(f64, usize)> = (0..problem.regions)
        .filter(|region| state.path_of(*region).contains(&NOWHERE))
        .map(|region| (density(problem, &prices, region), region))
        .collect();
    missing.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut path = vec![0; problem.windows];
    for (_, region) in missing {
        price(problem, &prices, region, &mut space.cost);
        congest(state, region, Measure::Sum, &mut space.cost);
        if !cheapest(problem, &prices, region, &mut space, Some(&mut path)).is_finite() {
            return false;
        }
        state.put(region, &path);
    }
    true
}

/// What a region's requests cost at the mean price per feature, per byte that it stores where room has a price.
fn density(problem: &Problem, prices: &Prices, region: usize) -> f64 {
    let mut seconds = 0.0;
    for window in 0..problem.windows {
        for run in &problem.runs {
            let features = problem.features(window, region, run.shape);
            for (feature, amount) in features.iter().enumerate().filter(|(_, amount)| **amount > 0.0) {
                let line = &prices.feature[(window * FEATURES + feature) * problem.choices..][run.from..run.to];
                seconds += amount * line.iter().sum::<f64>() / (run.to - run.from) as f64;
            }
        }
    }
    let priced = prices.byte.iter().any(|price| *price > 0.0);
    if priced && problem.valid_bytes[region] > 0.0 { seconds / problem.valid_bytes[region] } else { seconds }
}
