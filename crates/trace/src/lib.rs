//! Trace records: written by the preloaded library, read back into Parquet.
//!
//! The writer half (`record`, `log`, `process`, `clock`) runs inside other people's programs: it allocates nothing, calls no
//! libc function and takes no lock per record, so that it may run in any thread, in a signal handler and after `fork`. The
//! reader half (feature `reader`) is ordinary Rust that turns the logs of a run into one table. Formats: docs/formats.md.

pub mod clock;
pub mod datatype;
pub mod format;
pub mod log;
mod names;
pub mod process;
#[cfg(feature = "reader")]
pub mod reader;
pub mod record;
mod signals;

pub use log::{ThreadLog, after_fork_child, record, thread_exit};
pub use process::Process;
#[cfg(feature = "reader")]
pub use reader::{Summary, collect};
pub use record::{Op, Record, flags};
