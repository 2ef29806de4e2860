//! What client and server share: a doorbell, slots for requests, and for each slot a window for bytes. A slot is free, taken by a client, asked of the server,
//! or done; each of these steps is one exchange of its state, on which the other side sleeps.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;

/// The segment's file, in the directory that store.toml names.
pub const SEGMENT_FILE: &str = "segment";

/// Requests that are under way at most.
pub const SLOTS: usize = 24;
/// Bytes that one request moves at most.
pub const WINDOW_BYTES: usize = 1 << 15;
const SLOT_BYTES: usize = 256;
const WINDOWS_AT: usize = 1 << 16;
pub const SEGMENT_BYTES: usize = WINDOWS_AT + SLOTS * WINDOW_BYTES;

pub const FREE: u32 = 0;
pub const TAKEN: u32 = 1;
pub const ASKED: u32 = 2;
pub const DONE: u32 = 3;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Call {
    /// A new object without a name; results: its number.
    Make,
    /// Gives object `number` its name: role and file.
    Name,
    Open,
    Remove,
    Look,
    /// Names from a place in their order on.
    List,
    Used,
    SyncNames,
    Identity,
    Identify,
    Read,
    Write,
    Punch,
    SetLen,
    Len,
    NextData,
    Sync,
}

#[cfg(feature = "suite")]
impl Call {
    pub const ALL: [Self; 17] = [
        Self::Make,
        Self::Name,
        Self::Open,
        Self::Remove,
        Self::Look,
        Self::List,
        Self::Used,
        Self::SyncNames,
        Self::Identity,
        Self::Identify,
        Self::Read,
        Self::Write,
        Self::Punch,
        Self::SetLen,
        Self::Len,
        Self::NextData,
        Self::Sync,
    ];
}

#[repr(C)]
pub struct Header {
    /// Rung with each request.
    pub doorbell: AtomicU32,
    /// Requests that were served before an earlier one.
    pub overtakings: AtomicU32,
    /// Requests so far.
    pub asked: AtomicU64,
    /// Whoever has the last slot, which is waited for.
    pub last: AtomicU32,
}

#[repr(C)]
pub struct Slot {
    pub state: AtomicU32,
    pub call: AtomicU32,
    /// 0, or an error number.
    pub error: AtomicU32,
    /// Which request of all it is.
    pub turn: AtomicU64,
    pub arguments: [AtomicU64; 3],
    pub results: [AtomicU64; 3],
}

/// The mapped segment, and the file that it is a map of.
#[derive(Clone, Copy)]
pub struct Segment {
    base: *mut u8,
    file: BorrowedFd<'static>,
}

// SAFETY: shared words are atomics; a window is its slot's owner's.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// # Safety
    /// `base` is a shared map of [`SEGMENT_BYTES`] of `file`; both stay for as long as this is used.
    pub const unsafe fn new(base: *mut u8, file: BorrowedFd<'static>) -> Self {
        Self { base, file }
    }

    pub const fn header(&self) -> &Header {
        // SAFETY: inside the mapping, page-aligned; all fields are atomics.
        unsafe { &*self.base.cast() }
    }

    pub const fn slot(&self, slot: usize) -> &Slot {
        let slot = if slot < SLOTS { slot } else { 0 };
        // SAFETY: as above.
        unsafe { &*self.base.add(4096 + slot * SLOT_BYTES).cast() }
    }

    /// Where a slot's window begins in the file: the kernel copies between it and programs' memory, and finds bad addresses.
    pub const fn window_at(slot: usize) -> u64 {
        (WINDOWS_AT + slot * WINDOW_BYTES) as u64
    }

    pub const fn file(&self) -> BorrowedFd<'static> {
        self.file
    }

    /// Copies bytes into a window.
    pub fn put(&self, slot: usize, bytes: &[u8]) -> Result<(), Errno> {
        let put = rustix::io::pwrite(self.file, bytes, Self::window_at(slot))?;
        if put == bytes.len() { Ok(()) } else { Err(Errno::IO) }
    }

    /// Copies the first bytes of a window.
    pub fn get(&self, slot: usize, bytes: &mut [u8]) -> Result<(), Errno> {
        let wanted = bytes.len();
        let got = rustix::io::pread(self.file, bytes, Self::window_at(slot))?;
        if got == wanted { Ok(()) } else { Err(Errno::IO) }
    }
}

/// Sleeps while a word is what it was, at most `ms`; false when the time is over.
pub fn sleep_while(word: &AtomicU32, was: u32, ms: u64) -> bool {
    let timeout = Timespec { tv_sec: (ms / 1000) as i64, tv_nsec: (ms % 1000 * 1_000_000) as _ };
    !matches!(futex::wait(word, futex::Flags::empty(), was, Some(&timeout)), Err(Errno::TIMEDOUT))
}

pub fn wake(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::empty(), u32::MAX >> 1);
}

/// Sets a slot's state for whoever sleeps on it.
pub fn set_state(slot: &Slot, state: u32) {
    slot.state.store(state, Ordering::SeqCst);
    wake(&slot.state);
}
