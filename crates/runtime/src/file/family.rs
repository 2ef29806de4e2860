//! Locks of an open file that parent and child have together. A child of fork opens control words and directory of its files once more, or what it locks
//! there its parent would have locked, too. A process that has given up the right to do that (a daemon after setuid; a user whose file another has made
//! read-only) makes, before it forks, a file in memory that all its descendants lock first, each by a descriptor of its own: it keeps them apart, and the
//! lock that they share keeps everybody else away.

use super::{File, held};
use crate::base::sys::{self, Errno, Sys};
use crate::fds;
use crate::store::part::{self, At, Held};
use core::sync::atomic::Ordering;
use stripewise_target::text::ProcPath;

impl File {
    /// In the parent, whose child will try to open the file once more: makes what it needs where it may not.
    fn make_family(&'static self) {
        if self.may_write() && held(&self.family).is_none() && !self.may_open_again() {
            let _ = sys::memfd(c"stripewise-family").and_then(|fd| fds::make_internal(fd, &self.family, true));
        }
    }

    /// Asked only of another user's file: one's own can be opened, whatever its mode.
    fn may_open_again(&self) -> bool {
        let user = sys::geteuid();
        let Ok(ctl) = self.ctl_fd().and_then(sys::fstat) else { return false };
        let opens = |at: &At| part::readable_dir(at.dir).is_ok() && at.open_ctl(libc::O_RDWR, ctl.st_uid).map(|(fd, _)| Held::from_raw(fd)).is_ok();
        user == 0 || user == ctl.st_uid || self.at().is_ok_and(|at| opens(&at))
    }

    /// In the child: its locks are its own, or those of a family.
    pub(super) fn join_or_leave_family(&'static self) {
        if self.own_locks().is_ok() {
            fds::close_internal(&self.family);
            self.has_parents_locks.store(false, Ordering::Release);
            self.lines.reset();
            return;
        }
        self.has_parents_locks.store(true, Ordering::Release);
        self.lines.inherit();
        if let Some(family) = held(&self.family) {
            let mut path = ProcPath::from_bytes(b"/proc/self/fd/");
            path.push_decimal(family as u64);
            let own = path.as_c_str().ok_or(Errno(libc::ENAMETOOLONG)).and_then(|path| sys::open(path, libc::O_RDWR, 0));
            match own {
                Ok(own) => {
                    let _ = sys::dup3(own, family, libc::O_CLOEXEC);
                    sys::close(own);
                }
                Err(_) => fds::close_internal(&self.family),
            }
        }
    }

    /// Whether the lock on ctl that says who has the file open may be another process's as well.
    pub(super) fn shares_locks(&self) -> bool {
        self.has_parents_locks.load(Ordering::Acquire) || held(&self.family).is_some()
    }

    /// Whether this process may take lines for extending writes: not where another would take its lock for its own.
    pub fn may_own_lines(&self) -> bool {
        !self.shares_locks()
    }

    /// The lock that comes before the directory's; `None` for a process without family.
    ///
    /// # Errors
    /// `EMFILE` when the fork found no descriptor for the child's own locks: it must not do what takes them.
    pub(super) fn family_lock(&self) -> Sys<Option<i32>> {
        match held(&self.family) {
            None if self.has_parents_locks.load(Ordering::Acquire) => Err(Errno(libc::EMFILE)),
            family => Ok(family),
        }
    }
}

/// Before a fork, in the parent.
pub fn before_fork() {
    super::forget_idle();
    super::table::each_open(File::make_family);
}
