//! The lower bound and the prices: D = sum of the regions' cheapest paths - sum of pi * capacity is at most the optimum for all lambda on the simplex
//! of each window and all pi >= 0 (weak duality: the busiest resource takes at least any weighted mean of all).
//!
//! D is raised by setting prices from smoothed loads (`soft`): a resource busier than the mean gets dearer, by a factor of its own that grows while it
//! moves one way and shrinks when it turns (Rprop); the smoothing is taken back step by step. The bound is always that of unsmoothed paths. Large
//! problems begin with the prices of smaller ones: of a sample of the regions, and of groups of servers (`coarse`).

use std::ops::Range;
use std::time::Instant;

use crate::coarse::Coarse;
use crate::parts;
use crate::path::{Space, cheapest, price};
use crate::prices::{Duals, Prices, least};
use crate::problem::{FEATURES, Problem, dot};
use crate::soft::{Flow, Loads, Weights, spread};

/// Temperatures in parts of a region's own cost: the first, the last, and from step to step.
const WARM: f64 = 0.2;
const COLD: f64 = 0.004;
const COOLING: f64 = 0.8;
/// It gets cooler once the smoothed loads are as near to what prices ask for as this (relative), or after so many steps.
const BALANCED: f64 = 0.08;
const WAIT_MAX: usize = 15;
/// The pace of an ascent: temperatures from the first to the last, steps at most, and steps without progress (relative) that end it once it is cold.
#[derive(Clone, Copy)]
struct Pace {
    warm: f64,
    cold: f64,
    steps: usize,
    patience: usize,
    progress: f64,
}

const WHOLE: Pace = Pace { warm: WARM, cold: COLD, steps: 250, patience: 20, progress: 1e-4 };
/// From prices that a smaller problem has found.
const AFTER_SAMPLE: Pace = Pace { warm: MILD, ..WHOLE };
const AFTER_GROUPS: Pace = Pace { warm: COLD, cold: COLD, steps: 60, patience: 3, progress: 5e-4 };
/// For prices that a larger problem begins with.
const SAMPLED: Pace = Pace { cold: MILD, ..WHOLE };
const GROUPED: Pace = Pace { warm: MILD, steps: 80, patience: 8, progress: 3e-4, ..WHOLE };
/// From so many regions on a sample comes first, down to the mild temperature; of this part of them.
const COARSE_FROM: usize = 1500;
const COARSE: usize = 25;
const MILD: f64 = 0.02;
/// Duals whose mean is looked at.
const MEAN_OF: usize = 12;
/// A resource's price changes by at most this factor (natural logarithm) in a step.
const LEAP: f64 = 0.7;
/// Loads below this part of the mean count as this: an idle resource's price falls, but not to nothing at once.
const IDLE: f64 = 1e-3;
/// At the start a price falls with this power of how idle its resource is.
const IDLE_POWER: i32 = 8;
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

/// Prices under which an average request costs the same on every choice that is as busy as the busiest, when the smallest choices take requests as fast
/// as they can; a resource that this leaves idle (a network that is fast enough) is cheap.
fn fluid(problem: &Problem) -> Duals {
    let wide = problem.resources;
    let mut lambda = vec![0.0f64; problem.windows * wide];
    let smallest = smallest(problem);
    for (window, lambda) in lambda.chunks_exact_mut(wide.max(1)).enumerate() {
        let (mut longest, mut busy) = (vec![0.0f64; wide], vec![0.0f64; wide]);
        for run in &problem.runs {
            let mut total = [0.0; FEATURES];
            for region in 0..problem.regions {
                total.iter_mut().zip(problem.features(window, region, run.shape)).for_each(|(sum, feature)| *sum += feature);
            }
            for choice in (run.from..run.to).filter(|choice| smallest[*choice]) {
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

/// For every resource one of the choices with the fewest resources that load it.
fn smallest(problem: &Problem) -> Vec<bool> {
    let mut of = vec![usize::MAX; problem.resources];
    let size = |choice: usize| problem.entries.of(choice).len();
    for choice in 0..problem.choices {
        for (at, _) in problem.entries.of(choice) {
            let best = &mut of[*at as usize];
            if *best == usize::MAX || size(choice) < size(*best) {
                *best = choice;
            }
        }
    }
    let mut chosen = vec![false; problem.choices];
    of.into_iter().filter(|choice| *choice != usize::MAX).for_each(|choice| chosen[choice] = true);
    chosen
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
    let space = || (Space::new(problem.windows, problem.choices), Weights::new(problem));
    let parts = parts::parts(problem.regions, work, space, |space, regions| wide(problem, &prices, temperature, space, regions));
    let (mut cost, mut flow) = (0.0, Flow::new(problem));
    for (part, part_flow) in parts {
        cost += part;
        flow.add(&part_flow);
    }
    let paid: f64 = duals.pi.iter().enumerate().filter(|(_, pi)| **pi > 0.0).map(|(at, pi)| pi * problem.capacity[at % problem.servers]).sum();
    Look { bound: cost - paid, cost, loads: flow.loads(problem) }
}

/// Cost and smoothed loads of some regions, by the widest vectors that the machine has.
fn wide(problem: &Problem, prices: &Prices, temperature: f64, space: &mut (Space, Weights), regions: Range<usize>) -> (f64, Flow) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn with_avx2(problem: &Problem, prices: &Prices, temperature: f64, space: &mut (Space, Weights), regions: Range<usize>) -> (f64, Flow) {
            part(problem, prices, temperature, space, regions)
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has what the function asks for.
            return unsafe { with_avx2(problem, prices, temperature, space, regions) };
        }
    }
    part(problem, prices, temperature, space, regions)
}

#[inline(always)]
fn part(problem: &Problem, prices: &Prices, temperature: f64, (space, weights): &mut (Space, Weights), regions: Range<usize>) -> (f64, Flow) {
    let (mut sum, mut flow) = (0.0, Flow::new(problem));
    for region in regions {
        price(problem, prices, region, &mut space.cost);
        let found = cheapest(&prices.moves, problem.valid_bytes[region], space, None);
        sum += found.seconds;
        if found.seconds.is_finite() && found.seconds > 0.0 {
            spread(problem, &prices.moves, region, (space, found), found.seconds * temperature, weights, &mut flow);
        }
    }
    (sum, flow)
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
        self.factor[at] = (self.factor[at] * if turned { 0.6 } else { 1.2 }).clamp(range.0, range.1);
        (self.factor[at] * pull).clamp(-LEAP, LEAP)
    }
}

/// The best bound found until nothing is gained, `enough` says so, or time is up. None: some region fits on no choice.
pub(crate) fn bound(problem: &Problem, until: Instant, enough: impl Fn(f64) -> bool) -> Option<Bound> {
    let Some(coarse) = Coarse::new(problem) else {
        let (duals, pace) = sampled(problem, until);
        return ascend(problem, duals, pace, until, enough);
    };
    let (first, pace) = sampled(&coarse.problem, until);
    let pace = if pace.warm == MILD { GROUPED } else { pace };
    let found = ascend(&coarse.problem, first, pace, until, |_| false)?;
    ascend(problem, coarse.spread(problem, &found.duals), AFTER_GROUPS, until, enough)
}

/// Duals to begin with, from a sample of the regions where there are many, and how to go on from them.
fn sampled(problem: &Problem, until: Instant) -> (Duals, Pace) {
    let duals = fluid(problem);
    if problem.regions < COARSE_FROM {
        return (duals, WHOLE);
    }
    let sample = sample(problem, &duals);
    (ascend(&sample, duals.clone(), SAMPLED, until, |_| false).map_or(duals, |bound| bound.duals), AFTER_SAMPLE)
}

/// A problem of fewer regions with nearly the same prices: the costliest as they are, and of the others one for several.
fn sample(problem: &Problem, duals: &Duals) -> Problem {
    let prices = Prices::new(problem, duals);
    let mut cost = vec![0.0; problem.windows * problem.choices];
    let mut order: Vec<(f64, usize)> = (0..problem.regions)
        .map(|region| {
            price(problem, &prices, region, &mut cost);
            (cost.chunks_exact(problem.choices).map(least).sum(), region)
        })
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let whole = problem.regions / COARSE;
    let rest = order[whole..].chunks(COARSE).map(|group| (group[group.len() / 2].1, group.len() as f64));
    let kept: Vec<(usize, f64)> = order[..whole].iter().map(|(_, region)| (*region, 1.0)).chain(rest).collect();
    problem.only(&kept)
}

/// Raises the bound from the duals while the temperature falls.
fn ascend(problem: &Problem, mut duals: Duals, pace: Pace, until: Instant, enough: impl Fn(f64) -> bool) -> Option<Bound> {
    let Pace { warm, cold, .. } = pace;
    let mut best: Option<Bound> = None;
    let (mut busy_steps, mut room_steps) = (Steps::new(duals.lambda.len(), warm / 2.0), Steps::new(duals.pi.len(), warm));
    let (mut progress, mut temperature, mut waited, mut mean) = (0, warm, 0, Mean::new(&duals));
    for step in 0..pace.steps {
        // Now and then the mean of the duals so far is looked at instead: the bound is concave, and single steps overshoot.
        let middle = mean.count >= MEAN_OF;
        let asked = if middle { mean.taken() } else { duals.clone() };
        let seen = look(problem, &asked, temperature);
        if !seen.cost.is_finite() {
            return None;
        }
        let level = levels(problem, &asked.lambda, &seen.loads.busy);
        let reached = best.as_ref().map_or(f64::NEG_INFINITY, |best| best.seconds);
        if seen.bound > reached {
            if best.is_none() || seen.bound - reached > pace.progress * seen.bound.abs() {
                progress = step;
            }
            best = Some(Bound { seconds: seen.bound, duals: asked.clone(), level: level.clone() });
        }
        let settled = temperature <= cold && step > progress + pace.patience;
        if settled || seen.cost == 0.0 || enough(reached.max(seen.bound)) || Instant::now() >= until {
            break;
        }
        if middle {
            continue;
        }
        set_lambda(problem, &mut duals, &seen.loads, &level, temperature, &mut busy_steps);
        set_pi(problem, &mut duals, &seen, temperature, &mut room_steps);
        waited += 1;
        if waited >= WAIT_MAX || imbalance(problem, &asked, &seen, &level) < BALANCED {
            temperature = (temperature * COOLING).max(cold);
            waited = 0;
        }
        if temperature <= cold {
            mean.add(&duals);
        }
    }
    best
}

/// How far the smoothed loads are from equal where resources have a price, and room from full where it has one.
fn imbalance(problem: &Problem, duals: &Duals, seen: &Look, level: &[f64]) -> f64 {
    let busy = duals.lambda.iter().zip(&seen.loads.busy).enumerate().map(|(at, (price, busy))| price * (busy - level[at / problem.resources]).abs());
    let used = duals.pi.iter().zip(&seen.loads.used).enumerate().filter(|(_, (price, _))| **price > 0.0);
    let used = used.map(|(at, (price, used))| price * (used - problem.capacity[at % problem.servers]).abs());
    (busy.sum::<f64>() + used.sum::<f64>()) / seen.cost
}

/// The mean of duals.
struct Mean {
    sum: Duals,
    count: usize,
}

impl Mean {
    fn new(like: &Duals) -> Mean {
        Mean { sum: Duals { lambda: vec![0.0; like.lambda.len()], pi: vec![0.0; like.pi.len()] }, count: 0 }
    }

    fn add(&mut self, duals: &Duals) {
        self.sum.lambda.iter_mut().zip(&duals.lambda).for_each(|(sum, one)| *sum += one);
        self.sum.pi.iter_mut().zip(&duals.pi).for_each(|(sum, one)| *sum += one);
        self.count += 1;
    }

    /// The mean, after which a new one begins.
    fn taken(&mut self) -> Duals {
        let part = 1.0 / self.count as f64;
        let empty = Mean::new(&self.sum);
        let sum = std::mem::replace(self, empty).sum;
        Duals { lambda: sum.lambda.iter().map(|sum| sum * part).collect(), pi: sum.pi.iter().map(|sum| sum * part).collect() }
    }
}

/// The mean load of each window, weighed by price.
pub(crate) fn levels(problem: &Problem, lambda: &[f64], busy: &[f64]) -> Vec<f64> {
    let wide = problem.resources;
    let mean = |window: usize| lambda[window * wide..][..wide].iter().zip(&busy[window * wide..]).map(|(price, busy)| price * busy).sum();
    (0..problem.windows).map(mean).collect()
}

fn set_lambda(problem: &Problem, duals: &mut Duals, loads: &Loads, level: &[f64], temperature: f64, steps: &mut Steps) {
    for (window, level) in level.iter().enumerate().filter(|(_, level)| **level > 0.0) {
        let from = window * problem.resources;
        let lambda = &mut duals.lambda[from..][..problem.resources];
        for (at, price) in lambda.iter_mut().enumerate() {
            let pull = (loads.busy[from + at] / level).max(IDLE).ln();
            *price = (*price * steps.next(from + at, pull, (temperature / 3.0, 1.0)).exp()).max(1e-300);
        }
        normalise(lambda);
    }
}

fn set_pi(problem: &Problem, duals: &mut Duals, seen: &Look, temperature: f64, steps: &mut Steps) {
    let bytes: f64 = problem.valid_bytes.iter().sum::<f64>() * problem.windows as f64;
    let unit = if bytes > 0.0 { seen.cost / bytes } else { 0.0 };
    for (at, pi) in duals.pi.iter_mut().enumerate() {
        let room = problem.capacity[at % problem.servers];
        if room == 0.0 || room == f64::INFINITY {
            continue;
        }
        let pull = (seen.loads.used[at] / room).max(0.1).ln();
        let raised = *pi * steps.next(at, pull, (temperature, 20.0)).exp();
        *pi = if raised >= ROOM_FREE * unit {
            raised
        } else if pull > 0.0 {
            ROOM_FIRST * unit
        } else {
            0.0
        };
    }
}
