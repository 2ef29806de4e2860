//! Writes and allocations that extend a file. Before its first byte goes behind the end each notes in a line of ctl what it is going to write, so that a
//! kill before the size is raised leaves word of it. A line belongs to the process that has the lock of its byte, which ends with the process: a note
//! whose line nobody locks is a dead one's, and whoever would show those bytes by growing the file takes them away first. The order of the steps is
//! `stripewise_store::sizing`'s.

use crate::base::locks;
use crate::base::sys::{Errno, Sys};
use crate::file::File;
use crate::file::lines::{LOCKED_LINE, Lines, byte_of};
use crate::gate::cutting;
use crate::gate::epoch;
use crate::gate::{self, Passed};
use core::sync::atomic::Ordering;
use stripewise_store::ctl::{Ctl, FLAG_TRUNCATING};
use stripewise_store::locks::How;
use stripewise_store::moving::{self, Turn};
use stripewise_store::sizing::{self, ABANDONED, Extender, Extension, LINES, Note, Sizes, Written};
use stripewise_target::time::{now_ns, sleep_until};

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
            if file.is_line_locked(line) {
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
        self.file.is_line_alive(line)
    }

    #[inline]
    fn write(&mut self) -> Written {
        let (written, until_ns) = (self.work)(self.passed);
        self.busy_until_ns = until_ns;
        written
    }
}

/// The gate for a change of `[at, at + len)`: waits while somebody cuts the file or that span is frozen, marks it dirty while it is copied.
#[inline]
fn for_write(file: &'static File, at: u64, len: u64) -> Sys<Passed> {
    loop {
        let inside = epoch::enter(file.store()?)?;
        let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
        if ctl.header().flags.load(Ordering::SeqCst) & FLAG_TRUNCATING != 0 {
            drop(inside);
            cutting::finish(file)?;
            continue;
        }
        match moving::turn(&ctl, at, len, now_ns) {
            Turn::Go => return Passed::with(inside, file, ctl),
            turn => {
                drop(inside);
                gate::wait(file, &ctl, turn)?;
            }
        }
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
        let passed = for_write(file, from, len)?;
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
