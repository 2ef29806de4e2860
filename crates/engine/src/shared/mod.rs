//! How the processes of one machine decide together, in memory that all of them have mapped: without a message, and without waiting for each other.
//!
//! The collective calls of a site (an open file, one operation) come in the same order in all processes, so each has a number. All of them are made in the mode
//! of the last decision, and a decision counts from a call on that no process has begun ([`lane`]). Only a process that makes its calls through here takes
//! part, and where not all of those of the file do, nothing is ever decided ([`board`]).

pub mod board;
pub mod lane;
pub mod site;
pub mod views;
