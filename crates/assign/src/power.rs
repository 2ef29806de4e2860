//! What a region adds to the busiest resource on every choice, smoothly: the growth of the root of the sum of powers of loads. Exact for one window;
//! moves are priced by the slope. Choices without room are infinitely dear.

use crate::problem::dot;
use crate::state::{State, power, root};

/// Growth below this part of the sum is taken by the slope, above by roots.
const SMALL: f64 = 1e-3;
/// A load this many scales high is the sum's root by itself.
const HUGE: f64 = 4.0;

/// The sum's power goes on as a line from here: higher powers would leave no digits to tell bad from worse.
const STEEP: f64 = 1.5;

/// Where prices do not tell servers apart, a low power does, with this weight: regions that ask much go where they take least time.
const EVEN: u32 = 2;
const EVENNESS: f64 = 0.05;

/// How growth of the sum of powers becomes seconds.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Measure {
    /// Growth of the root: what the busiest resource gains.
    Root,
    /// Growth of the sum over the power: nothing while a resource is well below its scale.
    Sum,
}

/// Which choices a row of costs stands for.
#[derive(Clone, Copy)]
pub(crate) enum Listed<'a> {
    /// All of them.
    All,
    /// These.
    Only(&'a [u32]),
}

/// Adds to `cost`, `[window][place in choices]`, what the region, which lies nowhere, would add on the choices in every window.
pub(crate) fn congest(state: &State, region: usize, listed: Listed, measure: Measure, cost: &mut [f64]) {
    let problem = state.problem;
    let valid = problem.valid_bytes[region];
    let wide = cost.len() / problem.windows;
    for (window, cost) in cost.chunks_exact_mut(wide).enumerate() {
        let (scale, sum) = (state.scale[window], state.sum[window]);
        let from = window * problem.resources;
        let base = root(sum, state.squarings);
        let exponent = f64::from(1u32 << state.squarings);
        let slope = if sum > 0.0 { base / (exponent * sum) } else { f64::INFINITY };
        let most = if measure == Measure::Sum { STEEP } else { HUGE };
        let beyond = power(STEEP, state.squarings) / STEEP;
        let evenness = EVENNESS / problem.resources as f64;
        for (place, cost) in cost.iter_mut().enumerate() {
            let choice = match listed {
                Listed::All => place,
                Listed::Only(choices) => choices[place] as usize,
            };
            if !state.fits(window, choice, valid) {
                *cost = f64::INFINITY;
                continue;
            }
            let features = problem.features(window, region, problem.shape[choice] as usize);
            let (mut growth, mut top, mut even) = (0.0, 0.0f64, 0.0);
            for (at, q) in problem.entries.of(choice) {
                let at = from + *at as usize;
                let filled = (state.busy[at] + dot(features, q)) / scale;
                top = top.max(filled);
                if measure == Measure::Sum {
                    even += evenness * (power(filled.min(most), EVEN) - power(state.busy[at] / scale, EVEN));
                }
                growth += state.weight(at) * power(filled.min(most), state.squarings) - state.powered[at];
            }
            let parts = if measure == Measure::Sum {
                growth / exponent + (top - STEEP).max(0.0) * beyond + even
            } else if top >= HUGE {
                top - base
            } else if growth <= SMALL * sum {
                growth * slope
            } else {
                root(sum + growth, state.squarings) - base
            };
            *cost += scale * parts + state.more_rent(window, choice, valid);
        }
    }
}

/// What load is worth by the slopes of [`Measure::Sum`], `[window][resource]`.
pub(crate) fn slopes_of_sum(state: &State) -> Vec<f64> {
    (0..state.powered.len())
        .map(|at| {
            let filled = state.busy[at] / state.scale[at / state.problem.resources];
            state.weight(at) * power(filled.min(STEEP), state.squarings) / filled.clamp(1e-3, STEEP)
        })
        .collect()
}

/// What load is worth by the slopes of the measure, `[window][resource]`.
pub(crate) fn slopes(state: &State) -> Vec<f64> {
    let exponent = f64::from(1u32 << state.squarings);
    let steep: Vec<f64> = state.sum.iter().map(|sum| sum.powf(1.0 / exponent - 1.0)).collect();
    (0..state.powered.len())
        .map(|at| {
            let window = at / state.problem.resources;
            let filled = state.busy[at] / state.scale[window];
            if filled > 0.0 && steep[window].is_finite() { state.powered[at] / filled * steep[window] } else { 0.0 }
        })
        .collect()
}
