//! The loads of a region that spreads over its nearly cheapest paths: each path weighs exp(-(its seconds) / temperature). Unlike the cheapest path
//! alone, which jumps from server to server as prices change, these loads follow the prices smoothly, so that prices can be set from them.

use crate::path::{Cheapest, Space};
use crate::prices::{Moves, least};
use crate::problem::{FEATURES, Problem, dot};

/// Shares of a region smaller than this are not worth counting.
const SHARE_MIN: f64 = 1e-4;

/// What regions bring to choices, `[window][choice]`: features, bytes stored, bytes that come and that leave. Resources are reckoned from it once, at
/// the end, however many regions there are.
pub(crate) struct Flow {
    features: Vec<[f64; FEATURES]>,
    stored: Vec<f64>,
    came: Vec<f64>,
    left: Vec<f64>,
}

/// Busy seconds and stored bytes.
pub(crate) struct Loads {
    /// `[window][resource]`.
    pub busy: Vec<f64>,
    /// `[window][server]`.
    pub used: Vec<f64>,
}

impl Flow {
    pub(crate) fn new(problem: &Problem) -> Flow {
        let flat = vec![0.0; problem.windows * problem.choices];
        Flow { features: vec![[0.0; FEATURES]; flat.len()], stored: flat.clone(), came: flat.clone(), left: flat }
    }

    #[inline(always)]
    fn put(&mut self, at: usize, share: f64, features: &[f64; FEATURES], valid: f64) {
        self.features[at].iter_mut().zip(features).for_each(|(sum, feature)| *sum += share * feature);
        self.stored[at] += share * valid;
    }

    pub(crate) fn add(&mut self, other: &Flow) {
        self.features.as_flattened_mut().iter_mut().zip(other.features.as_flattened()).for_each(|(sum, part)| *sum += part);
        for (sums, parts) in [(&mut self.stored, &other.stored), (&mut self.came, &other.came), (&mut self.left, &other.left)] {
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
    }

    pub(crate) fn loads(&self, problem: &Problem) -> Loads {
        let mut loads = Loads { busy: vec![0.0; problem.windows * problem.resources], used: vec![0.0; problem.windows * problem.servers] };
        for window in 0..problem.windows {
            let busy = &mut loads.busy[window * problem.resources..][..problem.resources];
            let used = &mut loads.used[window * problem.servers..][..problem.servers];
            for choice in 0..problem.choices {
                let at = window * problem.choices + choice;
                problem.entries.of(choice).iter().for_each(|(to, q)| busy[*to as usize] += dot(&self.features[at], q));
                problem.enter.of(choice).iter().for_each(|(to, seconds)| busy[*to as usize] += self.came[at] * seconds);
                problem.leave.of(choice).iter().for_each(|(to, seconds)| busy[*to as usize] += self.left[at] * seconds);
                problem.stores.of(choice).iter().for_each(|(to, share)| used[*to as usize] += self.stored[at] * share);
            }
        }
        loads
    }
}

/// Working space: `[window][choice]` weights, of the choice alone, of all that leads to it, of coming and of leaving, and of all that follows.
pub(crate) struct Weights {
    alone: Vec<f64>,
    before: Vec<f64>,
    come: Vec<f64>,
    leave: Vec<f64>,
    after: Vec<f64>,
}

impl Weights {
    pub(crate) fn new(problem: &Problem) -> Weights {
        let all = vec![0.0; problem.windows * problem.choices];
        Weights { alone: all.clone(), before: all.clone(), come: all.clone(), leave: all, after: vec![0.0; problem.choices] }
    }
}

/// e^-x for x >= 0, to six digits; nearly 0 from 690 on. Written so that the compiler makes vectors of it.
#[inline(always)]
fn fading(x: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let halvings = if x < 690.0 { x } else { 690.0 } * std::f64::consts::LOG2_E;
    let shifted = halvings + ROUND;
    let y = (halvings - (shifted - ROUND)) * -std::f64::consts::LN_2;
    let rest = 1.0 + y * (1.0 + y * (0.5 + y * (1.0 / 6.0 + y * (1.0 / 24.0 + y * (1.0 / 120.0 + y / 720.0)))));
    f64::from_bits(1023u64.wrapping_sub(shifted.to_bits()) << 52) * rest
}

/// Paths dearer than the cheapest by so many temperatures weigh nothing.
const NOTHING: f64 = 25.0;

/// Adds the loads of a region whose costs and cheapest path are in the space. `temperature_s` must be positive and the cheapest path finite.
#[inline(always)]
pub(crate) fn spread(
    problem: &Problem,
    moves: &Moves,
    region: usize,
    (space, cheapest): (&Space, Cheapest),
    temperature_s: f64,
    weights: &mut Weights,
    flow: &mut Flow,
) {
    if cheapest.moving > cheapest.seconds + NOTHING * temperature_s {
        stay(problem, region, (space, cheapest), temperature_s, weights, flow);
    } else {
        travel(problem, moves, region, space, temperature_s, weights, flow);
    }
}

/// The same for a region that will not move.
#[inline(always)]
fn stay(problem: &Problem, region: usize, (space, cheapest): (&Space, Cheapest), temperature_s: f64, weights: &mut Weights, flow: &mut Flow) {
    let (per_second, valid) = (1.0 / temperature_s, problem.valid_bytes[region]);
    weights.after.iter_mut().zip(&space.total).for_each(|(weight, total)| *weight = fading((total - cheapest.seconds) * per_second));
    let scale = 1.0 / weights.after.iter().sum::<f64>();
    for (choice, weight) in weights.after.iter().enumerate().filter(|(_, weight)| **weight * scale > SHARE_MIN) {
        let share = weight * scale;
        for window in 0..problem.windows {
            let features = problem.features(window, region, problem.shape[choice] as usize);
            flow.put(window * problem.choices + choice, share, features, valid);
        }
    }
}

/// The same for one that may, by a pass forward and one back.
#[inline(always)]
fn travel(problem: &Problem, moves: &Moves, region: usize, space: &Space, temperature_s: f64, weights: &mut Weights, flow: &mut Flow) {
    let (choices, windows, per_second) = (problem.choices, problem.windows, 1.0 / temperature_s);
    let per_byte = problem.valid_bytes[region] * per_second;
    let mut moved = vec![0.0; windows];
    for window in 0..windows {
        let cost = &space.cost[window * choices..][..choices];
        let base = least(cost);
        let alone = &mut weights.alone[window * choices..][..choices];
        alone.iter_mut().zip(cost).for_each(|(weight, cost)| *weight = fading((cost - base) * per_second));
        let (earlier, now) = weights.before.split_at_mut(window * choices);
        if window == 0 {
            now[..choices].copy_from_slice(alone);
            continue;
        }
        let earlier = &earlier[(window - 1) * choices..];
        let (come, leave) = (&mut weights.come[window * choices..][..choices], &mut weights.leave[window * choices..][..choices]);
        let (enter_s, leave_s) = (&moves.enter[window * choices..][..choices], &moves.leave[window * choices..][..choices]);
        come.iter_mut().zip(enter_s).for_each(|(weight, seconds)| *weight = fading(seconds * per_byte));
        leave.iter_mut().zip(leave_s).for_each(|(weight, seconds)| *weight = fading(seconds * per_byte));
        moved[window] = inner(earlier, leave);
        for (((now, alone), come), earlier) in now[..choices].iter_mut().zip(&*alone).zip(&*come).zip(earlier) {
            *now = alone * (earlier + moved[window] * come);
        }
    }
    let total: f64 = weights.before[(windows - 1) * choices..].iter().sum();
    if total > 0.0 {
        count(problem, region, 1.0 / total, &moved, weights, flow);
    }
}

#[inline(always)]
fn inner(a: &[f64], b: &[f64]) -> f64 {
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for i in 0..8 {
            lanes[i] += a[i] * b[i];
        }
    }
    lanes.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

/// Walks back through the windows, with `weights.after` what follows the window at hand, and adds up.
#[inline(always)]
fn count(problem: &Problem, region: usize, scale: f64, moved: &[f64], weights: &mut Weights, flow: &mut Flow) {
    let (choices, valid) = (problem.choices, problem.valid_bytes[region]);
    weights.after.fill(1.0);
    for window in (0..moved.len()).rev() {
        let row = window * choices..(window + 1) * choices;
        for (choice, (before, after)) in weights.before[row.clone()].iter().zip(&weights.after).enumerate() {
            let share = before * after * scale;
            if share > SHARE_MIN {
                let features = problem.features(window, region, problem.shape[choice] as usize);
                flow.put(row.start + choice, share, features, valid);
            }
        }
        if window == 0 {
            return;
        }
        // What follows a choice of this window, the choice itself included.
        weights.after.iter_mut().zip(&weights.alone[row.clone()]).for_each(|(after, alone)| *after *= alone);
        let coming = inner(&weights.after, &weights.come[row.clone()]);
        if moved[window] * coming * scale > SHARE_MIN {
            let earlier = &weights.before[(window - 1) * choices..];
            for (choice, earlier) in earlier.iter().enumerate().take(choices) {
                let came = moved[window] * weights.come[row.start + choice] * weights.after[choice] * scale;
                let left = earlier * weights.leave[row.start + choice] * coming * scale;
                if came > SHARE_MIN {
                    flow.came[row.start + choice] += came * valid;
                }
                if left > SHARE_MIN {
                    flow.left[row.start + choice] += left * valid;
                }
            }
        }
        weights.after.iter_mut().zip(&weights.leave[row]).for_each(|(after, leave)| *after += leave * coming);
    }
}

#[cfg(test)]
mod tests {
    use super::fading;

    #[test]
    fn fading_is_e_to_the_minus_x() {
        for i in 0..6000 {
            let x = f64::from(i) * 0.1;
            assert!((fading(x) / (-x).exp() - 1.0).abs() < 1e-6, "{x}");
        }
        assert!(fading(f64::INFINITY) < 1e-290);
    }
}
