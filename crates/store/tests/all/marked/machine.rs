//! A history: processes with threads, the command that makes copies, and what happens to them by chance.

use crate::history::random::Random;
use crate::marked::builder::{Builder, Stage as Building};
use crate::marked::fault::Fault;
use crate::marked::program::{Place, Stage, Task, Thread};
use crate::marked::world::{BLOCKS, PIECES, World};

/// What happened how often: shows that histories are what they are meant to be.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    Built,
    Dropped,
    Refused,
    Learned,
    Begun,
    Copied,
    Stale,
    Invalidated,
    InvalidatedAlone,
    Noted,
    ReadCopy,
    ReadInvalidated,
    ReadHome,
    ReadCopyLater,
    Cut,
    Stored,
    Killed,
    BuilderKilled,
    PowerCut,
}

/// What is counted, in the order of [`Count`].
pub const NAMES: [&str; Count::PowerCut as usize + 1] = [
    "copies made",
    "copies dropped",
    "copies refused of mapped files",
    "times that a process learned of copies",
    "writes marked",
    "writes with their copies",
    "writes without",
    "marks of what copies do not follow",
    "writes that invalidate copies and update none",
    "notes of a boot",
    "reads from a copy",
    "reads from a copy that writes invalidate",
    "reads from the home",
    "reads from a copy after a power cut",
    "cuts",
    "stores through a map",
    "processes killed",
    "makers of copies killed",
    "power cuts",
];

/// What a process knows of copies.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Of which, counted from 1.
    pub container: usize,
    pub place: Place,
    /// Who of it is finding out.
    pub learner: Option<usize>,
}

pub struct Process {
    pub known: Known,
    pub pins: usize,
}

impl Process {
    fn new() -> Self {
        Self { known: Known { container: 0, place: Place::None, learner: None }, pins: 0 }
    }
}

pub struct Machine {
    pub world: World,
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    pub builder: Builder,
    pub random: Random,
    pub fault: Fault,
    pub counts: [u64; NAMES.len()],
    /// Until which step a thread is not scheduled; the last is the builder's.
    stopped: Vec<usize>,
    values: u64,
}

impl Machine {
    fn new(seed: u64, fault: Fault, with_trace: bool) -> Self {
        let mut random = Random::new(seed);
        let world = World::new(1 + random.below(BLOCKS), with_trace);
        let processes: Vec<Process> = (0..1 + random.below(3)).map(|_| Process::new()).collect();
        let threads: Vec<Thread> = (0..processes.len()).flat_map(|process| vec![Thread::new(process); 1 + random.below(2)]).collect();
        let stopped = vec![0; threads.len() + 1];
        let counts = [0; NAMES.len()];
        Self { world, processes, threads, builder: Builder::new(), random, fault, counts, stopped, values: 100 }
    }

    pub fn count(&mut self, what: Count) {
        self.counts[what as usize] += 1;
    }

    pub fn value(&mut self) -> u64 {
        self.values += 1;
        self.values
    }

    /// Who is inside an I/O, but for one.
    pub fn inside(&self, but: usize) -> Vec<(usize, u64)> {
        self.threads.iter().enumerate().filter(|(id, thread)| *id != but && thread.is_inside).map(|(id, thread)| (id, thread.epoch)).collect()
    }

    /// Who of them still is.
    pub fn still_inside(&self, mut awaited: Vec<(usize, u64)>) -> Vec<(usize, u64)> {
        awaited.retain(|(id, epoch)| self.threads[*id].is_inside && self.threads[*id].epoch == *epoch);
        awaited
    }

    fn task(&mut self) -> Task {
        let random = &mut self.random;
        // Mostly the same block, so that they meet.
        let at = if random.chance(2, 3) { 0 } else { random.below(BLOCKS) };
        let len = 1 + random.below((BLOCKS - at).min(2));
        match random.below(40) {
            0..=13 => {
                let only = random.chance(1, 3).then(|| random.below(PIECES));
                let len = if only.is_some() { 1 } else { len };
                Task::Write { at, len, only, takes: if random.chance(1, 8) { random.below(len + 1) } else { len } }
            }
            14..=34 => {
                let only = random.chance(1, 3).then(|| random.below(PIECES));
                Task::Read { at, len: if only.is_some() { 1 } else { len }, only }
            }
            35 => Task::Punch { at, len },
            36 => Task::Truncate { to: random.below(BLOCKS) },
            37 | 38 => Task::Truncate { to: BLOCKS },
            _ => Task::Map { at, stores: 1 + random.below(3) },
        }
    }

    /// All threads of a process are gone, and another process comes.
    fn kill(&mut self, process: usize) {
        self.world.tell(|| format!("process {process} is killed"));
        for id in 0..self.threads.len() {
            if self.threads[id].process == process {
                if self.world.lock == Some(id) {
                    self.world.lock = None;
                }
                self.world.has_remains |= self.threads[id].has_note;
                let epoch = self.threads[id].epoch;
                self.threads[id] = Thread::new(process);
                self.threads[id].epoch = epoch;
            }
        }
        self.processes[process] = Process::new();
    }

    fn accident(&mut self, step: usize) {
        match self.random.below(20) {
            0 | 1 => {
                self.count(Count::PowerCut);
                self.cut_power();
            }
            2 | 3 => {
                self.count(Count::BuilderKilled);
                self.world.tell(|| "the builder is killed".to_owned());
                self.builder = Builder::new();
            }
            4..=8 => {
                self.count(Count::Killed);
                let process = self.random.below(self.processes.len());
                self.kill(process);
            }
            _ => {
                let who = self.random.below(self.stopped.len());
                self.stopped[who] = step + 5 + self.random.below(60);
            }
        }
    }

    fn cut_power(&mut self) {
        for process in 0..self.processes.len() {
            self.kill(process);
        }
        self.builder = Builder::new();
        self.world.cut_power(&mut self.random);
        self.world.tell(|| "the power was cut".to_owned());
    }

    fn step(&mut self, who: usize, step: usize) {
        let is_slow = match self.threads.get(who).map(|thread| thread.stage) {
            // What opens and flushes files takes longer than a look at memory.
            Some(stage) => matches!(
                stage,
                Stage::LearnRecord(_) | Stage::LearnMarks(..) | Stage::LearnPlace(..) | Stage::Noted(_) | Stage::Resize | Stage::Trim(_)
            ),
            None => matches!(self.builder.stage, Building::Drop(_) | Building::Count | Building::FlushWord),
        };
        if is_slow && self.random.chance(1, 2) {
            self.stopped[who] = step + 5 + self.random.below(60);
        }
        if who == self.threads.len() {
            // Copies are made now and then.
            if self.builder.stage != Building::Idle || self.world.record.get().is_none() || self.random.chance(1, 40) {
                self.build();
            }
        } else if self.threads[who].stage == Stage::Idle {
            let (task, value) = (self.task(), self.value());
            self.begin(who, task, value);
        } else {
            self.advance(who);
        }
    }

    fn begin(&mut self, who: usize, task: Task, value: u64) {
        self.world.tell(|| format!("thread {who} begins {task:?}, {value}"));
        let time = self.world.time();
        self.threads[who].begin(task, value, time);
    }

    /// The last one reads all of it, block by block.
    fn read_all(&mut self) {
        for process in 0..self.processes.len() {
            self.kill(process);
        }
        for block in 0..BLOCKS {
            self.begin(0, Task::Read { at: block, len: 1, only: None }, 0);
            while self.threads[0].stage != Stage::Idle {
                self.advance(0);
            }
        }
    }

    /// The history of a seed, from beginning to end.
    pub fn history(seed: u64, fault: Fault, with_trace: bool) -> Self {
        let mut machine = Self::new(seed, fault, with_trace);
        // Most histories begin with copies that count.
        if machine.random.chance(3, 4) {
            while machine.world.record.get().is_none() || machine.builder.stage != Building::Idle {
                machine.build();
            }
        }
        let (mut who, mut left) = (0, 0);
        for step in 0..150 + machine.random.below(650) {
            if machine.random.chance(1, 50) {
                machine.accident(step);
            }
            // One goes some steps, now and then so many that what it does is done.
            if left == 0 {
                who = machine.random.below(machine.stopped.len());
                left = if machine.random.chance(1, 5) { 1 + machine.random.below(50) } else { 1 + machine.random.below(3) };
            }
            left -= 1;
            if machine.stopped[who] <= step {
                machine.step(who, step);
            }
            if machine.world.violation.is_some() {
                return machine;
            }
        }
        machine.read_all();
        if machine.world.violation.is_none() && machine.random.chance(1, 2) {
            machine.cut_power();
            machine.read_all();
        }
        machine
    }
}
