//! Which operations a session has, and in which order: a walk over the operations that followed each other (RT1).
//!
//! Ours, beside the thesis's draws from the frequency of operations: the graph of what follows what falls into parts from which there is a way back (strongly
//! connected components) and steps between them, which a session takes once, as from its writes to its reads. A session gets a way through the parts, and
//! each part its share of the session's length. In a part an operation that follows itself does so in a run, as long as the profile's on average, before
//! another one follows, in its share. Longer sessions have longer parts and longer runs, not more of them.

use stripewise_workpath::Op;

use super::dealer::Dealer;
use super::profile::{Counts, Kind};

use std::collections::{BTreeMap, BTreeSet};

/// Operations have numbers below this.
const OPS: usize = 128;

/// Walks of the sessions of a kind.
#[derive(Clone, Debug)]
pub struct Walks {
    /// By operation what follows in the same part.
    within: BTreeMap<usize, Steps>,
    /// By operation that begins a visit of a part: how long one is in the profile.
    parts: Vec<Part>,
    part_of: [Option<u8>; OPS],
    first: Dealer<Op>,
    usual: Op,
}

/// What follows an operation in its part.
#[derive(Clone, Debug)]
struct Steps {
    /// Others than itself.
    others: Dealer<Op>,
    /// How often it follows itself before another one does; None: no other one does.
    run: Option<f64>,
    /// What is left of runs that were no whole number.
    carried: f64,
}

impl Steps {
    fn of(from: usize, edges: Vec<(Op, f64)>) -> Self {
        let (own, others): (Vec<_>, Vec<_>) = edges.into_iter().partition(|&(op, _)| index(op) == from);
        let total = |edges: &[(Op, f64)]| edges.iter().map(|each| each.1).sum::<f64>();
        let run = (!others.is_empty()).then(|| total(&own) / total(&others));
        Self { others: Dealer::of(others), run, carried: 0.5 }
    }

    /// How often it follows itself now, in a part that is so many times as long as the profile's.
    fn next_run(&mut self, times: f64) -> u64 {
        let Some(run) = self.run else { return u64::MAX };
        self.carried += run * times;
        let whole = self.carried.floor();
        self.carried -= whole;
        whole as u64
    }
}

#[derive(Clone, Debug)]
struct Part {
    /// Requests of one visit.
    length: f64,
    /// Where it goes after: None ends the session.
    exits: Dealer<Option<Op>>,
    /// All its operations, for where one is followed by none.
    all: Dealer<Op>,
}

impl Walks {
    /// The walks over what followed what in sessions of a kind; steps to operations that such a session cannot have are left out.
    pub fn of(kind: Kind, following: &BTreeMap<String, Counts>) -> Self {
        let mut edges: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for (from, after) in following {
            let from = if from.is_empty() { Some(0) } else { allowed(kind, from).map(index) };
            for (to, count) in after.iter().filter(|(_, count)| count.is_finite() && **count > 0.0) {
                if let (Some(from), Some(to)) = (from, allowed(kind, to)) {
                    *edges.entry((from, index(to))).or_default() += count;
                }
            }
        }
        Self::from_edges(kind, &edges)
    }

    fn from_edges(kind: Kind, edges: &BTreeMap<(usize, usize), f64>) -> Self {
        let reach = reachable(edges);
        let reaches = |from: usize, to: usize| reach.get(from).is_some_and(|set| set >> to & 1 == 1);
        let entered: BTreeMap<usize, f64> = edges.iter().fold(BTreeMap::new(), |mut found, (&(_, to), &count)| {
            *found.entry(to).or_default() += count;
            found
        });
        let mut part_of = [None; OPS];
        let mut members: Vec<Vec<usize>> = Vec::new();
        for &at in entered.keys() {
            let known = members.iter().position(|part| part.first().is_some_and(|&other| reaches(at, other) && reaches(other, at)));
            let part = known.unwrap_or(members.len());
            if known.is_none() {
                members.push(Vec::new());
            }
            if let (Some(list), Some(cell)) = (members.get_mut(part), part_of.get_mut(at)) {
                list.push(at);
                *cell = Some(part as u8);
            }
        }
        let part = |at: usize| part_of.get(at).copied().flatten();
        let steps = |wanted: &dyn Fn(usize, usize) -> bool| -> Vec<(usize, Op, f64)> {
            let kept = edges.iter().filter(|((from, to), _)| wanted(*from, *to));
            kept.filter_map(|(&(from, to), &count)| Some((from, op_of(to)?, count))).collect()
        };
        let mut within: BTreeMap<usize, Steps> = BTreeMap::new();
        for &from in entered.keys() {
            let after = steps(&|a, b| a == from && part(a) == part(b)).into_iter().map(|(_, op, count)| (op, count));
            within.insert(from, Steps::of(from, after.collect()));
        }
        let parts = members
            .iter()
            .map(|list| {
                let inside = |at: usize| list.contains(&at);
                let all: Vec<(Op, f64)> = list.iter().filter_map(|at| Some((op_of(*at)?, entered.get(at).copied()?))).collect();
                let visits: f64 = all.iter().map(|each| each.1).sum();
                let entries: f64 = steps(&|from, to| inside(to) && !inside(from)).iter().map(|each| each.2).sum();
                let mut exits: BTreeMap<Op, f64> = BTreeMap::new();
                for (_, op, count) in steps(&|from, to| inside(from) && !inside(to)) {
                    *exits.entry(op).or_default() += count;
                }
                let ended = (entries - exits.values().sum::<f64>()).max(0.0);
                let exits = exits.into_iter().map(|(op, count)| (Some(op), count)).chain([(None, ended)]);
                Part { length: if entries > 0.0 { visits / entries } else { 1.0 }, exits: Dealer::of(exits), all: Dealer::of(all) }
            })
            .collect();
        let first = Dealer::of(steps(&|from, _| from == 0).into_iter().map(|(_, op, count)| (op, count)));
        Self { within, parts, part_of, first, usual: kind.usual() }
    }

    /// Appends the operations of a session, `length` of them, open and close not counted.
    pub fn walk(&mut self, length: usize, out: &mut Vec<Op>) {
        if length == 0 {
            return;
        }
        let way = self.way();
        let expected: f64 = way.iter().map(|&(part, _)| self.length(part)).sum();
        let mut done = 0;
        let mut passed = 0.0;
        for (number, &(part, entry)) in way.iter().enumerate() {
            passed += self.length(part);
            let end = ((passed / expected * length as f64).round() as usize).clamp((done + 1).min(length), length);
            let end = if number + 1 == way.len() { length } else { end };
            self.visit(part, entry, end - done, out);
            done = end;
        }
        // Without any way.
        out.extend(std::iter::repeat_n(self.usual, length - done));
    }

    fn length(&self, part: usize) -> f64 {
        self.parts.get(part).map_or(1.0, |part| part.length)
    }

    /// Parts in the order of the session, each with the operation that it begins with. No part comes twice: there would be a way back.
    fn way(&mut self) -> Vec<(usize, Op)> {
        let mut way = Vec::new();
        let mut at = self.first.deal();
        while let Some(op) = at {
            let Some(part) = self.part_of.get(index(op)).copied().flatten() else { break };
            way.push((part as usize, op));
            at = self.parts.get_mut(part as usize).and_then(|part| part.exits.deal().flatten());
        }
        way
    }

    fn visit(&mut self, part: usize, entry: Op, length: usize, out: &mut Vec<Op>) {
        let times = length as f64 / self.length(part).max(1.0);
        let mut op = entry;
        let mut left = self.run_of(op, times);
        for step in 0..length {
            if step > 0 && left > 0 {
                left -= 1;
            } else if step > 0 {
                let next = self.within.get_mut(&index(op)).and_then(|steps| steps.others.deal());
                op = next.or_else(|| self.parts.get_mut(part).and_then(|part| part.all.deal())).unwrap_or(op);
                left = self.run_of(op, times);
            }
            out.push(op);
        }
    }

    fn run_of(&mut self, op: Op, times: f64) -> u64 {
        self.within.get_mut(&index(op)).map_or(0, |steps| steps.next_run(times))
    }
}

fn allowed(kind: Kind, name: &str) -> Option<Op> {
    Op::named(name).filter(|&op| kind.allows(op))
}

fn index(op: Op) -> usize {
    usize::from(op.number())
}

fn op_of(index: usize) -> Option<Op> {
    u8::try_from(index).ok().and_then(Op::of)
}

/// By operation the set of those that can come after it, at once or later, itself among them (Warshall 1962).
fn reachable(edges: &BTreeMap<(usize, usize), f64>) -> [u128; OPS] {
    let mut reach: [u128; OPS] = std::array::from_fn(|at| 1 << at);
    for &(from, to) in edges.keys() {
        if let Some(set) = reach.get_mut(from) {
            *set |= 1 << to;
        }
    }
    let over: BTreeSet<usize> = edges.keys().map(|&(from, _)| from).collect();
    for &middle in &over {
        let further = reach.get(middle).copied().unwrap_or(0);
        for &from in &over {
            if let Some(set) = reach.get_mut(from).filter(|set| **set >> middle & 1 == 1) {
                *set |= further;
            }
        }
    }
    reach
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(kind: Kind, json: &str, lengths: &[usize]) -> Vec<Vec<&'static str>> {
        let mut walks = Walks::of(kind, &serde_json::from_str(json).unwrap());
        lengths
            .iter()
            .map(|&length| {
                let mut ops = Vec::new();
                walks.walk(length, &mut ops);
                assert_eq!(ops.len(), length);
                ops.iter().map(|op| op.name()).collect()
            })
            .collect()
    }

    #[test]
    fn phases_of_a_session_keep_their_order_and_share_its_length() {
        let json =
            r#"{"": {"write0": 1}, "write0": {"write0": 99, "fsync": 1}, "fsync": {"read1": 1}, "read1": {"read0": 1}, "read0": {"read0": 98}}"#;
        for (length, each) in [(201, 100), (402, 200)] {
            let found = &walked(Kind::PosixReadWrite, json, &[length])[0];
            let writes = found.iter().take_while(|&&op| op == "write0").count();
            assert!(writes.abs_diff(each) <= 2, "{writes}");
            assert!(found[writes..writes + 3].contains(&"fsync") && found.last() == Some(&"read0"));
        }
    }

    #[test]
    fn runs_of_one_operation_in_a_part_are_as_long_as_the_profiles() {
        let json = r#"{"": {"mpi_view": 1}, "mpi_view": {"mpi_write_at": 1, "mpi_read_at": 1}, "mpi_write_at": {"mpi_write_at": 31, "mpi_sync": 1},
            "mpi_sync": {"mpi_view": 1}, "mpi_read_at": {"mpi_read_at": 31, "mpi_view": 1}}"#;
        let found = &walked(Kind::MpiReadWrite, json, &[67])[0];
        let count = |name: &str| found.iter().filter(|&&op| op == name).count();
        assert_eq!([count("mpi_view"), count("mpi_write_at"), count("mpi_sync"), count("mpi_read_at")], [2, 32, 1, 32], "{found:?}");
    }

    #[test]
    fn what_is_repeated_in_turn_is_repeated_in_turn() {
        let json = r#"{"": {"lock": 1}, "lock": {"write1": 4}, "write1": {"lock": 3}}"#;
        assert_eq!(walked(Kind::PosixWrite, json, &[6]), [["lock", "write1", "lock", "write1", "lock", "write1"]]);
    }

    #[test]
    fn sessions_of_unlike_ways_come_in_their_shares() {
        let json = r#"{"": {"write0": 3, "fstat": 1}, "write0": {"fsync": 3}}"#;
        let found = walked(Kind::PosixWrite, json, &[2, 2, 2, 1]);
        let flat: Vec<_> = found.concat();
        assert_eq!(flat.iter().filter(|&&op| op == "write0").count(), 3, "{found:?}");
        assert_eq!(flat.iter().filter(|&&op| op == "fstat").count(), 1, "{found:?}");
    }

    #[test]
    fn a_session_for_reading_writes_nothing() {
        let json = r#"{"": {"write0": 9}, "write0": {"write0": 99, "read0": 1}, "read0": {"ftruncate": 1}}"#;
        assert_eq!(walked(Kind::PosixRead, json, &[3]), [["read0", "read0", "read0"]]);
        assert_eq!(walked(Kind::MpiWrite, "{}", &[2]), [["mpi_write_at", "mpi_write_at"]]);
    }
}
