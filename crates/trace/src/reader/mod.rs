//! Reading traces back: log files to records, a directory of logs to one Parquet table.
//!
//! Logs come from programs that may have been killed at any instruction, on machines that may have lost power, and lie where users
//! keep other files too. So: an unfinished last record is normal, anything else that is wrong names its file and offset, and nothing
//! in a file makes the reader panic or allocate by a number it read.

mod collect;
mod columns;
mod error;
mod log_file;
pub mod mpi;
mod names_file;
mod run;
mod summary;
mod timeline;

pub use collect::collect;
pub use error::Error;
pub use log_file::{LogFile, LogHeader, Records, Slot};
pub use names_file::{Name, NamesFile};
pub use run::{ProcessLogs, Run};
pub use summary::{FileSummary, ProcessSummary, Skipped, Summary};
pub use timeline::Timeline;

/// The 4 bytes at `at` as a little-endian number, 0 beyond the end.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}

/// The 8 bytes at `at` as a little-endian number, 0 beyond the end.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

/// Bytes that are not UTF-8 as `\xNN`.
fn printable(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}
