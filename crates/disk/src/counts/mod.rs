//! What is counted and timed, and how it is told.

pub mod accounts;
pub mod latency;
pub mod report;
pub mod stalls;
pub mod tally;
