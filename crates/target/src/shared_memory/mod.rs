//! A kind for tests: objects that another process serves over shared memory. No descriptor, no map, completions in another order than the requests. That it
//! passes the suite, and that verbs work on it, is the proof that the interface does not take a target for a directory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod client;
mod segment;
mod server;

pub use client::{Remote, RemoteObject};
pub use server::serve;
