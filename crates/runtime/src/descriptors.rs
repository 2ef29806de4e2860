//! Descriptors: close, dup, close_range, fcntl and locks, as the program sees them. The library's own descriptors do not exist for it.

use crate::base::process::in_vfork_child;
use crate::base::sys::{self, Errno, Sys};
use crate::fds::{self, INTERNAL, TRACED, entry, set_entry};
use crate::file;
use crate::gate::epoch;
use crate::open::{self, OpenFile};
use crate::store::heads;
use crate::trace;
use core::sync::atomic::Ordering;

unsafe extern "C" {
    fn sw_real_close(fd: i32) -> i64;
    fn sw_real_fcntl(fd: i32, op: i32, arg: usize) -> i64;
}

/// How long a number that changes its meaning is kept for threads that may just be using it.
const QUIESCE_NS: u64 = 100_000_000;
const F_SETSIG: i32 = 10;
const F_GETSIG: i32 = 11;
/// Signals are numbered up to this.
const SIGNAL_MAX: usize = 64;

/// Flags that the companion is not opened with, and that the program sees all the same.
const KEPT_FLAGS: i32 = libc::O_NOFOLLOW | libc::O_DIRECT;

fn is_internal(fd: i32) -> bool {
    entry(fd) & INTERNAL != 0
}

fn real_close(fd: i32) -> Sys<i64> {
    // SAFETY: the C library's close.
    sys::from_c(unsafe { sw_real_close(fd) })
}

pub fn close(fd: i32) -> Sys<i64> {
    if is_internal(fd) {
        return Err(Errno(libc::EBADF));
    }
    if in_vfork_child() {
        return real_close(fd);
    }
    let before = set_entry(fd, 0);
    let timer = trace::begin();
    open::forget_left_behind();
    if before & TRACED == 0 && before != 0 {
        open::release(before);
    }
    let result = real_close(fd);
    trace::closed(before, fd, &result, timer);
    if before & TRACED != 0 {
        open::release(before);
    }
    result
}

/// close_range; with CLOSE_RANGE_CLOEXEC nothing is closed now.
pub fn close_range(first: u32, last: u32, flags: u32) -> Sys<i64> {
    if first > last {
        return Err(Errno(libc::EINVAL));
    }
    let only_mark = flags & libc::CLOSE_RANGE_CLOEXEC != 0;
    let mut gap = first;
    let mut fd = first;
    while fd <= last && fd < fds::high_water() {
        let e = entry(fd as i32);
        if e != 0 {
            if gap < fd {
                sys::close_range(gap, fd - 1, flags)?;
            }
            gap = fd + 1;
            // The library's own stay: exec closes those that are marked, and start-up drops companions that nobody needs.
            if e & INTERNAL == 0 {
                if only_mark {
                    let _ = fcntl(fd as i32, libc::F_SETFD, libc::FD_CLOEXEC as usize);
                } else {
                    let _ = close(fd as i32);
                }
            }
        }
        fd += 1;
    }
    if gap <= last { sys::close_range(gap, last, flags) } else { Ok(0) }
}

pub fn dup(fd: i32) -> Sys<i64> {
    fcntl(fd, libc::F_DUPFD, 0)
}

/// dup2 (`flags` -1) and dup3.
pub fn dup3(fd: i32, to: i32, flags: i32) -> Sys<i64> {
    if is_internal(fd) {
        return Err(Errno(libc::EBADF));
    }
    if fd == to {
        return if flags == -1 { sys::fcntl(fd, libc::F_GETFD, 0).map(|_| i64::from(to)) } else { Err(Errno(libc::EINVAL)) };
    }
    if in_vfork_child() {
        return sys::dup3(fd, to, flags.max(0));
    }
    if is_internal(to) && file::freeing_idle(|| if is_internal(to) { fds::give_way(to) } else { Ok(false) })? {
        // Whoever read the old number finishes first.
        epoch::quiesce(QUIESCE_NS);
    }
    let from = entry(fd);
    if from != 0 && !open::retain(from) {
        return Err(Errno(libc::EBADF));
    }
    // The old file behind `to` must be let go before its descriptor closes, and its number must not be used meanwhile.
    let before = set_entry(to, 0);
    match sys::dup3(fd, to, flags.max(0)) {
        Ok(_) => {
            if before != 0 {
                open::release(before);
            }
            set_entry(to, from);
            mirror_cloexec(from, flags.max(0) & libc::O_CLOEXEC != 0);
            Ok(i64::from(to))
        }
        Err(errno) => {
            set_entry(to, before);
            if from != 0 {
                open::release(from);
            }
            Err(errno)
        }
    }
}

fn mirror_cloexec(entry: u32, close_on_exec: bool) {
    if entry != 0
        && entry & TRACED == 0
        && let Some(open) = open::of_entry(entry)
    {
        open.mirror_close_on_exec(close_on_exec);
    }
}

/// The C library has put other files behind 0, 1 and 2, past the hooks (daemon, login_tty, forkpty): what they were ends here.
pub fn rewired() {
    for fd in 0..=2 {
        let before = entry(fd);
        let is_other = match before & TRACED {
            0 => !heads::is_programs(fd),
            _ => sys::fstat(fd).is_ok_and(|st| st.st_mode & libc::S_IFMT != libc::S_IFREG),
        };
        if before != 0 && before & INTERNAL == 0 && is_other {
            set_entry(fd, 0);
            open::release(before);
        }
    }
}

pub fn fcntl(fd: i32, op: i32, arg: usize) -> Sys<i64> {
    let e = entry(fd);
    if e & INTERNAL != 0 {
        return Err(Errno(libc::EBADF));
    }
    // SAFETY: the C library's fcntl; `arg` is what the program gave.
    let plain = || sys::from_c(unsafe { sw_real_fcntl(fd, op, arg) });
    if matches!(op, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        if e == 0 || in_vfork_child() {
            return plain();
        }
        // Another thread may be closing it.
        if !open::retain(e) {
            return Err(Errno(libc::EBADF));
        }
        let to = file::freeing_idle(plain).inspect_err(|_| open::release(e))?;
        set_entry(to as i32, e);
        mirror_cloexec(e, op == libc::F_DUPFD_CLOEXEC);
        return Ok(to);
    }
    if e == 0 || e & TRACED != 0 {
        return plain();
    }
    managed_fcntl(&*open::of_fd(fd)?, fd, op, arg)
}

fn managed_fcntl(open: &OpenFile, fd: i32, op: i32, arg: usize) -> Sys<i64> {
    let Some(companion) = open.companion() else { return sys::fcntl(fd, op, arg) };
    match op {
        libc::F_SETFD => {
            let result = sys::fcntl(fd, op, arg);
            if !in_vfork_child() {
                open.mirror_close_on_exec(arg & libc::FD_CLOEXEC as usize != 0);
            }
            result
        }
        libc::F_GETFD => sys::fcntl(fd, op, arg),
        libc::F_GETFL => {
            // The companion's flags are the program's, but for what concerns only the name, or is ignored.
            // We open everything with O_NOFOLLOW.
            sys::fcntl(companion, op, 0).map(|flags| flags & !i64::from(libc::O_NOFOLLOW) | i64::from(open.flags() & KEPT_FLAGS))
        }
        libc::F_SETFL => {
            let arg = arg & !(libc::O_ASYNC as usize);
            let result = match sys::fcntl(companion, op, arg) {
                // The directory's file system has no O_DIRECT; nothing is lost, for it is only shown.
                Err(Errno(libc::EINVAL)) => sys::fcntl(companion, op, arg & !(libc::O_DIRECT as usize)),
                result => result,
            }?;
            // The program's own descriptor shows them, too, should the companion get lost.
            let _ = sys::fcntl(fd, op, arg & (libc::O_APPEND | libc::O_NONBLOCK) as usize);
            let now = sys::fcntl(companion, libc::F_GETFL, 0)? as i32 & !libc::O_NOFOLLOW;
            open.set_flags(now | open.flags() & (libc::O_CLOEXEC | libc::O_NOFOLLOW) | arg as i32 & libc::O_DIRECT);
            Ok(result)
        }
        // Files send no signals: it is only to be read again.
        F_GETSIG => Ok(i64::from(open.signal.load(Ordering::Relaxed))),
        F_SETSIG if arg > SIGNAL_MAX => Err(Errno(libc::EINVAL)),
        F_SETSIG => {
            open.signal.store(arg as i32, Ordering::Relaxed);
            Ok(0)
        }
        libc::F_SETLK | libc::F_SETLKW | libc::F_GETLK | libc::F_OFD_SETLK | libc::F_OFD_SETLKW | libc::F_OFD_GETLK => {
            let timer = trace::begin();
            let result = lock(open, fd, companion, op, arg);
            trace::lock(fd, op, arg, &result, timer);
            result
        }
        _ => sys::fcntl(companion, op, arg),
    }
}

/// Byte-range locks are those of head, taken through the companion. Ranges that count from the offset or the end are made
/// absolute first: the companion's offset and head's size are not the file's.
fn lock(open: &OpenFile, fd: i32, companion: i32, op: i32, arg: usize) -> Sys<i64> {
    // SAFETY: fcntl's contract: the argument of a lock command points to a struct flock.
    let mut range = unsafe { crate::base::memory::copy_in(arg as *const libc::flock)? };
    let base = match i32::from(range.l_whence) {
        libc::SEEK_CUR => sys::lseek(open.offset_fd(fd), 0, libc::SEEK_CUR)? as i64,
        libc::SEEK_END => open.file()?.size()? as i64,
        libc::SEEK_SET => 0,
        _ => return Err(Errno(libc::EINVAL)),
    };
    range.l_start = range.l_start.checked_add(base).ok_or(Errno(libc::EOVERFLOW))?;
    range.l_whence = libc::SEEK_SET as i16;
    let result = sys::fcntl(companion, op, &raw mut range as usize)?;
    if matches!(op, libc::F_SETLK | libc::F_SETLKW) && i32::from(range.l_type) != libc::F_UNLCK {
        open.file()?.locked.store(true, Ordering::Relaxed);
    }
    if matches!(op, libc::F_GETLK | libc::F_OFD_GETLK) {
        // SAFETY: as above; it was good a moment ago.
        let asked = unsafe { &mut *(arg as *mut libc::flock) };
        if i32::from(range.l_type) == libc::F_UNLCK {
            asked.l_type = range.l_type;
        } else {
            *asked = range;
        }
    }
    Ok(result)
}

/// flock, on the companion: it belongs to the open file, not to the process.
pub fn flock(fd: i32, op: i32) -> Sys<i64> {
    if is_internal(fd) {
        return Err(Errno(libc::EBADF));
    }
    let open = open::of_fd(fd)?;
    sys::flock(open.companion().ok_or(Errno(libc::EBADF))?, op)
}
