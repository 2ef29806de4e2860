//! Sweeps over the regions: each is taken out and put back on the path that adds least to the smoothed busiest resources, the measure coming nearer to
//! the true one from stage to stage. What is kept is the best assignment by the true objective.

use std::time::Instant;

use crate::path::{Space, cheapest};
use crate::power::{Listed, Measure, congest, slopes};
use crate::prices::{Moves, Prices};
use crate::problem::Problem;
use crate::random::Random;
use crate::shortlist::Shortlist;
use crate::start::unload;
use crate::state::{Guide, State};

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
    pub random: Random,
    pub until: Instant,
    pub shortlist: &'a Shortlist,
    /// Of the duals.
    pub prices: &'a Prices,
    /// The duals' prices of resources.
    pub lambda: &'a [f64],
    /// Of guided stages.
    pub guide: Guide<'a>,
    /// Of moves, by the slopes at the loads of the moment.
    pub moves: Moves,
}

impl Tools<'_> {
    pub(crate) fn late(&self) -> bool {
        Instant::now() >= self.until
    }
}

/// A stage of the descent.
#[derive(Clone, Copy)]
pub(crate) struct Stage {
    /// Of the power.
    pub squarings: u32,
    /// Whether room has its dual price and powers weigh as resources are priced: the slope at even loads is then what the bound says that a second is
    /// worth. Without, the measure is nothing but the busiest resource.
    pub guided: bool,
}

/// Weights of powers never fall below this part of the mean: a resource without price must not be overrun either.
const WEIGHT_MIN: f64 = 0.01;

/// Weights from dual prices, `[window][resource]`.
pub(crate) fn weights(problem: &Problem, lambda: &[f64]) -> Vec<f64> {
    lambda.iter().map(|price| price.max(WEIGHT_MIN / problem.resources as f64)).collect()
}

/// Runs the stages given.
pub(crate) fn descend(state: &mut State, stages: &[Stage], tools: &mut Tools, best: &mut Best) {
    let first = state.path.clone();
    for stage in stages {
        let guide = stage.guided.then_some(tools.guide);
        if !stage.guided && !state.has_room() {
            if !unload(state, tools.prices, tools.lambda) {
                *state = State::of(state.problem, &first);
            }
            best.offer(state);
        }
        state.recount(stage.squarings, &[], guide);
        for _ in 0..SWEEPS_MAX {
            let before = state.smooth();
            let changed = sweep(state, tools);
            state.recount(stage.squarings, &[], guide);
            best.offer(state);
            if tools.late() {
                return;
            }
            if changed * 200 <= state.problem.regions || (!stage.guided && state.smooth() >= before * (1.0 - PROGRESS)) {
                break;
            }
        }
    }
}

/// One sweep in random order; how many regions changed their path.
fn sweep(state: &mut State, tools: &mut Tools) -> usize {
    let problem = state.problem;
    let mut order: Vec<u32> = (0..problem.regions as u32).collect();
    tools.random.shuffle(&mut order);
    let stride = if problem.regions <= STRIDE { 1 } else { STRIDE };
    let mut changed = 0;
    for part in order.chunks(stride) {
        if problem.moves_cost() {
            tools.moves = Moves::new(problem, &slopes(state));
        }
        changed += part.iter().filter(|region| replace(state, **region as usize, tools)).count();
        if tools.late() {
            break;
        }
    }
    changed
}

/// Puts the region on a better path if there is one.
fn replace(state: &mut State, region: usize, tools: &mut Tools) -> bool {
    let problem = state.problem;
    let valid = problem.valid_bytes[region];
    let mut old = vec![0; problem.windows];
    let (before, sums, rent) = (state.smooth(), state.sum.clone(), state.rent);
    state.take(region, &mut old);
    let without = state.sum.clone();
    let mut listed = tools.shortlist.of(region).to_vec();
    listed.extend(old.iter().filter(|choice| !tools.shortlist.of(region).contains(choice)));
    let mut space = gathered(problem, &listed, |_, choice| problem.penalty_s[choice]);
    congest(state, region, Listed::Only(&listed), Measure::Root, &mut space.cost);
    let limit = before * (1.0 - 1e-12);
    let mut new = old.clone();
    if cheapest(&among(problem, &tools.moves, &listed), valid, &mut space, Some(&mut new)).seconds.is_finite() {
        new.iter_mut().for_each(|place| *place = listed[*place as usize]);
        for _ in 0..2 {
            if new != old && state.fits_path(region, &new) {
                state.put(region, &new);
                if state.smooth() < limit {
                    return true;
                }
                state.take(region, &mut new);
                state.sum.copy_from_slice(&without);
            }
            // The slopes may have underrated moves: the best place to stay at is the second try.
            let best = space.total.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(place, _)| place);
            new.fill(listed[best]);
        }
    }
    state.put(region, &old);
    // A high power that came and went would leave more rounding behind than the sum is worth.
    state.sum.copy_from_slice(&sums);
    state.rent = rent;
    false
}

/// Space for some choices only, with costs by place `[window][choice]` and choice.
pub(crate) fn gathered(problem: &Problem, listed: &[u32], cost: impl Fn(usize, usize) -> f64) -> Space {
    let mut space = Space::new(problem.windows, listed.len());
    for (window, row) in space.cost.chunks_exact_mut(listed.len()).enumerate() {
        row.iter_mut().zip(listed).for_each(|(seconds, choice)| *seconds = cost(window * problem.choices + *choice as usize, *choice as usize));
    }
    space
}

/// Prices of moves among some choices only.
pub(crate) fn among(problem: &Problem, moves: &Moves, listed: &[u32]) -> Moves {
    let pick = |all: &[f64]| {
        let windows = all.chunks_exact(problem.choices);
        windows.flat_map(|row| listed.iter().map(|choice| row[*choice as usize])).collect()
    };
    Moves { leave: pick(&moves.leave), enter: pick(&moves.enter), least: moves.least }
}
