//! A hole at the end of an object is no trouble for read, but a map of it is SIGBUS where a plain file has zeros. So the objects of a mapped file
//! are as long as its size asks for, no longer (recovery takes the size from them), and stay so when the file grows by leaving a hole. Objects that cannot
//! be mapped are none of that.

use crate::base::sys::{self, Errno, Sys};
use crate::file::File;
use crate::gate::cutting::drained;
use crate::map::records;
use core::sync::atomic::Ordering;
use std::os::fd::AsRawFd;
use stripewise_target::interface::Object;

/// Flag in ctl: some process has mapped the file in this boot. A hint to look for pins; it stays.
pub const FLAG_MAPPED: u64 = 0x100;

/// Extends all objects to the size; false when this process may not.
pub fn cover(file: &'static File) -> Sys<bool> {
    let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
    if file.may_write() {
        // Before the size is read: whoever grows the file then sees the flag, or we see the size.
        ctl.header().flags.fetch_or(FLAG_MAPPED, Ordering::SeqCst);
    }
    let (mut is_short, mut may_extend) = (false, true);
    each_short(file, |fd, _| {
        is_short = true;
        may_extend &= sys::fcntl(fd, libc::F_GETFL, 0)? as i32 & libc::O_ACCMODE == libc::O_RDWR;
        Ok(())
    })?;
    if !is_short {
        return Ok(true);
    }
    if !may_extend || !file.may_write() {
        return Ok(false);
    }
    extend(file)?;
    Ok(true)
}

fn extend(file: &'static File) -> Sys<()> {
    file.exclusively(|| {
        let mut refused = false;
        // The last byte is allocated, not cut to: a write further out may be under way.
        each_short(file, |fd, end| {
            refused |= sys::fallocate(fd, 0, end - 1, 1).is_err();
            Ok(())
        })?;
        if !refused {
            return Ok(());
        }
        drained(file, || each_short(file, |fd, end| sys::ftruncate(fd, end).map(|_| ())))
    })
}

/// Calls `each` with every object that is shorter than the size asks for, and the length it should have.
fn each_short(file: &'static File, mut each: impl FnMut(i32, u64) -> Sys<()>) -> Sys<()> {
    let size = file.size()?;
    let loaded = file.current()?;
    for (target, plane) in loaded.objects() {
        let object = file.object_if_made(loaded, target, plane)?;
        let Some(fd) = object.as_ref().and_then(Object::descriptor).map(|fd| fd.as_raw_fd()) else { continue };
        let end = loaded.view.end_of(target, plane, size);
        if (sys::fstat(fd)?.st_size as u64) < end {
            each(fd, end)?;
        }
    }
    Ok(())
}

/// The file has grown and may have a hole: whoever maps it must find zeros there.
pub fn grew(file: &'static File) {
    let was_mapped = file.ctl().is_some_and(|ctl| ctl.header().flags.load(Ordering::SeqCst) & FLAG_MAPPED != 0);
    if was_mapped && records::is_pinned(file) {
        let _ = cover(file);
    }
}
