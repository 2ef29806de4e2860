//! Workload paths: what a player plays, as trees of loops over requests in a mapped file (docs/formats.md, Workload path).

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod draw;
mod error;
mod expand;
mod format;
mod matching;
pub mod node;
pub mod op;
mod path;
mod ranks;
mod reader;
mod structure;
mod tables;
mod writer;

pub use draw::{draw, seed_of};
pub use error::PathError;
pub use expand::{Request, Requests};
pub use format::HEADER_BYTES;
pub use matching::check_playable;
pub use node::{Node, Who};
pub use op::Op;
pub use path::Path;
pub use ranks::{colour, takes_part};
pub use structure::DEPTH_MAX;
pub use tables::{Class, Comm, Distribution, File, Group, Numbers, PROCESSES_MAX, RANK, SIZE_MAX, Tables, View};
pub use writer::PathWriter;
