//! The simulator against formulas, against itself, and against what cannot be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;
mod devices;
mod engines;
mod moving;
mod network;
mod queues;
mod scenarios;
