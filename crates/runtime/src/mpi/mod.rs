//! MPI-IO calls, recorded as the program makes them: the logical layer of the trace, before collective optimisation. The shim (shim/mpi.c) has the symbols
//! and calls here before and after; the outermost call of a thread is recorded, and what the MPI library reads and writes meanwhile stands in the same
//! thread's log before it, from which `collect` knows it for the call's own.
//!
//! Offsets are recorded as bytes of the view's data. Which bytes of the file these are, `collect` works out from the view's description.

mod board;
mod counts;
mod describe;
mod engine;
mod files;
mod functions;
mod hints;
mod intent;
mod job;
mod library;
mod meet;
mod opening;
mod redirect;
mod requests;
mod room;
mod seat;
mod status;
mod striping;
mod waits;

use crate::base::config;
use crate::base::tls;
use crate::copies;
use crate::trace;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use describe::Described;
use files::{MpiFile, layers};
use library::{Handle, Library};
use requests::{Claim, Request};
use status::error_class;
use stripewise_trace::clock::now_ticks;
use stripewise_trace::{Op, Record, flags};

/// Whether calls are looked at, and what for: what the shim asks first.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static sw_mpi_watched: AtomicU32 = AtomicU32::new(0);
/// The mpi layer is recorded.
const TRACED: u32 = 1;
/// A file with copies was opened: reads of it are redirected.
const SERVED: u32 = 2;
/// A file was opened whose collective calls are decided on.
const TUNED: u32 = 4;

/// The number of MPI_File_set_info in the shim, of which no record is kept.
const SET_INFO: u32 = Op::MpiAtomicity as u32 + 1;

/// Answers of `sw_mpi_serve`: `SW_MPI_PASSED` and its kin of the shim.
const PASSED: i32 = 0;
const SERVED_WHOLE: i32 = 1;
const REFUSED: i32 = 2;

/// Recorded where a file does not say otherwise.
static LAYERS: AtomicU32 = AtomicU32::new(layers::BOTH);

/// Reads which layers are wanted (`both`, `posix`, `mpi`, `none`); none: something else.
fn layers_of(text: &[u8]) -> Option<u32> {
    match text {
        b"both" => Some(layers::BOTH),
        b"posix" => Some(layers::POSIX),
        b"mpi" => Some(layers::MPI),
        b"none" => Some(0),
        _ => None,
    }
}

/// The layers that a run is traced with.
#[derive(Clone, Copy)]
pub struct Layers(u32);

impl Layers {
    /// As STRIPEWISE_TRACE_LAYERS has them; both where it is not set, or to what we do not know.
    pub fn named(text: Option<&[u8]>) -> Layers {
        Layers(text.and_then(layers_of).unwrap_or(layers::BOTH))
    }

    pub fn has_posix(self) -> bool {
        self.0 & layers::POSIX != 0
    }
}

/// When tracing has begun. The symbols are looked at even where the layer is not wanted: a file may ask for it.
pub fn start(which: Layers) {
    LAYERS.store(which.0, Relaxed);
    sw_mpi_watched.fetch_or(TRACED, Relaxed);
}

fn is_traced() -> bool {
    sw_mpi_watched.load(Relaxed) & TRACED != 0
}

/// A file with copies was opened: where an MPI-IO call of this thread has done that, its reads may be redirected.
pub fn copied_was_opened(fd: i32) {
    // SAFETY: this thread's own block.
    let thread = unsafe { &mut *tls::thread() };
    if thread.mpi != 0 {
        thread.mpi_copied = (i64::from(fd) + 1) as u64;
        sw_mpi_watched.fetch_or(SERVED, Relaxed);
    }
}

/// The same of a managed file, which may have some.
#[inline]
pub fn managed_was_opened(fd: i32) {
    // SAFETY: this thread's own block.
    let thread = unsafe { &mut *tls::thread() };
    if thread.mpi != 0 {
        thread.mpi_managed = (i64::from(fd) + 1) as u64;
        if opening::has_copies(fd) {
            copied_was_opened(fd);
        }
    }
}

/// `struct sw_mpi_call` of the shim.
#[repr(C)]
pub struct Call {
    start: u64,
    /// Bytes of the view's data, or the argument.
    at: i64,
    /// Operation, and flags above.
    what: u64,
    file: Option<&'static MpiFile>,
    /// The status that the call fills in; null: none is told.
    status: *const c_void,
    /// Of a call that waits.
    claim: Claim,
    /// Slots of the thread's log in use before it.
    used: u64,
    /// Bytes that copies have given.
    served: u64,
    /// Of a file whose collective calls are decided on.
    seat: Option<&'static seat::Seat>,
    /// The argument as it was given.
    given: i64,
    own_status: [u64; 4],
}

const _: () = assert!(core::mem::size_of::<Call>() == 128);

/// Enters a call whose symbol has its frame at `frame`; false inside another one. A frame that was left by a jump (an error handler's) is taken for gone
/// as soon as a call comes from the same depth or above it.
fn enter(frame: usize) -> bool {
    // SAFETY: this thread's own block.
    let outermost = unsafe { &mut (*tls::thread()).mpi };
    if *outermost != 0 && (frame as u64) < *outermost {
        return false;
    }
    *outermost = frame as u64;
    true
}

/// A call inside another one: what it makes of a file with copies is not looked at, so none of its reads is redirected any more.
#[cold]
fn inside(op: u32, file: Option<&'static MpiFile>) {
    if op == Op::View as u32 {
        // Of a file that is just being opened, too.
        // SAFETY: this thread's own block.
        unsafe { (*tls::thread()).mpi_copied = 0 };
    }
    if op == Op::View as u32 || op == Op::MpiClose as u32 {
        file.inspect(|file| file.served.end());
    }
}

fn leave() {
    // SAFETY: this thread's own block.
    unsafe {
        let thread = &mut *tls::thread();
        thread.mpi = 0;
        thread.mpi_muted = 0;
        thread.striping = [0; 7];
    }
}

fn mute() {
    // SAFETY: this thread's own block.
    unsafe { (*tls::thread()).mpi_muted = 1 }
}

impl Call {
    fn flags(&self) -> u32 {
        (self.what >> 16) as u32
    }

    fn is_recorded(&self) -> bool {
        is_traced() && self.file.map_or_else(|| LAYERS.load(Relaxed), |file| file.layers.load(Relaxed)) & layers::MPI != 0
    }

    /// Keeps the record of a call on its file.
    fn put(&self, result: i32, end: u64, offset: Option<u64>, requested: u64, done: i64) {
        let of = |field: fn(&MpiFile) -> &AtomicU32| self.file.map_or(0, |file| field(file).load(Relaxed));
        if self.is_recorded() {
            self.put_as(result, end, offset, requested, done, of(|f| &f.trace_id), of(|f| &f.number), of(|f| &f.comm_size));
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn put_as(&self, result: i32, end: u64, offset: Option<u64>, requested: u64, done: i64, file: u32, number: u32, comm_size: u32) {
        let mut bits = flags::MPI | self.flags() | if self.served > 0 { flags::COPIED } else { 0 };
        if offset.is_none() {
            bits |= flags::UNKNOWN_OFFSET;
        }
        trace::put_record(&Record {
            start_ticks: self.start,
            end_ticks: end,
            offset: offset.unwrap_or(0),
            requested_bytes: requested,
            done: if result == 0 { done } else { -1 },
            file,
            fd: number as i32,
            op: self.what as u16,
            errno: error_class(result),
            flags: bits,
            aux: comm_size,
            check: 0,
        });
    }
}

/// Begins a call; 0: nothing is recorded or redirected.
///
/// # Safety
/// `call` is writable; `file` is a handle that the program has given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_begin(call: *mut Call, frame: *const c_void, file: Handle, op: u32, bits: u32, at: i64) -> i32 {
    let Some(library) = library::get() else { return 0 };
    let found = if file == 0 { None } else { files::find(file) };
    let seat = if config::has_engine() { seat::of(file) } else { None };
    let concerns_copies = || op == Op::MpiOpen as u32 || found.is_some_and(|file| file.served.concerns(op, bits));
    if !is_traced() && !concerns_copies() && !engine::concerns(seat, op, bits) {
        return 0;
    }
    // All processes look at the same collective calls: also where one of them has left an earlier call by a jump.
    let decides = seat.filter(|_| engine::is_decided(op, bits));
    if !enter(frame as usize) {
        let Some(seat) = decides.filter(|seat| seat.is_programs(frame as usize)) else {
            inside(op, found);
            return 0;
        };
        leave();
        seat.set_frame(0);
        enter(frame as usize);
    }
    if let Some(seat) = decides {
        seat.set_frame(frame as usize);
    }
    if let Some(seat) = seat.filter(|_| op == Op::MpiClose as u32) {
        seat.closing();
    }
    if op == Op::MpiOpen as u32 {
        // SAFETY: this thread's own block.
        unsafe { ((*tls::thread()).mpi_copied, (*tls::thread()).mpi_managed) = (0, 0) };
    }
    if found.is_some_and(|file| file.layers.load(Relaxed) & layers::POSIX == 0) {
        mute();
    }
    let (given, mut at) = (at, at);
    let moves = op == Op::MpiRead as u32 || op == Op::MpiWrite as u32;
    if let Some(found) = found.filter(|_| moves || op == Op::MpiSeek as u32) {
        if bits & flags::IMPLICIT_OFFSET != 0 && moves {
            at = 0;
            // SAFETY: MPI's prototype; the file is open.
            if unsafe { (library.get_position)(file, &raw mut at) } != 0 {
                at = -1;
            }
        }
        let etype_bytes = found.etype_bytes.load(Relaxed) as i64;
        at = at.checked_mul(etype_bytes).filter(|_| etype_bytes != 0).unwrap_or(i64::MIN);
    }
    // SAFETY: the caller's promise. The status stays as it was: it is not read unless a call has filled it in.
    unsafe {
        (&raw mut (*call).at).write(at);
        (&raw mut (*call).what).write(u64::from(op) | u64::from(bits) << 16);
        (&raw mut (*call).file).write(found);
        (&raw mut (*call).status).write(core::ptr::null());
        (&raw mut (*call).served).write(0);
        (&raw mut (*call).seat).write(seat);
        (&raw mut (*call).given).write(if op == Op::MpiClose as u32 { file as i64 } else { given });
        (&raw mut (*call).start).write(now_ticks());
        // Of other reads copies are asked first.
        if op != Op::MpiRead as u32 || bits & (flags::SHARED | flags::NONBLOCKING) != 0 {
            (*call).will_move();
        }
    }
    1
}

/// Whether files that are opened may have copies, or new ones stripes that they are asked for.
#[unsafe(no_mangle)]
pub extern "C" fn sw_mpi_may_serve() -> i32 {
    i32::from(copies::may_be_there() || config::has_engine())
}

/// Whether copies have given all bytes of a read (1), which then is not made, or MPI refuses it (2), with `result`.
///
/// # Safety
/// `call` was begun; the program's buffer for `n` elements of `datatype`; `result` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_serve(call: *mut Call, buffer: *mut c_void, n: i64, datatype: Handle, result: *mut i32) -> i32 {
    // SAFETY: the caller's promise.
    let (call, result) = unsafe { (&mut *call, &mut *result) };
    let how = redirect::serve(call, buffer, n, datatype, result);
    if how == PASSED {
        call.will_move();
    }
    how
}

/// Bytes of `n` elements; none: the type is not known, or too much.
fn bytes_of(library: &Library, n: i64, datatype: Handle) -> Option<u64> {
    let mut size = 0;
    // SAFETY: MPI's prototype; the call has taken the type for valid.
    let result = unsafe { (library.type_size_x)(datatype, &raw mut size) };
    u64::try_from(size).ok().filter(|_| result == 0)?.checked_mul(u64::try_from(n).ok()?)
}

/// Ends a call that moves bytes: done, or begun where it has a request or is split.
///
/// # Safety
/// `call` was begun and the call has returned; `request` is what it filled in, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_moved(call: *mut Call, result: i32, n: i64, datatype: Handle, request: *const c_void) {
    let end = now_ticks();
    // SAFETY: the caller's promise.
    let call = unsafe { &*call };
    call.has_moved();
    if let Some(library) = library::get() {
        if result == 0 && call.served > 0 {
            // SAFETY: the status that `sw_mpi_status` has given.
            unsafe { library.tell_bytes(call.status.cast_mut(), call.served as i64) };
        }
        // Where the call has failed, the type may be none.
        let asked = if result == 0 { bytes_of(library, n, datatype).unwrap_or(0) } else { 0 };
        engine::moved(call, result, asked, !request.is_null());
        let place = u64::try_from(call.at).ok().filter(|_| call.flags() & flags::SHARED == 0 && call.file.is_some());
        let mut done = asked as i64;
        if call.flags() & flags::NONBLOCKING != 0 && is_traced() {
            let number = requests::new_number();
            done = i64::from(number);
            if result == 0 {
                // SAFETY: the caller's promise.
                unsafe { begun(library, call, number, asked, request) };
            }
        } else if result == 0 && !call.status.is_null() {
            // SAFETY: the call has filled it in.
            done = unsafe { library.bytes_of(call.status) }.map_or(done, |bytes| bytes.min(done));
        }
        call.put(result, end, place, asked, done);
    }
    leave();
}

/// A request is under way.
unsafe fn begun(library: &Library, call: &Call, number: u32, asked: u64, request: *const c_void) {
    let Some(file) = call.file else { return };
    if request.is_null() {
        file.split_bytes.store(asked, Relaxed);
        file.split.store(number, Relaxed);
    } else {
        let known = Request {
            number,
            file: file.number.load(Relaxed),
            comm_size: file.comm_size.load(Relaxed),
            trace_id: file.trace_id.load(Relaxed),
            bytes: asked,
            layers: file.layers.load(Relaxed),
        };
        // SAFETY: the caller's promise.
        requests::insert(unsafe { library.at(request, 0) }, &known);
    }
}

/// Ends the second half of a split collective call.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_split_ended(call: *mut Call, result: i32) {
    let end = now_ticks();
    // SAFETY: the caller's promise.
    let call = unsafe { &*call };
    let number = call.file.map_or(0, |file| file.split.swap(0, Relaxed));
    let asked = call.file.map_or(0, |file| file.split_bytes.load(Relaxed));
    let told = library::get().filter(|_| result == 0 && !call.status.is_null());
    // SAFETY: the call has filled it in.
    let done = told.and_then(|library| unsafe { library.bytes_of(call.status) }).map_or(asked as i64, |bytes| bytes.min(asked as i64));
    call.put(result, end, (number != 0).then_some(u64::from(number)), asked, done);
    leave();
}

/// Ends MPI_File_close.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_closed(call: *mut Call, result: i32) {
    // SAFETY: the caller's promise.
    let call = unsafe { &*call };
    call.put(result, now_ticks(), Some(0), 0, 0);
    if let Some(file) = call.file.filter(|_| result == 0) {
        file.forget();
    }
    if let Some(seat) = call.seat {
        if result == 0 {
            seat.closed();
        } else {
            seat.not_closed(call.given as Handle);
        }
    }
    leave();
}

/// Ends MPI_File_delete.
///
/// # Safety
/// As above; `name` is the program's string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_deleted(call: *mut Call, result: i32, name: *const c_char) {
    let end = now_ticks();
    // SAFETY: the caller's promise.
    let call = unsafe { &*call };
    if !name.is_null() && call.is_recorded() {
        // SAFETY: the caller's promise.
        let id = opening::file_id(unsafe { CStr::from_ptr(name) });
        call.put_as(result, end, Some(0), 0, 0, id, 0, 0);
    }
    leave();
}

/// Ends MPI_File_set_view.
///
/// # Safety
/// As above; `representation` is the program's string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_viewed(call: *mut Call, result: i32, etype: Handle, filetype: Handle, representation: *const c_char, info: Handle) {
    let end = now_ticks();
    // SAFETY: the caller's promise.
    let call = unsafe { &*call };
    if let (Some(library), Some(seat)) = (library::get(), call.seat) {
        seat.viewed(library, (result == 0).then_some((etype, filetype)));
        if result == 0 {
            seat.informed(library, info);
        }
    }
    if let (Some(library), Some(file), 0) = (library::get(), call.file, result) {
        // SAFETY: the caller's promise. Other representations have other sizes.
        let native = !representation.is_null() && unsafe { CStr::from_ptr(representation) }.to_bytes().eq_ignore_ascii_case(b"native");
        let etype_bytes = bytes_of(library, 1, etype).filter(|bytes| native && *bytes > 0).unwrap_or(0);
        let is_recorded = call.is_recorded();
        let described = if is_recorded || file.served.has_copies() { describe::describe(library, filetype) } else { None };
        let view = if is_recorded { described.as_ref().and_then(Described::number) } else { Some(0) };
        file.etype_bytes.store(if view.is_some() { etype_bytes } else { 0 }, Relaxed);
        // MPI_DISPLACEMENT_CURRENT is negative.
        let place = u64::try_from(call.at).ok().filter(|_| view.is_some() && etype_bytes > 0);
        file.served.set_view(place.zip(described));
        call.put(result, end, place, etype_bytes, view.map_or(0, i64::from));
        hints::note_given(library, file, info);
    } else {
        call.put(result, end, u64::try_from(call.at).ok(), 0, 0);
    }
    leave();
}

/// Ends a seek.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_sought(call: *mut Call, result: i32, whence: i32) {
    let end = now_ticks();
    // SAFETY: the caller's promise.
    let call = unsafe { &*call };
    call.has_moved();
    let whence = library::get().map_or(0, |library| library.whence(whence));
    call.put(result, end, (call.at != i64::MIN).then_some(call.at as u64), whence, 0);
    leave();
}

/// Ends any other call on a file.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_did(call: *mut Call, result: i32) {
    // SAFETY: the caller's promise.
    let call = unsafe { &*call };
    call.put(result, now_ticks(), Some(call.at as u64), 0, 0);
    if let Some(seat) = call.seat.filter(|_| result == 0 && call.what as u16 == Op::MpiAtomicity as u16) {
        seat.set_atomic(call.given != 0);
    }
    leave();
}
