//! A generated workload as a table of requests, for planners: all of them, or so many of each process, drawn evenly over its run.

use stripewise_chance::{below, mix};

use super::generate::{Generator, Whole};
use crate::{Source, Start};

/// Bytes of a row: start_ns i64, end_ns i64, rank i32, write u8, three bytes of zero, offset i64, size i64; little endian.
pub const ROW_BYTES: usize = 40;

/// Times stay within what the tables hold.
const TIME_NS_MAX: u64 = 1 << 62;

/// The requests of `processes` processes from `first` on, process by process in their order, pieces one by one, as rows of [`ROW_BYTES`].
///
/// Times are nominal: those of windows or arrivals where the description sets them, else a millisecond and the think time apart. With `per_process`
/// below the number of requests, one is drawn from each of so many equal parts of a process's run.
#[must_use]
pub fn request_rows(generator: &Generator, first: u32, processes: u32, per_process: u64) -> Vec<u8> {
    let total = generator.requests_per_process();
    let taken = per_process.min(total);
    let end = first.saturating_add(processes).min(generator.processes());
    let rows = u64::from(end.saturating_sub(first)) * taken * generator.pieces();
    let mut table = Vec::with_capacity(rows as usize * ROW_BYTES);
    for process in first..end {
        for part in 0..taken {
            if let Some(whole) = generator.whole(process, drawn(process, part, taken, total)) {
                append(&mut table, generator, process, &whole);
            }
        }
    }
    table
}

/// The request that stands for part `part` of `parts` of a process's `total` requests.
fn drawn(process: u32, part: u64, parts: u64, total: u64) -> u64 {
    let edge = |part: u64| (u128::from(part) * u128::from(total) / u128::from(parts)) as u64;
    let (low, high) = (edge(part), edge(part + 1));
    low + below(mix(mix(u64::from(process)) ^ part), high - low)
}

fn append(table: &mut Vec<u8>, generator: &Generator, process: u32, whole: &Whole) {
    let (start_ns, takes_ns) = generator.nominal_ns(process, whole);
    let start_ns = start_ns.min(TIME_NS_MAX);
    let end_ns = start_ns.saturating_add(takes_ns).min(TIME_NS_MAX);
    for piece in 0..generator.pieces() {
        let request = generator.piece(process, whole, piece, Start::After(0));
        table.extend_from_slice(&start_ns.to_le_bytes());
        table.extend_from_slice(&end_ns.to_le_bytes());
        table.extend_from_slice(&process.to_le_bytes());
        table.extend_from_slice(&[u8::from(request.write), 0, 0, 0]);
        table.extend_from_slice(&request.offset.to_le_bytes());
        table.extend_from_slice(&request.bytes.to_le_bytes());
    }
}
