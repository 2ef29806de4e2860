//! Managed files opened: their descriptors are made here.

use super::using::DESCRIPTOR;
use super::{ACCESS_NONE, COMPANION_FLAGS, OpenFile, SETTABLE_FLAGS, STATUS_FLAGS, claim};
use crate::base::process;
use crate::base::sys::{self, Errno, Sys};
use crate::fds;
use crate::file::{self, File};
use crate::io::size;
use crate::store::Attached;
use core::sync::atomic::Ordering;

/// Opens file `id` of `store` as the program asked; returns its descriptor.
pub fn open_managed(store: &'static Attached, id: u64, flags: i32) -> Sys<i32> {
    open_managed_if(store, id, flags, || Ok(()))
}

/// The same where `check`, which has the parts of the file at hand, finds nothing against it.
pub fn open_managed_if(store: &'static Attached, id: u64, flags: i32, check: impl FnOnce() -> Sys<()>) -> Sys<i32> {
    if flags & libc::O_DIRECTORY != 0 {
        return Err(Errno(libc::ENOTDIR));
    }
    process::refuse_vfork_child()?;
    let index = file::acquire_to_open(store, id)?;
    let result = check().and_then(|()| open_acquired(index, flags));
    if result.is_err() {
        file::release(index);
    }
    result
}

/// The same for a file that this caller has acquired; takes the reference over when it succeeds.
pub fn open_acquired(index: u32, flags: i32) -> Sys<i32> {
    let file = file::get(index).ok_or(Errno(libc::EIO))?;
    let at = file.at()?;
    let (place, open) = claim()?;
    let result = (|| {
        let close_on_exec = flags & libc::O_CLOEXEC != 0;
        let mut path_only = flags & libc::O_PATH != 0;
        if !path_only {
            if file.locked.load(Ordering::Relaxed) {
                // Moving it would close a descriptor of head, and with it go all POSIX locks of this process.
                fds::adopt_internal(at.open_head(flags & (COMPANION_FLAGS | libc::O_CLOEXEC))?, &open.companion)?
            } else {
                fds::make_internal(at.open_head(flags & COMPANION_FLAGS | libc::O_CLOEXEC)?, &open.companion, close_on_exec)?
            };
            let fd = open.companion().ok_or(Errno(libc::EBADF))?;
            if flags & libc::O_DIRECT != 0 {
                // Only shown by F_GETFL. Not every file system has it, and none needs to.
                let _ = sys::fcntl(fd, libc::F_SETFL, (flags & SETTABLE_FLAGS) as usize);
            }
            file.widen();
            if file.is_foreign() {
                file.prime();
            }
            if flags & libc::O_ACCMODE != libc::O_RDONLY && !file.may_write() {
                return Err(Errno(libc::EACCES));
            }
            // Known from here on, for those who need a descriptor that may write head.
            open.file.store(index + 1, Ordering::Release);
        }
        let truncates = !path_only && flags & libc::O_TRUNC != 0;
        let cloexec = flags & libc::O_CLOEXEC;
        let fd = match at.open_head(cloexec | if path_only { libc::O_PATH } else { ACCESS_NONE | flags & STATUS_FLAGS }) {
            Err(Errno(libc::EACCES | libc::EROFS | libc::EPERM)) if !path_only => {
                path_only = true;
                at.open_head(cloexec | libc::O_PATH)
            }
            result => result,
        }?;
        if fd as usize >= fds::FDS {
            sys::close(fd);
            return Err(Errno(libc::EMFILE));
        }
        open.tag(place, fd, flags);
        open.file.store(index + 1, Ordering::Relaxed);
        open.flags.store(flags, Ordering::Relaxed);
        open.path_only.store(path_only, Ordering::Relaxed);
        // Last of all: an open that fails, for want of descriptors say, has taken nothing away.
        if truncates {
            open.truncate(file, flags).inspect_err(|_| sys::close(fd))?;
        }
        Ok(fd)
    })();
    match result {
        Ok(fd) => {
            fds::set_entry(fd, place);
        }
        Err(_) => {
            // The file's reference is the caller's.
            open.file.store(0, Ordering::Relaxed);
            open.give_back(place, DESCRIPTOR);
        }
    }
    result
}

impl OpenFile {
    /// O_TRUNC.
    fn truncate(&self, file: &'static File, flags: i32) -> Sys<()> {
        if flags & libc::O_ACCMODE == libc::O_RDONLY {
            // SAFETY: a valid C string.
            unsafe { sys::faccessat_raw(libc::AT_FDCWD, file.at()?.pin_head()?.path().as_ptr(), libc::W_OK, libc::AT_EACCESS)? };
        }
        size::truncate(file, 0)?;
        self.touch_now(file);
        Ok(())
    }
}
