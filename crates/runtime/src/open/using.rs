//! Calls at open files. One holds what it works on for as long as it lasts: of the last descriptor's close and the last call's end the later one closes the
//! file, as in the kernel. A call that its thread leaves by siglongjmp, or by ending in it, is noticed at that thread's next one, or at its end.

use super::{OpenFile, of_entry};
use crate::base::sys::{Errno, Sys};
use crate::base::tls::{self, Thread, is_left_behind, stack_here};
use crate::copies;
use crate::fds::{self, INTERNAL, TRACED};
use crate::file;
use crate::gate::{cutting, epoch};
use crate::io::size;
use crate::store;
use core::ops::Deref;
use core::sync::atomic::Ordering;

/// In an open file's count: one descriptor that refers to it.
pub(super) const DESCRIPTOR: u64 = 1;
/// One call that works on it.
pub(super) const CALL: u64 = 1 << 32;
/// The last reference is going: taken, but to be used by nobody.
const CLOSING: u64 = u64::MAX;

/// An open file, held for a call.
pub struct Use {
    open: &'static OpenFile,
    place: u32,
    /// This thread's block names it, so that it is found if the call is left behind.
    is_noted: bool,
}

/// The open file of a managed descriptor, held for the call that this begins.
#[inline]
pub fn of_fd(fd: i32) -> Sys<Use> {
    forget_left_behind();
    let mut held = another(fd)?;
    held.is_noted = note(held.place);
    Ok(held)
}

/// The same for a second descriptor of one call.
#[inline]
pub fn another(fd: i32) -> Sys<Use> {
    hold(fd, |entry| entry & (TRACED | INTERNAL) == 0)
}

/// The open file of a plain descriptor whose reads are served from copies, held for the call that this begins.
pub fn of_copied(fd: i32) -> Sys<Use> {
    forget_left_behind();
    let mut held = hold(fd, |entry| entry & (fds::COPIED | INTERNAL) == fds::COPIED)?;
    held.is_noted = note(held.place);
    Ok(held)
}

#[inline]
fn hold(fd: i32, is_wanted: impl Fn(u32) -> bool) -> Sys<Use> {
    loop {
        let entry = fds::entry(fd);
        if entry == 0 || !is_wanted(entry) {
            return Err(Errno(libc::EBADF));
        }
        let open = of_entry(entry).ok_or(Errno(libc::EBADF))?;
        let held = open.take(CALL).then(|| Use { open, place: fds::place(entry), is_noted: false });
        // Before it was held its place may have become another's.
        if fds::entry(fd) == entry {
            return held.ok_or(Errno(libc::EBADF));
        }
    }
}

/// All open files, each held while it is looked at.
pub(super) fn all() -> impl Iterator<Item = Use> {
    super::used().filter(|(_, open)| open.take(CALL)).map(|(place, open)| Use { open, place, is_noted: false })
}

impl Use {
    /// Whether `fd` still refers to it: a thread that closes the descriptor under a call may have opened another file there.
    pub fn is_behind(&self, fd: i32) -> bool {
        fds::place(fds::entry(fd)) == self.place
    }
}

impl Deref for Use {
    type Target = OpenFile;

    #[inline]
    fn deref(&self) -> &OpenFile {
        self.open
    }
}

impl Drop for Use {
    #[inline]
    fn drop(&mut self) {
        // Before it is given back: a reference that is lost in between keeps the file open, one that is given back twice would close it under another.
        if self.is_noted {
            forget(self.place);
        }
        self.open.give_back(self.place, CALL);
    }
}

/// Ends the call that this thread has left behind, if it has: what it held is given back.
#[inline]
pub fn forget_left_behind() {
    for lock in [copies::table_lock(), file::table_lock(), store::attach_lock()] {
        lock.abandon_if_left();
    }
    // SAFETY: this thread's own block.
    let me = unsafe { &mut *tls::thread() };
    if me.using != 0 && is_left_behind(me.using_stack) {
        end(me);
    }
}

/// The thread ends, and with it the call that it may be in.
pub fn thread_exit() {
    // SAFETY: as above.
    let me = unsafe { &mut *tls::thread() };
    if me.using != 0 {
        end(me);
    }
}

#[cold]
fn end(me: &mut Thread) {
    let place = core::mem::take(&mut me.using) as u32;
    let Some(open) = of_entry(place) else { return };
    epoch::leave_behind();
    file::table_lock().abandon();
    open.offset_lock.abandon();
    if let Ok(file) = open.file() {
        file.abandon_locks();
    }
    // Closed by nobody else: this thread's was the last reference.
    if open.refs.load(Ordering::Acquire) == CLOSING { open.close(place) } else { open.give_back(place, CALL) }
}

/// Notes that this thread works on a file, if it does not on another; whether it does now.
#[inline]
fn note(place: u32) -> bool {
    // SAFETY: this thread's own block.
    let me = unsafe { &mut *tls::thread() };
    if me.using != 0 {
        return false;
    }
    if me.line == 0 {
        epoch::watch_thread();
    }
    me.using_stack = stack_here();
    me.using = u64::from(place);
    true
}

/// It works on that file no longer.
#[inline]
pub(super) fn forget(place: u32) {
    // SAFETY: as above.
    let me = unsafe { &mut *tls::thread() };
    if me.using == u64::from(place) {
        me.using = 0;
    }
}

/// In a forked child: only this thread's call goes on.
pub(super) fn after_fork() {
    // SAFETY: as above.
    let own = unsafe { (*tls::thread()).using };
    for (place, open) in super::used() {
        let calls = if u64::from(place) == own { CALL } else { 0 };
        let left = match open.refs.load(Ordering::Acquire) {
            CLOSING => 0,
            refs => refs % CALL + calls,
        };
        open.refs.store(left, Ordering::Release);
        if left == 0 {
            open.give_up(place);
        }
    }
}

impl OpenFile {
    /// Takes one more reference; false where there is none any more.
    #[inline]
    pub(super) fn take(&self, what: u64) -> bool {
        let more = |refs: u64| (refs != 0 && refs != CLOSING).then(|| refs + what);
        self.refs.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// Gives one back. With the last one the file is closed, by exactly one of those who do so at the same moment.
    #[inline]
    pub(super) fn give_back(&'static self, place: u32, what: u64) {
        let fewer = |refs: u64| match refs {
            0 | CLOSING => None,
            // Taken by a thread that is not there any more after a fork.
            refs if what == CALL && refs < CALL => None,
            refs if refs == what => Some(CLOSING),
            refs => Some(refs - what),
        };
        if self.refs.fetch_update(Ordering::AcqRel, Ordering::Acquire, fewer) == Ok(what) {
            self.close(place);
        }
    }

    /// Closes it: what the last of its references leaves is in order.
    #[cold]
    fn close(&'static self, place: u32) {
        // Left in here, it is closed all the same.
        note(place);
        if let Ok(file) = self.file()
            && self.flags() & libc::O_ACCMODE != libc::O_RDONLY
            && file.may_write()
        {
            // What a killed one left must not count as the file's after a power cut; what cannot be done now is done before the file grows.
            let _ = cutting::settle_all(file);
            let _ = size::mirror_size_quietly(file, self.companion());
        }
        self.give_up(place);
    }

    /// Whether a single descriptor refers to it.
    pub(super) fn has_one_descriptor(&self) -> bool {
        self.refs.load(Ordering::Acquire) % CALL == 1
    }
}

/// One more descriptor refers to the open file of `entry`; false where it is being closed.
pub fn retain(entry: u32) -> bool {
    of_entry(entry).is_some_and(|open| open.take(DESCRIPTOR))
}

/// One descriptor less.
pub fn release(entry: u32) {
    if let Some(open) = of_entry(entry) {
        open.give_back(fds::place(entry), DESCRIPTOR);
    }
}
