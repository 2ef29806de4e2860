//! A mover and programs on one file, in turns: programs write, extend, cut, grow and flush it between any two of the mover's operations on the disk, and are
//! killed half way, as it is; waiters call freezes off. What must hold: the file reads as what was done to it, at each moment and after recovery; what was cut
//! off or left by a dead writer does not show; what was flushed is there after a power cut, and no more.
//! `STRIPEWISE_SEED=n STRIPEWISE_HISTORIES=1` runs a history again.

use crate::common;
mod found;
mod medium;
mod program;
use crate::history::random;
mod steps;
mod target;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use stripewise_store::admin::Store;
use stripewise_store::admin::check::findings::Options;
use stripewise_store::admin::check::fsck::fsck;
use stripewise_store::admin::fake::FakeDisk;
use stripewise_store::admin::medium::{Meetings, Names};
use stripewise_store::admin::metadata::data;
use stripewise_store::admin::moves::apply;
use stripewise_store::admin::moves::guide::Guide;
use stripewise_store::admin::spec::LayoutJson;

use crate::common::*;
use medium::{Hook, Hooked, Shared};
use program::{Program, SIZE};

/// Numbers that a seed decides.
pub struct Chance(random::Random);

impl Chance {
    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound as usize) as u64
    }

    /// Heads or tails.
    pub fn coin(&mut self) -> bool {
        self.0.chance(1, 2)
    }
}

/// Lets the mover copy little at once, so that there is much between.
pub struct Chunks;
impl Guide for Chunks {
    fn chunk_bytes(&self) -> u64 {
        16 * K
    }
}

fn stripes(chance: &mut Chance) -> Vec<(u32, u64)> {
    let mut targets = vec![0u32, 1, 2];
    for i in (1..3).rev() {
        targets.swap(i, chance.below(i as u64 + 1) as usize);
    }
    targets.truncate(1 + chance.below(3) as usize);
    targets.into_iter().map(|t| (t, (1 + chance.below(4)) * 4 * K)).collect()
}

fn bounds(chance: &mut Chance) -> LayoutJson {
    let count = 1 + chance.below(8);
    in_a_row((0..count).map(|_| ((1 + chance.below(7)) * 4 * K, stripes(chance))))
}

/// A file of `SIZE` bytes on two of three targets.
pub fn fresh() -> (FakeDisk, PathBuf) {
    let disk = FakeDisk::new();
    let base = PathBuf::from("/b");
    disk.mkdir(&base).unwrap();
    let root = store_with_file(&disk, &base, &spec(&base, "dir", 3, 0, even(2, 16 * K, 4 * K)));
    let store = Store::open(&disk, &root).unwrap();
    data::write_file(&store, ID, 0, &pattern(3, 0, SIZE)).unwrap();
    disk.settle();
    (disk, root)
}

fn codes(disk: &FakeDisk, root: &Path, repair: bool) -> Vec<String> {
    let store = Store::open(disk, root).unwrap();
    let report = fsck(&store, Options { repair, ..Options::default() }).unwrap();
    let mut codes: Vec<_> = report.findings.iter().map(|f| format!("{}: {}", f.code, f.message)).collect();
    codes.retain(|code| !code.starts_with("head-size"));
    codes
}

/// What is tried.
#[derive(Clone, Copy, PartialEq)]
enum Trial {
    /// Waiters wait.
    Patient,
    /// They call freezes off, half of the time.
    Impatient,
    /// At the end the file is flushed, and the power cut.
    Power,
}

/// A file on random regions, of which some have moved before, and where it is to move.
fn moved(disk: &FakeDisk, root: &Path, chance: &mut Chance) -> LayoutJson {
    let store = Store::open(disk, root).unwrap();
    let mut layout = bounds(chance);
    apply_all(&store, &layout).unwrap();
    for _ in 0..chance.below(6) {
        let count = layout.regions.len() as u64;
        layout.regions[chance.below(count) as usize].stripes = stripes(chance);
        apply_all(&store, &layout).unwrap();
    }
    let mut wanted = if chance.coin() { bounds(chance) } else { layout };
    wanted.regions.iter_mut().for_each(|region| region.stripes = stripes(chance));
    disk.settle();
    wanted
}

/// What runs between the mover's operations.
fn acts(program: &Arc<Mutex<Program>>, mut chance: Chance, is_slow: bool) -> Hook {
    let every = 5 + chance.below(60);
    let mut left = if chance.coin() { chance.below(400) } else { u64::MAX };
    let mut acts = 1 + chance.below(if is_slow { 20 } else { 6 });
    let program = program.clone();
    Box::new(move |what, locked| {
        let mut p = program.lock().unwrap();
        if left == 0 {
            p.note(format!("the mover is killed before {what}"));
            return false;
        }
        left -= 1;
        p.note(format!("        {what}"));
        p.let_pass(what, &mut chance);
        if acts > 0 && what != "lock_dir" && chance.below(every) == 0 {
            acts -= 1;
            p.act(&mut chance, locked);
            p.check("at once");
        } else if chance.below(8) == 0 {
            p.check("later");
        }
        true
    })
}

fn history(seed: u64, trial: Trial) {
    let mut chance = Chance(random::Random::new(seed));
    let (disk, root) = fresh();
    let wanted = moved(&disk, &root, &mut chance);
    let is_slow = chance.coin();
    let mut program = Program::new(&disk, &root);
    program.slow = is_slow;
    program.impatient = trial == Trial::Impatient && chance.coin();
    let program = Arc::new(Mutex::new(program));
    let shared = Arc::new(Shared::default());
    {
        let hooked = Hooked { disk: disk.clone(), st: shared.clone() };
        let store = Store::open(&hooked, &root).unwrap();
        *shared.hook.lock().unwrap() = Some(acts(&program, Chance(random::Random::new(!seed)), is_slow));
        let done = apply::apply(&store, ID, &wanted, &mut Chunks);
        *shared.hook.lock().unwrap() = None;
        let mut p = program.lock().unwrap();
        p.note(format!("apply: {:?}", done.as_ref().map(|applied| applied.groups)));
        assert!(done.is_ok() || shared.killed.load(Ordering::SeqCst) || format!("{done:?}").contains("InUse"), "{done:?}");
    }
    disk.restart();
    let store = Store::open(&disk, &root).unwrap();
    let map = disk.ctl(&store.part(ID, "ctl"), false).unwrap();
    let mut p = program.lock().unwrap();
    p.locked = false;
    p.go_on(&store, map.ctl(), true, chance.coin());
    p.finish_all(&store, map.ctl());
    p.slow = false;
    p.impatient = true;
    p.check("after the move");
    for _ in 0..chance.below(4) {
        p.act(&mut chance, false);
        p.check("after the move, acting");
    }
    if trial == Trial::Power {
        // While somebody else has the lock it cannot be flushed.
        if p.fsync(&store, map.ctl()) {
            disk.cut_power(seed);
            let got = read_all(&Store::open(&disk, &root).unwrap(), 400_000);
            assert!(got == p.model, "after a power cut: {} for {}\n{}", got.len(), p.model.len(), p.trace.join("\n"));
        }
        return;
    }
    match chance.below(3) {
        0 => {}
        1 => {
            apply_all(&store, &bounds(&mut chance)).unwrap();
            p.check("after another move");
        }
        _ => grow(&mut p, &store, "grown by a program"),
    }
    codes(&disk, &root, true);
    p.check("after fsck");
    let left = codes(&disk, &root, false);
    assert!(left.is_empty(), "{left:?}\n{}", p.trace.join("\n"));
    grow(&mut p, &store, "grown at last");
}

fn grow(p: &mut Program, store: &Store<'_>, when: &str) {
    let to = p.model.len() as u64 + 100 * K;
    let map = store.medium.ctl(&store.part(ID, "ctl"), false).unwrap();
    assert!(p.truncate(store, map.ctl(), to, None), "{when}\n{}", p.trace.join("\n"));
    p.check(when);
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Names the history that fails.
struct OnPanic(u64);

impl Drop for OnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {}: STRIPEWISE_SEED={} STRIPEWISE_HISTORIES=20 does it again", self.0, self.0);
        }
    }
}

fn histories(trial: Trial) {
    let first = number("STRIPEWISE_SEED", 1);
    // Each is a move of some hundred operations: of those that are asked for, a twentieth.
    let count = number("STRIPEWISE_HISTORIES", 8_000).div_ceil(20);
    for seed in first..first + count {
        let _named = OnPanic(seed);
        history(seed, trial);
    }
}

#[test]
fn a_move_beside_programs_that_are_killed_loses_nothing_and_shows_nothing() {
    histories(Trial::Patient);
}

#[test]
fn nor_where_waiters_call_it_off() {
    histories(Trial::Impatient);
}

#[test]
fn what_was_flushed_beside_a_move_is_there_after_a_power_cut_and_no_more() {
    histories(Trial::Power);
}
