//! Reading and writing managed files: what a request moves, and how far it counts. Most are one operation on one object; [`rounds`] is for those that are
//! several.

pub mod advice;
pub mod capacity;
pub mod copy;
pub mod endpoint;
pub mod faults;
pub mod ioctl;
pub mod limit;
pub mod size;

mod copied;
mod rounds;
mod source;
mod twice;

use crate::base::sys::{Errno, Sys};
use crate::base::vector::Buffers;
use crate::copies::managed;
use crate::file::File;
use crate::gate;
use crate::gate::extending::{self, Change};
use crate::open::OpenFile;
use crate::store::OpenObject;
use source::Source;
use stripewise_layout::{MAX_LOGICAL, Piece};
use stripewise_store::sizing::Written;
use stripewise_target::batch;
use stripewise_target::op::{Direction, Memory, Op};
use stripewise_target::time::sleep_until;

/// Reads at `at`; returns the bytes read, fewer only at the end of the file.
pub fn read_at(open: &OpenFile, buffers: &Buffers<'_>, at: u64, flags: i32) -> Sys<u64> {
    read_file(open.readable()?, buffers, at, flags)
}

/// The same of a file that this process has open, by whatever descriptor.
pub fn read_file(file: &'static File, buffers: &Buffers<'_>, at: u64, flags: i32) -> Sys<u64> {
    read_some(file, buffers, buffers.len(), at, flags)
}

/// The same of the first `most` bytes of the buffers.
pub fn read_some(file: &'static File, buffers: &Buffers<'_>, most: u64, at: u64, flags: i32) -> Sys<u64> {
    check_end(at, buffers.len())?;
    // Held until an emulated device is done as well: how long programs stay inside tells a mover how their I/O fares.
    managed::refresh(file);
    let passed = gate::for_read(file)?;
    let size = file.size()?;
    if at >= size || buffers.len() == 0 {
        // The size may be that of words that somebody has cut just now.
        file.size()?;
        return Ok(0);
    }
    let len = most.min(size - at);
    let is_nowait = flags & libc::RWF_NOWAIT != 0;
    if !is_nowait && let Some(read) = copied::read(file, buffers, len, at) {
        return Ok(read.min(file.size()?.saturating_sub(at)));
    }
    let moved = move_bytes(&Asked { source: Source::home(file, &passed), buffers, at, len, direction: Direction::Read, is_nowait });
    // A truncate that came in between has made zeros of what lies behind the new end: they are not the file's bytes.
    let read = moved.result(at)?.min(file.size()?.saturating_sub(at));
    sleep_until(moved.until_ns);
    Ok(read)
}

/// A request must end where an offset still is one.
fn check_end(at: u64, len: u64) -> Sys<()> {
    at.checked_add(len).filter(|end| *end <= i64::MAX as u64).map(|_| ()).ok_or(Errno(libc::EINVAL))
}

/// Writes at `at`; returns the contiguous prefix that was written, or the error when that is nothing.
pub fn write_at(open: &OpenFile, buffers: &Buffers<'_>, at: u64, flags: i32) -> Sys<u64> {
    let file = open.writable()?;
    if buffers.len() == 0 {
        return Ok(0);
    }
    check_end(at, buffers.len())?;
    let len = limit::clip(at, buffers.len())?;
    let is_nowait = flags & libc::RWF_NOWAIT != 0;
    managed::refresh(file);
    let wrote = if managed::has_updated(file) && !is_nowait {
        twice::write(file, buffers, at, len)
    } else {
        write_home(file, buffers, at, (len, is_nowait), None)
    }?;
    open.touch(file);
    // An object's bytes alone would not be enough: the size is kept elsewhere.
    if open.is_sync() || flags & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0 {
        crate::io::size::sync(file, open, true)?;
    }
    Ok(wrote)
}

/// Writes the first `len` bytes at `at`. Where they are in `memory` of our own, the file's copies follow.
pub fn write_home(file: &'static File, buffers: &Buffers<'_>, at: u64, (len, is_nowait): (u64, bool), memory: Option<*mut u8>) -> Sys<u64> {
    let end = at.checked_add(len).filter(|end| *end < MAX_LOGICAL).ok_or(Errno(libc::EFBIG))?;
    let (mut wrote, mut marked) = (Err(Errno(libc::EIO)), None);
    let size_before = extending::change(file, Change { at, len, reach: end, writes_all: true }, |passed| {
        match managed::begin(file, at, len) {
            Ok(found) => marked = found,
            Err(errno) => {
                wrote = Err(errno);
                return (Written { reached: 0, leaves_bytes: false }, 0);
            }
        }
        let moved = move_bytes(&Asked { source: Source::home(file, passed), buffers, at, len, direction: Direction::Write, is_nowait });
        // With nothing written the file stays as long as it is.
        let reached = if moved.prefix > at { moved.prefix } else { 0 };
        let leaves_bytes = moved.some && moved.prefix < end && end > passed.ctl.size();
        let until_ns = moved.until_ns;
        wrote = moved.result(at);
        (Written { reached, leaves_bytes }, until_ns)
    })?;
    // What was written in part may have holes that were written nevertheless: copies of it are stale.
    if let (Some(marked), Some(memory), Ok(bytes)) = (marked, memory, wrote)
        && bytes == len
    {
        copied::follow(marked, memory);
    }
    if wrote.is_ok() && at > size_before {
        crate::map::cover::grew(file);
    }
    wrote
}

/// Writes at the end of the file, under its exclusive lock; returns (bytes, new end).
pub fn append(open: &OpenFile, buffers: &Buffers<'_>, flags: i32) -> Sys<(u64, u64)> {
    let file = open.writable()?;
    file.exclusively(|| {
        let at = file.size()?;
        let n = write_at(open, buffers, at, flags)?;
        Ok((n, at + n))
    })
}

/// What is asked for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    /// Where its bytes are.
    source: Source<'a>,
    /// The program's memory.
    buffers: &'a Buffers<'a>,
    /// First byte in the file.
    at: u64,
    /// Bytes, at most those of the memory.
    len: u64,
    /// Which way.
    direction: Direction,
    /// Nothing is waited for.
    is_nowait: bool,
}

/// What became of it.
struct Moved {
    /// All before it has been moved.
    prefix: u64,
    /// Something has been moved at all.
    some: bool,
    /// What kept it from going on behind the prefix.
    error: Option<Errno>,
    /// Until then emulated devices are busy with it, CLOCK_MONOTONIC ns.
    until_ns: u64,
}

impl Moved {
    fn stopped_at(&mut self, logical: u64, error: Option<Errno>) {
        if logical < self.prefix {
            self.prefix = logical;
            self.error = error;
        }
    }

    /// The bytes from `at` on, or the error when there are none.
    fn result(&self, at: u64) -> Sys<u64> {
        if self.prefix > at { Ok(self.prefix - at) } else { Err(self.error.unwrap_or(Errno(libc::ENOSPC))) }
    }
}

/// Moves the bytes of a request, all of which lie in the layout.
#[inline]
fn move_bytes(asked: &Asked<'_>) -> Moved {
    match asked.buffers.single() {
        Some(base) => match asked.source.single(asked.at, asked.len) {
            Some(piece) => run_one(asked, &piece, base),
            None => run_joined(asked, base),
        },
        None => rounds::run(asked),
    }
}

/// Several runs, which may continue each other in one object.
#[inline(never)] // Off the way of the most requests.
fn run_joined(asked: &Asked<'_>, base: *mut u8) -> Moved {
    match asked.source.joined(asked.at, asked.len) {
        Some(piece) => run_one(asked, &piece, base),
        None => rounds::run(asked),
    }
}

/// One operation on one stretch of memory, as most requests are.
#[inline]
fn run_one(asked: &Asked<'_>, piece: &Piece, base: *mut u8) -> Moved {
    let object = match object_for(asked, piece.target, piece.plane, piece.object_offset, piece.len) {
        Ok(object) => object,
        Err(errno) => return Moved { prefix: asked.at, some: false, error: Some(errno), until_ns: 0 },
    };
    let mut memory = [Memory { base, len: asked.len as usize }];
    // SAFETY: the program's own, for the length of its call; the kernel finds what is no good address.
    let mut op = unsafe { asked.op(&mut memory, piece.object_offset) };
    batch::run_one(&object, &mut op);
    let (done, error) = settle(asked, &op, piece.target);
    Moved { prefix: asked.at + done, some: done > 0, error: if done < piece.len { error } else { None }, until_ns: op.outcome.end_ns }
}

/// The object of an operation, which for a write has room.
#[inline]
fn object_for(asked: &Asked<'_>, target: u32, plane: u32, offset: u64, len: u64) -> Sys<OpenObject> {
    let is_write = asked.direction == Direction::Write;
    let opened = asked.source.object(target, plane);
    // One that is only read may be missing for other reasons than its target's.
    let object = opened.inspect_err(|errno| {
        if is_write {
            faults::note(asked.source.file(), target, *errno)
        }
    })?;
    if is_write && !capacity::is_there(asked.source.file(), target, &object, offset, len)? {
        faults::note(asked.source.file(), target, Errno(libc::ENOSPC));
        return Err(Errno(libc::ENOSPC));
    }
    Ok(object)
}

impl Asked<'_> {
    /// # Safety
    /// As [`Op::raw`].
    unsafe fn op<'m>(&self, memory: &'m mut [Memory], offset: u64) -> Op<'m> {
        // SAFETY: the caller's promise.
        let op = unsafe { Op::raw(self.direction, memory, offset) };
        if self.is_nowait { op.without_waiting() } else { op }
    }
}

/// How far an operation came, and why no further: behind the end of an object there are zeros, and what is no good address is an error.
#[inline]
fn settle(asked: &Asked<'_>, op: &Op<'_>, target: u32) -> (u64, Option<Errno>) {
    let error = op.outcome.error.map(|errno| Errno(errno.raw_os_error()));
    if let Some(errno) = error {
        faults::note(asked.source.file(), target, errno);
    } else if asked.direction == Direction::Read && op.outcome.done < op.len() {
        return zero_rest(op);
    }
    (op.outcome.done, error)
}

#[cold]
fn zero_rest(op: &Op<'_>) -> (u64, Option<Errno>) {
    let mut done = op.outcome.done;
    for stretch in op.stretches(done, op.len() - done) {
        match crate::base::memory::zero(stretch.base, stretch.len) {
            Ok(zeroed) if zeroed == stretch.len => done += zeroed as u64,
            Ok(zeroed) => return (done + zeroed as u64, Some(Errno(libc::EFAULT))),
            Err(errno) => return (done, Some(errno)),
        }
    }
    (done, None)
}
