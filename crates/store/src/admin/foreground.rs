//! How long the programs' I/O takes, seen from outside and at no cost to them: each thread's line in a slot says whether it is inside an I/O, and its
//! epoch counts those that have ended. Little's law (L = lambda W) turns both into the mean latency.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Dir, FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::{Errno, pread};
use stripewise_target::within::{Expected, open_file};

use crate::run::boot_of_slot;
use crate::slot::{SLOT_BYTES, SLOT_HEADER_BYTES, SLOT_LINES};

const LINE_BYTES: usize = 64;
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

/// A store's `run/`, held open, and the boot whose slots count.
pub struct RunDir {
    /// The directory.
    pub dir: OwnedFd,
    /// This boot's id.
    pub boot: String,
}

/// A slot of a living process. It is read, not mapped: its owner may cut it.
struct Watched {
    file: OwnedFd,
    /// Its lines as they were last read.
    lines: Vec<u8>,
    /// Ended I/Os of each line when it was last looked at; as many as have been used.
    ended: Vec<u64>,
}

impl Watched {
    /// Reads the first `count` lines and returns their epochs; a line that was cut says nothing.
    fn read(&mut self, count: usize) -> impl Iterator<Item = u64> {
        self.lines.resize(count * LINE_BYTES, 0);
        let got = pread(&self.file, &mut self.lines[..], SLOT_HEADER_BYTES as u64).unwrap_or(0);
        self.lines.get_mut(got..).unwrap_or(&mut []).fill(0);
        self.lines.chunks_exact(LINE_BYTES).map(|line| line.first_chunk().copied().map_or(0, u64::from_le_bytes))
    }
}

/// The lines of all living processes that use a store.
pub struct Foreground {
    run: RunDir,
    slots: BTreeMap<CString, Watched>,
    window: Window,
    looked_ns: u64,
}

impl Foreground {
    /// Watches the slots in `run` from `now_ns` on.
    pub fn new(run: RunDir, now_ns: u64) -> Self {
        let mut made = Self { run, slots: BTreeMap::new(), window: Window::default(), looked_ns: now_ns };
        made.refresh();
        made
    }

    /// Looks for processes that came and went, and for threads that made their first I/O.
    pub fn refresh(&mut self) {
        let names = self.names().unwrap_or_default();
        self.slots.retain(|name, slot| names.contains(name) && is_held(&slot.file));
        for name in names {
            if !self.slots.contains_key(&name)
                && let Some(watched) = watch(&self.run.dir, &name)
            {
                self.slots.insert(name, watched);
            }
        }
        for watched in self.slots.values_mut() {
            let epochs: Vec<u64> = watched.read(OWN_LINES).collect();
            let used = epochs.iter().rposition(|epoch| *epoch != 0).map_or(0, |line| line + 1);
            let known = watched.ended.len();
            watched.ended.extend(epochs.get(known..used).unwrap_or(&[]).iter().map(|epoch| epoch >> 1));
        }
    }

    fn names(&self) -> Result<Vec<CString>, Errno> {
        let dir = openat(&self.run.dir, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let ours = |name: &CStr| boot_of_slot(name.to_bytes()) == Some(self.run.boot.as_bytes());
        Ok(Dir::new(dir)?.flatten().map(|entry| entry.file_name().to_owned()).filter(|name| ours(name)).collect())
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
            let mut ended = std::mem::take(&mut watched.ended);
            for (epoch, before) in watched.read(ended.len()).zip(&mut ended) {
                self.window.inside_ns += (epoch & 1) * since_ns;
                self.window.ended += (epoch >> 1).saturating_sub(*before);
                *before = epoch >> 1;
            }
            watched.ended = ended;
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
fn is_held(file: &OwnedFd) -> bool {
    let free = flock(file, FlockOperation::NonBlockingLockShared).is_ok();
    if free {
        let _ = flock(file, FlockOperation::Unlock);
    }
    !free
}

fn watch(run: &OwnedFd, name: &CStr) -> Option<Watched> {
    let (file, stat) = open_file(run.as_fd(), name, OFlags::RDONLY, Expected::of(&[]).hard_links_too()).ok()?;
    (stat.st_size >= SLOT_BYTES as i64 && is_held(&file)).then(|| Watched { file, lines: Vec::new(), ended: Vec::new() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::slot::{MachineId, Slot, SlotHeader};
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    use std::fs::File;
    use std::path::Path;
    use stripewise_target::time::{now_ns, sleep_until};

    struct Process {
        file: File,
        slot: Slot,
    }

    fn run_dir(path: &Path) -> RunDir {
        RunDir { dir: File::open(path).unwrap().into(), boot: "0b".to_string() }
    }

    fn process(dir: &Path, name: &str) -> Process {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(dir.join(name)).unwrap();
        file.set_len(SLOT_BYTES as u64).unwrap();
        rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
        // SAFETY: a mapping of a long enough file, which the test leaves alone until it ends.
        let base = unsafe { mmap(core::ptr::null_mut(), SLOT_BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0).unwrap() };
        // SAFETY: as above.
        let slot = unsafe { Slot::from_mapping(base.cast()) };
        slot.initialise(SlotHeader { pid: 1, config: 0, targets: 0, machine: MachineId::default() });
        slot.enter(0);
        slot.leave(0);
        Process { file, slot }
    }

    /// Drives four threads through `count` I/Os each in made-up time, dwell from `dwell_us` to three times that; returns true and estimated mean.
    fn simulated(dwell_us: u64, look_us: u64, count: usize) -> (f64, f64) {
        let dir = tempfile::tempdir().unwrap();
        let process = process(dir.path(), "0b.1-1.slot");
        for line in 0..4 {
            process.slot.enter(line);
            process.slot.leave(line);
        }
        let mut foreground = Foreground::new(run_dir(dir.path()), 0);
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
        let process = process(dir.path(), "0b.1-1.slot");
        let mut foreground = Foreground::new(run_dir(dir.path()), now_ns());
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
        let mut foreground = Foreground::new(run_dir(dir.path()), 0);
        let one = process(dir.path(), "0b.1-1.slot");
        foreground.refresh();
        one.slot.enter(0);
        foreground.look(10);
        assert_eq!(foreground.take(), Window { ns: 10, inside_ns: 10, ended: 0, samples: 1 });
        // Killed inside: its lock goes with its last mapping and descriptor.
        drop(one.file);
        // SAFETY: mapped by `process`, not used any more.
        unsafe { munmap(one.slot.base().cast(), SLOT_BYTES).unwrap() };
        foreground.refresh();
        foreground.look(20);
        assert_eq!(foreground.take().inside_ns, 0);
    }
}
