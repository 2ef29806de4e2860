//! Names that go.

use super::{Managed, shows_file, store_behind};
use crate::base::sys::{self, Errno, Sys};
use crate::file;
use core::ffi::CStr;
use stripewise_store::names;
use stripewise_target::text::PATH_MAX;

/// How often a name is looked at that others change meanwhile.
const LOOKS: u32 = 100;

/// What a name was found to be.
enum Look {
    Held(Leaving),
    /// No managed file's, or a copy.
    Nothing,
    /// Another one by now.
    Changed,
}

/// A name that is about to go (unlinked, or replaced by a rename): its link is held open, so that afterwards the kernel says whether it
/// was the last one. So is the file, where it is: what frees its bytes must not fail once the name is gone.
pub struct Leaving {
    managed: Managed,
    link: i32,
    file: Option<u32>,
}

impl Leaving {
    /// Holds the link of a name, if it is a managed file's and no copy.
    ///
    /// # Errors
    /// `ENOENT` where nothing has that name: what others put there meanwhile is not to go unheld. `EMFILE` and its kin: nothing has gone yet.
    ///
    /// # Safety
    /// `path` is a C string or null, or no good address.
    pub unsafe fn hold(dirfd: i32, path: *const libc::c_char) -> Sys<Option<Self>> {
        for _ in 0..LOOKS {
            // SAFETY: the caller's promise.
            match unsafe { Self::look(dirfd, path)? } {
                Look::Held(leaving) => return Ok(Some(leaving)),
                Look::Nothing => return Ok(None),
                Look::Changed => {}
            }
        }
        Ok(None)
    }

    /// One look at the name: others may make and remove it at the same time, and what goes then is to be what was held.
    ///
    /// # Safety
    /// As [`Leaving::hold`].
    unsafe fn look(dirfd: i32, path: *const libc::c_char) -> Sys<Look> {
        // SAFETY: the caller's promise; it was read where there is a link.
        if path.is_null() || unsafe { !is_managed(dirfd, path)? } {
            return Ok(Look::Nothing);
        }
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(path) };
        let link = match sys::openat(dirfd, name, libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC, 0) {
            Err(errno) if is_shortage(errno) || errno == Errno(libc::ENOENT) => return Err(errno),
            Err(_) => return Ok(Look::Nothing),
            Ok(link) => link,
        };
        let held = of_link(link).and_then(|managed| match managed {
            Some(managed) if !managed.is_copy()? => Ok(Some(managed)),
            _ => Ok(None),
        });
        let mut leaving = match held {
            Ok(Some(managed)) => Self { managed, link, file: None },
            other => {
                let is_gone = sys::fstat(link).is_ok_and(|st| st.st_nlink == 0);
                sys::close(link);
                return match other {
                    // Whoever removed it has freed its file already.
                    Err(Errno(libc::ENOENT)) if is_gone => Ok(Look::Changed),
                    Err(errno) if is_shortage(errno) => Err(errno),
                    // What cannot be asked, for want of rights say, is the kernel's to refuse.
                    _ => Ok(Look::Nothing),
                };
            }
        };
        if leaving.managed.names == 1 {
            leaving.file = match file::acquire(leaving.managed.store, leaving.managed.id) {
                Err(errno) if is_shortage(errno) => return Err(errno),
                acquired => acquired.ok(),
            };
        }
        // It takes a moment to hold all that.
        Ok(if leaving.managed.is_still_at(dirfd, name) { Look::Held(leaving) } else { Look::Changed })
    }

    /// The file.
    pub fn managed(&self) -> Managed {
        self.managed
    }

    /// After the call: with the last name the file goes, else one name less is shown.
    pub fn settle(mut self) {
        let left = sys::fstat(self.link).map(|st| st.st_nlink);
        // Not while a link of it lies where its own was recorded: then this one was none.
        if left == Ok(0) && self.managed.recorded_link().is_none() {
            return self.managed.discard(self.file.take());
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
        if let Some(index) = self.file {
            file::release(index);
        }
    }
}

fn is_shortage(Errno(errno): Errno) -> bool {
    matches!(errno, libc::EMFILE | libc::ENFILE | libc::ENOMEM)
}

/// # Safety
/// As [`Leaving::hold`].
#[inline(never)] // Its buffer would lie on the stack below what is done after it.
unsafe fn is_managed(dirfd: i32, path: *const libc::c_char) -> Sys<bool> {
    let mut text = [core::mem::MaybeUninit::uninit(); PATH_MAX];
    // SAFETY: the kernel checks.
    match unsafe { sys::readlinkat_raw(dirfd, path, &mut text) } {
        Ok(target) => Ok(names::parse_link(target).is_some()),
        Err(errno @ Errno(libc::ENOENT)) => Err(errno),
        Err(_) => Ok(false),
    }
}

/// The file that a link leads to, which is held.
#[inline(never)] // As above.
fn of_link(link: i32) -> Sys<Option<Managed>> {
    let mut text = [0u8; PATH_MAX];
    let Some((store, id)) = names::parse_link(sys::readlinkat(link, c"", &mut text)?) else { return Ok(None) };
    let Some(store) = store_behind(store, false)? else { return Ok(None) };
    let st = sys::fstat(link)?;
    Ok(shows_file(store, id, st.st_uid).then(|| Managed::behind_link(store, id, &st)))
}
