//! Vectored I/O through a descriptor: as many kernel calls as an operation of any length and any number of stretches takes. Bad addresses are the kernel's to
//! find. For every kind whose bytes a descriptor reaches.

use rustix::fd::BorrowedFd;
use rustix::io::{Errno, IoSlice, IoSliceMut, ReadWriteFlags, pread, preadv, preadv2, pwrite, pwritev, pwritev2};

use crate::op::{Direction, Memory, Op};

/// Stretches that one call of the kernel takes.
const STRETCHES_MAX: usize = 1024;
/// Bytes that it moves at most: a call that moved as many may have more to move.
const BYTES_MAX: u64 = 0x7fff_f000;

/// Moves what an operation has left after its first `outcome.done` bytes, and notes in the outcome how far it came.
#[inline]
pub fn transfer(fd: BorrowedFd<'_>, op: &mut Op<'_>, flags: ReadWriteFlags) {
    match op.memory() {
        // Most have one stretch, which takes the kernel less as such than as a vector.
        [one] if flags.is_empty() && !one.base.is_null() => transfer_one(fd, op, *one),
        _ => transfer_all(fd, op, flags),
    }
}

#[inline]
fn transfer_one(fd: BorrowedFd<'_>, op: &mut Op<'_>, memory: Memory) {
    while op.outcome.done < op.len() {
        let (base, len, at) =
            (memory.base.wrapping_add(op.outcome.done as usize), memory.len - op.outcome.done as usize, op.offset() + op.outcome.done);
        let moved = match op.direction() {
            // SAFETY: the kernel alone looks behind the pointer: a bad one is EFAULT.
            Direction::Read => pread(fd, unsafe { core::slice::from_raw_parts_mut(base, len) }, at),
            // SAFETY: as above.
            Direction::Write => pwrite(fd, unsafe { core::slice::from_raw_parts(base, len) }, at),
        };
        match moved {
            Err(Errno::INTR) => {}
            Err(errno) => {
                op.outcome.error = Some(errno);
                return;
            }
            Ok(0) => return,
            Ok(moved) => {
                op.outcome.done += moved as u64;
                if is_short(op.direction(), moved as u64, len as u64) {
                    return;
                }
            }
        }
    }
}

/// A short write: there is no room for the rest, or a limit is reached, for which the next call would bring a signal. A read is asked on until the kernel says
/// that the object ends.
#[inline]
fn is_short(direction: Direction, moved: u64, asked: u64) -> bool {
    direction == Direction::Write && moved < asked.min(BYTES_MAX)
}

fn transfer_all(fd: BorrowedFd<'_>, op: &mut Op<'_>, flags: ReadWriteFlags) {
    let (direction, offset) = (op.direction(), op.offset());
    // The stretch that is next, and what of it is done.
    let (mut first, mut skip) = (0, op.outcome.done as usize);
    loop {
        while let Some(part) = op.memory().get(first).filter(|part| part.len <= skip) {
            skip -= part.len;
            first += 1;
        }
        let at = offset + op.outcome.done;
        let (asked, moved) = match op.memory().get(first) {
            None => return,
            Some(begun) if skip > 0 => {
                let mut rest = [Memory { base: begun.base.wrapping_add(skip), len: begun.len - skip }];
                (bytes_of(&rest), call(fd, direction, &mut rest, at, flags))
            }
            Some(_) => {
                let vector = op.vector(first, STRETCHES_MAX);
                (bytes_of(vector), call(fd, direction, vector, at, flags))
            }
        };
        match moved {
            Err(Errno::INTR) => {}
            Err(errno) => {
                op.outcome.error = Some(errno);
                return;
            }
            Ok(0) => return,
            Ok(moved) => {
                op.outcome.done += moved as u64;
                skip += moved;
                if is_short(direction, moved as u64, asked) {
                    return;
                }
            }
        }
    }
}

fn bytes_of(memory: &[Memory]) -> u64 {
    memory.iter().fold(0, |sum, part| sum.saturating_add(part.len as u64))
}

fn call(fd: BorrowedFd<'_>, direction: Direction, memory: &mut [Memory], at: u64, flags: ReadWriteFlags) -> Result<usize, Errno> {
    let (base, count) = (memory.as_mut_ptr(), memory.len());
    match direction {
        Direction::Read => {
            // SAFETY: layouts are the same (op.rs asserts it), and the kernel alone looks behind the pointers: a bad one is EFAULT.
            let buffers = unsafe { core::slice::from_raw_parts_mut(base.cast::<IoSliceMut<'_>>(), count) };
            // Without flags by the older call, which user-mode emulators know, too.
            if flags.is_empty() { preadv(fd, buffers, at) } else { preadv2(fd, buffers, at, flags) }
        }
        Direction::Write => {
            // SAFETY: as above.
            let buffers = unsafe { core::slice::from_raw_parts(base.cast::<IoSlice<'_>>(), count) };
            if flags.is_empty() { pwritev(fd, buffers, at) } else { pwritev2(fd, buffers, at, flags) }
        }
    }
}
