//! Two paths in one: requests of some files by statistics, among those of others by symbolic patterns (ours).
//!
//! Statistics keep the sequence ids of the whole run, so the holes that they leave are the places of the patterns' requests; these fill them in their order,
//! beside the operations outside sessions ([`among`]). A loop of the patterns that nothing comes between stays one; else its rounds before and behind become
//! loops of their own, and the round in which something stands is unrolled ([`woven`]). No file is of both, so what holds in each path holds in their mixture.

use std::collections::HashSet;
use std::io::{Seek, Write};

use stripewise_workpath::node::{GROUPS_MAX, TOGETHER, TOGETHER_REST};
use stripewise_workpath::{Comm, DEPTH_MAX, File, Node, Op, Path, PathWriter, Tables, Who};

use super::frame::{Frame, Streams};
use super::holes::{Place, outside};
use super::profile::Profile;
use super::write::directories_above;

/// Requests of patterns, at most: beyond, no number of a path holds them.
const PATTERNS_MAX: u64 = 1 << 48;

/// The order of all operations of statistics, and before each how many requests of the patterns come.
///
/// `sequence` is the length of the traced run's sequence, `patterns` are the requests to put in: holes up to the sequence's end are filled evenly, so that
/// patterns which have grown with the processes are spread over the run as they were.
pub fn among(profile: &Profile, frame: &Frame, streams: Streams, sequence: u64, patterns: u64) -> (Vec<Place>, Vec<u64>) {
    let outside = outside(profile, &mut streams.of(7, 0, 0));
    let mut inside: Vec<(u64, u32)> = frame.ids.iter().copied().zip(0..).collect();
    inside.sort_unstable();
    let fillings = patterns + outside.len() as u64;
    let end = sequence.max(inside.last().map_or(0, |&(id, _)| id));
    let mut filled = Filled { outside: &outside, fillings, done: 0, order: Vec::with_capacity(inside.len() + outside.len()), before: Vec::new() };
    let holes = end.saturating_sub(inside.len() as u64);
    let share = |passed: u64| (u128::from(passed) * u128::from(fillings)).div_ceil(u128::from(holes.max(1))) as u64;
    for (count, &(id, number)) in (0..).zip(&inside) {
        filled.up_to(share(id.saturating_sub(1 + count)).min(fillings));
        filled.take(Place::Inside(number));
    }
    filled.up_to(fillings);
    (filled.order, filled.before)
}

/// Operations of statistics in their order, while holes are filled.
struct Filled<'a> {
    outside: &'a [Place],
    /// Requests of patterns and operations outside sessions.
    fillings: u64,
    /// How many of them are placed.
    done: u64,
    order: Vec<Place>,
    before: Vec<u64>,
}

impl Filled<'_> {
    /// How many of the first so many fillings are operations outside sessions: evenly spread ones.
    fn outside_of(&self, fillings: u64) -> u64 {
        (u128::from(fillings) * self.outside.len() as u128 / u128::from(self.fillings.max(1))) as u64
    }

    fn take(&mut self, place: Place) {
        self.before.push(self.done - self.outside_of(self.done));
        self.order.push(place);
    }

    /// Places all fillings up to this number.
    fn up_to(&mut self, fillings: u64) {
        let (first, end) = (self.outside_of(self.done), self.outside_of(fillings));
        for (number, &place) in (first..end).zip(self.outside.iter().skip(first as usize)) {
            // It is the last of the first fillings that have so many of its kind.
            let with = (u128::from(number + 1) * u128::from(self.fillings)).div_ceil(self.outside.len() as u128) as u64;
            self.before.push(with - (number + 1));
            self.order.push(place);
        }
        self.done = fillings;
    }
}

/// A request or a loop of the patterns.
struct Part {
    node: Node,
    body: Vec<Part>,
    /// Requests of a round up to each part of the body, itself included.
    ends: Vec<u64>,
}

impl Part {
    fn of(path: &Path<'_>, at: usize, depth: usize) -> Result<Self, String> {
        let node = path.node(at).filter(|_| depth <= DEPTH_MAX).ok_or("the patterns are no path")?;
        if node.op.is_none() && (node.who != Who::All || node.table != 0) {
            return Err("a loop of the patterns is of some ranks alone, and cannot be taken apart".to_owned());
        }
        let end = at + 1 + if node.op.is_none() { node.link as usize } else { 0 };
        Ok(Self::over(node, bodies(path, at + 1, end, depth + 1)?))
    }

    fn over(node: Node, body: Vec<Self>) -> Self {
        let mut sum = 0u64;
        let ends = body
            .iter()
            .map(|part| {
                sum = sum.saturating_add(part.requests());
                sum
            })
            .collect();
        Self { node, body, ends }
    }

    /// Requests of a round.
    fn round(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn requests(&self) -> u64 {
        if self.node.op.is_some() { 1 } else { self.node.size.saturating_mul(self.round()) }
    }

    /// Its requests from `from` up to `to`, as nodes; `node` is its own, moved to where it stands now.
    fn cut(&self, node: Node, from: u64, to: u64, out: &mut Vec<Node>) {
        if from >= to {
            return;
        }
        if self.node.op.is_some() || to - from == self.requests() {
            return self.rounds(node, 0, out);
        }
        let round = self.round();
        let mut at = from;
        while at < to {
            let (number, rest) = (at / round, to - at);
            if at.is_multiple_of(round) && rest / round > 1 {
                self.rounds(Node { size: rest / round, ..node }, number, out);
                at += rest - rest % round;
            } else {
                let end = to.min((number + 1) * round);
                self.unrolled(&node, number, at - number * round, end - number * round, out);
                at = end;
            }
        }
    }

    /// Whole rounds from the one of this number on, as a loop; a request as it is.
    fn rounds(&self, node: Node, number: u64, out: &mut Vec<Node>) {
        out.push(node);
        for part in &self.body {
            let moved = Node { at: part.node.at.wrapping_add(part.node.stride.wrapping_mul(number as i64)), ..later(part.node, number) };
            part.rounds(moved, 0, out);
        }
    }

    /// A part of one round, without its loop.
    fn unrolled(&self, node: &Node, number: u64, from: u64, to: u64, out: &mut Vec<Node>) {
        let first = self.ends.partition_point(|&end| end <= from);
        let mut begin = first.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        for (part, &end) in self.body.iter().zip(&self.ends).skip(first) {
            if begin >= to {
                break;
            }
            let at = node.at.wrapping_add(part.node.at).wrapping_add(part.node.stride.wrapping_mul(number as i64));
            let at_rank = node.at_rank.wrapping_add(part.node.at_rank);
            let moved = Node { at, at_rank, stride: 0, ..later(part.node, number) };
            part.cut(moved, from.max(begin) - begin, to.min(end) - begin, out);
            begin = end;
        }
    }
}

/// A request of a later round than the first has the slack of these, and is waited for as they are.
fn later(node: Node, number: u64) -> Node {
    if number == 0 || node.op.is_none() {
        return node;
    }
    let together = if node.flags & TOGETHER_REST == 0 { 0 } else { TOGETHER };
    Node { slack_first: node.slack_rest, flags: node.flags & !TOGETHER | together, ..node }
}

fn bodies(path: &Path<'_>, mut at: usize, end: usize, depth: usize) -> Result<Vec<Part>, String> {
    let mut found = Vec::new();
    while at < end {
        let part = Part::of(path, at, depth)?;
        at += 1 + if part.node.op.is_none() { part.node.link as usize } else { 0 };
        found.push(part);
    }
    Ok(found)
}

/// How many requests patterns have, whoever makes them. Fails with a sentence where they cannot be taken apart, or are too many.
pub fn requests(patterns: &Path<'_>) -> Result<u64, String> {
    let count = whole(patterns)?.round();
    if count > PATTERNS_MAX { Err(format!("the patterns have more than {PATTERNS_MAX} requests; give fewer processes")) } else { Ok(count) }
}

/// The patterns as one round of a loop.
fn whole(patterns: &Path<'_>) -> Result<Part, String> {
    Ok(Part::over(Node::rounds(1, 0), bodies(patterns, 0, patterns.len(), 0)?))
}

/// Writes the mixture for so many processes: before each node of `statistics` so many requests of `patterns` as `before` says, the others behind. Fails with a
/// sentence.
pub fn woven<W: Write + Seek>(patterns: &Path<'_>, statistics: &Path<'_>, processes: u32, before: &[u64], out: W) -> Result<W, String> {
    if before.len() != statistics.len() {
        return Err("statistics have another number of nodes than of requests".to_owned());
    }
    let (moved, tables) = (Moved::of(&patterns.tables), both(&patterns.tables, &statistics.tables)?);
    let whole = whole(patterns)?;
    let io = |e: std::io::Error| format!("the path cannot be written ({e})");
    let mut writer = PathWriter::new(out).map_err(io)?;
    let mut nodes = Vec::new();
    let mut done = 0;
    for (index, &count) in before.iter().enumerate() {
        nodes.clear();
        whole.unrolled(&whole.node, 0, done, count, &mut nodes);
        done = count;
        nodes.extend(statistics.node(index).map(|node| moved.node(node)));
        nodes.iter().try_for_each(|node| writer.node(node)).map_err(io)?;
    }
    nodes.clear();
    whole.unrolled(&whole.node, 0, done, whole.round(), &mut nodes);
    nodes.iter().try_for_each(|node| writer.node(node)).map_err(io)?;
    let of_root = patterns.count(0, processes).saturating_add(statistics.requests_of_root);
    writer.finish(&tables, of_root).map_err(io)
}

/// How far the numbers of statistics move in tables that those of the patterns begin.
struct Moved {
    files: u32,
    comms: u16,
    groups: u8,
    distributions: u32,
    views: u16,
    numbers: u32,
}

impl Moved {
    fn of(patterns: &Tables) -> Self {
        Self {
            files: patterns.files.len() as u32,
            comms: patterns.comms.len().max(1) as u16,
            groups: patterns.groups.len() as u8,
            distributions: patterns.distributions.len() as u32,
            views: patterns.views.len() as u16,
            numbers: patterns.numbers.len() as u32,
        }
    }

    fn node(&self, node: Node) -> Node {
        let from_one = |number: u32, by: u32| if number == 0 { 0 } else { number + by };
        let has_other = matches!(node.op, Some(Op::Rename | Op::Link | Op::Symlink));
        Node {
            link: if node.op.is_some() { node.link + self.files } else { node.link },
            comm: node.comm + self.comms,
            who: if let Who::Group(group) = node.who { Who::Group(group.saturating_add(self.groups)) } else { node.who },
            view: from_one(u32::from(node.view), u32::from(self.views)) as u16,
            table: from_one(node.table, self.numbers),
            size: if has_other && node.size > 0 { node.size + u64::from(self.files) } else { node.size },
            slack_first: from_one(node.slack_first, self.distributions),
            slack_rest: from_one(node.slack_rest, self.distributions),
            ..node
        }
    }
}

/// The tables of both, those of the patterns first.
fn both(patterns: &Tables, statistics: &Tables) -> Result<Tables, String> {
    fn joined<T: Clone>(what: &str, most: u64, first: &[T], then: &[T]) -> Result<Vec<T>, String> {
        let all = [first, then].concat();
        if all.len() as u64 > most { Err(format!("patterns and statistics together have more than {most} {what}")) } else { Ok(all) }
    }
    let own: &[Comm] = if patterns.comms.is_empty() { &[Comm::World] } else { &patterns.comms };
    Ok(Tables {
        processes: patterns.processes.max(statistics.processes),
        seed: statistics.seed,
        files: files(&patterns.files, &statistics.files),
        comms: joined("communicators", u64::from(u16::MAX), own, &statistics.comms)?,
        groups: joined("groups", u64::from(GROUPS_MAX), &patterns.groups, &statistics.groups)?,
        distributions: joined("distributions", u64::from(u32::MAX), &patterns.distributions, &statistics.distributions)?,
        views: joined("views", u64::from(u16::MAX) - 1, &patterns.views, &statistics.views)?,
        numbers: joined("numbers per rank", u64::from(u32::MAX), &patterns.numbers, &statistics.numbers)?,
    })
}

/// The files of both: those of statistics have other names where the patterns have theirs, and directories above others are there before the run.
fn files(patterns: &[File], statistics: &[File]) -> Vec<File> {
    let mut used: HashSet<String> = patterns.iter().map(|file| file.name.clone()).collect();
    let above_patterns: HashSet<&str> = patterns.iter().flat_map(|file| directories_above(&file.name)).collect();
    let above_statistics: HashSet<&str> = statistics.iter().flat_map(|file| directories_above(&file.name)).collect();
    let of_patterns = patterns.iter().map(|file| {
        let is_above = above_statistics.contains(file.name.as_str());
        File { present: file.present || is_above, directory: file.directory || is_above, ..file.clone() }
    });
    let mut found: Vec<File> = of_patterns.collect();
    for file in statistics {
        let is_above = above_patterns.contains(file.name.as_str());
        let mut name = file.name.clone();
        let mut number = 1;
        while used.contains(&name) || is_above && !file.directory && name == file.name {
            number += 1;
            name = format!("{}-{number}", file.name);
        }
        used.insert(name.clone());
        found.push(File { name, present: file.present || is_above && file.directory, ..file.clone() });
    }
    found
}
