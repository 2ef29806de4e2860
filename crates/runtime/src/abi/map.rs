//! Memory and ioctl, for the shim.

use super::{PASS, to_c};
use crate::io::ioctl;
use crate::map::{self, remap};
use crate::trace;
use libc::off_t;
use stripewise_trace::Op;

/// mmap of a managed descriptor: the address or -errno; PASS: the descriptor is a plain one by now.
///
/// # Safety
/// mmap's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mmap(at: usize, len: usize, prot: i32, flags: i32, fd: i32, offset: off_t) -> i64 {
    let start = trace::begin();
    // SAFETY: the caller's promise.
    let result = unsafe { map::map(fd, at, len, prot, flags, offset) };
    trace::data(fd, Op::Mmap, offset as u64, len as u64, &result.map(|_| len as i64), start);
    to_c(result.map(|to| to.map_or(PASS, |address| address as i64)))
}

/// munmap of memory that may hold maps of managed files.
///
/// # Safety
/// munmap's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_munmap(at: usize, len: usize) -> i64 {
    // SAFETY: the caller's promise.
    to_c(unsafe { remap::unmap(at, len) })
}

/// Something else was mapped over memory that may hold maps of managed files.
#[unsafe(no_mangle)]
pub extern "C" fn sw_map_covered(at: usize, len: usize) {
    remap::covered(at, len);
}

/// mremap of such memory; PASS: there is none of ours.
///
/// # Safety
/// mremap's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mremap(old: usize, old_len: usize, new_len: usize, flags: i32, new: usize) -> i64 {
    // SAFETY: the caller's promise.
    to_c(unsafe { remap::remap(old, old_len, new_len, flags, new) }.map(|to| to.map_or(PASS, |address| address as i64)))
}

/// msync of such memory.
#[unsafe(no_mangle)]
pub extern "C" fn sw_msync(at: usize, len: usize, flags: i32) -> i64 {
    to_c(remap::sync(at, len, flags))
}

/// ioctl on a managed descriptor, or a clone command on any; PASS: the kernel's call is right.
///
/// # Safety
/// `arg` is what the command asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_ioctl(fd: i32, command: u32, arg: usize) -> i64 {
    // SAFETY: the caller's promise.
    to_c(unsafe { ioctl::ioctl(fd, command, arg) }.map(|value| value.unwrap_or(PASS)))
}
