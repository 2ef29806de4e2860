//! Writes of files with copies that follow them: home and copies get the same bytes. They come from memory of our own, for the program's may change between
//! the two writes, and nothing would ever make them the same again.

use super::write_home;
use crate::base::memory;
use crate::base::sys::{self, Errno, Sys};
use crate::base::vector::Buffers;
use crate::file::File;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Bytes that are written to home and copies before the next ones are: so many stay in a core's cache from one to the other.
const CHUNK_BYTES: usize = 128 << 10;
/// Memory that is kept for the next writes; null where it is in use, or was never needed.
static IDLE: [AtomicPtr<u8>; 4] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 4];

/// [`CHUNK_BYTES`] of memory, given back when dropped.
struct Room(*mut u8);

impl Room {
    fn take() -> Sys<Self> {
        let idle = IDLE.iter().map(|place| place.swap(core::ptr::null_mut(), Ordering::Acquire)).find(|base| !base.is_null());
        match idle {
            Some(base) => Ok(Self(base)),
            None => sys::mmap(-1, CHUNK_BYTES, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS).map(Self),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let put = |place: &AtomicPtr<u8>| place.compare_exchange(core::ptr::null_mut(), self.0, Ordering::Release, Ordering::Relaxed).is_ok();
        if !IDLE.iter().any(put) {
            // SAFETY: a mapping of that length, which only this value refers to.
            unsafe { sys::munmap(self.0, CHUNK_BYTES) };
        }
    }
}

/// Writes `len` bytes at `at`, chunk by chunk; returns the contiguous prefix that was written, or the error when that is nothing.
#[cold]
#[inline(never)]
pub fn write(file: &'static File, buffers: &Buffers<'_>, at: u64, len: u64) -> Sys<u64> {
    let alone = || write_home(file, buffers, at, (len, false), None);
    let Ok(room) = Room::take() else { return alone() };
    let mut done = 0;
    while done < len {
        let step = memory::gather(buffers.stretches(done, (len - done).min(CHUNK_BYTES as u64)), room.0).and_then(|got| {
            let chunk = [libc::iovec { iov_base: room.0.cast(), iov_len: got }];
            write_home(file, &Buffers::of(&chunk)?, at + done, (got as u64, false), Some(room.0)).map(|wrote| (wrote, got as u64))
        });
        match step {
            Ok((wrote, got)) => {
                done += wrote;
                if wrote < got || got == 0 {
                    break;
                }
            }
            Err(_) if done > 0 => break,
            // Memory that only the kernel's own copy can read: the copies are stale then.
            Err(Errno(libc::EFAULT)) => return alone(),
            Err(errno) => return Err(errno),
        }
    }
    if done == 0 { Err(Errno(libc::EFAULT)) } else { Ok(done) }
}
