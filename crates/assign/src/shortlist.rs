//! For every region the choices worth trying: those that are cheapest under the dual prices, all windows together or in one of them. At the best prices
//! a region is nearly indifferent between them, and everything else is dearer by its reduced cost.

use crate::parts;
use crate::path::{Space, price};
use crate::prices::Prices;
use crate::problem::{Problem, dot};
use crate::random::Random;

/// Choices per region for all windows together, and more for each window.
const TOGETHER: usize = 20;
const EACH: usize = 3;
/// Prices are in doubt by this part of what a region costs.
const BLUR: f64 = 0.01;
/// Parts of the level that a region alone may load a choice: for each, the cheapest choices are listed where a region is that heavy.
const LUMPS: [f64; 5] = [1.0, 0.5, 0.25, 0.12, 0.06];

/// Shortlists, `of(region)` ascending.
pub(crate) struct Shortlist {
    first: Vec<u32>,
    choices: Vec<u32>,
}

impl Shortlist {
    pub(crate) fn new(problem: &Problem, prices: &Prices, level: &[f64]) -> Shortlist {
        let work = problem.windows * problem.regions * problem.choices;
        let lists = parts::parts(
            problem.regions,
            work,
            || Space::new(problem.windows, problem.choices),
            |space, regions| regions.map(|region| shortest(problem, prices, level, region, space)).collect::<Vec<_>>(),
        );
        let mut all = Shortlist { first: vec![0], choices: Vec::new() };
        for list in lists.into_iter().flatten() {
            all.choices.extend(list);
            all.first.push(all.choices.len() as u32);
        }
        all
    }

    pub(crate) fn of(&self, region: usize) -> &[u32] {
        &self.choices[self.first[region] as usize..self.first[region + 1] as usize]
    }
}

fn shortest(problem: &Problem, prices: &Prices, level: &[f64], region: usize, space: &mut Space) -> Vec<u32> {
    let choices = problem.choices;
    if choices <= 2 * TOGETHER {
        return (0..choices as u32).collect();
    }
    price(problem, prices, region, &mut space.cost);
    space.total.fill(0.0);
    let mut order: Vec<u32> = (0..choices as u32).collect();
    let mut list = Vec::new();
    let mut random = Random::new(region as u64);
    for cost in space.cost.chunks_exact(choices) {
        space.total.iter_mut().zip(cost).for_each(|(total, cost)| *total += cost);
        pick(cost, EACH, &mut order, &mut random, &mut list);
    }
    let total = &space.total;
    let dearer = |a: &u32, b: &u32| total[*a as usize].total_cmp(&total[*b as usize]).then(a.cmp(b));
    pick(total, TOGETHER, &mut order, &mut random, &mut list);
    // Prices do not tell a team from its members, but a region that fills a server needs one.
    if list.iter().any(|choice| alone(problem, level, region, *choice) > LUMPS[LUMPS.len() - 1]) {
        order.sort_unstable_by(dearer);
        let sized: Vec<(f64, u32)> = order.iter().map(|choice| (alone(problem, level, region, *choice), *choice)).collect();
        for lump in LUMPS {
            list.extend(sized.iter().filter(|(part, _)| *part <= lump).take(EACH).map(|(_, choice)| *choice));
        }
        list.extend(sized.iter().min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, choice)| *choice));
    }
    list.sort_unstable();
    list.dedup();
    list
}

/// Adds the cheapest choices, and as many drawn at random from those that are nearly as cheap: prices are not exact, and if all regions had the same
/// few choices, these would have to take them all.
fn pick(cost: &[f64], count: usize, order: &mut [u32], random: &mut Random, list: &mut Vec<u32>) {
    let dearer = |cost: &[f64], a: &u32, b: &u32| cost[*a as usize].total_cmp(&cost[*b as usize]).then(a.cmp(b));
    order.select_nth_unstable_by(count, |a, b| dearer(cost, a, b));
    list.extend_from_slice(&order[..count]);
    let doubt = BLUR * order[..count].iter().map(|choice| cost[*choice as usize]).fold(f64::INFINITY, f64::min);
    let blurred: Vec<f64> = cost.iter().map(|cost| cost - doubt * random.exponential()).collect();
    order.select_nth_unstable_by(count, |a, b| dearer(&blurred, a, b));
    list.extend_from_slice(&order[..count]);
}

/// What the region alone loads the busiest resource of a choice, in parts of the level, in its worst window.
fn alone(problem: &Problem, level: &[f64], region: usize, choice: u32) -> f64 {
    let part = |(window, level): (usize, &f64)| {
        let features = problem.features(window, region, problem.shape[choice as usize] as usize);
        let most = problem.entries.of(choice as usize).iter().map(|(_, q)| dot(features, q)).fold(0.0, f64::max);
        if *level > 0.0 { most / level } else { 0.0 }
    };
    level.iter().enumerate().map(part).fold(0.0, f64::max)
}
