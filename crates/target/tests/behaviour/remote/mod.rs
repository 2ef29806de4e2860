//! A kind for the suite: objects that another process serves over shared memory. No descriptor, no map, completions in another order than the requests. That
//! it passes is the proof that the interface does not take a target for a directory.

mod client;
mod segment;
mod server;

pub use client::{Remote, Remotes};
pub use server::serve;
