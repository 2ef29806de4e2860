//! From a path to the requests of one rank: what the player makes, without its calls.

use crate::draw::{draw, seed_of};
use crate::node::{APART, Node, TOGETHER, TOGETHER_REST};
use crate::op::{Op, Position};
use crate::path::Path;
use crate::ranks::takes_part;

/// A request of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub op: Op,
    pub file: u32,
    /// Byte of the file; -1 where the operation has no place of its own.
    pub offset: i64,
    pub size: u64,
    pub slack_ns: u64,
    /// All ranks wait for each other before the slack.
    pub together: bool,
    pub comm: u16,
    /// Place of the node.
    pub node: u32,
}

/// A loop that is under way.
struct Open {
    first: usize,
    end: usize,
    rounds: u64,
    round: u64,
    /// Where its body begins, bytes.
    base: i64,
    /// Rounds of this and the outer loops, counted through.
    counted: u64,
    /// The number of rounds before this loop's, of the outer ones.
    before: u64,
    /// Requests that were made before it.
    made: u64,
}

/// The requests of a rank, one after the other.
pub struct Requests<'a, 'b> {
    path: &'b Path<'a>,
    rank: u32,
    processes: u32,
    open: Vec<Open>,
    at: usize,
    made: u64,
}

impl<'a> Path<'a> {
    /// The requests that `rank` of `processes` makes; none for a rank that there is not.
    #[must_use]
    pub fn requests(&self, rank: u32, processes: u32) -> Requests<'a, '_> {
        let at = if rank < processes { 0 } else { self.len() };
        Requests { path: self, rank, processes, open: Vec::new(), at, made: 0 }
    }

    /// Number of requests of a rank: by multiplication, loops are not expanded. Saturates.
    #[must_use]
    pub fn count(&self, rank: u32, processes: u32) -> u64 {
        let mut sums: Vec<(usize, u64, u64)> = Vec::new();
        let mut total = 0u64;
        let mut at = 0;
        loop {
            while let Some((_, rounds, sum)) = sums.pop_if(|(end, ..)| *end == at) {
                let product = sum.saturating_mul(rounds);
                let outer = sums.last_mut().map_or(&mut total, |(.., outer)| outer);
                *outer = outer.saturating_add(product);
            }
            let Some(node) = self.node(at) else { return total };
            let takes_part = takes_part(&self.tables, node.who, rank, processes);
            match (node.op, takes_part) {
                (None, true) => {
                    sums.push((at + 1 + node.link as usize, numbers(self, &node, rank).2, 0));
                    at += 1;
                }
                (None, false) => at += 1 + node.link as usize,
                (Some(_), _) => {
                    let outer = sums.last_mut().map_or(&mut total, |(.., outer)| outer);
                    *outer = outer.saturating_add(u64::from(takes_part));
                    at += 1;
                }
            }
        }
    }
}

/// Place, stride and size of a node for a rank.
pub(crate) fn numbers(path: &Path<'_>, node: &Node, rank: u32) -> (i64, i64, u64) {
    let own = (node.table as usize).checked_sub(1).and_then(|entry| path.tables.numbers.get(entry)).and_then(|all| all.get(rank as usize));
    match own {
        Some(own) => (own.at, own.stride, own.size),
        None => (node.at.wrapping_add(node.at_rank.wrapping_mul(i64::from(rank))), node.stride, node.size),
    }
}

impl Iterator for Requests<'_, '_> {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        loop {
            while let Some(inner) = self.open.last_mut().filter(|inner| inner.end == self.at) {
                inner.round += 1;
                // A body without a request for this rank has none in any round.
                if inner.round < inner.rounds && inner.made < self.made {
                    inner.counted = inner.before.wrapping_add(inner.round);
                    self.at = inner.first;
                } else {
                    self.open.pop();
                }
            }
            let index = self.at;
            let node = self.path.node(index)?;
            let takes_part = takes_part(&self.path.tables, node.who, self.rank, self.processes);
            let (at, stride, size) = numbers(self.path, &node, self.rank);
            let (base, round, counted) = self.open.last().map_or((0, 0, 0), |inner| (inner.base, inner.round, inner.counted));
            let place = base.wrapping_add(at).wrapping_add(stride.wrapping_mul(round as i64));
            self.at += 1;
            match node.op {
                None if takes_part && size > 0 => {
                    let before = counted.wrapping_mul(size);
                    let end = self.at + node.link as usize;
                    self.open.push(Open { first: self.at, end, rounds: size, round: 0, base: place, counted: before, before, made: self.made });
                }
                None => self.at += node.link as usize,
                Some(_) if !takes_part => (),
                Some(op) => {
                    let offset = match op.facts().position {
                        Position::None => -1,
                        _ => place,
                    };
                    self.made += 1;
                    let slack_ns = self.slack_ns(&node, index, round, counted);
                    let together = node.flags & if round == 0 { TOGETHER } else { TOGETHER_REST } != 0;
                    return Some(Request { op, file: node.link, offset, size, slack_ns, together, comm: node.comm, node: index as u32 });
                }
            }
        }
    }
}

impl Requests<'_, '_> {
    fn slack_ns(&self, node: &Node, index: usize, round: u64, counted: u64) -> u64 {
        let entry = if round == 0 { node.slack_first } else { node.slack_rest };
        let drawn = (entry as usize).checked_sub(1).and_then(|entry| self.path.tables.distributions.get(entry));
        let shared = self.path.tables.seed;
        let seed = if node.flags & APART == 0 { shared } else { seed_of(shared, self.rank) };
        drawn.map_or(node.slack_ns, |distribution| draw(distribution, seed, index as u64, counted))
    }
}
