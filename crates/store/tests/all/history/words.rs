//! The shared words of the simulation. Programs take their turns at once; before each access of the mover the others make some steps.

use crate::history::sim::Shared;
use std::cell::Cell;
use stripewise_store::moving::{MoveState, Words, with_state};

/// The words.
#[derive(Default)]
pub struct Cells {
    pub word: Cell<u64>,
    span: Cell<(u64, u64, u32)>,
    dirty: Cell<u64>,
    deadline_ns: Cell<u64>,
    next_generation: Cell<u64>,
    pub generation: Cell<u64>,
    /// A program is asking for its turn: the bits that it sets are set with its next step, for others may go before.
    is_asking: Cell<bool>,
    postponed: Cell<u64>,
}

impl Words for Cells {
    fn word(&self) -> u64 {
        self.word.get()
    }

    fn exchange(&self, from: u64, to: u64) -> bool {
        let done = self.word.get() == from;
        if done {
            self.word.set(to);
        }
        done
    }

    fn span(&self) -> (u64, u64, u32) {
        self.span.get()
    }

    fn set_span(&self, start: u64, len: u64, chunk_shift: u32) {
        self.span.set((start, len, chunk_shift));
    }

    fn bits(&self) -> u64 {
        64
    }

    fn dirty(&self, _index: u64) -> u64 {
        self.dirty.get()
    }

    fn mark(&self, _index: u64, mask: u64) {
        let bits = if self.is_asking.get() { &self.postponed } else { &self.dirty };
        bits.set(bits.get() | mask);
    }

    fn take(&self, _index: u64) -> u64 {
        self.dirty.take()
    }

    fn deadline_ns(&self) -> u64 {
        self.deadline_ns.get()
    }

    fn set_deadline_ns(&self, deadline_ns: u64) {
        self.deadline_ns.set(deadline_ns);
    }

    fn next_generation(&self) -> u64 {
        self.next_generation.get()
    }

    fn set_next_generation(&self, generation: u64) {
        self.next_generation.set(generation);
    }

    fn raise_generation(&self, generation: u64) {
        self.generation.set(self.generation.get().max(generation));
    }
}

impl Cells {
    /// What asking returns, and the bits that are yet to be set.
    pub fn asking<R>(&self, ask: impl FnOnce(&Self) -> R) -> (R, u64) {
        self.is_asking.set(true);
        let answer = ask(self);
        self.is_asking.set(false);
        (answer, self.postponed.take())
    }

    /// Clears the bits of a mask: what only a broken mover does.
    pub fn clear(&self, mask: u64) {
        self.dirty.set(self.dirty.get() & !mask);
    }
}

/// The mover's way to them. Once it is dead nothing that it does has an effect any more.
#[derive(Clone)]
pub struct MoverWords(pub Shared);

impl MoverWords {
    fn act<R>(&self, otherwise: R, access: impl FnOnce(&Cells) -> R) -> R {
        let mut sim = self.0.borrow_mut();
        sim.others();
        if sim.is_mover_dead { otherwise } else { access(&sim.cells) }
    }
}

impl Words for MoverWords {
    fn word(&self) -> u64 {
        self.act(with_state(0, MoveState::Idle), Words::word)
    }

    fn exchange(&self, from: u64, to: u64) -> bool {
        self.act(false, |words| words.exchange(from, to))
    }

    fn span(&self) -> (u64, u64, u32) {
        self.act((0, 0, 0), Words::span)
    }

    fn set_span(&self, start: u64, len: u64, chunk_shift: u32) {
        self.act((), |words| words.set_span(start, len, chunk_shift));
    }

    fn bits(&self) -> u64 {
        64
    }

    fn dirty(&self, index: u64) -> u64 {
        self.act(0, |words| words.dirty(index))
    }

    fn mark(&self, index: u64, mask: u64) {
        self.act((), |words| words.mark(index, mask));
    }

    fn take(&self, index: u64) -> u64 {
        self.act(0, |words| words.take(index))
    }

    fn deadline_ns(&self) -> u64 {
        self.act(0, Words::deadline_ns)
    }

    fn set_deadline_ns(&self, deadline_ns: u64) {
        self.act((), |words| words.set_deadline_ns(deadline_ns));
    }

    fn next_generation(&self) -> u64 {
        self.act(0, Words::next_generation)
    }

    fn set_next_generation(&self, generation: u64) {
        self.act((), |words| words.set_next_generation(generation));
    }

    fn raise_generation(&self, generation: u64) {
        self.act((), |words| words.raise_generation(generation));
    }
}
