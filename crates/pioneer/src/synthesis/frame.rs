//! The frame of open sessions (thesis, section 2.6.4, algorithm 1): files of each class, sessions of each file, and the sequence ids of all requests in them.

use std::collections::BTreeMap;

use stripewise_chance::SplitMix64;
use stripewise_workpath::{Class, Comm, Who};

use super::dealer::Dealer;
use super::distribution::{Deck, Distribution, shuffle};
use super::ids::Ids;
use super::parts::Parts;
use super::profile::{CLASSES, FileClass, Kind, Opening, Profile};
use super::walk::Walks;
use super::who::{Act, who_of};

/// A path has at most so many requests: some 10 GB while it is made.
pub const REQUESTS_MAX: u64 = 1 << 27;
/// And so many files.
const FILES_MAX: u64 = 1 << 24;
/// What is kept of each session or file for each part of the ranks is kept so often: some 10 GB.
const STATES_MAX: u64 = REQUESTS_MAX / 2;

/// A file of the path.
#[derive(Clone, Debug)]
pub struct FrameFile {
    pub class: Class,
    /// Number in its class.
    pub number: u32,
    /// Bytes at most; None: no limit.
    pub size: Option<u64>,
    /// Numbers of its sessions: the first, and one past the last.
    pub sessions: (u32, u32),
}

#[derive(Clone, Debug)]
pub struct Session {
    /// File that is opened.
    pub file: u32,
    /// How.
    pub kind: Kind,
    /// Who opens it.
    pub who: Who,
    /// Its operations in `Frame::ops`: the open, those between, the close.
    pub first: u32,
    /// How many these are.
    pub requests: u32,
    /// Its communicator: number in `Frame::comms`.
    pub comm: u16,
}

impl Session {
    /// Its kind, and who opens it.
    #[must_use]
    pub const fn opening(&self) -> Opening {
        Opening { kind: self.kind, who: self.who }
    }
}

/// All sessions, and the order of their requests.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Files, class by class.
    pub files: Vec<FrameFile>,
    /// Sessions, file by file.
    pub sessions: Vec<Session>,
    /// Operations, session by session.
    pub ops: Vec<Act>,
    /// Which ranks do alike.
    pub parts: Parts,
    /// Shares of data operations that are sequential, stream by stream of each session.
    pub sequential: Vec<f64>,
    /// Sequence id of each operation.
    pub ids: Vec<u64>,
    /// Communicators: the world's, each rank's own, others.
    pub comms: Vec<Comm>,
}

/// Number of the communicator of all ranks in `Frame::comms`.
pub const WORLD: u16 = 0;
/// Number of each rank's own.
pub const OWN: u16 = 1;

/// The streams of a seed, one for each purpose.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// Those of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The stream of a purpose, for a class and a kind and operation in it: what is drawn for one purpose leaves the others alone.
    #[must_use]
    pub const fn of(self, purpose: u64, class: usize, number: u64) -> SplitMix64 {
        SplitMix64::new(self.seed, purpose << 32 | (class as u64) << 16 | number)
    }
}

/// The frame that a profile's characteristics give. Fails with a sentence where it would be too long.
pub fn frame(profile: &Profile, parts: Parts, streams: Streams) -> Result<Frame, String> {
    let mut frame = Frame { comms: vec![Comm::World, Comm::Own], parts, ..Frame::default() };
    let mut ids = Ids::default();
    for (number, (name, class)) in CLASSES.iter().enumerate() {
        if let Some(of) = profile.classes.get(*name) {
            frame.add(of, *class, number, streams)?;
            frame.number(of, *class, number, streams, &mut ids);
        }
    }
    Ok(frame)
}

impl Frame {
    /// The operations of a session, and of each stream the share of its data operations that are sequential.
    #[must_use]
    pub fn ops_of(&self, number: u32) -> (&[Act], &[f64]) {
        let Some(session) = self.sessions.get(number as usize) else { return (&[], &[]) };
        let (first, all) = (session.first as usize, self.parts.streams());
        let ops = self.ops.get(first..first + session.requests as usize).unwrap_or_default();
        let begin = number as usize * all;
        (ops, self.sequential.get(begin..begin + all).unwrap_or_default())
    }

    /// Files that a path has at most.
    #[must_use]
    pub fn files_max(&self) -> u64 {
        FILES_MAX.min(STATES_MAX / self.parts.count() as u64)
    }

    /// What helps against too many files or sessions.
    #[must_use]
    pub fn cure(&self) -> String {
        match self.parts.groups.len() {
            0 => "; scale files down".to_owned(),
            groups => format!(" with marks of {groups} group(s); scale files down, or mark fewer groups"),
        }
    }

    /// Adds files and sessions of a class, and their operations.
    fn add(&mut self, of: &FileClass, class: Class, number: usize, streams: Streams) -> Result<(), String> {
        let files_max = self.files_max();
        if self.files.len() as u64 + u64::from(of.files) > files_max {
            return Err(format!("more than {files_max} files (OS){}", self.cure()));
        }
        let first_file = self.files.len() as u32;
        let first_session = self.sessions.len();
        self.open(of, class, number, streams)?;
        let mut kinds: BTreeMap<Opening, usize> = BTreeMap::new();
        for session in self.sessions.iter().skip(first_session) {
            *kinds.entry(session.opening()).or_default() += 1;
        }
        let mut planned: BTreeMap<Opening, Planned> = BTreeMap::new();
        for (opening, count) in kinds {
            planned.insert(opening, Planned::of(of, class, opening, count, number, streams, self));
        }
        for session in self.sessions.iter_mut().skip(first_session) {
            let Some(plan) = planned.get_mut(&session.opening()) else { continue };
            let requests = plan.duration.whole(1);
            if self.ops.len() as u64 + requests + 2 > REQUESTS_MAX {
                return Err(format!("more than {REQUESTS_MAX} requests; scale requests or files down, or give shorter sessions (D, OT)"));
            }
            session.first = self.ops.len() as u32;
            session.requests = requests as u32 + 1;
            self.sequential.extend(plan.sequential.iter_mut().map(|deck| deck.draw().clamp(0.0, 1.0)));
            session.comm = plan.comm.deal().filter(|_| class == Class::Shared && session.who == Who::All).unwrap_or(OWN);
            self.ops.push(Act { op: session.kind.open(), who: Who::All });
            plan.walks.walk(requests as usize - 1, &mut self.ops);
            self.ops.push(Act { op: session.kind.close(), who: Who::All });
        }
        self.size(of, first_file as usize, number, streams);
        Ok(())
    }

    fn open(&mut self, of: &FileClass, class: Class, number: usize, streams: Streams) -> Result<(), String> {
        let known = |counts: &BTreeMap<Opening, f64>| -> Vec<(Opening, f64)> {
            counts.iter().filter(|(opening, _)| of.sessions.contains_key(opening)).map(|(&opening, &count)| (opening, count)).collect()
        };
        let mut first = Dealer::of(known(&of.access.first));
        if first.is_empty() {
            first = Dealer::of(of.sessions.keys().map(|&opening| (opening, 1.0)));
        }
        let mut next: BTreeMap<Opening, Dealer<Opening>> =
            of.sessions.keys().map(|&opening| (opening, Dealer::of(of.access.next.get(&opening).map(known).unwrap_or_default()))).collect();
        let sessions_max = STATES_MAX / self.parts.streams() as u64;
        let mut times = Deck::of(&of.open_times, of.files as usize, &mut streams.of(1, number, 0));
        for file in 0..of.files {
            let at = self.files.len() as u32;
            let begin = self.sessions.len();
            let count = if of.sessions.is_empty() { 0 } else { times.whole(0) };
            if begin as u64 + count > sessions_max {
                return Err(format!("more than {sessions_max} sessions (OS, OT){}", self.cure()));
            }
            let mut before: Option<Opening> = None;
            for _ in 0..count {
                let dealt = before.and_then(|opening| next.get_mut(&opening)).and_then(Dealer::deal);
                let Some(mut opening) = dealt.or_else(|| first.deal()) else { break };
                // What is a directory stays one.
                if let Some(before) = before
                    && (opening.kind == Kind::PosixDirectory) != (before.kind == Kind::PosixDirectory)
                {
                    opening = before;
                }
                let Opening { kind, who } = opening;
                self.sessions.push(Session { file: at, kind, who, first: 0, requests: 0, comm: OWN });
                before = Some(opening);
            }
            self.files.push(FrameFile { class, number: file, size: None, sessions: (begin as u32, self.sessions.len() as u32) });
        }
        Ok(())
    }

    /// Deals sizes (FS): those with more requests get more.
    fn size(&mut self, of: &FileClass, first: usize, number: usize, streams: Streams) {
        let Some(sizes) = &of.file_size else { return };
        let requests: Vec<u64> = self.files.iter().skip(first).map(|file| self.requests_of(file)).collect();
        let mut random = streams.of(2, number, 0);
        let mut deck = Deck::of(sizes, requests.len(), &mut random);
        let mut dealt: Vec<u64> = requests.iter().map(|_| deck.whole(0)).collect();
        dealt.sort_unstable();
        let mut order: Vec<usize> = (0..requests.len()).collect();
        // Of files with as many requests, chance decides.
        shuffle(&mut order, &mut random);
        order.sort_by_key(|&file| requests.get(file).copied());
        for (file, size) in order.into_iter().zip(dealt) {
            if let Some(file) = self.files.get_mut(first + file) {
                file.size = Some(size);
            }
        }
    }

    fn requests_of(&self, file: &FrameFile) -> u64 {
        let (begin, end) = (file.sessions.0 as usize, file.sessions.1 as usize);
        self.sessions.get(begin..end).unwrap_or_default().iter().map(|session| u64::from(session.requests)).sum()
    }

    /// Gives the requests of a class their ids: an open ISG after the close before it, from id 0 for the first; each other one IRG after the one before.
    fn number(&mut self, of: &FileClass, class: Class, number: usize, streams: Streams, ids: &mut Ids) {
        let files: Vec<&FrameFile> = self.files.iter().filter(|file| file.class == class).collect();
        let (begin, end) = match (files.first(), files.last()) {
            (Some(first), Some(last)) => (first.sessions.0 as usize, last.sessions.1 as usize),
            _ => return,
        };
        let sessions = self.sessions.get(begin..end).unwrap_or_default();
        let mut gaps = Deck::of(&of.session_gap, sessions.len(), &mut streams.of(3, number, 0));
        let mut inner: BTreeMap<Opening, Deck> = BTreeMap::new();
        for (place, (&opening, described)) in of.sessions.iter().enumerate() {
            let count = sessions.iter().filter(|session| session.opening() == opening).map(|session| session.requests as usize - 1).sum();
            inner.insert(opening, Deck::of(&described.request_gap, count, &mut streams.of(4, number, place as u64)));
        }
        let mut close = 0;
        let mut file = None;
        for session in sessions {
            if file != Some(session.file) {
                (file, close) = (Some(session.file), 0);
            }
            let mut id = ids.take(close + gaps.whole(1));
            self.ids.push(id);
            let Some(deck) = inner.get_mut(&session.opening()) else { continue };
            for _ in 1..session.requests {
                id = ids.take(id + deck.whole(1));
                self.ids.push(id);
            }
            close = id;
        }
    }
}

/// What sessions of a kind are dealt from.
struct Planned {
    duration: Deck,
    /// Of each stream.
    sequential: Vec<Deck>,
    comm: Dealer<u16>,
    walks: Walks,
}

impl Planned {
    fn of(of: &FileClass, class: Class, opening: Opening, count: usize, number: usize, streams: Streams, frame: &mut Frame) -> Self {
        let place = of.sessions.keys().position(|&other| other == opening).unwrap_or_default() as u64;
        let described = of.sessions.get(&opening);
        let deck = |purpose: u64, distribution: Option<&Distribution>| {
            Deck::of(distribution.unwrap_or(&Distribution::constant(1.0)), count, &mut streams.of(purpose, number, place))
        };
        let comms = &mut frame.comms;
        let mut dealt: Vec<(u16, f64)> = Vec::new();
        for (name, &weight) in described.iter().flat_map(|each| &each.communicators) {
            if let Some(comm) = comm_named(name) {
                let number = comms.iter().position(|&each| each == comm).unwrap_or_else(|| {
                    comms.push(comm);
                    comms.len() - 1
                });
                dealt.push((number as u16, weight));
            }
        }
        if dealt.is_empty() {
            dealt.push((if class == Class::Shared { WORLD } else { OWN }, 1.0));
        }
        let walks = Walks::of(opening, &described.map(|each| each.following.clone()).unwrap_or_default());
        let mut duration = deck(5, described.map(|each| &each.duration));
        if walks.differ() {
            duration = Deck::as_given(walks.matched((0..count).map(|_| duration.whole(1) as f64).collect()));
        }
        Self {
            duration,
            sequential: (0..frame.parts.streams()).map(|stream| deck(6, described.map(|each| each.sequential_of(who_of(stream))))).collect(),
            comm: Dealer::of(dealt),
            walks,
        }
    }
}

/// `world`, `self`, `blocks-4`, `congruent-4`.
fn comm_named(name: &str) -> Option<Comm> {
    let count = |text: &str| text.parse().ok().filter(|&count: &u32| count > 0);
    match name {
        "world" => Some(Comm::World),
        "self" => Some(Comm::Own),
        _ => match name.split_once('-')? {
            ("blocks", ranks) => count(ranks).map(Comm::Blocks),
            ("congruent", by) => count(by).map(Comm::Congruent),
            _ => None,
        },
    }
}
