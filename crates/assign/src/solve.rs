//! The whole of it: bound, starts, descent, exchanges and, while nothing is gained, small kicks; each with its part of the time.

use std::time::{Duration, Instant};

use crate::coarse::MANY;
use crate::descent::{Best, Stage, Tools, descend, weights};
use crate::dual::{self, Bound};
use crate::exact;
use crate::fit::fit;
use crate::prices::{Moves, Prices};
use crate::problem::Problem;
use crate::random::Random;
use crate::shortlist::Shortlist;
use crate::start::fill;
use crate::state::{Guide, NOWHERE, State};
use crate::swap;

/// The part of the time that the bound may take.
const BOUND_PART: f64 = 0.6;
/// Kicks stop after this many (region, window, choice) triples were looked at, however much time is left.
const KICK_WORK: usize = 60_000_000;
/// Rounds of exchanges, each with a descent after it.
const ROUNDS_MAX: usize = 50;
/// Fewer kicks than this are not worth beginning.
const KICKS_MIN: usize = 8;
/// Kicks end after this many without gain.
const KICKS_IDLE: usize = 300;
const fn stage(squarings: u32, guided: bool) -> Stage {
    Stage { squarings, guided }
}

/// Stages of the descent from a start, and after a kick.
const STAGES: [Stage; 7] = [stage(4, true), stage(5, true), stage(6, true), stage(7, true), stage(6, false), stage(7, false), stage(8, false)];
/// How many of them are guided.
const GUIDED: usize = 4;
const AFTER_KICK: [Stage; 2] = [stage(6, false), stage(8, false)];

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Wall-clock seconds.
    pub seconds: f64,
    /// (objective - bound) / objective that is good enough.
    pub gap: f64,
    /// Of the order in which regions are looked at.
    pub seed: u64,
}

/// An assignment and its proof.
#[derive(Clone, Debug)]
pub struct Solution {
    /// `[window][region]`, the choice.
    pub assignment: Vec<i64>,
    /// Of each window the busiest resource's seconds and the penalties of its choices.
    pub window_s: Vec<f64>,
    /// No assignment takes less; the sum of `window_s` where the search came to its end, the dual's value otherwise.
    pub bound_s: f64,
    /// `[window][resource]`: the dual prices of the bound.
    pub lambda: Vec<f64>,
    /// `[window][server]`, seconds per byte.
    pub pi: Vec<f64>,
}

/// The best assignment found, never worse than the best feasible start (each `[window][region]`, -1 for unknown). None: no assignment was found
/// that fits.
pub fn solve(problem: &Problem, starts: &[Vec<i64>], limits: Limits) -> Option<Solution> {
    let begin = Instant::now();
    let after = |part: f64| begin + Duration::from_secs_f64((limits.seconds * part).clamp(0.0, 1e9));
    let mut best = Best { objective: f64::INFINITY, path: vec![NOWHERE; problem.regions * problem.windows] };
    let starts: Vec<State> = starts.iter().map(|start| known(problem, start)).collect();
    for start in starts.iter().filter(|start| !start.path.contains(&NOWHERE)) {
        best.offer(start);
    }
    let reached = best.objective;
    let bound = dual::bound(problem, after(BOUND_PART), |bound| bound >= reached * (1.0 - limits.gap))?;
    let prices = Prices::new(problem, &bound.duals);
    let shortlist = Shortlist::new(problem, &prices, &bound.level);
    let moves = Moves::new(problem, &bound.duals.lambda);
    let weights = weights(problem, &bound.duals.lambda);
    let mut tools = Tools {
        guide: Guide { weight: &weights, pi: &bound.duals.pi },
        random: Random::new(limits.seed),
        until: after(1.0),
        shortlist: &shortlist,
        prices: &prices,
        lambda: &bound.duals.lambda,
        moves,
    };
    let enough = |best: &Best| best.objective.is_finite() && best.objective - bound.seconds <= limits.gap * best.objective;
    // Where there are many servers the first assignment is near the bound, and what overfills servers for a while only leads away from it.
    let many = problem.choices >= MANY;
    let stages = if many { &STAGES[GUIDED..] } else { &STAGES[..] };
    let empty = State::new(problem);
    let given = if many && best.objective.is_finite() { &[] } else { &starts[..] };
    // Who stays with his server is better off where servers are many; with few, every window's own home may be worth its moves.
    let ways = if many || problem.windows == 1 { &[true][..] } else { &[true, false] };
    for (start, staying) in std::iter::once(&empty).chain(given).flat_map(|start| ways.iter().map(move |staying| (start, *staying))) {
        if enough(&best) || (best.objective.is_finite() && tools.late()) {
            break;
        }
        if let Some(mut state) = whole(start, &bound, &tools, limits.seed, staying) {
            best.offer(&state);
            descend(&mut state, stages, &mut tools, &mut best);
        }
    }
    if !enough(&best) && best.objective.is_finite() {
        refine(problem, &mut tools, &mut best, &enough);
    }
    let optimal = !enough(&best) && !tools.late() && exact::search(problem, &bound.duals, &mut best);
    best.objective.is_finite().then(|| told(problem, &best, bound, optimal))
}

/// A start's regions on what is known of their paths, as far as there is room.
fn known<'a>(problem: &'a Problem, start: &[i64]) -> State<'a> {
    let mut state = State::new(problem);
    for region in 0..problem.regions {
        let at = |window: &usize| start.get(window * problem.regions + region).filter(|choice| (0..problem.choices as i64).contains(*choice));
        let mut last = (0..problem.windows).find_map(|window| at(&window));
        let path: Vec<u32> = (0..problem.windows)
            .filter_map(|window| {
                last = at(&window).or(last);
                last.map(|choice| problem.inner[*choice as usize])
            })
            .collect();
        if !path.is_empty() && state.fits_path(region, &path) {
            state.put(region, &path);
        }
    }
    state
}

/// The start with all regions placed, if they fit.
fn whole<'a>(start: &State<'a>, bound: &Bound, tools: &Tools, seed: u64, staying: bool) -> Option<State<'a>> {
    let mut state = start.clone();
    if fill(&mut state, &bound.level, tools.prices, tools.lambda, staying) { Some(state) } else { fit(start, seed) }
}

/// Exchanges, then kicks: a few regions thrown elsewhere and the rest settled anew, as long as that gains.
fn refine(problem: &Problem, tools: &mut Tools, best: &mut Best, enough: &impl Fn(&Best) -> bool) {
    let mut state = State::of(problem, &best.path);
    // Exchanges and descents have sums of powers of their own, and could undo each other for ever.
    for _ in 0..ROUNDS_MAX {
        let reached = best.objective;
        if swap::round(&mut state, tools, best) == 0 || tools.late() || enough(best) {
            break;
        }
        descend(&mut state, &STAGES[6..], tools, best);
        if best.objective >= reached {
            break;
        }
    }
    let cost = (problem.regions * problem.windows * problem.choices.min(64) * 4).max(1);
    let (mut idle, kicks) = (0, if KICK_WORK / cost < KICKS_MIN { 0 } else { KICK_WORK / cost });
    for _ in 0..kicks {
        if idle > KICKS_IDLE || tools.late() || enough(best) {
            return;
        }
        let reached = best.objective;
        let mut state = State::of(problem, &best.path);
        kick(&mut state, tools);
        descend(&mut state, &AFTER_KICK, tools, best);
        swap::round(&mut state, tools, best);
        idle = if best.objective < reached { 0 } else { idle + 1 };
    }
}

fn kick(state: &mut State, tools: &mut Tools) {
    let problem = state.problem;
    let mut old = vec![0; problem.windows];
    for _ in 0..(problem.regions / 20).clamp(2, 6) {
        let region = tools.random.below(problem.regions);
        let listed = tools.shortlist.of(region);
        let choice = listed[tools.random.below(listed.len())];
        state.take(region, &mut old);
        let new = vec![choice; problem.windows];
        let fits = state.fits_path(region, &new);
        state.put(region, if fits { &new } else { &old });
    }
}

fn told(problem: &Problem, best: &Best, bound: Bound, optimal: bool) -> Solution {
    let state = State::of(problem, &best.path);
    let mut window_s = state.busiest();
    let mut assignment = vec![0; problem.windows * problem.regions];
    for (region, path) in best.path.chunks_exact(problem.windows).enumerate() {
        for (window, choice) in path.iter().enumerate() {
            assignment[window * problem.regions + region] = i64::from(problem.outer[*choice as usize]);
            window_s[window] += problem.penalty_s[*choice as usize];
        }
    }
    let total: f64 = window_s.iter().sum();
    let bound_s = if optimal { total } else { bound.seconds.min(total) };
    Solution { assignment, window_s, bound_s, lambda: bound.duals.lambda, pi: bound.duals.pi }
}
