//! A thread of a program, step by step as the gate of the preloaded library takes them: enter, ask for its turn, only then look up the layout, do the
//! work block by block, leave. Between any two steps anybody else may go, and a kill or a stop may come.

use crate::history::disk::{BLOCK_SHIFT, BLOCKS, Layout};
use crate::history::faults::Fault;
use crate::history::sim::{Count, Sim};
use stripewise_store::moving::{Publication, Turn, Words, call_off, publish, turn};

/// How long a cut waits for those inside before it gives up.
const DRAIN_NS: u64 = 3000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Cut,
    Flush,
    Map,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    /// Outside, about to enter; the layout that a broken gate has looked up too early.
    Enter,
    Gate,
    /// In the middle of asking: the bits are yet to be set.
    Mark(u64),
    Help(Publication, bool),
    LookUp,
    Block(usize),
    Drain(Vec<(usize, u64)>, u64),
    CutBlocks,
    CallOff,
    Mapped(usize),
    Leave,
}

#[derive(Clone, Debug)]
pub struct Thread {
    pub process: usize,
    pub is_inside: bool,
    pub epoch: u64,
    stage: Stage,
    kind: Kind,
    at: usize,
    len: usize,
    value: u64,
    /// Place of its operation in the history.
    op: Option<usize>,
    layout: Option<Layout>,
    invoked: u64,
}

impl Thread {
    pub fn new(process: usize) -> Self {
        Self {
            process,
            is_inside: false,
            epoch: 0,
            stage: Stage::Idle,
            kind: Kind::Read,
            at: 0,
            len: 1,
            value: 0,
            op: None,
            layout: None,
            invoked: 0,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }
}

impl Sim {
    /// One step of a thread.
    pub fn advance(&mut self, id: usize) {
        let stage = std::mem::replace(&mut self.threads[id].stage, Stage::Idle);
        let next = match stage {
            Stage::Idle => self.choose(id),
            Stage::Enter => self.enter(id),
            Stage::Gate => self.gate(id),
            Stage::Mark(mask) => self.mark(mask),
            Stage::Help(publication, has_renamed) => self.help(publication, has_renamed),
            Stage::LookUp => self.look_up(id),
            Stage::Block(number) => self.block(id, number),
            Stage::Drain(waits, until_ns) => self.drain(id, waits, until_ns),
            Stage::CutBlocks => self.cut_blocks(id),
            Stage::CallOff => self.call_off(id),
            Stage::Mapped(left) => self.mapped(id, left),
            Stage::Leave => self.leave(id),
        };
        self.threads[id].stage = next;
    }

    fn choose(&mut self, id: usize) -> Stage {
        let kind = match self.random.below(100) {
            0..=47 => Kind::Write,
            48..=87 => Kind::Read,
            88..=95 => Kind::Flush,
            96 => Kind::Map,
            _ => Kind::Cut,
        };
        let at = self.random.below(BLOCKS);
        let len = if kind == Kind::Cut { BLOCKS - at } else { (1 + self.random.below(2) * self.random.below(3)).min(BLOCKS - at) };
        self.written += 1;
        let thread = &mut self.threads[id];
        (thread.kind, thread.at, thread.len, thread.value, thread.op, thread.layout) = (kind, at, len, self.written, None, None);
        if kind == Kind::Map {
            self.processes[self.threads[id].process].pins += 1;
            return Stage::CallOff;
        }
        if kind == Kind::Cut {
            if self.cutter.is_some() {
                return Stage::Idle;
            }
            self.cutter = Some(id);
        }
        Stage::Enter
    }

    fn enter(&mut self, id: usize) -> Stage {
        let thread = &mut self.threads[id];
        (thread.is_inside, thread.epoch) = (true, thread.epoch + 1);
        let (kind, at, len, value) = (thread.kind, thread.at, thread.len, thread.value);
        if thread.op.is_none() {
            match kind {
                Kind::Read | Kind::Write | Kind::Cut => {
                    self.threads[id].op = Some(self.invoke(at, len, kind != Kind::Read, value));
                }
                _ => self.threads[id].invoked = self.event(),
            }
        }
        if self.fault == Fault::LayoutBeforeWord {
            let layout = self.current(id);
            self.threads[id].layout = Some(layout);
        }
        if matches!(kind, Kind::Write | Kind::Cut) { Stage::Gate } else { Stage::LookUp }
    }

    fn outside(&mut self, id: usize) -> Stage {
        self.threads[id].is_inside = false;
        Stage::Enter
    }

    fn gate(&mut self, id: usize) -> Stage {
        let (kind, at, len) = (self.threads[id].kind, self.threads[id].at, self.threads[id].len);
        if self.is_truncating && kind == Kind::Write {
            // Whoever cut has died, then the flag is anybody's to clear.
            self.is_truncating = self.cutter.is_some();
            return self.outside(id);
        }
        let now_ns = self.now_ns;
        let (turn, mask) = self.cells.asking(|words| turn(words, (at as u64) << BLOCK_SHIFT, (len as u64) << BLOCK_SHIFT, || now_ns));
        match turn {
            Turn::Go if mask != 0 => Stage::Mark(mask),
            Turn::Go => Stage::LookUp,
            Turn::Wait => self.outside(id),
            Turn::Publish(publication) => {
                self.outside(id);
                Stage::Help(publication, false)
            }
        }
    }

    fn mark(&mut self, mask: u64) -> Stage {
        self.cells.mark(0, mask);
        Stage::LookUp
    }

    /// The mover's last step, in two.
    fn help(&mut self, publication: Publication, has_renamed: bool) -> Stage {
        if !has_renamed {
            self.rename(publication.generation);
            return Stage::Help(publication, true);
        }
        let cells = std::rc::Rc::clone(&self.cells);
        let done: Result<(), ()> = publish(&*cells, publication, |generation| {
            self.rename(generation);
            self.disk.sync_dir();
            Ok(())
        });
        self.count(Count::Helped);
        self.tell(|| format!("a waiter publishes {publication:?} {done:?}"));
        // A mapper asks the word again, all others enter.
        Stage::Enter
    }

    /// Renames the layout that waits, if it is of this generation and still there.
    pub fn rename(&mut self, generation: u64) {
        if let Some(written) = self.disk.prepared.filter(|written| written.layout.generation == generation) {
            self.disk.rename(written);
            self.disk.prepared = None;
        }
    }

    /// The layout in force, as a process finds it.
    fn current(&mut self, id: usize) -> Layout {
        let process = &mut self.processes[self.threads[id].process];
        if process.loaded.generation != self.cells.generation.get() {
            process.loaded = self.disk.layout.layout;
            self.cells.raise_generation(process.loaded.generation);
        }
        process.loaded
    }

    fn look_up(&mut self, id: usize) -> Stage {
        let layout = match self.threads[id].layout {
            Some(early) if self.threads[id].kind != Kind::Read => early,
            _ => self.current(id),
        };
        self.threads[id].layout = Some(layout);
        match self.threads[id].kind {
            Kind::Cut => {
                self.is_truncating = true;
                let waits = (0..self.threads.len()).filter(|&other| other != id).filter_map(|other| Some((other, self.inside(other)?))).collect();
                Stage::Drain(waits, self.now_ns + DRAIN_NS)
            }
            Kind::Map => {
                self.threads[id].is_inside = false;
                Stage::Mapped(3)
            }
            _ => Stage::Block(0),
        }
    }

    fn block(&mut self, id: usize, number: usize) -> Stage {
        let (kind, at, len, value) = (self.threads[id].kind, self.threads[id].at, self.threads[id].len, self.threads[id].value);
        let Some(layout) = self.threads[id].layout else { return Stage::Leave };
        if kind == Kind::Flush {
            self.disk.sync(number);
            return if number == 1 { Stage::Leave } else { Stage::Block(1) };
        }
        let (block, plane) = (at + number, layout.plane(at + number));
        if kind == Kind::Write {
            self.disk.write(plane, block, value);
            self.tell(|| format!("thread {id} writes {value} to block {block} in plane {plane}"));
        } else {
            let value = self.disk.read(plane, block);
            let op = self.threads[id].op.unwrap_or_default();
            self.ops[op + number].value = value;
            self.tell(|| format!("thread {id} reads {value} from block {block} in plane {plane}"));
        }
        if number + 1 == len { Stage::Leave } else { Stage::Block(number + 1) }
    }

    fn drain(&mut self, id: usize, mut waits: Vec<(usize, u64)>, until_ns: u64) -> Stage {
        waits.retain(|&(other, epoch)| self.inside(other) == Some(epoch));
        if waits.is_empty() {
            return Stage::CutBlocks;
        }
        if self.now_ns > until_ns {
            // Refused, nothing was changed: it is no part of the history.
            let (op, len) = (self.threads[id].op.unwrap_or_default(), self.threads[id].len);
            for op in &mut self.ops[op..op + len] {
                (op.is_write, op.returned) = (false, crate::history::register::NEVER);
            }
            self.threads[id].op = None;
            return self.end_cut();
        }
        Stage::Drain(waits, until_ns)
    }

    fn cut_blocks(&mut self, id: usize) -> Stage {
        let (at, value) = (self.threads[id].at, self.threads[id].value);
        self.count(Count::Cut);
        if let Some(layout) = self.threads[id].layout {
            for block in at..BLOCKS {
                self.disk.write(layout.plane(block), block, value);
            }
        }
        self.tell(|| format!("thread {id} cuts from block {at} on, {value}"));
        self.end_cut()
    }

    fn end_cut(&mut self) -> Stage {
        self.is_truncating = false;
        self.cutter = None;
        Stage::Leave
    }

    fn call_off(&mut self, id: usize) -> Stage {
        match call_off(&*self.cells, self.now_ns) {
            Turn::Go => {
                self.count(Count::Mapped);
                self.tell(|| format!("thread {id} maps the file"));
                Stage::Enter
            }
            Turn::Wait => Stage::CallOff,
            Turn::Publish(publication) => {
                self.help(publication, false);
                self.help(publication, true);
                Stage::CallOff
            }
        }
    }

    /// Loads and stores through a map ask nobody.
    fn mapped(&mut self, id: usize, left: usize) -> Stage {
        let process = self.threads[id].process;
        let Some(layout) = self.threads[id].layout.filter(|_| left > 0) else {
            self.processes[process].pins -= 1;
            return Stage::Idle;
        };
        let block = self.random.below(BLOCKS);
        let plane = layout.plane(block);
        if self.random.chance(1, 2) {
            self.written += 1;
            let value = self.written;
            let op = self.invoke(block, 1, true, value);
            self.disk.write(plane, block, value);
            self.ops[op].returned = self.event();
            self.tell(|| format!("thread {id} writes {value} to block {block} in plane {plane} through a map"));
        } else {
            let op = self.invoke(block, 1, false, self.disk.read(plane, block));
            self.ops[op].returned = self.event();
        }
        Stage::Mapped(left - 1)
    }

    fn leave(&mut self, id: usize) -> Stage {
        self.threads[id].is_inside = false;
        let returned = self.event();
        let thread = &self.threads[id];
        match (thread.kind, thread.op) {
            (Kind::Flush, _) => self.flushed = self.flushed.max(thread.invoked),
            (_, Some(op)) => {
                let len = thread.len;
                for op in &mut self.ops[op..op + len] {
                    op.returned = returned;
                }
            }
            _ => {}
        }
        Stage::Idle
    }
}
