//! How a thread learns of copies, and marks what it is going to change: `learn`, `begin` and `invalidate` of the preloaded library.

use crate::marked::fault::Fault;
use crate::marked::machine::{Count, Known, Machine};
use crate::marked::program::{Place, Stage, Task};
use crate::marked::words::{BLOCK_BYTES, Stepped, step};
use stripewise_layout::OnWrite;
use stripewise_store::copies::{BUILDING, IN_USE};
use stripewise_store::marks::{Words, begin, invalidate, invalidate_on_write};

/// `begin` of one who does not look whether another is there.
fn begin_unnoticed(words: &Stepped<'_>, at: u64, bytes: u64) {
    const VERSION_AND_WRITER: u64 = (1 << 25) + 1;
    let past = (at + bytes).div_ceil(BLOCK_BYTES).min(words.len());
    (at / BLOCK_BYTES..past).for_each(|block| {
        words.add(block, VERSION_AND_WRITER);
    });
}

impl Machine {
    pub fn known(&self, id: usize) -> Known {
        self.processes[self.threads[id].process].known
    }

    fn known_mut(&mut self, id: usize) -> &mut Known {
        &mut self.processes[self.threads[id].process].known
    }

    pub fn is_marking(&self, stage: Stage) -> bool {
        use Stage::{Learn, LearnContainer, LearnMarks, LearnPlace, LearnRecord, LearnWord, Learned};
        matches!(stage, Learn | LearnWord | LearnRecord(_) | LearnMarks(..) | LearnPlace(..) | LearnContainer(_) | Learned)
    }

    pub fn learn(&mut self, id: usize, then: Stage) -> Stage {
        self.threads[id].after_learning = then;
        if self.fault == Fault::LearnsUnlocked { Stage::LearnWord } else { Stage::Learn }
    }

    pub fn mark(&mut self, id: usize, stage: Stage) -> Stage {
        match stage {
            Stage::Learn | Stage::LearnWord | Stage::LearnRecord(_) | Stage::LearnMarks(..) | Stage::LearnPlace(..) => self.learning(id, stage),
            Stage::LearnContainer(_) | Stage::Learned => self.learning(id, stage),
            Stage::Mark => Stage::MarkWord(self.known(id).container),
            Stage::MarkWord(container) if container == self.world.word.get() => Stage::MarkAny,
            Stage::MarkWord(_) => self.learn(id, Stage::MarkPlace),
            Stage::MarkAny if self.known(id).place == Place::None => Stage::Marked,
            Stage::MarkAny => Stage::MarkPlace,
            Stage::MarkPlace => match self.known(id).place {
                Place::None => Stage::Marked,
                Place::NoRoom => Stage::Alone,
                Place::Of(copies) => Stage::MarkState(copies),
            },
            Stage::MarkState(copies) => self.mark_state(id, copies),
            Stage::Noted(_) | Stage::NoteFlush(_) | Stage::NoteSet(_) => self.note(stage),
            Stage::MarkHow(copies) => self.mark_how(id, copies),
            Stage::InvalidateOnWrite(_) | Stage::Begin(_) | Stage::Invalidate(_) => self.mark_words(id, stage),
            Stage::Alone => match self.world.record.get() {
                Some(copies) if self.world.copies[copies].counts() => Stage::AloneMarks(copies),
                _ => Stage::Marked,
            },
            Stage::AloneMarks(copies) => {
                let is_usable = self.world.word.get() == copies + 1 && self.counts_in_this_boot(copies);
                if is_usable { self.note_or(id, copies, Stage::Noted(copies)) } else { Stage::Marked }
            }
            _ => self.threads[id].after_marking,
        }
    }

    pub fn counts_in_this_boot(&self, copies: usize) -> bool {
        let boot = self.world.copies[copies].boot.get();
        boot == 0 || boot == self.world.boot
    }

    /// What is known of copies changes in two steps: the place, then of which copies it is.
    fn learning(&mut self, id: usize, stage: Stage) -> Stage {
        match stage {
            Stage::Learn if self.known(id).learner.is_some() => stage,
            Stage::Learn => {
                self.known_mut(id).learner = Some(id);
                Stage::LearnWord
            }
            Stage::LearnWord => match self.world.word.get() {
                0 => Stage::LearnPlace(0, Place::None),
                container => Stage::LearnRecord(container),
            },
            Stage::LearnRecord(container) => match self.world.record.get() {
                _ if self.random.chance(1, 16) => Stage::LearnPlace(container, Place::NoRoom),
                Some(copies) if copies + 1 == container && self.world.copies[copies].counts() => Stage::LearnMarks(container, copies),
                _ => Stage::LearnPlace(container, Place::None),
            },
            Stage::LearnMarks(container, copies) => {
                let counts = self.counts_in_this_boot(copies);
                Stage::LearnPlace(container, if counts { Place::Of(copies) } else { Place::None })
            }
            Stage::LearnPlace(container, place) => {
                self.known_mut(id).place = place;
                Stage::LearnContainer(container)
            }
            Stage::LearnContainer(container) => {
                self.known_mut(id).container = container;
                Stage::Learned
            }
            _ => {
                self.known_mut(id).learner = None;
                self.count(Count::Learned);
                self.threads[id].after_learning
            }
        }
    }

    fn mark_state(&mut self, id: usize, copies: usize) -> Stage {
        let of = &self.world.copies[copies];
        let is_seen = of.counts() && (self.fault != Fault::NoMarkWhileBuilding || of.state.get() != BUILDING);
        if !is_seen || !of.holds_any(self.threads[id].at) {
            return Stage::Marked;
        }
        self.note_or(id, copies, Stage::Noted(copies))
    }

    /// The boot's note comes first, or is left to later by a fault.
    fn note_or(&mut self, id: usize, copies: usize, first: Stage) -> Stage {
        match self.fault {
            Fault::NoNote => Stage::MarkHow(copies),
            Fault::NotesAfterHome if matches!(self.threads[id].task, Task::Write { .. }) => {
                self.threads[id].owes_note = Some(copies);
                Stage::MarkHow(copies)
            }
            _ => first,
        }
    }

    fn note(&mut self, stage: Stage) -> Stage {
        let boot = self.world.boot;
        match stage {
            Stage::Noted(copies) if self.world.copies[copies].is_noted.get() => Stage::MarkHow(copies),
            Stage::Noted(copies) => {
                let of = &mut self.world.copies[copies];
                of.boot.set(boot);
                if self.fault == Fault::NotesBeforeFlush {
                    of.is_noted.set(true);
                }
                Stage::NoteFlush(copies)
            }
            Stage::NoteFlush(copies) => {
                self.world.copies[copies].boot.flush();
                self.count(Count::Noted);
                Stage::NoteSet(copies)
            }
            Stage::NoteSet(copies) => {
                self.world.copies[copies].is_noted.set(true);
                Stage::MarkHow(copies)
            }
            _ => stage,
        }
    }

    /// A write marks what it invalidates, and then what it updates.
    fn mark_how(&mut self, id: usize, copies: usize) -> Stage {
        let thread = &mut self.threads[id];
        let Task::Write { only, .. } = thread.task else { return Stage::Invalidate(copies) };
        if !self.world.copies[copies].has(OnWrite::Invalidate, only) {
            return self.mark_updated(id, copies);
        }
        match self.fault {
            Fault::InvalidatesNothing => {}
            Fault::InvalidatesAfterHome => thread.owes_mark = Some(copies),
            _ => return Stage::InvalidateOnWrite(copies),
        }
        self.mark_updated(id, copies)
    }

    fn mark_updated(&mut self, id: usize, copies: usize) -> Stage {
        let (of, thread) = (&self.world.copies[copies], &self.threads[id]);
        if !of.has(OnWrite::Update, thread.only()) {
            self.count(Count::InvalidatedAlone);
            return Stage::Marked;
        }
        if of.state.get() == IN_USE && thread.marked.is_none() { Stage::Begin(copies) } else { Stage::Invalidate(copies) }
    }

    pub fn late_mark(&mut self, id: usize, copies: usize) -> Stage {
        let thread = &mut self.threads[id];
        let (at, bytes) = (thread.at, thread.bytes);
        let marked = step(&self.world.copies[copies].words, &mut thread.log, |words| invalidate_on_write(words, at, bytes));
        if marked.is_some() { Stage::Leave } else { Stage::LateInvalidate(copies) }
    }

    pub fn late_note(&mut self, id: usize) -> Stage {
        if let Some(copies) = self.threads[id].owes_note.take() {
            self.world.copies[copies].boot.set(self.world.boot);
            self.world.copies[copies].boot.flush();
            self.world.copies[copies].is_noted.set(true);
        }
        Stage::Leave
    }

    fn mark_words(&mut self, id: usize, stage: Stage) -> Stage {
        let is_unnoticed = self.fault == Fault::UnnoticedWriter;
        let thread = &mut self.threads[id];
        let (at, bytes) = (thread.at, thread.bytes);
        match stage {
            Stage::Begin(copies) => {
                // Whoever is killed in the middle has marked some of it.
                let words = &self.world.copies[copies].words;
                let call = |words: &Stepped<'_>| if is_unnoticed { begin_unnoticed(words, at, bytes) } else { begin(words, at, bytes) };
                if step(words, &mut thread.log, call).is_none() {
                    return stage;
                }
                thread.marked = Some(copies);
                self.count(Count::Begun);
            }
            Stage::InvalidateOnWrite(copies) => {
                if step(&self.world.copies[copies].words, &mut thread.log, |words| invalidate_on_write(words, at, bytes)).is_none() {
                    return stage;
                }
                return self.mark_updated(id, copies);
            }
            Stage::Invalidate(copies) => {
                if step(&self.world.copies[copies].words, &mut thread.log, |words| invalidate(words, at, bytes)).is_none() {
                    return stage;
                }
                self.count(Count::Invalidated);
            }
            _ => {}
        }
        Stage::Marked
    }
}
