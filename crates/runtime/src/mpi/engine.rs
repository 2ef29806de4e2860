//! IO-Engine in the program: collective calls on files that all processes of a job have open on one machine are made in the mode that they decide on together
//! (`stripewise_engine::shared`). A call that is made independently moves the same bytes, and the same file pointer.

use super::library::{self, Handle};
use super::opening::without_driver;
use super::seat::{self, Seat};
use super::{Call, SET_INFO};
use crate::base::{config, sys};
use crate::trace;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::*};
use stripewise_engine::Operation;
use stripewise_engine::shared::board::{Board, MAGIC};
use stripewise_trace::clock::now_ticks;
use stripewise_trace::{Op, flags};

/// Null: not mapped yet; [`NO_BOARD`]: there is none.
static BOARD: AtomicPtr<Board> = AtomicPtr::new(core::ptr::null_mut());
const NO_BOARD: *mut Board = core::ptr::without_provenance_mut(8);

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

/// How a collective call is made: `next`, or the function of the same arguments that makes it independently; `count_bytes` are those of its count.
///
/// # Safety
/// `call` was begun.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_chosen(call: *mut Call, next: *mut c_void, count_bytes: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    let call = unsafe { &*call };
    let (Some(seat), Some(library)) = (call.seat, library::get()) else { return next };
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
pub fn moved(call: &Call, bytes: u64, has_request: bool) {
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
