//! Cutting the objects of a file: for a truncate, and for what dead ones left behind its end. The order of the steps is `stripewise_store::sizing`'s, here is
//! what each does. A cut that its maker did not live to end is ended by whoever finds its intent under the file's exclusive lock.

use crate::base::sys::{Errno, Sys, of_target};
use crate::copies::managed;
use crate::file::File;
use crate::gate::epoch;
use crate::gate::{self, Passed};
use stripewise_layout::MAX_LOGICAL;
use stripewise_store::ctl::Ctl;
use stripewise_store::sizing::{self, Cutter, Sizes};
use stripewise_target::interface::Object;

/// How long a cut waits for running I/O, of this process and of others.
const DRAIN_NS: u64 = 30_000_000_000;

struct Cutting {
    file: &'static File,
    ctl: Ctl,
    /// First byte that goes; none where it is what lies behind the size.
    at: Option<u64>,
    passed: Option<Passed>,
    has_cut: bool,
}

impl Cutting {
    fn of(file: &'static File, at: Option<u64>) -> Sys<Self> {
        // Who got the descriptor from another user, and may only read himself, has no more than a look at ctl.
        if !file.may_write() {
            return Err(Errno(libc::EACCES));
        }
        // A signal handler in the middle of a cut: the one below it would go on with what has changed.
        if file.lines.is_draining_below() {
            return Err(Errno(libc::EDEADLK));
        }
        Ok(Self { file, ctl: file.ctl().ok_or(Errno(libc::EIO))?, at, passed: None, has_cut: false })
    }

    fn drain_all(&self) -> Sys<()> {
        if !epoch::quiesce(DRAIN_NS) {
            return Err(Errno(libc::EBUSY));
        }
        self.file.store()?.grace(DRAIN_NS).map_err(|errno| if errno == Errno(libc::ETIMEDOUT) { Errno(libc::EBUSY) } else { errno })
    }

    fn run(&mut self) -> Sys<()> {
        self.file.lines.set_draining(true);
        let result = sizing::cut(self, self.at);
        self.file.lines.set_draining(false);
        result
    }
}

impl Cutter for Cutting {
    type Error = Errno;
    type Words = Ctl;

    fn words(&self) -> Ctl {
        self.ctl
    }

    /// A move that has copied what goes, or is copying it now, will look at it again. The epoch is entered only when the others have left theirs: two that
    /// cut two files would wait for each other.
    fn drain(&mut self) -> Sys<()> {
        self.drain_all()?;
        let at = self.at.map_or_else(|| self.file.size(), Ok)?;
        self.passed = Some(gate::for_resize(self.file, at, MAX_LOGICAL - at)?);
        // Before anybody sees the new size: a file that grows again has zeros there.
        managed::invalidate(self.file, at, MAX_LOGICAL - at)
    }

    fn trim(&mut self, size: u64) -> Sys<()> {
        let loaded = self.passed.as_ref().ok_or(Errno(libc::EIO))?.loaded;
        for (target, plane) in loaded.objects() {
            let Some(object) = self.file.object_if_made(loaded, target, plane)? else { continue };
            // What a move has copied into the same object stays: it may lie further out there than the home's last byte, and is not copied again.
            let end = loaded.view.end_with_copies(target, plane, size);
            if of_target(object.len())? > end {
                of_target(object.set_len(end)).inspect_err(|errno| crate::io::faults::note(self.file, target, *errno))?;
                self.has_cut = true;
            }
        }
        Ok(())
    }

    fn has_cut(&self) -> bool {
        self.has_cut
    }
}

/// Cuts the file, under its exclusive lock: drains running I/O, then cuts every object.
pub fn cut(file: &'static File, size: u64) -> Sys<()> {
    Cutting::of(file, Some(size))?.run()
}

/// Cuts its objects to the size that it has when everybody has ended what he was writing. Under the exclusive lock.
pub fn trim(file: &'static File) -> Sys<()> {
    // What is being written below this signal handler would be taken for a dead one's.
    if epoch::is_inside() {
        return Err(Errno(libc::EDEADLK));
    }
    Cutting::of(file, None)?.run()
}

/// Runs `work` while no process is inside an I/O that began before; later writers wait. Under the file's exclusive lock.
pub fn drained<T>(file: &'static File, work: impl FnOnce() -> Sys<T>) -> Sys<T> {
    finish(file)?;
    let cutting = Cutting::of(file, None)?;
    // Killed in here, it leaves the intent to cut to the size that the file has.
    cutting.ctl.intend_cut(true);
    let result = cutting.drain_all().and_then(|()| work());
    cutting.ctl.intend_cut(false);
    result
}

/// Ends a cut whose maker died. Takes the exclusive lock, and so waits for one who lives.
#[cold]
pub fn finish(file: &'static File) -> Sys<()> {
    file.exclusively(|| if file.ctl().is_some_and(|ctl| ctl.is_cut_intended()) { trim(file) } else { Ok(()) })
}

/// Ends what dead ones began: their cuts, and what their extending writes left before `to`. After it, growing up to there shows zeros.
pub fn settle(file: &'static File, to: u64) -> Sys<()> {
    let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
    let is_unsettled = || sizing::is_unsettled(&ctl, to, |line| file.is_line_alive(line));
    if !is_unsettled() {
        return Ok(());
    }
    file.exclusively(|| if is_unsettled() { trim(file) } else { Ok(()) })
}

/// The same for one who makes the file durable, or leaves it: a power cut's recovery would take the longest object for the file's end. Who may not write the
/// file leaves it to others.
pub fn settle_all(file: &'static File) -> Sys<()> {
    if file.may_write() { settle(file, u64::MAX) } else { Ok(()) }
}
