//! A disk for crash tests. It keeps what programs see (live) and what would survive a power cut (durable) apart, stops after
//! any operation, leaves out any one fsync by name, and on a power cut makes durable a random part of what was not flushed:
//! each page, each length and each directory entry on its own, as far as fsync allows.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::fake_content::{Content, DataOp, Dice, PAGE, survive};
use super::fake_file::{CtlMemory, FakeCtl, FakeFile, FakeLock, Unlocked};
use super::medium::{Attributes, CtlMap, DevicesMap, FsyncPoint, Handle, Kind, Leased, Lock, Medium, Open, Root, Stat};
use crate::ctl::CTL_BYTES;
use crate::locks::How;
use crate::rights::Part;

/// One change of a directory: names and what they lead to from then on. A rename is one op, in one or two directories.
#[derive(Clone)]
pub(super) struct DirOp {
    number: u64,
    changes: Vec<(OsString, Option<u64>)>,
}

pub(super) enum Node {
    File { live: Content, durable: Content, ops: Vec<DataOp> },
    Dir { live: BTreeMap<OsString, u64>, durable: BTreeMap<OsString, u64>, ops: Vec<DirOp> },
    Link(PathBuf),
    Ctl(Arc<CtlMemory>),
}

pub(super) struct Inner {
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

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
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
        let mut dice = Dice(seed);
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
pub(super) const MODE: u32 = 0o644;

impl Medium for FakeDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn Handle>> {
        let mut inner = self.lock();
        let found = inner.find(path);
        let node = match (found, how) {
            (Some(_), Open::CreateNew) => return Err(io::Error::from(io::ErrorKind::AlreadyExists)),
            (Some(node), _) => node,
            (None, Open::Read | Open::Write) => return Err(missing(path)),
            (None, Open::CreateNew) => inner.add(path, new_file())?,
        };
        drop(inner);
        Ok(Box::new(FakeFile { disk: self.clone(), node }))
    }

    fn hold(&self, _dir: &Path, _root: Root<'_>) -> io::Result<()> {
        Ok(())
    }

    fn close_target(&self, _dir: &Path) {}

    fn set_dir_mode(&self, _path: &Path, _mode: u32) -> io::Result<()> {
        Ok(())
    }

    fn change_mode(&self, _path: &Path, _take: u32, _give: u32) -> io::Result<()> {
        Ok(())
    }

    fn make_common(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        if inner.find(path).is_some() { Ok(()) } else { inner.add(path, new_file()).map(drop) }
    }

    fn mkdir(&self, path: &Path) -> io::Result<()> {
        self.lock().add(path, Node::Dir { live: BTreeMap::new(), durable: BTreeMap::new(), ops: Vec::new() }).map(drop)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        let node = inner.find(from).ok_or_else(|| missing(from))?;
        let (old_dir, old_name) = inner.parent(from)?;
        let (new_dir, new_name) = inner.parent(to)?;
        inner.step()?;
        let number = inner.next_op();
        if old_dir == new_dir {
            return inner.change_dir(old_dir, number, vec![(old_name, None), (new_name, Some(node))]);
        }
        inner.change_dir(old_dir, number, vec![(old_name, None)])?;
        inner.change_dir(new_dir, number, vec![(new_name, Some(node))])
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        inner.find(path).ok_or_else(|| missing(path))?;
        inner.remove(path)
    }

    fn rmdir(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        let node = inner.find(path).ok_or_else(|| missing(path))?;
        match inner.nodes.get(&node) {
            Some(Node::Dir { live, .. }) if live.is_empty() => inner.remove(path),
            Some(Node::Dir { .. }) => Err(io::Error::from(io::ErrorKind::DirectoryNotEmpty)),
            _ => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        if inner.cannot_exchange {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let first = inner.find(one).ok_or_else(|| missing(one))?;
        let second = inner.find(other).ok_or_else(|| missing(other))?;
        let (dir, one) = inner.parent(one)?;
        let (_, other) = inner.parent(other)?;
        inner.step()?;
        let number = inner.next_op();
        inner.change_dir(dir, number, vec![(one, Some(second)), (other, Some(first))])
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        let node = inner.find(from).ok_or_else(|| missing(from))?;
        if inner.find(to).is_some() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let (dir, name) = inner.parent(to)?;
        inner.step()?;
        let number = inner.next_op();
        inner.change_dir(dir, number, vec![(name, Some(node))])
    }

    fn open_alone(&self, path: &Path, _lease: bool) -> io::Result<Option<Box<dyn Leased>>> {
        let inner = self.lock();
        let node = inner.find(path).ok_or_else(|| missing(path))?;
        if inner.is_wanted() {
            return Ok(None);
        }
        Ok(Some(Box::new(FakeFile { disk: self.clone(), node })))
    }

    fn symlink(&self, text: &Path, at: &Path) -> io::Result<()> {
        self.lock().add(at, Node::Link(text.to_path_buf())).map(drop)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let inner = self.lock();
        match inner.find(path).and_then(|n| inner.nodes.get(&n)) {
            Some(Node::Link(text)) => Ok(text.clone()),
            Some(_) => Err(io::Error::from(io::ErrorKind::InvalidInput)),
            None => Err(missing(path)),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let inner = self.lock();
        match inner.find(dir).and_then(|n| inner.nodes.get(&n)) {
            Some(Node::Dir { live, .. }) => Ok(live.keys().cloned().collect()),
            Some(_) => Err(io::Error::from(io::ErrorKind::NotADirectory)),
            None => Err(missing(dir)),
        }
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        let inner = self.lock();
        let Some(ino) = inner.find(path) else { return Ok(None) };
        let (kind, size, allocated_bytes) = match inner.nodes.get(&ino) {
            Some(Node::File { live, .. }) => (Kind::File, live.len, live.pages.len() as u64 * PAGE),
            Some(Node::Dir { .. }) => (Kind::Dir, 0, 0),
            Some(Node::Link(text)) => (Kind::Link, text.as_os_str().len() as u64, 0),
            Some(Node::Ctl(_)) => (Kind::File, CTL_BYTES as u64, CTL_BYTES as u64),
            None => return Ok(None),
        };
        let links = inner.names_of(ino);
        let mode = if kind == Kind::Dir { Part::Dir.mode(MODE) } else { MODE };
        Ok(Some(Stat { kind, size, allocated_bytes, dev: 1, ino, mtime_s: 0, mtime_ns: 0, ctime_ns: 0, links, mode, uid: 0, gid: 0 }))
    }

    fn sync_dir(&self, dir: &Path, point: FsyncPoint) -> io::Result<()> {
        let mut inner = self.lock();
        let node = inner.find(dir).ok_or_else(|| missing(dir))?;
        if !inner.flushes(point)? {
            return Ok(());
        }
        let mut flushed = Vec::new();
        if let Some(Node::Dir { live, durable, ops }) = inner.nodes.get_mut(&node) {
            durable.clone_from(live);
            flushed.extend(ops.drain(..).map(|op| op.number));
        }
        // The other half of a rename between directories goes with it.
        for other in inner.nodes.values_mut() {
            if let Node::Dir { durable, ops, .. } = other {
                ops.retain(|op| {
                    let goes = flushed.contains(&op.number);
                    if goes {
                        apply_dir(durable, &op.changes);
                    }
                    !goes
                });
            }
        }
        Ok(())
    }

    fn try_presence(&self, path: &Path, how: How) -> io::Result<Option<Box<dyn Lock>>> {
        self.try_lock(path, how == How::Exclusive)
    }

    fn try_lock(&self, path: &Path, exclusive: bool) -> io::Result<Option<Box<dyn Lock>>> {
        let mut inner = self.lock();
        inner.find(path).ok_or_else(|| missing(path))?;
        match inner.locks.get_mut(path) {
            Some((_, true)) => return Ok(None),
            Some((_, false)) if exclusive => return Ok(None),
            Some((holders, false)) => *holders += 1,
            None => {
                inner.locks.insert(path.to_path_buf(), (1, exclusive));
            }
        }
        drop(inner);
        Ok(Some(Box::new(FakeLock { disk: self.clone(), path: path.to_path_buf() })))
    }

    fn ctl(&self, path: &Path, create: bool) -> io::Result<Box<dyn CtlMap>> {
        let mut inner = self.lock();
        let node = match inner.find(path) {
            Some(node) => node,
            None if create => inner.add(path, Node::Ctl(CtlMemory::zeroed()))?,
            None => return Err(missing(path)),
        };
        match inner.nodes.get(&node) {
            Some(Node::Ctl(memory)) => Ok(Box::new(FakeCtl(memory.clone()))),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "not a ctl")),
        }
    }

    fn devices(&self, _run_dir: &Path, _targets: usize, _create: bool) -> io::Result<Option<Box<dyn DevicesMap>>> {
        Ok(None)
    }

    fn attributes(&self, _path: &Path) -> io::Result<Attributes> {
        Ok(Attributes::default())
    }

    fn follow_head(&self, _head: &Path, _to: &Path, _part: Part) -> io::Result<()> {
        Ok(())
    }

    fn dir_follows_head(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn own_link(&self, _link: &Path, _text: &Path, _uid: u32, _gid: u32) -> io::Result<()> {
        Ok(())
    }

    fn acl(&self, _path: &Path) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn lock_holders(&self, _path: &Path) -> io::Result<Vec<u32>> {
        Ok(Vec::new())
    }

    fn pause(&self, _ms: u64) {}

    fn grace(&self, _run_dir: &Path, _patience_ns: u64) -> io::Result<bool> {
        Ok(true)
    }

    fn run_fd(&self, _run_dir: &Path) -> io::Result<Option<OwnedFd>> {
        Ok(None)
    }

    fn lock_dir(&self, _dir: &Path) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(Unlocked))
    }

    fn is_pinned(&self, _ctl: &Path) -> io::Result<bool> {
        Ok(false)
    }

    fn boot_id(&self) -> io::Result<String> {
        Ok(format!("00000000-0000-4000-8000-{:012x}", self.lock().boot))
    }

    fn machine_id(&self) -> io::Result<String> {
        Ok("fake".to_string())
    }

    fn free_bytes(&self, _dir: &Path) -> io::Result<u64> {
        Ok(self.lock().free_bytes)
    }

    fn now_s(&self) -> i64 {
        0
    }
}
