//! IO-Engine in the program: collective calls on files that all processes of a job have open on one machine are made in the mode that they decide on together
//! (`stripewise_engine::shared`). A call that is made independently moves the same bytes, and the same file pointer.

use super::library::{self, Handle, Library};
use super::meet::SIEVING;
use super::opening::without_driver;
use super::seat::{self, Seat};
use super::{Call, SET_INFO};
use crate::base::{config, sys};
use crate::trace;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::*};
use stripewise_engine::shared::board::{Board, MAGIC, Note, Post, lane_bit};
use stripewise_engine::shared::site::{Decider, mode_number};
use stripewise_engine::{Mode, Operation};
use stripewise_trace::clock::now_ticks;
use stripewise_trace::{Op, flags};

/// Null: not mapped yet; [`NO_BOARD`]: there is none.
static BOARD: AtomicPtr<Board> = AtomicPtr::new(core::ptr::null_mut());
const NO_BOARD: *mut Board = core::ptr::without_provenance_mut(8);

/// Hints that say how collective calls are carried out.
pub(super) const GIVEN: [(&CStr, u32); 2] = [(c"romio_cb_read", lane_bit(Operation::Read)), (c"romio_cb_write", lane_bit(Operation::Write))];

/// Classes of errors for arguments, which MPI finds before anything is done: MPI_ERR_BUFFER, COUNT, TYPE, ARG (12 or 13), ACCESS.
const REFUSED: [u16; 6] = [1, 2, 3, 12, 13, 20];

/// The run's board.
pub(super) fn board() -> Option<&'static Board> {
    let mut there = BOARD.load(Acquire);
    if there.is_null() {
        let found = config::engine_board().and_then(map).unwrap_or(NO_BOARD);
        there = match BOARD.compare_exchange(core::ptr::null_mut(), found, AcqRel, Acquire) {
            Ok(_) => found,
            // Another thread's stays; ours is left mapped.
            Err(first) => first,
        };
    }
    // SAFETY: mapped for good, and made of atomics and of cells with rules of their own.
    (there != NO_BOARD).then(|| unsafe { &*there })
}

/// A file that is this user's alone, as `run` makes it.
fn map(path: &CStr) -> Option<*mut Board> {
    let fd = sys::open(path, libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC, 0).ok()?;
    let size = size_of::<Board>();
    let is_ours = |st: &libc::stat| {
        st.st_mode & libc::S_IFMT == libc::S_IFREG && st.st_mode & 0o077 == 0 && st.st_uid == sys::geteuid() && st.st_size as u64 == size as u64
    };
    let mapped = sys::fstat(fd).ok().filter(is_ours).and_then(|_| sys::mmap(fd, size, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED).ok());
    sys::close(fd);
    let board = mapped?.cast::<Board>();
    // SAFETY: as long as the type, and of words alone.
    (unsafe { &*board }.magic.load(Relaxed) == MAGIC).then_some(board)
}

/// Whether a call on a file is looked at.
pub fn concerns(seat: Option<&Seat>, op: u32, bits: u32) -> bool {
    seat.is_some()
        && match op {
            op if op == Op::MpiRead as u32 || op == Op::MpiWrite as u32 => bits & flags::COLLECTIVE != 0,
            op => [Op::View as u32, Op::MpiClose as u32, Op::MpiAtomicity as u32, SET_INFO].contains(&op),
        }
}

/// Whether a call is one of those that are decided on, or changes what is known of them.
pub fn is_decided(op: u32, bits: u32) -> bool {
    let moves = op == Op::MpiRead as u32 || op == Op::MpiWrite as u32;
    moves && bits & (flags::COLLECTIVE | flags::NONBLOCKING | flags::SHARED) == flags::COLLECTIVE
}

/// Before an open, which all processes of the communicator begin before one leaves it: this one takes part, if it can.
///
/// # Safety
/// `call` was begun; `comm` and `name` are the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_arrive(call: *mut Call, comm: Handle, name: *const c_char, mode: i32) {
    if !config::has_engine() || name.is_null() {
        return;
    }
    let (Some(library), Some(board)) = (library::get(), board()) else { return };
    let saved = trace::c_errno();
    // SAFETY: the caller's promise.
    let name = without_driver(unsafe { CStr::from_ptr(name) }).to_bytes();
    // SAFETY: as above.
    unsafe { (*call).seat = seat::arrive(library, board, comm, name, i64::from(mode)) };
    trace::set_c_errno(saved);
}

fn operation_of(call: &Call) -> Operation {
    if call.what as u16 == Op::MpiRead as u16 { Operation::Read } else { Operation::Write }
}

/// How a collective call is made: `next`, or the function of the same arguments that makes it independently; `count_bytes` are those of its count. One that
/// MPI will refuse is none: the others need not know of it.
///
/// # Safety
/// `call` was begun.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_chosen(call: *mut Call, next: *mut c_void, count_bytes: usize, n: i64, datatype: Handle) -> *mut c_void {
    // SAFETY: the caller's promise.
    let call = unsafe { &mut *call };
    let (Some(seat), Some(library)) = (call.seat, library::get()) else { return next };
    let has_offset = call.flags() & flags::IMPLICIT_OFFSET == 0;
    if n < 0 || !library.is_type(datatype) || has_offset && call.given < 0 {
        seat.set_frame(0);
        call.seat = None;
        return next;
    }
    let operation = operation_of(call);
    if seat.begin(library, operation) {
        library.independent(operation, call.flags() & flags::IMPLICIT_OFFSET != 0, count_bytes == 8).unwrap_or(next)
    } else {
        next
    }
}

/// Before a view is set.
///
/// # Safety
/// `call` was begun; `filetype` is the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_viewing(call: *mut Call, filetype: Handle) {
    // SAFETY: the caller's promise.
    if let (Some(seat), Some(library)) = (unsafe { &*call }.seat, library::get()) {
        seat.viewing(library, filetype);
    }
}

/// After a call that was looked at; `has_request`: that completes it.
pub fn moved(call: &Call, result: i32, bytes: u64, has_request: bool) {
    if let Some(seat) = call.seat {
        seat.set_frame(0);
        if REFUSED.contains(&super::status::error_class(result))
            && call.flags() & (flags::COLLECTIVE | flags::NONBLOCKING | flags::SHARED) == flags::COLLECTIVE
        {
            seat.take_back(operation_of(call));
            return;
        }
    }
    if let Some(seat) = call.seat.filter(|_| call.flags() & flags::COLLECTIVE != 0) {
        // By the shared pointer, or split, or with a request.
        if call.flags() & (flags::SHARED | flags::NONBLOCKING) != 0 {
            seat.joined(has_request);
        }
    }
    if let Some(seat) = call.seat.filter(|_| call.flags() & (flags::COLLECTIVE | flags::NONBLOCKING | flags::SHARED) == flags::COLLECTIVE) {
        let at = (call.flags() & flags::IMPLICIT_OFFSET == 0).then_some(call.given);
        seat.end(operation_of(call), at, bytes, now_ticks().saturating_sub(call.start));
    }
}

/// Whether a filetype leaves gaps; none: MPI does not say.
pub(super) fn has_gaps(library: &Library, filetype: Handle) -> Option<bool> {
    let (mut bytes, mut lower, mut extent) = (0, 0, 0);
    // SAFETY: MPI's prototypes.
    let is_known = unsafe {
        (library.type_size_x)(filetype, &raw mut bytes) == 0 && (library.type_get_extent_x)(filetype, &raw mut lower, &raw mut extent) == 0
    };
    is_known.then_some(bytes < extent)
}

/// Whether processes wait for turns on processors.
pub(super) fn is_crowded(post: &Post) -> bool {
    (1..post.size()).contains(&post.processors())
}

/// The lanes of a file that its hints in force have decided on: those of its user, of whatever origin.
pub(super) fn left(library: &Library, file: Handle) -> u32 {
    let (Some(asking), Some(board)) = (&library.asking, board()) else { return 0 };
    let (mut info, mut lanes, mut text): (Handle, u32, [u8; 16]) = (0, 0, [0; 16]);
    // SAFETY: MPI's prototype; the file is open.
    if unsafe { (asking.of_file)(file, &raw mut info) } != 0 || !library.is_info(info) {
        return 0;
    }
    let mut is = |key: &CStr, values: &[&[u8]]| library.value(info, key, &mut text).is_some_and(|value| values.contains(&value));
    if is(c"romio_no_indep_rw", &[b"true"]) {
        lanes |= Post::DEFERRED;
    }
    if is(SIEVING, &[b"automatic", b"disable", b"enable"]) {
        lanes |= Post::ROMIO;
    }
    if is(SIEVING, &[b"enable"]) && board.overrides.load(Relaxed) == 0 {
        lanes |= lane_bit(Operation::Write);
    }
    if board.overrides.load(Relaxed) == 0 {
        for (key, lane) in GIVEN {
            if is(key, &[b"enable", b"disable"]) {
                lanes |= lane;
            }
        }
    }
    // SAFETY: as above.
    unsafe { (asking.free)(&raw mut info) };
    lanes
}

/// Writes down what became of a site, of one who knows that nobody decides any more.
pub(super) fn write_down(note: &Note, decider: &Decider) {
    let contest = &decider.contest;
    note.opens.fetch_add(1, Relaxed);
    note.contests.fetch_add(contest.contests, Relaxed);
    note.changes.fetch_add(contest.changes, Relaxed);
    note.mode.store(mode_number(contest.mode()), Relaxed);
    note.reason.store(decider.reason, Relaxed);
    note.ratio.store(contest.ratio().unwrap_or(0.0).to_bits(), Relaxed);
    for (price, mode) in note.price.iter().zip([Mode::Collective, Mode::Independent]) {
        price.store(contest.price(mode).unwrap_or(0.0).to_bits(), Relaxed);
    }
    note.pattern.store(if decider.strided > decider.contiguous { 1 } else { 2 }, Relaxed);
}
