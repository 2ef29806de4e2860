//! copy_file_range, sendfile, splice and tee with a managed file on either side: the checks, in the kernel's order, and what becomes of offsets.

use crate::base::sys::{Errno, Sys, to_c};
use crate::base::vector::REQUEST_MAX;
use crate::fds;
use crate::io::copy;
use crate::io::endpoint::End;
use crate::trace;
use libc::off_t;
use stripewise_trace::Op;

const SPLICE_KNOWN: u32 = libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK | libc::SPLICE_F_MORE | libc::SPLICE_F_GIFT;

fn fail<T>(errno: i32) -> Sys<T> {
    Err(Errno(errno))
}

/// Where one side of a copy is: at an offset that the program keeps, or at the descriptor's own position.
struct Place<'a> {
    end: &'a End,
    given: *mut off_t,
    at: off_t,
}

impl<'a> Place<'a> {
    /// # Safety
    /// `given` is null or points to an offset of the program's, or is no good address (EFAULT).
    unsafe fn of(end: &'a End, given: *mut off_t) -> Sys<Self> {
        // A stream has no position and needs none.
        // SAFETY: the caller's promise.
        let at = if given.is_null() { end.position().unwrap_or(0) } else { unsafe { crate::base::memory::copy_in(given)? } };
        Ok(Self { end, given, at })
    }

    fn verify(&self, len: usize) -> Sys<u64> {
        let end = isize::try_from(len).ok().and_then(|len| self.at.checked_add(len as i64));
        if end.is_none() { fail(libc::EINVAL) } else { u64::try_from(self.at).map_err(|_| Errno(libc::EINVAL)) }
    }

    /// Moves on, and records the call when the run is traced.
    fn advance(&self, op: Op, asked: usize, result: Sys<u64>, start: u64) {
        let moved = result.map(|n| n as i64);
        if let Ok(n @ 1..) = moved {
            let now = self.at.wrapping_add(n);
            if self.given.is_null() {
                self.end.set_position(now);
            } else {
                // SAFETY: as in `of`. The bytes have moved, whether this can be told or not.
                let _ = unsafe { crate::base::memory::bytes_out(self.given.cast(), &now.to_ne_bytes()) };
            }
        }
        let (fd, at) = (self.end.fd, self.at as u64);
        if self.end.is_managed() {
            trace::data(fd, op, at, asked as u64, &moved, start);
        } else if start != 0
            && fds::entry(fd) & fds::TRACED != 0
            && let Ok(done) = moved
        {
            trace::sw_traced(fd, u32::from(op as u16), at, asked as u64, done, start);
        }
    }
}

/// The length that is copied between two files, or why there can be no copy.
fn copyable(from: &Place<'_>, to: &Place<'_>, len: usize) -> Sys<u64> {
    let (i, o) = (from.end, to.end);
    if i.is_directory() || o.is_directory() {
        return fail(libc::EISDIR);
    }
    if !i.is_regular() || !o.is_regular() {
        return fail(libc::EINVAL);
    }
    if !i.reads() || !o.writes() || o.appends() {
        return fail(libc::EBADF);
    }
    let len64 = len as u64;
    if (from.at as u64).checked_add(len64).is_none() || (to.at as u64).checked_add(len64).is_none() {
        return fail(libc::EOVERFLOW);
    }
    let size = i.size()?;
    let count = if from.at >= size as i64 { 0 } else { len64.min(size.wrapping_sub(from.at as u64)) };
    if to.at >= o.offset_limit() as i64 || to.at.checked_add(count as i64).is_none() {
        return fail(libc::EFBIG);
    }
    let (from_end, to_end) = (from.at.wrapping_add(count as i64), to.at.wrapping_add(count as i64));
    if i.is_same_file(o) && to_end > from.at && to.at < from_end {
        return fail(libc::EINVAL);
    }
    Ok(count)
}

/// copy_file_range.
///
/// # Safety
/// The offsets are null or the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_copy_file_range(in_fd: i32, in_at: *mut off_t, out_fd: i32, out_at: *mut off_t, len: usize, flags: u32) -> i64 {
    let start = trace::begin();
    to_c((|| {
        let (input, output) = (End::of(in_fd)?, End::of(out_fd)?);
        // SAFETY: the caller's promise.
        let (from, to) = unsafe { (Place::of(&input, in_at)?, Place::of(&output, out_at)?) };
        if flags != 0 {
            return fail(libc::EINVAL);
        }
        let count = copyable(&from, &to, len)?;
        let (from_at, to_at) = (from.verify(count as usize)?, to.verify(count as usize)?);
        let result = copy::between(&input, from_at, &output, to_at, count.min(REQUEST_MAX));
        from.advance(Op::Read, len, result, start);
        to.advance(Op::Write, len, result, start);
        result.map(|n| n as i64)
    })())
}

/// sendfile.
///
/// # Safety
/// The offset is null or the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_sendfile(out_fd: i32, in_fd: i32, at: *mut off_t, len: usize) -> i64 {
    let start = trace::begin();
    to_c((|| {
        let input = End::of(in_fd)?;
        if !input.reads() {
            return fail(libc::EBADF);
        }
        if !at.is_null() && !input.is_seekable() {
            return fail(libc::ESPIPE);
        }
        // SAFETY: the caller's promise.
        let from = unsafe { Place::of(&input, at)? };
        let from_at = from.verify(len)?;
        let output = End::of(out_fd)?;
        if !output.writes() {
            return fail(libc::EBADF);
        }
        // SAFETY: null.
        let to = unsafe { Place::of(&output, core::ptr::null_mut())? };
        let limit = input.offset_limit().min(output.offset_limit());
        if from_at >= limit && len > 0 {
            return fail(libc::EOVERFLOW);
        }
        if (!output.is_pipe() && output.appends()) || !input.is_seekable() {
            return fail(libc::EINVAL);
        }
        let count = (len as u64).min(REQUEST_MAX).min(limit - from_at.min(limit));
        let result = if output.is_seekable() {
            copy::between(&input, from_at, &output, to.verify(count as usize)?, count)
        } else {
            copy::into_stream(&input, from_at, &output, count, output.is_nonblocking())
        };
        from.advance(Op::Read, len, result, start);
        if output.is_seekable() {
            to.advance(Op::Write, len, result, start);
        }
        result.map(|n| n as i64)
    })())
}

/// splice.
///
/// # Safety
/// The offsets are null or the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_splice(in_fd: i32, in_at: *mut off_t, out_fd: i32, out_at: *mut off_t, len: usize, flags: u32) -> i64 {
    let start = trace::begin();
    to_c((|| {
        if len == 0 {
            return Ok(0);
        }
        if flags & !SPLICE_KNOWN != 0 {
            return fail(libc::EINVAL);
        }
        let (input, output) = (End::of(in_fd)?, End::of(out_fd)?);
        if input.is_pipe() && !in_at.is_null() || output.is_pipe() && !out_at.is_null() {
            return fail(libc::ESPIPE);
        }
        if !input.reads() || !output.writes() {
            return fail(libc::EBADF);
        }
        // SAFETY: the caller's promise.
        let (from, to) = unsafe { (Place::of(&input, in_at)?, Place::of(&output, out_at)?) };
        let nonblocking = flags & libc::SPLICE_F_NONBLOCK != 0;
        let count = (len as u64).min(REQUEST_MAX);
        let result = if input.is_pipe() {
            if output.appends() {
                return fail(libc::EINVAL);
            }
            let result = copy::out_of_pipe(&input, &output, to.verify(len)?, count, nonblocking || input.is_nonblocking());
            to.advance(Op::Write, len, result, start);
            result
        } else if output.is_pipe() {
            let result = copy::into_stream(&input, from.verify(len)?, &output, count, nonblocking || output.is_nonblocking());
            from.advance(Op::Read, len, result, start);
            result
        } else {
            fail(libc::EINVAL)
        };
        result.map(|n| n as i64)
    })())
}

/// tee: a managed file is no pipe.
#[unsafe(no_mangle)]
pub extern "C" fn sw_tee(in_fd: i32, out_fd: i32, len: usize, flags: u32) -> i64 {
    to_c((|| {
        if flags & !SPLICE_KNOWN != 0 {
            return fail(libc::EINVAL);
        }
        if len == 0 {
            return Ok(0);
        }
        let (input, output) = (End::of(in_fd)?, End::of(out_fd)?);
        if !input.reads() || !output.writes() { fail(libc::EBADF) } else { fail(libc::EINVAL) }
    })())
}
