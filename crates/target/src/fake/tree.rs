//! Inodes of the fake disk: directories with the changes to them that are not flushed, and what of these a power cut leaves.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::Memory;
use super::content::{Content, DataOp, Dice, survive};

/// Names of a directory and what they lead to.
type Entries = BTreeMap<OsString, u64>;

/// Names, and what they lead to from then on.
type Changes = Vec<(OsString, Option<u64>)>;

/// One change of a directory: names and what they lead to from then on. A rename is one op, in one or two directories.
#[derive(Clone)]
pub(super) struct DirOp {
    number: u64,
    changes: Changes,
}

pub(super) enum Node {
    /// With the number of the step that changed its content last.
    File {
        live: Content,
        durable: Content,
        ops: Vec<DataOp>,
        changed: u64,
    },
    Dir {
        live: Entries,
        durable: Entries,
        ops: Vec<DirOp>,
    },
    Link(PathBuf),
    Memory(Arc<Memory>),
}

impl Node {
    pub(super) fn empty_file() -> Self {
        Self::File { live: Content::default(), durable: Content::default(), ops: Vec::new(), changed: 0 }
    }

    pub(super) fn empty_dir() -> Self {
        Self::Dir { live: Entries::new(), durable: Entries::new(), ops: Vec::new() }
    }
}

pub(super) struct Tree {
    pub(super) nodes: HashMap<u64, Node>,
    next_node: u64,
    next_op: u64,
    pub(super) boot: u64,
    pub(super) steps: u64,
    pub(super) stop_after: Option<u64>,
    pub(super) free_bytes: u64,
}

const ROOT: u64 = 1;

impl Tree {
    pub(super) fn new() -> Self {
        let nodes = HashMap::from([(ROOT, Node::empty_dir())]);
        Self { nodes, next_node: ROOT + 1, next_op: 0, boot: 1, steps: 0, stop_after: None, free_bytes: 1 << 50 }
    }

    /// Whether changes still go through.
    pub(super) fn check_alive(&self) -> Result<(), Errno> {
        if self.stop_after.is_some_and(|at| self.steps >= at) { Err(Errno::IO) } else { Ok(()) }
    }

    /// Counts one change; refuses it past the point where the process was killed.
    pub(super) fn step(&mut self) -> Result<(), Errno> {
        self.check_alive()?;
        self.steps += 1;
        Ok(())
    }

    pub(super) fn find(&self, path: &Path) -> Option<u64> {
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

    /// The directory of a path, and the name in it.
    pub(super) fn parent(&self, path: &Path) -> Result<(u64, OsString), Errno> {
        let dir = path.parent().and_then(|dir| self.find(dir)).ok_or(Errno::NOENT)?;
        Ok((dir, path.file_name().ok_or(Errno::NOENT)?.to_os_string()))
    }

    /// Changes directories in one step: what each name leads to from now on.
    pub(super) fn change(&mut self, changes: Vec<(u64, OsString, Option<u64>)>) -> Result<(), Errno> {
        self.next_op += 1;
        let number = self.next_op;
        let mut by_dir: Vec<(u64, Changes)> = Vec::new();
        for (dir, name, to) in changes {
            match by_dir.iter_mut().find(|(other, _)| *other == dir) {
                Some((_, changes)) => changes.push((name, to)),
                None => by_dir.push((dir, vec![(name, to)])),
            }
        }
        for (dir, changes) in by_dir {
            match self.nodes.get_mut(&dir) {
                Some(Node::Dir { live, ops, .. }) => {
                    apply(live, &changes);
                    ops.push(DirOp { number, changes });
                }
                _ => return Err(Errno::NOTDIR),
            }
        }
        Ok(())
    }

    /// Live names that lead to a node.
    pub(super) fn names_of(&self, node: u64) -> u64 {
        let dirs = self.nodes.values().filter_map(|n| if let Node::Dir { live, .. } = n { Some(live) } else { None });
        dirs.map(|live| live.values().filter(|n| **n == node).count() as u64).sum()
    }

    pub(super) fn add(&mut self, path: &Path, node: Node) -> Result<u64, Errno> {
        let (dir, name) = self.parent(path)?;
        if self.find(path).is_some() {
            return Err(Errno::EXIST);
        }
        self.step()?;
        let number = self.next_node;
        self.next_node += 1;
        self.nodes.insert(number, node);
        self.change(vec![(dir, name, Some(number))])?;
        Ok(number)
    }

    pub(super) fn remove(&mut self, path: &Path) -> Result<(), Errno> {
        let (dir, name) = self.parent(path)?;
        self.step()?;
        self.change(vec![(dir, name, None)])
    }

    pub(super) fn sync_dir(&mut self, dir: u64) {
        let mut flushed = Vec::new();
        if let Some(Node::Dir { live, durable, ops }) = self.nodes.get_mut(&dir) {
            durable.clone_from(live);
            flushed.extend(ops.drain(..).map(|op| op.number));
        }
        // The other half of a rename between directories goes with it.
        for other in self.nodes.values_mut() {
            if let Node::Dir { durable, ops, .. } = other {
                ops.retain(|op| {
                    let goes = flushed.contains(&op.number);
                    if goes {
                        apply(durable, &op.changes);
                    }
                    !goes
                });
            }
        }
    }

    pub(super) fn settle(&mut self) {
        for node in self.nodes.values_mut() {
            match node {
                Node::File { live, durable, ops, .. } => {
                    durable.clone_from(live);
                    ops.clear();
                }
                Node::Dir { live, durable, ops } => {
                    durable.clone_from(live);
                    ops.clear();
                }
                Node::Link(_) | Node::Memory(_) => {}
            }
        }
    }

    pub(super) fn cut_power(&mut self, seed: u64) {
        let mut dice = Dice::new(seed);
        // A rename is atomic: both of its directories have it or neither.
        let mut kept: HashMap<u64, bool> = HashMap::new();
        let mut numbers: Vec<u64> = self.nodes.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            match self.nodes.get_mut(&number) {
                Some(Node::File { live, durable, ops, .. }) => {
                    let after = survive(durable, ops, &mut dice);
                    ops.clear();
                    durable.clone_from(&after);
                    *live = after;
                }
                Some(Node::Dir { live, durable, ops }) => {
                    for op in ops.drain(..) {
                        if *kept.entry(op.number).or_insert_with(|| dice.one_in(2)) {
                            apply(durable, &op.changes);
                        }
                    }
                    live.clone_from(durable);
                }
                Some(Node::Memory(memory)) if dice.one_in(2) => *memory = Memory::zeroed(memory.words()),
                _ => {}
            }
        }
        self.boot += 1;
        self.stop_after = None;
    }
}

fn apply(entries: &mut Entries, changes: &[(OsString, Option<u64>)]) {
    for (name, node) in changes {
        match node {
            Some(node) => entries.insert(name.clone(), *node),
            None => entries.remove(name),
        };
    }
}
