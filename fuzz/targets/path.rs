//! Workload paths behind a header whose length and checksum fit: what is taken for one is gone over without a panic, and its requests are as many as counted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stripewise_workpath::{HEADER_BYTES, Path, check_playable};

/// Where a path's header has its checksum and the bytes of the file.
const CRC_AT: usize = 16;
const LENGTH_AT: usize = 24;
/// Requests that are gone over: a loop may have 2^62 rounds.
const GONE_OVER: usize = 4096;

fn restamped(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    let length = (bytes.len() as u64).to_le_bytes();
    if let Some(head) = bytes.get_mut(..HEADER_BYTES) {
        head[LENGTH_AT..LENGTH_AT + 8].copy_from_slice(&length);
        let crc = stripewise_checksum::crc32c_without(head, CRC_AT).to_le_bytes();
        head[CRC_AT..CRC_AT + 4].copy_from_slice(&crc);
    }
    bytes
}

/// Whether all ranks wait for each other before requests that they do, as far as they are gone over.
fn waits(path: &Path<'_>, rank: u32, processes: u32) -> Vec<u32> {
    path.requests(rank, processes).take(GONE_OVER).filter(|made| made.together).map(|made| made.node).collect()
}

fuzz_target!(|data: &[u8]| {
    for bytes in [data.to_vec(), restamped(data)] {
        let Ok(path) = Path::parse(&bytes) else { continue };
        for processes in [1, 3, path.tables.processes.max(4)] {
            if check_playable(&path, processes).is_ok() {
                let (one, other) = (waits(&path, 0, processes), waits(&path, processes - 1, processes));
                // One of both may have more requests between, and so be cut earlier.
                assert!(one.iter().zip(&other).all(|(one, other)| one == other));
                let are_whole = [0, processes - 1].iter().all(|rank| path.count(*rank, processes) <= GONE_OVER as u64);
                assert!(!are_whole || one.len() == other.len());
            }
            for rank in [0, processes - 1] {
                let made = path.requests(rank, processes).take(GONE_OVER).count() as u64;
                assert_eq!(made, path.count(rank, processes).min(GONE_OVER as u64));
            }
        }
    }
});
