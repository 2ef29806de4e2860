//! The per-thread log: a file mapped a window at a time, written without system call, lock or allocation per record.
//!
//! A slot is 64 bytes at `slot * 64` in the file. The thread sees the file through a window of two chunks of 1 MiB: chunk k lies in
//! half k mod 2, and the next chunk is mapped over the half that is two chunks behind. Nothing is ever unmapped while the thread lives, so a
//! record that a signal handler interrupted can always finish, however much the handler wrote. Slots are taken by one
//! instruction, so a handler never takes the same one. In front of the window lies a page that fork wipes: a child notices, without
//! being told, that the mapping is its parent's, and begins its own log.
//!
//! ```text
//! | fork page (private, wiped by fork) | header (64 KiB of the file) | chunk 2i | chunk 2i+1 |
//! ```

mod start;
#[cfg(test)]
mod tests;

use crate::format::Header;
use crate::process::Process;
use crate::record::{RECORD_BYTES, Record, check};
use crate::signals::Blocked;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

pub(crate) use start::check_file_size_limit;

pub(crate) const CHUNK_BYTES: u64 = 1 << 20;
/// Bytes given to a log that begins: programs that do little should not take a chunk per thread.
pub(crate) const FIRST_BYTES: u64 = 64 << 10;
pub(crate) const WINDOW_BYTES: u64 = 2 * CHUNK_BYTES;
/// Bytes before the window for each of fork page and header: the largest page size Linux runs with.
pub(crate) const FRONT_BYTES: usize = 64 << 10;
/// Bytes of the whole mapping.
pub(crate) const MAPPED_BYTES: usize = WINDOW_BYTES as usize + 2 * FRONT_BYTES;
/// Slots between two calibrations.
const CALIBRATE_SLOTS: u64 = 1024;
/// After a failure, so many records are dropped before the next attempt, doubling up to this.
const BACKOFF_MAX: u32 = 65_536;
/// What the fork page holds in the process that mapped it.
pub(crate) const ALIVE: u64 = 0x6576_696c_6120_6c6c;

/// One thread's log. Plain data: all zeros means not begun. It belongs in thread-local storage; only its own thread and that
/// thread's signal handlers may touch it.
#[repr(C)]
pub struct ThreadLog {
    /// First byte of the window; null = not begun.
    window: AtomicPtr<u8>,
    /// Next slot to take.
    used: AtomicU64,
    /// Slots below this are written without further ado.
    limit: AtomicU64,
    /// Slots below this have room in the file and are mapped.
    capacity: AtomicU64,
    /// Which process wrote the file's name.
    start_id: AtomicU64,
    pid: AtomicU32,
    tid: AtomicU32,
    /// Appended to the name when another thread of the same id was there before.
    suffix: AtomicU32,
    /// Records to drop before the next attempt to get room, 0 = none failed.
    retry_in: AtomicU32,
    /// The last number given to `retry_in`.
    backoff: AtomicU32,
    /// 1 = the file of this name is ours, though it may not be begun.
    created: AtomicU32,
    /// Zero.
    reserved: [u32; 16],
}

/// Bytes that C has to set aside for a [`ThreadLog`].
pub const THREAD_LOG_BYTES: usize = 128;
const _: () = assert!(core::mem::size_of::<ThreadLog>() == THREAD_LOG_BYTES);

impl Default for ThreadLog {
    fn default() -> Self {
        Self::new()
    }
}

impl ThreadLog {
    /// Not begun: all zeros.
    #[must_use]
    pub const fn new() -> ThreadLog {
        ThreadLog {
            window: AtomicPtr::new(core::ptr::null_mut()),
            used: AtomicU64::new(0),
            limit: AtomicU64::new(0),
            capacity: AtomicU64::new(0),
            start_id: AtomicU64::new(0),
            pid: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            suffix: AtomicU32::new(0),
            retry_in: AtomicU32::new(0),
            backoff: AtomicU32::new(0),
            created: AtomicU32::new(0),
            reserved: [0; 16],
        }
    }

    /// Slots in use so far.
    #[must_use]
    pub fn slots_used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The mapped header of a log that has begun.
    fn header(&self) -> Option<&Header> {
        let window = self.window.load(Ordering::Relaxed);
        // SAFETY: a window always comes with its header, FRONT_BYTES before it, for as long as the window is there.
        (!window.is_null()).then(|| unsafe { &*window.sub(FRONT_BYTES).cast::<Header>() })
    }
}

/// Keeps one record. `call.check` is ignored. Costs no system call except at the log's begin, every 1,024 records (a calibration) and
/// every 16,384 (a chunk); then it may cost some 100 us. A record for which there is no room is dropped and counted in the
/// log's header.
///
/// # Safety
/// `log` points to the calling thread's own [`ThreadLog`], zeroed before its first use. Not in a child that shares memory with its
/// parent (vfork, CLONE_VM).
#[inline(always)]
pub unsafe fn record(log: *mut ThreadLog, process: &Process, call: &Record) {
    // SAFETY: the caller's promise; all fields are atomics, so handlers may share the reference.
    let log = unsafe { &*log };
    let window = log.window.load(Ordering::Relaxed);
    // SAFETY: a window that is not null comes with its fork page.
    if window.is_null() || unsafe { fork_word(window) }.load(Ordering::Relaxed) != ALIVE {
        return first_record(log, process, call);
    }
    let slot = take_slot(&log.used);
    if slot >= log.limit.load(Ordering::Relaxed) {
        return record_at_limit(log, process, call, slot);
    }
    // SAFETY: slots below the limit are mapped.
    unsafe { store(window, slot, call) }
}

/// Forgets what fork copied: call it in the child, or leave it to the child's first record, which notices by itself (Linux 4.14 and later).
///
/// # Safety
/// As [`record`]; in the child of a fork.
pub unsafe fn after_fork_child(log: *mut ThreadLog) {
    // SAFETY: the caller's promise.
    let log = unsafe { &*log };
    let _blocked = Blocked::all();
    discard(log);
}

/// Ends the thread's log: last calibration, and the file cut to what was written. A later record of the thread begins another log.
///
/// # Safety
/// As [`record`].
pub unsafe fn thread_exit(log: *mut ThreadLog, process: &Process) {
    // SAFETY: the caller's promise.
    let log = unsafe { &*log };
    let _blocked = Blocked::all();
    let window = log.window.load(Ordering::Relaxed);
    // SAFETY: a window that is not null comes with its fork page.
    if !window.is_null() && unsafe { fork_word(window) }.load(Ordering::Relaxed) == ALIVE {
        start::finish(log, process);
    }
    discard(log);
}

/// The word that fork wipes.
///
/// # Safety
/// `window` is a live window.
#[inline(always)]
unsafe fn fork_word<'a>(window: *mut u8) -> &'a AtomicU64 {
    // SAFETY: the fork page lies before header and window in the same mapping.
    unsafe { &*window.sub(2 * FRONT_BYTES).cast::<AtomicU64>() }
}

/// Unmaps without touching the file; all zeros again.
fn discard(log: &ThreadLog) {
    let window = log.window.swap(core::ptr::null_mut(), Ordering::Relaxed);
    for word in [&log.used, &log.limit, &log.capacity, &log.start_id] {
        word.store(0, Ordering::Relaxed);
    }
    for word in [&log.pid, &log.tid, &log.suffix, &log.retry_in, &log.backoff, &log.created] {
        word.store(0, Ordering::Relaxed);
    }
    if !window.is_null() {
        // SAFETY: this is the mapping made by `start`, and the log no longer leads to it.
        let _ = unsafe { rustix::mm::munmap(window.sub(2 * FRONT_BYTES).cast(), MAPPED_BYTES) };
    }
}

/// Takes a slot: an addition that a signal handler of this thread cannot split. Other threads never touch the word, so no bus lock.
#[inline(always)]
fn take_slot(used: &AtomicU64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut slot = 1u64;
        // SAFETY: one instruction on a live, aligned word that only this thread touches.
        unsafe {
            core::arch::asm!("xadd [{word}], {slot}", word = in(reg) used.as_ptr(), slot = inout(reg) slot, options(nostack));
        }
        slot
    }
    #[cfg(not(target_arch = "x86_64"))]
    used.fetch_add(1, Ordering::Relaxed)
}

/// Writes a record into its slot, the check word last.
///
/// # Safety
/// The slot is mapped.
#[inline(always)]
unsafe fn store(window: *mut u8, slot: u64, call: &Record) {
    let words = call.words();
    let check = check(&words, slot);
    let [a, b, c, d, e, f, g, h] = words;
    // SAFETY: the offset stays inside the window and is a multiple of 64; the caller has the slot mapped.
    unsafe {
        let at = window.add(((slot * RECORD_BYTES) & (WINDOW_BYTES - 1)) as usize).cast::<u64>();
        at.cast::<[u64; 7]>().write([a, b, c, d, e, f, g]);
        // Release: a kill between the stores must leave the check word for last.
        (*at.add(7).cast::<AtomicU64>()).store(h | u64::from(check) << 32, Ordering::Release);
    }
}

/// The log has not begun, or is a parent's.
#[cold]
#[inline(never)]
fn first_record(log: &ThreadLog, process: &Process, call: &Record) {
    if !process.enabled() {
        return;
    }
    let blocked = Blocked::all();
    if log.window.load(Ordering::Relaxed).is_null() {
        if waits(log) {
            process.unlogged_drops.fetch_add(1, Ordering::Relaxed);
            return;
        }
    } else {
        discard(log);
    }
    match start::begin(log, process) {
        Ok(window) => {
            log.backoff.store(0, Ordering::Relaxed);
            let slot = take_slot(&log.used);
            // SAFETY: a log that has just begun has room mapped.
            unsafe { store(window, slot, call) }
        }
        Err(_) => {
            fail(log);
            process.unlogged_drops.fetch_add(1, Ordering::Relaxed);
        }
    }
    drop(blocked);
}

/// The limit is reached: time to calibrate, or to add a chunk.
#[cold]
#[inline(never)]
fn record_at_limit(log: &ThreadLog, process: &Process, call: &Record, slot: u64) {
    // Signals are blocked unless we only count a drop: while the disk is full a record costs no system call.
    if waits(log) {
        return drop_record(log, slot);
    }
    let _blocked = Blocked::all();
    // A handler that came between may have done the work.
    if slot >= log.capacity.load(Ordering::Relaxed) && start::grow(log, process, slot).is_err() {
        fail(log);
        return drop_record(log, slot);
    }
    log.backoff.store(0, Ordering::Relaxed);
    if slot >= log.limit.load(Ordering::Relaxed) {
        if let Some(header) = log.header() {
            start::calibrate(header, process);
        }
        let next = (slot / CALIBRATE_SLOTS + 1) * CALIBRATE_SLOTS;
        log.limit.store(next.min(log.capacity.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
    // SAFETY: the slot is below the capacity, so it is mapped.
    unsafe { store(log.window.load(Ordering::Relaxed), slot, call) }
}

/// After a failure: is it too early to try again?
fn waits(log: &ThreadLog) -> bool {
    let left = log.retry_in.load(Ordering::Relaxed);
    if left > 0 {
        log.retry_in.store(left - 1, Ordering::Relaxed);
    }
    left > 0
}

/// Remembers a failure.
fn fail(log: &ThreadLog) {
    let backoff = (log.backoff.load(Ordering::Relaxed) * 2).clamp(64, BACKOFF_MAX);
    log.backoff.store(backoff, Ordering::Relaxed);
    log.retry_in.store(backoff, Ordering::Relaxed);
}

/// Gives the slot back (handlers nest, so the last taken is the first given back; otherwise a hole stays) and counts the drop.
fn drop_record(log: &ThreadLog, slot: u64) {
    let _ = log.used.compare_exchange(slot + 1, slot, Ordering::Relaxed, Ordering::Relaxed);
    if let Some(header) = log.header() {
        header.dropped.fetch_add(1, Ordering::Relaxed);
    }
}
