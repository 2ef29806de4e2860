//! Model checking of the protocol by which regions move while programs use them: the real code of both halves, over a memory of a few words and a file of
//! two blocks, in every order of their accesses. What each scenario must keep: reads and writes of each block are linearizable, also those of whoever
//! comes last; the generation in force never goes back; nothing is published that a power cut would lose; nobody waits for ever.

mod explore;
use crate::common::faults;
mod mover;
mod programs;
use crate::common::register;
mod world;

use explore::{Actor, Found, explore};
use faults::Fault;
use mover::{mover, second_mover};
use programs::{clock, cutter, looker, mapper, reader, stopper, writer};

/// Executions after which a scenario counts as too large: in every test, and in the long run.
const MOST: [usize; 2] = [2_000_000, 50_000_000];

fn run(name: &str, actors: Vec<Actor>) -> Found {
    let found = explore(actors, MOST[usize::from(soaks())]);
    println!("{name}: {} states in {} executions, {}", found.states, found.executions, if found.is_complete { "all" } else { "not all" });
    found
}

fn soaks() -> bool {
    std::env::var_os("STRIPEWISE_SOAK").is_some()
}

/// Values that a writer writes: more of them in the long run.
fn values(few: &'static [u64], many: &'static [u64]) -> &'static [u64] {
    if soaks() { many } else { few }
}

fn one(fault: Fault, values: &'static [u64]) -> Actor {
    writer(fault, &[0], values)
}

#[test]
fn two_writers_lose_nothing_to_a_move() {
    let blocks: &[u64] = if soaks() { &[0, 1] } else { &[0] };
    let actors = vec![mover(Fault::None, 1), one(Fault::None, values(&[11], &[11, 12])), writer(Fault::None, blocks, &[21]), clock(2)];
    run("two writers", actors).holds();
}

#[test]
fn a_writer_and_a_reader_see_one_file() {
    let times = if soaks() { 2 } else { 1 };
    run("writer and reader", vec![mover(Fault::None, 1), one(Fault::None, &[11, 12]), reader(0, times), clock(2)]).holds();
}

#[test]
fn a_cut_during_a_move_cuts_what_is_copied() {
    run("writer and truncate", vec![mover(Fault::None, 1), one(Fault::None, values(&[11], &[11, 12])), cutter(), clock(1)]).holds();
}

#[test]
fn a_map_and_a_move_exclude_each_other() {
    run("writer and map", vec![mover(Fault::None, 1), one(Fault::None, values(&[11], &[11, 12])), mapper(31), clock(2)]).holds();
}

#[test]
fn a_map_of_one_who_may_only_read_stays_true() {
    run("writer and reading map", vec![mover(Fault::None, 1), one(Fault::None, &[11]), looker(), clock(2)]).holds();
}

#[test]
fn a_mover_that_stops_for_ever_stops_nobody() {
    run("stopped mover", vec![mover(Fault::None, 1), one(Fault::None, values(&[11], &[11, 12])), reader(0, 1), clock(1), stopper()]).holds();
}

#[test]
fn a_killed_mover_is_replaced_by_another() {
    run("killed mover", vec![mover(Fault::None, 1), one(Fault::None, values(&[11], &[11, 12])), second_mover(1), clock(1), stopper()]).holds();
}

#[test]
fn moves_to_and_fro_keep_what_is_written() {
    run("two moves", vec![mover(Fault::None, 2), one(Fault::None, &[11, 12]), reader(0, 1)]).holds();
}

#[test]
fn each_way_to_get_it_wrong_is_found() {
    for fault in Fault::HARMFUL {
        let second = if fault == Fault::NoGraceBeforePunch { reader(0, 1) } else { one(fault, &[21]) };
        let found = run(&format!("{fault:?}"), vec![mover(fault, 1), one(fault, &[11]), second, clock(2)]);
        found.is_caught();
    }
}

#[test]
fn waiting_before_the_freeze_is_for_speed_alone() {
    let fault = Fault::NoGraceBeforeFreeze;
    run("no grace before the freeze", vec![mover(fault, 1), one(fault, &[11]), reader(0, 1), clock(2)]).holds();
}
