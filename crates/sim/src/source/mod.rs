//! Where requests come from: a description of a workload, or a collected trace.

mod any;
mod describe;
mod generate;
mod listed;
mod pattern;
mod sample;
#[cfg(test)]
mod tests;
mod trace;
mod turns;
mod zipf;

pub use any::Workload;
pub use describe::Description;
pub use generate::Generator;
pub use listed::{Listed, ListedRun};
pub use sample::{ROW_BYTES, request_rows};
pub use trace::{Loop, TraceSource};
