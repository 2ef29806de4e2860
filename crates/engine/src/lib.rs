//! What IO-Engine decides of MPI-IO: striping of new files, mode, aggregators, buffers by rule, the mode and sieving by price. Figures in, figures out: no
//! I/O, no allocation, no dependencies, so that a command and a process in the middle of its run decide alike. [`shared`] is how processes decide together.
//!
//! Source: chapter 3 of the thesis (W. He, see docs/models.md), by its sections; where its text leaves a choice, what is chosen here says so.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod aggregators;
mod contest;
mod decision;
mod regions;
pub mod shared;
mod sieving;
mod stripes;

pub use aggregators::{Aggregators, Driver};
pub use contest::{Contest, Step, Window};
pub use decision::{BUFFER_BYTES_MAX, Call, Decision, Mode, Operation, Why, co_ratio, decide};
pub use regions::{Contention, Intent, Pattern, Regions, STRIPE_BYTES_MAX};
pub use sieving::{Pieces, Repetition, Servers, Sieving, gain_of_joining};
pub use stripes::{Count, advised_count};
