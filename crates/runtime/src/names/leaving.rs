//! Names that go.

use super::{Managed, find};
use crate::base::sys;
use core::ffi::CStr;

/// A name that is about to go (unlinked, or replaced by a rename): its link is held open, so that afterwards the kernel says whether it
/// was the last one.
pub struct Leaving {
    managed: Managed,
    link: i32,
}

impl Leaving {
    /// Holds the link of a name, if it is a managed file's and no copy.
    ///
    /// # Safety
    /// `path` is a C string or null.
    pub unsafe fn hold(dirfd: i32, path: *const libc::c_char) -> Option<Self> {
        // SAFETY: the caller's promise.
        let managed = unsafe { find(dirfd, path, false) }.ok()??;
        if managed.is_copy() != Ok(false) {
            return None;
        }
        // SAFETY: found, so not null.
        let link = sys::openat(dirfd, unsafe { CStr::from_ptr(path) }, libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC, 0).ok()?;
        if sys::fstat(link).is_ok_and(|st| st.st_ino == managed.link) {
            return Some(Self { managed, link });
        }
        sys::close(link);
        None
    }

    /// The file.
    pub fn managed(&self) -> Managed {
        self.managed
    }

    /// After the call: with the last name the file goes, else one name less is shown.
    pub fn settle(&self) {
        let left = sys::fstat(self.link).map(|st| st.st_nlink);
        // Not while a link of it lies where its own was recorded: then this one was none.
        if left == Ok(0) && self.managed.recorded_link().is_none() {
            return self.managed.discard();
        }
        self.managed.status_changed();
        if let Ok(left @ 1..) = left {
            self.managed.show_names(left);
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        sys::close(self.link);
    }
}
