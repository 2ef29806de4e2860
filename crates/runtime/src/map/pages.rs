//! Ranges of memory and pages, and what the flags of a map say.

use crate::base::sys;
use core::sync::atomic::{AtomicU64, Ordering};
use stripewise_layout::GRANULE;

/// A range of memory that is to show a file from `offset` on.
#[derive(Clone, Copy)]
pub struct Range {
    pub start: usize,
    pub bytes: u64,
    pub offset: u64,
}

impl Range {
    pub fn end(&self) -> usize {
        self.start + self.bytes as usize
    }

    /// The bytes of it that lie in a file of `size` bytes.
    pub fn inside(&self, size: u64) -> u64 {
        size.saturating_sub(self.offset).min(self.bytes)
    }
}

/// Bytes of a page here.
pub fn page() -> u64 {
    static PAGE: AtomicU64 = AtomicU64::new(0);
    match PAGE.load(Ordering::Relaxed) {
        0 => {
            let mut text = [0u8; 1024];
            let words = sys::read_file(c"/proc/self/auxv", &mut text).unwrap_or(&[]);
            let entry = words.chunks_exact(16).find(|entry| entry.first() == Some(&(libc::AT_PAGESZ as u8)) && entry.get(1..8) == Some(&[0; 7]));
            let bytes = entry.and_then(|e| e.get(8..16)?.try_into().ok()).map_or(GRANULE, u64::from_ne_bytes);
            PAGE.store(bytes, Ordering::Relaxed);
            bytes
        }
        bytes => bytes,
    }
}

/// Whether what is written to a map is written to the file.
pub fn is_shared(flags: i32) -> bool {
    matches!(flags & libc::MAP_TYPE, libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE)
}
