//! How long the programs' I/O takes, seen from outside and at no cost to them: each thread's line in a slot says whether it is inside an I/O, and its
//! epoch counts those that have ended. Little's law (L = lambda W) turns both into the mean latency.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rustix::fs::FlockOperation;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::slot::{SLOT_BYTES, SLOT_LINES, Slot};

/// The last line is shared by all threads beyond and counts those inside: how many have ended it does not tell, so it is left out.
const OWN_LINES: usize = SLOT_LINES - 1;

/// What the lines said between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// Length, ns.
    pub ns: u64,
    /// Integral over time of the number of threads inside an I/O, thread ns: L times the length.
    pub inside_ns: u64,
    /// I/Os that ended: lambda times the length.
    pub ended: u64,
    /// Looks at the lines.
    pub samples: u64,
}

impl Window {
    /// Mean latency of the I/Os that ended, ns: W = L / lambda; none when none ended.
    ///
    /// The count is exact, the integral is a sum over `n` looks. With N I/Os of mean W on m threads in a window T, the relative error has three parts:
    /// looking seldom, about `sqrt((1 - L/m) / (n L/m))` of independent looks, and below W / (look interval) the looks at one I/O are not independent,
    /// so n counts as N; the I/Os that reach over an edge of the window, at most m W / (T L) = m / N; and, as for any mean, `c / sqrt(N)` for I/Os whose
    /// deviation is c times their mean. 100 I/Os and 250 looks are thus good for about a tenth: enough to notice that latency has doubled.
    pub fn latency_ns(&self) -> Option<f64> {
        (self.ended > 0).then(|| self.inside_ns as f64 / self.ended as f64)
    }
}

/// A slot of a living process, mapped for reading.
struct Watched {
    file: File,
    slot: Slot,
    /// Ended I/Os of each line when it was last looked at; as many as have been used.
    ended: Vec<u64>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        // SAFETY: mapped in `watch`, and nothing refers to it any more.
        let _ = unsafe { munmap(self.slot.base().cast(), SLOT_BYTES) };
    }
}

/// The lines of all living processes that use a store.
pub struct Foreground {
    run: PathBuf,
    slots: BTreeMap<OsString, Watched>,
    window: Window,
    looked_ns: u64,
}

impl Foreground {
    /// Watches the slots in `run` (`<store>/run/<boot-id>`) from `now_ns` on.
    pub fn new(run: &Path, now_ns: u64) -> Self {
        let mut made = Self { run: run.to_path_buf(), slots: BTreeMap::new(), window: Window::default(), looked_ns: now_ns };
        made.refresh();
        made
    }

    /// Looks for processes that came and went, and for threads that made their first I/O.
    pub fn refresh(&mut self) {
        let names = std::fs::read_dir(&self.run).map(|d| d.filter_map(|e| Some(e.ok()?.file_name())).collect::<Vec<_>>()).unwrap_or_default();
        self.slots.retain(|name, slot| names.contains(name) && is_held(&slot.file));
        for name in names.into_iter().filter(|n| n.as_bytes().ends_with(b".slot")) {
            if !self.slots.contains_key(&name)
                && let Some(watched) = watch(&self.run.join(&name))
            {
                self.slots.insert(name, watched);
            }
        }
        for watched in self.slots.values_mut() {
            let used = (0..OWN_LINES).rev().find(|line| watched.slot.line(*line).load(Ordering::Relaxed) != 0).map_or(0, |line| line + 1);
            for line in watched.ended.len()..used {
                watched.ended.push(watched.slot.line(line).load(Ordering::Relaxed) >> 1);
            }
        }
    }

    /// Living processes that use the store.
    pub fn processes(&self) -> usize {
        self.slots.len()
    }

    /// One look: whoever is inside now counts as inside since the look before.
    pub fn look(&mut self, now_ns: u64) {
        let since_ns = now_ns.saturating_sub(self.looked_ns);
        self.looked_ns = now_ns;
        self.window.ns += since_ns;
        self.window.samples += 1;
        for watched in self.slots.values_mut() {
            for (line, before) in watched.ended.iter_mut().enumerate() {
                let epoch = watched.slot.line(line).load(Ordering::Relaxed);
                self.window.inside_ns += (epoch & 1) * since_ns;
                self.window.ended += (epoch >> 1).saturating_sub(*before);
                *before = epoch >> 1;
            }
        }
    }

    /// What has been seen since the last call.
    pub fn take(&mut self) -> Window {
        std::mem::take(&mut self.window)
    }

    /// What has been seen so far.
    pub fn window(&self) -> Window {
        self.window
    }
}

/// Whether the owner of a slot lives: it holds the exclusive lock.
fn is_held(file: &File) -> bool {
    let free = rustix::fs::flock(file.as_fd(), FlockOperation::NonBlockingLockShared).is_ok();
    if free {
        let _ = rustix::fs::flock(file.as_fd(), FlockOperation::Unlock);
    }
    !free
}

fn watch(path: &Path) -> Option<Watched> {
    let file = File::open(path).ok()?;
    if file.metadata().ok()?.len() < SLOT_BYTES as u64 || !is_held(&file) {
        return None;
    }
    // SAFETY: a fresh shared mapping of a file at least as long; unmapped by the drop of what is made of it.
    let base = unsafe { mmap(core::ptr::null_mut(), SLOT_BYTES, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), 0).ok()? };
    // SAFETY: the mapping lives as long as the slot; it is only read.
    Some(Watched { file, slot: unsafe { Slot::from_mapping(base.cast()) }, ended: Vec::new() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::devices::{now_ns, sleep_until};

    struct Process {
        file: File,
        slot: Slot,
    }

    fn process(dir: &Path, name: &str) -> Process {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(dir.join(name)).unwrap();
        file.set_len(SLOT_BYTES as u64).unwrap();
        rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
        // SAFETY: a mapping of a long enough file, which the test leaves alone until it ends.
        let base = unsafe { mmap(core::ptr::null_mut(), SLOT_BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0).unwrap() };
        // SAFETY: as above.
        let slot = unsafe { Slot::from_mapping(base.cast()) };
        slot.initialise(1, 0, 0);
        slot.enter(0);
        slot.leave(0);
        Process { file, slot }
    }

    /// Drives four threads through `count` I/Os each in made-up time, dwell from `dwell_us` to three times that; returns true and estimated mean.
    fn simulated(dwell_us: u64, look_us: u64, count: usize) -> (f64, f64) {
        let dir = tempfile::tempdir().unwrap();
        let process = process(dir.path(), "1-1.slot");
        for line in 0..4 {
            process.slot.enter(line);
            process.slot.leave(line);
        }
        let mut foreground = Foreground::new(dir.path(), 0);
        let mut seed = 7u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut events = Vec::new();
        let mut total = 0;
        for line in 0..4 {
            let mut at = 0;
            for _ in 0..count {
                at += random(2 * dwell_us) * 1000;
                let dwell = (dwell_us + random(2 * dwell_us)) * 1000;
                total += dwell;
                events.push((at, line, true));
                at += dwell;
                events.push((at, line, false));
            }
        }
        events.sort_unstable();
        let mut looked = 0;
        for (at, line, enters) in events {
            while looked + look_us * 1000 <= at {
                looked += look_us * 1000;
                foreground.look(looked);
            }
            if enters { process.slot.enter(line) } else { process.slot.leave(line) }
        }
        foreground.look(looked + look_us * 1000);
        assert_eq!(foreground.window().ended, 4 * count as u64);
        (total as f64 / (4 * count) as f64, foreground.window().latency_ns().unwrap())
    }

    #[test]
    fn the_mean_latency_is_that_of_the_threads_within_the_stated_error() {
        for (dwell_us, look_us, count) in [(5_000, 1_000, 400), (1_000, 1_000, 1_000), (200, 1_000, 4_000)] {
            let (known, seen) = simulated(dwell_us, look_us, count);
            assert!((seen / known - 1.0).abs() < 0.1, "{dwell_us} us every {look_us} us: {seen} for {known}");
        }
    }

    #[test]
    fn a_thread_that_keeps_count_itself_is_seen_with_the_latency_it_had() {
        let dir = tempfile::tempdir().unwrap();
        let process = process(dir.path(), "1-1.slot");
        let mut foreground = Foreground::new(dir.path(), now_ns());
        let known = std::thread::scope(|scope| {
            let slot = process.slot;
            let thread = scope.spawn(move || {
                let mut inside = 0;
                for _ in 0..60 {
                    let begun = now_ns();
                    slot.enter(0);
                    sleep_until(begun + 3_000_000);
                    slot.leave(0);
                    inside += now_ns() - begun;
                    sleep_until(now_ns() + 2_000_000);
                }
                inside as f64 / 60.0
            });
            while !thread.is_finished() {
                foreground.look(now_ns());
                sleep_until(now_ns() + 200_000);
            }
            foreground.look(now_ns());
            thread.join().unwrap()
        });
        let seen = foreground.take();
        assert_eq!(seen.ended, 60);
        assert!((seen.latency_ns().unwrap() / known - 1.0).abs() < 0.3, "{seen:?} for {known}");
        assert_eq!(foreground.window(), Window::default());
    }

    #[test]
    fn processes_that_came_later_count_and_dead_ones_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut foreground = Foreground::new(dir.path(), 0);
        let one = process(dir.path(), "1-1.slot");
        foreground.refresh();
        one.slot.enter(0);
        foreground.look(10);
        assert_eq!(foreground.take(), Window { ns: 10, inside_ns: 10, ended: 0, samples: 1 });
        // Killed inside: its lock goes with its last mapping and descriptor.
        drop(one.file);
        // SAFETY: mapped by `process`, not used any more.
        unsafe { munmap(one.slot.base().cast(), SLOT_BYTES).unwrap() };
        // The watcher's mapping is of a descriptor of its own and holds no lock.
        foreground.refresh();
        foreground.look(20);
        assert_eq!(foreground.take().inside_ns, 0);
    }
}
