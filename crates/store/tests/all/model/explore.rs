//! The search: every order in which the actors of a scenario can take their steps, each state once. It is a depth-first scheduler for shuttle that
//! begins an execution anew for each branch, and turns back where it comes to a state it has been in. A state is the memory, the history of operations,
//! and what each actor still remembers: nothing else can decide what happens next.

use crate::model::world::{ACTORS, Handle, MOVER, TICK_NS, World, mix};
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, Runner};
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Arc, Mutex};
use stripewise_store::moving::MoveState;

/// What an actor does from beginning to end.
#[derive(Clone)]
pub struct Actor {
    pub kind: Kind,
    pub work: Arc<dyn Fn(&Handle) + Send + Sync>,
}

/// What the search must know of an actor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It has a slot, for which movers wait.
    Program,
    Mover,
    /// Its steps matter only while the span is frozen or a layout being published: nobody looks at the time before.
    Clock,
}

/// Times that everybody waited for the clock, in one execution: more often, and they wait for ever.
const STUCK: u64 = 12;

/// The outcome.
#[derive(Debug, Default, Clone)]
pub struct Found {
    pub executions: usize,
    pub states: usize,
    /// Whether nothing was left to explore.
    pub is_complete: bool,
    pub violation: Option<String>,
}

impl Found {
    /// The scenario holds in every state, all of which were seen.
    #[track_caller]
    pub fn holds(&self) {
        assert_eq!(self.violation, None);
        assert!(self.is_complete, "only {} states seen", self.states);
    }

    /// The scenario does not hold.
    #[track_caller]
    pub fn is_caught(&self) {
        assert!(self.violation.is_some(), "not caught in {} states", self.states);
    }
}

#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("states are kept by their 64-bit hash")
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

struct Level {
    chosen: usize,
    left: Vec<usize>,
}

struct Search {
    world: Arc<Mutex<World>>,
    kinds: Vec<Kind>,
    levels: Vec<Level>,
    depth: usize,
    started: [bool; ACTORS],
    forced: u64,
    seen: HashSet<u64, BuildHasherDefault<Identity>>,
    found: Arc<Mutex<Found>>,
    most: usize,
}

impl Search {
    fn state(&self, world: &World) -> u64 {
        let mut hasher = DefaultHasher::new();
        world.memory.hash(&mut hasher);
        world.ops.hash(&mut hasher);
        let mut hash = mix(hasher.finish(), self.forced);
        for local in world.locals.iter().take(self.kinds.len()) {
            let is_ready = local.waits_for != Some(world.version);
            hash = mix(mix(hash, local.seen), u64::from(is_ready) << 1 | u64::from(local.has_finished));
        }
        hash
    }

    /// Who may take a step. When all wait the time goes on; none means that this execution is at its end.
    fn ready(&mut self, world: &mut World) -> Vec<usize> {
        let count = self.kinds.len();
        loop {
            let is_timed = matches!(MoveState::of(world.memory.word), MoveState::Frozen | MoveState::Publishing);
            let stands = |actor: usize| {
                let is_stopped = actor == MOVER && world.memory.is_stopped;
                world.locals[actor].has_finished || is_stopped || (self.kinds[actor] == Kind::Clock && !is_timed)
            };
            let ready = |actor: &usize| !stands(*actor) && world.locals[*actor].waits_for != Some(world.version);
            let all: Vec<usize> = (0..count).filter(ready).collect();
            if !all.is_empty() || (0..count).all(stands) {
                return all;
            }
            self.forced += 1;
            if self.forced > STUCK {
                world.fail("somebody waits for ever".to_owned());
                return vec![];
            }
            world.memory.now_ns = (world.memory.now_ns + TICK_NS).max(world.memory.deadline_ns + 1);
            world.version += 1;
            world.trace.push((ACTORS, "time passes", world.memory.now_ns));
        }
    }

    fn choose(&mut self, world: &mut World) -> Option<usize> {
        let ready = self.ready(world);
        if world.is_over {
            return None;
        }
        if ready.is_empty() {
            world.check();
            world.is_over = true;
            return None;
        }
        self.depth += 1;
        if let Some(level) = self.levels.get(self.depth - 1) {
            return Some(level.chosen);
        }
        if !self.seen.insert(self.state(world)) {
            world.is_over = true;
            return None;
        }
        let mut left = ready;
        let chosen = left.pop()?;
        self.levels.push(Level { chosen, left });
        Some(chosen)
    }

    /// Turns to the next branch; false when there is none.
    fn turn_back(&mut self) -> bool {
        while let Some(level) = self.levels.last_mut() {
            if let Some(next) = level.left.pop() {
                level.chosen = next;
                return true;
            }
            self.levels.pop();
        }
        false
    }

    fn conclude(&mut self) -> bool {
        let mut found = self.found.lock().unwrap();
        let world = self.world.lock().unwrap();
        found.states = self.seen.len();
        if let Some(what) = &world.violation {
            let steps: Vec<String> = world.trace.iter().map(|(who, what, value)| format!("{who}: {what} {value}")).collect();
            found.violation = Some(format!("{what}\n{}", steps.join("\n")));
            return true;
        }
        found.executions >= self.most
    }
}

impl Scheduler for Search {
    fn new_execution(&mut self) -> Option<Schedule> {
        let is_first = self.found.lock().unwrap().executions == 0;
        if !is_first {
            if self.conclude() {
                return None;
            }
            if !self.turn_back() {
                self.found.lock().unwrap().is_complete = true;
                return None;
            }
        }
        *self.world.lock().unwrap() = World::new(slots(&self.kinds));
        (self.depth, self.forced, self.started) = (0, 0, [false; ACTORS]);
        self.found.lock().unwrap().executions += 1;
        Some(Schedule::new(0))
    }

    /// Task 0 starts the actors and waits for them; each first runs up to its first access, and only then choices begin.
    fn next_task(&mut self, runnable: &[&Task], _current: Option<TaskId>, _is_yielding: bool) -> Option<TaskId> {
        let first = runnable.first()?.id();
        let number = |id: TaskId| usize::from(id);
        if number(first) == 0 {
            return Some(first);
        }
        for task in runnable {
            let started = &mut self.started[number(task.id()) - 1];
            if !*started {
                *started = true;
                return Some(task.id());
            }
        }
        let world = Arc::clone(&self.world);
        let mut world = world.lock().unwrap();
        if world.is_over {
            return Some(first);
        }
        let Some(actor) = self.choose(&mut world) else { return Some(first) };
        runnable.iter().find(|task| number(task.id()) == actor + 1).map(|task| task.id())
    }

    fn next_u64(&mut self) -> u64 {
        0
    }
}

fn slots(kinds: &[Kind]) -> [bool; ACTORS] {
    std::array::from_fn(|actor| kinds.get(actor) == Some(&Kind::Program))
}

/// Explores a scenario; at most `most` executions.
pub fn explore(actors: Vec<Actor>, most: usize) -> Found {
    let kinds: Vec<Kind> = actors.iter().map(|actor| actor.kind).collect();
    let world = Arc::new(Mutex::new(World::default()));
    let found = Arc::new(Mutex::new(Found::default()));
    let search = Search {
        world: Arc::clone(&world),
        kinds,
        levels: vec![],
        depth: 0,
        started: [false; ACTORS],
        forced: 0,
        seen: HashSet::default(),
        found: Arc::clone(&found),
        most,
    };
    let mut config = Config::new();
    config.stack_size = 256 * 1024;
    config.max_steps = shuttle::MaxSteps::None;
    config.silence_warnings = true;
    Runner::new(search, config).run(move || {
        let threads: Vec<_> = actors
            .iter()
            .enumerate()
            .map(|(me, actor)| {
                let (actor, handle) = (Arc::clone(&actor.work), Handle { world: Arc::clone(&world), me });
                shuttle::thread::spawn(move || {
                    actor(&handle);
                    let mut world = handle.now();
                    world.locals[me].has_finished = true;
                    // Whoever waits for others to finish looks again.
                    world.version += 1;
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let mut world = world.lock().unwrap();
        if !world.is_over {
            world.check();
        }
    });
    found.lock().unwrap().clone()
}
