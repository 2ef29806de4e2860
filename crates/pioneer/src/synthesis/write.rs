//! A synthetic path as a file that the player plays: one node for each request.

use std::collections::HashSet;
use std::io::{self, Seek, Write};

use stripewise_workpath::node::{ALONE, APART, TOGETHER, mode};
use stripewise_workpath::{Class, File, Node, Op, PathWriter, Tables, Who, takes_part};

use super::Synthetic;
use super::arguments::{Request, ns};
use super::pauses::Pauses;
use super::profile::{CLASSES, Kind, Profile};

/// Names of all files, and what each must have before the run.
#[must_use]
pub fn files(profile: &Profile, made: &Synthetic) -> Vec<File> {
    let mut used: HashSet<String> = HashSet::new();
    let mut extra = 0;
    let of_class = |name: &str| profile.classes.get(name).map_or(&[][..], |of| &of.names);
    let above: HashSet<&str> = CLASSES.iter().flat_map(|(name, _)| of_class(name)).flat_map(|name| directories_above(name)).collect();
    let mut names: Vec<Names<'_>> = CLASSES.iter().map(|(name, _)| Names::of(of_class(name), &above)).collect();
    made.filled
        .files
        .iter()
        .map(|file| {
            let given = names.get_mut(file.class as usize).filter(|_| file.number.is_some());
            let given = given.and_then(|names| if file.directory { names.directories.next() } else { names.files.next() });
            let wanted = given.map_or_else(
                || {
                    let class = CLASSES.iter().find(|(_, class)| *class == file.class).map_or("", |(name, _)| name);
                    let what = if file.directory { "directory" } else { "file" };
                    let (other, number) = file.number.map_or(("other-", extra), |number| ("", number));
                    extra += u32::from(file.number.is_none());
                    format!("{class}.{other}{what}{number}")
                },
                str::to_owned,
            );
            File {
                class: file.class,
                name: unique(&wanted, file.class, &mut used),
                bytes: file.bytes,
                // Files below it may come before what makes it.
                present: file.present || (file.directory && above.contains(wanted.as_str())),
                directory: file.directory,
            }
        })
        .collect()
}

/// The names of the directories that a name lies in.
pub fn directories_above(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').filter_map(|(at, _)| name.get(..at))
}

/// The names of a class in a profile: those with others below them, of whatever class, are directories'.
struct Names<'a> {
    files: Box<dyn Iterator<Item = &'a str> + 'a>,
    directories: Box<dyn Iterator<Item = &'a str> + 'a>,
}

impl<'a> Names<'a> {
    fn of(names: &'a [String], above: &HashSet<&str>) -> Self {
        let (directories, files): (Vec<&str>, Vec<&str>) = names.iter().map(String::as_str).partition(|&name| above.contains(name));
        Self { files: Box::new(files.into_iter()), directories: Box::new(directories.into_iter()) }
    }
}

/// The name with the rank in it where each rank has its own, and a number behind it where another file has it.
fn unique(wanted: &str, class: Class, used: &mut HashSet<String>) -> String {
    let needs_rank = class == Class::Private && !wanted.contains("{rank}");
    let mut name = if needs_rank { format!("{wanted}.{{rank}}") } else { wanted.to_owned() };
    let mut number = 1;
    while used.contains(&name) {
        number += 1;
        name = if needs_rank { format!("{wanted}-{number}.{{rank}}") } else { format!("{wanted}-{number}") };
    }
    used.insert(name.clone());
    name
}

/// The node of a request; `kind` is that of its session.
#[must_use]
pub fn node(request: &Request, class: Class, kind: Option<Kind>) -> Node {
    let is_alone = request.op == Op::Opendir && request.session.is_none();
    Node {
        who: if class == Class::Root { Who::Root } else { request.who },
        flags: if is_alone { ALONE } else { 0 },
        comm: request.comm,
        view: request.view,
        at: request.offset as i64,
        at_rank: request.shift,
        size: match (request.op, request.other) {
            (Op::Open | Op::MpiOpen, _) => kind.map_or(0, opened),
            (_, Some(other)) => u64::from(other) + 1,
            _ => request.size,
        },
        slack_ns: request.slack_ns,
        ..Node::request(request.op, request.file)
    }
}

fn opened(kind: Kind) -> u64 {
    let reads = if kind.reads() { mode::READ } else { 0 };
    let writes = if kind.writes() { mode::WRITE | mode::CREATE } else { 0 };
    reads | writes
}

/// Writes the path. Fails as `out` does.
pub fn write<W: Write + Seek>(profile: &Profile, made: &Synthetic, seed: u64, out: W) -> io::Result<W> {
    let files = files(profile, made);
    let mut writer = PathWriter::new(out)?;
    let mut of_root = 0;
    let pauses = if profile.apart { Pauses::of(&made.filled.requests) } else { Pauses::default() };
    for request in &made.filled.requests {
        let class = files.get(request.file as usize).map_or(Class::Shared, |file| file.class);
        let kind = request.session.and_then(|session| made.frame.sessions.get(session as usize)).map(|session| session.kind);
        let mut node = node(request, class, kind);
        if let Some(drawn) = pauses.number(request) {
            (node.slack_first, node.slack_rest, node.flags) = (drawn, drawn, node.flags | APART);
        }
        let waits = profile.together.get(request.op.name()).is_some_and(|&from_s| request.slack_ns >= ns(from_s));
        if waits && node.who == Who::All {
            node.flags |= TOGETHER;
        }
        writer.node(&node)?;
        of_root += u64::from(takes_part(&Tables::default(), node.who, 0, made.frame.parts.ranks(Who::All) as u32));
    }
    let tables = Tables {
        seed,
        files,
        groups: made.frame.parts.groups.clone(),
        comms: made.frame.comms.clone(),
        views: made.filled.views.clone(),
        distributions: pauses.distributions,
        ..Tables::default()
    };
    writer.finish(&tables, of_root)
}
