//! Companions across exec: the program's descriptor of a managed file may go along though its companion is close-on-exec, because a child
//! duplicated it onto a standard stream (in a vfork child, in posix_spawn's actions) behind our back. Access mode, O_APPEND and locks would be
//! lost with the companion, so those that are needed are let through; start-up of the new program closes what no descriptor needs.

use crate::base::process;
use crate::base::sys;
use crate::open::{self, OpenFile};
use crate::store::heads;
use core::sync::atomic::{AtomicU32, Ordering};

/// Spawns under way that let all companions through.
static SPAWNING: AtomicU32 = AtomicU32::new(0);

/// Before an exec by this process, or by its vfork child in its memory.
pub fn begin_exec() {
    if open::companions().next().is_none() {
        return;
    }
    // Only the kernel's table is right in a vfork child. What it holds is asked once per descriptor that goes along.
    let walked = sys::for_each_name(c"/proc/self/fd", |name| {
        let Some(fd) = core::str::from_utf8(name).ok().and_then(|n| n.parse::<i32>().ok()) else { return };
        if sys::fcntl(fd, libc::F_GETFD, 0) == Ok(0)
            && heads::is_programs(fd)
            && let Ok(st) = sys::fstat(fd)
        {
            let same = |companion: i32| sys::fstat(companion).is_ok_and(|c| (c.st_ino, c.st_dev) == (st.st_ino, st.st_dev));
            open::companions().filter(|(_, companion)| same(*companion)).for_each(|(open, companion)| let_through(&open, companion));
        }
    });
    if walked.is_err() {
        open::companions().for_each(|(open, companion)| let_through(&open, companion));
    }
}

/// The exec has failed: the process goes on as it was.
pub fn exec_failed() {
    restore();
}

/// Before a spawn. Without actions only descriptors that are not close-on-exec go along, and their companions are neither.
pub fn begin_spawn(rewired: bool) {
    if rewired {
        SPAWNING.fetch_add(1, Ordering::AcqRel);
        open::companions().for_each(|(open, companion)| let_through(&open, companion));
    }
}

/// After a spawn.
pub fn end_spawn(rewired: bool) {
    if rewired && SPAWNING.fetch_sub(1, Ordering::AcqRel) == 1 {
        restore();
    }
}

fn let_through(open: &OpenFile, companion: i32) {
    if sys::fcntl(companion, libc::F_GETFD, 0).is_ok_and(|flags| flags & i64::from(libc::FD_CLOEXEC) != 0)
        && sys::fcntl(companion, libc::F_SETFD, 0).is_ok()
        && !process::in_vfork_child()
    {
        open.lent.store(true, Ordering::Release);
    }
}

fn restore() {
    for (open, companion) in open::companions() {
        if !process::in_vfork_child() && open.lent.swap(false, Ordering::AcqRel) {
            let _ = sys::fcntl(companion, libc::F_SETFD, libc::FD_CLOEXEC as usize);
        }
    }
}
