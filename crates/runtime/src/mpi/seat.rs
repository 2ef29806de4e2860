//! The files of this process whose collective calls are decided on: what it knows of each, and where the other processes of the file meet.

use super::board::{board, is_crowded, left, write_down};
use super::job::{self, Begun, Members};
use super::library::{self, Handle, Library};
use super::opening::SEQUENTIAL;
use super::{TUNED, sw_mpi_watched};
use crate::names;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use sieving::FileSieving;
use stripewise_engine::shared::board::{Board, NAME_BYTES_MAX, Note, Post};
use stripewise_engine::shared::lane::{Made, Own};
use stripewise_engine::shared::site::{Begin, Policy, Reason};
use stripewise_engine::shared::views::{Hinted, Shown};
use stripewise_engine::{Mode, Operation};
use stripewise_trace::clock::calibrate;

mod sieving;
mod viewing;

/// Files that a process has open at once and takes part in; further ones are as without.
const SEATS: usize = 64;
/// Opens of one file by the same processes that may be under way at once, in as many threads.
const OVERLAPPED_MAX: u32 = 64;
/// A turn on a processor, of Linux's usual scheduler. Measured: a collective call of 64 KiB each took 13 ms with 4 processes on 2 processors, 42 ms with 8.
const TURN_NS: u64 = 4_000_000;
const FREE: usize = 0;
/// Is being opened.
const TAKEN: usize = 1;
const OPERATIONS: [Operation; 2] = [Operation::Read, Operation::Write];

/// A file that this process has open, and the post where the others of the file meet.
pub struct Seat {
    post: AtomicPtr<Post>,
    notes: [AtomicPtr<Note>; 2],
    /// Of the one thread that makes a collective call on the file.
    own: UnsafeCell<[Used; 2]>,
    /// The view leaves gaps for others' data; how many were set; whether those of all processes are alike, which all of them know alike.
    has_gaps: AtomicU32,
    views: AtomicU32,
    are_alike: AtomicU32,
    /// What collective calls of either kind, in whatever mode, others may still be at: see [`Seat::meet`].
    going_on: AtomicU32,
    /// A communicator of ours for the processes of the file; 0: not made yet.
    place: AtomicUsize,
    /// The program makes nonblocking collective calls on it: all are made as it makes them from then on.
    is_left: AtomicU32,
    sieving: FileSieving,
    /// The number of the view that this process was counted for last, and as what; none: it could not be counted.
    counted: AtomicU32,
    showed: UnsafeCell<Option<(Shown, Hinted)>>,
    /// The frame of a collective call that is under way; 0: none.
    frame: AtomicUsize,
    etype_bytes: AtomicU64,
    /// Behind the last request at an offset of its own, in bytes of the view's data; -1: none yet.
    end: AtomicI64,
    is_atomic: AtomicU32,
    /// Of its open, to count it.
    key: AtomicU64,
    floor_ticks: AtomicU64,
    name: UnsafeCell<([u8; NAME_BYTES_MAX], usize)>,
}

/// What one process knows of its calls in one operation.
#[derive(Clone, Copy)]
struct Used {
    own: Own,
    calls: u64,
    independent: u64,
    bytes: u64,
    /// The call under way is in the mode that was decided on.
    is_measured: bool,
}

// SAFETY: the cells are touched by the thread that opens or closes the file, sets its view, or makes a collective call on it: of these MPI allows one at a
// time.
unsafe impl Sync for Seat {}

const UNUSED: Used = Used { own: Own::NEW, calls: 0, independent: 0, bytes: 0, is_measured: false };

static ALL: [Seat; SEATS] = [const {
    Seat {
        post: AtomicPtr::new(core::ptr::null_mut()),
        notes: [const { AtomicPtr::new(core::ptr::null_mut()) }; 2],
        own: UnsafeCell::new([UNUSED; 2]),
        has_gaps: AtomicU32::new(0),
        views: AtomicU32::new(0),
        are_alike: AtomicU32::new(1),
        going_on: AtomicU32::new(0),
        place: AtomicUsize::new(0),
        is_left: AtomicU32::new(0),
        sieving: FileSieving::new(),
        counted: AtomicU32::new(0),
        showed: UnsafeCell::new(None),
        frame: AtomicUsize::new(0),
        etype_bytes: AtomicU64::new(1),
        end: AtomicI64::new(-1),
        is_atomic: AtomicU32::new(0),
        key: AtomicU64::new(0),
        floor_ticks: AtomicU64::new(0),
        name: UnsafeCell::new(([0; NAME_BYTES_MAX], 0)),
    }
}; SEATS];

/// The handles of the files that have the seats, side by side, and how many of them were ever used: they are looked at in every call.
static HANDLES: [AtomicUsize; SEATS] = [const { AtomicUsize::new(FREE) }; SEATS];
static USED: AtomicUsize = AtomicUsize::new(0);

/// The seat of an open file.
#[inline]
pub fn of(handle: Handle) -> Option<&'static Seat> {
    if handle <= TAKEN {
        return None;
    }
    let used = HANDLES.get(..USED.load(Acquire)).unwrap_or(&[]);
    ALL.get(used.iter().position(|there| there.load(Acquire) == handle)?)
}

/// Takes part in an open that begins, if this process can.
pub(super) fn arrive(library: &Library, board: &'static Board, comm: Handle, name: &[u8], mode: i64) -> Option<&'static Seat> {
    if library.access_mode(mode) & SEQUENTIAL != 0 {
        return None;
    }
    let path = names::absolute(libc::AT_FDCWD, name).ok()?;
    let members = job::members(library, comm, job::real_name(&path)?.as_bytes())?;
    let path = path.as_bytes();
    if members.size < 2 {
        return None;
    }
    let Some(opening) = job::begin_opening(members.key) else {
        board.unposted.fetch_add(1, Relaxed);
        return None;
    };
    let Some((seat, post)) = take(board, &members, &opening) else {
        job::end_opening(members.key);
        return None;
    };
    // SAFETY: of this thread alone, for the seat is taken.
    unsafe {
        *seat.own.get() = [UNUSED; 2];
        *seat.showed.get() = None;
        let kept = &mut *seat.name.get();
        kept.1 = path.len().min(NAME_BYTES_MAX);
        for (to, from) in kept.0.iter_mut().zip(path) {
            *to = *from;
        }
    }
    seat.post.store(core::ptr::from_ref(post).cast_mut(), Relaxed);
    for note in &seat.notes {
        note.store(core::ptr::null_mut(), Relaxed);
    }
    for word in [&seat.has_gaps, &seat.views, &seat.going_on, &seat.is_left, &seat.counted] {
        word.store(0, Relaxed);
    }
    // The view that a file is opened with has no gaps.
    seat.are_alike.store(1, Relaxed);
    seat.place.store(0, Relaxed);
    seat.frame.store(0, Relaxed);
    seat.etype_bytes.store(1, Relaxed);
    seat.end.store(-1, Relaxed);
    seat.is_atomic.store(0, Relaxed);
    seat.key.store(members.key, Relaxed);
    Some(seat)
}

/// A seat for this process, and the post that all of them share.
fn take(board: &'static Board, members: &Members, opening: &Begun) -> Option<(&'static Seat, &'static Post)> {
    if opening.overlaps {
        // Another thread opens the same file with the same processes: which of theirs is which cannot be told.
        let before = opening.number.saturating_sub(OVERLAPPED_MAX)..opening.number;
        before.filter_map(|number| board.post(job::mixed(members.key, number))).for_each(Post::refuse);
        return None;
    }
    let place = HANDLES.iter().position(|handle| handle.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_ok())?;
    USED.fetch_max(place + 1, AcqRel);
    let seat = ALL.get(place)?;
    let post = board.arrive(job::mixed(members.key, opening.number), members.size, &job::processors());
    if let Some(post) = post.filter(|_| job::overlaps(members.key)) {
        // The other thread has not found the post, perhaps.
        post.refuse();
    }
    if post.is_none() {
        seat.set_handle(FREE);
    }
    Some((seat, post?))
}

impl Seat {
    fn place(&self) -> usize {
        (core::ptr::from_ref(self).addr() - ALL.as_ptr().addr()) / size_of::<Seat>()
    }

    fn handle(&self) -> Handle {
        HANDLES.get(self.place()).map_or(FREE, |handle| handle.load(Relaxed))
    }

    fn set_handle(&self, handle: Handle) {
        if let Some(there) = HANDLES.get(self.place()) {
            there.store(handle, Release);
        }
    }

    fn post(&self) -> Option<&'static Post> {
        // SAFETY: in the board, which stays mapped.
        unsafe { self.post.load(Relaxed).as_ref() }
    }

    /// After the open, with what it made, and the descriptor where that is a store's file; where it failed the handle is none.
    pub fn opened(&self, library: &Library, handle: Option<Handle>, managed: Option<i32>, took_ticks: u64) {
        job::end_opening(self.key.load(Relaxed));
        self.floor_ticks.store(took_ticks, Relaxed);
        let Some(post) = self.post() else { return };
        let Some(handle) = handle.filter(|handle| *handle > TAKEN) else {
            post.refuse();
            self.leave();
            return;
        };
        if library.meeting.is_none() || !post.is_on(|| left(library, handle)) {
            self.leave();
            return;
        }
        if let Some(old) = of(handle) {
            // It was closed unseen.
            old.leave();
        }
        self.sieving.opened(post, managed);
        self.set_handle(handle);
        sw_mpi_watched.fetch_or(TUNED, Relaxed);
    }

    fn free_place(&self) {
        let place = self.place.swap(0, Relaxed);
        if let Some(library) = library::get().filter(|_| place != 0) {
            library.leave_meeting_place(place);
        }
    }

    /// Gives the seat back, and the post where this is the last process.
    fn leave(&self) {
        if let (Some(post), Some(board)) = (self.post(), board())
            && post.close()
        {
            board.free(post);
        }
        self.post.store(core::ptr::null_mut(), Relaxed);
        self.set_handle(FREE);
    }

    /// After the file was closed.
    pub fn closed(&self) {
        self.free_place();
        let (Some(post), Some(board)) = (self.post(), board()) else { return };
        // SAFETY: of the thread that closes the file.
        let used = unsafe { *self.own.get() };
        for (used, note) in used.iter().zip(&self.notes) {
            // SAFETY: in the board.
            let Some(note) = (unsafe { note.load(Relaxed).as_ref() }) else { continue };
            note.calls.fetch_add(used.calls, Relaxed);
            note.independent.fetch_add(used.independent, Relaxed);
            note.bytes.fetch_add(used.bytes, Relaxed);
            if note.operation.load(Relaxed) == Operation::Read as u32 && used.independent > 0 {
                self.sieving.note(&note.sieving);
            }
        }
        if post.close() {
            for (note, operation) in self.notes.iter().zip(OPERATIONS) {
                // SAFETY: in the board; no process uses the post any more.
                if let (Some(note), Some(decider)) = unsafe { (note.load(Relaxed).as_ref(), post.lane(operation).decider()) } {
                    // SAFETY: as above.
                    write_down(note, unsafe { &*decider });
                }
            }
            board.free(post);
        }
        self.post.store(core::ptr::null_mut(), Relaxed);
        self.set_handle(FREE);
    }

    /// Begins a collective call: whether it is made independently. `bytes` are asked for before the first one.
    pub(super) fn begin(&self, library: &Library, operation: Operation, bytes: impl FnOnce() -> u64) -> bool {
        let (Some(post), Some(board)) = (self.post(), board()) else { return false };
        // SAFETY: of the one thread that makes a collective call on the file.
        let Some(used) = (unsafe { &mut *self.own.get() }).get_mut(operation as usize) else { return false };
        if used.calls == 0
            && let Some(at) = self.notes.get(operation as usize)
        {
            // SAFETY: as above.
            let (name, length) = unsafe { &*self.name.get() };
            let note = board.note(name.get(..*length).unwrap_or(&[]), operation, post.size());
            at.store(note.map_or(core::ptr::null_mut(), |note| core::ptr::from_ref(note).cast_mut()), Relaxed);
        }
        let first = || self.first(post, board, operation, bytes);
        let mode = post.begin(&mut used.own, first, operation);
        // What all processes know alike.
        let may_be = self.is_atomic.load(Relaxed) == 0 && self.is_left.load(Relaxed) == 0;
        let mut is_independent = mode == Mode::Independent && may_be && (operation == Operation::Read || self.is_safe(library, post));
        if is_independent && !self.meet(library, post, operation) {
            // MPI has no communicator for that any more.
            is_independent = false;
            self.is_left.store(1, Relaxed);
        }
        if is_independent && operation == Operation::Read {
            self.sieving.before_read(library, self.handle());
        }
        used.is_measured = may_be && is_independent == (mode == Mode::Independent);
        used.calls += 1;
        used.independent += u64::from(is_independent);
        self.going_on.fetch_or(if is_independent { independent_bit(operation) } else { JOINED }, Relaxed);
        is_independent
    }

    /// Whether an independent write changes nothing but its own bytes; all processes get the same answer.
    fn is_safe(&self, library: &Library, post: &Post) -> bool {
        if self.are_alike.load(Relaxed) != 0 && self.has_gaps.load(Relaxed) == 0 {
            // Nothing is sieved behind views without gaps, and nobody has to be told: what all do together costs turns on processors.
            return true;
        }
        // What other libraries do between the pieces of a write is not known.
        post.has(Post::ROMIO) && self.sieving.is_write_safe(library, self.handle())
    }

    /// Before an independent call: waits where others may still be at what this process must not overtake. An aggregator may write later what it was given
    /// in a collective call, and that MPI has calls of one kind see what those of the other kind did before, as they would if all were collective. False
    /// where they cannot, any of them.
    fn meet(&self, library: &Library, post: &Post, operation: Operation) -> bool {
        let mine = independent_bit(operation);
        if self.going_on.load(Relaxed) & !mine == 0 {
            return true;
        }
        let mut place = self.place.load(Relaxed);
        if place == 0 {
            let Some(made) = library.meeting_place(self.handle(), post.tag()) else { return false };
            place = made;
            self.place.store(place, Relaxed);
        }
        library.meet(place);
        self.going_on.store(0, Relaxed);
        true
    }

    /// What a collective call takes at least, as far as can be told before the first one: as long as the open, and where processes wait for processors a turn
    /// of each on one.
    fn floor_ticks(&self, post: &Post, board: &Board) -> u64 {
        let open = self.floor_ticks.load(Relaxed);
        if !is_crowded(post) {
            return open;
        }
        let (ticks, ns) = calibrate();
        let (ticks, ns) = (ticks.saturating_sub(board.ticks.load(Relaxed)), ns.saturating_sub(board.ns.load(Relaxed)));
        let turns_ns = u128::from(post.size()) * u128::from(TURN_NS);
        open.max(u64::try_from(turns_ns * u128::from(ticks) / u128::from(ns.max(1))).unwrap_or(u64::MAX))
    }

    fn first(&self, post: &Post, board: &Board, operation: Operation, bytes: impl FnOnce() -> u64) -> Begin {
        // SAFETY: in the board.
        let note = self.notes.get(operation as usize).and_then(|note| unsafe { note.load(Relaxed).as_ref() });
        let left = if post.has(Post::DEFERRED) {
            Some(Reason::Deferred)
        } else {
            (post.is_left(operation) || post.is_given(operation)).then_some(Reason::Given)
        };
        let (crowded, strided) = (is_crowded(post), self.has_gaps.load(Relaxed) != 0);
        let is_exchanged = operation == Operation::Write && crowded && strided;
        let scattered = if is_exchanged { self.sieving.gain_of_joining(bytes(), post.size(), u64::from(post.size()) * TURN_NS) } else { None };
        Begin {
            operation,
            policy: Policy::of(board.policy.load(Relaxed)),
            strided,
            crowded,
            scattered,
            left,
            known: note.and_then(Note::known),
            floor_ticks: self.floor_ticks(post, board),
        }
    }

    /// After a collective call that is not decided on; one with a request may end at any time, and calls are left alone from then on.
    pub(super) fn joined(&self, has_request: bool) {
        self.going_on.fetch_or(JOINED, Relaxed);
        if has_request {
            self.is_left.store(1, Relaxed);
        }
    }

    /// Ends it; `at` in elementary types, where it has an offset of its own.
    pub(super) fn end(&self, operation: Operation, at: Option<i64>, bytes: u64, ticks: u64) {
        let Some(post) = self.post() else { return };
        // SAFETY: of the one thread that makes a collective call on the file.
        let Some(used) = (unsafe { &mut *self.own.get() }).get_mut(operation as usize) else { return };
        used.bytes = used.bytes.saturating_add(bytes);
        self.sieving.requested(bytes);
        let at = at.map(|at| at.saturating_mul(self.etype_bytes.load(Relaxed) as i64));
        let before = at.map_or(-1, |at| self.end.swap(at.saturating_add(bytes as i64), Relaxed));
        let leaves_gap = at.is_some_and(|at| before >= 0 && at > before);
        let strided = self.has_gaps.load(Relaxed) != 0 || leaves_gap;
        if used.is_measured {
            post.end(&mut used.own, Made { ticks, bytes, strided }, operation);
        }
    }

    /// After a call that MPI has refused for its arguments: it may be made again.
    pub(super) fn take_back(&self, operation: Operation) {
        // SAFETY: of the one thread that makes a collective call on the file.
        if let Some(used) = unsafe { &mut *self.own.get() }.get_mut(operation as usize) {
            used.own.take_back();
            used.calls = used.calls.saturating_sub(1);
        }
    }

    /// Whether a collective call whose symbol has its frame there is the program's, and not one that a tool makes in another one of these.
    pub(super) fn is_programs(&self, frame: usize) -> bool {
        let outer = self.frame.load(Relaxed);
        outer == 0 || frame >= outer
    }

    pub(super) fn set_frame(&self, frame: usize) {
        self.frame.store(frame, Relaxed);
    }

    /// Before the file is closed: whoever opens one meanwhile may be given its handle.
    pub(super) fn closing(&self) {
        self.set_handle(TAKEN);
    }

    /// After a close that MPI has refused.
    pub(super) fn not_closed(&self, handle: Handle) {
        self.set_handle(handle);
    }

    pub fn set_atomic(&self, is_atomic: bool) {
        self.is_atomic.store(u32::from(is_atomic), Relaxed);
    }
}

/// Whether hints of the program's do not count.
fn is_overridden() -> bool {
    board().is_none_or(|board| board.overrides.load(Relaxed) != 0)
}

/// In [`Seat::going_on`]: a collective call as the program makes it.
const JOINED: u32 = 1;

/// In [`Seat::going_on`]: collective calls of a kind that are made independently.
const fn independent_bit(operation: Operation) -> u32 {
    match operation {
        Operation::Read => 2,
        Operation::Write => 4,
    }
}
