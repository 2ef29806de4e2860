//! A store's disk for crash tests: the fake file system of [`stripewise_target::fake`] as a [`Medium`](super::medium::Medium), which leaves out any one flush
//! by name and knows locks, leases and boots.

mod file;
mod medium;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stripewise_target::any::Any;
use stripewise_target::fake::Disk;

use super::medium::FsyncPoint;

/// Where the objects of a target lie, by its directory.
type Elsewhere = Arc<dyn Fn(&Path) -> Any + Send + Sync>;

#[derive(Default)]
struct More {
    suppress: Option<FsyncPoint>,
    seen_points: Vec<FsyncPoint>,
    /// Holders of each lock, and whether it is one that has it exclusively.
    locks: HashMap<PathBuf, (u32, bool)>,
    wanted_after: Option<u64>,
    cannot_exchange: bool,
    now_ms: u64,
    elsewhere: Option<Elsewhere>,
}

/// The fake disk. Clones are the same disk.
#[derive(Clone, Default)]
pub struct FakeDisk {
    disk: Disk,
    more: Arc<Mutex<More>>,
}

impl FakeDisk {
    /// An empty disk with a root directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn more(&self) -> MutexGuard<'_, More> {
        self.more.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes made so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.disk.steps()
    }

    /// Lets `steps` more changes through; everything after fails, as if the process had been killed there.
    pub fn stop_after(&self, steps: u64) {
        self.disk.stop_after(steps);
    }

    /// Leaves out all fsyncs of one kind.
    pub fn suppress(&self, point: Option<FsyncPoint>) {
        self.more().suppress = point;
    }

    /// The kinds of fsync that were asked for so far, each once.
    #[must_use]
    pub fn points_seen(&self) -> Vec<FsyncPoint> {
        self.more().seen_points.clone()
    }

    /// Bytes that every file system says it has free.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.disk.set_free_bytes(bytes);
    }

    /// From `steps` more changes on, somebody waits to open every leased file.
    pub fn want_after(&self, steps: Option<u64>) {
        self.more().wanted_after = steps.map(|steps| self.disk.steps() + steps);
    }

    /// Makes this a file system on which two names cannot change places.
    pub fn forbid_exchange(&self) {
        self.more().cannot_exchange = true;
    }

    /// From now on objects lie where `place` says by their target's directory, and not in it: what reaches for them by path finds nothing.
    pub fn put_objects(&self, place: impl Fn(&Path) -> Any + Send + Sync + 'static) {
        self.more().elsewhere = Some(Arc::new(place));
    }

    /// A new process after a kill: what is live stays, locks are gone, changes go through again.
    pub fn restart(&self) {
        self.disk.restart();
        self.more().locks.clear();
    }

    /// Makes all that is live durable (an orderly unmount).
    pub fn settle(&self) {
        self.disk.settle();
    }

    /// Cuts the power and boots again: of what was not flushed, a random part (chosen by `seed`) is on the disk.
    pub fn cut_power(&self, seed: u64) {
        self.disk.cut_power(seed);
        self.more().locks.clear();
    }

    /// Whether somebody waits to open leased files.
    fn is_wanted(&self) -> bool {
        self.more().wanted_after.is_some_and(|at| self.disk.steps() >= at)
    }

    /// Counts a flush of a kind, which is a step, too; false where it is to be left out.
    fn is_flushed(&self, point: FsyncPoint) -> io::Result<bool> {
        self.disk.step()?;
        let mut more = self.more();
        if !more.seen_points.contains(&point) {
            more.seen_points.push(point);
        }
        Ok(more.suppress != Some(point))
    }
}

/// Of every file: rights are not modelled, and this mode follows from itself for each part of a file.
const MODE: u32 = 0o644;
