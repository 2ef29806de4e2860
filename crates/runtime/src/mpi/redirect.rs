//! Reads of MPI files whose file has copies (`crate::copies`): a view's ranges are looked up one by one, before the MPI library sieves or exchanges
//! them, and what stands side by side in the copies is one read. All of a call's bytes come from copies, or none.

use super::describe::{self, Described};
use super::library::{self, Handle, Library};
use super::room::Room;
use super::{Call, PASSED, REFUSED, SERVED_WHOLE, bytes_of};
use crate::base::lock::Lock;
use crate::base::vector::{Buffers, REQUEST_MAX};
use crate::copies::{self, Counted, managed};
use crate::gate;
use crate::io;
use crate::open::{of_copied, of_fd};
use crate::trace;
use core::ffi::c_void;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::*, fence};
use stripewise_store::copies::MANAGED_DEV;
use stripewise_trace::clock::now_ticks;
use stripewise_trace::datatype::Tile;
use stripewise_trace::{Op, flags};

/// What an open MPI file's reads are redirected by.
pub struct Served {
    /// The descriptor that the MPI library reads by, plus one; 0: its file has no copies.
    fd: AtomicI32,
    /// Device and inode of that file.
    dev: AtomicU64,
    ino: AtomicU64,
    /// The view in force; null: none that is understood.
    view: AtomicPtr<View>,
    /// Calls that look at it.
    readers: AtomicU32,
    /// Of who moves the individual pointer.
    pointer: Lock,
    /// Calls that are on their way in the MPI library, which moves it by itself.
    movers: AtomicU32,
}

/// Which bytes of the file are the view's data.
struct View {
    displacement: i64,
    /// The filetype (`datatype::compile` behind [`BEFORE`] words); none: bytes as they lie.
    filetype: Option<Room>,
}

/// A file as it is opened.
static WHOLE: View = View { displacement: 0, filetype: None };
/// More stretches of the container than these must have so many bytes on average: below that the MPI library's large reads over the gaps are quicker.
const STRETCHES_MIN: u64 = 16;
const STRETCH_BYTES: u64 = 4096;
/// Ranges of one call that are recorded one by one; a call of more stands in the mpi layer alone.
const RECORDED_MAX: usize = 4096;
/// Beside a call's operation and flags: it is one of `movers`.
const MOVES: u64 = 1 << 63;
/// Words of a room that hold the view itself.
const BEFORE: usize = core::mem::size_of::<View>().div_ceil(8);

// SAFETY: never written once it is in force.
unsafe impl Sync for View {}

impl Served {
    pub const fn none() -> Served {
        Served {
            fd: AtomicI32::new(0),
            dev: AtomicU64::new(0),
            ino: AtomicU64::new(0),
            view: AtomicPtr::new(core::ptr::null_mut()),
            readers: AtomicU32::new(0),
            pointer: Lock::new(),
            movers: AtomicU32::new(0),
        }
    }

    /// When the file is opened: the descriptor, and which file it leads to.
    pub fn begin(&self, copied: Option<(i32, (u64, u64))>) {
        let (fd, (dev, ino)) = copied.map_or((0, (0, 0)), |(fd, id)| (fd + 1, id));
        self.put(if fd == 0 { core::ptr::null_mut() } else { whole() });
        self.dev.store(dev, Relaxed);
        self.ino.store(ino, Relaxed);
        self.movers.store(0, Relaxed);
        self.fd.store(fd, Release);
    }

    /// When it is closed.
    pub fn end(&self) {
        self.fd.store(0, Release);
        self.put(core::ptr::null_mut());
    }

    /// Whether its file had copies when it was opened.
    pub fn has_copies(&self) -> bool {
        self.fd.load(Relaxed) != 0
    }

    /// Whether a call is one that copies can serve, that says which, or that moves the pointer of those.
    pub fn concerns(&self, op: u32, bits: u32) -> bool {
        let is_read = op == Op::MpiRead as u32 && bits & (flags::SHARED | flags::NONBLOCKING) == 0;
        let moves = bits & flags::IMPLICIT_OFFSET != 0;
        self.has_copies() && (is_read || moves || op == Op::View as u32 || op == Op::MpiClose as u32)
    }

    /// Another view: where it begins, and its filetype; none: not understood, so nothing is redirected by it.
    pub fn set_view(&self, view: Option<(u64, Described)>) {
        if self.has_copies() {
            self.put(view.and_then(|(displacement, described)| made(displacement, &described)).unwrap_or(core::ptr::null_mut()));
        }
    }

    /// Puts another view in the place of this one. One that is looked at stays in memory: a program that sets a view under its own reads is wrong, and lives.
    fn put(&self, view: *mut View) {
        let old = self.view.swap(view, SeqCst);
        if !old.is_null() && old != whole() && self.readers.load(SeqCst) == 0 {
            // SAFETY: made by `made`, and nobody looks at it.
            drop(unsafe { (*old).filetype.take() });
        }
    }

    /// Reads `bytes` of the view's data from byte `at` on to `to`, if the memory there `is_dense`; `None`: not all of them stand in copies that count, or
    /// in pieces that are too small, and what is at `to` is nothing.
    pub fn read(&self, at: u64, bytes: u64, to: *mut u8, is_dense: impl FnOnce() -> bool) -> Option<()> {
        self.readers.fetch_add(1, SeqCst);
        // SAFETY: in memory as long as somebody looks at it.
        let done = unsafe { self.view.load(SeqCst).as_ref() }.and_then(|view| self.read_by(view, at, bytes, to, is_dense));
        self.readers.fetch_sub(1, SeqCst);
        done
    }

    /// Moves the individual pointer on behind what was read; none: another thread has moved it, or may be about to, so this one's bytes may be others.
    pub fn move_pointer(&self, library: &Library, handle: Handle, from: i64, to: i64) -> Option<()> {
        let _held = self.pointer.lock()?;
        if self.movers.load(SeqCst) != 0 {
            return None;
        }
        library.move_pointer(handle, from, to)
    }

    fn read_by(&self, view: &View, at: u64, bytes: u64, to: *mut u8, is_dense: impl FnOnce() -> bool) -> Option<()> {
        let start = trace::begin();
        let fd = self.fd.load(Acquire) - 1;
        let of = (self.dev.load(Relaxed), self.ino.load(Relaxed));
        // Held until the bytes are there: the open file, and the epoch, in which what is known of a managed file's copies stays.
        let (open, mut passed) = (if of.0 == MANAGED_DEV { of_fd(fd) } else { of_copied(fd) }.ok()?, None);
        let copies = match open.copies() {
            Some(place) => copies::counted(place, fd)?,
            None => {
                let file = open.readable().ok()?;
                managed::refresh(file);
                passed = Some(gate::for_read(file).ok()?);
                managed::counted(file)?
            }
        };
        if !copies.is_of(of) {
            return None;
        }
        let before = view.look(&copies, at, bytes)?;
        let mut found = 0;
        view.stretches(&copies, at, bytes, &mut |_, len, before| {
            found += 1;
            (found <= STRETCHES_MIN || before as u64 + len >= found * STRETCH_BYTES).then_some(())
        })?;
        if !is_dense() {
            return None;
        }
        view.stretches(&copies, at, bytes, &mut |from, len, place| {
            // SAFETY: the program's buffer is as long as it asked for.
            read_whole(&copies, from, unsafe { to.add(place) }, len)
        })?;
        fence(SeqCst);
        if !copies.still_count() || view.look(&copies, at, bytes) != Some(before) {
            return None;
        }
        drop(passed);
        if start != 0 {
            view.record(&copies, fd, (at, bytes), (start, now_ticks()));
        }
        Some(())
    }
}

/// Serves a read (`sw_mpi_serve`).
pub(super) fn serve(call: &mut Call, buffer: *mut c_void, n: i64, datatype: Handle, result: &mut i32) -> i32 {
    let concerned = call.file.filter(|file| file.served.concerns(call.what as u32 & 0xffff, call.flags()));
    let (Some(library), Some(file)) = (library::get(), concerned) else { return PASSED };
    // Questions about a type that is none would end the program.
    if let Some(error) = library.refuses(file.handle(), datatype) {
        if call.flags() & flags::COLLECTIVE != 0 {
            return PASSED;
        }
        *result = error;
        return REFUSED;
    }
    let work = || {
        let etype_bytes = file.etype_bytes.load(Relaxed).max(1);
        let bytes = bytes_of(library, n, datatype).filter(|bytes| *bytes > 0 && bytes.is_multiple_of(etype_bytes))?;
        let at = u64::try_from(call.at).ok().filter(|_| !buffer.is_null())?;
        file.served.read(at, bytes, buffer.cast(), || describe::is_dense(library, datatype))?;
        if call.flags() & flags::IMPLICIT_OFFSET != 0 {
            let from = (at / etype_bytes) as i64;
            file.served.move_pointer(library, file.handle(), from, from + (bytes / etype_bytes) as i64)?;
        }
        Some(bytes)
    };
    call.served = work().unwrap_or(0);
    if call.served > 0 { SERVED_WHOLE } else { PASSED }
}

impl Call {
    /// Before the MPI library moves the individual pointer by itself, which it looks at and moves at once, and we in two steps: who is between them is waited
    /// for, and nobody takes them before [`Call::has_moved`]. A call that is left by a jump leaves it so, and what reads by the pointer is not redirected.
    pub(super) fn will_move(&mut self) {
        if let Some(file) = self.file.filter(|file| self.flags() & flags::IMPLICIT_OFFSET != 0 && file.served.has_copies()) {
            self.what |= MOVES;
            file.served.movers.fetch_add(1, SeqCst);
            drop(file.served.pointer.lock());
        }
    }

    /// The call has returned.
    pub(super) fn has_moved(&self) {
        if let Some(file) = self.file.filter(|_| self.what & MOVES != 0) {
            file.served.movers.fetch_sub(1, SeqCst);
        }
    }
}

/// Reads `len` bytes at `from` of the container.
fn read_whole(copies: &Counted, from: u64, to: *mut u8, len: u64) -> Option<()> {
    let mut done = 0;
    while done < len {
        let part = libc::iovec { iov_base: to.wrapping_add(done as usize).cast(), iov_len: (len - done).min(REQUEST_MAX) as usize };
        let read = io::read_file(copies.container(), &Buffers::of(&[part]).ok()?, from + done, 0).ok()?;
        if read == 0 {
            return None;
        }
        done += read;
    }
    Some(())
}

fn whole() -> *mut View {
    (&raw const WHOLE).cast_mut()
}

/// A view in memory of its own.
fn made(displacement: u64, described: &Described) -> Option<*mut View> {
    let displacement = i64::try_from(displacement).ok()?;
    let room = if described.is_plain() { Room::new(BEFORE)? } else { described.compiled(BEFORE)? };
    let place = room.as_ptr().cast::<View>();
    // SAFETY: the first words of the room are kept for it; they are aligned for words.
    unsafe { place.write(View { displacement, filetype: Some(room) }) };
    Some(place)
}

impl View {
    /// Hands out `bytes` of its data from byte `at` on as stretches of the container: (first byte there, bytes, bytes of data before).
    fn stretches(&self, copies: &Counted, at: u64, bytes: u64, each: &mut dyn FnMut(u64, u64, usize) -> Option<()>) -> Option<()> {
        let (mut first, mut len, mut before) = (0, 0, 0u64);
        let mut range = |offset: i64, bytes: u64| {
            let place = copies.place_of(u64::try_from(offset).ok()?, bytes)?;
            if len > 0 && place.at == first + len {
                len += bytes;
                return Some(());
            }
            if len > 0 {
                each(first, len, before as usize)?;
            }
            before += len;
            (first, len) = (place.at, bytes);
            Some(())
        };
        self.ranges(at, bytes, &mut range)?;
        each(first, len, before as usize)
    }

    /// Looks at the marks of all ranges of the file.
    fn look(&self, copies: &Counted, at: u64, bytes: u64) -> Option<u64> {
        let mut sum = 0u64;
        if copies.has_marks() {
            self.ranges(at, bytes, &mut |offset, len| {
                let at = u64::try_from(offset).ok()?;
                sum = sum.wrapping_add(copies.look(at, len, copies.on_write(at, len)?)?);
                Some(())
            })?;
        }
        Some(sum)
    }

    /// Hands out the ranges of the file: (offset, bytes).
    fn ranges(&self, at: u64, bytes: u64, each: &mut dyn FnMut(i64, u64) -> Option<()>) -> Option<()> {
        match self.filetype.as_ref().and_then(|room| room.words().get(BEFORE..)) {
            Some(tile) if !is_empty(tile) => Tile::open(tile).each_range(self.displacement, at, bytes, each),
            _ => each(self.displacement.checked_add(i64::try_from(at).ok()?)?, bytes),
        }
    }

    /// Records what was read as a read of each range; the time that it took is dealt out by their bytes.
    fn record(&self, copies: &Counted, fd: i32, (at, bytes): (u64, u64), (start, end): (u64, u64)) {
        let when = |done: u64| start + (u128::from(end - start) * u128::from(done) / u128::from(bytes.max(1))) as u64;
        let (mut done, mut ranges) = (0, 0);
        let few = self.ranges(at, bytes, &mut |_, _| {
            ranges += 1;
            (ranges <= RECORDED_MAX).then_some(())
        });
        if few.is_none() {
            return;
        }
        let _ = self.ranges(at, bytes, &mut |offset, len| {
            // Looked up again: it is the one that was read.
            let replica = copies.place_of(offset as u64, len)?.replica;
            trace::served(fd, (offset as u64, len), replica, (when(done), when(done + len)));
            done += len;
            Some(())
        });
    }
}

/// Whether a room holds a plain view: no type was compiled there, and it is all zeros.
fn is_empty(tile: &[u64]) -> bool {
    tile.first().is_none_or(|root| *root == 0)
}
