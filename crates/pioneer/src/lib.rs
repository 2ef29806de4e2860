//! PIONEER (thesis, chapter 2): a generic workload path from the requests of a run, its characteristics, and synthetic paths from them.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod characteristics;
pub mod synthesis;
