//! What the shim calls, by subject: each function does one call of the C library on managed files, in the kernel's terms (-errno on failure).

pub mod advice;
pub mod aio;
pub mod attr;
pub mod copies;
pub mod copy;
pub mod dirs;
pub mod life;
pub mod map;
pub mod names;
pub mod requests;
pub mod stdio;

use crate::base::sys::{self, Errno, Sys, to_c};
use crate::base::vector::Buffers;
use crate::descriptors;
use crate::file;
use crate::io;
use crate::io::size;
use crate::mpi;
use crate::names::{Managed, find};
use crate::open;
use crate::open::by_name;
use crate::open::{forget_left_behind, of_fd};
use crate::trace;
use core::ffi::CStr;
use libc::{c_char, iovec, off_t};
use stripewise_trace::Op;

/// "Not ours": the shim does the plain call.
const PASS: i64 = -4096;
const HERE: u64 = u64::MAX;

fn one(base: *mut u8, len: usize) -> iovec {
    iovec { iov_base: base.cast(), iov_len: len.min(isize::MAX as usize) }
}

fn offset(at: off_t) -> Sys<u64> {
    u64::try_from(at).map_err(|_| Errno(libc::EINVAL))
}

/// A call by name. One that this thread has left by siglongjmp ends first, seen from a frame that is no deeper than its own was: what it held is no lock of a
/// call below this one.
#[inline(always)]
fn called_by_name<T>(work: impl FnOnce() -> T) -> T {
    forget_left_behind();
    in_a_frame_below(work)
}

#[inline(never)] // Its buffers.
fn in_a_frame_below<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// openat and all its spellings.
///
/// # Safety
/// `path` is a C string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_openat(dirfd: i32, path: *const c_char, flags: i32, mode: u32) -> i64 {
    called_by_name(|| {
        let start = trace::begin();
        // SAFETY: passed through.
        let (result, kind) = unsafe { by_name::open_freeing_idle(dirfd, path, flags, mode) };
        if let Ok(fd) = result
            && !kind.managed
        {
            open::forget_left(fd as i32);
        }
        if start != 0 && !matches!(result, Err(Errno(libc::EFAULT | libc::ENAMETOOLONG))) {
            // SAFETY: the kernel has read it.
            by_name::record(unsafe { CStr::from_ptr(path) }, dirfd, flags, &result, kind, start);
        }
        if let Ok(fd) = result {
            if kind.managed {
                mpi::managed_was_opened(fd as i32);
            } else {
                copies::opened(fd as i32, flags);
            }
        }
        stdio::arrived(result)
    })
}

/// close.
#[unsafe(no_mangle)]
pub extern "C" fn sw_close(fd: i32) -> i64 {
    to_c(descriptors::close(fd))
}

/// close_range.
#[unsafe(no_mangle)]
pub extern "C" fn sw_close_range(first: u32, last: u32, flags: u32) -> i64 {
    to_c(descriptors::close_range(first, last, flags))
}

fn traced(fd: i32, op: Op, at: u64, asked: u64, work: impl FnOnce() -> Sys<u64>) -> i64 {
    let start = trace::begin();
    let result = work().map(|n| n as i64);
    trace::data(fd, op, at, asked, &result, start);
    to_c(result)
}

fn read_here(fd: i32, buffers: &Buffers<'_>) -> Sys<u64> {
    let open = of_fd(fd)?;
    open.readable()?;
    open.read_at_offset(fd, buffers.len(), |at| io::read_at(&open, buffers, at, 0))
}

fn write_here(fd: i32, buffers: &Buffers<'_>) -> Sys<u64> {
    let open = of_fd(fd)?;
    open.writable()?;
    if buffers.len() == 0 {
        return Ok(0);
    }
    if open.is_append() {
        return open.at_offset(fd, |_| io::append(&open, buffers, 0));
    }
    open.at_offset(fd, |at| io::write_at(&open, buffers, at, 0).map(|n| (n, at + n)))
}

/// read.
#[unsafe(no_mangle)]
pub extern "C" fn sw_read(fd: i32, to: *mut u8, len: usize) -> i64 {
    traced(fd, Op::Read, HERE, len as u64, || read_here(fd, &Buffers::of(&[one(to, len)])?))
}

/// write.
#[unsafe(no_mangle)]
pub extern "C" fn sw_write(fd: i32, from: *mut u8, len: usize) -> i64 {
    traced(fd, Op::Write, HERE, len as u64, || write_here(fd, &Buffers::of(&[one(from, len)])?))
}

/// pread.
#[unsafe(no_mangle)]
pub extern "C" fn sw_pread(fd: i32, to: *mut u8, len: usize, at: off_t) -> i64 {
    traced(fd, Op::Read, at as u64, len as u64, || {
        let at = offset(at)?;
        io::read_at(&*of_fd(fd)?, &Buffers::of(&[one(to, len)])?, at, 0)
    })
}

/// pwrite. With O_APPEND Linux appends whatever the offset says, and so do we.
#[unsafe(no_mangle)]
pub extern "C" fn sw_pwrite(fd: i32, from: *mut u8, len: usize, at: off_t) -> i64 {
    traced(fd, Op::Write, at as u64, len as u64, || {
        let at = offset(at)?;
        let open = of_fd(fd)?;
        let vector = [one(from, len)];
        let buffers = Buffers::of(&vector)?;
        if open.is_append() { io::append(&open, &buffers, 0).map(|(n, _)| n) } else { io::write_at(&open, &buffers, at, 0) }
    })
}

/// readv.
///
/// # Safety
/// `iov` points to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_readv(fd: i32, iov: *const iovec, count: i32) -> i64 {
    // SAFETY: the caller's promise.
    let buffers = unsafe { Buffers::new(iov, count) };
    traced(fd, Op::Read, HERE, buffers.map_or(0, |b| b.len()), || read_here(fd, &buffers?))
}

/// writev.
///
/// # Safety
/// `iov` points to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_writev(fd: i32, iov: *const iovec, count: i32) -> i64 {
    // SAFETY: the caller's promise.
    let buffers = unsafe { Buffers::new(iov, count) };
    traced(fd, Op::Write, HERE, buffers.map_or(0, |b| b.len()), || write_here(fd, &buffers?))
}

/// preadv.
///
/// # Safety
/// `iov` points to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_preadv(fd: i32, iov: *const iovec, count: i32, at: off_t) -> i64 {
    // SAFETY: the caller's promise.
    let buffers = unsafe { Buffers::new(iov, count) };
    traced(fd, Op::Read, at as u64, buffers.map_or(0, |b| b.len()), || {
        let at = offset(at)?;
        io::read_at(&*of_fd(fd)?, &buffers?, at, 0)
    })
}

/// pwritev.
///
/// # Safety
/// `iov` points to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_pwritev(fd: i32, iov: *const iovec, count: i32, at: off_t) -> i64 {
    // SAFETY: the caller's promise.
    let buffers = unsafe { Buffers::new(iov, count) };
    traced(fd, Op::Write, at as u64, buffers.map_or(0, |b| b.len()), || {
        let at = offset(at)?;
        let open = of_fd(fd)?;
        if open.is_append() { io::append(&open, &buffers?, 0).map(|(n, _)| n) } else { io::write_at(&open, &buffers?, at, 0) }
    })
}

/// lseek.
#[unsafe(no_mangle)]
pub extern "C" fn sw_lseek(fd: i32, at: off_t, whence: i32) -> i64 {
    let start = trace::begin();
    let result = of_fd(fd).and_then(|open| size::seek(&open, fd, at, whence));
    trace::data(fd, Op::Seek, at as u64, whence as u64, &result, start);
    to_c(result)
}

/// ftruncate.
#[unsafe(no_mangle)]
pub extern "C" fn sw_ftruncate(fd: i32, len: off_t) -> i64 {
    let start = trace::begin();
    let result = of_fd(fd).and_then(|open| {
        // The kernel answers EINVAL, not EBADF, to a descriptor that cannot write, unless it is one of a path only.
        let refusal = if open.flags() & libc::O_PATH != 0 { libc::EBADF } else { libc::EINVAL };
        let file = open.writable().map_err(|_| Errno(refusal))?;
        size::truncate(file, len)?;
        open.touch(file);
        Ok(0)
    });
    trace::data(fd, Op::Truncate, len as u64, 0, &result, start);
    to_c(result)
}

/// truncate by name.
///
/// # Safety
/// `path` is a C string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_truncate(path: *const c_char, len: off_t) -> i64 {
    // SAFETY: the caller's promise.
    let truncated = || unsafe { find(libc::AT_FDCWD, path, true)? }.map(|found| truncate_found(&found, len)).transpose();
    let done = called_by_name(|| file::freeing_idle(truncated));
    if matches!(done, Ok(None)) {
        // SAFETY: the caller's promise.
        unsafe { crate::copies::name_changes(libc::AT_FDCWD, path) };
    }
    done.map_or_else(|errno| to_c(Err(errno)), |done| done.unwrap_or(PASS))
}

fn truncate_found(found: &Managed, len: off_t) -> Sys<i64> {
    if found.is_copy()? {
        return Err(Errno(libc::EROFS));
    }
    let head = found.pin_head()?;
    // SAFETY: a valid C string.
    unsafe { sys::faccessat_raw(libc::AT_FDCWD, head.path().as_ptr(), libc::W_OK, libc::AT_EACCESS)? };
    found.with(|file| {
        file.widen();
        let before = file.ctl().map(|ctl| ctl.size());
        size::truncate(file, len)?;
        if before != Some(len as u64) {
            return crate::open::touch_head(file);
        }
        // Whether times move then is the file system's habit.
        sys::truncate(head.path(), len as u64)
    })
}

/// fallocate.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fallocate(fd: i32, mode: i32, at: off_t, len: off_t) -> i64 {
    let start = trace::begin();
    let result = of_fd(fd).and_then(|open| size::fallocate(&open, mode, at, len)).map(|()| 0);
    trace::data(fd, Op::Fallocate, at as u64, len as u64, &result, start);
    to_c(result)
}

/// fsync, fdatasync.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fsync(fd: i32, data_only: i32) -> i64 {
    let start = trace::begin();
    let result = of_fd(fd)
        .and_then(|open| if open.flags() & libc::O_PATH != 0 { Err(Errno(libc::EBADF)) } else { size::sync(open.file()?, &open, data_only != 0) })
        .map(|()| 0);
    trace::data(fd, Op::Sync, 0, data_only as u64, &result, start);
    to_c(result)
}

/// dup.
#[unsafe(no_mangle)]
pub extern "C" fn sw_dup(fd: i32) -> i64 {
    stdio::arrived(descriptors::dup(fd))
}

/// dup2 (flags -1), dup3.
#[unsafe(no_mangle)]
pub extern "C" fn sw_dup3(fd: i32, to: i32, flags: i32) -> i64 {
    stdio::arrived(descriptors::dup3(fd, to, flags))
}

/// fcntl.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fcntl(fd: i32, op: i32, arg: usize) -> i64 {
    let result = descriptors::fcntl(fd, op, arg);
    if matches!(op, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) { stdio::arrived(result) } else { to_c(result) }
}

/// flock.
#[unsafe(no_mangle)]
pub extern "C" fn sw_flock(fd: i32, op: i32) -> i64 {
    to_c(descriptors::flock(fd, op))
}
