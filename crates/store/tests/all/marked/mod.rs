//! Copies of managed files, and the marks that writers set on them: the real functions of `marks` in the hands of programs that write, read, punch, cut, grow
//! and map a file while its copies are made and dropped, and are killed at any step; power is cut, and takes what was not flushed. A read must return what
//! the home was at some moment of it, block by block: no older bytes, and no mixture. A seed tells all of a history: `STRIPEWISE_SEED=n
//! STRIPEWISE_HISTORIES=1` runs it again.

mod builder;
mod cutting;
mod fault;
mod machine;
mod marking;
mod program;
mod reading;
mod threads;
mod words;
mod world;

use fault::Fault;
use machine::{Machine, NAMES};

/// Histories that a broken protocol may survive at most.
const MOST: u64 = 20_000;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Runs histories until one is wrong: its seed, and what is wrong. What happened in all of them is added up.
fn search(fault: Fault, first: u64, count: u64, counts: &mut [u64; NAMES.len()]) -> Option<(u64, String)> {
    (first..first + count).find_map(|seed| {
        let machine = Machine::history(seed, fault, false);
        counts.iter_mut().zip(machine.counts).for_each(|(all, count)| *all += count);
        machine.world.violation.map(|what| (seed, what))
    })
}

/// All histories are right; or the seed of the first that is not, and how it ends.
#[track_caller]
fn holds(fault: Fault, first: u64, count: u64, counts: &mut [u64; NAMES.len()]) {
    if let Some((seed, what)) = search(fault, first, count, counts) {
        let trace = Machine::history(seed, fault, true).world.trace.unwrap_or_default();
        let tail = trace.len().saturating_sub(number("STRIPEWISE_TRACE", 120) as usize);
        panic!("STRIPEWISE_SEED={seed}: {what}\n{}", trace[tail..].join("\n"));
    }
}

#[test]
fn every_read_is_what_the_home_was_meanwhile() {
    let (first, count) = (number("STRIPEWISE_SEED", 1), number("STRIPEWISE_HISTORIES", 20_000));
    let mut counts = [0; NAMES.len()];
    holds(Fault::None, first, count, &mut counts);
    println!("{count} histories of marks from seed {first} on");
    for (name, times) in NAMES.iter().zip(counts) {
        println!("{times:10} {name}");
        assert!(times > 0 || count < 1000, "no history with {name}");
    }
}

#[test]
fn each_way_to_get_it_wrong_is_found() {
    let survivors = Fault::HARMFUL.into_iter().filter(|fault| {
        let found = search(*fault, 1, MOST, &mut [0; NAMES.len()]);
        println!("{fault:?}: {found:?}");
        found.is_none()
    });
    assert_eq!(survivors.collect::<Vec<_>>(), [], "these survived {MOST} histories");
}

#[test]
fn a_cut_may_mark_between_the_size_and_the_objects() {
    holds(Fault::CutMarksBeforeTrim, 1, MOST, &mut [0; NAMES.len()]);
}

#[test]
fn a_seed_tells_all_of_a_history() {
    let trace = || Machine::history(7, Fault::None, true).world.trace;
    assert!(trace().is_some_and(|lines| lines.len() > 20));
    assert_eq!(trace(), trace());
}
