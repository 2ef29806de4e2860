//! The offset of an open file, which the kernel keeps for all descriptors and processes that share it.

use super::{OpenFile, Use};
use crate::base::sys::{self, Errno, Sys};
use crate::base::vector::REQUEST_MAX;
use core::sync::atomic::Ordering;

impl OpenFile {
    /// The descriptor that holds the offset.
    pub fn offset_fd(&self, fd: i32) -> i32 {
        if self.path_only.load(Ordering::Relaxed) { self.companion().unwrap_or(fd) } else { fd }
    }
}

impl Use {
    /// Moves the offset by `fd`, unless that is another file's descriptor by now.
    fn seek(&self, fd: i32, by: i64, whence: i32) -> Sys<u64> {
        if self.is_behind(fd) { sys::lseek(self.offset_fd(fd), by, whence) } else { Err(Errno(libc::EBADF)) }
    }

    /// Runs `work` at the current offset and moves it on by what `work` says; excludes other users of the offset.
    pub fn at_offset(&self, fd: i32, work: impl FnOnce(u64) -> Sys<(u64, u64)>) -> Sys<u64> {
        let step = || {
            let at = self.seek(fd, 0, libc::SEEK_CUR)?;
            let (n, to) = work(at)?;
            if to != at {
                // Where another thread has closed it meanwhile, the bytes have moved all the same.
                let _ = self.seek(fd, to as i64, libc::SEEK_SET);
            }
            Ok(n)
        };
        // A signal handler inside the call that it interrupts would move the same bytes: the offset has not moved on yet.
        let Some(_held) = self.offset_lock.lock() else { return Err(Errno(libc::EDEADLK)) };
        if self.shared.load(Ordering::Relaxed) && !self.is_append() { self.file()?.exclusively(step) } else { step() }
    }

    /// Reads at the offset of a plain file, by `copy` where it has the bytes, else by `plain`, which moves the offset itself; `None`, with nothing done, where
    /// another process may use the offset as well.
    pub fn read_plain_at_offset(&self, fd: i32, copy: impl FnOnce(u64) -> Option<u64>, plain: impl FnOnce() -> Sys<u64>) -> Option<Sys<u64>> {
        if self.shared.load(Ordering::Relaxed) {
            return None;
        }
        // A signal handler inside the call that it interrupts: as above.
        let _held = self.offset_lock.lock()?;
        let at = self.seek(fd, 0, libc::SEEK_CUR).ok()?;
        let Some(n) = copy(at) else { return Some(plain()) };
        let _ = self.seek(fd, (at + n) as i64, libc::SEEK_SET);
        Some(Ok(n))
    }

    /// Reads up to `len` bytes at the current offset and moves it on by what `work` has read. Processes that share the offset take their parts of the file one
    /// after another.
    pub fn read_at_offset(&self, fd: i32, len: u64, work: impl FnOnce(u64) -> Sys<u64>) -> Sys<u64> {
        if !self.shared.load(Ordering::Relaxed) {
            return self.at_offset(fd, |at| work(at).map(|n| (n, at + n)));
        }
        let Some(_held) = self.offset_lock.lock() else { return Err(Errno(libc::EDEADLK)) };
        self.file()?.one_after_another(|is_alone| {
            if is_alone {
                let at = self.seek(fd, 0, libc::SEEK_CUR)?;
                let n = work(at)?;
                if n != 0 {
                    let _ = self.seek(fd, (at + n) as i64, libc::SEEK_SET);
                }
                return Ok(n);
            }
            // Taken first, and what was not there given back: so that also those who could not wait for their turn read no byte twice.
            let len = len.min(REQUEST_MAX) as i64;
            let end = self.seek(fd, len, libc::SEEK_CUR)?;
            let result = work(end - len as u64);
            let unread = len - result.unwrap_or(0) as i64;
            if unread != 0 {
                // Refused where another has moved the offset meanwhile: then it is as he wants it.
                let _ = self.seek(fd, -unread, libc::SEEK_CUR);
            }
            result
        })
    }
}
