//! The steps of `shared/lane.rs` in a model, in every order that processes can take them: all processes make each call in the same mode, whatever is decided,
//! and no two decide at once. Calls do not wait for each other, which is the hardest case.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::HashSet;

const CALLS: u8 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Step {
    independent: bool,
    calls: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Word {
    begun: u8,
    from: u8,
    step: Option<Step>,
}

/// Where a process is: each is one access to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Load,
    TakeFirst,
    DecideFirst,
    PublishFirst(Step),
    LoadAgain,
    Begin,
    /// In the call.
    End,
    Through,
    Decide,
    Publish(Step),
    Done,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Process {
    at: At,
    /// The word as it was seen last.
    seen: Word,
    calls: u8,
    from: u8,
    end: u8,
    mode: Option<bool>,
    is_through: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    word: Word,
    is_begun: bool,
    through: u8,
    deciding: u8,
    /// The mode of each call as the first process that made it did.
    made: [Option<bool>; CALLS as usize],
    processes: Vec<Process>,
}

const STEPS: [Step; 4] = [
    Step { independent: false, calls: 1 },
    Step { independent: true, calls: 1 },
    Step { independent: false, calls: 2 },
    Step { independent: true, calls: 2 },
];

impl World {
    fn new(processes: usize) -> Self {
        let word = Word { begun: 0, from: 0, step: None };
        let process = Process { at: At::Load, seen: word, calls: 0, from: 0, end: 0, mode: None, is_through: false };
        Self { word, is_begun: false, through: 0, deciding: 0, made: [None; CALLS as usize], processes: vec![process; processes] }
    }

    /// What may come after a step of a process.
    fn after(&self, who: usize) -> Vec<World> {
        let mut next = self.clone();
        let size = self.processes.len() as u8;
        let World { word, is_begun, through, deciding, made, processes } = &mut next;
        let p = &mut processes[who];
        match p.at {
            At::Load => {
                p.seen = *word;
                p.calls += 1;
                p.at = if p.calls == 1 && p.seen.step.is_none() { At::TakeFirst } else { At::Begin };
            }
            At::TakeFirst => {
                p.at = if *is_begun { At::LoadAgain } else { At::DecideFirst };
                *is_begun = true;
            }
            At::LoadAgain => {
                p.seen = *word;
                p.at = At::Begin;
            }
            At::DecideFirst | At::Decide => {
                assert_eq!(*deciding, 0, "two decide at once");
                *deciding += 1;
                let first = p.at == At::DecideFirst;
                let all = STEPS.iter().map(|step| {
                    let mut one = next.clone();
                    one.processes[who].at = if first { At::PublishFirst(*step) } else { At::Publish(*step) };
                    one
                });
                return all.collect();
            }
            At::PublishFirst(step) | At::Publish(step) => {
                // The loop of compare-and-swap, which ends by one step on what is there.
                *word = Word { from: word.begun, step: Some(step), ..*word };
                *deciding -= 1;
                if p.at == At::PublishFirst(step) {
                    p.seen = *word;
                    p.at = At::Begin;
                } else {
                    p.at = if p.calls == CALLS { At::Done } else { At::Load };
                }
            }
            At::Begin => {
                let call = p.calls - 1;
                let adopt = |p: &mut Process| {
                    if let Some(step) = p.seen.step.filter(|_| p.seen.from <= call && (p.mode.is_none() || p.seen.from != p.from)) {
                        (p.from, p.end, p.mode, p.is_through) = (p.seen.from, p.seen.from + step.calls, Some(step.independent), false);
                    }
                };
                adopt(p);
                if p.seen.begun <= call {
                    if *word != p.seen {
                        // The swap has failed, and tells what is there.
                        p.seen = *word;
                        return vec![next];
                    }
                    word.begun = call + 1;
                }
                let mode = p.mode.unwrap_or(false);
                let there = made[call as usize].get_or_insert(mode);
                assert_eq!(*there, mode, "call {call} in two modes");
                p.at = At::End;
            }
            At::End => {
                let ends = p.mode.is_some() && p.calls >= p.end && !p.is_through;
                p.at = if ends {
                    At::Through
                } else if p.calls == CALLS {
                    At::Done
                } else {
                    At::Load
                };
                p.is_through |= ends;
            }
            At::Through => {
                *through += 1;
                if *through == size {
                    *through = 0;
                    p.at = At::Decide;
                } else {
                    p.at = if p.calls == CALLS { At::Done } else { At::Load };
                }
            }
            At::Done => return Vec::new(),
        }
        vec![next]
    }
}

/// How many states there are, and in how many all are done.
fn all_orders(processes: usize) -> (usize, usize) {
    let (mut seen, mut left, mut done) = (HashSet::new(), vec![World::new(processes)], 0);
    while let Some(world) = left.pop() {
        if !seen.insert(world.clone()) {
            continue;
        }
        let next: Vec<World> = (0..processes).flat_map(|who| world.after(who)).collect();
        if next.is_empty() {
            // Nobody waits for anybody, so this is the end of all.
            assert!(world.processes.iter().all(|process| process.at == At::Done));
            done += 1;
        }
        left.extend(next);
    }
    (seen.len(), done)
}

#[test]
fn every_order_of_two_processes_makes_each_call_in_one_mode() {
    let (states, ends) = all_orders(2);
    assert!(states > 10_000 && ends > 100, "{states} {ends}");
}
