//! Reading and writing managed files: what a request moves, and how far it counts. [`rounds`] moves the bytes.

pub mod advice;
pub mod capacity;
pub mod copy;
pub mod endpoint;
pub mod faults;
pub mod ioctl;
pub mod limit;
pub mod size;

mod rounds;
mod source;

use crate::base::sys::{Errno, Sys};
use crate::base::vector::Buffers;
use crate::gate;
use crate::gate::extending::{self, Change};
use crate::open::OpenFile;
use rounds::{Asked, Moved};
use source::Source;
use stripewise_layout::MAX_LOGICAL;
use stripewise_store::sizing::Written;
use stripewise_target::op::Direction;
use stripewise_target::time::sleep_until;

/// Reads at `at`; returns the bytes read, fewer only at the end of the file.
pub fn read_at(open: &OpenFile, buffers: &Buffers<'_>, at: u64, flags: i32) -> Sys<u64> {
    let file = open.readable()?;
    check_end(at, buffers.len())?;
    // Held until an emulated device is done as well: how long programs stay inside tells a mover how their I/O fares.
    let passed = gate::for_read(file)?;
    let size = file.size()?;
    if at >= size || buffers.len() == 0 {
        // The size may be that of words that somebody has cut just now.
        file.size()?;
        return Ok(0);
    }
    let len = buffers.len().min(size - at);
    let is_nowait = flags & libc::RWF_NOWAIT != 0;
    let moved = rounds::run(&Asked { source: Source::home(file, &passed), buffers, at, len, direction: Direction::Read, is_nowait });
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
    let end = at.checked_add(len).filter(|end| *end < MAX_LOGICAL).ok_or(Errno(libc::EFBIG))?;
    let is_nowait = flags & libc::RWF_NOWAIT != 0;
    let mut wrote: Option<Moved> = None;
    let size_before = extending::change(file, Change { at, len, reach: end, writes_all: true }, |passed| {
        let moved = rounds::run(&Asked { source: Source::home(file, passed), buffers, at, len, direction: Direction::Write, is_nowait });
        // With nothing written the file stays as long as it is.
        let reached = if moved.prefix > at { moved.prefix } else { 0 };
        let leaves_bytes = moved.some && moved.prefix < end && end > passed.ctl.size();
        let until_ns = moved.until_ns;
        wrote = Some(moved);
        (Written { reached, leaves_bytes }, until_ns)
    })?;
    let wrote = wrote.ok_or(Errno(libc::EIO))?.result(at)?;
    if at > size_before {
        crate::map::cover::grew(file);
    }
    open.touch(file);
    // An object's bytes alone would not be enough: the size is kept elsewhere.
    if open.is_sync() || flags & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0 {
        crate::io::size::sync(file, open, true)?;
    }
    Ok(wrote)
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
