//! Where requests come from: a description of a workload, or a collected trace.

mod describe;
mod generate;
mod pattern;
mod sample;
#[cfg(test)]
mod tests;
mod zipf;

pub use describe::Description;
pub use generate::Generator;
pub use sample::{ROW_BYTES, request_rows};
