//! How a thread reads: from a copy where marks and state say so before and after, else from the home.

use crate::marked::fault::Fault;
use crate::marked::machine::{Count, Machine};
use crate::marked::program::{Place, Stage};
use crate::marked::words::{BLOCK_BYTES, Stepped, step};
use crate::marked::world::PIECES;
use stripewise_layout::OnWrite;
use stripewise_store::copies::IN_USE;
use stripewise_store::marks::{Words, look};

/// A look, or one that leaves out what a fault does.
fn look_as(words: &Stepped<'_>, (at, bytes): (u64, u64), on_write: OnWrite, fault: Fault) -> Option<u64> {
    match (on_write, fault) {
        (OnWrite::Invalidate, Fault::LooksAsIfUpdated) => look(words, at, bytes, OnWrite::Update),
        (OnWrite::Invalidate, Fault::LooksAtWritesAlone) => {
            const INVALIDATED: u64 = 1 << 23;
            let past = (at + bytes).div_ceil(BLOCK_BYTES).min(words.len());
            (at / BLOCK_BYTES..past).all(|block| words.load(block) & INVALIDATED == 0).then_some(0)
        }
        _ => look(words, at, bytes, on_write),
    }
}

impl Machine {
    pub fn read(&mut self, id: usize, stage: Stage) -> Stage {
        let (at, len) = self.threads[id].blocks();
        let (from, bytes) = (at as u64 * BLOCK_BYTES, len as u64 * BLOCK_BYTES);
        match stage {
            Stage::Size => {
                let size = self.world.size.get();
                self.threads[id].len = len.min(size.saturating_sub(at));
                if at >= size {
                    Stage::ReadEnd(false)
                } else if at + len > size {
                    Stage::ReadHome(0)
                } else {
                    Stage::ReadPlace
                }
            }
            Stage::ReadPlace => match self.known(id).place {
                Place::Of(copies) => Stage::ReadState(copies),
                _ => Stage::ReadHome(0),
            },
            Stage::ReadState(copies) if self.world.copies[copies].state.get() == IN_USE => Stage::ReadContainer(copies),
            Stage::ReadContainer(copies) => Stage::ReadWord(copies, self.known(id).container),
            Stage::ReadWord(copies, container) if container == self.world.word.get() && at + len <= self.world.copies[copies].words.len() => {
                Stage::Look(copies)
            }
            Stage::Look(copies) => match self.look(id, copies, from, bytes) {
                None => stage,
                Some(None) => Stage::ReadHome(0),
                looked => {
                    self.threads[id].looked = looked.flatten();
                    Stage::ReadCopy(copies, 0)
                }
            },
            Stage::ReadCopy(copies, number) => {
                let (block, piece) = (number / PIECES, number % PIECES);
                self.threads[id].got[block][piece] = self.world.copies[copies].data[at + block][piece].get();
                match number + 1 {
                    last if last == len * PIECES && self.fault == Fault::NoSecondLook => Stage::ReadEnd(true),
                    last if last == len * PIECES => Stage::LookState(copies),
                    next => Stage::ReadCopy(copies, next),
                }
            }
            Stage::LookState(copies) if self.world.copies[copies].state.get() == IN_USE => Stage::LookAgain(copies),
            Stage::LookAgain(copies) => match self.look(id, copies, from, bytes) {
                None => stage,
                Some(looked) if looked == self.threads[id].looked => Stage::ReadEnd(true),
                Some(_) => Stage::ReadHome(0),
            },
            Stage::ReadHome(number) if number < self.threads[id].len => {
                self.threads[id].got[number] = self.world.bytes(at + number);
                Stage::ReadHome(number + 1)
            }
            Stage::ReadHome(_) => Stage::ReadEnd(false),
            Stage::ReadEnd(is_copy) => self.end_read(id, at, is_copy),
            _ => Stage::ReadHome(0),
        }
    }

    fn look(&mut self, id: usize, copies: usize, at: u64, bytes: u64) -> Option<Option<u64>> {
        let (of, thread, fault) = (&self.world.copies[copies], &mut self.threads[id], self.fault);
        let kinds = [OnWrite::Update, OnWrite::Invalidate].map(|on_write| Some(on_write).filter(|on_write| of.has(*on_write, thread.only())));
        // Replicas of either kind are looked at one after the other, as in a read behind a view.
        let looked = step(&of.words, &mut thread.log, |words| {
            kinds.into_iter().flatten().try_fold(0u64, |sum, on_write| Some(sum.wrapping_add(look_as(words, (at, bytes), on_write, fault)?)))
        })?;
        Some(if self.fault == Fault::LooksAtBitsAlone { looked.map(|_| 0) } else { looked })
    }

    /// What lies behind the end by now does not count.
    fn end_read(&mut self, id: usize, at: usize, is_copy: bool) -> Stage {
        let (began, got, only) = (self.threads[id].began, self.threads[id].got, self.threads[id].only());
        let read = self.threads[id].len.min(self.world.size.get().saturating_sub(at));
        for (number, got) in got.iter().enumerate().take(read) {
            self.world.check(id, (at + number, only), began, *got, is_copy);
        }
        self.count(if is_copy { Count::ReadCopy } else { Count::ReadHome });
        if let (true, Place::Of(copies)) = (is_copy, self.known(id).place)
            && self.world.copies[copies].has(OnWrite::Invalidate, only)
        {
            self.count(Count::ReadInvalidated);
        }
        if is_copy && self.world.boot > 1 {
            self.count(Count::ReadCopyLater);
        }
        self.threads[id].is_inside = false;
        Stage::Idle
    }
}
