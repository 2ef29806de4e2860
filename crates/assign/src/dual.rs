//! The lower bound and the prices: D = sum of the regions' cheapest paths - sum of pi * capacity is at most the optimum for all lambda on the simplex
//! of each window and all pi >= 0 (weak duality: the busiest resource takes at least any weighted mean of all).
//!
//! D is raised by setting prices from smoothed loads (`soft`): a resource busier than the mean gets dearer, by a factor of its own that grows while it
//! moves one way and shrinks when it turns (Rprop); the smoothing is taken back step by step. The bound is always that of unsmoothed paths.

use std::time::Instant;

use crate::path::{Space, cheapest, price};
use crate::prices::{Duals, Prices};
use crate::problem::{FEATURES, Problem, dot};
use crate::soft::{Loads, Weights, spread};
use crate::threads;

/// Temperatures in parts of a region's own cost: the first, the last, and from step to step.
const WARM: f64 = 0.2;
const COLD: f64 = 0.004;
const COOLING: f64 = 0.93;
/// Steps at most, and steps without progress (relative) that end the ascent once it is cold.
const STEPS_MAX: usize = 250;
const PATIENCE: usize = 20;
const PROGRESS: f64 = 1e-4;
/// A resource's price changes by at most this factor (natural logarithm) in a step.
const LEAP: f64 = 0.7;
/// Loads below this part of the mean count as this: an idle resource's price falls, but not to nothing at once.
const IDLE: f64 = 1e-3;
/// At the start a price falls with this power of how idle its resource is.
const IDLE_POWER: i32 = 4;
/// Prices of room are 0 below this part of the mean cost per byte, and appear with this one.
const ROOM_FREE: f64 = 1e-6;
const ROOM_FIRST: f64 = 1e-2;

/// A bound with its duals.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub seconds: f64,
    pub duals: Duals,
    /// Of each window: the mean of the smoothed loads under the prices, a target for the busiest resource.
    pub level: Vec<f64>,
}

struct Look {
    bound: f64,
    cost: f64,
    loads: Loads,
}

/// Prices under which an average request costs the same on every choice that is as busy as the busiest, when each choice takes requests as fast as it
/// can; a resource that this leaves idle (a network that is fast enough) is cheap.
pub(crate) fn fluid(problem: &Problem) -> Duals {
    let wide = problem.resources;
    let mut lambda = vec![0.0f64; problem.windows * wide];
    for (window, lambda) in lambda.chunks_exact_mut(wide.max(1)).enumerate() {
        let (mut longest, mut busy) = (vec![0.0f64; wide], vec![0.0f64; wide]);
        for run in &problem.runs {
            let mut total = [0.0; FEATURES];
            for region in 0..problem.regions {
                total.iter_mut().zip(problem.features(window, region, run.shape)).for_each(|(sum, feature)| *sum += feature);
            }
            for choice in run.from..run.to {
                let seconds = || problem.entries.of(choice).iter().map(|(at, q)| (*at as usize, dot(&total, q)));
                let slowest = seconds().map(|(_, seconds)| seconds).fold(0.0, f64::max);
                for (at, seconds) in seconds().filter(|(_, seconds)| *seconds > 0.0) {
                    longest[at] = longest[at].max(seconds);
                    busy[at] += seconds / slowest;
                }
            }
        }
        let busiest = busy.iter().copied().fold(0.0, f64::max);
        for ((price, longest), busy) in lambda.iter_mut().zip(&longest).zip(&busy) {
            *price = if *longest > 0.0 { (busy / busiest).powi(IDLE_POWER) / longest } else { 0.0 };
        }
        normalise(lambda);
    }
    Duals { lambda, pi: vec![0.0; problem.windows * problem.servers] }
}

fn normalise(lambda: &mut [f64]) {
    let sum: f64 = lambda.iter().sum();
    if sum > 0.0 && sum.is_finite() {
        lambda.iter_mut().for_each(|price| *price /= sum);
    } else {
        let even = 1.0 / lambda.len().max(1) as f64;
        lambda.fill(even);
    }
}

/// The bound at the duals, and smoothed loads at the temperature.
fn look(problem: &Problem, duals: &Duals, temperature: f64) -> Look {
    let prices = Prices::new(problem, duals);
    let work = problem.windows * problem.regions * problem.choices;
    let space = || (Space::new(problem), Weights::new(problem));
    let parts = threads::parts(problem.regions, work, space, |(space, weights), regions| {
        let (mut sum, mut loads) = (0.0, Loads::new(problem));
        for region in regions {
            price(problem, &prices, region, &mut space.cost);
            let seconds = cheapest(problem, &prices, region, space, None);
            sum += seconds;
            if seconds.is_finite() && seconds > 0.0 {
                spread(problem, &prices, region, space, seconds * temperature, weights, &mut loads);
            }
        }
        (sum, loads)
    });
    let (mut cost, mut loads) = (0.0, Loads::new(problem));
    for (part, part_loads) in parts {
        cost += part;
        loads.add(&part_loads);
    }
    let paid: f64 = duals.pi.iter().enumerate().filter(|(_, pi)| **pi > 0.0).map(|(at, pi)| pi * problem.capacity[at % problem.servers]).sum();
    Look { bound: cost - paid, cost, loads }
}

/// A factor per price: grows while the price moves one way.
struct Steps {
    factor: Vec<f64>,
    last: Vec<f64>,
}

impl Steps {
    fn new(count: usize, first: f64) -> Steps {
        Steps { factor: vec![first; count], last: vec![0.0; count] }
    }

    fn next(&mut self, at: usize, pull: f64, range: (f64, f64)) -> f64 {
        let turned = pull * self.last[at] < 0.0;
        self.last[at] = pull;
        self.factor[at] = (self.factor[at] * if turned { 0.5 } else { 1.2 }).clamp(range.0, range.1);
        (self.factor[at] * pull).clamp(-LEAP, LEAP)
    }
}

/// Raises the bound from the duals until nothing is gained, `enough` says so, or time is up. None: some region fits on no choice.
pub(crate) fn ascend(problem: &Problem, mut duals: Duals, until: Instant, enough: impl Fn(f64) -> bool) -> Option<Bound> {
    let mut best: Option<Bound> = None;
    let (mut busy_steps, mut room_steps) = (Steps::new(duals.lambda.len(), WARM / 2.0), Steps::new(duals.pi.len(), 0.3));
    let (mut progress, mut temperature) = (0, WARM);
    for step in 0..STEPS_MAX {
        let seen = look(problem, &duals, temperature);
        if !seen.cost.is_finite() {
            return None;
        }
        let level = levels(problem, &duals, &seen.loads);
        let reached = best.as_ref().map_or(f64::NEG_INFINITY, |best| best.seconds);
        if seen.bound > reached {
            if !(seen.bound - reached <= PROGRESS * seen.bound.abs()) {
                progress = step;
            }
            best = Some(Bound { seconds: seen.bound, duals: duals.clone(), level: level.clone() });
        }
        let settled = temperature <= COLD && step > progress + PATIENCE;
        if settled || seen.cost == 0.0 || enough(reached.max(seen.bound)) || Instant::now() >= until {
            break;
        }
        set_lambda(problem, &mut duals, &seen.loads, &level, temperature, &mut busy_steps);
        set_pi(problem, &mut duals, &seen, &mut room_steps);
        temperature = (temperature * COOLING).max(COLD);
    }
    best
}

/// The mean load of each window, weighed by price.
fn levels(problem: &Problem, duals: &Duals, loads: &Loads) -> Vec<f64> {
    let wide = problem.resources;
    let mean = |window: usize| duals.lambda[window * wide..][..wide].iter().zip(&loads.busy[window * wide..]).map(|(price, busy)| price * busy).sum();
    (0..problem.windows).map(mean).collect()
}

fn set_lambda(problem: &Problem, duals: &mut Duals, loads: &Loads, level: &[f64], temperature: f64, steps: &mut Steps) {
    for (window, level) in level.iter().enumerate().filter(|(_, level)| **level > 0.0) {
        let from = window * problem.resources;
        let lambda = &mut duals.lambda[from..][..problem.resources];
        for (at, price) in lambda.iter_mut().enumerate() {
            let pull = (loads.busy[from + at] / level).max(IDLE).ln();
            *price = (*price * steps.next(from + at, pull, (temperature / 20.0, 1.0)).exp()).max(1e-300);
        }
        normalise(lambda);
    }
}

fn set_pi(problem: &Problem, duals: &mut Duals, seen: &Look, steps: &mut Steps) {
    let bytes: f64 = problem.valid_bytes.iter().sum::<f64>() * problem.windows as f64;
    let unit = if bytes > 0.0 { seen.cost / bytes } else { 0.0 };
    for (at, pi) in duals.pi.iter_mut().enumerate() {
        let room = problem.capacity[at % problem.servers];
        if room == 0.0 || room == f64::INFINITY {
            continue;
        }
        let pull = (seen.loads.used[at] / room).max(0.1).ln();
        let raised = *pi * steps.next(at, pull, (0.01, 2.0)).exp();
        *pi = if raised >= ROOM_FREE * unit {
            raised
        } else if pull > 0.0 {
            ROOM_FIRST * unit
        } else {
            0.0
        };
    }
}
