//! The MPI files that this process has open, by handle. An MPI uses a handle again after its file was closed, so each open has a number of its own.

use super::library::Handle;
use super::redirect::Served;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::*};

/// Places for open files. Calls on a file whose places are all taken are recorded without what is known of it.
const MOST: usize = 1024;
/// Places that a handle may have.
const PROBES: usize = 64;
/// Views, and calls that set hints, of one open that are looked at: libraries (HDF5) give their hints anew with every view.
pub const LOOKS_MAX: u32 = 16;
const FREE: usize = 0;
/// Is being filled in.
const TAKEN: usize = 1;

/// Which layers are recorded of a file.
pub mod layers {
    pub const POSIX: u32 = 1;
    pub const MPI: u32 = 2;
    pub const BOTH: u32 = POSIX | MPI;
}

/// An open file.
pub struct MpiFile {
    handle: AtomicUsize,
    /// Where its reads may be redirected.
    pub served: Served,
    /// Of this open, from 1 on.
    pub number: AtomicU32,
    /// Its name in the trace.
    pub trace_id: AtomicU32,
    pub comm_size: AtomicU32,
    /// See [`layers`].
    pub layers: AtomicU32,
    /// Of the view in force; 0: it was not understood, so positions are not known.
    pub etype_bytes: AtomicU64,
    /// Number of the request of a split collective call that is under way, 0 none.
    pub split: AtomicU32,
    /// Bytes that it asked for.
    pub split_bytes: AtomicU64,
    /// How many times more its hints are looked at when the program gives some; 0 where another process notes them.
    pub looks: AtomicU32,
}

static FILES: [MpiFile; MOST] = [const {
    MpiFile {
        handle: AtomicUsize::new(FREE),
        served: Served::none(),
        number: AtomicU32::new(0),
        trace_id: AtomicU32::new(0),
        comm_size: AtomicU32::new(0),
        layers: AtomicU32::new(0),
        etype_bytes: AtomicU64::new(0),
        split: AtomicU32::new(0),
        split_bytes: AtomicU64::new(0),
        looks: AtomicU32::new(0),
    }
}; MOST];
static NUMBERS: AtomicU32 = AtomicU32::new(0);

/// The places that a handle may have, in order.
fn places(handle: Handle) -> impl Iterator<Item = &'static MpiFile> {
    let first = ((handle as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize;
    (first..first + PROBES).filter_map(|at| FILES.get(at % MOST))
}

/// The open file of a handle.
#[inline]
pub fn find(handle: Handle) -> Option<&'static MpiFile> {
    places(handle).find(|file| file.handle.load(Acquire) == handle)
}

/// A number for an open.
pub fn new_number() -> u32 {
    NUMBERS.fetch_add(1, Relaxed) + 1
}

/// What is remembered of a file that was opened.
pub struct Opened {
    pub number: u32,
    pub trace_id: u32,
    pub comm_size: u32,
    /// See [`layers`].
    pub layers: u32,
    /// Whether this process notes its hints.
    pub notes_hints: bool,
    /// The descriptor of a plain file with copies, and which file that is.
    pub copied: Option<(i32, (u64, u64))>,
}

/// Remembers a file that was opened; whoever had its handle was closed unseen.
pub fn insert(handle: Handle, opened: &Opened) {
    forget(handle);
    let free = |file: &&MpiFile| file.handle.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_ok();
    if handle > TAKEN
        && let Some(file) = places(handle).find(free)
    {
        file.number.store(opened.number, Relaxed);
        file.trace_id.store(opened.trace_id, Relaxed);
        file.comm_size.store(opened.comm_size, Relaxed);
        file.layers.store(opened.layers, Relaxed);
        file.etype_bytes.store(1, Relaxed);
        file.split.store(0, Relaxed);
        file.looks.store(if opened.notes_hints { LOOKS_MAX } else { 0 }, Relaxed);
        file.served.begin(opened.copied);
        file.handle.store(handle, Release);
    }
}

/// Forgets the file that has a handle, if any.
pub fn forget(handle: Handle) {
    if let Some(file) = find(handle).filter(|_| handle > TAKEN) {
        file.forget();
    }
}

impl MpiFile {
    /// What the program knows it by.
    pub fn handle(&self) -> Handle {
        self.handle.load(Relaxed)
    }

    /// When it was closed: an open that comes may have its handle.
    pub fn forget(&self) {
        self.served.end();
        self.handle.store(FREE, Release);
    }
}
