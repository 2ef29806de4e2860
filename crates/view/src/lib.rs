//! What pictures of a trace are drawn from: requests summed into bins of time and of offsets, as finely as asked for, and distributions of sizes and times.
//!
//! Columns come in, grids go out. Every grid of a picture is exact: whatever the bins, their sum is that of the requests. A request costs the same however
//! many bins it covers, since what lies between its first and last bin is added as a step to differences that are summed once at the end.
//! [`perfetto`] writes the same requests as slices on tracks.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod bins;
mod columns;
mod distribution;
mod grid;
pub mod perfetto;
mod phases;

pub use bins::Bins;
pub use columns::{Columns, by_file};
pub use distribution::{Distribution, LATENCY_PARTS, bucket_low, distribution};
pub use grid::{Grid, heat, raster, timeline};
pub use phases::{Kind, Phase, phases};
