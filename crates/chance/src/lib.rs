//! Chance that a seed decides, the same on every machine: streams of numbers, draws by weight, orders. The simulator and the generators of block
//! requests share it, so that what is called zipf is one thing.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod counter;
mod shares;
mod splitmix;

pub use counter::{below, mix, share, shuffled};
pub use shares::Shares;
pub use splitmix::SplitMix64;
