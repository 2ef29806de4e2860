//! Writes and allocations that extend a file. Before its first byte goes behind the end each notes in a line of ctl what it is going to write, so that a
//! kill before the size is raised leaves word of it. A line belongs to the process that has the lock of its byte, which ends with the process: a note
//! whose line nobody locks is a dead one's, and whoever would show those bytes by growing the file takes them away first. The order of the steps is
//! `stripewise_store::sizing`'s.

use crate::cutting;
use crate::file::File;
use crate::gate::{self, Passed};
use crate::locks;
use crate::sys::{Errno, Sys};
use crate::tls;
use core::sync::atomic::{AtomicU64, Ordering};
use stripewise_store::ctl::Ctl;
use stripewise_store::devices::sleep_until;
use stripewise_store::locks::{How, LINES_AT};
use stripewise_store::sizing::{self, ABANDONED, Extender, Extension, LINES, Note, Sizes, Written};

/// The line of whoever has the file's exclusive lock: for those who find no other free.
const LOCKED_LINE: usize = 0;
const WORDS: usize = LINES.div_ceil(64);

/// What this process knows of the lines of a file.
pub struct Lines {
    /// Lines whose lock it has, one bit each.
    owned: [AtomicU64; WORDS],
    /// Lines whose lock a parent has by a description that it shares with this process, to which they look free.
    relatives: [AtomicU64; WORDS],
    /// Lines that a thread is using.
    busy: [AtomicU64; WORDS],
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
    fn free(&self, line: usize) {
        if let Some(user) = self.users.get(line) {
            user.thread.store(0, Ordering::Relaxed);
        }
        Self::clear(&self.busy, line);
    }

    fn note_user(&self, line: usize) {
        if let Some(user) = self.users.get(line) {
            user.set();
        }
    }

    fn has(words: &[AtomicU64; WORDS], line: usize) -> bool {
        words.get(line / 64).is_some_and(|word| word.load(Ordering::SeqCst) >> (line % 64) & 1 == 1)
    }

    fn set(words: &[AtomicU64; WORDS], line: usize) -> bool {
        words.get(line / 64).is_some_and(|word| word.fetch_or(1 << (line % 64), Ordering::SeqCst) >> (line % 64) & 1 == 0)
    }

    fn clear(words: &[AtomicU64; WORDS], line: usize) {
        if let Some(word) = words.get(line / 64) {
            word.fetch_and(!(1 << (line % 64)), Ordering::SeqCst);
        }
    }

    /// A line of this process's that no thread is using, and in which nothing stands.
    fn take(&self, ctl: &Ctl) -> Option<usize> {
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

fn byte_of(line: usize) -> i64 {
    LINES_AT + line as i64
}

/// Whether a process that may write the file has a line: readers can lock its byte, too, but not so.
fn is_locked(file: &File, line: usize) -> bool {
    file.ctl_fd().is_ok_and(|fd| locks::is_in_the_way(fd, How::Shared, byte_of(line)))
}

/// Whether the writer of a line's note lives. Of the one who wrote with the exclusive lock only its next holder can tell: he finds that it was not him.
pub fn is_alive(file: &File, line: usize) -> bool {
    if line == LOCKED_LINE || Lines::has(&file.lines.owned, line) {
        return Lines::has(&file.lines.busy, line);
    }
    Lines::has(&file.lines.relatives, line) || is_locked(file, line)
}

/// Lines that a reader keeps locked before no more are tried.
const REFUSALS: u32 = 4;

/// Takes a line for this process, to keep until it closes the file; false when all are taken. Under the exclusive lock, or two would ask for one.
#[cold]
fn claim(file: &'static File) -> Sys<bool> {
    let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
    if !file.may_write() {
        return Err(Errno(libc::EACCES));
    }
    if !file.may_own_lines() {
        return Ok(false);
    }
    let mut refused = 0;
    file.exclusively(|| {
        for line in (1..LINES).filter(|line| !Lines::has(&file.lines.owned, *line)) {
            if is_locked(file, line) {
                continue;
            }
            if !sizing::is_claimable(&ctl, line) {
                continue;
            }
            // What it tells of is the file's by now.
            ctl.set_note(line, Note::default());
            if locks::take(file.ctl_fd()?, How::Exclusive, byte_of(line))? {
                ctl.header().lines_used.fetch_max(line as u64 + 1, Ordering::SeqCst);
                Lines::set(&file.lines.owned, line);
                return Ok(true);
            }
            // A reader keeps it from everybody, and probably all others as well: line 0 will do.
            refused += 1;
            if refused == REFUSALS {
                break;
            }
        }
        Ok(false)
    })
}

/// What a change asks for.
#[derive(Clone, Copy)]
pub struct Change {
    /// First byte.
    pub at: u64,
    /// Bytes.
    pub len: u64,
    /// The file is to reach here; 0 when it is not to grow.
    pub reach: u64,
    /// All that growing shows from `at` on is written by this change.
    pub writes_all: bool,
}

struct Extending<'a, W> {
    file: &'static File,
    passed: &'a Passed,
    work: &'a mut W,
    busy_until_ns: u64,
}

impl<W: FnMut(&Passed) -> (Written, u64)> Extender for Extending<'_, W> {
    type Error = Errno;

    #[inline]
    fn make(&mut self, size: u64) -> Sys<()> {
        self.file.make_objects(self.passed.loaded, size)
    }

    fn is_alive(&mut self, line: usize) -> bool {
        is_alive(self.file, line)
    }

    #[inline]
    fn write(&mut self) -> Written {
        let (written, until_ns) = (self.work)(self.passed);
        self.busy_until_ns = until_ns;
        written
    }
}

/// Makes a change inside the epoch with the layout in force: `work` says what it has written, and until when devices are busy with it. Returns the size
/// before.
///
/// # Errors
/// Those of the gate, and of settling what dead ones left where the file is to grow.
pub fn change(file: &'static File, what: Change, mut work: impl FnMut(&Passed) -> (Written, u64)) -> Sys<u64> {
    match attempt(file, what, false, &mut work)? {
        Some(size_before) => Ok(size_before),
        // All lines are others'.
        None => file.exclusively(|| attempt(file, what, true, &mut work)?.ok_or(Errno(libc::EIO))),
    }
}

/// The same; `None` when there is no line, and the exclusive lock is asked for (`has_lock`).
#[inline]
fn attempt(file: &'static File, what: Change, has_lock: bool, work: &mut impl FnMut(&Passed) -> (Written, u64)) -> Sys<Option<u64>> {
    loop {
        let (from, len) = sizing::touched(file.size()?, what.at, what.len, what.reach);
        let passed = gate::for_write(file, from, len)?;
        let ctl = passed.ctl;
        let size_before = file.size()?;
        if what.reach <= size_before {
            let (_, until_ns) = work(&passed);
            sleep_until(until_ns);
            return Ok(Some(size_before));
        }
        let Some(line) = file.lines.take(&ctl).or_else(|| if has_lock { take_locked(file, &ctl) } else { None }) else {
            drop(passed);
            if !has_lock && !claim(file)? {
                return Ok(None);
            }
            if has_lock {
                clear_locked(file)?;
            }
            continue;
        };
        let shows = if what.writes_all { what.at } else { what.reach };
        let extension = Extension { line, note: Note { start: what.at, end: what.reach }, shows };
        let mut extending = Extending { file, passed: &passed, work: &mut *work, busy_until_ns: 0 };
        let extended = sizing::extend(&ctl, &extension, &mut extending).inspect_err(|_| file.lines.free(line))?;
        let Some(written) = extended else {
            drop(passed);
            file.lines.free(line);
            cutting::settle(file, shows)?;
            continue;
        };
        sleep_until(extending.busy_until_ns);
        drop(passed);
        if written.leaves_bytes {
            take_back(file, &ctl, line);
        }
        file.lines.free(line);
        return Ok(Some(size_before));
    }
}

/// After a change that failed half way: objects end where the size says. Where that cannot be now, the note goes on telling of it, and that its
/// writer lives no longer counts.
#[cold]
fn take_back(file: &'static File, ctl: &Ctl, line: usize) {
    if file.exclusively(|| cutting::trim(file)).is_err() {
        let note = ctl.note(line);
        ctl.set_note(line, Note { end: note.end | ABANDONED, ..note });
    }
}

/// The line of whoever has the exclusive lock, if nothing stands in it.
fn take_locked(file: &File, ctl: &Ctl) -> Option<usize> {
    if ctl.note(LOCKED_LINE).end != 0 || !Lines::set(&file.lines.busy, LOCKED_LINE) {
        return None;
    }
    file.lines.note_user(LOCKED_LINE);
    ctl.header().lines_used.fetch_max(1, Ordering::SeqCst);
    Some(LOCKED_LINE)
}

/// Makes it free, under that lock: one who died with it has left a note, or a write below this signal handler is using it.
#[cold]
fn clear_locked(file: &'static File) -> Sys<()> {
    if Lines::has(&file.lines.busy, LOCKED_LINE) { Err(Errno(libc::EDEADLK)) } else { cutting::settle(file, u64::MAX) }
}
