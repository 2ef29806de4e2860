//! Exchanges of two regions, one of them on a busiest resource: what gets on where no region can move alone, because servers are full or because
//! every server would become the busiest with one region more.

use crate::descent::{Best, Tools};
use crate::problem::dot;
use crate::state::State;

/// Regions that a region on a busiest resource is exchanged with, at most.
const PARTNERS_MAX: usize = 400;
/// Resources at least this near to the busiest count as busiest.
const NEAR: f64 = 0.995;
/// Loads to the 256th: as near to the busiest alone as numbers allow.
pub(crate) const SQUARINGS: u32 = 8;

/// One round over the regions on the busiest resources, the heaviest first; how many exchanges were good.
pub(crate) fn round(state: &mut State, tools: &mut Tools, best: &mut Best) -> usize {
    state.recount(SQUARINGS, &[], None);
    let mut good = 0;
    for region in heaviest(state) {
        good += usize::from(exchange(state, region, tools));
        if tools.late() {
            break;
        }
    }
    state.recount(SQUARINGS, &[], None);
    best.offer(state);
    good
}

/// Regions that load a busiest resource, by their part of it.
fn heaviest(state: &State) -> Vec<usize> {
    let problem = state.problem;
    let busiest = state.busiest();
    let part = |region: usize| {
        let windows = state.path_of(region).iter().enumerate();
        let parts = windows.map(|(window, choice)| {
            let busy = &state.busy[window * problem.resources..][..problem.resources];
            let features = problem.features(window, region, problem.shape[*choice as usize] as usize);
            let entries = problem.entries.of(*choice as usize).iter();
            entries.filter(|(at, _)| busy[*at as usize] >= NEAR * busiest[window]).map(|(_, q)| dot(features, q)).fold(0.0, f64::max)
        });
        parts.sum::<f64>()
    };
    let mut found: Vec<(f64, usize)> = (0..problem.regions).map(|region| (part(region), region)).filter(|(part, _)| *part > 0.0).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    found.into_iter().map(|(_, region)| region).collect()
}

/// Exchanges the region's path with another's as soon as that is better.
fn exchange(state: &mut State, region: usize, tools: &mut Tools) -> bool {
    let problem = state.problem;
    let (before, sums) = (state.smooth() * (1.0 - 1e-9), state.sum.clone());
    let (mut mine, mut theirs) = (vec![0; problem.windows], vec![0; problem.windows]);
    let first = tools.random.below(problem.regions);
    for step in 0..problem.regions.min(PARTNERS_MAX) {
        let other = (first + step) % problem.regions;
        if state.path_of(other) == state.path_of(region) {
            continue;
        }
        state.take(region, &mut mine);
        state.take(other, &mut theirs);
        if state.fits_path(region, &theirs) {
            state.put(region, &theirs);
            if state.fits_path(other, &mine) {
                state.put(other, &mine);
                if state.smooth() < before {
                    return true;
                }
                state.take(other, &mut mine.clone());
            }
            state.take(region, &mut theirs.clone());
        }
        state.put(other, &theirs);
        state.put(region, &mine);
        state.sum.copy_from_slice(&sums);
    }
    false
}
