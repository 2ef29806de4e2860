//! Nonblocking calls on MPI files that have not been completed, by request. While there are none, calls of the Wait and Test families are not looked at.
//! A handle comes again as soon as its request was completed, perhaps in another thread before we have noticed: entries may share one.

use super::library::{Handle, Library};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::*};

/// Places for requests under way. One whose places are all taken is not followed: the bytes that it does stay unknown.
const MOST: usize = 4096;
/// Places that a handle may have: so many are looked at for each request of a call that waits.
const PROBES: usize = 64;
const FREE: usize = 0;
/// Is being filled in.
const TAKEN: usize = 1;

/// How many are under way: what the shim looks at.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static sw_mpi_pending: AtomicU32 = AtomicU32::new(0);

struct Entry {
    handle: AtomicUsize,
    /// Which call waits for it, 0 none.
    waiter: AtomicU64,
    /// Place in that call's array.
    place: AtomicUsize,
    request: [AtomicU64; 3],
}

static ENTRIES: [Entry; MOST] = [const {
    Entry { handle: AtomicUsize::new(FREE), waiter: AtomicU64::new(0), place: AtomicUsize::new(0), request: [const { AtomicU64::new(0) }; 3] }
}; MOST];
static NUMBERS: AtomicU32 = AtomicU32::new(0);
static WAITERS: AtomicU64 = AtomicU64::new(0);

/// A request: what its completion is recorded with.
#[derive(Clone, Copy)]
pub struct Request {
    /// Of the request, from 1 on.
    pub number: u32,
    /// Number of the file's handle, and the size of its communicator.
    pub file: u32,
    pub comm_size: u32,
    pub trace_id: u32,
    /// Asked for.
    pub bytes: u64,
    /// What is recorded of the file.
    pub layers: u32,
}

/// Of a word with bytes, which are fewer than 2^62: the layers stand above.
const LAYERS_AT: u32 = 62;
const _: () = assert!(super::files::layers::BOTH >> 2 == 0);

impl Entry {
    fn keep(&self, request: &Request) {
        let [a, b, c] = &self.request;
        a.store(u64::from(request.number) | u64::from(request.file) << 32, Relaxed);
        b.store(u64::from(request.comm_size) | u64::from(request.trace_id) << 32, Relaxed);
        c.store((request.bytes & !(3 << LAYERS_AT)) | u64::from(request.layers) << LAYERS_AT, Relaxed);
    }

    fn kept(&self) -> Request {
        let [a, b, c] = &self.request;
        let (a, b, c) = (a.load(Relaxed), b.load(Relaxed), c.load(Relaxed));
        Request {
            number: a as u32,
            file: (a >> 32) as u32,
            comm_size: b as u32,
            trace_id: (b >> 32) as u32,
            bytes: c & !(3 << LAYERS_AT),
            layers: (c >> LAYERS_AT) as u32,
        }
    }
}

/// A number for a request.
pub fn new_number() -> u32 {
    NUMBERS.fetch_add(1, Relaxed) + 1
}

fn places(handle: Handle) -> impl Iterator<Item = (usize, &'static Entry)> {
    let first = ((handle as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
    (first..first + PROBES).filter_map(|at| Some((at % MOST, ENTRIES.get(at % MOST)?)))
}

/// Remembers a request. One that has its handle and is not waited for was freed or completed unseen: it is replaced.
pub fn insert(handle: Handle, request: &Request) {
    if handle <= TAKEN {
        return;
    }
    let stale = places(handle).find(|(_, entry)| entry.handle.load(Acquire) == handle && entry.waiter.load(Relaxed) == 0);
    if let Some((_, entry)) = stale {
        entry.keep(request);
        return;
    }
    let free = |(_, entry): &(usize, &Entry)| entry.handle.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_ok();
    if let Some((_, entry)) = places(handle).find(free) {
        entry.keep(request);
        entry.waiter.store(0, Relaxed);
        entry.handle.store(handle, Release);
        sw_mpi_pending.fetch_add(1, AcqRel);
    }
}

/// What a call waits for.
#[derive(Clone, Copy)]
pub struct Claim {
    waiter: u64,
    /// How many requests; none: nothing is to be released.
    pub found: u32,
    /// What is recorded of their files, all together.
    pub layers: u32,
    /// Place of the last of them among all.
    last: usize,
}

/// Marks those of `n` requests that are ours as waited for.
///
/// # Safety
/// An array of `n` requests.
pub unsafe fn claim(library: &Library, requests: *const c_void, n: usize) -> Claim {
    let waiter = WAITERS.fetch_add(1, Relaxed) + 1;
    let (mut found, mut layers, mut last) = (0, 0, 0);
    for place in 0..n {
        // SAFETY: the caller's promise.
        let handle = unsafe { library.at(requests, place) };
        let free = |entry: &Entry| entry.waiter.compare_exchange(0, waiter, AcqRel, Relaxed).is_ok();
        let entry = places(handle).find(|(_, entry)| handle > TAKEN && entry.handle.load(Acquire) == handle && free(entry));
        if let Some((at, entry)) = entry {
            entry.place.store(place, Relaxed);
            found += 1;
            layers |= entry.kept().layers;
            last = at;
        }
    }
    Claim { waiter, found, layers, last }
}

/// Lets go of what was claimed: those whose place in the array has changed are completed, and given to `done` with it.
///
/// # Safety
/// The array of `claim`.
pub unsafe fn release(library: &Library, requests: *const c_void, claim: &Claim, mut done: impl FnMut(&Request, usize)) {
    // One is where it was found; more are looked for.
    let first = if claim.found == 1 { claim.last } else { 0 };
    let mine = ENTRIES.iter().skip(first).filter(|entry| entry.waiter.load(Relaxed) == claim.waiter);
    for entry in mine.take(claim.found as usize) {
        let place = entry.place.load(Relaxed);
        // SAFETY: the caller's promise.
        if unsafe { library.at(requests, place) } == entry.handle.load(Relaxed) {
            entry.waiter.store(0, Release);
            continue;
        }
        let request = entry.kept();
        entry.waiter.store(0, Relaxed);
        entry.handle.store(FREE, Release);
        sw_mpi_pending.fetch_sub(1, AcqRel);
        done(&request, place);
    }
}
