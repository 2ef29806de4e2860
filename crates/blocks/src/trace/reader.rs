//! A trace file as a source: its format recognised, its device chosen, its clock begun at 0, its requests in order.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::lines::Lines;
use super::order::Order;
use super::recognise::recognised;
use super::{Format, Line, parse};
use crate::{BlockRequest, Error, Source};

/// Lines that a format is recognised by.
const LOOKED_AT: usize = 64;
/// Devices that are named in a message.
const NAMED_MAX: usize = 16;
/// Requests that wait at most: some 50 MB.
const WINDOW_MAX: usize = 1 << 20;

fn window_default() -> usize {
    4096
}

fn action_default() -> char {
    'Q'
}

/// Which requests of which file.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// The file; a pipe will do where it is read once.
    pub path: PathBuf,
    /// `None`: recognised by the first lines, if they fit one format only.
    #[serde(default)]
    pub format: Option<Format>,
    /// The device whose requests are taken, as the trace calls it: disk number (msr), ASU (spc), major,minor (blkparse), device
    /// number (the others). `None`: all, as if they were one disk.
    #[serde(default)]
    pub device: Option<String>,
    /// The action that is taken of a blkparse trace: Q or D, or another.
    #[serde(default = "action_default")]
    pub action: char,
    /// Requests within which an earlier one may come late.
    #[serde(default = "window_default")]
    pub window: usize,
}

impl TraceSpec {
    /// All requests of a file whose format its first lines tell.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        TraceSpec { path: path.to_owned(), format: None, device: None, action: action_default(), window: window_default() }
    }
}

/// A trace whose first lines have been read.
pub struct Opened {
    /// The format given or recognised.
    pub format: Format,
    /// Its requests; the first arrives at 0.
    pub requests: Source,
}

/// Opens a trace. Times count from the first request that is taken.
///
/// # Errors
/// A file that cannot be read, is of no known format or might be of several; later, from the source: a line that is wrong, a request that is later than
/// the window allows, and a trace without a single request to take.
pub fn open(spec: &TraceSpec) -> Result<Opened, Error> {
    read(Lines::open(&spec.path)?, spec)
}

/// Opens a trace whose lines are at hand.
pub(super) fn read(mut lines: Lines, spec: &TraceSpec) -> Result<Opened, Error> {
    if spec.window > WINDOW_MAX {
        return Err(Error::Invalid(format!("window = {} is more than {WINDOW_MAX} requests; sort the trace by time instead", spec.window)));
    }
    if !spec.action.is_ascii_uppercase() {
        return Err(Error::Invalid(format!("action = \"{}\" is none of blkparse; give Q or D", spec.action.escape_debug())));
    }
    let mut looked_at = VecDeque::new();
    while looked_at.len() < LOOKED_AT {
        match lines.next()? {
            Some((number, line)) if number == 1 && is_header(&line) => {}
            Some(line) => looked_at.push_back(line),
            None => break,
        }
    }
    let format = match spec.format {
        Some(format) => format,
        None => recognised(&lines, &looked_at, spec.action)?,
    };
    let reader = Reader {
        lines,
        looked_at,
        format,
        device: spec.device.clone(),
        action: spec.action,
        order: Order::new(spec.window),
        state: State::Before,
        begin_ns: 0,
        others: BTreeSet::new(),
    };
    Ok(Opened { format, requests: Box::new(reader) })
}

/// Some copies of MSR traces have the names of the columns in their first line.
fn is_header(line: &str) -> bool {
    line.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("timestamp"))
}

#[derive(PartialEq, Eq)]
enum State {
    /// No request has been taken.
    Before,
    Within,
    /// The lines are at their end.
    Emptying,
    Over,
}

struct Reader {
    lines: Lines,
    looked_at: VecDeque<(u64, String)>,
    format: Format,
    device: Option<String>,
    action: char,
    order: Order,
    state: State,
    /// The trace's clock at the first request.
    begin_ns: u64,
    /// Devices that were seen and not taken.
    others: BTreeSet<String>,
}

impl Reader {
    /// Fills the window; false at the end of the lines.
    fn fill(&mut self) -> Result<(), Error> {
        while self.state != State::Emptying && !self.order.is_full() {
            let next = match self.looked_at.pop_front() {
                Some(line) => Some(line),
                None => self.lines.next()?,
            };
            match next {
                Some((number, line)) => self.take(number, &line)?,
                None => self.end()?,
            }
        }
        Ok(())
    }

    fn take(&mut self, number: u64, line: &str) -> Result<(), Error> {
        let traced = match parse(self.format, line, self.action) {
            Ok(Line::Request(traced)) => traced,
            Ok(Line::Other) => return Ok(()),
            Ok(Line::End) => return self.end(),
            Err(wrong) => return Err(self.lines.error(number, &wrong.sentence())),
        };
        if self.device.as_ref().is_some_and(|device| device != traced.device) {
            if self.others.len() < NAMED_MAX && !self.others.contains(traced.device) {
                self.others.insert(traced.device.to_owned());
            }
            return Ok(());
        }
        self.state = State::Within;
        let request = BlockRequest { arrival_ns: traced.time_ns, lba: traced.lba, blocks: traced.blocks, write: traced.write };
        if self.order.take(request, number) {
            return Ok(());
        }
        Err(self
            .lines
            .error(number, "the time is before those of requests that were read long before; sort the trace by time, or give a larger window"))
    }

    fn end(&mut self) -> Result<(), Error> {
        if self.state == State::Before {
            return Err(self.lines.error_of_all(&match &self.device {
                None if self.format == Format::Blkparse => format!("has no read or write with action {}; choose another action", self.action),
                None => "has no requests".to_owned(),
                Some(device) if self.others.is_empty() => format!("has no requests of device \"{device}\" nor of another"),
                Some(device) => {
                    let others: Vec<&str> = self.others.iter().map(String::as_str).collect();
                    format!("has no requests of device \"{device}\"; it has those of {}", others.join(", "))
                }
            }));
        }
        self.state = State::Emptying;
        Ok(())
    }
}

impl Iterator for Reader {
    type Item = Result<BlockRequest, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Over {
            return None;
        }
        let is_first = self.state == State::Before;
        if let Err(error) = self.fill() {
            self.state = State::Over;
            return Some(Err(error));
        }
        let Some(request) = self.order.pop() else {
            self.state = State::Over;
            return None;
        };
        if is_first {
            self.begin_ns = request.arrival_ns;
        }
        Some(Ok(BlockRequest { arrival_ns: request.arrival_ns - self.begin_ns, ..request }))
    }
}
