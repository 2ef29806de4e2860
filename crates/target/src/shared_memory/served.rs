//! An object that another process has. An operation begins by handing its first bytes to the server, and goes on with the rest where it is finished.

use rustix::io::Errno;

use super::link::Link;
use super::segment::{Call, Segment, WINDOW_BYTES};
use crate::interface::Object;
use crate::op::{Direction, OFFSET_MAX, Op};

/// An object of another process.
#[derive(Clone, Copy)]
pub struct Served {
    link: Link,
    number: u32,
}

impl Served {
    /// The object of a number that it was given when it was opened.
    #[must_use]
    pub const fn new(link: Link, number: u32) -> Self {
        Self { link, number }
    }

    /// Its number: what it is to whoever keeps it.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }
}

impl Served {
    /// Hands the next bytes of an operation to the server.
    fn send(&self, op: &Op<'_>, slot: usize) -> Result<(), Errno> {
        let (at, len) = (op.offset() + op.outcome.done, (op.len() - op.outcome.done).min(WINDOW_BYTES as u64));
        if op.direction() == Direction::Write {
            let mut place = Segment::window_at(slot);
            for part in op.stretches(op.outcome.done, len) {
                // SAFETY: only the kernel looks behind it, and says what is no good address.
                let bytes = unsafe { core::slice::from_raw_parts(part.base, part.len) };
                place += rustix::io::pwrite(self.link.segment().file(), bytes, place)? as u64;
            }
        }
        let call = if op.direction() == Direction::Write { Call::Write } else { Call::Read };
        self.link.ask(slot, call, [u64::from(self.number), at, len]);
        Ok(())
    }

    /// Takes what became of them; true where there may be more.
    fn receive(&self, op: &mut Op<'_>, slot: usize) -> Result<bool, Errno> {
        let asked = (op.len() - op.outcome.done).min(WINDOW_BYTES as u64);
        let [got, ..] = self.link.answer(slot)?;
        if op.direction() == Direction::Read {
            let mut place = Segment::window_at(slot);
            for part in op.stretches(op.outcome.done, got) {
                // SAFETY: as above; a read's memory is its own.
                let into = unsafe { core::slice::from_raw_parts_mut(part.base, part.len) };
                place += rustix::io::pread(self.link.segment().file(), into, place)? as u64;
            }
        }
        op.outcome.done += got;
        Ok(got == asked && op.outcome.done < op.len())
    }
}

/// A ticket is the slot's number, counted from 1.
impl Object for Served {
    fn start(&self, op: &mut Op<'_>, _is_one_of_many: bool) {
        op.ticket = 0;
        let Some(slot) = self.link.try_take() else { return };
        match self.send(op, slot) {
            Ok(()) => op.ticket = slot as u64 + 1,
            Err(errno) => {
                self.link.give_back(slot);
                op.outcome.error = Some(errno);
            }
        }
    }

    fn finish(&self, op: &mut Op<'_>) {
        if op.outcome.error.is_some() {
            return;
        }
        let mut is_sent = op.ticket != 0;
        let slot = if is_sent { op.ticket as usize - 1 } else { self.link.take() };
        loop {
            let sent = if is_sent { Ok(()) } else { self.send(op, slot) };
            match sent.and_then(|()| self.receive(op, slot)) {
                Ok(true) => is_sent = false,
                Ok(false) => break,
                Err(errno) => {
                    op.outcome.error = Some(errno);
                    break;
                }
            }
        }
        self.link.give_back(slot);
    }

    fn punch(&self, at: u64, len: u64) -> Result<(), Errno> {
        at.checked_add(len).filter(|end| *end <= OFFSET_MAX).ok_or(Errno::INVAL)?;
        self.link.simple(Call::Punch, [u64::from(self.number), at, len]).map(drop)
    }

    fn set_len(&self, len: u64) -> Result<(), Errno> {
        self.link.simple(Call::SetLen, [u64::from(self.number), len, 0]).map(drop)
    }

    fn len(&self) -> Result<u64, Errno> {
        self.link.simple(Call::Len, [u64::from(self.number), 0, 0]).map(|[len, ..]| len)
    }

    fn next_data(&self, at: u64) -> Result<Option<(u64, u64)>, Errno> {
        self.link.simple(Call::NextData, [u64::from(self.number), at, 0]).map(|[is_some, start, end]| (is_some == 1).then_some((start, end)))
    }

    fn sync(&self) -> Result<(), Errno> {
        self.link.simple(Call::Sync, [u64::from(self.number), 0, 0]).map(drop)
    }
}
