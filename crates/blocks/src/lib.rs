//! Requests of a block device in the order of their arrival: read from traces, generated, folded onto a disk, and described by their statistics.
//!
//! Whatever yields them is a [`Source`], one request at a time: memory does not grow with their number.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod adapt;
mod error;
pub mod generate;
mod request;
pub mod statistics;
pub mod trace;
mod workload;

pub use error::Error;
pub use request::{BLOCK_BYTES, BlockRequest, Source};
pub use workload::{BlockWorkload, From, WORKLOAD_VERSION};
