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

/// Prices of choices, each table `[window][choice]`.
#[derive(Clone, Debug)]
pub(crate) struct Prices {
    /// `[window][feature][choice]`, so that one feature meets all choices of a shape in one loop.
    pub feature: Vec<f64>,
    /// Seconds per byte stored.
    pub byte: Vec<f64>,
    pub leave: Vec<f64>,
    pub enter: Vec<f64>,
}

fn worth(members: &[(u32, f64)], prices: &[f64]) -> f64 {
    members.iter().map(|(at, value)| prices[*at as usize] * value).sum()
}

impl Prices {
    /// Nothing costs anything; without prices of features.
    pub(crate) fn free(problem: &Problem) -> Prices {
        let flat = vec![0.0; problem.windows * problem.choices];
        Prices { feature: Vec::new(), byte: flat.clone(), leave: flat.clone(), enter: flat }
    }

    pub(crate) fn new(problem: &Problem, duals: &Duals) -> Prices {
        let choices = problem.choices;
        let mut prices = Prices { feature: vec![0.0; problem.windows * FEATURES * choices], ..Prices::free(problem) };
        for window in 0..problem.windows {
            let lambda = &duals.lambda[window * problem.resources..][..problem.resources];
            let pi = &duals.pi[window * problem.servers..][..problem.servers];
            for choice in 0..choices {
                for (resource, seconds) in problem.entries.of(choice) {
                    for (feature, second) in seconds.iter().enumerate() {
                        prices.feature[(window * FEATURES + feature) * choices + choice] += lambda[*resource as usize] * second;
                    }
                }
                prices.byte[window * choices + choice] = worth(problem.stores.of(choice), pi);
            }
        }
        prices.set_moves(problem, &duals.lambda);
        prices
    }

    pub(crate) fn set_moves(&mut self, problem: &Problem, lambda: &[f64]) {
        if !problem.moves_cost() {
            return;
        }
        for (window, lambda) in lambda.chunks_exact(problem.resources).enumerate() {
            for choice in 0..problem.choices {
                self.leave[window * problem.choices + choice] = worth(problem.leave.of(choice), lambda);
                self.enter[window * problem.choices + choice] = worth(problem.enter.of(choice), lambda);
            }
        }
    }
}
