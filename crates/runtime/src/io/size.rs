//! Size, place and durability of managed files: seek, truncate, fallocate, sync.

use crate::base::sys::{self, Errno, Sys, of_target};
use crate::copies::managed;
use crate::file::File;
use crate::gate::cutting;
use crate::gate::extending::{self, Change};
use crate::gate::{self, Passed};
use crate::io::limit;
use crate::open::OpenFile;
use crate::store::part;
use core::sync::atomic::Ordering;
use std::os::fd::AsRawFd;
use stripewise_layout::{Logical, MAX_LOGICAL};
use stripewise_store::sizing::Written;
use stripewise_store::times;
use stripewise_target::interface::{Object, Target};
use stripewise_target::text::PATH_MAX;
use stripewise_target::text::{FixedPath, FixedText};

/// Flag in ctl: everything that makes the file reachable (layout, directory entries) has been made durable.
pub const FLAG_DURABLE: u64 = 4;

fn c<const N: usize>(path: &FixedText<N>) -> Sys<&core::ffi::CStr> {
    path.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))
}

/// lseek.
pub fn seek(open: &OpenFile, fd: i32, at: i64, whence: i32) -> Sys<i64> {
    let file = open.file()?;
    let offset_fd = open.offset_fd(fd);
    let size = || file.size().map(|size| size as i64);
    match whence {
        libc::SEEK_SET | libc::SEEK_CUR => sys::lseek(offset_fd, at, whence).map(|v| v as i64),
        libc::SEEK_END => {
            let to = size()?.checked_add(at).ok_or(Errno(libc::EINVAL))?;
            sys::lseek(offset_fd, to, libc::SEEK_SET).map(|v| v as i64)
        }
        libc::SEEK_DATA | libc::SEEK_HOLE => {
            let size = size()?;
            if at < 0 || at >= size {
                return Err(Errno(libc::ENXIO));
            }
            let to = find(file, at as u64, size as u64, whence == libc::SEEK_DATA)?;
            sys::lseek(offset_fd, to as i64, libc::SEEK_SET).map(|v| v as i64)
        }
        _ => Err(Errno(libc::EINVAL)),
    }
}

/// The next data (or hole) at or after `at`, looked up extent by extent in windows of the request size.
fn find(file: &'static File, at: u64, size: u64, data: bool) -> Sys<u64> {
    let passed = gate::for_read(file)?;
    let view = &passed.loaded.view;
    let mut from = at;
    while from < size {
        let region = view.region_at(Logical(from));
        let end = region.end().min(size);
        let mut best = u64::MAX;
        for extent in view.extents(Logical(from), end - from) {
            let object = file.object(extent.target, extent.plane)?;
            let stop = extent.object_offset + extent.len;
            let found = match of_target(object.next_data(extent.object_offset))? {
                Some((start, _)) if data => start,
                Some((start, end)) if start <= extent.object_offset => end,
                // Up to the object's end, and past it: a hole.
                None if data => continue,
                _ => extent.object_offset,
            };
            if found < stop {
                let mut skip = found - extent.object_offset;
                for (logical, len) in extent.pieces() {
                    if skip < len {
                        best = best.min(logical + skip);
                        break;
                    }
                    skip -= len;
                }
            }
        }
        if best != u64::MAX {
            return Ok(best);
        }
        from = end;
    }
    if data { Err(Errno(libc::ENXIO)) } else { Ok(size) }
}

/// Sets the size: shrinking drains running I/O, then cuts every object; growing makes a hole. One that fails has changed nothing.
pub fn truncate(file: &'static File, len: i64) -> Sys<()> {
    let len = u64::try_from(len).map_err(|_| Errno(libc::EINVAL))?;
    if len >= MAX_LOGICAL {
        return Err(Errno(libc::EFBIG));
    }
    let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
    // Who got the descriptor from another user, and may only read himself, has no more than a look at ctl.
    if !file.may_write() {
        return Err(Errno(libc::EACCES));
    }
    let grows = file.exclusively(|| {
        if len < file.size()? {
            return cutting::cut(file, len).map(|()| false);
        }
        cutting::settle(file, len)?;
        limit::grow(file.size()?, len)?;
        let size = file.size()?;
        let passed = gate::for_resize(file, size, len.saturating_sub(size))?;
        file.make_objects(passed.loaded, len)?;
        // Head's file system may hold no file so long: it is asked before anybody sees the size.
        mirror(file, len)?;
        ctl.raise_size(len);
        drop(passed);
        // Meanwhile another process may have given head back what was the size.
        file.mirrored.store(0, Ordering::Release);
        Ok(true)
    })?;
    crate::map::cover::grew(file);
    // A size that was cut to stands, whatever head says: the next fsync or close tries again.
    until_it_stays(file, mirror).or_else(|errno| if grows { Err(errno) } else { Ok(()) })
}

/// Mirrors the size to head at close and sync, which move no times: head keeps those that the last write, or the program, has set. Where it is open for
/// writing, by that descriptor; else without opening it, for closing it again could drop the process's POSIX locks.
pub fn mirror_size_quietly(file: &'static File, companion: Option<i32>) -> Sys<()> {
    until_it_stays(file, |file, size| mirror_quietly(file, size, companion))
}

fn until_it_stays(file: &'static File, mirror: impl Fn(&'static File, u64) -> Sys<()>) -> Sys<()> {
    loop {
        let size = file.size()?;
        mirror(file, size)?;
        // Who has set another size since may have written it to head before this one was.
        if file.size()? == size {
            return Ok(());
        }
    }
}

/// Mirrors a size to head.
fn mirror(file: &'static File, size: u64) -> Sys<()> {
    if file.mirrored.load(Ordering::Acquire) != size + 1 {
        let at = file.at()?;
        let before = at.head_stat()?.st_size as u64;
        if before < size && limit::exceeds(size) {
            // Another process, of another limit, has made it so large, and will say so.
            return Ok(());
        }
        // A size that head has already would only change its times.
        if before != size {
            sys::truncate(at.pin_head()?.path(), size).or_else(|errno| match crate::open::writing_companion(file) {
                // Rights may have changed since the file was opened.
                Some((_open, fd)) => sys::ftruncate(fd, size),
                None => Err(errno),
            })?;
        }
        file.mirrored.store(size + 1, Ordering::Release);
    }
    Ok(())
}

fn mirror_quietly(file: &'static File, size: u64, companion: Option<i32>) -> Sys<()> {
    if file.mirrored.load(Ordering::Acquire) == size + 1 {
        return Ok(());
    }
    let (at, ctl) = (file.at()?, file.ctl().ok_or(Errno(libc::EIO))?);
    let before = companion.map_or_else(|| at.head_stat(), sys::fstat)?.st_size as u64;
    if before < size && limit::exceeds(size) {
        // As above.
        return Ok(());
    }
    if before != size {
        let by_descriptor = |fd| {
            times::kept(&ctl.header().times, || {
                let before = sys::fstat(fd)?;
                sys::ftruncate(fd, size)?;
                sys::set_times_of(fd, &before);
                Ok::<(), Errno>(())
            })
        };
        let by_name = || {
            let head = at.pin_head()?;
            times::kept(&ctl.header().times, || {
                let before = sys::fstat(head.fd())?;
                sys::truncate(head.path(), size)?;
                sys::set_times(head.path(), &before);
                Ok(())
            })
        };
        match companion.map(by_descriptor) {
            Some(Ok(())) => {}
            // Open for reading only, or for neither.
            _ => by_name()?,
        }
    }
    file.mirrored.store(size + 1, Ordering::Release);
    Ok(())
}

/// Does what `mode` says on the objects' parts of `[at, stop)`.
fn allocate(file: &'static File, passed: &Passed, mode: i32, at: u64, stop: u64) -> Sys<()> {
    if at >= stop {
        return Ok(());
    }
    let punches = mode & libc::FALLOC_FL_PUNCH_HOLE != 0;
    for extent in passed.loaded.view.extents(Logical(at), stop - at) {
        let object = file.object(extent.target, extent.plane)?;
        if !punches && !crate::io::capacity::is_there(file, extent.target, &object, extent.object_offset, extent.len)? {
            return Err(Errno(libc::ENOSPC));
        }
        let object_mode = if punches { mode } else { mode & !libc::FALLOC_FL_KEEP_SIZE };
        match object.descriptor() {
            Some(fd) => sys::fallocate(fd.as_raw_fd(), object_mode, extent.object_offset, extent.len).map(|_| ())?,
            None if punches => of_target(object.punch(extent.object_offset, extent.len))?,
            // As a file system without it; the C library then writes.
            None => return Err(Errno(libc::EOPNOTSUPP)),
        }
    }
    Ok(())
}

/// fallocate; the modes that shift bytes are refused.
pub fn fallocate(open: &OpenFile, mode: i32, at: i64, len: i64) -> Sys<()> {
    // In the kernel's order: the range, the mode, then the descriptor.
    let (Ok(at), Ok(len)) = (u64::try_from(at), u64::try_from(len)) else { return Err(Errno(libc::EINVAL)) };
    if len == 0 {
        return Err(Errno(libc::EINVAL));
    }
    let keep = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
    match mode & !libc::FALLOC_FL_KEEP_SIZE {
        0 | libc::FALLOC_FL_ZERO_RANGE => {}
        libc::FALLOC_FL_PUNCH_HOLE if keep => {}
        _ => return Err(Errno(libc::EOPNOTSUPP)),
    }
    let file = open.writable()?;
    let end = at.checked_add(len).filter(|e| *e < MAX_LOGICAL).ok_or(Errno(libc::EFBIG))?;
    // Blocks beyond the end would be lost at the next move, and are no part of the file: with KEEP_SIZE only what is inside is touched.
    let what = Change { at, len, reach: if keep { 0 } else { end }, writes_all: false };
    let mut result = Ok(());
    extending::change(file, what, |passed| {
        let size = passed.ctl.size();
        let stop = if keep { end.min(size) } else { end };
        let makes_zeros = mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0;
        result = limit::grow(size, stop)
            .and_then(|()| if makes_zeros { managed::invalidate(file, at, len) } else { Ok(()) })
            .and_then(|()| allocate(file, passed, mode, at, stop));
        let reached = if result.is_ok() && !keep { end } else { 0 };
        (Written { reached, leaves_bytes: result.is_err() && stop > size }, 0)
    })?;
    result?;
    crate::map::cover::grew(file);
    open.touch(file);
    Ok(())
}

/// fsync: every object that holds this file's bytes, then its size; the first time also whatever leads to it.
pub fn sync(file: &'static File, open: &OpenFile, data_only: bool) -> Sys<()> {
    // A power cut's recovery takes the longest object for the file's end.
    cutting::settle_all(file)?;
    let passed = gate::for_read(file)?;
    for (target, plane) in passed.loaded.objects() {
        if let Some(object) = file.object_if_made(passed.loaded, target, plane)? {
            let flushed = if data_only { object.sync_data() } else { object.sync() };
            of_target(flushed).inspect_err(|errno| crate::io::faults::note(file, target, *errno))?;
        }
    }
    drop(passed);
    sync_names(file, open.companion())
}

/// Makes the size durable, through a descriptor of head that is open anyway (opening head and closing it would drop the process's POSIX
/// locks), and the first time whatever leads to the file.
pub fn sync_names(file: &'static File, head_fd: Option<i32>) -> Sys<()> {
    if !file.may_write() {
        return Ok(());
    }
    let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
    let header = ctl.header();
    // Objects first, then the size that says that they are there.
    let made = header.objects_made.load(Ordering::SeqCst);
    if header.flags.load(Ordering::SeqCst) & FLAG_DURABLE == 0 || header.objects_durable.load(Ordering::SeqCst) < made {
        make_reachable(file)?;
        header.objects_durable.fetch_max(made, Ordering::SeqCst);
        header.flags.fetch_or(FLAG_DURABLE, Ordering::SeqCst);
    }
    mirror_size_quietly(file, head_fd)?;
    head_fd.map_or(Ok(()), |fd| sys::fsync(fd, false).map(|_| ()))
}

fn fsync_path<const N: usize>(path: &FixedText<N>, flags: i32) -> Sys<()> {
    let fd = sys::open(c(path)?, libc::O_RDONLY | flags, 0)?;
    let result = sys::fsync(fd, false);
    sys::close(fd);
    result.map(|_| ())
}

fn make_reachable(file: &'static File) -> Sys<()> {
    let (at, store) = (file.at()?, file.store()?);
    let owner = at.head_stat()?.st_uid;
    for part in [c"layout", c"link"] {
        let (fd, _) = match at.open_part(part, libc::O_RDONLY, owner, u64::MAX) {
            // Another process is making the file, and has not begun to record its name yet.
            Err(Errno(libc::ENOENT)) if part == c"link" => continue,
            opened => opened?,
        };
        let flushed = sys::fsync(fd, false);
        sys::close(fd);
        flushed?;
    }
    at.sync()?;
    part::sync_dir(store.files_dir()?)?;
    let view = &file.current()?.view;
    for target in (0..view.target_count()).filter(|t| view.uses_target(*t)) {
        of_target(store.target(target)?.any().sync())?;
    }
    // The directory of the name: recorded in `link` as "dev ino path".
    let mut text = [0u8; PATH_MAX + 64];
    let text = match at.read_part(c"link", &mut text) {
        Err(Errno(libc::ENOENT)) => &[],
        text => text?,
    };
    if let Some(start) = text.iter().position(|b| *b == b'/')
        && let Some(name) = text.get(start..)
        && let Some(slash) = name.iter().rposition(|b| *b == b'/')
    {
        let parent = FixedPath::from_bytes(name.get(..slash.max(1)).unwrap_or(b"/"));
        // The name may have moved since; then its new directory was synced by whoever moved it, or is not ours to care for.
        let _ = fsync_path(&parent, libc::O_DIRECTORY);
    }
    Ok(())
}
