//! What an attack found, each as it was found.

use std::path::Path;
use std::sync::{Arc, Mutex};
use stripewise_store::admin::Store;
use stripewise_store::admin::fake::FakeDisk;
use stripewise_store::admin::medium::Meetings;
use stripewise_store::admin::moves::apply;
use stripewise_store::admin::spec::LayoutJson;
use stripewise_store::moving::{self, MoveState, Turn, Words};
use stripewise_store::sizing::{self, Note, Sizes};

use crate::interleaved::common::*;
use crate::interleaved::medium::{Hook, Hooked, Shared};
use crate::interleaved::program::{Program, SIZE};
use crate::interleaved::{Chunks, fresh};

/// Runs `apply` with a hook that sees each operation of the mover on the disk; false from it kills the mover there.
fn hooked_apply(disk: &FakeDisk, root: &Path, wanted: &LayoutJson, hook: Hook) -> bool {
    let st = Arc::new(Shared::default());
    let hooked = Hooked { disk: disk.clone(), st: st.clone() };
    let store = Store::open(&hooked, root).unwrap();
    *st.hook.lock().unwrap() = Some(hook);
    let done = apply::apply(&store, ID, wanted, &mut Chunks);
    *st.hook.lock().unwrap() = None;
    done.is_ok()
}

/// A freeze that a waiter aborts (or that a map calls off) between the look at the move word in `sync` and the cuts of `cut_new`.
fn append_after_a_freeze(calls_off: bool) {
    let (disk, root) = fresh();
    let wanted = in_two_planes(&Store::open(&disk, &root).unwrap());
    let mut p = Program::new(&disk, &root);
    p.impatient = true;
    let p = Arc::new(Mutex::new(p));
    let (q, mut done) = (p.clone(), false);
    let hook: Hook = Box::new(move |what, _| {
        let mut p = q.lock().unwrap();
        let disk = p.disk.clone();
        let store = Store::open(&disk, &p.root).unwrap();
        let map = disk.ctl(&store.part(ID, "ctl"), false).unwrap();
        // The first stat of cut_new that is not before the last look at the word.
        if !done && what.starts_with("stat t") && MoveState::of(map.ctl().word()) == MoveState::Frozen {
            done = true;
            if calls_off {
                assert!(matches!(moving::call_off(&map.ctl(), 0), Turn::Go));
            }
            assert!(p.extend(&store, map.ctl(), SIZE as u64, 40 * K, false, false));
            p.check("at once");
        }
        true
    });
    hooked_apply(&disk, &root, &wanted, hook);
    p.lock().unwrap().check("a write that returned");
}

#[test]
fn an_append_after_an_aborted_freeze_stays() {
    append_after_a_freeze(false);
}

#[test]
fn an_append_after_a_freeze_that_was_called_off_stays() {
    append_after_a_freeze(true);
}

/// The copier has read a chunk; the program cuts the file, and flushes it; then the copier writes the chunk, and dies.
#[test]
fn a_cut_that_was_flushed_stays_after_a_power_cut_though_the_mover_was_just_writing() {
    for seed in 0..8 {
        let (disk, root) = fresh();
        let store = Store::open(&disk, &root).unwrap();
        // The first 64 KiB stay in plane 1 of t0, where the rest comes to last.
        for tail in [1, 2] {
            apply_all(&store, &uneven(64 * K, &[&[(0, 4 * K)], &[(tail, 4 * K)]])).unwrap();
        }
        let p = Arc::new(Mutex::new(Program::new(&disk, &root)));
        let (q, mut kill) = (p.clone(), None);
        let hook: Hook = Box::new(move |what, locked| {
            let mut p = q.lock().unwrap();
            if kill.is_none() && what.starts_with("write t0/") {
                kill = Some(1);
                p.locked = locked;
                let disk = p.disk.clone();
                let store = Store::open(&disk, &p.root).unwrap();
                let map = disk.ctl(&store.part(ID, "ctl"), false).unwrap();
                assert!(p.truncate(&store, map.ctl(), 10_000, None));
                assert!(p.fsync(&store, map.ctl()));
                return true;
            }
            match &mut kill {
                Some(0) => false,
                Some(left) => {
                    *left -= 1;
                    *left > 0
                }
                None => true,
            }
        });
        hooked_apply(&disk, &root, &uneven(64 * K, &[&[(0, 4 * K)], &[(0, 4 * K)]]), hook);
        disk.restart();
        // Programs flush again: nothing tells them of the bytes behind the end.
        {
            let mut p = p.lock().unwrap();
            p.locked = false;
            let map = disk.ctl(&store.part(ID, "ctl"), false).unwrap();
            assert_eq!(map.ctl().size(), 10_000);
            assert!(p.fsync(&store, map.ctl()));
        }
        disk.cut_power(seed);
        assert_eq!(read_all(&Store::open(&disk, &root).unwrap(), 200_000).len(), 10_000, "seed {seed}");
    }
}

/// D dies in its extending write when L, which looked while D lived, is about to raise the size over it: D's bytes are the file's, and are seen. The
/// pass that took D's dirty bit copied only to the size that was in force.
#[test]
fn bytes_of_a_killed_write_that_were_seen_do_not_vanish_with_a_move() {
    let (disk, root) = fresh();
    let p = Arc::new(Mutex::new(Program::new(&disk, &root)));
    let (q, mut stage) = (p.clone(), 0);
    let (d, l) = (SIZE as u64, 200 * K);
    let hook: Hook = Box::new(move |what, _| {
        let mut p = q.lock().unwrap();
        let disk = p.disk.clone();
        let store = Store::open(&disk, &p.root).unwrap();
        let map = disk.ctl(&store.part(ID, "ctl"), false).unwrap();
        let ctl = map.ctl();
        let copying = MoveState::of(ctl.word()) == MoveState::Copying;
        if stage == 0 && copying && what.starts_with("read t") {
            // D writes while the span is copied for the first time, and does not come to raise the size.
            stage = 1;
            assert!(p.extend(&store, ctl, d, 8 * K, false, true));
        } else if stage == 1 && what == "grace" && (0..2).all(|i| ctl.dirty(i) == 0) {
            // The pass has D's bit and waits: for D, but not for L, which enters behind the mover's look at its slot. D lives yet.
            stage = 2;
            let (from, len) = sizing::touched(ctl.size(), l, 4 * K, l + 4 * K);
            assert!(p.gate(&store, ctl, from, len));
            assert!(!sizing::exposes(&ctl, ctl.size(), l, |_| true));
            ctl.set_note(50, Note { start: l, end: l + 4 * K });
        } else if stage == 2 && what.starts_with("read t") {
            // D is dead, the grace over, the size for this pass known. Now L writes, raises the size, and leaves.
            stage = 3;
            let (layout, bytes) = (p.current(&store, ctl), pattern(9, l, 4096));
            p.make(&store, &layout, ctl.size(), l + 4 * K);
            p.write(&store, &layout, l, &bytes);
            ctl.raise_size(l + 4 * K);
            ctl.set_note(50, Note::default());
            p.model = p.read();
            assert!(p.model[SIZE] != 0, "D's bytes are seen");
        }
        true
    });
    assert!(hooked_apply(&disk, &root, &even(3, 16 * K, 8 * K), hook));
    p.lock().unwrap().check("after the move");
}

/// The program cuts the file while it is copied, and flushes it. The move ends, and is published; nobody dies. Then the power is cut.
#[test]
fn a_cut_that_was_flushed_stays_after_a_move_and_a_power_cut() {
    for seed in 0..8 {
        let (disk, root) = fresh();
        let layout = |first: &[(u32, u64)]| uneven(128 * K, &[first, &[(1, 4 * K)]]);
        apply_all(&Store::open(&disk, &root).unwrap(), &layout(&[(1, 4 * K)])).unwrap();
        disk.settle();
        let p = Arc::new(Mutex::new(Program::new(&disk, &root)));
        let (q, mut done) = (p.clone(), false);
        let hook: Hook = Box::new(move |what, locked| {
            let mut p = q.lock().unwrap();
            // When the copies have been made durable for the first time.
            if !done && what.contains("HeadSize") && p.trace.iter().any(|t| t.contains("SliceData")) {
                done = true;
                p.locked = locked;
                let disk = p.disk.clone();
                let store = Store::open(&disk, &p.root).unwrap();
                let map = disk.ctl(&store.part(ID, "ctl"), false).unwrap();
                assert!(p.truncate(&store, map.ctl(), 2_000, None));
                assert!(p.fsync(&store, map.ctl()));
            }
            p.note(what.to_string());
            true
        });
        assert!(hooked_apply(&disk, &root, &layout(&[(2, 8 * K), (0, 8 * K)]), hook));
        disk.cut_power(seed);
        let got = read_all(&Store::open(&disk, &root).unwrap(), 200_000);
        let shown = got.iter().skip(2000).filter(|b| **b != 0).count();
        assert_eq!(
            (got.len(), shown),
            (2_000, 0),
            "seed {seed}: size, and bytes behind the cut that are there again\n{}",
            p.lock().unwrap().trace.join("\n")
        );
    }
}

/// An append that nobody flushed, to an object that a dead mover was copying into, which therefore does not tell the size after a power cut.
#[test]
fn what_a_power_cut_left_behind_the_size_does_not_show_when_the_file_grows() {
    for seed in 0..16 {
        let (disk, root) = fresh();
        let layout = |first: u32| uneven(64 * K, &[&[(first, 4 * K)], &[(0, 4 * K)]]);
        for first in [1, 2] {
            apply_all(&Store::open(&disk, &root).unwrap(), &layout(first)).unwrap();
        }
        disk.settle();
        hooked_apply(&disk, &root, &layout(0), Box::new(|what, _| !what.starts_with("write t0/")));
        disk.restart();
        {
            let store = Store::open(&disk, &root).unwrap();
            let map = disk.ctl(&store.part(ID, "ctl"), false).unwrap();
            assert!(Program::new(&disk, &root).extend(&store, map.ctl(), SIZE as u64, 8 * K, false, false));
        }
        disk.cut_power(seed);
        let mut p = Program::new(&disk, &root);
        assert_eq!(p.read().len(), SIZE, "seed {seed}");
        let store = Store::open(&disk, &root).unwrap();
        let map = disk.ctl(&store.part(ID, "ctl"), false).unwrap();
        assert!(p.truncate(&store, map.ctl(), SIZE as u64 + 20 * K, None));
        assert!(p.read()[SIZE..].iter().all(|byte| *byte == 0), "seed {seed}");
    }
}

/// The file is cut while a chunk is on its way. The new home's object goes on behind the span, and so keeps its length in the freeze; the mover is killed when
/// it has published.
#[test]
fn an_object_that_goes_on_behind_the_span_does_not_tell_the_size_of_a_file_that_was_cut() {
    for seed in 0..8 {
        let (disk, root) = fresh();
        let layout = |first: &[(u32, u64)]| uneven(128 * K, &[first, &[(0, 4 * K)]]);
        for first in [1, 2] {
            apply_all(&Store::open(&disk, &root).unwrap(), &layout(&[(first, 4 * K)])).unwrap();
        }
        disk.settle();
        let p = Arc::new(Mutex::new(Program::new(&disk, &root)));
        let (q, mut is_cut) = (p.clone(), false);
        let hook: Hook = Box::new(move |what, locked| {
            if !is_cut && what.starts_with("write t0/") {
                is_cut = true;
                let mut p = q.lock().unwrap();
                p.locked = locked;
                let disk = p.disk.clone();
                let store = Store::open(&disk, &p.root).unwrap();
                let map = disk.ctl(&store.part(ID, "ctl"), false).unwrap();
                assert!(p.truncate(&store, map.ctl(), 2_000, None));
            }
            !(is_cut && what.starts_with("unlink"))
        });
        assert!(!hooked_apply(&disk, &root, &layout(&[(0, 8 * K), (1, 8 * K)]), hook));
        disk.restart();
        {
            let mut p = p.lock().unwrap();
            p.locked = false;
            let store = Store::open(&disk, &root).unwrap();
            let map = disk.ctl(&store.part(ID, "ctl"), false).unwrap();
            assert!(p.fsync(&store, map.ctl()));
        }
        disk.cut_power(seed);
        assert_eq!(read_all(&Store::open(&disk, &root).unwrap(), 200_000), pattern(3, 0, 2_000), "seed {seed}");
    }
}
