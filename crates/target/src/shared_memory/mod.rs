//! A kind for tests: objects that another process serves over shared memory. No descriptor, no map, completions in another order than the requests. That it
//! passes the suite, that verbs work on it, and that a library which knows it runs programs on it, is the proof that the interface does not take a target for
//! a directory.

mod link;
mod segment;
mod served;
mod target;

pub use link::Link;
pub use segment::{SEGMENT_BYTES, SEGMENT_FILE};
pub use served::Served;

#[cfg(feature = "suite")]
mod remote;
#[cfg(feature = "suite")]
mod server;

#[cfg(feature = "suite")]
pub use remote::Remote;
#[cfg(feature = "suite")]
pub use server::{serve, serve_until};
