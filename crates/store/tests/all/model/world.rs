//! The memory that programs and mover share in the model, and the only way to it: one access is one step, before which the explorer may let anybody else
//! go first. So every interleaving of accesses is one that a sequentially consistent machine has, and as all words of the protocol are accessed
//! sequentially consistently, the real machine has no others.

use crate::model::register::{NEVER, Op, violation};
use std::sync::{Arc, Mutex, MutexGuard};
use stripewise_store::moving::Words;

/// Blocks of the file, all in the span that moves. A dirty bit stands for one.
pub const BLOCKS: usize = 2;
/// Most actors of a scenario.
pub const ACTORS: usize = 6;
/// The mover is the first of them.
pub const MOVER: usize = 0;
/// What a punched or never written block of an object reads as.
pub const HOLE: u64 = 0;
/// What the blocks hold at first: `INITIAL + block`.
pub const INITIAL: u64 = 1;
/// ns that pass at a time. A freeze of [`FREEZE_NS`] has lost half of its time after one tick and all of it after two.
pub const TICK_NS: u64 = 10;
/// How long the mover freezes.
pub const FREEZE_NS: u64 = 16;

/// All that is shared. Small and comparable: states are recognised by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    pub word: u64,
    pub span_len: u64,
    pub dirty: u64,
    pub deadline_ns: u64,
    pub next_generation: u64,
    pub generation: u64,
    pub truncating: bool,
    pub pins: u64,
    pub now_ns: u64,
    /// Whether an actor is inside an I/O.
    pub inside: [bool; ACTORS],
    /// Who of them must leave before a grace period of an actor is over: the same as comparing epochs, without counters that never repeat.
    pub awaited: [[bool; ACTORS]; ACTORS],
    /// Contents of the two homes.
    pub homes: [[u64; BLOCKS]; 2],
    /// Which of them a power cut would leave.
    pub synced: [[u64; BLOCKS]; 2],
    /// Generation of the layout file, and of the one that waits beside it (0 = none).
    pub layout: u64,
    pub prepared: u64,
    /// The mover was stopped or killed.
    pub is_stopped: bool,
}

/// A layout of an odd generation has its bytes in home 0, of an even one in home 1.
pub fn home(generation: u64) -> usize {
    usize::from(generation.is_multiple_of(2))
}

/// What the explorer knows of an actor: enough to tell two states apart.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Local {
    /// Hash of all it has seen and still may remember.
    pub seen: u64,
    pub has_finished: bool,
    /// It has nothing to do until the memory is no longer in this version.
    pub waits_for: Option<u64>,
}

/// One execution.
#[derive(Default)]
pub struct World {
    pub memory: Memory,
    pub locals: [Local; ACTORS],
    /// Who ever is inside an I/O.
    pub has_slot: [bool; ACTORS],
    /// Counts changes of the memory.
    pub version: u64,
    pub ops: Vec<Op>,
    pub events: u64,
    /// The rest of the execution is of no interest: everybody returns.
    pub is_over: bool,
    pub violation: Option<String>,
    pub trace: Vec<(usize, &'static str, u64)>,
}

impl World {
    pub fn new(has_slot: [bool; ACTORS]) -> Self {
        let mut world = Self { has_slot, ..Self::default() };
        world.memory.generation = 1;
        world.memory.layout = 1;
        for block in 0..BLOCKS {
            world.memory.homes[0][block] = INITIAL + block as u64;
        }
        world.memory.synced = world.memory.homes;
        world
    }

    pub fn fail(&mut self, what: String) {
        if !self.is_over {
            self.violation = Some(what);
            self.is_over = true;
        }
    }

    pub fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    /// At the end everybody reads what the layout in force tells, and all histories must be linearizable.
    pub fn check(&mut self) {
        let (invoked, returned) = (self.event(), self.event());
        for block in 0..BLOCKS {
            let value = self.memory.homes[home(self.memory.layout)][block];
            self.ops.push(Op { block: block as u64, is_write: false, value, invoked, returned });
        }
        for block in 0..BLOCKS as u64 {
            if let Some(what) = violation(block, INITIAL + block, &self.ops) {
                self.fail(what);
            }
        }
    }
}

/// FNV-like mixing: only equality counts.
pub fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (hash >> 31)
}

/// An actor's handle.
#[derive(Clone)]
pub struct Handle {
    pub world: Arc<Mutex<World>>,
    pub me: usize,
}

impl Handle {
    pub fn now(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    pub fn is_over(&self) -> bool {
        self.now().is_over
    }

    /// One step: others first, then one access.
    pub fn step(&self, what: &'static str, access: impl FnOnce(&mut World) -> u64) -> u64 {
        if !self.is_over() {
            shuttle::thread::yield_now();
        }
        self.along(what, access)
    }

    /// An access that goes along with the step before it: of what nobody else could look at in between.
    pub fn along(&self, what: &'static str, access: impl FnOnce(&mut World) -> u64) -> u64 {
        let mut world = self.now();
        let before = world.memory;
        let value = access(&mut world);
        if world.memory.generation < before.generation {
            world.fail("the generation in force went back".to_owned());
        }
        if world.memory != before {
            world.version += 1;
        }
        let local = &mut world.locals[self.me];
        local.seen = mix(local.seen, value + 1);
        if !world.is_over {
            world.trace.push((self.me, what, value));
        }
        value
    }

    /// Nothing to do until the memory changes.
    pub fn wait(&self) {
        let mut world = self.now();
        if world.is_over {
            return;
        }
        let version = world.version;
        world.locals[self.me].waits_for = Some(version);
        drop(world);
        shuttle::thread::yield_now();
        self.now().locals[self.me].waits_for = None;
    }

    /// All that the actor remembers from here on is where it is and `value`.
    pub fn forget(&self, place: u64, value: u64) {
        self.now().locals[self.me].seen = mix(mix(0, place), value);
    }

    /// What `work` sees is not remembered after it but for its result.
    pub fn forgetting<R>(&self, work: impl FnOnce() -> R, result: impl FnOnce(&R) -> u64) -> R {
        let before = self.now().locals[self.me].seen;
        let done = work();
        self.now().locals[self.me].seen = mix(mix(before, 77), result(&done));
        done
    }

    pub fn enter(&self, begins: impl FnOnce(&mut World)) {
        self.step("enters", |world| {
            world.memory.inside[self.me] = true;
            begins(world);
            0
        });
    }

    pub fn leave(&self, ends: impl FnOnce(&mut World)) {
        self.step("leaves", |world| {
            world.memory.inside[self.me] = false;
            for waiter in &mut world.memory.awaited {
                waiter[self.me] = false;
            }
            ends(world);
            0
        });
    }

    /// Waits until everybody else has left; false when it is later than `until_ns` before they have.
    pub fn grace(&self, until_ns: Option<u64>) -> bool {
        let (me, has_slot) = (self.me, self.now().has_slot);
        for other in (0..ACTORS).filter(|&other| other != me && has_slot[other]) {
            self.step("looks at a slot", |world| {
                world.memory.awaited[me][other] = world.memory.inside[other];
                0
            });
            while !self.is_over() && self.step("looks whether it left", |world| u64::from(world.memory.awaited[me][other])) != 0 {
                if until_ns.is_some_and(|until| self.time() > until) {
                    self.now().memory.awaited[me] = [false; ACTORS];
                    return false;
                }
                self.wait();
            }
        }
        true
    }

    pub fn time(&self) -> u64 {
        self.step("looks at the time", |world| world.memory.now_ns)
    }

    /// Begins an operation on a block in this very step; its place in the history.
    pub fn invoke(world: &mut World, block: u64, is_write: bool, value: u64) -> usize {
        let invoked = world.event();
        world.ops.push(Op { block, is_write, value, invoked, returned: NEVER });
        world.ops.len() - 1
    }
}

impl Words for Handle {
    fn word(&self) -> u64 {
        self.step("word", |world| world.memory.word)
    }

    fn exchange(&self, from: u64, to: u64) -> bool {
        let done = self.step("exchange", |world| {
            let done = world.memory.word == from;
            if done {
                world.memory.word = to;
            }
            u64::from(done) * to.max(1)
        });
        done != 0
    }

    // One step each: the other two words never change.
    fn span(&self) -> (u64, u64, u32) {
        (0, self.step("span", |world| world.memory.span_len), 0)
    }

    fn set_span(&self, start: u64, len: u64, chunk_shift: u32) {
        assert_eq!((start, chunk_shift), (0, 0));
        self.step("set span", |world| {
            world.memory.span_len = len;
            len
        });
    }

    fn bits(&self) -> u64 {
        64
    }

    fn dirty(&self, _index: u64) -> u64 {
        self.step("dirty", |world| world.memory.dirty)
    }

    fn mark(&self, _index: u64, mask: u64) {
        self.step("mark", |world| {
            world.memory.dirty |= mask;
            mask
        });
    }

    fn take(&self, _index: u64) -> u64 {
        self.step("take", |world| std::mem::take(&mut world.memory.dirty))
    }

    fn deadline_ns(&self) -> u64 {
        self.step("deadline", |world| world.memory.deadline_ns)
    }

    fn set_deadline_ns(&self, deadline_ns: u64) {
        self.step("set deadline", |world| {
            world.memory.deadline_ns = deadline_ns;
            0
        });
    }

    fn next_generation(&self) -> u64 {
        self.step("next generation", |world| world.memory.next_generation)
    }

    fn set_next_generation(&self, generation: u64) {
        self.step("set next generation", |world| {
            world.memory.next_generation = generation;
            0
        });
    }

    fn raise_generation(&self, generation: u64) {
        self.step("raise generation", |world| {
            world.memory.generation = world.memory.generation.max(generation);
            0
        });
    }
}
