//! Reading and writing managed files: the request is cut into extents, one per object and region, each done by one vectored call.
//! Emulated targets reserve all first, then the I/O is done, then one sleep lasts until the latest end.

use crate::extending::{self, Change};
use crate::faults;
use crate::file::File;
use crate::gate::{self, Passed};
use crate::limit;
use crate::open::OpenFile;
use crate::room;
use crate::sys::{self, Errno, Sys};
use crate::vector::{Batch, Buffers};
use stripewise_layout::{Extent, Logical, MAX_LOGICAL, View};
use stripewise_store::sizing::Written;
use stripewise_target::devices::{Access, now_ns, sleep_until};
use stripewise_target::names::object_key;

fn object_bytes(done: usize) -> u64 {
    done as u64
}

/// Reads one extent; a hole or the object's end reads as zeros.
fn read_extent(file: &'static File, buffers: &Buffers<'_>, extent: &Extent<'_>, at: u64, flags: i32) -> Sys<()> {
    let fd = file.object(extent.target, extent.plane)?;
    Batch::new(|vector, before, bytes| {
        let mut got = object_bytes(sys::preadv2(fd, vector, extent.object_offset + before, flags)?);
        // Short: the object ends here, or a signal came; ask on until the kernel says end.
        while got < bytes {
            let (mut first, mut skip) = (0, got);
            while let Some(element) = vector.get(first).filter(|e| e.iov_len as u64 <= skip) {
                skip -= element.iov_len as u64;
                first += 1;
            }
            let Some(element) = vector.get(first) else { break };
            let to = element.iov_base.cast::<u8>().wrapping_add(skip as usize);
            let want = element.iov_len - skip as usize;
            // SAFETY: the rest of a buffer that the program gave; the kernel checks.
            let more = object_bytes(unsafe { sys::pread(fd, to, want, extent.object_offset + before + got)? });
            if more == 0 {
                got += object_bytes(crate::memory::zero(to, want)?);
            } else {
                got += more;
            }
        }
        Ok(true)
    })
    .run(buffers, extent, at)
}

/// Writes one extent; `Err` carries how many bytes of it were written before.
fn write_extent(file: &'static File, buffers: &Buffers<'_>, extent: &Extent<'_>, at: u64, flags: i32) -> (u64, Sys<()>) {
    let mut done = 0;
    let result = (|| {
        let fd = file.object(extent.target, extent.plane)?;
        if !room::is_there(file, extent.target, fd, extent.object_offset, extent.len)? {
            return Err(Errno(libc::ENOSPC));
        }
        Batch::new(|vector, before, bytes| {
            let wrote = object_bytes(sys::pwritev2(fd, vector, extent.object_offset + before, flags)?);
            done = before + wrote;
            // A short write means that the target is full (or a limit is reached): what was written counts, the rest not.
            Ok(wrote == bytes)
        })
        .run(buffers, extent, at)
    })();
    if let Err(errno) = result {
        faults::note(file, extent.target, errno);
    }
    (done, result)
}

/// The first logical byte of an extent that lies behind its first `done` bytes.
fn first_missing(extent: &Extent<'_>, mut done: u64) -> u64 {
    for (logical, len) in extent.pieces() {
        if done < len {
            return logical + done;
        }
        done -= len;
    }
    u64::MAX
}

/// Counts the extents on their targets and reserves emulated service time; returns when the last one ends (0 = none emulated).
pub fn reserve(file: &'static File, extents: impl Iterator<Item = (u32, u32, u64, u64)>, write: bool) -> Sys<u64> {
    let store = file.store()?;
    let Some(devices) = store.devices() else { return Ok(0) };
    let mut latest = 0;
    let mut now = 0;
    for (target, plane, offset, len) in extents {
        let model = store.model(target);
        if model.is_some() && now == 0 {
            now = now_ns();
        }
        let access = Access { write, object: object_key(file.id(), plane), offset, bytes: len };
        latest = latest.max(devices.reserve(target, model, access, now).end_ns);
    }
    Ok(latest)
}

/// Reads at `at`; returns the bytes read, fewer only at the end of the file.
pub fn read_at(open: &OpenFile, buffers: &Buffers<'_>, at: u64, flags: i32) -> Sys<u64> {
    let file = open.readable()?;
    let mut n;
    let end;
    check_end(at, buffers.len())?;
    // Held until an emulated device is done as well: how long programs stay inside tells a mover how their I/O fares.
    let passed = gate::for_read(file)?;
    let size = file.size()?;
    if at >= size || buffers.len() == 0 {
        // The size may be that of words that somebody has cut just now.
        file.size()?;
        return Ok(0);
    }
    n = buffers.len().min(size - at);
    let view = &passed.loaded.view;
    let Some(first) = view.pieces(Logical(at), n).next() else { return Err(Errno(libc::EIO)) };
    match buffers.single() {
        Some(to) if first.len == n && flags == 0 => {
            end = reserve(file, core::iter::once((first.target, first.plane, first.object_offset, n)), false)?;
            let fd = file.object(first.target, first.plane)?;
            n = read_run(fd, to, n, first.object_offset).inspect_err(|errno| faults::note(file, first.target, *errno))?;
        }
        _ => match read_extents(file, view, buffers, at, n, flags) {
            Ok(latest) => end = latest,
            Err(Errno(libc::EFAULT | libc::EIO)) => {
                end = 0;
                n = read_prefix(file, view, buffers, at, n)?;
            }
            Err(errno) => return Err(errno),
        },
    }
    // A truncate that came in between has made zeros of what lies behind the new end: they are not the file's bytes.
    n = n.min(file.size()?.saturating_sub(at));
    sleep_until(end);
    Ok(n)
}

/// A request must end where an offset still is one.
fn check_end(at: u64, len: u64) -> Sys<()> {
    at.checked_add(len).filter(|end| *end <= i64::MAX as u64).map(|_| ()).ok_or(Errno(libc::EINVAL))
}

/// Reads one run of one object into one buffer; behind the object's end there are zeros. Returns fewer bytes when an error came after them.
#[inline]
fn read_run(fd: i32, to: *mut u8, n: u64, offset: u64) -> Sys<u64> {
    let mut got = 0;
    while got < n {
        let (rest, len) = (to.wrapping_add(got as usize), (n - got) as usize);
        // SAFETY: the program's buffer; the kernel checks.
        let more = match unsafe { sys::pread(fd, rest, len, offset + got) } {
            Ok(0) => crate::memory::zero(rest, len),
            more => more,
        };
        match more {
            Ok(more) => got += more as u64,
            Err(_) if got > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(got)
}

/// After an error in a request of several pieces: reads what lies before it, piece by piece in the file's order, as the kernel would.
#[cold]
fn read_prefix(file: &'static File, view: &View<'static>, buffers: &Buffers<'_>, at: u64, n: u64) -> Sys<u64> {
    let mut done = 0;
    for piece in view.pieces(Logical(at), n) {
        let fd = file.object(piece.target, piece.plane)?;
        let mut offset = piece.object_offset;
        let result = buffers.parts(done, piece.len, |part| {
            let got = read_run(fd, part.iov_base.cast(), part.iov_len as u64, offset)?;
            done += got;
            offset += got;
            if got < part.iov_len as u64 { Err(Errno(libc::EFAULT)) } else { Ok(()) }
        });
        match result {
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => break,
            Ok(()) => {}
        }
    }
    Ok(done)
}

/// Reads a request that is in pieces. What is cached is taken at once; from the first miss on, the kernel is told of all the
/// rest before any of it is waited for, so that the devices work side by side.
#[inline(never)]
fn read_extents(file: &'static File, view: &View<'static>, buffers: &Buffers<'_>, at: u64, n: u64, flags: i32) -> Sys<u64> {
    let all = || view.extents(Logical(at), n);
    let end = reserve(file, all().map(|e| (e.target, e.plane, e.object_offset, e.len)), false)?;
    let mut waiting = end != 0;
    for extent in all() {
        if !waiting {
            if read_cached(file, buffers, &extent, at)? {
                continue;
            }
            waiting = true;
            for rest in all().filter(|e| e.object_offset != extent.object_offset || e.target != extent.target) {
                sys::fadvise(file.object(rest.target, rest.plane)?, rest.object_offset, rest.len, libc::POSIX_FADV_WILLNEED);
            }
        }
        read_extent(file, buffers, &extent, at, flags).inspect_err(|errno| faults::note(file, extent.target, *errno))?;
    }
    Ok(end)
}

/// Reads an extent if that needs no waiting; false when it does (or the file system cannot tell).
fn read_cached(file: &'static File, buffers: &Buffers<'_>, extent: &Extent<'_>, at: u64) -> Sys<bool> {
    let fd = file.object(extent.target, extent.plane)?;
    let mut complete = true;
    Batch::new(|vector, before, bytes| {
        complete = sys::preadv2(fd, vector, extent.object_offset + before, libc::RWF_NOWAIT).is_ok_and(|got| object_bytes(got) == bytes);
        Ok(complete)
    })
    .run(buffers, extent, at)?;
    Ok(complete)
}

/// Writes at `at`; returns the contiguous prefix that was written, or the error when that is nothing.
pub fn write_at(open: &OpenFile, buffers: &Buffers<'_>, at: u64, flags: i32) -> Sys<u64> {
    let file = open.writable()?;
    if buffers.len() == 0 {
        return Ok(0);
    }
    check_end(at, buffers.len())?;
    let n = limit::clip(at, buffers.len())?;
    let end_offset = at.checked_add(n).filter(|e| *e < MAX_LOGICAL).ok_or(Errno(libc::EFBIG))?;
    let what = Change { at, len: n, reach: end_offset, writes_all: true };
    let mut wrote = Wrote::default();
    let size_before = extending::change(file, what, |passed| {
        wrote = write_extents(file, passed, buffers, at, n, flags & libc::RWF_NOWAIT);
        // With nothing written the file stays as long as it is.
        let reached = if wrote.prefix > at { wrote.prefix } else { 0 };
        let leaves_bytes = wrote.some && wrote.prefix < end_offset && end_offset > passed.ctl.size();
        (Written { reached, leaves_bytes }, wrote.until_ns)
    })?;
    if wrote.prefix == at {
        return Err(wrote.error.unwrap_or(Errno(libc::ENOSPC)));
    }
    if at > size_before {
        crate::map::cover::grew(file);
    }
    open.touch(file);
    // An object's bytes alone would not be enough: the size is kept elsewhere.
    if open.is_sync() || flags & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0 {
        crate::size::sync(file, open, true)?;
    }
    Ok(wrote.prefix - at)
}

/// What became of a write.
#[derive(Default)]
struct Wrote {
    /// All before it is there.
    prefix: u64,
    /// Something is there at all.
    some: bool,
    error: Option<Errno>,
    /// Until then emulated devices are busy with it.
    until_ns: u64,
}

fn write_extents(file: &'static File, passed: &Passed, buffers: &Buffers<'_>, at: u64, n: u64, flags: i32) -> Wrote {
    let all = || passed.loaded.view.extents(Logical(at), n);
    let mut wrote = Wrote { prefix: at + n, ..Wrote::default() };
    match reserve(file, all().map(|e| (e.target, e.plane, e.object_offset, e.len)), true) {
        Ok(until_ns) => wrote.until_ns = until_ns,
        Err(errno) => return Wrote { prefix: at, error: Some(errno), ..wrote },
    }
    for extent in all() {
        let (done, result) = write_extent(file, buffers, &extent, at, flags);
        wrote.some |= done > 0;
        if done < extent.len {
            let missing = first_missing(&extent, done);
            if missing < wrote.prefix {
                wrote.prefix = missing;
                wrote.error = result.err();
            }
        }
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
