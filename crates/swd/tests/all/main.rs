//! The crate's tests, in one program: it is linked once, and its modules run side by side.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod adaptive;
mod adversary;
mod common;
mod contract;
mod exhaustive;
mod history;
mod in_place;
mod indirection;
mod oracle;
mod space;
mod tstl;
