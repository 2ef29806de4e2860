//! The program's buffers as one sequence of bytes, and cutting from it the vector of one target's extent.

use crate::sys::{Errno, Sys};
use stripewise_layout::Extent;

/// Vector elements per system call: fits the stack, and at 4 KiB stripes still carries 512 KiB.
pub const BATCH: usize = 128;
/// Most bytes of one read or write, as the kernel has it.
pub const REQUEST_MAX: u64 = 0x7fff_f000;
const IOV_MAX: usize = 1024;

const EMPTY: libc::iovec = libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };

/// The buffers of one request.
#[derive(Clone, Copy)]
pub struct Buffers<'a> {
    iov: &'a [libc::iovec],
    total: u64,
}

impl<'a> Buffers<'a> {
    /// Checks a vector that the program gave.
    ///
    /// # Safety
    /// `iov` points to `count` elements, or is no good address (EFAULT); count is checked here.
    pub unsafe fn new(iov: *const libc::iovec, count: i32) -> Sys<Self> {
        let count = usize::try_from(count).map_err(|_| Errno(libc::EINVAL))?;
        if count > IOV_MAX {
            return Err(Errno(libc::EINVAL));
        }
        if count == 0 {
            return Ok(Self { iov: &[], total: 0 });
        }
        crate::memory::check_vector(iov, count)?;
        // SAFETY: the kernel has just read it, or cannot be asked: the caller's promise.
        Self::of(unsafe { core::slice::from_raw_parts(iov, count) })
    }

    /// Checks a vector.
    pub fn of(iov: &'a [libc::iovec]) -> Sys<Self> {
        let mut total = 0u64;
        for element in iov {
            if element.iov_len > isize::MAX as usize {
                return Err(Errno(libc::EINVAL));
            }
            // No program's memory is that far up: the kernel looks before it reads or writes anything.
            if (element.iov_base as usize).saturating_add(element.iov_len) >= 1 << 56 {
                return Err(Errno(libc::EFAULT));
            }
            total = total.checked_add(element.iov_len as u64).filter(|t| *t <= isize::MAX as u64).ok_or(Errno(libc::EINVAL))?;
        }
        Ok(Self { iov, total: total.min(REQUEST_MAX) })
    }

    /// Bytes in all.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// The one buffer, if it is one.
    pub fn single(&self) -> Option<*mut u8> {
        match self.iov {
            [one] => Some(one.iov_base.cast()),
            _ => None,
        }
    }

    /// Calls `each` with the memory of bytes `[from, from + len)`, part by part.
    pub fn parts(&self, mut from: u64, mut len: u64, mut each: impl FnMut(libc::iovec) -> Sys<()>) -> Sys<()> {
        for element in self.iov {
            if len == 0 {
                break;
            }
            let size = element.iov_len as u64;
            if from >= size {
                from -= size;
                continue;
            }
            let take = (size - from).min(len);
            each(libc::iovec { iov_base: element.iov_base.cast::<u8>().wrapping_add(from as usize).cast(), iov_len: take as usize })?;
            len -= take;
            from = 0;
        }
        Ok(())
    }
}

/// A vector being filled, sent when full.
pub struct Batch<F: FnMut(&[libc::iovec], u64, u64) -> Sys<bool>> {
    iov: [libc::iovec; BATCH],
    used: usize,
    bytes: u64,
    done: u64,
    stopped: bool,
    send: F,
}

impl<F: FnMut(&[libc::iovec], u64, u64) -> Sys<bool>> Batch<F> {
    /// `send` gets (vector, bytes of the extent before it, bytes in it) and says whether to go on.
    pub fn new(send: F) -> Self {
        Self { iov: [EMPTY; BATCH], used: 0, bytes: 0, done: 0, stopped: false, send }
    }

    fn add(&mut self, part: libc::iovec) -> Sys<()> {
        if self.used == BATCH {
            self.flush()?;
        }
        if let Some(slot) = self.iov.get_mut(self.used) {
            *slot = part;
            self.used += 1;
            self.bytes += part.iov_len as u64;
        }
        Ok(())
    }

    fn flush(&mut self) -> Sys<()> {
        if self.used > 0 && !self.stopped {
            let vector = self.iov.get(..self.used).unwrap_or(&[]);
            self.stopped = !(self.send)(vector, self.done, self.bytes)?;
        }
        self.done += self.bytes;
        self.used = 0;
        self.bytes = 0;
        Ok(())
    }

    /// Sends all slices that `extent` has of the request which begins at logical offset `at`.
    pub fn run(mut self, buffers: &Buffers<'_>, extent: &Extent<'_>, at: u64) -> Sys<()> {
        for (logical, len) in extent.pieces() {
            buffers.parts(logical - at, len, |part| self.add(part))?;
            if self.stopped {
                return Ok(());
            }
        }
        self.flush()
    }
}
