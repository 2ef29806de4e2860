//! What the arguments of requests are dealt from: sizes and slack by operation, offsets and shifts by session.

use stripewise_workpath::Op;
use stripewise_workpath::op::{Moves, OPS, Position};

use super::dealer::Dealer;
use super::distribution::{Deck, Distribution, Slack};
use super::frame::{Frame, Streams};
use super::profile::{CLASSES, FileClass, Opening, Profile, ViewWeight};
use super::who::{Act, mark, stream, who_of};

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
    /// Of each stream those of reads, of writes, of seeks; None: anywhere.
    pub offsets: Vec<Option<[Offsets; 3]>>,
    /// Of each stream bytes per rank.
    pub shift: Vec<Deck>,
    /// Views in turn.
    pub views: Option<Dealer<ViewWeight>>,
}

/// All decks.
#[derive(Clone, Debug)]
pub struct Decks {
    kinds: Vec<KindDecks>,
    outside: Vec<Vec<Option<Deck>>>,
    streams: usize,
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
    /// Of a session's operations, those of a stream.
    #[must_use]
    pub fn of(ops: &[Act], number: usize) -> Self {
        let mut found = Self::default();
        for &Act { op, .. } in ops.iter().filter(|act| stream(act.who) == number) {
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
        let all = frame.parts.streams();
        let mut kinds = vec![KindDecks::default(); CLASSES.len() * KINDS * all];
        let mut outside = Vec::new();
        let mut sessions: Vec<Vec<u32>> = vec![Vec::new(); CLASSES.len() * KINDS * all];
        for (number, session) in frame.sessions.iter().enumerate() {
            let class = frame.files.get(session.file as usize).map_or(0, |file| file.class as usize);
            if let Some(list) = sessions.get_mut(place(all, class, session.opening())) {
                list.push(number as u32);
            }
        }
        for (class, (name, _)) in CLASSES.iter().enumerate() {
            let Some(of) = profile.classes.get(*name) else {
                outside.push(Vec::new());
                continue;
            };
            for &opening in of.sessions.keys() {
                let at = place(all, class, opening);
                if let (Some(decks), Some(sessions)) = (kinds.get_mut(at), sessions.get(at)) {
                    *decks = KindDecks::of(of, opening, class, frame, sessions, streams);
                }
            }
            outside.push(by_act(
                all,
                &of.outside_slack,
                |act| of.outside.get(&format!("{}{}", act.op.name(), mark(act.who))).copied().unwrap_or(0.0) as usize,
                |slack, count, act| Deck::of_slack(slack, count, &mut streams.of(9, class, purpose_of(act))),
            ));
        }
        Self { kinds, outside, streams: all }
    }

    /// Of a kind of session.
    pub fn kind(&mut self, class: usize, opening: Opening) -> Option<&mut KindDecks> {
        self.kinds.get_mut(place(self.streams, class, opening))
    }

    /// Slack of an operation outside sessions in seconds.
    pub fn outside_slack(&mut self, class: usize, act: Act) -> f64 {
        self.outside.get_mut(class).and_then(|decks| decks.get_mut(number_of(act))).and_then(Option::as_mut).map_or(0.0, Deck::draw)
    }
}

fn place(streams: usize, class: usize, opening: Opening) -> usize {
    (class * streams + stream(opening.who)) * KINDS + opening.kind as usize
}

fn number_of(act: Act) -> usize {
    stream(act.who) * NUMBERS + usize::from(act.op.number())
}

/// What tells the streams of chance for operations apart ([`Streams::of`]): bits that no class has.
fn purpose_of(act: Act) -> u64 {
    (stream(act.who) as u64) << 18 | u64::from(act.op.number())
}

/// Decks of all operations, with a mark too: without anything of its own that operation has what the one of all ranks has.
fn by_act<T>(streams: usize, given: &BTreeMap<String, T>, count: impl Fn(Act) -> usize, deck: impl Fn(&T, usize, Act) -> Deck) -> Vec<Option<Deck>> {
    let mut found = vec![None; NUMBERS * streams];
    for who in (0..streams).map(who_of) {
        let mark = mark(who);
        for &op in OPS {
            let act = Act { op, who };
            let own = if mark.is_empty() { None } else { given.get(&format!("{}{mark}", op.name())) };
            if let (Some(of), Some(cell)) = (own.or_else(|| given.get(op.name())), found.get_mut(number_of(act))) {
                *cell = Some(deck(of, count(act), act));
            }
        }
    }
    found
}

impl KindDecks {
    fn of(class: &FileClass, opening: Opening, number: usize, frame: &Frame, sessions: &[u32], streams: Streams) -> Self {
        let Some(of) = class.sessions.get(&opening) else { return Self::default() };
        let kind = opening.kind;
        let all = frame.parts.streams();
        let mut counts = vec![0usize; NUMBERS * all];
        let mut needs = vec![Needs::default(); all];
        for &session in sessions {
            let (ops, sequential) = frame.ops_of(session);
            for &act in ops {
                if let Some(count) = counts.get_mut(number_of(act)) {
                    *count += 1;
                }
            }
            for (number, (needs, share)) in needs.iter_mut().zip(sequential).enumerate() {
                needs.add(needed(ops, number, *share));
            }
        }
        let count = |act: Act| counts.get(number_of(act)).copied().unwrap_or(0);
        // Open and close have one name each in a profile, whatever the interface.
        let mut slack: BTreeMap<String, Slack> = of.slack.clone();
        for (name, op) in [("open", kind.open()), ("close", kind.close())] {
            if let Some(of) = of.slack.get(name) {
                slack.insert(op.name().to_owned(), of.clone());
            }
        }
        let chance = |purpose: u64, of: u64| streams.of(purpose, number, (stream(opening.who) as u64) << 40 | (kind as u64) << 8 | of);
        let offsets = |stream: usize, needs: &Needs| {
            let of = of.offset_of(who_of(stream))?;
            let one = |at: usize, all: u64, with: u64| Offsets::of(of, all, with, &mut chance(12, (stream as u64) << 18 | at as u64));
            let ([a, b, c], [d, e, f]) = (needs.placed, needs.with);
            Some([one(0, a, d), one(1, b, e), one(2, c, f)])
        };
        let shift = |stream: usize, needs: &Needs| Deck::of(of.shift_of(who_of(stream)), needs.shifts, &mut chance(13, (stream as u64) << 18));
        Self {
            sizes: by_act(all, &of.size, count, |size, count, act| Deck::of(size, count, &mut chance(10, purpose_of(act)))),
            slack: by_act(all, &slack, count, |slack, count, act| Deck::of_slack(slack, count, &mut chance(11, purpose_of(act)))),
            offsets: needs.iter().enumerate().map(|(stream, needs)| offsets(stream, needs)).collect(),
            views: Some(Dealer::of(of.views.iter().filter(|view| view.piece > 0).map(|&view| (view, view.weight)))),
            shift: needs.iter().enumerate().map(|(number, needs)| shift(number, needs)).collect(),
        }
    }

    /// Bytes of an operation; 0 where nothing tells.
    pub fn size(&mut self, act: Act) -> u64 {
        self.sizes.get_mut(number_of(act)).and_then(Option::as_mut).map_or(0, |deck| deck.whole(0))
    }

    /// Slack before an operation in seconds.
    pub fn slack(&mut self, act: Act) -> f64 {
        self.slack.get_mut(number_of(act)).and_then(Option::as_mut).map_or(0.0, Deck::draw)
    }

    /// Bytes per rank of the next operation of a stream that says where it begins.
    pub fn shift(&mut self, stream: usize) -> i64 {
        self.shift.get_mut(stream).map_or(0.0, Deck::draw) as i64
    }
}

/// What a stream needs in all sessions of a kind: offsets, sessions that have any, and shifts.
#[derive(Clone, Copy, Debug, Default)]
struct Needs {
    placed: [u64; 3],
    with: [u64; 3],
    shifts: usize,
}

impl Needs {
    fn add(&mut self, session: [u64; 3]) {
        self.shifts += session.iter().sum::<u64>() as usize + 1;
        for ((all, with), need) in self.placed.iter_mut().zip(&mut self.with).zip(session) {
            *all += need;
            *with += u64::from(need > 0);
        }
    }
}

/// How many offsets a stream of a session needs, by `stream_of`: of its operations that say where the ones that are not sequential.
#[must_use]
pub fn needed(ops: &[Act], number: usize, sequential: f64) -> [u64; 3] {
    let moved = Moved::of(ops, number);
    let [reads, writes, seeks] = moved.placed;
    let mut turn = Turn { sequential: moved.sequential(sequential), placed: reads + writes, passed: 0 };
    if turn.sequential == turn.placed {
        return [0, 0, seeks];
    }
    let mut found = [0, 0, seeks];
    for act in ops.iter().filter(|act| stream(act.who) == number && is_placed(act.op) && act.op.facts().moves != Moves::Nothing) {
        if !turn.is_sequential()
            && let Some(count) = found.get_mut(stream_of(act.op))
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
