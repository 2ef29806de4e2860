//! The machine of a history: processes with threads, the shared words, the disk and the clock, and what happens to them by chance. Everything else takes
//! its steps in here, and every step that changes something goes through it.

use crate::history::disk::{BLOCKS, Disk, HOLE, INITIAL, Layout, Phase};
use crate::history::faults::Fault;
use crate::history::program::Thread;
use crate::history::random::Random;
use crate::history::register::{NEVER, Op, violation};
use crate::history::words::Cells;
use std::cell::RefCell;
use std::rc::Rc;

/// The machine as the mover holds it.
pub type Shared = Rc<RefCell<Sim>>;

/// A program.
#[derive(Clone, Copy)]
pub struct Process {
    pub is_alive: bool,
    /// It is stopped until this step.
    pub stopped_until: u64,
    /// The layout that it loaded last.
    pub loaded: Layout,
    pub pins: u64,
}

/// What happened how often: shows that histories are what they are meant to be.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    Published,
    CalledOff,
    Failed,
    Thawed,
    Helped,
    Mapped,
    Cut,
    Killed,
    Stopped,
    MoverKilled,
    PowerCut,
}

/// Kinds of [`Count`].
pub const COUNTS: usize = Count::PowerCut as usize + 1;

pub struct Sim {
    pub counts: [u64; COUNTS],
    /// The history is over; only the last mover still works.
    pub is_quiet: bool,
    pub random: Random,
    pub fault: Fault,
    pub cells: Rc<Cells>,
    pub disk: Disk,
    pub now_ns: u64,
    pub step: u64,
    /// Steps that the history has.
    pub steps: u64,
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    /// Who keeps everybody else out of the file to cut it.
    pub cutter: Option<usize>,
    pub is_truncating: bool,
    pub is_mover_dead: bool,
    /// The power is off: nothing goes on.
    pub is_dark: bool,
    pub ops: Vec<Op>,
    pub events: u64,
    pub initial: [u64; BLOCKS],
    /// Invocation of the last flush that returned.
    pub flushed: u64,
    pub written: u64,
    pub violation: Option<String>,
    pub trace: Option<Vec<String>>,
}

impl Sim {
    pub fn new(seed: u64, fault: Fault, with_trace: bool) -> Self {
        let mut random = Random::new(seed);
        let steps = 100 + random.below(900) as u64;
        let mut sim = Self {
            counts: [0; COUNTS],
            is_quiet: false,
            random,
            fault,
            cells: Rc::default(),
            disk: Disk::new(),
            now_ns: 0,
            step: 0,
            steps,
            processes: vec![],
            threads: vec![],
            cutter: None,
            is_truncating: false,
            is_mover_dead: false,
            is_dark: false,
            ops: vec![],
            events: 1,
            initial: std::array::from_fn(|block| INITIAL + block as u64),
            flushed: 1,
            written: 1000,
            violation: None,
            trace: with_trace.then(Vec::new),
        };
        sim.cells.generation.set(1);
        for _ in 0..1 + sim.random.below(3) {
            sim.start();
        }
        sim
    }

    pub fn tell(&mut self, what: impl FnOnce() -> String) {
        let step = self.step;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{step:4} {}", what()));
        }
    }

    pub fn count(&mut self, what: Count) {
        self.counts[what as usize] += 1;
    }

    pub fn fail(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    pub fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    /// A new process with one or two threads.
    fn start(&mut self) {
        let process = self.processes.len();
        let loaded = self.disk.layout.layout;
        self.cells.generation.set(self.cells.generation.get().max(loaded.generation));
        self.processes.push(Process { is_alive: true, stopped_until: 0, loaded, pins: 0 });
        for _ in 0..1 + self.random.below(2) {
            self.threads.push(Thread::new(process));
        }
        self.tell(|| format!("process {process} starts"));
    }

    pub fn kill(&mut self, process: usize) {
        self.tell(|| format!("process {process} is killed"));
        self.count(Count::Killed);
        self.processes[process].is_alive = false;
        self.processes[process].pins = 0;
        if self.cutter.is_some_and(|thread| self.threads[thread].process == process) {
            self.cutter = None;
        }
    }

    pub fn is_over(&self) -> bool {
        (self.step >= self.steps && !self.is_quiet) || self.is_dark || self.violation.is_some()
    }

    pub fn is_pinned(&self) -> bool {
        self.processes.iter().any(|process| process.pins > 0)
    }

    /// Whether a thread lives, and the epoch that it is inside.
    pub fn inside(&self, thread: usize) -> Option<u64> {
        let t = &self.threads[thread];
        (t.is_inside && self.processes[t.process].is_alive).then_some(t.epoch)
    }

    /// Some steps of everybody but the mover: mostly few, now and then so many that freezes time out.
    pub fn others(&mut self) {
        if self.is_quiet {
            return;
        }
        let steps = match self.random.below(64) {
            0 => 30 + self.random.below(60),
            1..=5 => 5 + self.random.below(12),
            6..=28 => 1 + self.random.below(3),
            _ => 0,
        };
        for _ in 0..steps {
            if self.is_over() {
                return;
            }
            self.one();
        }
    }

    /// One step of one thread, or an accident.
    pub fn one(&mut self) {
        self.step += 1;
        self.now_ns += self.random.below(40) as u64;
        if self.random.chance(1, 80) {
            self.accident();
        }
        if !self.is_dark {
            let ready = |t: &Thread| self.processes[t.process].is_alive && self.processes[t.process].stopped_until <= self.step;
            let all: Vec<usize> = (0..self.threads.len()).filter(|&t| ready(&self.threads[t])).collect();
            if !all.is_empty() {
                let thread = all[self.random.below(all.len())];
                self.advance(thread);
            }
        }
    }

    fn accident(&mut self) {
        let process = self.random.below(self.processes.len());
        match self.random.below(12) {
            0..=2 => self.kill(process),
            // Who is stopped while it cuts would keep everybody out for as long: that is so without moves too.
            3..=6 if self.cutter.is_none_or(|thread| self.threads[thread].process != process) => {
                let until = if self.random.chance(1, 4) { u64::MAX } else { self.step + 5 + self.random.below(80) as u64 };
                self.tell(|| format!("process {process} is stopped until {until}"));
                self.count(Count::Stopped);
                self.processes[process].stopped_until = until;
            }
            7 | 8 if !self.is_mover_dead => {
                self.count(Count::MoverKilled);
                self.tell(|| "the mover is killed".to_owned());
                self.is_mover_dead = true;
            }
            9 if self.random.chance(1, 2) => {
                self.count(Count::PowerCut);
                self.tell(|| "the power is cut".to_owned());
                self.is_dark = true;
                self.is_mover_dead = true;
            }
            _ if self.processes.iter().filter(|process| process.is_alive).count() < 3 => self.start(),
            _ => {}
        }
    }

    /// The power comes back: what was flushed is there, and nothing that nobody wrote. A new history begins with what is there.
    pub fn restart(&mut self) {
        if let Err(what) = self.disk.cut_power(&mut self.random) {
            return self.fail(what);
        }
        let returned = self.event();
        let layout = self.disk.layout.layout;
        for block in 0..BLOCKS {
            let value = self.disk.read(layout.plane(block), block);
            self.ops.push(Op { block: block as u64, is_write: false, value, invoked: self.flushed, returned });
            self.check_block(block);
            self.initial[block] = value;
        }
        self.ops.clear();
        (self.events, self.flushed) = (1, 1);
        // A fresh boot: the words say that no move is under way, the bits are what they happened to be.
        self.cells.word.set(self.cells.word.get() & !7);
        self.cells.generation.set(layout.generation);
        (self.is_truncating, self.cutter, self.is_dark, self.is_mover_dead) = (false, None, false, false);
        self.processes.clear();
        self.threads.clear();
        self.start();
        self.tell(|| format!("the power is back, layout {layout:?}"));
    }

    fn check_block(&mut self, block: usize) {
        if let Some(what) = violation(block as u64, self.initial[block], &self.ops) {
            self.fail(what);
        }
    }

    /// Whoever lives and is not stopped ends what it is doing; nobody may be kept waiting for ever by those who are stopped.
    pub fn settle(&mut self) {
        for thread in 0..self.threads.len() {
            let process = self.processes[self.threads[thread].process];
            let mut rounds = 0;
            while process.is_alive && process.stopped_until <= self.step && !self.threads[thread].is_idle() && self.violation.is_none() {
                rounds += 1;
                if rounds > 500 {
                    self.fail(format!("thread {thread} waits for ever: {:?}", self.threads[thread]));
                }
                self.now_ns += 1000;
                // Whoever it may wait for goes on as well.
                for other in 0..self.threads.len() {
                    let p = self.processes[self.threads[other].process];
                    if p.is_alive && p.stopped_until <= self.step && !self.threads[other].is_idle() {
                        self.advance(other);
                    }
                }
            }
        }
    }

    /// One who comes reads the whole file.
    pub fn read_all(&mut self) {
        let layout = self.disk.layout.layout;
        let (invoked, returned) = (self.event(), self.event());
        for block in 0..BLOCKS {
            let value = self.disk.read(layout.plane(block), block);
            self.ops.push(Op { block: block as u64, is_write: false, value, invoked, returned });
            self.check_block(block);
        }
    }

    /// Those who are stopped are killed, and a mover comes that nobody disturbs.
    pub fn quiet(&mut self) {
        for process in 0..self.processes.len() {
            self.kill(process);
        }
        (self.is_quiet, self.is_mover_dead) = (true, false);
    }

    /// After that mover no byte is left where no byte belongs.
    pub fn look_for_leaks(&mut self) {
        let layout = self.disk.layout.layout;
        let leak = (0..BLOCKS).find(|&block| self.disk.read(1 - layout.plane(block), block) != HOLE);
        if layout.phase != Phase::None || leak.is_some() {
            self.fail(format!("left behind: {layout:?}, block {leak:?}"));
        }
    }

    /// Notes the beginning of an operation on some blocks; where it stands in the history.
    pub fn invoke(&mut self, at: usize, len: usize, is_write: bool, value: u64) -> usize {
        let invoked = self.event();
        for block in at..at + len {
            self.ops.push(Op { block: block as u64, is_write, value, invoked, returned: NEVER });
        }
        self.ops.len() - len
    }
}
