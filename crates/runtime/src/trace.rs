//! Recording calls: the runtime's side of crates/trace. Costs nothing but one load when tracing is off.

use crate::base::sys::{self, Errno, Sys};
use crate::base::tls;
use crate::copies::managed;
use crate::fds::{self, INTERNAL, TRACED};
use crate::names;
use crate::open::{self, Kind, OpenFile};
use crate::store::heads::is_programs;
use core::sync::atomic::{AtomicU32, Ordering};
use stripewise_target::text::ProcPath;
use stripewise_trace::clock::now_ticks;
use stripewise_trace::{Op, Process, Record, ThreadLog, after_fork_child, flags, record, thread_exit};

static PROCESS: Process = Process::new();

/// 1 while the posix layer is recorded: what the shim tests before it takes the time of a call by name.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static sw_tracing: AtomicU32 = AtomicU32::new(0);

const _: () = assert!(core::mem::size_of::<ThreadLog>() <= 256);

fn log() -> *mut ThreadLog {
    // SAFETY: the block begins with room for the log, zero at first.
    unsafe { (&raw mut (*tls::thread()).log).cast() }
}

/// Whether calls of the posix layer are recorded.
#[inline]
pub fn on() -> bool {
    sw_tracing.load(Ordering::Relaxed) != 0
}

/// Begins tracing into a directory, with the posix layer or without; whether it has begun.
pub fn start(dir: &core::ffi::CStr, rank: i32, world: i32, command: &[u8], posix: bool) -> bool {
    let begun = PROCESS.start(dir, rank, world, command).is_ok();
    sw_tracing.store(u32::from(begun && posix), Ordering::Release);
    begun
}

/// Keeps a note in the trace; whether it was kept.
pub fn note(kind: u32, id: u32, words: &[u64]) -> bool {
    PROCESS.note(kind, id, words)
}

/// Slots of this thread's log that are in use.
pub fn slots_used() -> u64 {
    // SAFETY: this thread's own log.
    unsafe { (*log()).slots_used() }
}

/// Keeps a record of the mpi layer.
pub fn put_record(record_: &Record) {
    crate::base::process::notice_fork();
    // SAFETY: this thread's own log.
    unsafe { record(log(), &PROCESS, record_) };
}

/// Ticks at the start of a call, 0 when tracing is off.
#[inline]
pub fn begin() -> u64 {
    if !on() {
        return 0;
    }
    managed::was_copied();
    now_ticks()
}

/// Ticks, for the shim.
#[unsafe(no_mangle)]
pub extern "C" fn sw_ticks() -> u64 {
    now_ticks()
}

struct Call {
    op: Op,
    offset: u64,
    requested: u64,
    done: i64,
    errno: i32,
    flags: u32,
    aux: u32,
}

fn put(file: u32, fd: i32, start: u64, call: &Call) {
    put_between(file, fd, (start, now_ticks()), call);
}

fn put_between(file: u32, fd: i32, (start, end): (u64, u64), call: &Call) {
    // SAFETY: this thread's own block.
    if unsafe { (*tls::thread()).mpi_muted } != 0 {
        return;
    }
    crate::base::process::notice_fork();
    // A child of vfork shares this thread's log; its calls are not recorded.
    let record_ = Record {
        start_ticks: start,
        end_ticks: end,
        offset: call.offset,
        requested_bytes: call.requested,
        done: call.done,
        file,
        fd,
        op: call.op as u16,
        errno: call.errno as u16,
        flags: call.flags,
        aux: call.aux,
        check: 0,
    };
    // SAFETY: this thread's own log.
    unsafe { record(log(), &PROCESS, &record_) };
}

/// Id of a file in the trace, 0 when tracing is off.
pub fn file_id(path: &[u8], dev: u64, ino: u64) -> u32 {
    PROCESS.file_id(path, dev, ino)
}

/// In place of the id of a plain file: nobody has seen it opened here, and it has no call yet.
const UNNAMED: u32 = u32::MAX;

/// Has the calls on descriptors recorded that came across exec, as those of a shell's `>` and `<`. A file gets its name with its first call. Managed ones
/// are known already.
pub fn inherit() {
    if !on() {
        return;
    }
    let _ = sys::for_each_name(c"/proc/self/fd", |name| {
        let Some(fd) = core::str::from_utf8(name).ok().and_then(|n| n.parse::<i32>().ok()) else { return };
        // One that was unlinked has no name.
        let is_named = |st: libc::stat| st.st_mode & libc::S_IFMT == libc::S_IFREG && st.st_nlink > 0;
        if fds::entry(fd) == 0 && !is_programs(fd) && open::tag_of(fd) == 0 && sys::fstat(fd).is_ok_and(is_named) {
            open::register_plain(fd, UNNAMED);
        }
    });
}

/// The id of an open file; one that came across exec is named by what its descriptor leads to.
fn id_of(open: &OpenFile, fd: i32, managed: bool) -> u32 {
    match open.trace_id.load(Ordering::Relaxed) {
        UNNAMED => named(open, fd, managed),
        0 if managed => named(open, fd, managed),
        id => id,
    }
}

#[cold]
#[inline(never)] // Its buffers would lie on the stack below every call.
fn named(open: &OpenFile, fd: i32, managed: bool) -> u32 {
    let Ok(st) = sys::fstat(fd) else { return 0 };
    let id = if managed {
        let name = open.file().and_then(|file| file.at()).ok().and_then(|at| at.recorded_name());
        name.map_or(0, |name| file_id(name.as_bytes(), st.st_dev, st.st_ino))
    } else {
        let (mut link, mut text) = (ProcPath::from_bytes(b"/proc/self/fd/"), [0u8; 4096]);
        link.push_decimal(fd as u64);
        let name = link.as_c_str().and_then(|link| sys::readlinkat(libc::AT_FDCWD, link, &mut text).ok());
        name.map_or(0, |name| file_id(name, st.st_dev, st.st_ino))
    };
    open.trace_id.store(id, Ordering::Relaxed);
    id
}

fn split(result: &Sys<i64>) -> (i64, i32) {
    match result {
        Ok(value) => (*value, 0),
        Err(Errno(number)) => (-1, *number),
    }
}

/// An open that has been done.
pub fn opened(trace_id: u32, kind: Kind, how: i32, result: &Sys<i64>, start: u64) {
    if start != 0 {
        let (done, errno) = split(result);
        let flags = managed_flag(kind.managed) | if kind.created { flags::CREATED } else { 0 };
        put(trace_id, done as i32, start, &Call { op: Op::Open, offset: 0, requested: 0, done, errno, flags, aux: how as u32 });
    }
}

/// A close that has been done.
pub fn closed(entry: u32, fd: i32, result: &Sys<i64>, start: u64) {
    if start != 0 && entry != 0 && entry & INTERNAL == 0 {
        let id = open::of_entry(entry).map_or(0, |o| o.trace_id.load(Ordering::Relaxed));
        if id == UNNAMED {
            return;
        }
        let (done, errno) = split(result);
        put(id, fd, start, &Call { op: Op::Close, offset: 0, requested: 0, done, errno, flags: managed_flag(entry & TRACED == 0), aux: 0 });
    }
}

fn managed_flag(managed: bool) -> u32 {
    if managed { flags::MANAGED } else { 0 }
}

/// A lock command that has been done.
pub fn lock(fd: i32, op: i32, arg: usize, result: &Sys<i64>, start: u64) {
    if start == 0 || arg == 0 || *result == Err(Errno(libc::EFAULT)) {
        return;
    }
    // SAFETY: fcntl's contract for lock commands, at an address that was good.
    let range = unsafe { &*(arg as *const libc::flock) };
    let (done, errno) = split(result);
    let id = open::another(fd).map_or(0, |open| id_of(&open, fd, true));
    put(
        id,
        fd,
        start,
        &Call { op: Op::Lock, offset: range.l_start as u64, requested: range.l_len as u64, done, errno, flags: flags::MANAGED, aux: op as u32 },
    );
}

/// A data call on a managed descriptor that has been done; `at` is `u64::MAX` when it moved the offset by itself.
#[inline]
pub fn data(fd: i32, op: Op, at: u64, requested: u64, result: &Sys<i64>, start: u64) {
    if start != 0 {
        put_data(fd, op, at, requested, result, start);
    }
}

#[cold]
fn put_data(fd: i32, op: Op, at: u64, requested: u64, result: &Sys<i64>, start: u64) {
    let Ok(open) = open::another(fd) else { return };
    let (done, errno) = split(result);
    let mut bits = flags::MANAGED | if open.is_append() { flags::APPEND } else { 0 };
    let (copied, aux) = record::read_from(if op == Op::Read { managed::was_copied() } else { None });
    bits |= copied;
    let offset = if at == u64::MAX {
        bits |= flags::IMPLICIT_OFFSET;
        sys::lseek(open.offset_fd(fd), 0, libc::SEEK_CUR).unwrap_or(0).saturating_sub(done.max(0) as u64)
    } else {
        at
    };
    put(id_of(&open, fd, true), fd, start, &Call { op, offset, requested, done, errno, flags: bits, aux });
}

/// `SW_BY_SHIFT` of the shim.
const BY_SHIFT: u32 = 16;

/// A call on a plain descriptor, from the shim: `done` is the C library's result, errno still stands; above `op` stands the number of the replica that has
/// served it, plus one.
#[unsafe(no_mangle)]
pub extern "C" fn sw_traced(fd: i32, op: u32, at: u64, asked: u64, done: i64, start: u64) {
    let errno = if done < 0 { c_errno() } else { 0 };
    let entry = fds::entry(fd);
    let (mut bits, by) = record::read_from((op >> BY_SHIFT).checked_sub(1));
    let Some(op) = Op::from_number(op as u16) else { return };
    let id = open::of_entry(entry).map_or(0, |open| id_of(open, fd, false));
    // Served from copies, and not recorded.
    if id == 0 {
        return;
    }
    let offset = if at == u64::MAX {
        bits |= flags::IMPLICIT_OFFSET;
        sys::lseek(fd, 0, libc::SEEK_CUR).unwrap_or(0).saturating_sub(done.max(0) as u64)
    } else {
        at
    };
    put(id, fd, start, &Call { op, offset, requested: asked, done, errno, flags: bits, aux: if op == Op::Seek { asked as u32 } else { by } });
}

/// A read of a plain file that a replica has served inside an MPI-IO call: recorded as if its descriptor had been asked for it, between these ticks.
pub fn served(fd: i32, (offset, bytes): (u64, u64), replica: u32, between: (u64, u64)) {
    let id = open::of_entry(fds::entry(fd)).map_or(0, |open| id_of(open, fd, false));
    if id != 0 {
        let (flags, aux) = record::read_from(Some(replica));
        let call = Call { op: Op::Read, offset, requested: bytes, done: bytes as i64, errno: 0, flags, aux };
        put_between(id, fd, between, &call);
    }
}

/// A request that was submitted on a plain descriptor, from the shim; what it will have done is taken for what it asks.
#[unsafe(no_mangle)]
pub extern "C" fn sw_traced_aio(fd: i32, op: u32, at: u64, asked: u64, result: i32, start: u64) {
    let (done, errno) = if result < 0 { (-1, c_errno()) } else { (i64::try_from(asked).unwrap_or(i64::MAX), 0) };
    let Some(op) = u16::try_from(op).ok().and_then(Op::from_number) else { return };
    let id = open::of_entry(fds::entry(fd)).map_or(0, |open| id_of(open, fd, false));
    put(id, fd, start, &Call { op, offset: at, requested: asked, done, errno, flags: flags::NONBLOCKING, aux: 0 });
}

/// A call by name, from the shim.
///
/// # Safety
/// `path` is a C string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_traced_path(path: *const libc::c_char, op: u32, done: i64, start: u64) {
    let errno = if done < 0 { c_errno() } else { 0 };
    // Such a path may be no string at all.
    if path.is_null() || matches!(errno, libc::EFAULT | libc::ENAMETOOLONG) {
        return;
    }
    let Some(op) = u16::try_from(op).ok().and_then(Op::from_number) else { return };
    // SAFETY: the caller's promise.
    let id = PROCESS.file_id(unsafe { core::ffi::CStr::from_ptr(path) }.to_bytes(), 0, 0);
    put(id, -1, start, &Call { op, offset: 0, requested: 0, done, errno, flags: 0, aux: 0 });
}

/// A call that gives a file another name, from the shim: both names whole, whatever they were given from; none where it failed.
///
/// # Safety
/// Both are C strings or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_traced_names(
    from_dir: i32,
    from: *const libc::c_char,
    to_dir: i32,
    to: *const libc::c_char,
    op: u32,
    done: i64,
    start: u64,
) {
    let errno = if done < 0 { c_errno() } else { 0 };
    let Some(op) = u16::try_from(op).ok().and_then(Op::from_number) else { return };
    let id = |dir: i32, path: *const libc::c_char| {
        // Where it failed the kernel need not have read both, and they may be no strings at all.
        if done < 0 {
            return 0;
        }
        // SAFETY: the caller's promise.
        let name = unsafe { core::ffi::CStr::from_ptr(path) }.to_bytes();
        match names::absolute(dir, name) {
            Ok(whole) => PROCESS.file_id(whole.as_bytes(), 0, 0),
            Err(_) => PROCESS.file_id(name, 0, 0),
        }
    };
    let (file, aux) = (id(from_dir, from), id(to_dir, to));
    put(file, -1, start, &Call { op, offset: 0, requested: 0, done, errno, flags: 0, aux });
}

unsafe extern "C" {
    fn __errno_location() -> *mut i32;
}

/// The C library's errno of this thread.
pub fn c_errno() -> i32 {
    // SAFETY: this thread's own.
    unsafe { *__errno_location() }
}

/// Sets it back after calls that were none of the program's.
pub fn set_c_errno(to: i32) {
    // SAFETY: as above.
    unsafe { *__errno_location() = to }
}

/// In a forked child: its log is its own.
pub fn after_fork() {
    // SAFETY: this thread's own log.
    unsafe { after_fork_child(log()) };
}

/// When a thread ends.
pub fn at_thread_exit() {
    if PROCESS.enabled() {
        // SAFETY: this thread's own log.
        unsafe { thread_exit(log(), &PROCESS) };
    }
}
