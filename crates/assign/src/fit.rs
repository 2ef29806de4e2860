//! An assignment that merely fits, where room is so tight that nothing cheaper finds one: the largest regions first, each where least room is left
//! over, and for one that finds none another region makes way. Nothing moves between windows.

use crate::problem::Problem;
use crate::random::Random;
use crate::state::{NOWHERE, State};

/// Orders tried: the largest first, then nearly so.
const ORDERS: u64 = 24;

/// Puts all regions that lie nowhere, whatever it costs; None when none of the orders fits.
pub(crate) fn fit<'a>(start: &State<'a>, seed: u64) -> Option<State<'a>> {
    let problem = start.problem;
    let missing: Vec<usize> = (0..problem.regions).filter(|region| start.path_of(*region).contains(&NOWHERE)).collect();
    for order in 0..ORDERS {
        let mut random = Random::new(seed ^ order << 32);
        let noise = 0.02 * order as f64;
        let mut sized: Vec<(f64, usize)> =
            missing.iter().map(|region| (problem.valid_bytes[*region] * (1.0 + noise * random.below(1000) as f64 / 1000.0), *region)).collect();
        sized.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut state = start.clone();
        if sized.iter().all(|(_, region)| place(problem, &mut state, *region)) {
            return Some(state);
        }
    }
    None
}

fn place(problem: &Problem, state: &mut State, region: usize) -> bool {
    if let Some(choice) = tightest(problem, state, region) {
        state.put(region, &vec![choice as u32; problem.windows]);
        return true;
    }
    (0..problem.choices).any(|choice| make_way(problem, state, region, choice))
}

/// The choice that has room in all windows and the least left over, in parts of the region's bytes on it.
fn tightest(problem: &Problem, state: &State, region: usize) -> Option<usize> {
    let valid = problem.valid_bytes[region];
    let left_over = |choice: usize| {
        let stores = problem.stores.of(choice).iter();
        let left = stores.map(|(at, share)| (problem.capacity[*at as usize] - most(problem, state, *at)) / share);
        left.fold(f64::INFINITY, f64::min)
    };
    let fits = |choice: &usize| (0..problem.windows).all(|window| state.fits(window, *choice, valid));
    (0..problem.choices).filter(fits).min_by(|a, b| left_over(*a).total_cmp(&left_over(*b)))
}

fn most(problem: &Problem, state: &State, server: u32) -> f64 {
    (0..problem.windows).map(|window| state.used[window * problem.servers + server as usize]).fold(0.0, f64::max)
}

/// Whether the region goes on the choice once one other region has left its servers for elsewhere.
fn make_way(problem: &Problem, state: &mut State, region: usize, choice: usize) -> bool {
    if problem.valid_bytes[region] > problem.largest[choice] {
        return false;
    }
    let path = vec![choice as u32; problem.windows];
    let wanted: Vec<u32> = problem.stores.of(choice).iter().map(|(at, _)| *at).collect();
    let mut old = path.clone();
    for other in 0..problem.regions {
        let lies = state.path_of(other).iter().any(|at| *at != NOWHERE && problem.stores.of(*at as usize).iter().any(|(at, _)| wanted.contains(at)));
        if !lies || problem.valid_bytes[other] == 0.0 {
            continue;
        }
        state.take(other, &mut old);
        if state.fits_path(region, &path) {
            state.put(region, &path);
            if let Some(elsewhere) = tightest(problem, state, other) {
                state.put(other, &vec![elsewhere as u32; problem.windows]);
                return true;
            }
            state.take(region, &mut vec![0; problem.windows]);
        }
        state.put(other, &old);
    }
    false
}
