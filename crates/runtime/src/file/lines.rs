//! What this process knows of the lines of a file's ctl: which are its own, which a thread is using (`extending.rs` has the rules).

use super::File;
use crate::base::locks;
use crate::base::tls;
use core::sync::atomic::{AtomicU64, Ordering};
use stripewise_store::ctl::Ctl;
use stripewise_store::locks::{How, LINES_AT};
use stripewise_store::sizing::{self, ABANDONED, LINES, Note, Sizes as _};

/// The line of whoever has the file's exclusive lock: for those who find no other free.
pub const LOCKED_LINE: usize = 0;
const WORDS: usize = LINES.div_ceil(64);

/// What this process knows of the lines of a file.
pub struct Lines {
    /// Lines whose lock it has, one bit each.
    pub owned: [AtomicU64; WORDS],
    /// Lines whose lock a parent has by a description that it shares with this process, to which they look free.
    pub relatives: [AtomicU64; WORDS],
    /// Lines that a thread is using.
    pub busy: [AtomicU64; WORDS],
    /// Which thread, and where on its stack, for each line.
    users: [User; LINES],
    /// Who has the exclusive lock and is in the middle of a cut.
    draining: User,
}

/// A frame that uses something, until it gives it back or is left by siglongjmp.
struct User {
    thread: AtomicU64,
    stack: AtomicU64,
}

impl User {
    const fn none() -> Self {
        Self { thread: AtomicU64::new(0), stack: AtomicU64::new(0) }
    }

    fn set(&self) {
        self.stack.store(tls::stack_here(), Ordering::Relaxed);
        self.thread.store(tls::thread() as u64, Ordering::Relaxed);
    }

    fn is_this_thread(&self) -> bool {
        self.thread.load(Ordering::Relaxed) == tls::thread() as u64
    }

    /// The frame is one of this thread's, and is gone.
    fn is_left_behind(&self) -> bool {
        self.is_this_thread() && tls::is_left_behind(self.stack.load(Ordering::Relaxed))
    }
}

impl Lines {
    /// None of them.
    pub const fn new() -> Self {
        Self {
            owned: [const { AtomicU64::new(0) }; WORDS],
            relatives: [const { AtomicU64::new(0) }; WORDS],
            busy: [const { AtomicU64::new(0) }; WORDS],
            users: [const { User::none() }; LINES],
            draining: User::none(),
        }
    }

    /// The locks are gone, with the descriptor or because this is a child.
    pub fn reset(&self) {
        self.owned.iter().chain(&self.busy).chain(&self.relatives).for_each(|word| word.store(0, Ordering::Relaxed));
        self.draining.thread.store(0, Ordering::Relaxed);
    }

    /// This is a child whose locks are its parent's: the parent's lines are its relatives', and it has none.
    pub fn inherit(&self) {
        for (relatives, owned) in self.relatives.iter().zip(&self.owned) {
            relatives.fetch_or(owned.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
        self.busy.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.draining.thread.store(0, Ordering::Relaxed);
    }

    /// Whoever has the exclusive lock begins or ends a cut.
    pub fn set_draining(&self, draining: bool) {
        if draining { self.draining.set() } else { self.draining.thread.store(0, Ordering::Relaxed) }
    }

    /// Whether a frame below this one, which a signal handler has interrupted, is in the middle of a cut. One of another thread is over: the lock is ours.
    pub fn is_draining_below(&self) -> bool {
        self.draining.is_this_thread() && !self.draining.is_left_behind()
    }

    /// Lines that frames of this thread were using when they were left by siglongjmp are free again. What they were writing nobody goes on with: their
    /// notes count as dead ones'.
    #[cold]
    fn take_from_left_behind(&self, ctl: &Ctl) {
        for line in (0..LINES).filter(|line| Self::has(&self.busy, *line)) {
            if self.users.get(line).is_some_and(User::is_left_behind) {
                let note = ctl.note(line);
                if note.end != 0 {
                    ctl.set_note(line, Note { end: note.end | ABANDONED, ..note });
                }
                self.free(line);
            }
        }
    }

    /// Nobody uses a line any more. First nobody's, then free: a signal handler in between must not take it for one that was left behind.
    pub fn free(&self, line: usize) {
        if let Some(user) = self.users.get(line) {
            user.thread.store(0, Ordering::Relaxed);
        }
        Self::clear(&self.busy, line);
    }

    pub fn note_user(&self, line: usize) {
        if let Some(user) = self.users.get(line) {
            user.set();
        }
    }

    pub fn has(words: &[AtomicU64; WORDS], line: usize) -> bool {
        words.get(line / 64).is_some_and(|word| word.load(Ordering::SeqCst) >> (line % 64) & 1 == 1)
    }

    pub fn set(words: &[AtomicU64; WORDS], line: usize) -> bool {
        words.get(line / 64).is_some_and(|word| word.fetch_or(1 << (line % 64), Ordering::SeqCst) >> (line % 64) & 1 == 0)
    }

    pub fn clear(words: &[AtomicU64; WORDS], line: usize) {
        if let Some(word) = words.get(line / 64) {
            word.fetch_and(!(1 << (line % 64)), Ordering::SeqCst);
        }
    }

    /// A line of this process's that no thread is using, and in which nothing stands.
    pub fn take(&self, ctl: &Ctl) -> Option<usize> {
        if self.busy.iter().any(|word| word.load(Ordering::Relaxed) != 0) {
            self.take_from_left_behind(ctl);
        }
        for (number, (owned, busy)) in self.owned.iter().zip(&self.busy).enumerate() {
            let mut free = owned.load(Ordering::Relaxed) & !busy.load(Ordering::Relaxed);
            while free != 0 {
                let line = number * 64 + free.trailing_zeros() as usize;
                if Self::set(&self.busy, line) {
                    self.note_user(line);
                    // What an abandoned one tells of may be the file's by now.
                    if ctl.note(line).end == 0 || sizing::is_claimable(ctl, line) {
                        ctl.set_note(line, Note::default());
                        return Some(line);
                    }
                    self.free(line);
                }
                free &= free - 1;
            }
        }
        None
    }
}

/// The byte of ctl whose lock is a line's.
pub fn byte_of(line: usize) -> i64 {
    LINES_AT + line as i64
}

impl File {
    /// Whether a process that may write the file has a line: readers can lock its byte, too, but not so.
    pub fn is_line_locked(&self, line: usize) -> bool {
        self.ctl_fd().is_ok_and(|fd| locks::is_in_the_way(fd, How::Shared, byte_of(line)))
    }

    /// Whether the writer of a line's note lives. Of the one who wrote with the exclusive lock only its next holder can tell: he finds that it was not him.
    pub fn is_line_alive(&self, line: usize) -> bool {
        if line == LOCKED_LINE || Lines::has(&self.lines.owned, line) {
            return Lines::has(&self.lines.busy, line);
        }
        Lines::has(&self.lines.relatives, line) || self.is_line_locked(line)
    }
}
