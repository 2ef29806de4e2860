//! Sweeps over the regions: each is taken out and put back on the path that adds least to the smoothed busiest resources, the measure coming nearer to
//! the true one from stage to stage. What is kept is the best assignment by the true objective.

use std::time::Instant;

use crate::path::{Space, cheapest};
use crate::power::{Measure, congest, slopes};
use crate::prices::Prices;
use crate::random::Random;
use crate::state::State;

/// Sweeps per stage, and the progress (relative) below which the next stage begins.
const SWEEPS_MAX: usize = 6;
const PROGRESS: f64 = 1e-4;
/// Regions between two looks at the clock and at the slopes.
const STRIDE: usize = 64;

/// The best assignment met so far.
pub(crate) struct Best {
    pub objective: f64,
    pub path: Vec<u32>,
}

impl Best {
    /// Whether the state is better, in which case it is kept.
    pub(crate) fn offer(&mut self, state: &State) -> bool {
        let objective = state.objective();
        let better = objective < self.objective * (1.0 - 1e-12) && state.has_room();
        if better {
            self.objective = objective;
            self.path.copy_from_slice(&state.path);
        }
        better
    }
}

/// What sweeps need beside the state.
pub(crate) struct Tools<'a> {
    pub space: Space,
    pub moves: Prices,
    pub random: Random,
    pub until: Instant,
    /// Prices of room, seconds per byte `[window][choice]`: cold regions make way for hot ones.
    pub byte: &'a [f64],
}

impl Tools<'_> {
    pub(crate) fn late(&self) -> bool {
        Instant::now() >= self.until
    }
}

/// Runs the stages given (squarings of the power, whether room has its price).
pub(crate) fn descend(state: &mut State, stages: &[(u32, bool)], tools: &mut Tools, best: &mut Best) {
    for (squarings, priced) in stages {
        for _ in 0..SWEEPS_MAX {
            state.recount(*squarings, &[]);
            let before = state.smooth();
            let changed = sweep(state, *priced, tools);
            state.recount(*squarings, &[]);
            best.offer(state);
            if tools.late() {
                return;
            }
            if changed == 0 || (!priced && state.smooth() >= before * (1.0 - PROGRESS)) {
                break;
            }
        }
    }
}

/// One sweep in random order; how many regions changed their path.
fn sweep(state: &mut State, priced: bool, tools: &mut Tools) -> usize {
    let problem = state.problem;
    let mut order: Vec<u32> = (0..problem.regions as u32).collect();
    tools.random.shuffle(&mut order);
    let stride = if problem.regions <= STRIDE { 1 } else { STRIDE };
    let mut changed = 0;
    for part in order.chunks(stride) {
        slopes(state, &mut tools.moves);
        changed += part.iter().filter(|region| replace(state, **region as usize, priced, tools)).count();
        if tools.late() {
            break;
        }
    }
    changed
}

/// Puts the region on a better path if there is one.
pub(crate) fn replace(state: &mut State, region: usize, priced: bool, tools: &mut Tools) -> bool {
    let problem = state.problem;
    let (choices, valid) = (problem.choices, problem.valid_bytes[region]);
    let mut old = vec![0; problem.windows];
    let before = state.smooth();
    state.take(region, &mut old);
    for (window, cost) in tools.space.cost.chunks_exact_mut(choices).enumerate() {
        cost.copy_from_slice(&problem.penalty_s);
        if priced {
            cost.iter_mut().zip(&tools.byte[window * choices..]).for_each(|(cost, byte)| *cost += valid * byte);
        }
    }
    congest(state, region, Measure::Root, &mut tools.space.cost);
    let rent = |path: &[u32]| path.iter().enumerate().map(|(window, at)| valid * tools.byte[window * choices + *at as usize]).sum::<f64>();
    let rent = |path: &[u32]| if priced { rent(path) } else { 0.0 };
    let limit = (before + rent(&old)) * (1.0 - 1e-12);
    let mut new = old.clone();
    if cheapest(problem, &tools.moves, region, &mut tools.space, Some(&mut new)).is_finite() {
        for _ in 0..2 {
            if new != old {
                state.put(region, &new);
                if state.smooth() + rent(&new) < limit {
                    return true;
                }
                state.take(region, &mut new);
            }
            // The slopes may have underrated moves: the best place to stay at is the second try.
            new.fill(best_stay(&tools.space.cost, choices));
        }
    }
    state.put(region, &old);
    false
}

/// The choice that is cheapest over all windows together.
fn best_stay(cost: &[f64], choices: usize) -> u32 {
    let total = |choice: usize| cost[choice..].iter().step_by(choices).sum::<f64>();
    let best = (0..choices).map(|choice| (total(choice), choice)).fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a });
    best.1 as u32
}
