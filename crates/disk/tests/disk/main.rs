//! Disks from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod cache;
mod device;
mod mechanics;
mod plausible;
mod runs;
mod spec;
