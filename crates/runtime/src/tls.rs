//! The per-thread block in the shim's initial-exec storage, and epochs: entering and leaving an I/O so that movers and
//! truncating processes know when nobody is inside any more.

use crate::store::{self, Store};
use crate::sys;
use core::sync::atomic::{AtomicU64, Ordering};
use stripewise_store::devices::now_ns;
use stripewise_store::slot::SLOT_LINES;

/// `struct sw_thread` of the shim.
#[repr(C, align(16))]
pub struct Thread {
    /// The trace's log.
    pub log: [u8; 256],
    /// Line in the slots, plus one; 0 = none yet.
    line: u64,
    /// I/Os that this thread is inside (more than one in signal handlers).
    depth: u64,
    /// Stack pointer at the outermost entry.
    stack: u64,
    /// Store of the outermost entry.
    store: u64,
    /// Locks that this thread holds around a fork, one bit each.
    pub held: u64,
    spare: [u64; 3],
}

unsafe extern "C" {
    fn sw_thread() -> *mut Thread;
    fn sw_watch_thread();
}

/// Lines in use, one bit each.
static LINES: [AtomicU64; SLOT_LINES / 64] = [const { AtomicU64::new(0) }; SLOT_LINES / 64];

/// This thread's block.
#[inline]
pub fn thread() -> *mut Thread {
    // SAFETY: returns the address of a thread-local object.
    unsafe { sw_thread() }
}

/// Inside an I/O until dropped.
pub struct Inside {
    store: &'static Store,
    line: usize,
    kind: Kind,
}

#[derive(PartialEq)]
enum Kind {
    Outermost,
    Nested,
    NestedElsewhere,
}

fn take_line() -> usize {
    for (i, word) in LINES.iter().enumerate() {
        let mut used = word.load(Ordering::Relaxed);
        while used != u64::MAX {
            let bit = used.trailing_ones();
            match word.compare_exchange_weak(used, used | 1 << bit, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    let line = i * 64 + bit as usize;
                    // The last line is shared by all threads that got none.
                    return line.min(SLOT_LINES - 1);
                }
                Err(seen) => used = seen,
            }
        }
    }
    SLOT_LINES - 1
}

/// About where this thread's stack ends now.
#[inline(always)]
pub fn stack_here() -> u64 {
    let here = 0u8;
    &raw const here as u64
}

/// Whether the frame that was at `stack` is gone, by siglongjmp or cancellation, and this is no signal handler on top of it. A handler on the
/// same stack begins below the kernel's record of a signal, which is longer than `RECORD`; one on a stack of its own the kernel knows.
#[cold]
#[inline(never)]
pub fn is_left_behind(stack: u64) -> bool {
    const RECORD: u64 = 512;
    stack_here() + RECORD > stack && !sys::on_alternate_stack()
}

/// Enters an I/O on a store. A frame that siglongjmp or cancellation left behind is recognised by the stack having shrunk past it.
#[inline]
pub fn enter(store: &'static Store) -> Inside {
    // Before anything of this thread's is looked at: in a child that has not noticed its fork yet, this makes a new slot.
    let slot = store.slot();
    let stack = stack_here();
    // SAFETY: only this thread touches its block.
    let me = unsafe { &mut *thread() };
    if me.line == 0 {
        me.line = take_line() as u64 + 1;
        // SAFETY: registers this thread's exit.
        unsafe { sw_watch_thread() };
    }
    let line = me.line as usize - 1;
    if me.depth > 0 && is_left_behind(me.stack) {
        me.depth = 0;
    }
    let kind = if me.depth == 0 {
        me.stack = stack;
        me.store = store.index as u64;
        slot.enter(line);
        Kind::Outermost
    } else if me.store == store.index as u64 {
        Kind::Nested
    } else {
        slot.enter(SLOT_LINES - 1);
        Kind::NestedElsewhere
    };
    me.depth += 1;
    Inside { store, line, kind }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        match self.kind {
            Kind::Outermost => self.store.slot().leave(self.line),
            Kind::NestedElsewhere => self.store.slot().leave(SLOT_LINES - 1),
            Kind::Nested => {}
        }
        // SAFETY: only this thread touches its block.
        let me = unsafe { &mut *thread() };
        me.depth = me.depth.saturating_sub(1);
    }
}

/// This thread's line, past the last one when it has none.
pub fn own_line() -> usize {
    // SAFETY: only this thread touches its block.
    let me = unsafe { &*thread() };
    if me.line == 0 { SLOT_LINES } else { me.line as usize - 1 }
}

/// Waits until every other thread of this process has left the I/O that it is in now; false when one stays for `patience_ns`.
pub fn quiesce(patience_ns: u64) -> bool {
    let until = now_ns() + patience_ns;
    store::all().all(|store| match store.slot_if_any() {
        Some(slot) => slot.wait_until_left(own_line(), || now_ns() < until, || true).is_ok(),
        None => true,
    })
}

/// Gives this thread's line back when it ends.
pub fn thread_exit() {
    // SAFETY: only this thread touches its block.
    let me = unsafe { &mut *thread() };
    if me.line > 0 {
        let line = me.line as usize - 1;
        me.line = 0;
        if line < SLOT_LINES - 1
            && let Some(word) = LINES.get(line / 64)
        {
            word.fetch_and(!(1 << (line % 64)), Ordering::AcqRel);
        }
    }
}

/// In a forked child only this thread is left.
pub fn after_fork() {
    // SAFETY: only this thread touches its block.
    let me = unsafe { &mut *thread() };
    for word in &LINES {
        word.store(0, Ordering::Relaxed);
    }
    me.depth = 0;
    me.line = 0;
    me.held = 0;
}
