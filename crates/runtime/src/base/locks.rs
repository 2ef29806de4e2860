//! Locks between processes, as `stripewise_store::locks` has them, by raw system calls. None waits while a lock of this process is held that all its threads
//! need: who cannot have a lock there says so ([`IN_USE`]), gives up what he holds, and comes again ([`patiently`]).

use crate::base::log;
use crate::base::sys::{self, Errno, Sys};
use stripewise_store::locks::{How, is_taken, range};
use stripewise_target::time::{now_ns, sleep_until};

/// Another process has it for itself: one of this user's, or of one whom he trusts. Never leaves the library.
pub const IN_USE: Errno = Errno(512);
/// The same, and it may be one of a user who has the right to, but whom this process need not wait for.
pub const IN_USE_BY_OTHERS: Errno = Errno(513);
/// How long is waited for such a one.
const OTHERS_NS: u64 = 30_000_000_000;
/// The first wait, and the longest.
const PAUSE_NS: [u64; 2] = [50_000, 10_000_000];

fn ask(fd: i32, op: i32, how: How, byte: i64) -> Sys<libc::flock> {
    let mut lock = range(how, byte);
    sys::fcntl(fd, op, &raw mut lock as usize).map(|_| lock)
}

/// Locks a byte; false when another has it.
pub fn take(fd: i32, how: How, byte: i64) -> Sys<bool> {
    match ask(fd, libc::F_OFD_SETLK, how, byte) {
        Err(Errno(libc::EAGAIN | libc::EACCES)) => Ok(false),
        taken => taken.map(|_| true),
    }
}

/// Unlocks a byte.
pub fn give_back(fd: i32, byte: i64) -> Sys<()> {
    let lock = libc::flock { l_type: libc::F_UNLCK as i16, ..range(How::Shared, byte) };
    sys::fcntl(fd, libc::F_OFD_SETLK, &raw const lock as usize).map(|_| ())
}

/// Unlocks all bytes.
pub fn give_all_back(fd: i32) -> Sys<()> {
    let lock = libc::flock { l_type: libc::F_UNLCK as i16, l_start: 0, l_len: 0, ..range(How::Shared, 0) };
    sys::fcntl(fd, libc::F_OFD_SETLK, &raw const lock as usize).map(|_| ())
}

/// Whether another has a lock on a byte that is in the way of one like this; where that cannot be asked, he has.
pub fn is_in_the_way(fd: i32, how: How, byte: i64) -> bool {
    ask(fd, libc::F_OFD_GETLK, how, byte).map_or(true, |found| is_taken(&found))
}

/// What to say of something of this owner and mode that another process has for itself: those who may write it can hold it.
pub fn in_use(owner: u32, mode: u32, trusted: u32) -> Errno {
    let is_trusted = mode & 0o022 == 0 && [0, sys::geteuid(), trusted].contains(&owner);
    if is_trusted { IN_USE } else { IN_USE_BY_OTHERS }
}

/// Waits for the exclusive flock of a descriptor that another process has ([`in_use`]).
///
/// # Errors
/// `EAGAIN` for what others have had for too long.
#[cold]
pub fn wait_for_flock(fd: i32, whose: Errno, name: &[u8]) -> Sys<()> {
    // The kernel knows no wait for a flock that ends by the clock; in the queue of those who are trusted, everybody gets his turn.
    let (how, until_ns) = if whose == IN_USE { (libc::LOCK_EX, u64::MAX) } else { (libc::LOCK_EX | libc::LOCK_NB, now_ns() + OTHERS_NS) };
    let [pause_ns, _] = PAUSE_NS;
    loop {
        match sys::flock(fd, how) {
            Err(Errno(libc::EINTR)) => {}
            Err(Errno(libc::EWOULDBLOCK)) if now_ns() > until_ns => return Err(too_long(name)),
            Err(Errno(libc::EWOULDBLOCK)) => sleep_until(now_ns() + pause_ns),
            locked => return locked.map(|_| ()),
        }
    }
}

fn too_long(name: &[u8]) -> Errno {
    log::say(b"another user's process has had this locked for 30 s; it is not waited for any longer", name);
    Errno(libc::EAGAIN)
}

/// Does `attempt` again until nobody else has what it needs.
///
/// # Errors
/// `EAGAIN` for what others have had for too long.
pub fn patiently<T>(name: &[u8], mut attempt: impl FnMut() -> Sys<T>) -> Sys<T> {
    let [mut pause_ns, longest_ns] = PAUSE_NS;
    let mut begun_ns = 0;
    loop {
        let errno = match attempt() {
            Err(errno @ (IN_USE | IN_USE_BY_OTHERS)) => errno,
            result => return result,
        };
        begun_ns = if begun_ns == 0 { now_ns() } else { begun_ns };
        if errno == IN_USE_BY_OTHERS && now_ns() > begun_ns + OTHERS_NS {
            return Err(too_long(name));
        }
        // Not ended by a signal: of the calls that come here most know no EINTR.
        sleep_until(now_ns() + pause_ns);
        pause_ns = (pause_ns * 2).min(longest_ns);
    }
}
