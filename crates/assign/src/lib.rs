//! Which region lies on which choice (a server, or a team of servers with stripes) in every window, so that the sum over windows of the busiest
//! resource's seconds is least: the solver at the heart of the policy `best`. It knows regions, choices and resources, and neither files nor devices.
//!
//! A Lagrangean dual (`dual`) prices every resource and every server's room; its value is a proven lower bound, and its prices start the search for
//! an assignment (`start`, `descent`, `swap`). Where an instance is small enough, branch and bound (`exact`) ends the question.
//!
//! Solving is anytime and, where the time limit does not bind, deterministic: sums are taken in a fixed order whatever the number of threads.
// Solving is arithmetic on positions in tables, all of which `Problem::new` has checked.
#![allow(clippy::indexing_slicing)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod coarse;
mod descent;
mod dual;
mod exact;
mod fit;
mod parts;
mod path;
mod power;
mod prices;
mod problem;
mod random;
mod shortlist;
mod soft;
mod solve;
mod start;
mod state;
mod swap;

pub use problem::{FEATURES, List, Problem, Tables};
pub use solve::{Limits, Solution, solve};
