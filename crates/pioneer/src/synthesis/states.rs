//! What files and sessions are at a moment of the path, for each part of the ranks ([`super::parts`]): what a root alone has made or written is not there for
//! the others, who may be ahead of it.

use std::ops::Range;

use stripewise_workpath::op::Position;
use stripewise_workpath::{Class, Op, View, Who};

use super::decks::{Share, Turn};
use super::extent::{OFFSET_MAX, ends, spanned};
use super::frame::Frame;
use super::parts::Parts;
use super::profile::Kind;

/// Sessions of a file that are looked at for the next one of some ranks, at most.
const LOOK_MAX: usize = 64;

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

/// What a file is for ranks that do alike.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// It is there.
    exists: bool,
    /// Sessions that have it open.
    open: u32,
    /// The next session makes it where it is not there; true too without one.
    is_made_next: bool,
    /// Ends of what each of them has written itself, of the lowest rank and of the highest.
    end: u64,
    end_high: u64,
}

/// What a file is for all.
#[derive(Clone, Copy, Debug, Default)]
struct Whole {
    /// Sessions that have begun.
    begun: u32,
    /// The furthest end that any rank has written.
    reach: u64,
}

/// All files.
pub struct Files<'a> {
    frame: &'a Frame,
    pub prepared: Vec<Prepared>,
    wholes: Vec<Whole>,
    /// File by file those of each part.
    standings: Vec<Standing>,
}

impl<'a> Files<'a> {
    pub fn of(frame: &'a Frame) -> Self {
        let mut found = Self { frame, prepared: Vec::new(), wholes: Vec::new(), standings: Vec::new() };
        for (number, file) in frame.files.iter().enumerate() {
            let kind = frame.sessions.get(file.sessions.0 as usize).filter(|_| file.sessions.1 > file.sessions.0).map(|session| session.kind);
            let directory = kind == Some(Kind::PosixDirectory);
            // What is never opened is there, or nothing could be asked of it.
            let present = directory || kind.is_none();
            found.add(Prepared { class: file.class, number: Some(file.number), bytes: 0, present, directory });
            found.look_ahead(number as u32);
        }
        found
    }

    /// One more; its number.
    pub fn add(&mut self, file: Prepared) -> u32 {
        let standing = Standing { exists: file.present, open: 0, is_made_next: true, end: 0, end_high: 0 };
        self.standings.extend(std::iter::repeat_n(standing, self.frame.parts.count()));
        self.wholes.push(Whole::default());
        self.prepared.push(file);
        self.prepared.len() as u32 - 1
    }

    pub fn class(&self, file: u32) -> Class {
        self.prepared.get(file as usize).map_or(Class::Shared, |file| file.class)
    }

    pub fn is_directory(&self, file: u32) -> bool {
        self.prepared.get(file as usize).is_some_and(|file| file.directory)
    }

    fn first(&self, file: u32) -> usize {
        file as usize * self.frame.parts.count()
    }

    fn of_ranks(&self, file: u32, who: Who) -> &[Standing] {
        let (first, range) = (self.first(file), self.frame.parts.range(who));
        self.standings.get(first + range.start..first + range.end).unwrap_or_default()
    }

    fn of_ranks_mut(&mut self, file: u32, who: Who) -> &mut [Standing] {
        let (first, range) = (self.first(file), self.frame.parts.range(who));
        self.standings.get_mut(first + range.start..first + range.end).unwrap_or_default()
    }

    /// Whether each of these ranks finds it.
    pub fn is_there(&self, file: u32, who: Who) -> bool {
        self.of_ranks(file, who).iter().all(|standing| standing.exists)
    }

    /// Whether these ranks can remove it: no session of theirs has it open, or needs it later. Of a file of all ranks nobody knows when the others are done
    /// with it.
    pub fn is_free(&self, file: u32, who: Who) -> bool {
        let is_own = self.prepared.get(file as usize).is_some_and(|entry| entry.class != Class::Shared && !entry.directory);
        is_own && self.of_ranks(file, who).iter().all(|standing| standing.exists && standing.open == 0 && standing.is_made_next)
    }

    /// A session of these ranks begins.
    pub fn open(&mut self, file: u32, kind: Kind, who: Who) {
        let lacks = !self.is_there(file, who) && !kind.writes();
        for standing in self.of_ranks_mut(file, who) {
            standing.exists = true;
            standing.open += 1;
        }
        if let Some(entry) = self.prepared.get_mut(file as usize) {
            entry.present |= lacks;
        }
        if let Some(whole) = self.wholes.get_mut(file as usize) {
            whole.begun += 1;
        }
        self.look_ahead(file);
    }

    pub fn close(&mut self, file: u32, who: Who) {
        self.of_ranks_mut(file, who).iter_mut().for_each(|standing| standing.open = standing.open.saturating_sub(1));
    }

    /// Whether each part's next session begins with making the file.
    fn look_ahead(&mut self, file: u32) {
        let frame = self.frame;
        let Some(of) = frame.files.get(file as usize) else { return };
        let begun = self.wholes.get(file as usize).map_or(0, |whole| whole.begun);
        let (next, end) = ((of.sessions.0 + begun).min(of.sessions.1) as usize, of.sessions.1 as usize);
        let first = self.first(file);
        for part in 0..frame.parts.count() {
            let mut sessions = frame.sessions.get(next..end).unwrap_or_default().iter();
            let known = sessions.by_ref().take(LOOK_MAX).find(|session| frame.parts.range(session.who).contains(&part));
            if let Some(standing) = self.standings.get_mut(first + part) {
                standing.is_made_next = known.map_or(sessions.next().is_none(), |session| session.kind.writes());
            }
        }
    }

    /// Each of these ranks makes it.
    pub fn made(&mut self, file: u32, who: Who) {
        self.of_ranks_mut(file, who).iter_mut().for_each(|standing| standing.exists = true);
    }

    /// Each of these ranks removes it.
    pub fn removed(&mut self, file: u32, who: Who) {
        for standing in self.of_ranks_mut(file, who) {
            (standing.exists, standing.end, standing.end_high) = (false, 0, 0);
        }
        if who == Who::All
            && let Some(whole) = self.wholes.get_mut(file as usize)
        {
            whole.reach = 0;
        }
    }

    /// The furthest end of what any rank has written.
    pub fn reach(&self, file: u32) -> u64 {
        self.wholes.get(file as usize).map_or(0, |whole| whole.reach)
    }

    /// Ranks of these parts have written so many bytes of it.
    pub fn wrote(&mut self, file: u32, parts: Range<usize>, offset: u64, shift: i64, size: u64) {
        let frame = self.frame;
        let first = self.first(file);
        for number in parts {
            let part = frame.parts.part(number);
            let (end, high) = ends(offset, shift, size, (part.low, part.high));
            let (Some(standing), Some(whole)) = (self.standings.get_mut(first + number), self.wholes.get_mut(file as usize)) else { return };
            whole.reach = whole.reach.max(end).max(high);
            if end >= standing.end && high >= standing.end_high {
                (standing.end, standing.end_high) = (end, high);
            }
        }
    }

    /// What is read and was not written before by the same rank must be there before the run.
    pub fn read(&mut self, file: u32, parts: Range<usize>, offset: u64, shift: i64, size: u64) {
        let frame = self.frame;
        let first = self.first(file);
        for number in parts {
            let part = frame.parts.part(number);
            let (end, high) = ends(offset, shift, size, (part.low, part.high));
            let (Some(standing), Some(entry)) = (self.standings.get(first + number), self.prepared.get_mut(file as usize)) else { return };
            if part.count > 0 && (end > standing.end || high > standing.end_high) {
                entry.bytes = entry.bytes.max(end).max(high);
            }
        }
    }
}

/// Where the operations of a stream of a session have come to: of all who have it open, or of some of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamState {
    pub pointer: u64,
    pub shift: i64,
    pub started: bool,
    pub turn: Turn,
    pub shares: [Share; 3],
}

/// What ranks that do alike have under way in a session.
#[derive(Clone, Copy, Debug, Default)]
struct UnderWay {
    pending: u32,
    mapped: u32,
    /// The stream whose operation has moved their file pointer last, plus 1; 0: none has.
    moved: u8,
    /// Where the shared pointer stands; of ranks that opened the file each alone, that of each.
    shared_pointer: u64,
}

/// All sessions; what they have come to is kept while they are open, for marks of many groups make it large.
pub struct Sessions<'a> {
    parts: &'a Parts,
    views: Vec<Option<View>>,
    streams: Vec<Box<[StreamState]>>,
    under_way: Vec<Box<[UnderWay]>>,
}

impl<'a> Sessions<'a> {
    pub fn of(frame: &'a Frame) -> Self {
        let count = frame.sessions.len();
        Self { parts: &frame.parts, views: vec![None; count], streams: vec![Box::default(); count], under_way: vec![Box::default(); count] }
    }

    /// It is opened.
    pub fn begin(&mut self, session: u32) {
        if let (Some(streams), Some(under_way)) = (self.streams.get_mut(session as usize), self.under_way.get_mut(session as usize)) {
            *streams = vec![StreamState::default(); self.parts.streams()].into();
            *under_way = vec![UnderWay::default(); self.parts.count()].into();
        }
    }

    /// It is closed.
    pub fn end(&mut self, session: u32) {
        if let (Some(streams), Some(under_way)) = (self.streams.get_mut(session as usize), self.under_way.get_mut(session as usize)) {
            (*streams, *under_way) = Default::default();
        }
    }

    /// What its bytes lie in.
    pub fn view(&self, session: u32) -> Option<View> {
        self.views.get(session as usize).copied().flatten()
    }

    /// Moves the shared pointers of these ranks on by a request of so many bytes; each part's number, and where its pointer stood.
    pub fn advance(&mut self, session: u32, who: Who, bytes: u64) -> Vec<(usize, u64)> {
        let span = self.view(session).map_or(bytes, |view| spanned(&view, bytes));
        let first = self.parts.range(who).start;
        let step = |(number, each): (usize, &mut UnderWay)| {
            let from = each.shared_pointer;
            each.shared_pointer = from.saturating_add(span).min(OFFSET_MAX);
            (first + number, from)
        };
        self.under_way(session, who).iter_mut().enumerate().map(step).collect()
    }

    /// The streams of an open session, by number.
    pub fn streams(&mut self, session: u32) -> &mut [StreamState] {
        self.streams.get_mut(session as usize).map_or(&mut [], |streams| &mut streams[..])
    }

    fn under_way(&mut self, session: u32, who: Who) -> &mut [UnderWay] {
        self.under_way.get_mut(session as usize).and_then(|parts| parts.get_mut(self.parts.range(who))).unwrap_or_default()
    }

    /// Whether the file pointers of these ranks stand where an operation of the stream has left them, or at their first place.
    pub fn is_at(&mut self, session: u32, who: Who, stream: usize) -> bool {
        self.under_way(session, who).iter().all(|each| each.moved == 0 || usize::from(each.moved) == stream + 1)
    }

    /// An operation of the stream has moved the file pointers of these ranks.
    pub fn moved(&mut self, session: u32, who: Who, stream: usize) {
        self.under_way(session, who).iter_mut().for_each(|each| each.moved = stream as u8 + 1);
    }

    /// A view has been set, and all pointers back.
    pub fn set_view(&mut self, session: u32, view: Option<View>, shift: i64) {
        self.under_way(session, Who::All).iter_mut().for_each(|each| (each.moved, each.shared_pointer) = (0, 0));
        if let Some(of) = self.views.get_mut(session as usize) {
            *of = view;
        }
        for stream in self.streams(session) {
            (stream.pointer, stream.shift) = (0, shift);
        }
    }

    /// The operation, or one that can be where it cannot.
    pub fn possible(&mut self, session: u32, who: Who, op: Op) -> Op {
        let under_way = self.under_way(session, who);
        let op = match op {
            Op::Munmap if under_way.iter().any(|each| each.mapped == 0) => Op::Mmap,
            Op::MpiWait if under_way.iter().any(|each| each.pending == 0) => Op::MpiGetSize,
            other => other,
        };
        let pends = op.facts().pending;
        for each in under_way {
            match op {
                Op::Mmap => each.mapped += 1,
                Op::Munmap => each.mapped -= 1,
                Op::MpiWait => each.pending -= 1,
                _ if pends => each.pending += 1,
                _ => (),
            }
        }
        op
    }
}

/// Whether an operation moves the file pointer of its process, or goes by it.
#[must_use]
pub fn is_by_pointer(op: Op) -> bool {
    matches!(op.facts().position, Position::Seek | Position::Pointer) || matches!(op, Op::Seek | Op::MpiSeek)
}
