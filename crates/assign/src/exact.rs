//! Branch and bound for small instances: region by region, each on every path, cut off where the bound (what the regions placed cost at the dual prices,
//! and the rest at least) or the busiest resources so far reach the best known.

use crate::descent::Best;
use crate::path::{Space, price};
use crate::prices::{Duals, Prices};
use crate::problem::Problem;
use crate::state::State;

/// Paths of one region, regions, and nodes of the search at most.
const PATHS_MAX: usize = 4096;
const REGIONS_MAX: usize = 24;
const NODES_MAX: usize = 200_000;

/// What a path costs at the dual prices, and the path.
type Priced = (f64, Vec<u32>);

struct Search<'s, 'a> {
    state: State<'a>,
    best: &'s mut Best,
    regions: Vec<(usize, Vec<Priced>)>,
    /// What the regions from here on cost at least, at the dual prices.
    rest: Vec<f64>,
    nodes: usize,
}

/// Searches to the end; true when it got there, so that the best is an optimum (or, where there is none, nothing fits).
pub(crate) fn search(problem: &Problem, duals: &Duals, best: &mut Best) -> bool {
    let paths = problem.choices.checked_pow(problem.windows as u32).filter(|paths| *paths <= PATHS_MAX);
    let Some(paths) = paths.filter(|_| problem.regions <= REGIONS_MAX) else { return false };
    let prices = Prices::new(problem, duals);
    let mut regions: Vec<(usize, Vec<Priced>)> = (0..problem.regions).map(|region| (region, priced(problem, &prices, region, paths))).collect();
    regions.sort_by(|a, b| least(&b.1).total_cmp(&least(&a.1)));
    let paid: f64 = duals.pi.iter().enumerate().filter(|(_, pi)| **pi > 0.0).map(|(at, pi)| pi * problem.capacity[at % problem.servers]).sum();
    let mut rest = vec![-paid; regions.len() + 1];
    for (at, (_, paths)) in regions.iter().enumerate().rev() {
        rest[at] = rest[at + 1] + least(paths);
    }
    let mut search = Search { state: State::new(problem), best, regions, rest, nodes: 0 };
    search.state.recount(0, &[], None);
    search.from(0, 0.0)
}

fn least(paths: &[Priced]) -> f64 {
    paths.first().map_or(f64::INFINITY, |path| path.0)
}

/// All paths of a region, the cheapest first.
fn priced(problem: &Problem, prices: &Prices, region: usize, paths: usize) -> Vec<Priced> {
    let (choices, valid) = (problem.choices, problem.valid_bytes[region]);
    let mut space = Space::new(problem.windows, choices);
    price(problem, prices, region, &mut space.cost);
    let cost = |path: &[u32]| {
        let mut seconds = 0.0;
        for (window, choice) in path.iter().enumerate() {
            let at = window * choices + *choice as usize;
            seconds += space.cost[at];
            if window > 0 && path[window - 1] != *choice {
                seconds += valid * (prices.moves.leave[window * choices + path[window - 1] as usize] + prices.moves.enter[at]);
            }
        }
        seconds
    };
    let path = |number: usize| (0..problem.windows).map(|window| (number / choices.pow(window as u32) % choices) as u32).collect::<Vec<u32>>();
    let all = (0..paths).map(path).map(|path| (cost(&path), path));
    let mut all: Vec<Priced> = all.filter(|(cost, _)| cost.is_finite()).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

impl Search<'_, '_> {
    /// False when the nodes ran out.
    fn from(&mut self, depth: usize, spent: f64) -> bool {
        if depth == self.regions.len() {
            self.best.offer(&self.state);
            return true;
        }
        let (region, paths) = std::mem::take(&mut self.regions[depth]);
        let mut ended = true;
        for (cost, path) in &paths {
            if spent + cost + self.rest[depth + 1] >= self.best.objective * (1.0 - 1e-9) {
                break;
            }
            self.nodes += 1;
            if self.nodes > NODES_MAX {
                ended = false;
                break;
            }
            if !self.state.fits_path(region, path) {
                continue;
            }
            self.state.put(region, path);
            if self.state.objective() < self.best.objective * (1.0 - 1e-12) {
                ended = self.from(depth + 1, spent + cost);
            }
            self.state.take(region, &mut vec![0; path.len()]);
            if !ended {
                break;
            }
        }
        self.regions[depth] = (region, paths);
        ended
    }
}
