//! The gate before every change of a managed file: enter the epoch, take the layout in force, respect a move that is under way
//! and a truncate that drains. This is the writer's half of the protocol in ARCHITECTURE.md; it is paid for from the start.

use crate::file::{File, Loaded};
use crate::sys::{Errno, Sys};
use crate::tls::{self, Inside};
use core::sync::atomic::Ordering;
use stripewise_store::ctl::{Ctl, MoveState};
use stripewise_store::devices::{now_ns, sleep_until};

/// Flag in ctl: a truncate drains; writers wait.
pub const FLAG_TRUNCATING: u64 = 2;

/// Inside an I/O with the layout in force.
pub struct Passed {
    /// The layout.
    pub loaded: &'static Loaded,
    /// Control words.
    pub ctl: Ctl,
    /// Held until the I/O is done.
    _inside: Inside,
}

/// Enters for a read.
#[inline]
pub fn for_read(file: &'static File) -> Sys<Passed> {
    let inside = tls::enter(file.store()?);
    let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
    Ok(Passed { loaded: file.current()?, ctl, _inside: inside })
}

/// Enters for a change of `[at, at + len)`: waits while that span is frozen, marks it dirty while it is copied.
#[inline]
pub fn for_write(file: &'static File, at: u64, len: u64) -> Sys<Passed> {
    loop {
        let passed = for_read(file)?;
        let ctl = passed.ctl;
        let word = ctl.move_word();
        let state = MoveState::of(word);
        let truncating = ctl.header().flags.load(Ordering::SeqCst) & FLAG_TRUNCATING != 0;
        if state == MoveState::Idle && !truncating {
            return Ok(passed);
        }
        if truncating {
            drop(passed);
            // Whoever truncates holds the exclusive lock; if it died, the flag is ours to clear.
            file.exclusively(|| {
                ctl.header().flags.fetch_and(!FLAG_TRUNCATING, Ordering::SeqCst);
                Ok(())
            })?;
            continue;
        }
        if !ctl.in_span(at, len) {
            return Ok(passed);
        }
        match state {
            MoveState::Frozen | MoveState::Publishing => {
                drop(passed);
                if state == MoveState::Frozen && now_ns() > ctl.header().freeze_deadline_ns.load(Ordering::Acquire) {
                    ctl.advance(word, MoveState::Aborted);
                } else {
                    sleep_until(now_ns() + 50_000);
                }
            }
            _ => {
                ctl.mark_dirty(at, len);
                return Ok(passed);
            }
        }
    }
}
