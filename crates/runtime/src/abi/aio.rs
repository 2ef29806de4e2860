//! POSIX AIO on managed files: a request is carried out when it is submitted. Its outcome is the request's own, as if a helper thread of the C
//! library had met it; only what the C library refuses to queue fails the call.

use super::{sw_fsync, sw_pread, sw_pwrite};
use libc::{c_int, c_void, off_t, ssize_t};

/// Most that a request may lower its priority by, in glibc.
const PRIORITY_DELTA_MAX: i32 = 20;
/// glibc's kinds beyond those that programs see.
const DSYNC: i32 = 3;
const SYNC: i32 = 4;

/// Carries a request out; `error` and `result` are the fields that aio_error and aio_return read.
///
/// # Safety
/// `error` and `result` are writable; `buf` is the program's, and the kernel checks it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_aio(
    fd: i32,
    kind: i32,
    priority: i32,
    buf: *mut c_void,
    len: usize,
    at: off_t,
    error: *mut c_int,
    result: *mut ssize_t,
) -> i64 {
    let queued = (0..=PRIORITY_DELTA_MAX).contains(&priority);
    let done = match kind {
        _ if !queued => -i64::from(libc::EINVAL),
        libc::LIO_READ => sw_pread(fd, buf.cast(), len, at),
        libc::LIO_WRITE => sw_pwrite(fd, buf.cast(), len, at),
        DSYNC => sw_fsync(fd, 1),
        SYNC => sw_fsync(fd, 0),
        _ => -i64::from(libc::EINVAL),
    };
    // SAFETY: the caller's promise.
    unsafe {
        error.write((-done).max(0) as c_int);
        result.write(done.max(-1) as ssize_t);
    }
    if queued { 0 } else { done }
}
