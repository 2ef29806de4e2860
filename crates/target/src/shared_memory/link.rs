//! The client's side: requests of any thread of any process, each in a slot of its own. Nothing is allocated.

use core::sync::atomic::Ordering;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

use super::segment::{ASKED, Call, DONE, FREE, SLOTS, Segment, TAKEN, set_state, sleep_while, wake};
use crate::names::{ObjectName, Role};

/// The slot of those who find no other free: one at a time, so that nobody waits for a slot that somebody holds who waits.
const LAST: usize = SLOTS - 1;
/// How long an answer is waited for, ms.
const PATIENCE_MS: u64 = 20_000;
/// Bytes of a name in a window: file, then role.
pub const NAME_BYTES: usize = 16;
/// Names that one answer lists.
pub const NAMES_MAX: usize = 100;

/// A name as a request has it.
pub fn words_of(name: ObjectName) -> (u64, u64) {
    (name.file, ObjectName::ROLES.iter().position(|role| *role == name.role).unwrap_or(0) as u64)
}

/// The name that a request has.
pub fn name_of(file: u64, role: u64) -> ObjectName {
    ObjectName { file, role: ObjectName::ROLES.get(role as usize).copied().unwrap_or(Role::Plane0) }
}

/// A target whose objects another process has.
#[derive(Clone, Copy)]
pub struct Link {
    segment: Segment,
}

impl Link {
    /// The target behind a segment.
    ///
    /// # Safety
    /// `base` is a shared map of [`super::SEGMENT_BYTES`] of `file`, a server serves it, and both stay for as long as this or an object of it is used.
    #[must_use]
    pub const unsafe fn new(base: *mut u8, file: BorrowedFd<'static>) -> Self {
        // SAFETY: the caller's promise.
        Self { segment: unsafe { Segment::new(base, file) } }
    }

    pub(super) const fn segment(&self) -> &Segment {
        &self.segment
    }

    /// A free slot, if there is one.
    pub(super) fn try_take(&self) -> Option<usize> {
        let is_taken = |slot: &usize| self.segment.slot(*slot).state.compare_exchange(FREE, TAKEN, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        (0..LAST).find(is_taken)
    }

    pub(super) fn take(&self) -> usize {
        self.try_take().unwrap_or_else(|| {
            let last = &self.segment.header().last;
            while last.swap(1, Ordering::SeqCst) != 0 {
                sleep_while(last, 1, 1);
            }
            self.segment.slot(LAST).state.store(TAKEN, Ordering::SeqCst);
            LAST
        })
    }

    pub(super) fn give_back(&self, slot: usize) {
        self.segment.slot(slot).state.store(FREE, Ordering::SeqCst);
        if slot == LAST {
            self.segment.header().last.store(0, Ordering::SeqCst);
        }
    }

    pub(super) fn ask(&self, slot: usize, call: Call, arguments: [u64; 3]) {
        let shared = self.segment.slot(slot);
        shared.call.store(call as u32, Ordering::SeqCst);
        for (word, value) in shared.arguments.iter().zip(arguments) {
            word.store(value, Ordering::SeqCst);
        }
        let header = self.segment.header();
        shared.turn.store(header.asked.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        set_state(shared, ASKED);
        header.doorbell.fetch_add(1, Ordering::SeqCst);
        wake(&header.doorbell);
    }

    pub(super) fn answer(&self, slot: usize) -> Result<[u64; 3], Errno> {
        let shared = self.segment.slot(slot);
        while shared.state.load(Ordering::SeqCst) != DONE {
            if !sleep_while(&shared.state, ASKED, PATIENCE_MS) {
                return Err(Errno::TIMEDOUT);
            }
        }
        match shared.error.load(Ordering::SeqCst) {
            0 => Ok(shared.results.each_ref().map(|word| word.load(Ordering::SeqCst))),
            error => Err(Errno::from_raw_os_error(error as i32)),
        }
    }

    /// Asks and waits; the slot's window holds what is sent before, and `then` sees it after.
    pub(super) fn call<R>(
        &self,
        call: Call,
        arguments: [u64; 3],
        send: &[u8],
        then: impl FnOnce(usize, [u64; 3]) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let slot = self.take();
        let answered = self.segment.put(slot, send).and_then(|()| {
            self.ask(slot, call, arguments);
            then(slot, self.answer(slot)?)
        });
        self.give_back(slot);
        answered
    }

    pub(super) fn simple(&self, call: Call, arguments: [u64; 3]) -> Result<[u64; 3], Errno> {
        self.call(call, arguments, &[], |_, results| Ok(results))
    }
}
