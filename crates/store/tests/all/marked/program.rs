//! A thread of a program, step by step as the preloaded library takes them (`crates/runtime/src/copies/managed.rs` and its callers): what it knows of
//! copies, the epoch, the marks, the home, the copies. Between any two steps anybody else may go, and a kill may come. Its marks are in [`super::marking`],
//! its reads in [`super::reading`], cuts and maps in [`super::cutting`].

use crate::marked::fault::Fault;
use crate::marked::machine::{Count, Machine};
use crate::marked::words::{BLOCK_BYTES, step};
use crate::marked::world::{BLOCKS, Bytes, PIECE_BYTES, PIECES};
use stripewise_layout::OnWrite;
use stripewise_store::copies::IN_USE;
use stripewise_store::marks::settle;

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Writes blocks, or a piece of one; the home takes only so many blocks of it.
    Write {
        at: usize,
        len: usize,
        only: Option<usize>,
        takes: usize,
    },
    /// Reads blocks, or a piece of one.
    Read {
        at: usize,
        len: usize,
        only: Option<usize>,
    },
    Punch {
        at: usize,
        len: usize,
    },
    Truncate {
        to: usize,
    },
    /// Ends what dead ones have left behind the size.
    Finish,
    /// Maps the file from a block on, and stores so many times.
    Map {
        at: usize,
        stores: usize,
    },
}

/// What a process knows of the file's copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    None,
    /// There may be some, and there is no room for what is to be known of them.
    NoRoom,
    Of(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Idle,
    Refresh,
    /// What it knows is of these copies: are they the file's?
    RefreshWord(usize),
    Decide,
    // Learning, in `marking`.
    Learn,
    LearnWord,
    LearnRecord(usize),
    LearnMarks(usize, usize),
    LearnPlace(usize, Place),
    LearnContainer(usize),
    Learned,
    // Marking, in `marking`.
    Mark,
    MarkWord(usize),
    MarkAny,
    MarkPlace,
    MarkState(usize),
    Noted(usize),
    NoteFlush(usize),
    NoteSet(usize),
    MarkHow(usize),
    InvalidateOnWrite(usize),
    Begin(usize),
    Invalidate(usize),
    Alone,
    AloneMarks(usize),
    Marked,
    // A write, and holes.
    Enter,
    Gate,
    Extend,
    Home(usize),
    Raise,
    LateNote,
    LateInvalidate(usize),
    Leave,
    Copy(usize, usize),
    Settling,
    Settle(bool),
    // A read.
    Size,
    ReadPlace,
    ReadState(usize),
    ReadContainer(usize),
    ReadWord(usize, usize),
    Look(usize),
    ReadCopy(usize, usize),
    LookState(usize),
    LookAgain(usize),
    ReadHome(usize),
    ReadEnd(bool),
    // A cut.
    Lock,
    Intend,
    Drain,
    EnterCut,
    Resize,
    Trim(usize),
    Conclude,
    // A map.
    Pin,
    Mapped(usize),
    Unpin,
}

#[derive(Clone, Debug)]
pub struct Thread {
    pub process: usize,
    pub is_inside: bool,
    pub epoch: u64,
    pub stage: Stage,
    pub task: Task,
    /// What it does when what it is ending for others is done.
    pub resumes: Option<Task>,
    pub after_learning: Stage,
    pub after_marking: Stage,
    /// Accesses of the call that is under way.
    pub log: Vec<u64>,
    /// Bytes that it marks.
    pub at: u64,
    pub bytes: u64,
    /// It writes from memory of its own: copies may follow.
    pub follows: bool,
    /// The copies whose words count it as a writer.
    pub marked: Option<usize>,
    /// It has yet to note the boot.
    pub owes_note: Option<usize>,
    /// It has yet to mark what it invalidates.
    pub owes_mark: Option<usize>,
    pub has_note: bool,
    value: u64,
    reached: usize,
    pub began: u64,
    pub len: usize,
    pub got: [Bytes; BLOCKS],
    pub looked: Option<u64>,
    pub awaited: Vec<(usize, u64)>,
}

impl Thread {
    pub fn new(process: usize) -> Self {
        Self {
            process,
            is_inside: false,
            epoch: 0,
            stage: Stage::Idle,
            task: Task::Finish,
            resumes: None,
            after_learning: Stage::Idle,
            after_marking: Stage::Idle,
            log: vec![],
            at: 0,
            bytes: 0,
            follows: false,
            marked: None,
            owes_note: None,
            owes_mark: None,
            has_note: false,
            value: 0,
            reached: 0,
            began: 0,
            len: 0,
            got: [[0; PIECES]; BLOCKS],
            looked: None,
            awaited: vec![],
        }
    }

    pub fn begin(&mut self, task: Task, value: u64, time: u64) {
        (self.task, self.value, self.began, self.reached, self.follows) = (task, value, time, 0, false);
        self.stage = match task {
            Task::Write { .. } | Task::Read { .. } => Stage::Refresh,
            Task::Punch { .. } => Stage::Enter,
            Task::Truncate { .. } | Task::Finish => Stage::Lock,
            Task::Map { .. } => Stage::Pin,
        };
    }

    /// The one piece that it is about, if it is one.
    pub fn only(&self) -> Option<usize> {
        match self.task {
            Task::Write { only, .. } | Task::Read { only, .. } => only,
            _ => None,
        }
    }

    /// Blocks of a task.
    pub fn blocks(&self) -> (usize, usize) {
        match self.task {
            Task::Write { at, len, .. } | Task::Read { at, len, .. } | Task::Punch { at, len } => (at, len),
            Task::Truncate { to } => (to, BLOCKS - to),
            Task::Map { at, .. } => (at, BLOCKS - at),
            Task::Finish => (0, 0),
        }
    }
}

impl Machine {
    /// One step of a thread.
    pub fn advance(&mut self, id: usize) {
        let stage = self.threads[id].stage;
        self.world.tell(|| format!("thread {id}: {stage:?}"));
        let next = match stage {
            Stage::Idle => Stage::Idle,
            Stage::Refresh => Stage::RefreshWord(self.known(id).container),
            Stage::RefreshWord(container) if container == self.world.word.get() => Stage::Decide,
            Stage::RefreshWord(_) => self.learn(id, Stage::Decide),
            Stage::Decide => self.decide(id),
            Stage::Enter | Stage::Gate | Stage::Extend => self.pass(id, stage),
            Stage::Home(number) => self.home(id, number),
            Stage::Raise => self.raise(id),
            Stage::LateNote => self.late_note(id),
            Stage::LateInvalidate(copies) => self.late_mark(id, copies),
            Stage::Leave => self.leave(id),
            Stage::Copy(number, piece) => self.copy(id, number, piece),
            Stage::Settling => self.settling(id),
            Stage::Settle(is_copied) => self.settle(id, is_copied),
            Stage::Lock | Stage::Intend | Stage::Drain | Stage::EnterCut | Stage::Resize | Stage::Trim(_) | Stage::Conclude => self.cut(id, stage),
            Stage::Pin | Stage::Mapped(_) | Stage::Unpin => self.map(id, stage),
            _ if matches!(self.threads[id].task, Task::Read { .. }) && !self.is_marking(stage) => self.read(id, stage),
            _ => self.mark(id, stage),
        };
        self.threads[id].stage = next;
    }

    fn is_late(&self, id: usize) -> bool {
        match self.threads[id].task {
            Task::Write { .. } => self.fault == Fault::MarksAfterHome,
            Task::Punch { .. } => self.fault == Fault::PunchMarksAfter,
            _ => false,
        }
    }

    fn decide(&mut self, id: usize) -> Stage {
        self.threads[id].follows = self.known(id).place != Place::None;
        match self.threads[id].task {
            Task::Write { .. } if self.fault == Fault::MarksOutsideEpoch => self.marks(id, Stage::Enter),
            _ => Stage::Enter,
        }
    }

    pub fn enter(&mut self, id: usize) {
        let thread = &mut self.threads[id];
        (thread.is_inside, thread.epoch) = (true, thread.epoch + 1);
    }

    /// The gate, up to the marks.
    fn pass(&mut self, id: usize, stage: Stage) -> Stage {
        let (at, len) = self.threads[id].blocks();
        match stage {
            Stage::Enter => {
                self.enter(id);
                if matches!(self.threads[id].task, Task::Read { .. }) { Stage::Size } else { Stage::Gate }
            }
            Stage::Gate if self.world.is_cut_intended => self.finish_first(id),
            Stage::Gate => Stage::Extend,
            _ => {
                if matches!(self.threads[id].task, Task::Write { .. }) && at + len > self.world.size.get() {
                    if self.world.has_remains {
                        return self.finish_first(id);
                    }
                    self.threads[id].has_note = true;
                }
                let is_marked = self.fault == Fault::MarksOutsideEpoch && matches!(self.threads[id].task, Task::Write { .. });
                if self.is_late(id) || is_marked { Stage::Home(0) } else { self.marks(id, Stage::Home(0)) }
            }
        }
    }

    /// Somebody cuts: he is waited for, or what he left when he died is done for him.
    fn finish_first(&mut self, id: usize) -> Stage {
        self.threads[id].is_inside = false;
        if self.world.lock.is_none() {
            let thread = &mut self.threads[id];
            thread.resumes = Some(thread.task);
            thread.task = Task::Finish;
            return Stage::Lock;
        }
        Stage::Enter
    }

    fn home(&mut self, id: usize, number: usize) -> Stage {
        let ((at, len), value) = (self.threads[id].blocks(), self.threads[id].value);
        let (only, takes) = match self.threads[id].task {
            Task::Write { only, takes, .. } => (only, takes),
            _ => (None, BLOCKS),
        };
        let block = at + number;
        if number < len && number < takes {
            if let Task::Write { .. } = self.threads[id].task {
                self.world.write(block, only, value);
            } else if block < self.world.size.get() {
                self.world.write(block, None, 0);
            }
            self.threads[id].reached = number + 1;
            self.world.tell(|| format!("  home of block {block} is written, {value}"));
            return Stage::Home(number + 1);
        }
        Stage::Raise
    }

    fn raise(&mut self, id: usize) -> Stage {
        let (at, _) = self.threads[id].blocks();
        let reached = at + self.threads[id].reached;
        if self.threads[id].has_note && self.threads[id].reached > 0 && reached > self.world.size.get() {
            self.world.set_size(reached);
        }
        self.threads[id].has_note = false;
        let then = match (self.threads[id].owes_note, self.threads[id].owes_mark.take()) {
            (Some(_), _) => Stage::LateNote,
            (None, Some(copies)) => Stage::LateInvalidate(copies),
            (None, None) => Stage::Leave,
        };
        if self.is_late(id) { self.marks(id, then) } else { then }
    }

    fn leave(&mut self, id: usize) -> Stage {
        let thread = &mut self.threads[id];
        thread.is_inside = false;
        let (_, len) = thread.blocks();
        let Task::Write { takes, .. } = thread.task else { return Stage::Idle };
        if thread.marked.is_none() {
            return Stage::Idle;
        }
        let is_whole = takes >= len || self.fault == Fault::CopiesWhatIsPart;
        match (self.threads[id].follows && is_whole, self.fault) {
            (true, Fault::SettlesBeforeCopy) => Stage::Settling,
            (true, _) => Stage::Copy(0, 0),
            (false, _) => Stage::Settle(false),
        }
    }

    /// The same bytes go to the copies.
    fn copy(&mut self, id: usize, number: usize, piece: usize) -> Stage {
        let ((at, len), value) = (self.threads[id].blocks(), self.threads[id].value);
        let Task::Write { only, .. } = self.threads[id].task else { return Stage::Idle };
        let Some(copies) = self.threads[id].marked else { return Stage::Idle };
        let block = at + number;
        if number >= len || block >= self.world.copies[copies].words.len() {
            return if self.fault == Fault::SettlesBeforeCopy { Stage::Idle } else { Stage::Settling };
        }
        if only.is_none_or(|only| only == piece) && self.world.copies[copies].on_write[piece] == OnWrite::Update {
            self.world.copies[copies].data[block][piece].set(value);
        }
        if piece + 1 < PIECES { Stage::Copy(number, piece + 1) } else { Stage::Copy(number + 1, 0) }
    }

    fn settling(&mut self, id: usize) -> Stage {
        let Some(copies) = self.threads[id].marked else { return Stage::Idle };
        Stage::Settle(self.world.copies[copies].state.get() == IN_USE)
    }

    fn settle(&mut self, id: usize, is_copied: bool) -> Stage {
        let thread = &mut self.threads[id];
        let Some(copies) = thread.marked else { return Stage::Idle };
        let (at, bytes) = (thread.at, thread.bytes);
        if step(&self.world.copies[copies].words, &mut thread.log, |words| settle(words, at, bytes, is_copied)).is_none() {
            return Stage::Settle(is_copied);
        }
        self.count(if is_copied { Count::Copied } else { Count::Stale });
        if self.fault == Fault::SettlesBeforeCopy && self.threads[id].follows {
            return Stage::Copy(0, 0);
        }
        self.threads[id].marked = None;
        Stage::Idle
    }

    /// Marks what the task is about, and goes on.
    fn marks(&mut self, id: usize, then: Stage) -> Stage {
        let ((at, len), thread) = (self.threads[id].blocks(), &mut self.threads[id]);
        (thread.at, thread.bytes) = (at as u64 * BLOCK_BYTES, len as u64 * BLOCK_BYTES);
        if let Task::Write { only: Some(piece), .. } = thread.task {
            (thread.at, thread.bytes) = (thread.at + piece as u64 * PIECE_BYTES, PIECE_BYTES);
        }
        self.marks_span(id, then)
    }

    pub fn marks_span(&mut self, id: usize, then: Stage) -> Stage {
        self.threads[id].after_marking = then;
        Stage::Mark
    }
}
