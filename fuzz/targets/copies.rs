//! Records of copies: of whatever parses each byte that a look-up finds is the pattern's, inside the plain file and inside the replica's domain.
#![no_main]

use core::sync::atomic::AtomicU32;
use libfuzzer_sys::fuzz_target;
use stripewise_layout::{Logical, ReplicaOffset};
use stripewise_store::copies::{Record, STATE_BYTES};

/// Where the record has its length and its checksum, and the layout within it: else nothing behind those is reached.
fn restamped(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    if bytes.len() < 128 {
        return bytes;
    }
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let path = u32::from_le_bytes(bytes[28..32].try_into().expect("four bytes")) as usize;
    let (from, len) = ((128 + path.min(1 << 20)).next_multiple_of(8), word(&bytes, 80).min(1 << 20) as usize);
    if let Some(layout) = bytes.get_mut(from..from + len) {
        let stamped = stripewise_fuzz::restamped(layout);
        layout.copy_from_slice(&stamped);
    }
    let total = bytes.len() as u64;
    bytes[16..24].copy_from_slice(&total.to_le_bytes());
    let crc = stripewise_checksum::crc32c(&bytes[STATE_BYTES..]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fuzz_target!(|data: &[u8]| {
    let bytes = restamped(data);
    let Some(record) = Record::parse(&bytes) else { return };
    let history = AtomicU32::new(u32::from(data[0]));
    for replica in record.replicas().take(16) {
        for offset in [0, replica.block - 1, replica.total() / 2, replica.total() - 1] {
            let at = replica.inverse(ReplicaOffset(offset)).expect("inside the replica").0;
            assert!(at < record.original.size);
            // Another may answer, with finer blocks; the byte is the same one.
            let found = record.lookup(at, 1, &history).expect("a copy of it");
            let by = record.replicas().nth(found.replica as usize).expect("a replica");
            assert_eq!(by.inverse(ReplicaOffset(found.at - by.domain_base)), Some(Logical(at)));
        }
    }
    assert_eq!(record.lookup(record.original.size, 1, &history), None);
});
