//! The program's memory, read and written as the kernel does it: a bad address is an error and never a signal. The kernel is asked to copy
//! between the process and itself.

use crate::base::sys::{Errno, Sys, call, getpid};
use stripewise_target::op::Memory;
use syscalls::Sysno;

/// Writes zeros into the program's memory as the kernel would: a bad address is an error, not a signal. Returns the bytes before it.
pub fn zero(to: *mut u8, len: usize) -> Sys<usize> {
    const CHUNK: usize = 65_536;
    static ZEROS: [u8; CHUNK] = [0; CHUNK];
    let mut done = 0;
    while done < len {
        let take = (len - done).min(CHUNK);
        let local = libc::iovec { iov_base: to.wrapping_add(done).cast(), iov_len: take };
        let zeros = libc::iovec { iov_base: ZEROS.as_ptr().cast_mut().cast(), iov_len: take };
        match call(Sysno::process_vm_readv, [getpid() as usize, &raw const local as usize, 1, &raw const zeros as usize, 1, 0]) {
            Ok(n) if n > 0 => done += n as usize,
            Ok(_) | Err(Errno(libc::EFAULT)) => return if done > 0 { Ok(done) } else { Err(Errno(libc::EFAULT)) },
            Err(_) => {
                // SAFETY: a sandbox forbids the call: the program's buffer, which it promised to be writable.
                unsafe { core::ptr::write_bytes(to.wrapping_add(done), 0, len - done) };
                done = len;
            }
        }
    }
    Ok(done)
}

/// Copies stretches of the program's memory to `to`, which has room for all of them; a bad address is an error, not a signal. Returns the bytes before it.
pub fn gather(from: impl Iterator<Item = Memory>, to: *mut u8) -> Sys<usize> {
    let mut done = 0;
    for stretch in from {
        let local = libc::iovec { iov_base: to.wrapping_add(done).cast(), iov_len: stretch.len };
        let remote = libc::iovec { iov_base: stretch.base.cast(), iov_len: stretch.len };
        match call(Sysno::process_vm_readv, [getpid() as usize, &raw const local as usize, 1, &raw const remote as usize, 1, 0]) {
            Ok(n) if n as usize == stretch.len => done += stretch.len,
            Ok(n) if n > 0 || done > 0 => return Ok(done + n as usize),
            Err(Errno(libc::EFAULT)) if done > 0 => return Ok(done),
            Ok(_) | Err(Errno(libc::EFAULT)) => return Err(Errno(libc::EFAULT)),
            Err(_) => {
                // SAFETY: a sandbox forbids the call: the program's buffer, which it promised to be readable.
                unsafe { core::ptr::copy_nonoverlapping(stretch.base, to.wrapping_add(done), stretch.len) };
                done += stretch.len;
            }
        }
    }
    Ok(done)
}

/// Copies from the program's memory; a bad address is an error, not a signal.
/// # Safety
/// Any bytes are a valid `T`, and `from` points to one where the address is good at all.
pub unsafe fn copy_in<T: Copy>(from: *const T) -> Sys<T> {
    let mut value = core::mem::MaybeUninit::<T>::uninit();
    let len = core::mem::size_of::<T>();
    let local = libc::iovec { iov_base: value.as_mut_ptr().cast(), iov_len: len };
    let remote = libc::iovec { iov_base: from.cast_mut().cast(), iov_len: len };
    match call(Sysno::process_vm_readv, [getpid() as usize, &raw const local as usize, 1, &raw const remote as usize, 1, 0]) {
        // SAFETY: all its bytes were written.
        Ok(n) if n as usize == len => Ok(unsafe { value.assume_init() }),
        Ok(_) | Err(Errno(libc::EFAULT)) => Err(Errno(libc::EFAULT)),
        // SAFETY: a sandbox forbids the call: the caller's promise.
        Err(_) => Ok(unsafe { from.read() }),
    }
}

/// Copies bytes into the program's memory.
/// # Safety
/// `to` points to that many bytes where the address is good at all.
pub unsafe fn bytes_out(to: *mut u8, from: &[u8]) -> Sys<()> {
    let local = libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: from.len() };
    let remote = libc::iovec { iov_base: to.cast(), iov_len: from.len() };
    match call(Sysno::process_vm_writev, [getpid() as usize, &raw const local as usize, 1, &raw const remote as usize, 1, 0]) {
        Ok(n) if n as usize == from.len() => Ok(()),
        Ok(_) | Err(Errno(libc::EFAULT)) => Err(Errno(libc::EFAULT)),
        Err(_) => {
            // SAFETY: a sandbox forbids the call: the caller's promise.
            unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
            Ok(())
        }
    }
}

/// Whether a vector of buffers can be read at all: EFAULT when not. The kernel reads its own side of a transfer, to which there is no other side.
pub fn check_vector(iov: *const libc::iovec, count: usize) -> Sys<()> {
    match call(Sysno::process_vm_writev, [getpid() as usize, iov as usize, count, 0, 0, 0]) {
        Err(Errno(libc::EFAULT)) => Err(Errno(libc::EFAULT)),
        _ if iov.is_null() => Err(Errno(libc::EFAULT)),
        _ => Ok(()),
    }
}
