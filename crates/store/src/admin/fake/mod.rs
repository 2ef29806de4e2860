//! A disk for crash tests. It keeps what programs see (live) and what would survive a power cut (durable) apart, stops after
//! any operation, leaves out any one fsync by name, and on a power cut makes durable a random part of what was not flushed:
//! each page, each length and each directory entry on its own, as far as fsync allows.

mod content;
mod file;
mod medium;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use self::content::{Content, DataOp, Dice, survive};
use self::file::CtlMemory;
use super::medium::FsyncPoint;

/// One change of a directory: names and what they lead to from then on. A rename is one op, in one or two directories.
#[derive(Clone)]
struct DirOp {
    number: u64,
    changes: Vec<(OsString, Option<u64>)>,
}

enum Node {
    File { live: Content, durable: Content, ops: Vec<DataOp> },
    Dir { live: BTreeMap<OsString, u64>, durable: BTreeMap<OsString, u64>, ops: Vec<DirOp> },
    Link(PathBuf),
    Ctl(Arc<CtlMemory>),
}

struct Inner {
    pub(super) nodes: HashMap<u64, Node>,
    next_node: u64,
    next_op: u64,
    boot: u64,
    steps: u64,
    stop_after: Option<u64>,
    suppress: Option<FsyncPoint>,
    seen_points: Vec<FsyncPoint>,
    pub(super) locks: HashMap<PathBuf, (u32, bool)>,
    free_bytes: u64,
    wanted_after: Option<u64>,
    cannot_exchange: bool,
}

/// The fake disk. Clones are the same disk.
#[derive(Clone)]
pub struct FakeDisk(Arc<Mutex<Inner>>);

const ROOT: u64 = 1;

impl FakeDisk {
    /// An empty disk with a root directory.
    pub fn new() -> Self {
        let root = Node::Dir { live: BTreeMap::new(), durable: BTreeMap::new(), ops: Vec::new() };
        Self(Arc::new(Mutex::new(Inner {
            nodes: HashMap::from([(ROOT, root)]),
            next_node: ROOT + 1,
            next_op: 0,
            boot: 1,
            steps: 0,
            stop_after: None,
            suppress: None,
            seen_points: Vec::new(),
            locks: HashMap::new(),
            free_bytes: 1 << 50,
            wanted_after: None,
            cannot_exchange: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Changes made so far.
    pub fn steps(&self) -> u64 {
        self.lock().steps
    }

    /// Lets `steps` more changes through; everything after fails, as if the process had been killed there.
    pub fn stop_after(&self, steps: u64) {
        let mut inner = self.lock();
        inner.stop_after = Some(inner.steps + steps);
    }

    /// Leaves out all fsyncs of one kind.
    pub fn suppress(&self, point: Option<FsyncPoint>) {
        self.lock().suppress = point;
    }

    /// The kinds of fsync that were asked for so far, each once.
    pub fn points_seen(&self) -> Vec<FsyncPoint> {
        self.lock().seen_points.clone()
    }

    /// Bytes that every file system says it has free.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.lock().free_bytes = bytes;
    }

    /// From `steps` more changes on, somebody waits to open every leased file.
    pub fn want_after(&self, steps: Option<u64>) {
        let mut inner = self.lock();
        inner.wanted_after = steps.map(|s| inner.steps + s);
    }

    /// Makes this a file system on which two names cannot change places.
    pub fn forbid_exchange(&self) {
        self.lock().cannot_exchange = true;
    }

    /// A new process after a kill: what is live stays, locks are gone, changes go through again.
    pub fn restart(&self) {
        let mut inner = self.lock();
        inner.stop_after = None;
        inner.locks.clear();
    }

    /// Makes all that is live durable (an orderly unmount).
    pub fn settle(&self) {
        let mut inner = self.lock();
        for node in inner.nodes.values_mut() {
            match node {
                Node::File { live, durable, ops } => {
                    durable.clone_from(live);
                    ops.clear();
                }
                Node::Dir { live, durable, ops } => {
                    durable.clone_from(live);
                    ops.clear();
                }
                Node::Link(_) | Node::Ctl(_) => {}
            }
        }
    }

    /// Cuts the power and boots again: of what was not flushed, a random part (chosen by `seed`) is on the disk.
    pub fn cut_power(&self, seed: u64) {
        let mut inner = self.lock();
        let mut dice = Dice::new(seed);
        // A rename is atomic: both of its directories have it or neither.
        let mut kept: HashMap<u64, bool> = HashMap::new();
        let mut numbers: Vec<u64> = inner.nodes.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            match inner.nodes.get_mut(&number) {
                Some(Node::File { live, durable, ops }) => {
                    let after = survive(durable, ops, &mut dice);
                    ops.clear();
                    durable.clone_from(&after);
                    *live = after;
                }
                Some(Node::Dir { live, durable, ops }) => {
                    for op in ops.drain(..) {
                        if *kept.entry(op.number).or_insert_with(|| dice.one_in(2)) {
                            apply_dir(durable, &op.changes);
                        }
                    }
                    live.clone_from(durable);
                }
                Some(Node::Ctl(memory)) if dice.one_in(2) => *memory = CtlMemory::zeroed(),
                _ => {}
            }
        }
        inner.boot += 1;
        inner.locks.clear();
        inner.stop_after = None;
    }
}

fn apply_dir(entries: &mut BTreeMap<OsString, u64>, changes: &[(OsString, Option<u64>)]) {
    for (name, node) in changes {
        match node {
            Some(node) => entries.insert(name.clone(), *node),
            None => entries.remove(name),
        };
    }
}

fn missing(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no {} on the fake disk", path.display()))
}

impl Inner {
    /// Counts one change; refuses it past the point where the process was killed.
    pub(super) fn step(&mut self) -> io::Result<()> {
        if self.stop_after.is_some_and(|at| self.steps >= at) {
            return Err(io::Error::other("the process was killed here"));
        }
        self.steps += 1;
        Ok(())
    }

    fn find(&self, path: &Path) -> Option<u64> {
        let mut at = ROOT;
        for part in path.components() {
            if let Component::Normal(name) = part {
                match self.nodes.get(&at) {
                    Some(Node::Dir { live, .. }) => at = *live.get(name)?,
                    _ => return None,
                }
            }
        }
        Some(at)
    }

    fn parent(&self, path: &Path) -> io::Result<(u64, OsString)> {
        let dir = path.parent().and_then(|d| self.find(d)).ok_or_else(|| missing(path))?;
        Ok((dir, path.file_name().ok_or_else(|| missing(path))?.to_os_string()))
    }

    fn change_dir(&mut self, dir: u64, number: u64, changes: Vec<(OsString, Option<u64>)>) -> io::Result<()> {
        match self.nodes.get_mut(&dir) {
            Some(Node::Dir { live, ops, .. }) => {
                apply_dir(live, &changes);
                ops.push(DirOp { number, changes });
                Ok(())
            }
            _ => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }

    /// Live names that lead to a node.
    pub(super) fn names_of(&self, node: u64) -> u64 {
        let dirs = self.nodes.values().filter_map(|n| if let Node::Dir { live, .. } = n { Some(live) } else { None });
        dirs.map(|live| live.values().filter(|n| **n == node).count() as u64).sum()
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.wanted_after.is_some_and(|at| self.steps >= at)
    }

    fn next_op(&mut self) -> u64 {
        self.next_op += 1;
        self.next_op
    }

    fn add(&mut self, path: &Path, node: Node) -> io::Result<u64> {
        let (dir, name) = self.parent(path)?;
        if self.find(path).is_some() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        self.step()?;
        let number = self.next_node;
        self.next_node += 1;
        self.nodes.insert(number, node);
        let op = self.next_op();
        self.change_dir(dir, op, vec![(name, Some(number))])?;
        Ok(number)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        self.step()?;
        let op = self.next_op();
        self.change_dir(dir, op, vec![(name, None)])
    }

    pub(super) fn flushes(&mut self, point: FsyncPoint) -> io::Result<bool> {
        self.step()?;
        if !self.seen_points.contains(&point) {
            self.seen_points.push(point);
        }
        Ok(self.suppress != Some(point))
    }
}

fn new_file() -> Node {
    Node::File { live: Content::default(), durable: Content::default(), ops: Vec::new() }
}

/// Of every file: rights are not modelled, and this mode follows from itself for each part of a file.
const MODE: u32 = 0o644;
