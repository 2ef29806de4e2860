//! The crate's tests, in one program: it is linked once, and its modules run side by side.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;
mod file_form;
mod mapping;
mod moving;
mod replica_index;
mod replica_index_bins;
mod replicas;
mod spread;
