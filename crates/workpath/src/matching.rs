//! Whether a path can be played by so many processes: all ranks of a communicator must make its collective calls, and all ranks wait for each other, in one
//! order. All ranks go over the same
//! nodes, so only those differ that are for some ranks, or in loops whose rounds differ by rank; nothing needs to be expanded. Equal totals are not enough:
//! loops within loops may make them in another order.

use std::collections::BTreeMap;

use crate::error::PathError;
use crate::expand::numbers;
use crate::node::{Node, TOGETHER, TOGETHER_REST, Who};
use crate::op::{Layer, Op};
use crate::path::Path;
use crate::ranks::{colour, takes_part};
use crate::structure::DEPTH_MAX;
use crate::tables::{Comm, PROCESSES_MAX};

/// A loop around the node that is looked at.
struct Around {
    end: usize,
    index: usize,
}

/// Checks a path for a number of processes.
///
/// # Errors
/// [`PathError::Unplayable`], with the first node and two ranks that do not fit together.
pub fn check_playable(path: &Path<'_>, processes: u32) -> Result<(), PathError> {
    let fixed = path.tables.processes;
    if processes == 0 || processes > PROCESSES_MAX {
        return Err(PathError::Unplayable(format!("{processes} processes are not from 1 to {PROCESSES_MAX}")));
    }
    if fixed != 0 && fixed != processes {
        return Err(PathError::Unplayable(format!(
            "the path is for {fixed} processes, not {processes}; use -n {fixed}, or 'stripewise synth' with -n {processes}"
        )));
    }
    let mut around: Vec<Around> = Vec::new();
    let mut opened = Opened::of(path);
    for index in 0..=path.len() {
        while around.last().is_some_and(|inner| inner.end == index) {
            around.pop();
            opened.end_loop(around.len()).map_err(|file| {
                PathError::Unplayable(format!(
                    "a loop that ends before node {index} leaves file {file} open; its opens differ in their communicator, so {CURE}"
                ))
            })?;
        }
        let Some(node) = path.node(index) else { continue };
        let Some(op) = node.op else {
            around.push(Around { end: index + 1 + node.link as usize, index });
            continue;
        };
        let facts = op.facts();
        let wrong = |what: String| PathError::Unplayable(format!("node {index} ({}): {what}", op.name()));
        if node.flags & (TOGETHER | TOGETHER_REST) != 0 {
            matches(path, index, &around, Comm::World, processes).map_err(|(one, other)| {
                wrong(format!(
                    "rank {one} waits for all ranks before it in other rounds than rank {other}; let all ranks make it, in loops of equal rounds"
                ))
            })?;
        }
        if facts.layer != Layer::Mpi {
            continue;
        }
        let who_of = |from: usize| around.iter().skip(from).filter_map(|outer| path.node(outer.index)).chain([node]).map(|node| node.who);
        opened.see(&node, op, comm_of(path, node.comm), around.len(), |whose, from| who_of(from).any(|who| who == whose)).map_err(wrong)?;
        let comm = comm_of(path, node.comm);
        if facts.collective && comm != Comm::Own {
            matches(path, index, &around, comm, processes).map_err(|(one, other)| {
                wrong(format!(
                    "rank {one} makes this collective call in other rounds than rank {other} of its communicator; let all ranks make it, in loops of equal rounds"
                ))
            })?;
        }
    }
    Ok(())
}

fn comm_of(path: &Path<'_>, comm: u16) -> Comm {
    path.tables.comms.get(usize::from(comm)).copied().unwrap_or_default()
}

/// Two ranks of one communicator that do not take part alike in the call or a loop around it, or have other rounds in one.
fn matches(path: &Path<'_>, index: usize, around: &[Around], comm: Comm, processes: u32) -> Result<(), (u32, u32)> {
    let chain = || around.iter().map(|outer| outer.index).chain([index]).filter_map(|index| path.node(index));
    if chain().all(|node| node.who == Who::All && (node.op.is_some() || node.table == 0)) {
        return Ok(());
    }
    let rounds = |node: &Node, rank: u32| match (takes_part(&path.tables, node.who, rank, processes), node.op) {
        (false, _) => 0,
        (true, Some(_)) => 1,
        (true, None) => numbers(path, node, rank).2,
    };
    let is_alike = |one: u32, other: u32| {
        for node in chain() {
            let made = rounds(&node, one);
            if made != rounds(&node, other) {
                return false;
            }
            if made == 0 {
                break;
            }
        }
        true
    };
    let mut first: BTreeMap<u32, u32> = BTreeMap::new();
    for rank in 0..processes {
        let of = *first.entry(colour(comm, rank)).or_insert(rank);
        if !is_alike(of, rank) {
            return Err((rank, of));
        }
    }
    Ok(())
}

const CURE: &str = "let those who open it close it, in the same loop";

/// A file that is opened on several communicators and not yet closed again: by whom, on which, and in how many loops.
struct Open {
    comm: Comm,
    who: Who,
    depth: usize,
}

/// The communicators of the files as they are opened. A file that is always opened on the same one needs no more; of others it is followed who has opened
/// them where: in each loop they are closed again by who opened them, so that all rounds and ranks find the same.
struct Opened {
    /// None: several.
    only: BTreeMap<u32, Option<Comm>>,
    open: BTreeMap<u32, Vec<Open>>,
    /// How many of them are open by the loops around.
    by_depth: [usize; DEPTH_MAX + 1],
}

impl Opened {
    fn of(path: &Path<'_>) -> Self {
        let mut only: BTreeMap<u32, Option<Comm>> = BTreeMap::new();
        for node in (0..path.len()).filter_map(|index| path.node(index)).filter(|node| node.op == Some(Op::MpiOpen)) {
            let comm = comm_of(path, node.comm);
            only.entry(node.link).and_modify(|known| *known = known.filter(|known| *known == comm)).or_insert(Some(comm));
        }
        Self { only, open: BTreeMap::new(), by_depth: [0; DEPTH_MAX + 1] }
    }

    /// A loop at this depth ends; the file that it leaves open.
    fn end_loop(&self, depth: usize) -> Result<(), u32> {
        if self.by_depth.get(depth + 1).is_none_or(|open| *open == 0) {
            return Ok(());
        }
        let left = self.open.iter().find(|(_, all)| all.last().is_some_and(|last| last.depth > depth));
        left.map_or(Ok(()), |(file, _)| Err(*file))
    }

    /// An operation in so many loops; `is_of(who, from)`: whether it, or a loop around it from the one at `from` on, is for these ranks.
    fn see(&mut self, node: &Node, op: Op, comm: Comm, depth: usize, is_of: impl Fn(Who, usize) -> bool) -> Result<(), String> {
        if op == Op::MpiDelete {
            return Ok(());
        }
        let other = || Err("its communicator is another than that of the file's open".to_owned());
        match self.only.get(&node.link) {
            None => return Ok(()),
            Some(Some(only)) => return if *only == comm { Ok(()) } else { other() },
            Some(None) => (),
        }
        let open = self.open.entry(node.link).or_default();
        if op == Op::MpiOpen {
            open.push(Open { comm, who: node.who, depth });
            self.by_depth.iter_mut().skip(depth).take(1).for_each(|open| *open += 1);
            return Ok(());
        }
        let Some(last) = open.last() else {
            return Err(format!("the file is not open; its opens differ in their communicator, so {CURE}"));
        };
        if last.comm != comm {
            return other();
        }
        if op == Op::MpiClose && (last.who != node.who || last.depth != depth) || last.who != Who::All && !is_of(last.who, last.depth) {
            return Err(format!("not all who make it have opened the file last; its opens differ in their communicator, so {CURE}"));
        }
        if op == Op::MpiClose {
            open.pop();
            self.by_depth.iter_mut().skip(depth).take(1).for_each(|open| *open -= 1);
        }
        Ok(())
    }
}
