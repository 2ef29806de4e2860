//! The program's buffers as one sequence of bytes.

use crate::base::sys::{Errno, Sys};
use stripewise_target::op::Memory;

/// Most bytes of one read or write, as the kernel has it.
pub const REQUEST_MAX: u64 = 0x7fff_f000;
const IOV_MAX: usize = 1024;

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
        crate::base::memory::check_vector(iov, count)?;
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

    /// The memory of bytes `[from, from + len)`, stretch by stretch.
    #[inline]
    pub fn stretches(&self, from: u64, len: u64) -> impl Iterator<Item = Memory> + 'a {
        let (mut skip, mut left) = (from, len);
        let all = self.iov.iter().map_while(move |element| {
            if left == 0 {
                return None;
            }
            let gone = skip.min(element.iov_len as u64);
            skip -= gone;
            let len = (element.iov_len as u64 - gone).min(left);
            left -= len;
            Some(Memory { base: element.iov_base.cast::<u8>().wrapping_add(gone as usize), len: len as usize })
        });
        all.filter(|stretch| stretch.len > 0)
    }
}
