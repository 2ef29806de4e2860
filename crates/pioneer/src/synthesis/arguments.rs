//! The arguments of all requests in their order: offsets, sizes, bytes per rank, slack, and files for operations outside sessions.
//!
//! Hard dependencies hold whatever the profile says (thesis, section 2.5.2): data that is read has been written by the same rank, or the file has so many
//! bytes before the run; no munmap comes before its mmap, no wait before what it waits for; nothing is unlinked that is open or needed.

use std::collections::VecDeque;

use stripewise_chance::SplitMix64;
use stripewise_workpath::op::{Moves, Position};
use stripewise_workpath::{Class, Op, SIZE_MAX, View};

use super::dealer::Dealer;
use super::decks::{Decks, Moved, Share, Turn, is_placed, needed, stream_of};
use super::distribution::Deck;
use super::extent::{OFFSET_MAX, ends, reach, sound, spanned};
use super::frame::{FILES_MAX, Frame, OWN, Session, Streams};
use super::holes::{Chooser, Place, Standing};
use super::profile::ViewWeight;

/// Operations outside sessions among which one is chosen, at most.
const WAITING_MAX: usize = 64;
/// What is mapped where no size is given.
const MAPPED_BYTES: u64 = 4096;

/// A request of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it does.
    pub op: Op,
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

/// What must be there before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Whose it is.
    pub class: Class,
    /// Number in its class; None: a file that operations outside sessions need.
    pub number: Option<u32>,
    pub bytes: u64,
    /// It is there.
    pub present: bool,
    /// It is a directory.
    pub directory: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct FileState {
    standing: Standing,
    /// Ends of what was written, of rank 0 and of the last one.
    end: u64,
    end_last: u64,
    /// The furthest end of any rank.
    reach: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct SessionState {
    pointer: u64,
    pointer_shift: i64,
    shared_pointer: u64,
    started: bool,
    turn: Turn,
    shares: [Share; 3],
    pending: u32,
    mapped: u32,
    /// What its bytes lie in.
    view: Option<View>,
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

/// Gives every operation of a stream its arguments; `processes` will play it. Fails with a sentence where too many files are needed.
pub fn filled(order: &[Place], frame: &Frame, decks: Decks, processes: u32, streams: Streams) -> Result<Filled, String> {
    let mut filling = Filling::of(frame, decks, processes, streams);
    let owner = owners(frame);
    let mut requests = Vec::with_capacity(order.len());
    let mut waiting: VecDeque<(Class, Op)> = VecDeque::new();
    waiting.extend(order.iter().filter_map(|&place| if let Place::Outside(class, op) = place { Some((class, op)) } else { None }));
    for &place in order {
        requests.push(match place {
            Place::Inside(number) => filling.inside(number, owner.get(number as usize).copied().unwrap_or_default()),
            Place::Outside(own, of) => {
                // What has no file yet that it may remove waits until one is done with.
                let ready = waiting.iter().take(WAITING_MAX).position(|&(class, op)| filling.is_ready(class, op)).unwrap_or(0);
                let (class, op) = waiting.remove(ready).unwrap_or((own, of));
                filling.outside(class, op)?
            }
        });
    }
    // A file that data is expected in is not cut below it.
    for request in requests.iter_mut().filter(|request| matches!(request.op, Op::Ftruncate | Op::Truncate | Op::MpiSetSize)) {
        let bytes = filling.files.get(request.file as usize).map_or(0, |file| file.bytes);
        request.size = request.size.max(bytes);
    }
    Ok(Filled { requests, files: filling.files, views: filling.views })
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
    files: Vec<Prepared>,
    states: Vec<FileState>,
    sessions: Vec<SessionState>,
    chooser: Chooser,
    views: Vec<View>,
    random: SplitMix64,
    /// By class: symbolic links, directories of `mkdir` and `opendir`, that are there.
    links: [Vec<u32>; 3],
    directories: [Vec<u32>; 3],
}

impl<'a> Filling<'a> {
    fn of(frame: &'a Frame, decks: Decks, processes: u32, streams: Streams) -> Self {
        let files: Vec<Prepared> = frame
            .files
            .iter()
            .map(|file| {
                let kind = frame.sessions.get(file.sessions.0 as usize).filter(|_| file.sessions.1 > file.sessions.0).map(|session| session.kind);
                let directory = kind == Some(super::profile::Kind::PosixDirectory);
                // Who is never opened is there, or nothing could be asked of it.
                let present = directory || kind.is_none();
                Prepared { class: file.class, number: Some(file.number), bytes: 0, present, directory }
            })
            .collect();
        let mut states = vec![FileState::default(); files.len()];
        for (number, (state, file)) in states.iter_mut().zip(&files).enumerate() {
            state.standing.exists = file.present;
            state.standing.is_made_next = is_made_next(frame, number as u32, 0);
        }
        Self {
            frame,
            decks,
            last_rank: i64::from(processes.max(1)) - 1,
            files,
            states,
            sessions: vec![SessionState::default(); frame.sessions.len()],
            chooser: Chooser::of(frame, streams),
            views: Vec::new(),
            random: streams.of(14, 0, 0),
            links: Default::default(),
            directories: Default::default(),
        }
    }

    fn class_of(&self, file: u32) -> Class {
        self.files.get(file as usize).map_or(Class::Shared, |file| file.class)
    }

    fn inside(&mut self, number: u32, session: u32) -> Request {
        let frame = self.frame;
        let (Some(of), Some(&wanted)) = (frame.sessions.get(session as usize), frame.ops.get(number as usize)) else {
            return Request { op: Op::Stat, comm: OWN, view: 0, file: 0, other: None, session: None, offset: 0, shift: 0, size: 0, slack_ns: 0 };
        };
        let class = self.class_of(of.file);
        let mut state = self.sessions.get(session as usize).copied().unwrap_or_default();
        let op = possible(wanted, of, &mut state);
        let slack = self.decks.kind(class as usize, of.kind).map_or(0.0, |decks| decks.slack(op));
        let mut request = Request {
            op,
            comm: of.comm,
            view: 0,
            file: of.file,
            other: None,
            session: Some(session),
            offset: 0,
            shift: 0,
            size: 0,
            slack_ns: ns(slack),
        };
        if op == of.kind.open() {
            self.open(of, &mut state);
        } else if op == of.kind.close() {
            if let Some(file) = self.states.get_mut(of.file as usize) {
                file.standing.open = file.standing.open.saturating_sub(1);
            }
        } else {
            self.place(&mut request, of, &mut state, class);
        }
        if let Some(kept) = self.sessions.get_mut(session as usize) {
            *kept = state;
        }
        request
    }

    fn open(&mut self, of: &Session, state: &mut SessionState) {
        let frame = self.frame;
        let first = of.first as usize;
        let ops = frame.ops.get(first..first + of.requests as usize).unwrap_or_default();
        let moved = Moved::of(ops);
        let [reads, writes, _] = moved.placed;
        state.turn = Turn { sequential: moved.sequential(of.sequential), placed: reads + writes, passed: 0 };
        let class = self.class_of(of.file);
        if let Some(offsets) = self.decks.kind(class as usize, of.kind).and_then(|decks| decks.offsets.as_mut()) {
            for ((share, offsets), need) in state.shares.iter_mut().zip(offsets).zip(needed(ops, of.sequential)) {
                *share = offsets.share(need);
            }
        }
        let (Some(file), Some(entry)) = (self.states.get_mut(of.file as usize), self.files.get_mut(of.file as usize)) else { return };
        if !file.standing.exists && !of.kind.writes() {
            entry.present = true;
        }
        file.standing.exists = true;
        file.standing.open += 1;
        file.standing.begun += 1;
        file.standing.is_made_next = is_made_next(frame, of.file, file.standing.begun);
    }

    /// Offset, size and shift of an operation between open and close.
    fn place(&mut self, request: &mut Request, of: &Session, state: &mut SessionState, class: Class) {
        let limit = self.frame.files.get(of.file as usize).and_then(|file| file.size).filter(|&size| size > 0);
        let Some(decks) = self.decks.kind(class as usize, of.kind) else { return };
        let facts = request.op.facts();
        let size = decks.size(request.op).min(OFFSET_MAX);
        if facts.moves == Moves::Nothing {
            match request.op {
                Op::Seek | Op::MpiSeek => {
                    request.offset = anywhere(decks, state, 2, &mut self.random, 0, limit);
                    (state.pointer, state.pointer_shift) = (request.offset, 0);
                }
                Op::MpiView => {
                    let view = decks.views.as_mut().and_then(Dealer::deal);
                    let view = view.map(|ViewWeight { piece, distance, pieces, tile, .. }| View { piece, distance, pieces, tile });
                    let shift = if class == Class::Shared { decks.shift.as_mut().map_or(0.0, Deck::draw) as i64 } else { 0 };
                    request.shift = sound(shift, 0, self.last_rank);
                    (state.pointer, state.pointer_shift, state.shared_pointer, state.view) = (0, request.shift, 0, view);
                    request.view = self.number_of(view);
                }
                Op::Mmap => {
                    request.size = if size == 0 { MAPPED_BYTES } else { size.min(limit.unwrap_or(size)) };
                    self.read(of.file, 0, 0, request.size);
                }
                Op::Ftruncate | Op::MpiSetSize => {
                    let kept = self.states.get(of.file as usize).map_or(0, |file| file.reach);
                    request.size = size.min(limit.unwrap_or(size)).max(kept);
                }
                Op::Fallocate | Op::MpiPreallocate => request.size = size.min(limit.unwrap_or(size)),
                _ => (),
            }
            return;
        }
        request.size = size.min(SIZE_MAX).min(limit.unwrap_or(SIZE_MAX));
        if facts.position == Position::Shared {
            let all = if of.comm == OWN { 1 } else { self.last_rank as u64 + 1 };
            request.offset = state.shared_pointer;
            let bytes = request.size.saturating_mul(all);
            let span = state.view.map_or(bytes, |view| spanned(&view, bytes));
            state.shared_pointer = request.offset.saturating_add(span).min(OFFSET_MAX);
            let reach = state.view.map_or(bytes, |view| reach(&view, bytes));
            self.moved(facts.moves, of.file, request.offset, 0, reach);
            return;
        }
        let fits = |offset: u64| offset.saturating_add(request.size) <= limit.unwrap_or(OFFSET_MAX);
        if is_placed(request.op) {
            let is_sequential = state.turn.is_sequential();
            let draws_shift = class == Class::Shared && (!is_sequential || !state.started);
            request.offset = if is_sequential {
                if fits(state.pointer) { state.pointer } else { 0 }
            } else {
                anywhere(decks, state, stream_of(request.op), &mut self.random, request.size, limit)
            };
            let shift = if draws_shift { decks.shift.as_mut().map_or(0.0, Deck::draw) as i64 } else { state.pointer_shift };
            request.shift = sound(shift, request.offset, self.last_rank);
        } else if fits(state.pointer) {
            (request.offset, request.shift) = (state.pointer, state.pointer_shift);
        } else {
            // Back to the begin, which takes a seek.
            request.op = sought(request.op);
            (request.offset, request.shift) = (0, sound(state.pointer_shift, 0, self.last_rank));
        }
        state.started = true;
        let span = state.view.map_or(request.size, |view| spanned(&view, request.size));
        (state.pointer, state.pointer_shift) = (request.offset.saturating_add(span).min(OFFSET_MAX), request.shift);
        let reach = state.view.map_or(request.size, |view| reach(&view, request.size));
        self.moved(facts.moves, of.file, request.offset, request.shift, reach);
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

    fn moved(&mut self, moves: Moves, file: u32, offset: u64, shift: i64, size: u64) {
        if moves == Moves::Reads {
            self.read(file, offset, shift, size);
        } else if let Some(state) = self.states.get_mut(file as usize) {
            let (end, last) = ends(offset, shift, size, self.last_rank);
            state.reach = state.reach.max(end).max(last);
            if end >= state.end && last >= state.end_last {
                (state.end, state.end_last) = (end, last);
            }
        }
    }

    /// What is read and was not written before must be there before the run.
    fn read(&mut self, file: u32, offset: u64, shift: i64, size: u64) {
        let (end, last) = ends(offset, shift, size, self.last_rank);
        let (Some(state), Some(entry)) = (self.states.get(file as usize), self.files.get_mut(file as usize)) else { return };
        if end > state.end || last > state.end_last {
            entry.bytes = entry.bytes.max(end).max(last);
        }
    }

    /// Whether an operation has a file that it makes sense for; those that remove none always have.
    fn is_ready(&self, class: Class, op: Op) -> bool {
        !matches!(op, Op::Unlink | Op::MpiDelete | Op::Rename)
            || class == Class::Shared
            || self.chooser.has(class, |file| is_free(&self.files, &self.states, file))
    }

    fn outside(&mut self, class: Class, op: Op) -> Result<Request, String> {
        let slack_ns = ns(self.decks.outside_slack(class as usize, op));
        let states = &self.states;
        let files = &self.files;
        let state = |file: u32| states.get(file as usize).copied().unwrap_or_default();
        let is_file = |file: u32| files.get(file as usize).is_some_and(|file| !file.directory);
        let is_there = |file: u32| state(file).standing.exists;
        let own = class as usize;
        let made = |list: &[Vec<u32>; 3]| list.get(own).and_then(|list| list.last()).copied();
        let found = match op {
            Op::Mkdir | Op::Mknod => None,
            Op::Rmdir => made(&self.directories),
            Op::Opendir => made(&self.directories),
            Op::Readlink => made(&self.links).or_else(|| self.chooser.choose(class, is_there).map(|(file, _)| file)),
            Op::Unlink | Op::MpiDelete | Op::Rename => {
                self.chooser.choose(class, |file| is_free(files, states, file)).filter(|(_, fits)| *fits).map(|(file, _)| file)
            }
            Op::Truncate => self.chooser.choose(class, |file| is_file(file) && is_there(file)).filter(|(_, fits)| *fits).map(|(file, _)| file),
            // Who asks for what is not there hears so.
            Op::Stat | Op::Access | Op::Statfs => self.chooser.choose(class, is_there).map(|(file, _)| file),
            _ => self.chooser.choose(class, |file| is_there(file) && is_file(file)).filter(|(_, fits)| *fits).map(|(file, _)| file),
        };
        let is_made = matches!(op, Op::Mkdir | Op::Mknod);
        let file = match found {
            Some(file) => file,
            None => self.add(class, !is_made, matches!(op, Op::Mkdir | Op::Rmdir | Op::Opendir))?,
        };
        let mut request = Request { op, comm: OWN, view: 0, file, other: None, session: None, offset: 0, shift: 0, size: 0, slack_ns };
        match op {
            Op::Truncate => request.size = self.states.get(file as usize).map_or(0, |state| state.end.max(state.end_last)),
            Op::Rename | Op::Link | Op::Symlink => request.other = Some(self.add(class, false, false)?),
            _ => (),
        }
        if let Some(state) = self.states.get_mut(file as usize) {
            match op {
                Op::Unlink | Op::MpiDelete | Op::Rename | Op::Rmdir => {
                    state.standing.exists = false;
                    (state.end, state.end_last, state.reach) = (0, 0, 0);
                }
                Op::Mkdir | Op::Mknod => state.standing.exists = true,
                _ => (),
            }
        }
        let (links, directories) = (self.links.get_mut(own), self.directories.get_mut(own));
        if let (Some(links), Some(directories)) = (links, directories) {
            match op {
                Op::Symlink => links.extend(request.other),
                Op::Mkdir => directories.push(file),
                Op::Rmdir => directories.retain(|&each| each != file),
                Op::Opendir if directories.is_empty() => directories.push(file),
                _ => (),
            }
        }
        Ok(request)
    }

    /// One more file, for an operation outside sessions.
    fn add(&mut self, class: Class, present: bool, directory: bool) -> Result<u32, String> {
        if self.files.len() as u64 >= FILES_MAX {
            return Err(format!("operations outside sessions (RT2) need more than {FILES_MAX} files; scale files down"));
        }
        self.files.push(Prepared { class, number: None, bytes: 0, present, directory });
        let standing = Standing { exists: present, open: 0, begun: 0, is_made_next: true };
        self.states.push(FileState { standing, ..FileState::default() });
        Ok(self.files.len() as u32 - 1)
    }
}

/// Whether a file can be removed: no session has it open, or needs it later. Of a file of all ranks nobody knows when the others are done with it.
fn is_free(files: &[Prepared], states: &[FileState], file: u32) -> bool {
    let (Some(entry), Some(state)) = (files.get(file as usize), states.get(file as usize)) else { return false };
    let standing = state.standing;
    entry.class != Class::Shared && !entry.directory && standing.exists && standing.open == 0 && standing.is_made_next
}

/// Whether a file's session after so many begins with making it; true without one.
fn is_made_next(frame: &Frame, file: u32, begun: u32) -> bool {
    let Some(of) = frame.files.get(file as usize) else { return true };
    let next = of.sessions.0 + begun;
    next >= of.sessions.1 || frame.sessions.get(next as usize).is_none_or(|session| session.kind.writes())
}

/// The operation, or one that can be where it cannot.
fn possible(op: Op, of: &Session, state: &mut SessionState) -> Op {
    let op = match op {
        Op::Munmap if state.mapped == 0 => Op::Mmap,
        Op::MpiWait if state.pending == 0 => Op::MpiGetSize,
        other => other,
    };
    match op {
        Op::Mmap => state.mapped += 1,
        Op::Munmap => state.mapped -= 1,
        Op::MpiWait => state.pending -= 1,
        _ if op.facts().pending => state.pending += 1,
        _ => (),
    }
    debug_assert!(op == of.kind.open() || op == of.kind.close() || of.kind.allows(op), "{op:?}");
    op
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
fn anywhere(decks: &super::decks::KindDecks, state: &mut SessionState, stream: usize, random: &mut SplitMix64, size: u64, limit: Option<u64>) -> u64 {
    let room = limit.unwrap_or(OFFSET_MAX).saturating_sub(size);
    let drawn = decks.offsets.as_ref().and_then(|offsets| offsets.get(stream)?.draw(state.shares.get_mut(stream)?));
    if let Some(offset) = drawn {
        return (offset.clamp(0.0, 1e18).round() as u64).min(room);
    }
    let step = size.max(1);
    let reach = limit.map_or(state.pointer, |_| room);
    random.below(reach / step + 1) * step
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round().clamp(0.0, 1e18) as u64
}
