//! preadv2 and pwritev2: vectored requests with flags of their own. Flags that only hint are dropped, those that promise are kept for the file
//! as a whole, and unknown ones are refused as the kernel refuses them.

use super::traced;
use crate::base::sys::{Errno, Sys};
use crate::base::vector::Buffers;
use crate::io;
use crate::open::{Use, of_fd};
use libc::{iovec, off_t};
use stripewise_trace::Op;

const RWF_NOAPPEND: i32 = 0x20;
const RWF_DONTCACHE: i32 = 0x80;
const KNOWN: i32 = libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC | libc::RWF_NOWAIT | libc::RWF_APPEND | RWF_NOAPPEND | RWF_DONTCACHE;

/// The offset -1 means the current position; no other negative offset means anything.
fn place(at: off_t) -> Sys<Option<u64>> {
    match at {
        -1 => Ok(None),
        _ => u64::try_from(at).map(Some).map_err(|_| Errno(libc::EINVAL)),
    }
}

fn check(flags: i32) -> Sys<()> {
    if flags & !KNOWN != 0 {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    let both = libc::RWF_APPEND | RWF_NOAPPEND;
    if flags & both == both { Err(Errno(libc::EINVAL)) } else { Ok(()) }
}

fn read(open: &Use, fd: i32, buffers: &Buffers<'_>, at: Option<u64>, flags: i32) -> Sys<u64> {
    open.readable()?;
    if buffers.len() == 0 {
        return Ok(0);
    }
    check(flags)?;
    let flags = flags & libc::RWF_NOWAIT;
    match at {
        Some(at) => io::read_at(open, buffers, at, flags),
        None => open.read_at_offset(fd, buffers.len(), |at| io::read_at(open, buffers, at, flags)),
    }
}

fn write(open: &Use, fd: i32, buffers: &Buffers<'_>, at: Option<u64>, flags: i32) -> Sys<u64> {
    open.writable()?;
    if buffers.len() == 0 {
        return Ok(0);
    }
    check(flags)?;
    let appends = flags & libc::RWF_APPEND != 0 || flags & RWF_NOAPPEND == 0 && open.is_append();
    match at {
        Some(_) if appends => io::append(open, buffers, flags).map(|(n, _)| n),
        Some(at) => io::write_at(open, buffers, at, flags),
        None if appends => open.at_offset(fd, |_| io::append(open, buffers, flags)),
        None => open.at_offset(fd, |at| io::write_at(open, buffers, at, flags).map(|n| (n, at + n))),
    }
}

/// preadv2.
///
/// # Safety
/// `iov` points to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_preadv2(fd: i32, iov: *const iovec, count: i32, at: off_t, flags: i32) -> i64 {
    // SAFETY: the caller's promise.
    let buffers = unsafe { Buffers::new(iov, count) };
    traced(fd, Op::Read, at as u64, buffers.map_or(0, |b| b.len()), || {
        let at = place(at)?;
        read(&of_fd(fd)?, fd, &buffers?, at, flags)
    })
}

/// pwritev2.
///
/// # Safety
/// `iov` points to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_pwritev2(fd: i32, iov: *const iovec, count: i32, at: off_t, flags: i32) -> i64 {
    // SAFETY: the caller's promise.
    let buffers = unsafe { Buffers::new(iov, count) };
    traced(fd, Op::Write, at as u64, buffers.map_or(0, |b| b.len()), || {
        let at = place(at)?;
        write(&of_fd(fd)?, fd, &buffers?, at, flags)
    })
}
