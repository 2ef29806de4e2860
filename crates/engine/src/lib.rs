//! What IO-Engine decides of MPI-IO by rule: striping of new files, mode, aggregators, buffers. Figures in, figures out: no I/O, no allocation, no
//! dependencies, so that a command and a process in the middle of its run decide alike.
//!
//! Source: chapter 3 of the thesis (W. He, see docs/models.md), by its sections; where its text leaves a choice, what is chosen here says so.

mod aggregators;
mod decision;
mod regions;
mod stripes;

pub use aggregators::{Aggregators, Driver};
pub use decision::{BUFFER_BYTES_MAX, Call, Decision, Mode, Operation, Why, co_ratio, decide};
pub use regions::{Contention, Intent, Pattern, Regions, STRIPE_BYTES_MAX};
pub use stripes::{Count, advised_count};
