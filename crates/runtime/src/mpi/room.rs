//! Memory for words, of which only what is used is there.

use crate::base::sys;

const PAGE_WORDS: usize = 4096 / 8;

/// Zeros at first.
pub struct Room {
    base: *mut u64,
    len: usize,
}

impl Room {
    /// For so many words.
    pub fn new(len: usize) -> Option<Room> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let len = len.next_multiple_of(PAGE_WORDS);
        let base = sys::mmap(-1, len.checked_mul(8)?, libc::PROT_READ | libc::PROT_WRITE, flags).ok()?.cast();
        Some(Room { base, len })
    }

    /// Gives back all but the first words.
    pub fn shrink(&mut self, used: usize) {
        let kept = used.next_multiple_of(PAGE_WORDS).max(PAGE_WORDS);
        if kept < self.len {
            // SAFETY: the end of this mapping, which nobody borrows.
            unsafe { sys::munmap(self.base.add(kept).cast(), (self.len - kept) * 8) };
            self.len = kept;
        }
    }

    pub fn words(&self) -> &[u64] {
        // SAFETY: mapped, and never another's.
        unsafe { core::slice::from_raw_parts(self.base, self.len) }
    }

    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.base, self.len) }
    }

    pub fn as_ptr(&self) -> *mut u64 {
        self.base
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: its own mapping.
        unsafe { sys::munmap(self.base.cast(), self.len * 8) };
    }
}
