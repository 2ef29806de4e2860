//! Access patterns of a stream of records: loops of loops, what is irregular between them, and back to the very records.
//!
//! A stream is what one thread does to one open file. [`recognise`] matches templates with a cursor, as PDLA section 3.2.3 does, and folds what repeats
//! into loops, loops of equal shape into loops of loops, until nothing folds: k-dimensional strides come out as k nested loops. [`Patterns::expand`] gives
//! back every record exactly, whatever the stream was. Times are no part of it.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod expand;
mod fold;
mod irregular;
mod levels;
mod limits;
mod long;
mod record;
mod segment;
mod shape;
mod streams;
mod tree;

pub use irregular::Irregular;
pub use limits::{LEVELS_MAX, LOOK_AHEAD, PERIOD_LONG_MAX, PERIOD_MAX};
pub use record::{Columns, Record};
pub use segment::{Patterns, Segment, What, recognise};
pub use streams::{Stream, separate};
pub use tree::{Inner, RECORDS_MAX, Tree};
