//! The arguments of all requests in their order: offsets, sizes, bytes per rank, slack, and files for operations outside sessions.
//!
//! Hard dependencies hold whatever the profile says (thesis, section 2.5.2): data that is read has been written by the same rank, or the file has so many
//! bytes before the run; no munmap comes before its mmap, no wait before what it waits for; nothing is unlinked that is open or needed.

use std::collections::VecDeque;
use std::ops::Range;

use stripewise_chance::SplitMix64;
use stripewise_workpath::op::{Moves, Position};
use stripewise_workpath::{Class, Op, SIZE_MAX, View, Who};

use super::dealer::Dealer;
use super::decks::{Decks, KindDecks, Moved, Turn, is_placed, needed, stream_of};
use super::extent::{OFFSET_MAX, reach, sound, spanned};
use super::frame::{Frame, OWN, Session, Streams};
use super::holes::{Chooser, Place};
use super::profile::ViewWeight;
use super::states::{Files, Prepared, Sessions, StreamState, is_by_pointer};
use super::who::{Act, stream, who_of};

/// Operations outside sessions among which one is chosen, at most.
const WAITING_MAX: usize = 64;
/// What is mapped where no size is given.
const MAPPED_BYTES: u64 = 4096;

/// A request of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it does.
    pub op: Op,
    /// Which ranks make it; of the root's files it is the root in any case.
    pub who: Who,
    /// Number of the communicator (`Frame::comms`).
    pub comm: u16,
    /// Number of the view that is set, from 1; 0: bytes as they lie.
    pub view: u16,
    /// Which file.
    pub file: u32,
    /// The other one's number of a rename, link, or symlink.
    pub other: Option<u32>,
    /// Number of its session; None outside.
    pub session: Option<u32>,
    /// First byte of rank 0; 0 where it has none.
    pub offset: u64,
    /// How much further it begins for each rank.
    pub shift: i64,
    pub size: u64,
    /// ns from the end of the request before.
    pub slack_ns: u64,
}

impl Request {
    /// One without a place, after so many seconds.
    fn of(op: Op, who: Who, comm: u16, file: u32, slack: f64) -> Self {
        Self { op, who, comm, view: 0, file, other: None, session: None, offset: 0, shift: 0, size: 0, slack_ns: ns(slack) }
    }
}

/// All requests, and all files.
pub struct Filled {
    /// In their order.
    pub requests: Vec<Request>,
    /// By number.
    pub files: Vec<Prepared>,
    /// Views that are set.
    pub views: Vec<View>,
}

/// Gives every operation of a stream its arguments. Fails with a sentence where too many files are needed.
pub fn filled(order: &[Place], frame: &Frame, decks: Decks, streams: Streams) -> Result<Filled, String> {
    let mut filling = Filling::of(frame, decks, streams);
    let owner = owners(frame);
    let mut requests = Vec::with_capacity(order.len());
    let mut waiting: VecDeque<(Class, Act)> = VecDeque::new();
    waiting.extend(order.iter().filter_map(|&place| if let Place::Outside(class, act) = place { Some((class, act)) } else { None }));
    for &place in order {
        requests.push(match place {
            Place::Inside(number) => filling.inside(number, owner.get(number as usize).copied().unwrap_or_default()),
            Place::Outside(own, of) => {
                // What has no file yet that it may remove waits until one is done with.
                let ready = waiting.iter().take(WAITING_MAX).position(|&(class, act)| filling.is_ready(class, act)).unwrap_or(0);
                let (class, act) = waiting.remove(ready).unwrap_or((own, of));
                filling.outside(class, act)?
            }
        });
    }
    // A file that data is expected in is not cut below it.
    for request in requests.iter_mut().filter(|request| matches!(request.op, Op::Ftruncate | Op::Truncate | Op::MpiSetSize)) {
        let bytes = filling.files.prepared.get(request.file as usize).map_or(0, |file| file.bytes);
        request.size = request.size.max(bytes);
    }
    Ok(Filled { requests, files: filling.files.prepared, views: filling.views })
}

/// The session of each operation.
fn owners(frame: &Frame) -> Vec<u32> {
    let mut owners = Vec::with_capacity(frame.ops.len());
    for (number, session) in frame.sessions.iter().enumerate() {
        owners.extend(std::iter::repeat_n(number as u32, session.requests as usize));
    }
    owners
}

struct Filling<'a> {
    frame: &'a Frame,
    decks: Decks,
    last_rank: i64,
    files: Files<'a>,
    sessions: Sessions<'a>,
    chooser: Chooser,
    views: Vec<View>,
    random: SplitMix64,
    /// By class: symbolic links, directories of `mkdir` and `opendir`, that are there, and for whom.
    links: [Vec<(u32, Who)>; 3],
    directories: [Vec<(u32, Who)>; 3],
}

impl<'a> Filling<'a> {
    fn of(frame: &'a Frame, decks: Decks, streams: Streams) -> Self {
        Self {
            frame,
            decks,
            last_rank: frame.parts.ranks(Who::All) as i64 - 1,
            files: Files::of(frame),
            sessions: Sessions::of(frame),
            chooser: Chooser::of(frame, streams),
            views: Vec::new(),
            random: streams.of(14, 0, 0),
            links: Default::default(),
            directories: Default::default(),
        }
    }

    fn inside(&mut self, number: u32, session: u32) -> Request {
        let frame = self.frame;
        let (Some(&wanted), Some(of)) = (frame.ops.get(number as usize), frame.sessions.get(session as usize)) else {
            return Request::of(Op::Stat, Who::All, OWN, 0, 0.0);
        };
        let who = if wanted.who == Who::All { of.who } else { wanted.who };
        let class = self.files.class(of.file);
        let act = Act { op: self.sessions.possible(session, who, wanted.op), ..wanted };
        debug_assert!(act.op == of.kind.open() || act.op == of.kind.close() || of.kind.allows(act.op), "{act:?}");
        let slack = self.decks.kind(class as usize, of.opening()).map_or(0.0, |decks| decks.slack(act));
        let mut request = Request { session: Some(session), ..Request::of(act.op, who, of.comm, of.file, slack) };
        if act.op == of.kind.open() {
            self.open(session, of);
        } else if act.op == of.kind.close() {
            self.files.close(of.file, who);
            self.sessions.end(session);
        } else {
            self.place(&mut request, of, session, stream(act.who));
        }
        request
    }

    fn open(&mut self, session: u32, of: &Session) {
        self.sessions.begin(session);
        let (ops, sequential) = self.frame.ops_of(session);
        let class = self.files.class(of.file);
        let mut decks = self.decks.kind(class as usize, of.opening());
        for (number, (state, share)) in self.sessions.streams(session).iter_mut().zip(sequential).enumerate() {
            let moved = Moved::of(ops, number);
            let [reads, writes, _] = moved.placed;
            state.turn = Turn { sequential: moved.sequential(*share), placed: reads + writes, passed: 0 };
            if let Some(Some(offsets)) = decks.as_mut().and_then(|decks| decks.offsets.get_mut(number)) {
                for ((share, offsets), need) in state.shares.iter_mut().zip(offsets).zip(needed(ops, number, *share)) {
                    *share = offsets.share(need);
                }
            }
        }
        self.files.open(of.file, of.kind, of.who);
    }

    /// Offset, size and shift of an operation between open and close, which is of a stream of its session.
    fn place(&mut self, request: &mut Request, of: &Session, session: u32, number: usize) {
        let class = self.files.class(of.file);
        let limit = self.frame.files.get(of.file as usize).and_then(|file| file.size).filter(|&size| size > 0);
        let Some(decks) = self.decks.kind(class as usize, of.opening()) else { return };
        let (who, facts) = (request.who, request.op.facts());
        let size = decks.size(Act { op: request.op, who: who_of(number) }).min(OFFSET_MAX);
        let takes_shift = class == Class::Shared && who != Who::Root;
        let mut state = self.sessions.streams(session).get(number).copied().unwrap_or_default();
        let view = self.sessions.view(session);
        if facts.moves == Moves::Nothing {
            match request.op {
                Op::Seek | Op::MpiSeek => {
                    request.offset = anywhere(decks, &mut state, number, 2, &mut self.random, 0, limit);
                    (state.pointer, state.shift) = (request.offset, 0);
                    self.keep(session, number, state);
                    self.sessions.moved(session, who, number);
                }
                Op::MpiView => {
                    let view = decks.views.as_mut().and_then(Dealer::deal);
                    let view = view.map(|ViewWeight { piece, distance, pieces, tile, .. }| View { piece, distance, pieces, tile });
                    let shift = if takes_shift { decks.shift(number) } else { 0 };
                    request.shift = sound(shift, 0, self.last_rank);
                    self.sessions.set_view(session, view, request.shift);
                    request.view = self.number_of(view);
                }
                Op::Mmap => {
                    request.size = if size == 0 { MAPPED_BYTES } else { size.min(limit.unwrap_or(size)) };
                    self.files.read(of.file, self.frame.parts.range(who), 0, 0, request.size);
                }
                Op::Ftruncate | Op::MpiSetSize => request.size = size.min(limit.unwrap_or(size)).max(self.files.reach(of.file)),
                Op::Fallocate | Op::MpiPreallocate => request.size = size.min(limit.unwrap_or(size)),
                _ => (),
            }
            return;
        }
        request.size = size.min(SIZE_MAX).min(limit.unwrap_or(SIZE_MAX));
        if facts.position == Position::Shared {
            // Who has opened the file alone has a pointer alone.
            let parts = &self.frame.parts;
            let (all, movers) = if of.comm == OWN { (1, who) } else { (parts.ranks(who), Who::All) };
            let bytes = request.size.saturating_mul(all);
            let mut places = self.sessions.advance(session, movers, bytes);
            places.retain(|&(part, _)| parts.range(who).contains(&part));
            // A request has one place, that of the first rank that makes it.
            let first = places.iter().find(|&&(part, _)| parts.part(part).count > 0).or(places.first());
            request.offset = first.map_or(0, |place| place.1);
            let reach = view.map_or(bytes, |view| reach(&view, bytes));
            for (part, offset) in places {
                self.moved(&Request { offset, ..*request }, part..part + 1, reach);
            }
            return;
        }
        let fits = |offset: u64| offset.saturating_add(request.size) <= limit.unwrap_or(OFFSET_MAX);
        if is_placed(request.op) {
            let is_sequential = state.turn.is_sequential();
            let draws_shift = takes_shift && (!is_sequential || !state.started);
            request.offset = if is_sequential {
                if fits(state.pointer) { state.pointer } else { 0 }
            } else {
                anywhere(decks, &mut state, number, stream_of(request.op), &mut self.random, request.size, limit)
            };
            let shift = if draws_shift { decks.shift(number) } else { state.shift };
            request.shift = sound(shift, request.offset, self.last_rank);
        } else if fits(state.pointer) && self.sessions.is_at(session, who, number) {
            (request.offset, request.shift) = (state.pointer, state.shift);
        } else {
            // Back to the begin, or to where others have led the pointer away from, which takes a seek.
            request.op = sought(request.op);
            request.offset = if fits(state.pointer) { state.pointer } else { 0 };
            request.shift = sound(state.shift, request.offset, self.last_rank);
        }
        state.started = true;
        let span = view.map_or(request.size, |view| spanned(&view, request.size));
        (state.pointer, state.shift) = (request.offset.saturating_add(span).min(OFFSET_MAX), request.shift);
        self.keep(session, number, state);
        if is_by_pointer(request.op) {
            self.sessions.moved(session, who, number);
        }
        let reach = view.map_or(request.size, |view| reach(&view, request.size));
        self.moved(request, self.frame.parts.range(who), reach);
    }

    fn keep(&mut self, session: u32, number: usize, state: StreamState) {
        if let Some(kept) = self.sessions.streams(session).get_mut(number) {
            *kept = state;
        }
    }

    /// The number of a view, from 1; 0 of none, or where there are too many.
    fn number_of(&mut self, view: Option<View>) -> u16 {
        let Some(view) = view else { return 0 };
        let known = self.views.iter().position(|&each| each == view);
        let place = known.unwrap_or(self.views.len());
        if known.is_none() && place < usize::from(u16::MAX) - 1 {
            self.views.push(view);
        }
        if place < self.views.len() { place as u16 + 1 } else { 0 }
    }

    /// A request of these parts reads or writes so many bytes of its file, from the first to the last.
    fn moved(&mut self, request: &Request, parts: Range<usize>, bytes: u64) {
        let Request { file, offset, shift, .. } = *request;
        match request.op.facts().moves {
            Moves::Reads => self.files.read(file, parts, offset, shift, bytes),
            _ => self.files.wrote(file, parts, offset, shift, bytes),
        }
    }

    /// Whether an operation has a file that it makes sense for; those that remove none always have.
    fn is_ready(&self, class: Class, act: Act) -> bool {
        !matches!(act.op, Op::Unlink | Op::MpiDelete | Op::Rename)
            || class == Class::Shared
            || self.chooser.has(class, |file| self.files.is_free(file, act.who))
    }

    fn outside(&mut self, class: Class, act: Act) -> Result<Request, String> {
        let Act { op, who } = act;
        let slack = self.decks.outside_slack(class as usize, act);
        let files = &self.files;
        let is_there = |file: u32| files.is_there(file, who);
        let own = class as usize;
        // What some have made is there for them alone.
        let made = |list: &[Vec<(u32, Who)>; 3]| list.get(own).and_then(|list| list.iter().rfind(|each| each.1 == who)).map(|each| each.0);
        let found = match op {
            Op::Mkdir | Op::Mknod => None,
            Op::Rmdir => made(&self.directories),
            Op::Opendir => made(&self.directories),
            Op::Readlink => made(&self.links).or_else(|| self.chooser.choose(class, is_there).map(|(file, _)| file)),
            Op::Unlink | Op::MpiDelete | Op::Rename => {
                self.chooser.choose(class, |file| files.is_free(file, who)).filter(|(_, fits)| *fits).map(|(file, _)| file)
            }
            // Who asks for what is not there hears so.
            Op::Stat | Op::Access | Op::Statfs => self.chooser.choose(class, is_there).map(|(file, _)| file),
            _ => self.chooser.choose(class, |file| is_there(file) && !files.is_directory(file)).filter(|(_, fits)| *fits).map(|(file, _)| file),
        };
        let is_made = matches!(op, Op::Mkdir | Op::Mknod);
        let file = match found {
            Some(file) => file,
            None => self.add(class, !is_made, matches!(op, Op::Mkdir | Op::Rmdir | Op::Opendir))?,
        };
        let mut request = Request::of(op, who, OWN, file, slack);
        match op {
            Op::Truncate => request.size = self.files.reach(file),
            Op::Rename | Op::Link | Op::Symlink => request.other = Some(self.add(class, false, false)?),
            _ => (),
        }
        match op {
            Op::Unlink | Op::MpiDelete | Op::Rename | Op::Rmdir => self.files.removed(file, who),
            Op::Mkdir | Op::Mknod => self.files.made(file, who),
            _ => (),
        }
        let (links, directories) = (self.links.get_mut(own), self.directories.get_mut(own));
        if let (Some(links), Some(directories)) = (links, directories) {
            match op {
                Op::Symlink => links.extend(request.other.map(|other| (other, who))),
                Op::Mkdir => directories.push((file, who)),
                Op::Rmdir => directories.retain(|&each| each != (file, who)),
                Op::Opendir if !directories.iter().any(|each| each.1 == who) => directories.push((file, who)),
                _ => (),
            }
        }
        Ok(request)
    }

    /// One more file, for an operation outside sessions.
    fn add(&mut self, class: Class, present: bool, directory: bool) -> Result<u32, String> {
        let files_max = self.frame.files_max();
        if self.files.prepared.len() as u64 >= files_max {
            return Err(format!("operations outside sessions (RT2) need more than {files_max} files{}", self.frame.cure()));
        }
        Ok(self.files.add(Prepared { class, number: None, bytes: 0, present, directory }))
    }
}

/// The same with a seek before it.
fn sought(op: Op) -> Op {
    match op {
        Op::Read0 => Op::Read1,
        Op::Write0 => Op::Write1,
        Op::MpiRead0 => Op::MpiRead1,
        Op::MpiWrite0 => Op::MpiWrite1,
        Op::MpiReadAll0 => Op::MpiReadAll1,
        Op::MpiWriteAll0 => Op::MpiWriteAll1,
        Op::MpiIread00 => Op::MpiIread10,
        Op::MpiIread01 => Op::MpiIread11,
        Op::MpiIwrite00 => Op::MpiIwrite10,
        Op::MpiIwrite01 => Op::MpiIwrite11,
        other => other,
    }
}

/// An offset of OFF, else anywhere in the file, in whole requests from its begin.
fn anywhere(decks: &KindDecks, state: &mut StreamState, number: usize, of: usize, random: &mut SplitMix64, size: u64, limit: Option<u64>) -> u64 {
    let room = limit.unwrap_or(OFFSET_MAX).saturating_sub(size);
    let drawn = decks.offsets.get(number).and_then(Option::as_ref).and_then(|offsets| offsets.get(of)?.draw(state.shares.get_mut(of)?));
    if let Some(offset) = drawn {
        return (offset.clamp(0.0, 1e18).round() as u64).min(room);
    }
    let step = size.max(1);
    let reach = limit.map_or(state.pointer, |_| room);
    random.below(reach / step + 1) * step
}

/// Whole nanoseconds.
pub(super) fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round().clamp(0.0, 1e18) as u64
}
