//! Whole histories by chance: programs read, write, cut, flush and map a file whose regions move to and fro, and are killed and stopped at any step; so is
//! the mover; power is cut, devices fail, freezes time out. Each history must be linearizable block by block, what was flushed must survive the
//! power cut, and nobody may wait for ever. A seed tells all of a history: `STRIPEWISE_SEED=n STRIPEWISE_HISTORIES=1` runs it again.

mod disk;
use crate::common::faults;
mod mover;
mod program;
pub mod random;
use crate::common::register;
mod sim;
mod words;

use faults::Fault;
use mover::{End, Mover};
use sim::{COUNTS, Shared, Sim};
use std::cell::RefCell;
use std::rc::Rc;

/// Histories that a broken protocol may survive at most.
const MOST: u64 = 20_000;

/// What is counted, in the order of `Count`.
const NAMES: [&str; COUNTS] = [
    "moves published",
    "moves given up or called off",
    "moves ended by a failing device",
    "freezes called off or timed out",
    "moves published by a waiter",
    "maps",
    "cuts",
    "processes killed",
    "processes stopped",
    "movers killed",
    "power cuts",
];

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// A mover works until it is killed, fails, or the history is over; then another one.
fn moves(sim: &Shared, fault: Fault) {
    while !sim.borrow().is_over() {
        sim.borrow_mut().is_mover_dead = false;
        let Ok(mut mover) = Mover::open(sim, fault) else {
            sim.borrow_mut().others();
            continue;
        };
        // Whom a device failed opens anew: what it left half done is in the layout file.
        while matches!(mover.shift(), Ok(()) | Err(End::GaveUp)) {}
    }
}

/// The history of a seed, from beginning to end.
fn history(seed: u64, fault: Fault, with_trace: bool) -> Shared {
    let sim: Shared = Rc::new(RefCell::new(Sim::new(seed, fault, with_trace)));
    loop {
        moves(&sim, fault);
        let mut now = sim.borrow_mut();
        if !now.is_dark || now.violation.is_some() {
            break;
        }
        now.restart();
    }
    sim.borrow_mut().settle();
    sim.borrow_mut().read_all();
    if sim.borrow().violation.is_none() {
        sim.borrow_mut().quiet();
        assert!(Mover::open(&sim, fault).is_ok());
        sim.borrow_mut().read_all();
        sim.borrow_mut().look_for_leaks();
    }
    sim
}

/// Runs histories until one is wrong: its seed, and what is wrong. What happened in all of them is added up.
fn search(fault: Fault, first: u64, count: u64, counts: &mut [u64; COUNTS]) -> Option<(u64, String)> {
    (first..first + count).find_map(|seed| {
        let sim = history(seed, fault, false);
        let mut sim = sim.borrow_mut();
        counts.iter_mut().zip(sim.counts).for_each(|(all, count)| *all += count);
        sim.violation.take().map(|what| (seed, what))
    })
}

/// All histories are right; or the seed of the first that is not, and how it ends.
#[track_caller]
fn holds(fault: Fault, first: u64, count: u64, counts: &mut [u64; COUNTS]) {
    if let Some((seed, what)) = search(fault, first, count, counts) {
        let trace = history(seed, fault, true).borrow_mut().trace.take().unwrap_or_default();
        let tail = trace.len().saturating_sub(80);
        panic!("STRIPEWISE_SEED={seed}: {what}\n{}", trace[tail..].join("\n"));
    }
}

#[test]
fn histories_are_linearizable_and_what_was_flushed_survives() {
    let (first, count) = (number("STRIPEWISE_SEED", 1), number("STRIPEWISE_HISTORIES", 20_000));
    let mut counts = [0; COUNTS];
    holds(Fault::None, first, count, &mut counts);
    println!("{count} simulated histories from seed {first} on");
    for (name, times) in NAMES.iter().zip(counts) {
        println!("{times:10} {name}");
        assert!(times > 0 || count < 1000, "no history with {name}");
    }
}

#[test]
fn each_way_to_get_it_wrong_is_found() {
    for fault in Fault::HARMFUL {
        let found = search(fault, 1, MOST, &mut [0; COUNTS]);
        println!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} survived {MOST} histories");
    }
}

#[test]
fn waiting_before_the_freeze_is_for_speed_alone() {
    holds(Fault::NoGraceBeforeFreeze, 1, MOST / 10, &mut [0; COUNTS]);
}

#[test]
fn a_seed_tells_all_of_a_history() {
    let trace = || history(7, Fault::None, true).borrow().trace.clone();
    assert!(trace().is_some_and(|lines| lines.len() > 20));
    assert_eq!(trace(), trace());
}
