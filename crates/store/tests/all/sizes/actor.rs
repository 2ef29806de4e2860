//! A program, step by step as the preloaded library takes them: the gate, the lines, the exclusive lock. Which steps a cut and an extension have, and in
//! what order, is `sizing`'s own. Between any two steps anybody else may go, and a kill may come.

use crate::sizes::world::{BLOCKS, LINES, OBJECTS, Words, World};
use std::ops::ControlFlow;
use stripewise_store::sizing::{
    CUT, CutStep, Cutter, EXTEND, ExtendStep, Extender, Extension, Note, Sizes, Written, is_claimable, is_unsettled, take_cut, take_extend,
};

/// Times that one may begin anew before he counts as waiting for ever.
const STUCK: u32 = 60;

/// Ways to get it wrong that the checks must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    None,
    /// A step of a cut is left out.
    WithoutCut(CutStep),
    /// A step of an extension is left out.
    WithoutExtend(ExtendStep),
    /// Objects are cut before the size is.
    TrimFirst,
    /// Whoever finds a dead one's intent takes it away.
    ClearsIntent,
    /// What lies behind the size goes by the size of before the drain.
    SizeBeforeDrain,
    /// A growth looks neither for an intent nor for notes.
    GrowsUnsettled,
    /// A truncate upward makes no objects.
    GrowsUnmade,
    /// A flush does not look either.
    FlushesUnsettled,
    /// A dead one's line is taken with the note in it.
    ClaimsAnyLine,
    /// A write that failed half way leaves what it wrote.
    KeepsFailed,
}

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Writes blocks; fails after so many.
    Write {
        at: usize,
        len: usize,
        fails_after: usize,
    },
    Append {
        len: usize,
    },
    /// Makes blocks the file's without writing them.
    Allocate {
        at: usize,
        len: usize,
    },
    Truncate {
        to: usize,
    },
    Flush,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Idle,
    Begin,
    Gate,
    Extend(usize),
    Block(usize),
    Leave,
    /// Waits for the exclusive lock.
    Lock(Then),
    /// Has it.
    Locked(Then),
    Cut(usize, Then),
    Trim(usize, Then),
    End,
}

/// Why the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Then {
    /// An intent stands in the way.
    Finish,
    /// A line is needed.
    Claim,
    /// Something dead lies where the file is to grow to.
    Settle(u64),
    /// The write failed.
    TakeBack,
    Truncate,
    Append,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Actor {
    pub me: usize,
    pub is_inside: bool,
    /// Who must leave before the drain is over.
    awaited: u32,
    task: Task,
    stage: Stage,
    value: u64,
    began: u64,
    at: usize,
    /// Holds the exclusive lock from beginning to end.
    keeps_lock: bool,
    line: Option<usize>,
    extension: Option<Extension>,
    written: Written,
    /// To what it cuts, the size that it found when it began to, and whether an object is cut.
    cut_to: Option<u64>,
    size_found: u64,
    has_trimmed: bool,
    retries: u32,
}

/// The effects of a cut are taken object by object, by [`Actor`]: here they only say to what size.
struct Noting {
    words: Words,
    trims_to: Option<u64>,
}

impl Cutter for Noting {
    type Error = ();
    type Words = Words;
    fn words(&self) -> Words {
        self.words.clone()
    }
    fn drain(&mut self) -> Result<(), ()> {
        Ok(())
    }
    fn trim(&mut self, size: u64) -> Result<(), ()> {
        self.trims_to = Some(size);
        Ok(())
    }
    fn has_cut(&self) -> bool {
        false
    }
}

/// An extension's making and writing are [`Actor`]'s, too.
struct Doing<A> {
    is_alive: A,
    done: Written,
}

impl<A: Fn(usize) -> bool> Extender for Doing<A> {
    type Error = ();
    fn make(&mut self, _size: u64) -> Result<(), ()> {
        Ok(())
    }
    fn is_alive(&mut self, line: usize) -> bool {
        (self.is_alive)(line)
    }
    fn write(&mut self) -> Written {
        self.done
    }
}

impl Actor {
    pub fn new(me: usize) -> Self {
        Self {
            me,
            is_inside: false,
            awaited: 0,
            task: Task::Flush,
            stage: Stage::Idle,
            value: 0,
            began: 0,
            at: 0,
            keeps_lock: false,
            line: None,
            extension: None,
            written: Written::default(),
            cut_to: None,
            size_found: 0,
            has_trimmed: false,
            retries: 0,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    /// Whether it can only look on until another one gives the lock back or leaves.
    pub fn waits(&self, world: &World) -> bool {
        let drains = matches!(self.stage, Stage::Cut(step, _) if CUT.get(step) == Some(&CutStep::Drain)) && self.awaited != 0;
        matches!(self.stage, Stage::Lock(_)) && world.lock.is_some_and(|holder| holder != self.me) || drains
    }

    pub fn begin(&mut self, task: Task, world: &mut World) {
        let (me, line) = (self.me, self.line);
        // Values of the beginning are below.
        *self = Self { task, stage: Stage::Begin, began: world.event(), value: 1000 + world.events, line, ..Self::new(me) };
    }

    /// It dies. What it held goes with it.
    pub fn kill(&mut self, world: &mut World) {
        if world.lock == Some(self.me) {
            world.lock = None;
        }
        if let Some(line) = self.line {
            world.owners[line] = None;
        }
        if !self.is_idle() {
            world.was_abandoned(self.value);
        }
        *self = Self::new(self.me);
    }

    /// Whether somebody is awaited who has left.
    pub fn forget(&mut self, who: usize) {
        self.awaited &= !(1 << who);
    }

    pub fn step(&mut self, world: &mut World, inside: u32, fault: Fault) {
        self.stage = match self.stage {
            Stage::Idle => Stage::Idle,
            Stage::Begin => self.start(world, fault),
            Stage::Gate => self.gate(world),
            Stage::Extend(step) => self.extend(step, world, fault),
            Stage::Block(number) => self.block(number, world),
            Stage::Leave => self.leave(world, fault),
            Stage::Lock(then) if world.lock.is_some_and(|holder| holder != self.me) => Stage::Lock(then),
            Stage::Lock(then) => {
                world.lock = Some(self.me);
                Stage::Locked(then)
            }
            Stage::Locked(then) => self.locked(then, world, fault),
            Stage::Cut(step, then) => self.cut(step, then, world, inside, fault),
            Stage::Trim(object, then) => self.trim(object, then, world),
            Stage::End => self.end(world),
        };
    }

    fn start(&mut self, world: &mut World, fault: Fault) -> Stage {
        match self.task {
            Task::Append { .. } if !self.keeps_lock => Stage::Lock(Then::Append),
            Task::Truncate { .. } => Stage::Lock(Then::Truncate),
            Task::Flush if fault != Fault::FlushesUnsettled && self.is_unsettled(world, u64::MAX) => Stage::Lock(Then::Settle(u64::MAX)),
            Task::Flush => {
                self.check_flush(world);
                Stage::End
            }
            _ => {
                self.retries += 1;
                if self.retries > STUCK {
                    world.fail(format!("program {} waits for ever: {self:?}", self.me));
                }
                self.is_inside = true;
                Stage::Gate
            }
        }
    }

    /// After a flush a power cut's recovery takes the longest object for the file's end: nothing lies there but what living ones are writing.
    fn check_flush(&self, world: &mut World) {
        for block in world.words.size() as usize..BLOCKS {
            let value = world.blocks[block];
            if world.banned.get(&(block, value)).is_some_and(|since| *since < self.began || *since == u64::MAX) {
                world.fail(format!("block {block}: {value} lies behind the end of a file that was flushed"));
            }
        }
    }

    fn is_unsettled(&self, world: &World, to: u64) -> bool {
        is_unsettled(&world.words, to, |line| self.is_alive(world, line))
    }

    /// Of the first line only the one who uses it knows.
    fn is_alive(&self, world: &World, line: usize) -> bool {
        if line == 0 { self.extension.is_some_and(|extension| extension.line == 0) } else { world.owners[line].is_some() }
    }

    fn gate(&mut self, world: &World) -> Stage {
        if world.words.is_cut_intended() {
            self.is_inside = false;
            return Stage::Lock(Then::Finish);
        }
        let size = world.words.size() as usize;
        let (at, len) = match self.task {
            Task::Write { at, len, .. } | Task::Allocate { at, len } => (at, len),
            Task::Append { len } => (size, len.min(BLOCKS - size)),
            _ => (0, 0),
        };
        self.at = at;
        if at + len <= size {
            (self.extension, self.written) = (None, Written::default());
            return if len == 0 { Stage::Leave } else { Stage::Block(0) };
        }
        let free = |line: &usize| world.words.note(*line).end == 0;
        let Some(line) = self.line.filter(free).or_else(|| self.keeps_lock.then_some(0).filter(free)) else {
            self.is_inside = false;
            return Stage::Lock(Then::Claim);
        };
        let (start, end) = (at as u64, (at + len) as u64);
        let shows = if matches!(self.task, Task::Allocate { .. }) { end } else { start };
        self.extension = Some(Extension { line, note: Note { start, end }, shows });
        Stage::Extend(0)
    }

    fn extend(&mut self, step: usize, world: &mut World, fault: Fault) -> Stage {
        let (Some(extension), Some(&now)) = (self.extension, EXTEND.get(step)) else { return Stage::Leave };
        if now == ExtendStep::Write && self.written == Written::default() {
            return Stage::Block(0);
        }
        if fault == Fault::WithoutExtend(now) {
            return Stage::Extend(step + 1);
        }
        let (size, done) = (world.words.size(), self.written);
        let mut written = self.written;
        if now == ExtendStep::Make {
            world.make(extension.note.end);
            return Stage::Extend(step + 1);
        }
        let mut doing = Doing { is_alive: |line| self.is_alive(world, line), done };
        let taken = take_extend(now, &world.words, &extension, &mut written, &mut doing);
        match taken.unwrap_or(ControlFlow::Continue(())) {
            ControlFlow::Break(()) => {
                (self.is_inside, self.extension) = (false, None);
                Stage::Lock(Then::Settle(extension.shows))
            }
            ControlFlow::Continue(()) => {
                world.has_grown(size, self.began);
                Stage::Extend(step + 1)
            }
        }
    }

    fn block(&mut self, number: usize, world: &mut World) -> Stage {
        let (len, fails_after) = match (self.task, self.extension) {
            (Task::Write { len, fails_after, .. }, _) => (len, fails_after),
            (Task::Append { .. }, Some(extension)) => ((extension.note.end - extension.note.start) as usize, usize::MAX),
            _ => (0, usize::MAX),
        };
        if number < len && number != fails_after {
            world.store(self.at + number, self.value);
            return Stage::Block(number + 1);
        }
        let Some(extension) = self.extension else { return Stage::Leave };
        let reached = if len == 0 { extension.note.end } else { (self.at + number) as u64 };
        // The block after the prefix went to another object and is there.
        let leaves_bytes = number < len && number + 1 < len;
        if leaves_bytes {
            world.store(self.at + number + 1, self.value);
        }
        self.written =
            Written { reached: if number == 0 && len > 0 { 0 } else { reached }, leaves_bytes: leaves_bytes || (number < len && number == 0) };
        let step = EXTEND.iter().position(|step| *step == ExtendStep::Write).unwrap_or_default();
        Stage::Extend(step + 1)
    }

    /// What was written is there for good from here on: a cut waits until it has left.
    fn leave(&mut self, world: &mut World, fault: Fault) -> Stage {
        let reached = match (self.task, self.extension) {
            (Task::Write { at, len, fails_after }, None) => at + len.min(fails_after),
            (Task::Write { .. } | Task::Append { .. }, Some(_)) => self.written.reached as usize,
            _ => 0,
        };
        for block in (self.at..reached).filter(|block| world.blocks[*block] == self.value) {
            world.acknowledged[block] = Some(self.value);
        }
        self.is_inside = false;
        if self.written.leaves_bytes && fault != Fault::KeepsFailed { Stage::Lock(Then::TakeBack) } else { Stage::End }
    }

    fn locked(&mut self, then: Then, world: &mut World, fault: Fault) -> Stage {
        let cut = |me: &mut Self, to: Option<u64>| {
            (me.cut_to, me.size_found, me.has_trimmed) = (to, world.words.size(), false);
            Stage::Cut(0, then)
        };
        match then {
            Then::Finish if fault == Fault::ClearsIntent => world.words.intend_cut(false),
            Then::Finish if world.words.is_cut_intended() => return cut(self, None),
            Then::Settle(to) if self.is_unsettled(world, to) => return cut(self, None),
            Then::TakeBack => return cut(self, None),
            Then::Claim => self.claim(world, fault),
            Then::Append => self.keeps_lock = true,
            Then::Truncate => {
                let Task::Truncate { to } = self.task else { return Stage::End };
                if (to as u64) < world.words.size() {
                    return cut(self, Some(to as u64));
                }
                if fault != Fault::GrowsUnsettled && self.is_unsettled(world, to as u64) {
                    return cut(self, None);
                }
                if fault != Fault::GrowsUnmade {
                    world.make(to as u64);
                }
                let size = world.words.size();
                world.words.raise_size(to as u64);
                world.has_grown(size, self.began);
                return Stage::End;
            }
            Then::Finish | Then::Settle(_) => {}
        }
        self.go_on(world)
    }

    fn claim(&mut self, world: &mut World, fault: Fault) {
        let may = |line: &usize| world.owners[*line].is_none() && (fault == Fault::ClaimsAnyLine || is_claimable(&world.words, *line));
        if let Some(line) = (1..LINES).find(may).filter(|_| self.line.is_none()) {
            world.words.set_note(line, Note::default());
            (world.owners[line], self.line) = (Some(self.me), Some(line));
        } else {
            self.keeps_lock = true;
        }
    }

    /// Begins anew, with the lock if it is kept.
    fn go_on(&self, world: &mut World) -> Stage {
        if !self.keeps_lock {
            world.lock = None;
        } else if world.words.note(0).end != 0 {
            // Left by one who died with the lock.
            return Stage::Locked(Then::Settle(u64::MAX));
        }
        Stage::Begin
    }

    fn cut(&mut self, step: usize, then: Then, world: &mut World, inside: u32, fault: Fault) -> Stage {
        let Some(&now) = CUT.get(step) else { return self.has_cut(then, world) };
        if fault == Fault::TrimFirst && now == CutStep::Resize && !self.has_trimmed && self.cut_to.is_some() {
            return Stage::Trim(0, then);
        }
        if fault == Fault::WithoutCut(now) {
            return Stage::Cut(step + 1, then);
        }
        let to = if fault == Fault::SizeBeforeDrain { self.cut_to.or(Some(self.size_found)) } else { self.cut_to };
        let mut noting = Noting { words: world.words.clone(), trims_to: None };
        let _ = take_cut(now, &mut noting, to);
        match now {
            CutStep::Intend => self.awaited = inside & !(1 << self.me),
            CutStep::Drain if self.awaited != 0 => return Stage::Cut(step, then),
            CutStep::Resize if self.cut_to.is_some() => world.was_cut(),
            CutStep::Trim if !self.has_trimmed => return Stage::Trim(0, then),
            _ => {}
        }
        Stage::Cut(step + 1, then)
    }

    fn trim(&mut self, object: usize, then: Then, world: &mut World) -> Stage {
        let place = |step: CutStep| CUT.iter().position(|other| *other == step).unwrap_or_default();
        let is_early = self.cut_to.is_some_and(|to| to < world.words.size());
        world.trim(object, if is_early { self.cut_to.unwrap_or_default() } else { world.words.size() });
        if object + 1 < OBJECTS {
            return Stage::Trim(object + 1, then);
        }
        self.has_trimmed = true;
        Stage::Cut(place(if is_early { CutStep::Resize } else { CutStep::Trim }) + usize::from(!is_early), then)
    }

    fn has_cut(&mut self, then: Then, world: &mut World) -> Stage {
        match then {
            Then::Truncate if self.cut_to.is_none() => Stage::Locked(Then::Truncate),
            Then::Truncate | Then::TakeBack => Stage::End,
            _ => self.go_on(world),
        }
    }

    /// It returns.
    fn end(&mut self, world: &mut World) -> Stage {
        if world.lock == Some(self.me) {
            world.lock = None;
        }
        world.was_abandoned(self.value);
        let stands = self.extension.is_some_and(|extension| world.words.note(extension.line).end != 0);
        if stands {
            world.fail(format!("program {}: a note stands of what has ended", self.me));
        }
        Stage::Idle
    }
}
