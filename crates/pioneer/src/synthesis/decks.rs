//! What the arguments of requests are dealt from: sizes and slack by operation, offsets and shifts by session.

use stripewise_workpath::Op;
use stripewise_workpath::op::{Moves, OPS, Position};

use super::dealer::Dealer;
use super::distribution::{Deck, Distribution, Slack};
use super::frame::{Frame, Session, Streams};
use super::profile::{CLASSES, FileClass, Kind, Profile, ViewWeight};

use std::collections::BTreeMap;

/// Operations have numbers below this.
const NUMBERS: usize = 128;
/// Kinds of sessions of a class.
const KINDS: usize = 7;

/// Offsets in ascending order, dealt to sessions so that each gets a part of the whole range, in ascending order.
///
/// Ours, where the thesis draws them independently: programs walk through a file, and write each of its parts once.
#[derive(Clone, Debug, Default)]
pub struct Offsets {
    ascending: Vec<f64>,
    sessions: u64,
    next: u64,
}

/// A session's share of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    session: u64,
    count: u64,
    next: u64,
}

impl Offsets {
    fn of(distribution: &Distribution, count: u64, sessions: u64, random: &mut stripewise_chance::SplitMix64) -> Self {
        let mut ascending = if count == 0 { Vec::new() } else { distribution.ascending(count as usize, random) };
        ascending.sort_by(f64::total_cmp);
        Self { ascending, sessions: sessions.max(1), next: 0 }
    }

    /// The share of the next session, which needs `count`.
    pub fn share(&mut self, count: u64) -> Share {
        let session = self.next % self.sessions;
        self.next += u64::from(count > 0);
        Share { session, count, next: 0 }
    }

    /// The next offset of a session.
    pub fn draw(&self, share: &mut Share) -> Option<f64> {
        let all = self.ascending.len() as u128;
        let place = (u128::from(share.next) * all + u128::from(share.session) * all / u128::from(self.sessions)) / u128::from(share.count.max(1));
        share.next += 1;
        self.ascending.get((place as usize).min(self.ascending.len().saturating_sub(1))).copied()
    }
}

/// The decks of a kind of session.
#[derive(Clone, Debug, Default)]
pub struct KindDecks {
    sizes: Vec<Option<Deck>>,
    slack: Vec<Option<Deck>>,
    /// Of reads, of writes, of seeks; None: anywhere.
    pub offsets: Option<[Offsets; 3]>,
    /// Bytes per rank.
    pub shift: Option<Deck>,
    /// Views in turn.
    pub views: Option<Dealer<ViewWeight>>,
}

/// All decks.
#[derive(Clone, Debug)]
pub struct Decks {
    kinds: Vec<KindDecks>,
    outside: Vec<Vec<Option<Deck>>>,
}

/// Which of the three offsets an operation takes.
#[must_use]
pub fn stream_of(op: Op) -> usize {
    match op.facts().moves {
        Moves::Reads => 0,
        Moves::Writes => 1,
        Moves::Nothing => 2,
    }
}

/// Operations of a session: how many move bytes, and how many of these say where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// That move bytes of a place in the file.
    pub all: u64,
    /// That say where, by `stream_of`; seeks are the third.
    pub placed: [u64; 3],
}

impl Moved {
    /// Of a session's operations.
    #[must_use]
    pub fn of(ops: &[Op]) -> Self {
        let mut found = Self::default();
        for &op in ops {
            let facts = op.facts();
            if facts.moves != Moves::Nothing && facts.position != Position::Shared {
                found.all += 1;
            }
            if is_placed(op)
                && let Some(count) = found.placed.get_mut(stream_of(op))
            {
                *count += 1;
            }
        }
        found
    }

    /// Of those that move bytes and say where, how many are sequential, for this share (SEQ) of all: the others move on from the pointer anyway.
    #[must_use]
    pub fn sequential(&self, share: f64) -> u64 {
        let [reads, writes, _] = self.placed;
        let placed = reads + writes;
        ((share * self.all as f64).round() as u64).saturating_sub(self.all - placed).min(placed)
    }
}

/// Whether an operation says where it begins: those that move bytes, and seeks.
#[must_use]
pub fn is_placed(op: Op) -> bool {
    let facts = op.facts();
    matches!(op, Op::Seek | Op::MpiSeek) || (facts.moves != Moves::Nothing && matches!(facts.position, Position::Explicit | Position::Seek))
}

impl Decks {
    /// Decks of as many cards as a frame needs.
    #[must_use]
    pub fn of(profile: &Profile, frame: &Frame, streams: Streams) -> Self {
        let mut kinds = vec![KindDecks::default(); CLASSES.len() * KINDS];
        let mut outside = Vec::new();
        let mut sessions: Vec<Vec<&Session>> = vec![Vec::new(); CLASSES.len() * KINDS];
        for session in &frame.sessions {
            let class = frame.files.get(session.file as usize).map_or(0, |file| file.class as usize);
            if let Some(list) = sessions.get_mut(place(class, session.kind)) {
                list.push(session);
            }
        }
        for (class, (name, _)) in CLASSES.iter().enumerate() {
            let Some(of) = profile.classes.get(*name) else {
                outside.push(Vec::new());
                continue;
            };
            for &kind in of.sessions.keys() {
                let at = place(class, kind);
                if let (Some(decks), Some(sessions)) = (kinds.get_mut(at), sessions.get(at)) {
                    *decks = KindDecks::of(of, kind, class, frame, sessions, streams);
                }
            }
            outside.push(by_op(
                &of.outside_slack,
                |op| of.outside.get(op.name()).copied().unwrap_or(0.0) as usize,
                |slack, count, op| Deck::of_slack(slack, count, &mut streams.of(9, class, u64::from(op.number()))),
            ));
        }
        Self { kinds, outside }
    }

    /// Of a kind of session.
    pub fn kind(&mut self, class: usize, kind: Kind) -> Option<&mut KindDecks> {
        self.kinds.get_mut(place(class, kind))
    }

    /// Slack of an operation outside sessions in seconds.
    pub fn outside_slack(&mut self, class: usize, op: Op) -> f64 {
        self.outside.get_mut(class).and_then(|decks| decks.get_mut(usize::from(op.number()))).and_then(Option::as_mut).map_or(0.0, Deck::draw)
    }
}

fn place(class: usize, kind: Kind) -> usize {
    class * KINDS + kind as usize
}

fn by_op<T>(given: &BTreeMap<String, T>, count: impl Fn(Op) -> usize, deck: impl Fn(&T, usize, Op) -> Deck) -> Vec<Option<Deck>> {
    let mut found = vec![None; NUMBERS];
    for &op in OPS {
        if let (Some(of), Some(cell)) = (given.get(op.name()), found.get_mut(usize::from(op.number()))) {
            *cell = Some(deck(of, count(op), op));
        }
    }
    found
}

impl KindDecks {
    fn of(class: &FileClass, kind: Kind, number: usize, frame: &Frame, sessions: &[&Session], streams: Streams) -> Self {
        let Some(of) = class.sessions.get(&kind) else { return Self::default() };
        let mut counts = [0usize; NUMBERS];
        let mut placed = [0u64; 3];
        let mut with = [0u64; 3];
        let mut shifts = 0;
        for session in sessions {
            let first = session.first as usize;
            let ops = frame.ops.get(first..first + session.requests as usize).unwrap_or_default();
            for op in ops {
                if let Some(count) = counts.get_mut(usize::from(op.number())) {
                    *count += 1;
                }
            }
            let needs = needed(ops, session.sequential);
            shifts += needs.iter().sum::<u64>() as usize + 1;
            for ((all, with), need) in placed.iter_mut().zip(&mut with).zip(needs) {
                *all += need;
                *with += u64::from(need > 0);
            }
        }
        let count = |op: Op| counts.get(usize::from(op.number())).copied().unwrap_or(0);
        // Open and close have one name each in a profile, whatever the interface.
        let mut slack: BTreeMap<String, Slack> = of.slack.clone();
        for (name, op) in [("open", kind.open()), ("close", kind.close())] {
            if let Some(of) = of.slack.get(name) {
                slack.insert(op.name().to_owned(), of.clone());
            }
        }
        let stream = |purpose: u64, op: u64| streams.of(purpose, number, (kind as u64) << 8 | op);
        let offsets = |at: usize, of: &Distribution| {
            let (all, with) = (placed.get(at).copied().unwrap_or(0), with.get(at).copied().unwrap_or(0));
            Offsets::of(of, all, with, &mut stream(12, at as u64))
        };
        Self {
            sizes: by_op(&of.size, count, |size, count, op| Deck::of(size, count, &mut stream(10, u64::from(op.number())))),
            slack: by_op(&slack, count, |slack, count, op| Deck::of_slack(slack, count, &mut stream(11, u64::from(op.number())))),
            offsets: of.offset.as_ref().map(|of| [offsets(0, of), offsets(1, of), offsets(2, of)]),
            views: Some(Dealer::of(of.views.iter().filter(|view| view.piece > 0).map(|&view| (view, view.weight)))),
            shift: Some(Deck::of(&of.shift, shifts, &mut stream(13, 0))),
        }
    }

    /// Bytes of an operation; 0 where nothing tells.
    pub fn size(&mut self, op: Op) -> u64 {
        self.sizes.get_mut(usize::from(op.number())).and_then(Option::as_mut).map_or(0, |deck| deck.whole(0))
    }

    /// Slack before an operation in seconds.
    pub fn slack(&mut self, op: Op) -> f64 {
        self.slack.get_mut(usize::from(op.number())).and_then(Option::as_mut).map_or(0.0, Deck::draw)
    }
}

/// How many offsets a session needs, by `stream_of`: of those that say where the ones that are not sequential.
#[must_use]
pub fn needed(ops: &[Op], sequential: f64) -> [u64; 3] {
    let moved = Moved::of(ops);
    let [reads, writes, seeks] = moved.placed;
    let mut turn = Turn { sequential: moved.sequential(sequential), placed: reads + writes, passed: 0 };
    if turn.sequential == turn.placed {
        return [0, 0, seeks];
    }
    let mut found = [0, 0, seeks];
    for &op in ops.iter().filter(|&&op| is_placed(op) && op.facts().moves != Moves::Nothing) {
        if !turn.is_sequential()
            && let Some(count) = found.get_mut(stream_of(op))
        {
            *count += 1;
        }
    }
    found
}

/// Which of a session's operations that say where are sequential: evenly spread ones, the first among them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn {
    /// How many are.
    pub sequential: u64,
    /// Of how many.
    pub placed: u64,
    /// How many have been.
    pub passed: u64,
}

impl Turn {
    /// Whether the next one is.
    pub fn is_sequential(&mut self) -> bool {
        let up_to = |count: u64| (u128::from(count) * u128::from(self.sequential)).div_ceil(u128::from(self.placed.max(1)));
        let found = up_to(self.passed + 1) > up_to(self.passed);
        self.passed += 1;
        found
    }
}
