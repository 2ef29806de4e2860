//! Whether the nodes of a path are a tree and every number in them names something.

use std::collections::BTreeSet;

use crate::error::PathError;
use crate::node::{ALONE, FLAGS_KNOWN, Node, TOGETHER, TOGETHER_REST, Who, mode};
use crate::op::{Kind, Layer, Op};
use crate::path::Path;
use crate::tables::{SIZE_MAX, SLACK_MAX_NS, View};

/// Loops within loops, at most.
pub const DEPTH_MAX: usize = 64;

pub(crate) fn check(path: &Path<'_>) -> Result<(), PathError> {
    let mut ends: Vec<usize> = Vec::new();
    let mut made: BTreeSet<u32> = BTreeSet::new();
    let mut largest = 0;
    for index in 0..path.len() {
        while ends.last() == Some(&index) {
            ends.pop();
        }
        let wrong = |what: &str| PathError::Damaged(format!("node {index} {what}"));
        let node = path.node(index).ok_or_else(|| wrong("is of no known kind"))?;
        names_something(path, &node).map_err(wrong)?;
        fits_its_file(path, &node, &mut made).map_err(wrong)?;
        if node.op.is_some_and(|op| op.facts().layer == Layer::Mpi && op.facts().kind == Kind::Data) {
            largest = sizes(path, &node).fold(largest, u64::max);
        }
        if node.op.is_none() {
            let end = index + 1 + node.link as usize;
            if end > ends.last().copied().unwrap_or(path.len()) || node.link == 0 {
                return Err(wrong("is a loop whose body is not within its path"));
            }
            if ends.len() == DEPTH_MAX {
                return Err(wrong("is in too many loops"));
            }
            ends.push(end);
        }
    }
    match path.tables.views.iter().position(|view| !reaches(*view, largest)) {
        Some(view) => Err(PathError::Damaged(format!("view {view} spreads a request of {largest} bytes over more than 2^62 bytes of its file"))),
        None => Ok(()),
    }
}

/// Bytes of a file that a request in a view may go over.
const REACH_MAX: u64 = 1 << 62;

/// Whether a request of so many bytes stays within the largest file; the pieces of a tile are known to fit it.
fn reaches(view: View, bytes: u64) -> bool {
    let tiles = bytes / view.piece.saturating_mul(view.pieces).max(1) + 2;
    view.tile.checked_mul(tiles).is_some_and(|reach| reach <= REACH_MAX)
}

/// What is marked as a directory is protected as one, so nothing may treat it as a file. Only a directory that the path makes may be renamed.
fn fits_its_file(path: &Path<'_>, node: &Node, made: &mut BTreeSet<u32>) -> Result<(), &'static str> {
    let Some(op) = node.op else { return Ok(()) };
    let is_directory = |file: u32| path.tables.files.get(file as usize).is_some_and(|file| file.directory);
    if is_directory(node.link) {
        return match op {
            Op::Mkdir => {
                made.insert(node.link);
                Ok(())
            }
            Op::Rename if made.contains(&node.link) => Ok(()),
            Op::Rename => Err("renames a directory that the path does not make"),
            _ if op.is_on_directories() => Ok(()),
            _ => Err("is an operation on files, but its file is marked as a directory"),
        };
    }
    let takes_two = matches!(op, Op::Rename | Op::Link | Op::Symlink);
    if takes_two && sizes(path, node).any(|other| other.checked_sub(1).is_some_and(|other| is_directory(other as u32))) {
        return Err("gives a file the name of a directory");
    }
    Ok(())
}

/// The sizes that a node has for any rank.
fn sizes<'a>(path: &'a Path<'_>, node: &Node) -> impl Iterator<Item = u64> + use<'a> {
    let of_ranks = path.tables.numbers.get((node.table as usize).wrapping_sub(1)).map_or(&[][..], Vec::as_slice);
    of_ranks.iter().map(|numbers| numbers.size).chain([node.size])
}

fn names_something(path: &Path<'_>, node: &Node) -> Result<(), &'static str> {
    let tables = &path.tables;
    if matches!(node.who, Who::Group(group) if usize::from(group) >= tables.groups.len()) {
        return Err("is for a group that there is not");
    }
    if node.table as usize > tables.numbers.len() {
        return Err("has numbers for each rank that there are not");
    }
    if [node.slack_first, node.slack_rest].iter().any(|drawn| *drawn as usize > tables.distributions.len()) || node.slack_ns > SLACK_MAX_NS {
        return Err("has a slack that there is not");
    }
    let Some(op) = node.op else { return if node.flags == 0 { Ok(()) } else { Err("has flags that are not known") } };
    if node.flags & !FLAGS_KNOWN != 0 || node.flags & ALONE != 0 && op != Op::Opendir {
        return Err("has flags that are not known");
    }
    if node.flags & (TOGETHER | TOGETHER_REST) != 0 && node.who != Who::All {
        return Err("waits for all ranks, but not all make it");
    }
    if node.link as usize >= tables.files.len() {
        return Err("is on a file that there is not");
    }
    if op.facts().layer == Layer::Mpi && usize::from(node.comm) >= tables.comms.len().max(1) {
        return Err("is on a communicator that there is not");
    }
    if usize::from(node.view) > if op == Op::MpiView { tables.views.len() } else { 0 } {
        return Err("has a view that there is not");
    }
    let limit = match op {
        Op::Open | Op::MpiOpen => mode::KNOWN,
        Op::Rename | Op::Link | Op::Symlink => tables.files.len() as u64,
        Op::Ftruncate | Op::Truncate | Op::MpiSetSize | Op::MpiPreallocate | Op::Fallocate | Op::Mmap | Op::Lock | Op::Advise => i64::MAX as u64,
        _ if op.facts().kind == Kind::Data => SIZE_MAX,
        _ => u64::MAX,
    };
    if sizes(path, node).any(|size| size > limit) { Err("has a size beyond the limit of its operation") } else { Ok(()) }
}
