//! What a region adds to the busiest resource on every choice, smoothly: the growth of the root of the sum of powers of loads. Exact for one window;
//! moves are priced by the slope. Choices without room are infinitely dear.

use crate::prices::Prices;
use crate::problem::dot;
use crate::state::{State, power, root};

/// Growth below this part of the sum is taken by the slope, above by roots.
const SMALL: f64 = 1e-3;
/// A load this many scales high is the sum's root by itself.
const HUGE: f64 = 4.0;

/// How growth of the sum of powers becomes seconds.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Measure {
    /// Growth of the root: what the busiest resource gains.
    Root,
    /// Growth of the sum over the power: nothing while a resource is well below its scale.
    Sum,
}

/// Adds to `cost` what the region, which lies nowhere, would add on every choice in every window.
pub(crate) fn congest(state: &State, region: usize, measure: Measure, cost: &mut [f64]) {
    let problem = state.problem;
    let valid = problem.valid_bytes[region];
    for (window, cost) in cost.chunks_exact_mut(problem.choices).enumerate() {
        let (scale, sum) = (state.scale[window], state.sum[window]);
        let from = window * problem.resources;
        let base = root(sum, state.squarings);
        let exponent = f64::from(1u32 << state.squarings);
        let slope = if sum > 0.0 { base / (exponent * sum) } else { f64::INFINITY };
        for (choice, cost) in cost.iter_mut().enumerate() {
            if !state.fits(window, choice, valid) {
                *cost = f64::INFINITY;
                continue;
            }
            let features = problem.features(window, region, problem.shape[choice] as usize);
            let (mut growth, mut top) = (0.0, 0.0f64);
            for (at, q) in problem.entries.of(choice) {
                let at = from + *at as usize;
                let filled = (state.busy[at] + dot(features, q)) / scale;
                top = top.max(filled);
                growth += power(filled.min(HUGE), state.squarings) - state.powered[at];
            }
            let parts = if measure == Measure::Sum {
                growth / exponent + (top - HUGE).max(0.0)
            } else if top >= HUGE {
                top - base
            } else if growth <= SMALL * sum {
                growth * slope
            } else {
                root(sum + growth, state.squarings) - base
            };
            *cost += scale * parts;
        }
    }
}

/// Prices of moves by the slopes of the measure at the state's loads; nothing else has a price.
pub(crate) fn slopes(state: &State, prices: &mut Prices) {
    let problem = state.problem;
    if !problem.moves_cost() {
        return;
    }
    let exponent = f64::from(1u32 << state.squarings);
    let lambda: Vec<f64> = (0..state.powered.len())
        .map(|at| {
            let window = at / problem.resources;
            let filled = state.busy[at] / state.scale[window];
            let slope = state.sum[window].powf(1.0 / exponent - 1.0);
            if filled > 0.0 && slope.is_finite() { state.powered[at] / filled * slope } else { 0.0 }
        })
        .collect();
    prices.set_moves(problem, &lambda);
}
