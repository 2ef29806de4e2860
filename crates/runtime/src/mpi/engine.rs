//! IO-Engine in the program: collective calls on files that all processes of a job have open on one machine are made in the mode that they decide on together
//! (`stripewise_engine::shared`). A call that is made independently moves the same bytes, and the same file pointer.

use super::board::board;
use super::library::{self, Handle};
use super::opening::without_driver;
use super::seat::{self, Seat};
use super::{Call, SET_INFO, bytes_of};
use crate::base::config;
use crate::trace;
use core::ffi::{CStr, c_char, c_void};
use stripewise_engine::Operation;
use stripewise_trace::clock::now_ticks;
use stripewise_trace::{Op, flags};

/// Classes of errors for arguments, which MPI finds before anything is done: MPI_ERR_BUFFER, COUNT, TYPE, ARG (12 or 13), ACCESS.
const REFUSED: [u16; 6] = [1, 2, 3, 12, 13, 20];

/// Whether a call on a file is looked at.
pub fn concerns(seat: Option<&Seat>, op: u32, bits: u32) -> bool {
    seat.is_some()
        && match op {
            op if op == Op::MpiRead as u32 || op == Op::MpiWrite as u32 => bits & flags::COLLECTIVE != 0,
            op => [Op::View as u32, Op::MpiClose as u32, Op::MpiAtomicity as u32, SET_INFO].contains(&op),
        }
}

/// Whether a call is one of those that are decided on.
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
    if seat.begin(library, operation, || bytes_of(library, n, datatype).unwrap_or(0)) {
        library.independent(operation, call.flags() & flags::IMPLICIT_OFFSET != 0, count_bytes == 8).unwrap_or(next)
    } else {
        next
    }
}

/// Before a view is set.
///
/// # Safety
/// `call` was begun; `filetype` and `info` are the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_viewing(call: *mut Call, filetype: Handle, info: Handle) {
    // SAFETY: the caller's promise.
    if let (Some(seat), Some(library)) = (unsafe { &*call }.seat, library::get()) {
        seat.viewing(library, filetype, info);
    }
}

/// After a call that moves bytes and was looked at; `has_request`: that completes it.
pub fn moved(call: &Call, result: i32, bytes: u64, has_request: bool) {
    let Some(seat) = call.seat.filter(|_| call.flags() & flags::COLLECTIVE != 0) else { return };
    if !is_decided(u32::from(call.what as u16), call.flags()) {
        // By the shared pointer, or split, or with a request.
        seat.joined(has_request);
        return;
    }
    seat.set_frame(0);
    if REFUSED.contains(&super::status::error_class(result)) {
        seat.take_back(operation_of(call));
        return;
    }
    let at = (call.flags() & flags::IMPLICIT_OFFSET == 0).then_some(call.given);
    seat.end(operation_of(call), at, bytes, now_ticks().saturating_sub(call.start));
}
