//! What the targets of the fuzzer share.

use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Where layout files and store.bin have their length and their checksum.
const LENGTH_AT: usize = 16;
const CRC_AT: usize = 12;

/// The bytes with the length and the checksum that they should have: else nothing behind those is reached.
pub fn restamped(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    let length = (bytes.len() as u64).to_le_bytes();
    if let Some(place) = bytes.get_mut(LENGTH_AT..LENGTH_AT + 8) {
        place.copy_from_slice(&length);
        let crc = stripewise_checksum::crc32c_without(&bytes, CRC_AT).to_le_bytes();
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc);
    }
    bytes
}

/// A file in memory with these bytes, and its path.
pub fn file_of(parts: &[&[u8]]) -> (File, PathBuf) {
    let mut file = File::from(rustix::fs::memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("a file in memory"));
    for part in parts {
        file.write_all(part).expect("room in memory");
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
    (file, path)
}
