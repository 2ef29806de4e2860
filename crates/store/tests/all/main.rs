//! The crate's tests, in one program: it is linked once, and its modules run side by side.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod adopt;
mod behind;
mod common;
mod contract;
mod copies;
mod copies_managed;
mod copies_on_disk;
mod crash;
mod elsewhere;
mod history;
mod interleaved;
mod marked;
mod model;
mod owners;
mod reading;
mod sequences;
mod sizes;
