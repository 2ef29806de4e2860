//! Epochs: entering and leaving an I/O so that movers and truncating processes know when nobody is inside any more.

use crate::base::sys::Sys;
use crate::base::tls::{Thread, is_left_behind, stack_here, thread};
use crate::store::{self, Attached};
use core::sync::atomic::{AtomicU64, Ordering};
use stripewise_store::slot::SLOT_LINES;
use stripewise_target::time::now_ns;

unsafe extern "C" {
    fn sw_watch_thread();
}

/// Lines in use, one bit each.
static LINES: [AtomicU64; SLOT_LINES / 64] = [const { AtomicU64::new(0) }; SLOT_LINES / 64];

/// Inside an I/O until dropped.
pub struct Inside {
    store: &'static Attached,
    line: usize,
    kind: Kind,
}

#[derive(PartialEq)]
#[repr(usize)] // A byte's padding would be copied in pieces that the processor cannot forward.
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

/// This thread's block as a signal handler between any two steps may find or leave it: nothing of it is kept in registers.
struct Block(*mut Thread);

impl Block {
    fn depth(&self) -> u64 {
        // SAFETY: this thread's own block.
        unsafe { (&raw const (*self.0).depth).read_volatile() }
    }

    fn set_depth(&self, depth: u64) {
        // SAFETY: as above.
        unsafe { (&raw mut (*self.0).depth).write_volatile(depth) };
    }

    fn stack(&self) -> u64 {
        // SAFETY: as above.
        unsafe { (&raw const (*self.0).stack).read_volatile() }
    }

    fn store(&self) -> u64 {
        // SAFETY: as above.
        unsafe { (&raw const (*self.0).store).read_volatile() }
    }

    /// This thread's line; one is taken at its first I/O.
    fn line(&self) -> usize {
        // SAFETY: as above.
        let me = unsafe { &mut *self.0 };
        if me.line == 0 {
            watch_thread();
        }
        me.line as usize - 1
    }

    /// Says that the I/O of the frame at `stack` is the outermost.
    fn take(&self, stack: u64, store: &Attached) {
        // SAFETY: as above.
        unsafe {
            (&raw mut (*self.0).store).write_volatile(store.index as u64);
            (&raw mut (*self.0).stack).write_volatile(stack);
        }
        self.set_depth(1);
    }
}

/// Enters an I/O on a store. A frame that siglongjmp or cancellation left behind is recognised by the stack having shrunk past it.
///
/// A signal handler may come between any two of these steps, and do I/O of its own. One that finds no I/O takes the block over, and leaves the line when
/// it is done: then the outer frame, which the loop shows that another stack is noted, enters once more. One that finds the outer frame's I/O but the line
/// not entered yet, or left already, enters it for as long as its own lasts.
///
/// # Errors
/// Those of making a slot in a forked child. Without one a mover would not wait for us, and take the bytes away that we are at.
#[inline(always)] // As `gate::for_read`.
pub fn enter(store: &'static Attached) -> Sys<Inside> {
    // Before anything of this thread's is looked at: in a child that has not noticed its fork yet, this makes a new slot.
    let slot = store.slot()?;
    let stack = stack_here();
    let me = Block(thread());
    let line = me.line();
    if me.depth() > 0 && is_left_behind(me.stack()) {
        me.set_depth(0);
    }
    let depth = me.depth();
    if depth == 0 {
        me.take(stack, store);
        slot.enter(line);
        while me.stack() != stack {
            me.take(stack, store);
            slot.enter_again(line);
        }
        return Ok(Inside { store, line, kind: Kind::Outermost });
    }
    me.set_depth(depth + 1);
    let kind = if me.store() != store.index as u64 {
        slot.enter(SLOT_LINES - 1);
        Kind::NestedElsewhere
    } else if slot.is_inside(line) {
        Kind::Nested
    } else {
        slot.enter(line);
        Kind::Outermost
    };
    Ok(Inside { store, line, kind })
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        // In a child that a signal handler has forked there may be none any more.
        if let Some(slot) = self.store.slot_if_any() {
            match self.kind {
                Kind::Outermost => slot.leave(self.line),
                Kind::NestedElsewhere => slot.leave(SLOT_LINES - 1),
                Kind::Nested => {}
            }
        }
        let me = Block(thread());
        me.set_depth(me.depth().saturating_sub(1));
    }
}

/// Whether this thread is inside an I/O: then this is a signal handler on top of it.
pub fn is_inside() -> bool {
    let me = Block(thread());
    me.depth() > 0 && !is_left_behind(me.stack())
}

/// This thread's line, past the last one when it has none of its own.
pub fn own_line() -> usize {
    // SAFETY: only this thread touches its block.
    let me = unsafe { &*thread() };
    match me.line as usize {
        0 | SLOT_LINES => SLOT_LINES,
        line => line - 1,
    }
}

/// Waits until every other thread of this process has left the I/O that it is in now; false when one stays for `patience_ns`.
pub fn quiesce(patience_ns: u64) -> bool {
    let (until, own) = (now_ns() + patience_ns, own_line());
    // Only lines that were taken: a thread takes its own before it enters its first I/O. The last one is everybody's, and no bit's.
    let words = || LINES.iter().map(|word| word.load(Ordering::SeqCst)).enumerate().filter(|(_, bits)| *bits != 0);
    let of_word = |(number, bits): (usize, u64)| (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| number * 64 + bit);
    let lines = || words().flat_map(of_word).chain([SLOT_LINES - 1]);
    store::all()
        .filter_map(Attached::slot_if_any)
        .all(|slot| slot.wait_until_left(lines().filter(|line| *line != own), || now_ns() < until, || true).is_ok())
}

/// Gives this thread a line, which it keeps until it ends.
#[cold]
pub fn watch_thread() {
    // SAFETY: only this thread touches its block.
    unsafe { (*thread()).line = take_line() as u64 + 1 };
    // SAFETY: registers this thread's exit.
    unsafe { sw_watch_thread() };
}

/// Leaves the I/O whose frame this thread has left behind.
pub fn leave_behind() {
    // SAFETY: only this thread touches its block.
    let me = unsafe { &mut *thread() };
    if me.depth > 0 && me.line > 0 && is_left_behind(me.stack) {
        leave_for_good(me, me.line as usize - 1);
    }
}

/// Gives this thread's line back when it ends.
pub fn thread_exit() {
    // SAFETY: only this thread touches its block.
    let me = unsafe { &mut *thread() };
    if me.line > 0 {
        let line = me.line as usize - 1;
        if me.depth > 0 {
            leave_for_good(me, line);
        }
        me.line = 0;
        if line < SLOT_LINES - 1
            && let Some(word) = LINES.get(line / 64)
        {
            word.fetch_and(!(1 << (line % 64)), Ordering::AcqRel);
        }
    }
}

/// Ended inside an I/O, by pthread_exit in a signal handler or by cancellation: nobody else would leave it, and whoever waits would wait for ever.
fn leave_for_good(me: &mut Thread, line: usize) {
    me.depth = 0;
    if let Some(slot) = store::get(me.store as usize).and_then(Attached::slot_if_any)
        && slot.is_inside(line)
    {
        slot.leave(line);
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
    me.tid = 0;
}
