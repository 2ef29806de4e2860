//! The mover of the model: the real protocol over two homes of two blocks, with what a mover on files does before and after it, and the faults.

use crate::model::explore::{Actor, Kind};
use crate::model::faults::Fault;
use crate::model::programs::put_in_place;
use crate::model::world::{BLOCKS, FREEZE_NS, HOLE, Handle, MOVER, home, mix};
use std::sync::Arc;
use stripewise_store::admin::moves::protocol::{self, Limits, Work};
use stripewise_store::moving::publish;

/// Small, but each loop can go round.
const LIMITS: Limits = Limits { few_chunks: 0, passes: 2, freeze_ns: FREEZE_NS, freezes: 2 };

struct Filling<'a> {
    handle: &'a Handle,
    fault: Fault,
    /// Generation that is to be published; it tells the new home.
    next: u64,
    word: u64,
    taken: u64,
    has_copied_all: bool,
    is_frozen: bool,
    /// Where `protocol::run` is: the freezes so far, the takes since, what the last one found.
    freezes: u64,
    takes: u64,
    found: u64,
}

impl Filling<'_> {
    /// What a mover at a hook still remembers, and nothing else.
    fn at(&self, hook: u64) {
        let flags = u64::from(self.is_frozen) << 1 | u64::from(self.has_copied_all);
        let place = [self.word, self.next, self.freezes, self.takes, self.found, self.taken, flags];
        self.handle.forget(hook + 100_000, place.into_iter().fold(0, mix));
    }

    fn copy(&self, block: usize) {
        let (old, new) = (home(self.next + 1), home(self.next));
        self.handle.forgetting(
            || {
                let value = self.handle.step("copies from", |world| world.memory.homes[old][block]);
                self.handle.step("copies to", |world| {
                    world.memory.homes[new][block] = value;
                    value
                });
            },
            |()| block as u64,
        );
    }

    fn over(&self) -> Result<(), ()> {
        if self.handle.is_over() { Err(()) } else { Ok(()) }
    }

    fn flush(&self) {
        let new = home(self.next);
        self.handle.along("flushes", |world| {
            world.memory.synced[new] = world.memory.homes[new];
            0
        });
    }
}

impl Work for Filling<'_> {
    type Error = ();
    type Words = Handle;

    fn words(&self) -> Handle {
        self.handle.clone()
    }

    fn now_ns(&self) -> u64 {
        self.handle.time()
    }

    fn grace(&mut self, until_ns: Option<u64>) -> Result<bool, ()> {
        self.is_frozen |= until_ns.is_some();
        let at = Fault::of_grace(until_ns.is_some(), self.has_copied_all, self.taken != 0);
        self.at(until_ns.unwrap_or(1) << 8);
        if self.fault == at {
            return Ok(true);
        }
        if self.is_frozen && self.fault == Fault::TakeBeforeFrozenGrace {
            self.taken |= stripewise_store::moving::Words::take(self.handle, 0);
        }
        let all_left = self.handle.forgetting(|| self.handle.grace(until_ns), |left| u64::from(*left));
        self.over()?;
        Ok(all_left)
    }

    fn is_pinned(&mut self) -> Result<bool, ()> {
        self.over()?;
        Ok(self.handle.step("looks for pins", |world| world.memory.pins) != 0)
    }

    fn may_go_on(&mut self) -> Result<(), ()> {
        self.at(1);
        self.is_frozen = false;
        self.over()?;
        if self.handle.step("looks for pins", |world| world.memory.pins) == 0 { Ok(()) } else { Err(()) }
    }

    fn copy_all(&mut self) -> Result<(), ()> {
        (0..BLOCKS).for_each(|block| self.copy(block));
        self.has_copied_all = true;
        self.over()
    }

    fn take(&mut self) -> usize {
        self.at(2);
        self.takes += 1;
        let words = self.handle;
        match self.fault {
            Fault::ClearAfterCopy => self.taken |= words.step("dirty", |world| world.memory.dirty),
            Fault::TakeBeforeFrozenGrace if self.is_frozen => {}
            _ => self.taken |= stripewise_store::moving::Words::take(words, 0),
        }
        self.found = self.taken;
        if self.fault == Fault::ForgetWhenCalledOff && self.is_frozen {
            let _ = self.copy_taken();
        }
        self.taken.count_ones() as usize
    }

    fn copy_taken(&mut self) -> Result<(), ()> {
        let taken = std::mem::take(&mut self.taken);
        (0..BLOCKS).filter(|block| taken >> block & 1 == 1).for_each(|block| self.copy(block));
        if self.fault == Fault::ClearAfterCopy && taken != 0 {
            self.handle.step("clears", |world| {
                world.memory.dirty &= !taken;
                0
            });
        }
        self.over()
    }

    fn sync(&mut self) -> Result<(), ()> {
        self.at(3);
        if self.fault != Fault::PublishBeforeSync {
            self.flush();
        }
        self.over()
    }

    fn prepare(&mut self) -> Result<u64, ()> {
        (self.freezes, self.takes) = (self.freezes + 1, 0);
        let next = self.next;
        self.handle.along("prepares the layout", |world| {
            world.memory.prepared = next;
            0
        });
        Ok(self.next)
    }

    fn put_in_place(&mut self, generation: u64) -> Result<(), ()> {
        put_in_place(self.handle, generation)?;
        if self.fault == Fault::PublishBeforeSync {
            self.flush();
        }
        Ok(())
    }

    fn was_frozen(&mut self, _ns: u64, _published: bool) {}

    fn gave_up(&self) {}

    fn was_called_off(&self) {}
}

/// Punches a home: what is not in force there any more, or never will be.
fn punch(handle: &Handle, home: usize) {
    for block in 0..BLOCKS {
        handle.step("punches", |world| {
            world.memory.homes[home][block] = HOLE;
            world.memory.synced[home][block] = HOLE;
            0
        });
    }
}

/// One move of all blocks to the other home, and what comes after it.
fn shift(handle: &Handle, fault: Fault, next: u64) {
    let word = protocol::begin(handle, 0, BLOCKS as u64, 0);
    let mut work = Filling { handle, fault, next, word, taken: 0, has_copied_all: false, is_frozen: false, freezes: 0, takes: 0, found: 0 };
    let is_published = match protocol::run(&mut work, word, LIMITS) {
        Ok(()) => true,
        Err(()) => finish_owed(handle),
    };
    if handle.is_over() {
        return;
    }
    if is_published && fault != Fault::NoGraceBeforePunch {
        handle.grace(None);
    }
    drop_prepared(handle);
    if !handle.is_over() {
        punch(handle, home(if is_published { next + 1 } else { next }));
    }
    handle.forget(next, u64::from(is_published));
}

/// Calls a move off, or finishes it where it is being published.
fn finish_owed(handle: &Handle) -> bool {
    let owed = protocol::end(handle);
    owed.is_some_and(|owed| publish(handle, owed, |generation| put_in_place(handle, generation)).is_ok())
}

fn drop_prepared(handle: &Handle) {
    handle.step("removes layouts that wait", |world| {
        world.memory.prepared = 0;
        0
    });
}

/// Moves the file as often as told, to the other home and back.
pub fn mover(fault: Fault, moves: u64) -> Actor {
    Actor {
        kind: Kind::Mover,
        work: Arc::new(move |handle| {
            for _ in 0..moves {
                if !handle.is_over() {
                    let present = handle.step("loads the layout", |world| world.memory.layout);
                    shift(handle, fault, present + 1);
                }
            }
        }),
    }
}

/// The mover that is started after the first was killed: finishes or undoes what that one left, and moves the file.
pub fn second_mover(moves: u64) -> Actor {
    Actor {
        kind: Kind::Mover,
        work: Arc::new(move |handle| {
            loop {
                handle.forget(9000, 0);
                let gone = |world: &mut crate::model::world::World| u64::from(world.memory.is_stopped || world.locals[MOVER].has_finished);
                if handle.step("is it gone", gone) != 0 {
                    break;
                }
                handle.wait();
                if handle.is_over() {
                    return;
                }
            }
            finish_owed(handle);
            let present = handle.step("loads the layout", |world| world.memory.layout);
            drop_prepared(handle);
            handle.step("raise generation", |world| {
                world.memory.generation = world.memory.generation.max(present);
                0
            });
            handle.grace(None);
            if handle.is_over() {
                return;
            }
            punch(handle, home(present + 1));
            handle.forget(9001, present);
            for _ in 0..moves {
                let present = handle.step("loads the layout", |world| world.memory.layout);
                shift(handle, Fault::None, present + 1);
            }
        }),
    }
}
