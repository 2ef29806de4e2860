//! Which operations a session has, and in which order: a walk over the operations that followed each other (RT1).
//!
//! Ours, beside the thesis's draws from the frequency of operations: the graph of what follows what falls into parts from which there is a way back (strongly
//! connected components) and steps between them, which a session takes once, as from its writes to its reads. A session gets a way through the parts, and
//! each part its share of the session's length; where not all ranks make all requests, longer sessions get longer ways, so that each rank makes its share. In
//! a part an operation that follows itself does so in a run, as long as the profile's on average, before
//! another one follows, in its share. Longer sessions have longer parts and longer runs, not more of them.

use stripewise_workpath::{Op, Who};

use super::dealer::Dealer;
use super::profile::{Counts, Opening};
use super::who::{Act, marked};

use std::collections::{BTreeMap, BTreeSet};

/// Walks of the sessions of a kind. Operations with who makes them have numbers, from 1 on; 0 is the open.
#[derive(Clone, Debug)]
pub struct Walks {
    acts: Vec<Act>,
    /// By operation what follows in the same part.
    within: BTreeMap<usize, Steps>,
    /// By operation that begins a visit of a part: how long one is in the profile.
    parts: Vec<Part>,
    part_of: Vec<Option<usize>>,
    first: Dealer<usize>,
    usual: Op,
}

/// What follows an operation in its part.
#[derive(Clone, Debug)]
struct Steps {
    /// Others than itself.
    others: Dealer<usize>,
    /// How often it follows itself before another one does; None: no other one does.
    run: Option<f64>,
    /// What is left of runs that were no whole number.
    carried: f64,
}

impl Steps {
    fn of(from: usize, edges: Vec<(usize, f64)>) -> Self {
        let (own, others): (Vec<_>, Vec<_>) = edges.into_iter().partition(|&(to, _)| to == from);
        let total = |edges: &[(usize, f64)]| edges.iter().map(|each| each.1).sum::<f64>();
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
    exits: Dealer<Option<usize>>,
    /// All its operations, for where one is followed by none.
    all: Dealer<usize>,
}

impl Walks {
    /// The walks over what followed what in sessions of a kind; steps to operations that such a session cannot have are left out.
    pub fn of(opening: Opening, following: &BTreeMap<String, Counts>) -> Self {
        let keys = following.iter().flat_map(|(from, after)| after.keys().chain([from]));
        let acts: Vec<Act> = keys.filter_map(|key| allowed(opening, key)).collect::<BTreeSet<Act>>().into_iter().collect();
        let number = |key: &str| acts.binary_search(&allowed(opening, key)?).ok().map(|at| at + 1);
        let mut edges: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for (from, after) in following {
            let from = if from.is_empty() { Some(0) } else { number(from) };
            for (to, count) in after.iter().filter(|(_, count)| count.is_finite() && **count > 0.0) {
                if let (Some(from), Some(to)) = (from, number(to)) {
                    *edges.entry((from, to)).or_default() += count;
                }
            }
        }
        Self::from_edges(opening.kind.usual(), acts, &edges)
    }

    fn from_edges(usual: Op, acts: Vec<Act>, edges: &BTreeMap<(usize, usize), f64>) -> Self {
        let reach = reachable(acts.len() + 1, edges);
        let reaches = |from: usize, to: usize| reach.get(from).and_then(|all| all.get(to)).copied().unwrap_or(false);
        let entered: BTreeMap<usize, f64> = edges.iter().fold(BTreeMap::new(), |mut found, (&(_, to), &count)| {
            *found.entry(to).or_default() += count;
            found
        });
        let mut part_of = vec![None; acts.len() + 1];
        let mut members: Vec<Vec<usize>> = Vec::new();
        for &at in entered.keys() {
            let known = members.iter().position(|part| part.first().is_some_and(|&other| reaches(at, other) && reaches(other, at)));
            let part = known.unwrap_or(members.len());
            if known.is_none() {
                members.push(Vec::new());
            }
            if let (Some(list), Some(cell)) = (members.get_mut(part), part_of.get_mut(at)) {
                list.push(at);
                *cell = Some(part);
            }
        }
        let part = |at: usize| part_of.get(at).copied().flatten();
        let steps = |wanted: &dyn Fn(usize, usize) -> bool| -> Vec<(usize, usize, f64)> {
            edges.iter().filter(|((from, to), _)| wanted(*from, *to)).map(|(&(from, to), &count)| (from, to, count)).collect()
        };
        let mut within: BTreeMap<usize, Steps> = BTreeMap::new();
        for &from in entered.keys() {
            let after = steps(&|a, b| a == from && part(a) == part(b)).into_iter().map(|(_, to, count)| (to, count));
            within.insert(from, Steps::of(from, after.collect()));
        }
        let parts = members
            .iter()
            .map(|list| {
                let inside = |at: usize| list.contains(&at);
                let all: Vec<(usize, f64)> = list.iter().filter_map(|at| Some((*at, entered.get(at).copied()?))).collect();
                let visits: f64 = all.iter().map(|each| each.1).sum();
                let entries: f64 = steps(&|from, to| inside(to) && !inside(from)).iter().map(|each| each.2).sum();
                let mut exits: BTreeMap<usize, f64> = BTreeMap::new();
                for (_, to, count) in steps(&|from, to| inside(from) && !inside(to)) {
                    *exits.entry(to).or_default() += count;
                }
                let ended = (entries - exits.values().sum::<f64>()).max(0.0);
                let exits = exits.into_iter().map(|(to, count)| (Some(to), count)).chain([(None, ended)]);
                Part { length: if entries > 0.0 { visits / entries } else { 1.0 }, exits: Dealer::of(exits), all: Dealer::of(all) }
            })
            .collect();
        let first = Dealer::of(steps(&|from, _| from == 0).into_iter().map(|(_, to, count)| (to, count)));
        Self { acts, within, parts, part_of, first, usual }
    }

    /// Appends the operations of a session, `length` of them, open and close not counted.
    pub fn walk(&mut self, length: usize, out: &mut Vec<Act>) {
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
        out.extend(std::iter::repeat_n(Act { op: self.usual, who: Who::All }, length - done));
    }

    /// Whether not all operations are of the same ranks: the way decides then who makes how many requests.
    pub fn differ(&self) -> bool {
        self.acts.windows(2).any(|pair| matches!(pair, [a, b] if a.who != b.who))
    }

    /// Durations (D) in an order for the sessions whose walks follow, in which sums over ways are to each other as in the profile: from the longest on, each
    /// goes to the ways that lack most on average. Among ways of one length the order stays.
    pub fn matched(&self, durations: Vec<f64>) -> Vec<f64> {
        let mut ahead = self.clone();
        let mut ways: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        // Without requests between open and close there is no way.
        let walked: Vec<usize> = (0..durations.len()).filter(|&at| between(&durations, at) > 0.0).collect();
        for &at in &walked {
            let expected: f64 = ahead.way().iter().map(|&(part, _)| self.length(part)).sum();
            ways.entry(expected.to_bits()).or_default().push(at);
        }
        let expected: f64 = ways.iter().map(|(&length, sessions)| f64::from_bits(length) * sessions.len() as f64).sum();
        let times = walked.iter().map(|&at| between(&durations, at)).sum::<f64>() / expected;
        let mut shares: Vec<Share> = ways
            .into_iter()
            .map(|(length, sessions)| Share { lacks: f64::from_bits(length) * times * sessions.len() as f64, sessions, dealt: Vec::new() })
            .collect();
        let mut order: BTreeSet<(u64, usize)> = shares.iter().enumerate().map(|(number, share)| (share.mean(), number)).collect();
        let mut longest = walked;
        longest.sort_by(|&a, &b| between(&durations, b).total_cmp(&between(&durations, a)));
        for at in longest {
            let Some((_, number)) = order.pop_last() else { break };
            let Some(share) = shares.get_mut(number) else { break };
            share.lacks -= between(&durations, at);
            share.dealt.push(at);
            if share.dealt.len() < share.sessions.len() {
                order.insert((share.mean(), number));
            }
        }
        let mut found = durations.clone();
        for share in &mut shares {
            share.dealt.sort_unstable();
            for (&session, &from) in share.sessions.iter().zip(&share.dealt) {
                if let (Some(cell), Some(&duration)) = (found.get_mut(session), durations.get(from)) {
                    *cell = duration;
                }
            }
        }
        found
    }

    fn length(&self, part: usize) -> f64 {
        self.parts.get(part).map_or(1.0, |part| part.length)
    }

    /// Parts in the order of the session, each with the operation that it begins with. No part comes twice: there would be a way back.
    fn way(&mut self) -> Vec<(usize, usize)> {
        let mut way = Vec::new();
        let mut at = self.first.deal();
        while let Some(number) = at {
            let Some(part) = self.part_of.get(number).copied().flatten() else { break };
            way.push((part, number));
            at = self.parts.get_mut(part).and_then(|part| part.exits.deal().flatten());
        }
        way
    }

    fn visit(&mut self, part: usize, entry: usize, length: usize, out: &mut Vec<Act>) {
        let times = length as f64 / self.length(part).max(1.0);
        let mut at = entry;
        let mut left = self.run_of(at, times);
        for step in 0..length {
            if step > 0 && left > 0 {
                left -= 1;
            } else if step > 0 {
                let next = self.within.get_mut(&at).and_then(|steps| steps.others.deal());
                at = next.or_else(|| self.parts.get_mut(part).and_then(|part| part.all.deal())).unwrap_or(at);
                left = self.run_of(at, times);
            }
            out.extend(self.acts.get(at - 1));
        }
    }

    fn run_of(&mut self, at: usize, times: f64) -> u64 {
        self.within.get_mut(&at).map_or(0, |steps| steps.next_run(times))
    }
}

/// What sessions with ways of one length get of all durations.
struct Share {
    /// Requests that are still theirs.
    lacks: f64,
    sessions: Vec<usize>,
    /// Draws that they have got.
    dealt: Vec<usize>,
}

impl Share {
    /// What each of those without a duration lacks, in bits that are in the order of the numbers.
    fn mean(&self) -> u64 {
        (self.lacks / (self.sessions.len() - self.dealt.len()) as f64).max(0.0).to_bits()
    }
}

/// Requests between open and close of a session.
fn between(durations: &[f64], at: usize) -> f64 {
    durations.get(at).map_or(0.0, |duration| (duration - 1.0).max(0.0))
}

/// The operation of a key, where such a session can have it. Collective calls are of all, and in what some open alone all is theirs.
fn allowed(opening: Opening, key: &str) -> Option<Act> {
    let (name, who) = marked(key)?;
    let op = Op::named(name).filter(|&op| opening.kind.allows(op))?;
    Some(Act { op, who: if op.facts().collective || opening.who != Who::All { Who::All } else { who } })
}

/// By number the set of those that can come after it, at once or later, itself among them (Warshall 1962).
fn reachable(count: usize, edges: &BTreeMap<(usize, usize), f64>) -> Vec<Vec<bool>> {
    let mut reach: Vec<Vec<bool>> = (0..count).map(|at| (0..count).map(|to| at == to || edges.contains_key(&(at, to))).collect()).collect();
    for middle in 0..count {
        let further = reach.get(middle).cloned().unwrap_or_default();
        for set in &mut reach {
            if set.get(middle).copied().unwrap_or(false) {
                set.iter_mut().zip(&further).for_each(|(cell, more)| *cell |= more);
            }
        }
    }
    reach
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthesis::profile::Kind;

    fn walked(kind: Kind, json: &str, lengths: &[usize]) -> Vec<Vec<&'static str>> {
        let mut walks = Walks::of(Opening { kind, who: Who::All }, &serde_json::from_str(json).unwrap());
        lengths
            .iter()
            .map(|&length| {
                let mut ops = Vec::new();
                walks.walk(length, &mut ops);
                assert_eq!(ops.len(), length);
                ops.iter().map(|act| act.op.name()).collect()
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

    #[test]
    fn what_some_make_has_followers_of_its_own_but_collective_calls_are_of_all() {
        let json = r#"{"": {"mpi_write_at@root": 1}, "mpi_write_at@root": {"mpi_write_at_all@others": 1}, "mpi_write_at_all@others": {"mpi_write_at": 1},
            "mpi_write_at": {"mpi_write_at": 2}}"#;
        let of = |who: Who| {
            let mut acts = Vec::new();
            Walks::of(Opening { kind: Kind::MpiWrite, who }, &serde_json::from_str(json).unwrap()).walk(5, &mut acts);
            assert_eq!(
                acts.iter().map(|act| act.op).collect::<Vec<_>>(),
                [Op::MpiWriteAt, Op::MpiWriteAtAll, Op::MpiWriteAt, Op::MpiWriteAt, Op::MpiWriteAt]
            );
            acts.iter().map(|act| act.who).collect::<Vec<_>>()
        };
        assert_eq!(of(Who::All), [Who::Root, Who::All, Who::All, Who::All, Who::All]);
    }
}
