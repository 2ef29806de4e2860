//! Reads of plain files that have copies, and word of what may change such a file. A read is served from a copy where one block of a replica holds all of it;
//! else, and whenever copies do not count, the plain file is read.

use super::{PASS, offset, one};
use crate::base::sys::{self, Sys, to_c};
use crate::base::vector::{Buffers, REQUEST_MAX};
use crate::copies;
use crate::io;
use crate::mpi;
use crate::open::{self, Use, of_copied};
use libc::{iovec, off_t};

/// `SW_COPY_SHIFT` of the shim: above these bits of a result stands the number of the replica that has given the bytes, plus one. A request has fewer bytes
/// than 2^31, a file fewer replicas than 2^16.
const COPY_SHIFT: u32 = 32;
const _: () = assert!(stripewise_layout::MAX_REPLICAS < 1 << 16 && REQUEST_MAX < 1 << COPY_SHIFT);

/// All bytes of the request from a copy, and by which replica; `None` where the plain file is to be read.
fn from_copy(open: &Use, fd: i32, buffers: &Buffers<'_>, at: u64) -> Option<(u64, u32)> {
    let (copies, len) = (copies::counted(open.copies()?, fd)?, buffers.len());
    let from = copies.place_of(at, len)?;
    let read = io::read_file(copies.container(), buffers, from.at, 0).ok()?;
    (read == len && copies.still_count()).then_some((read, from.replica))
}

/// What stands above the bytes that a replica has given.
fn mark(replica: u32) -> i64 {
    (i64::from(replica) + 1) << COPY_SHIFT
}

fn served(fd: i32, buffers: Sys<Buffers<'_>>, at: off_t) -> i64 {
    let work = || from_copy(&of_copied(fd).ok()?, fd, &buffers.ok()?, offset(at).ok()?);
    work().map_or(PASS, |(n, replica)| n as i64 + mark(replica))
}

fn served_at_offset(fd: i32, buffers: Sys<Buffers<'_>>, plain: impl FnOnce() -> Sys<u64>) -> i64 {
    let mut by_copy = 0;
    let work = || {
        let (open, buffers) = (of_copied(fd).ok()?, buffers.ok()?);
        let copy = |at| {
            let (n, replica) = from_copy(&open, fd, &buffers, at)?;
            by_copy = mark(replica);
            Some(n)
        };
        open.read_plain_at_offset(fd, copy, plain)
    };
    work().map_or(PASS, |result| to_c(result.map(|n| n as i64 + by_copy)))
}

/// read.
///
/// # Safety
/// `to` is the program's own, for `len` bytes; the kernel finds what is no good address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_copied_read(fd: i32, to: *mut u8, len: usize) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { served_at_offset(fd, Buffers::of(&[one(to, len)]), || sys::read_raw(fd, to, len)) }
}

/// pread.
#[unsafe(no_mangle)]
pub extern "C" fn sw_copied_pread(fd: i32, to: *mut u8, len: usize, at: off_t) -> i64 {
    served(fd, Buffers::of(&[one(to, len)]), at)
}

/// readv.
///
/// # Safety
/// `iov` points to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_copied_readv(fd: i32, iov: *const iovec, count: i32) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { served_at_offset(fd, Buffers::new(iov, count), || sys::readv_raw(fd, iov, count)) }
}

/// preadv, and preadv2 without flags.
///
/// # Safety
/// `iov` points to `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_copied_preadv(fd: i32, iov: *const iovec, count: i32, at: off_t) -> i64 {
    // SAFETY: the caller's promise.
    served(fd, unsafe { Buffers::new(iov, count) }, at)
}

/// A plain file was opened for writing inside the C library.
#[unsafe(no_mangle)]
pub extern "C" fn sw_plain_written(fd: i32) {
    copies::opened_to_write(fd);
}

/// A plain file was opened: for reading, its copies are found; for writing, they are dropped.
pub fn opened(fd: i32, flags: i32) {
    const BY_ITSELF: i32 = libc::O_PATH | libc::O_DIRECT | libc::O_DIRECTORY;
    if flags & (libc::O_ACCMODE | libc::O_TRUNC) == libc::O_RDONLY {
        if flags & BY_ITSELF == 0
            && let Some(place) = copies::find(fd)
        {
            open::register_copied(fd, place);
            mpi::copied_was_opened(fd);
        }
    } else if flags & libc::O_PATH == 0 {
        copies::opened_to_write(fd);
    }
}
