//! The descriptor table that the shim looks up, and the library's own descriptors: they live high, are hidden from the program's
//! close, dup2 and close_range, and give way when the program wants their number.

use crate::base::sys::{self, Errno, Sys};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};
use stripewise_target::text::ProcPath;

/// Descriptors that the table covers; higher ones are left alone, and opens of managed files that would get one fail with EMFILE.
pub const FDS: usize = 1 << 20;
/// Entry of a plain file whose calls are recorded; the low bits are its place in the table of open files.
pub const TRACED: u32 = 0x4000_0000;
/// Beside it: the file has copies, from which reads are served.
pub const COPIED: u32 = 0x2000_0000;
/// Entry of one of the library's own descriptors.
pub const INTERNAL: u32 = 0x8000_0000;

/// What each descriptor is: 0 = not ours, else a place in the table of open files, with [`TRACED`] or [`INTERNAL`].
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static sw_fds: [AtomicU32; FDS] = [const { AtomicU32::new(0) }; FDS];

/// For each internal descriptor the word that holds its number (plus one).
static HOLDERS: [AtomicPtr<AtomicI32>; FDS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; FDS];

/// The place of an entry in the table of open files.
#[inline]
pub const fn place(entry: u32) -> u32 {
    entry & !(TRACED | COPIED)
}

/// The entry of a descriptor.
#[inline]
pub fn entry(fd: i32) -> u32 {
    usize::try_from(fd).ok().and_then(|fd| sw_fds.get(fd)).map_or(0, |e| e.load(Ordering::Acquire))
}

/// One more than the highest descriptor that ever had an entry; the limit tells nothing, for a program may lower it.
static HIGH_WATER: AtomicU32 = AtomicU32::new(0);

/// A bound on the descriptors with an entry.
pub fn high_water() -> u32 {
    HIGH_WATER.load(Ordering::Acquire)
}

/// Sets an entry, returns the one before.
pub fn set_entry(fd: i32, value: u32) -> u32 {
    if value != 0 && fd as u32 >= HIGH_WATER.load(Ordering::Relaxed) {
        HIGH_WATER.fetch_max((fd as u32).saturating_add(1).min(FDS as u32), Ordering::AcqRel);
    }
    usize::try_from(fd).ok().and_then(|fd| sw_fds.get(fd)).map_or(0, |e| e.swap(value, Ordering::AcqRel))
}

/// Limit of descriptors, as far as it was asked for: 0 = not yet, or it has changed since.
static LIMIT: AtomicU32 = AtomicU32::new(0);

/// Most descriptors that the process may have.
pub fn limit() -> usize {
    let mut known = LIMIT.load(Ordering::Relaxed);
    if known == 0 {
        known = sys::limit(libc::RLIMIT_NOFILE).min(FDS as u64) as u32;
        LIMIT.store(known, Ordering::Relaxed);
    }
    known as usize
}

/// The program may have set the limit: it is asked for anew.
pub fn limit_changed() {
    LIMIT.store(0, Ordering::Relaxed);
}

/// Where internal descriptors begin: out of the way of programs that expect small numbers, within the limit.
fn high_base() -> usize {
    limit() / 2
}

/// A second number for a descriptor, high; where none is free, none.
fn duplicate_high(fd: i32, op: i32, least: usize) -> Sys<i32> {
    let high = |least: usize| sys::fcntl(fd, op, least.max(high_base())).map(|high| high as i32);
    match high(least) {
        // The limit was lowered by a bare system call, or in another process.
        Err(Errno(libc::EINVAL)) => {
            limit_changed();
            high(least)
        }
        result => result,
    }
}

/// Moves a fresh descriptor high and registers it; `holder` keeps its number plus one (0 = none).
pub fn make_internal(fd: i32, holder: &'static AtomicI32, close_on_exec: bool) -> Sys<i32> {
    let op = if close_on_exec { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    let high = match duplicate_high(fd, op, 0) {
        Ok(high) => {
            sys::close(fd);
            high
        }
        // No number that high is free: it stays where it is.
        Err(Errno(libc::EMFILE | libc::EINVAL)) => fd,
        Err(errno) => {
            sys::close(fd);
            return Err(errno);
        }
    };
    adopt_internal(high, holder)
}

/// Registers a descriptor that already is where it should be.
pub fn adopt_internal(fd: i32, holder: &'static AtomicI32) -> Sys<i32> {
    let Some(slot) = usize::try_from(fd).ok().and_then(|fd| HOLDERS.get(fd)) else {
        sys::close(fd);
        return Err(Errno(libc::EMFILE));
    };
    slot.store(core::ptr::from_ref(holder).cast_mut(), Ordering::Release);
    set_entry(fd, INTERNAL);
    holder.store(fd + 1, Ordering::Release);
    Ok(fd)
}

/// The descriptor in a holder.
#[inline]
pub fn held(holder: &AtomicI32) -> Option<i32> {
    let fd = holder.load(Ordering::Acquire) - 1;
    (fd >= 0).then_some(fd)
}

/// Closes an internal descriptor, if there is one.
pub fn close_internal(holder: &AtomicI32) {
    if holder.load(Ordering::Acquire) == 0 {
        return;
    }
    let fd = holder.swap(0, Ordering::AcqRel) - 1;
    if fd >= 0 {
        set_entry(fd, 0);
        sys::close(fd);
    }
}

/// Moves an internal descriptor out of the way of a program that wants its number; whether there was one. Whoever read the old number still uses it.
pub fn give_way(fd: i32) -> Sys<bool> {
    let Some(slot) = usize::try_from(fd).ok().and_then(|fd| HOLDERS.get(fd)) else { return Ok(false) };
    let holder = slot.swap(core::ptr::null_mut(), Ordering::AcqRel);
    if holder.is_null() {
        return Ok(false);
    }
    let flags = sys::fcntl(fd, libc::F_GETFD, 0)?;
    let op = if flags & i64::from(libc::FD_CLOEXEC) != 0 { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    let to = duplicate_high(fd, op, fd as usize + 1)?;
    // SAFETY: holders are statics.
    adopt_internal(to, unsafe { &*holder })?;
    set_entry(fd, 0);
    Ok(true)
}

/// A second descriptor of an open file's inode, which may have no name any more.
pub fn reopen(fd: i32, flags: i32) -> Sys<i32> {
    let mut path = ProcPath::from_bytes(b"/proc/self/fd/");
    path.push_decimal(fd as u64);
    sys::open(path.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?, flags, 0)
}
