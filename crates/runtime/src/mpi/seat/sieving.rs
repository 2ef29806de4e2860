//! Whether ROMIO sieves the independent reads and writes of an open file behind views with gaps: writes are never to be, reads where that is cheaper. Telling
//! it is a collective call, so what is told is what all processes know alike.

use super::super::board::{board, is_one_of};
use super::super::describe;
use super::super::library::{Handle, Library};
use super::super::meet::{READ_SIEVING, WRITE_SIEVING};
use crate::open::another;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use stripewise_engine::shared::board::{NotedSieving, Post};
use stripewise_engine::shared::site::Policy;
use stripewise_engine::shared::views::{Agreed, Hinted};
use stripewise_engine::{Pieces, Repetition, Servers, Sieving, gain_of_joining};
use stripewise_target::kind::DeviceModel;
use stripewise_trace::datatype::Tile;

/// Ways of reads; 0: nothing is wanted.
const SIEVED: u32 = 1;
const UNSIEVED: u32 = 2;
/// Pieces of a view that are looked at, for their mean; and words that a filetype's description may have, for it is looked at in each call.
const PIECES_MAX: u64 = 1024;
const WORDS_MAX: usize = 8192;
/// A filetype with so much data, or more, is not read piece by piece: ROMIO finds its place in it by numbers of 32 bits then, and reads other bytes.
const TYPE_BYTES_MAX: i64 = 1 << 31;

/// What one process knows of an open file.
pub struct FileSieving {
    /// ROMIO has been told not to sieve writes: 1 it does not, 2 it does all the same; 0 not yet.
    writes: AtomicU32,
    /// The way of reads behind the view in force, and the one that ROMIO was told, which all processes know alike.
    wanted: AtomicU32,
    told: AtomicU32,
    /// It was last told to read piece by piece, whatever hints of the program's came since.
    is_unsieved: AtomicU32,
    /// A hint says which.
    is_given: AtomicU32,
    /// Of the last collective call that had some.
    request_bytes: AtomicU64,
    priced: UnsafeCell<Priced>,
}

/// What was priced, and by which figures of reads and of writes; none: the file's devices are not known.
#[derive(Clone, Copy)]
struct Priced {
    servers: Option<[Servers; 2]>,
    /// Of the view in force; none: it has no gaps, or is not priced. Then of the one that is being set.
    view: View,
    next: View,
    /// By what the last reads behind such a view were made, and their way.
    made: Option<(Pieces, Sieving, u32)>,
}

/// A view's pieces, and what reads of them take.
#[derive(Clone, Copy)]
struct View {
    pieces: Option<Pieces>,
    reads: Option<Sieving>,
}

impl View {
    const UNPRICED: Self = Self { pieces: None, reads: None };
}

impl Priced {
    const fn by(servers: Option<[Servers; 2]>) -> Self {
        Self { servers, view: View::UNPRICED, next: View::UNPRICED, made: None }
    }
}

// SAFETY: `priced` is touched by the thread that opens or closes the file, sets its view, or makes a collective call on it: of these MPI allows one at a time.
unsafe impl Sync for FileSieving {}

impl FileSieving {
    /// Of a file that is not open.
    pub const fn new() -> Self {
        Self {
            writes: AtomicU32::new(0),
            wanted: AtomicU32::new(0),
            told: AtomicU32::new(0),
            is_unsieved: AtomicU32::new(0),
            is_given: AtomicU32::new(0),
            request_bytes: AtomicU64::new(0),
            priced: UnsafeCell::new(Priced::by(None)),
        }
    }

    /// After an open in which all processes take part; `managed` is the descriptor of a store's file.
    pub fn opened(&self, post: &Post, managed: Option<i32>) {
        self.writes.store(0, Relaxed);
        self.wanted.store(0, Relaxed);
        self.told.store(if post.has(Post::READS_UNSIEVED) { UNSIEVED } else { SIEVED }, Relaxed);
        self.is_unsieved.store(0, Relaxed);
        self.is_given.store(u32::from(post.has(Post::SIEVING_GIVEN)), Relaxed);
        self.request_bytes.store(0, Relaxed);
        // SAFETY: of the thread that opens the file.
        unsafe { *self.priced.get() = Priced::by(managed.and_then(servers)) };
    }

    /// After a collective call.
    pub fn requested(&self, bytes: u64) {
        if bytes > 0 {
            self.request_bytes.store(bytes, Relaxed);
        }
    }

    /// Before a view is set: whether this process would have its reads unsieved. What was priced counts when it is set.
    pub fn viewing(&self, library: &Library, post: &Post, filetype: Handle, has_gaps: bool) -> bool {
        // SAFETY: of the thread that sets the view.
        let priced = unsafe { &mut *self.priced.get() };
        priced.next = View::UNPRICED;
        let is_given = self.is_given.load(Relaxed) != 0;
        // By rules, in a dry run, and where a hint says it nobody asks, but for writes to known devices.
        if !has_gaps || !post.has(Post::ROMIO) || !is_priced() || is_given && priced.servers.is_none() {
            return false;
        }
        priced.next.pieces = pieces(library, filetype);
        let Some(pieces) = priced.next.pieces.filter(|_| !is_given) else { return false };
        let [reads, _] = priced.servers.unwrap_or([Servers::UNKNOWN; 2]);
        let found = Sieving::choose(pieces, self.request_bytes.load(Relaxed), post.size(), &reads);
        priced.next.reads = Some(found);
        !found.is_sieved && has_places(library, filetype)
    }

    /// Before the first write behind a view with gaps: what it takes piece by piece over what it takes joined, where that is clearly more.
    pub fn gain_of_joining(&self, bytes: u64, processes: u32, exchange_ns: u64) -> Option<f64> {
        // SAFETY: of the thread that makes a collective call on the file.
        let priced = unsafe { *self.priced.get() };
        let [_, writes] = priced.servers?;
        gain_of_joining(priced.view.pieces?, bytes, processes, &writes, exchange_ns)
    }

    /// After a view was set, with what all processes know of it. Where they know nothing of it, it may be one that must not be read piece by piece.
    pub fn viewed(&self, agreed: Agreed) {
        // SAFETY: of the thread that sets the view.
        let priced = unsafe { &mut *self.priced.get() };
        priced.view = priced.next;
        self.informed(agreed.hinted);
        let unknown = if self.is_unsieved.load(Relaxed) != 0 && !agreed.are_alike { SIEVED } else { 0 };
        self.wanted.store(agreed.unsieved.map_or(unknown, |is| if is { UNSIEVED } else { SIEVED }), Relaxed);
        self.keep_given();
    }

    /// Some process has given hints, as all of them know alike: what counts more than these is told again, before the next independent call.
    pub fn informed(&self, hinted: Hinted) {
        if hinted.any {
            self.writes.store(0, Relaxed);
            self.told.store(0, Relaxed);
        }
        self.is_given.fetch_or(u32::from(hinted.reads), Relaxed);
        self.keep_given();
    }

    fn keep_given(&self) {
        if self.is_given.load(Relaxed) != 0 {
            self.wanted.store(0, Relaxed);
        }
    }

    /// Before a collective read that all processes make independently. Where no view has gaps it stays as it is.
    pub fn before_read(&self, library: &Library, file: Handle) {
        if let Some(way) = self.untold() {
            library.tell_sieving(file, None, Some(way));
        }
        let way = self.wanted.load(Relaxed);
        // SAFETY: of the thread that makes a collective call on the file.
        let priced = unsafe { &mut *self.priced.get() };
        if let (Some(pieces), Some(found), true) = (priced.view.pieces, priced.view.reads, way != 0) {
            priced.made = Some((pieces, found, way));
        }
    }

    /// Before such a write behind views with gaps: whether it changes nothing but its own bytes. What is wanted of reads is told with it.
    pub fn is_write_safe(&self, library: &Library, file: Handle) -> bool {
        if self.writes.load(Relaxed) == 0 {
            let is_so = library.tell_sieving(file, Some(c"disable"), self.untold());
            self.writes.store(if is_so { 1 } else { 2 }, Relaxed);
        }
        self.writes.load(Relaxed) == 1
    }

    /// What is wanted of reads and not told yet, which it is then. ROMIO wants the same of all processes.
    fn untold(&self) -> Option<&'static CStr> {
        let wanted = self.wanted.load(Relaxed);
        let is_new = wanted != 0 && wanted != self.told.swap(wanted, Relaxed);
        if is_new {
            self.is_unsieved.store(u32::from(wanted == UNSIEVED), Relaxed);
        }
        is_new.then_some(if wanted == UNSIEVED { c"disable" } else { c"automatic" })
    }

    /// Writes down how independent reads were made, when the file is closed.
    pub fn note(&self, note: &NotedSieving) {
        // SAFETY: of the thread that closes the file.
        let priced = unsafe { *self.priced.get() };
        if let Some((pieces, sieving, way)) = priced.made {
            note.servers.store(priced.servers.map_or(0, |[reads, _]| reads.count), Relaxed);
            note.piece_bytes.store(pieces.bytes, Relaxed);
            note.stride_bytes.store(pieces.mean_stride_bytes(), Relaxed);
            note.sieved_ns.store(sieving.sieved_ns as u64, Relaxed);
            note.unsieved_ns.store(sieving.unsieved_ns as u64, Relaxed);
            note.way.store(way, Relaxed);
        }
    }
}

/// What hints of the program's say of sieving; that of reads counts unless it is overridden.
pub fn hinted(library: &Library, info: Handle, is_overridden: bool) -> Hinted {
    let any = [READ_SIEVING, WRITE_SIEVING].iter().any(|key| library.value_length(info, key).is_some());
    let mut text = [0; 16];
    let reads = !is_overridden && library.value(info, READ_SIEVING, &mut text).is_some_and(|value| is_one_of(value, &[b"enable", b"disable"]));
    Hinted { any, reads }
}

/// Whether calls are decided on by price.
fn is_priced() -> bool {
    board().is_some_and(|board| Policy::of(board.policy.load(Relaxed)) == Policy::Price)
}

/// Whether ROMIO finds each byte of a filetype's data where it reads them piece by piece.
fn has_places(library: &Library, filetype: Handle) -> bool {
    let mut bytes = 0;
    // SAFETY: MPI's prototype; a type that MPI has told the gaps of.
    let is_known = unsafe { (library.type_size_x)(filetype, &raw mut bytes) == 0 };
    is_known && (0..TYPE_BYTES_MAX).contains(&bytes)
}

/// What is taken for all targets of a store's file, for reads and for writes: the stripes of its longest region, each target as slow as the slowest that the
/// layout names; none: nothing is known of their devices.
fn servers(managed: i32) -> Option<[Servers; 2]> {
    let open = another(managed).ok()?;
    let file = open.file().ok()?;
    let store = file.store().ok()?.view().ok()?;
    let home = file.current().ok()?.view.home();
    let (mut count, mut bytes, mut longest, mut slowest) = (0u32, 0u64, 0u64, DeviceModel::default());
    for region in (0..home.len()).filter_map(|place| home.region(place)) {
        let (mut targets, mut cycle) = (0u32, 0u64);
        for (target, width) in region.stripes() {
            let model = store.target(target as usize)?.model;
            slowest.startup_read_ns = slowest.startup_read_ns.max(model.startup_read_ns);
            slowest.startup_write_ns = slowest.startup_write_ns.max(model.startup_write_ns);
            slowest.read_ps_per_byte = slowest.read_ps_per_byte.max(model.read_ps_per_byte);
            slowest.write_ps_per_byte = slowest.write_ps_per_byte.max(model.write_ps_per_byte);
            targets += 1;
            cycle = cycle.saturating_add(width);
        }
        if region.len >= longest {
            (count, bytes, longest) = (targets, cycle, region.len);
        }
    }
    let stripe_bytes = bytes.checked_div(u64::from(count))?.max(1);
    let of = |startup_ns, ps_per_byte| Servers { count, stripe_bytes, startup_ns, ps_per_byte };
    let found = [of(slowest.startup_read_ns, slowest.read_ps_per_byte), of(slowest.startup_write_ns, slowest.write_ps_per_byte)];
    (slowest != DeviceModel::default()).then_some(found)
}

/// The pieces that a filetype shows, on average of the first ones; none: they are not in the order of the file, too many to look at, or not known.
fn pieces(library: &Library, filetype: Handle) -> Option<Pieces> {
    let room = describe::describe_within(library, filetype, WORDS_MAX)?.compiled(0)?;
    let (tile, mut found, mut count, mut first, mut last, mut is_whole) = (Tile::open(room.words()), 0u64, 0u64, 0i64, None, true);
    let root = tile.root();
    // Until there are enough of them, which is no error.
    let _ = tile.each_range(0, 0, root.bytes(), &mut |at, bytes| {
        match last {
            Some((_, end)) if at == end => last = last.map(|(begun, end): (i64, i64)| (begun, end + bytes as i64)),
            Some((_, end)) if at < end => {
                count = 0;
                return None;
            }
            _ if count == PIECES_MAX => {
                is_whole = false;
                return None;
            }
            before => {
                first = before.map_or(at, |_| first);
                count += 1;
                last = Some((at, at + bytes as i64));
            }
        }
        found += bytes;
        Some(())
    });
    let (_, end) = last?;
    let (bytes, extent) = (found.checked_div(count)?, u64::try_from(root.extent()).ok()?);
    if count == 1 && is_whole {
        return Some(Pieces { bytes, stride_bytes: extent, copy: None });
    }
    let gaps = u64::try_from(end - first).ok()?.checked_sub(found)?;
    let copy = is_whole.then_some(Repetition { pieces: count, extent_bytes: extent });
    Some(Pieces { bytes, stride_bytes: bytes + gaps.checked_div(count - 1).unwrap_or(0), copy })
}
