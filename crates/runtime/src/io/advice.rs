//! What a program says about its data without moving any: advice and early write-back, passed on to those objects that are files, extent by extent, and
//! syncfs, which reaches every file system that the file's bytes lie on.

use crate::base::sys::{self, Errno, Sys, call, of_target};
use crate::file::File;
use crate::open::OpenFile;
use std::os::fd::AsRawFd;
use stripewise_layout::Logical;
use stripewise_target::interface::Object;
use syscalls::Sysno;

const SYNC_KNOWN: u32 = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;

/// The file behind a descriptor that is more than a name.
fn file_of(open: &OpenFile) -> Sys<&'static File> {
    if open.flags() & libc::O_PATH != 0 { Err(Errno(libc::EBADF)) } else { open.file() }
}

/// Calls `each` with descriptor, offset and length, in an object that is a file, of every extent of `[at, at + len)` inside the file; a length of 0 means up
/// to its end.
fn for_extents(file: &'static File, at: i64, len: i64, mut each: impl FnMut(i32, u64, u64) -> Sys<()>) -> Sys<()> {
    let size = file.size()?;
    let from = u64::try_from(at).unwrap_or(0);
    let to = if len == 0 { size } else { u64::try_from(at.saturating_add(len)).unwrap_or(0).min(size) };
    if from >= to {
        return Ok(());
    }
    let passed = crate::gate::for_read(file)?;
    for extent in passed.loaded.view.extents(Logical(from), to - from) {
        if let Some(fd) = file.object(extent.target, extent.plane)?.descriptor() {
            each(fd.as_raw_fd(), extent.object_offset, extent.len)?;
        }
    }
    Ok(())
}

/// posix_fadvise. How a program will go through a file is no property of one object: only what is wanted now and what is not goes on.
pub fn fadvise(open: &OpenFile, at: i64, len: i64, advice: i32) -> Sys<()> {
    let file = file_of(open)?;
    if len < 0 {
        return Err(Errno(libc::EINVAL));
    }
    match advice {
        libc::POSIX_FADV_WILLNEED | libc::POSIX_FADV_DONTNEED => for_extents(file, at, len, |fd, offset, bytes| {
            sys::fadvise(fd, offset, bytes, advice);
            Ok(())
        }),
        libc::POSIX_FADV_NORMAL | libc::POSIX_FADV_RANDOM | libc::POSIX_FADV_SEQUENTIAL | libc::POSIX_FADV_NOREUSE => Ok(()),
        _ => Err(Errno(libc::EINVAL)),
    }
}

pub fn readahead(open: &OpenFile, at: i64, len: usize) -> Sys<()> {
    open.readable()?;
    let len = i64::try_from(len).map_err(|_| Errno(libc::EINVAL))?;
    if len == 0 { Ok(()) } else { fadvise(open, at, len, libc::POSIX_FADV_WILLNEED) }
}

/// sync_file_range: as on a plain file no promise of durability, which is fsync's.
pub fn sync_file_range(open: &OpenFile, at: i64, len: i64, flags: u32) -> Sys<()> {
    let file = file_of(open)?;
    if flags & !SYNC_KNOWN != 0 || at < 0 || len < 0 || at.checked_add(len).is_none() {
        return Err(Errno(libc::EINVAL));
    }
    for_extents(file, at, len, |fd, offset, bytes| {
        call(Sysno::sync_file_range, [fd as usize, offset as usize, bytes as usize, flags as usize, 0, 0]).map(|_| ())
    })
}

/// syncfs: the directory's file system and those of all targets of the file.
pub fn syncfs(open: &OpenFile) -> Sys<()> {
    let file = file_of(open)?;
    crate::io::size::sync(file, open, false)?;
    let passed = crate::gate::for_read(file)?;
    for (target, plane) in passed.loaded.objects() {
        let Some(object) = file.object_if_made(passed.loaded, target, plane)? else { continue };
        match object.descriptor() {
            Some(fd) => sys::syncfs(fd.as_raw_fd())?,
            None => of_target(object.sync())?,
        }
    }
    match open.companion() {
        Some(fd) => call(Sysno::syncfs, [fd as usize, 0, 0, 0, 0, 0]).map(|_| ()),
        None => Ok(()),
    }
}
