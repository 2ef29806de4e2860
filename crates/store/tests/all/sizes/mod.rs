//! Sizes, cuts and growth of a file under kills: the steps of `sizing` in the hands of programs that cut, append, allocate, write over the end and behind it,
//! fail half way and are killed between any two steps. In every order of their steps (small cases, all states seen), and by chance at length. What must
//! hold: nothing that was cut off or left by a dead writer shows again, what a write returned for is there, a flushed file ends where its size
//! says, and nobody waits for ever. `STRIPEWISE_SEED=n STRIPEWISE_HISTORIES=1` runs a history again.

mod actor;
use crate::history::random;
mod world;

use actor::{Actor, Fault, Task};
use random::Random;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use stripewise_store::sizing::{CUT, EXTEND, ExtendStep};
use world::{ACTORS, BLOCKS, World};

/// Histories that a broken order may survive at most.
const MOST: u64 = 20_000;

/// The file and its programs.
#[derive(Clone)]
struct Machine {
    world: World,
    actors: Vec<Actor>,
    fault: Fault,
}

impl Machine {
    fn new(size: usize, actors: usize, fault: Fault) -> Self {
        Self { world: World::new(size as u64), actors: (0..actors).map(Actor::new).collect(), fault }
    }

    fn step(&mut self, who: usize) {
        let inside = self.actors.iter().filter(|actor| actor.is_inside).fold(0, |all, actor| all | 1 << actor.me);
        self.actors[who].step(&mut self.world, inside, self.fault);
        self.has_left(who);
        self.world.check();
    }

    fn kill(&mut self, who: usize) {
        self.actors[who].kill(&mut self.world);
        self.has_left(who);
    }

    fn has_left(&mut self, who: usize) {
        if !self.actors[who].is_inside {
            self.actors.iter_mut().for_each(|actor| actor.forget(who));
        }
    }

    /// One who comes when all others have gone lets the file grow as far as it can.
    fn end(&mut self) {
        for who in 0..self.actors.len() {
            self.kill(who);
        }
        for task in [Task::Flush, Task::Write { at: BLOCKS - 1, len: 1, fails_after: usize::MAX }, Task::Truncate { to: BLOCKS }] {
            self.actors[0].begin(task, &mut self.world);
            for _ in 0..200 {
                self.step(0);
            }
            if !self.actors[0].is_idle() {
                self.world.fail("the last one waits for ever".to_owned());
            }
        }
    }
}

fn task(random: &mut Random) -> Task {
    let at = random.below(BLOCKS);
    let len = 1 + random.below((BLOCKS - at).min(4));
    let below = if random.chance(1, 2) { 3 } else { BLOCKS + 1 };
    match random.below(10) {
        0..=3 => Task::Write { at, len, fails_after: if random.chance(1, 8) { random.below(len) } else { usize::MAX } },
        4 => Task::Append { len },
        5 => Task::Allocate { at, len },
        6..=8 => Task::Truncate { to: random.below(below) },
        _ => Task::Flush,
    }
}

/// The history of a seed; what is wrong with it.
fn history(seed: u64, fault: Fault, kills: &mut u64) -> Option<String> {
    let mut random = Random::new(seed);
    let mut machine = Machine::new(random.below(BLOCKS), 1 + random.below(ACTORS), fault);
    for _ in 0..60 + random.below(200) {
        let who = random.below(machine.actors.len());
        if machine.actors[who].is_idle() {
            let task = task(&mut random);
            machine.actors[who].begin(task, &mut machine.world);
        } else if random.chance(1, 25) {
            *kills += 1;
            machine.kill(who);
        } else {
            machine.step(who);
        }
        if machine.world.violation.is_some() {
            return machine.world.violation;
        }
    }
    machine.end();
    machine.world.violation
}

fn search(fault: Fault, first: u64, count: u64, kills: &mut u64) -> Option<(u64, String)> {
    (first..first + count).find_map(|seed| Some((seed, history(seed, fault, kills)?)))
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn whoever_is_killed_leaves_nothing_that_shows() {
    let (first, count, mut kills) = (number("STRIPEWISE_SEED", 1), number("STRIPEWISE_HISTORIES", 50_000), 0);
    let found = search(Fault::None, first, count, &mut kills);
    println!("{count} histories of sizes from seed {first} on, {kills} kills");
    assert_eq!(found, None);
}

/// Every order of the steps of tasks, with so many kills anywhere; the states that were seen, and the first thing that is wrong.
fn explore(size: usize, tasks: &[Task], kills: usize, fault: Fault) -> (usize, Option<String>) {
    let mut first = Machine::new(size, tasks.len(), fault);
    for (who, task) in tasks.iter().enumerate() {
        first.actors[who].begin(*task, &mut first.world);
    }
    let (hasher, mut seen, mut left) = (RandomState::new(), HashSet::new(), vec![(first, kills)]);
    while let Some((machine, kills)) = left.pop() {
        if machine.world.violation.is_some() {
            return (seen.len(), machine.world.violation);
        }
        if !seen.insert(hasher.hash_one((&machine.world, &machine.actors, kills))) {
            continue;
        }
        let mut last = machine.clone();
        last.end();
        if last.world.violation.is_some() {
            return (seen.len(), last.world.violation);
        }
        for who in (0..tasks.len()).filter(|who| !machine.actors[*who].is_idle()) {
            if !machine.actors[who].waits(&machine.world) {
                let mut next = machine.clone();
                next.step(who);
                left.push((next, kills));
            }
            if kills > 0 {
                let mut next = machine.clone();
                next.kill(who);
                left.push((next, kills - 1));
            }
        }
    }
    (seen.len(), None)
}

const fn write(at: usize, len: usize) -> Task {
    Task::Write { at, len, fails_after: usize::MAX }
}

#[test]
fn in_every_order_of_steps_and_kills_nothing_shows() {
    let cases: [(usize, &[Task]); 7] = [
        (4, &[Task::Truncate { to: 1 }, write(5, 1)]),
        (4, &[Task::Truncate { to: 1 }, Task::Append { len: 2 }, Task::Flush]),
        (1, &[write(1, 2), write(4, 1)]),
        (1, &[write(1, 2), Task::Truncate { to: 6 }, Task::Flush]),
        (2, &[write(1, 3), Task::Truncate { to: 0 }, Task::Allocate { at: 3, len: 2 }]),
        (1, &[Task::Write { at: 1, len: 3, fails_after: 1 }, write(5, 1)]),
        (1, &[write(1, 1), write(2, 1), write(3, 2)]),
    ];
    for (size, tasks) in cases {
        let (states, found) = explore(size, tasks, 2, Fault::None);
        println!("{states} states of {tasks:?}");
        assert_eq!(found, None, "{tasks:?}");
    }
}

#[test]
fn each_step_that_is_left_out_is_found() {
    let of_cuts = CUT.into_iter().map(Fault::WithoutCut);
    // The write is what all other steps are about.
    let of_extensions = EXTEND.into_iter().filter(|step| *step != ExtendStep::Write).map(Fault::WithoutExtend);
    let others = [
        Fault::TrimFirst,
        Fault::ClearsIntent,
        Fault::SizeBeforeDrain,
        Fault::GrowsUnsettled,
        Fault::GrowsUnmade,
        Fault::FlushesUnsettled,
        Fault::ClaimsAnyLine,
        Fault::KeepsFailed,
    ];
    for fault in of_cuts.chain(of_extensions).chain(others) {
        let found = search(fault, 1, MOST, &mut 0);
        println!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} survived {MOST} histories");
    }
}
