//! Duals, and what choices cost under them: seconds per feature, per byte stored, and per byte that comes or goes, in every window.

use crate::problem::{FEATURES, Problem};

/// Multipliers: what a second on a resource is worth (sums to 1 in each window), and a byte of room.
#[derive(Clone, Debug)]
pub(crate) struct Duals {
    /// `[window][resource]`.
    pub lambda: Vec<f64>,
    /// `[window][server]`, seconds per byte.
    pub pi: Vec<f64>,
}

/// Prices of coming and leaving, seconds per byte `[window][choice]`.
pub(crate) struct Moves {
    pub leave: Vec<f64>,
    pub enter: Vec<f64>,
    /// No move costs less per byte.
    pub least: f64,
}

/// Prices of choices.
pub(crate) struct Prices {
    /// `[window][feature][choice]`, so that one feature meets all choices of a shape in one loop.
    pub feature: Vec<f64>,
    /// Seconds per byte stored, `[window][choice]`.
    pub byte: Vec<f64>,
    pub moves: Moves,
}

/// The least of the numbers; infinite when there are none.
#[inline(always)]
pub(crate) fn least(numbers: &[f64]) -> f64 {
    let (whole, rest) = numbers.as_chunks::<8>();
    let mut lanes = [f64::INFINITY; 8];
    for chunk in whole {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane = if *number < *lane { *number } else { *lane };
        }
    }
    lanes.iter().chain(rest).fold(f64::INFINITY, |a, b| if *b < a { *b } else { a })
}

fn priced(members: &[(u32, f64)], prices: &[f64]) -> f64 {
    members.iter().map(|(at, value)| prices[*at as usize] * value).sum()
}

impl Prices {
    pub(crate) fn new(problem: &Problem, duals: &Duals) -> Prices {
        let choices = problem.choices;
        let (mut feature, mut byte) = (vec![0.0; problem.windows * FEATURES * choices], vec![0.0; problem.windows * choices]);
        for window in 0..problem.windows {
            let lambda = &duals.lambda[window * problem.resources..][..problem.resources];
            let pi = &duals.pi[window * problem.servers..][..problem.servers];
            for choice in 0..choices {
                for (resource, seconds) in problem.entries.of(choice) {
                    for (at, second) in seconds.iter().enumerate() {
                        feature[(window * FEATURES + at) * choices + choice] += lambda[*resource as usize] * second;
                    }
                }
                byte[window * choices + choice] = priced(problem.stores.of(choice), pi);
            }
        }
        Prices { feature, byte, moves: Moves::new(problem, &duals.lambda) }
    }
}

impl Moves {
    pub(crate) fn new(problem: &Problem, lambda: &[f64]) -> Moves {
        let choices = problem.choices;
        let mut moves = Moves { leave: vec![0.0; problem.windows * choices], enter: vec![0.0; problem.windows * choices], least: 0.0 };
        if !problem.moves_cost() {
            return moves;
        }
        moves.least = f64::INFINITY;
        for (window, lambda) in lambda.chunks_exact(problem.resources).enumerate() {
            let row = window * choices..(window + 1) * choices;
            for choice in 0..choices {
                moves.leave[row.start + choice] = priced(problem.leave.of(choice), lambda);
                moves.enter[row.start + choice] = priced(problem.enter.of(choice), lambda);
            }
            if window > 0 {
                moves.least = moves.least.min(least(&moves.leave[row.clone()]) + least(&moves.enter[row]));
            }
        }
        if moves.least == f64::INFINITY {
            moves.least = 0.0;
        }
        moves
    }
}
