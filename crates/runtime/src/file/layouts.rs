//! The layout of an open file: mapped when it is opened, and again when a move has published another. The ones before it stay until the file is closed, since a
//! thread may be inside an I/O by one of them.

use super::{File, object_place};
use crate::base::log;
use crate::base::sys::{self, Errno, Sys};
use crate::store::part::{Held, Stat};
use crate::store::{self, Attached};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use stripewise_layout::{Spread, View};
use stripewise_store::bin::LAYOUT_BYTES_MAX;

/// A layout in force, in anonymous memory of its own so that readers hold a plain pointer; behind it `first`, and the bytes of a layout that is not long.
pub struct Loaded {
    /// The layout.
    pub view: View<'static>,
    bytes: &'static [u8],
    /// Its bytes are a map of their own.
    is_mapped: bool,
    older: *mut Loaded,
    /// First byte of the file in each object, plus one, by its place ([`object_place`]); 0 where the home uses none.
    first: &'static [u64],
    /// All objects whose first byte lies below are there.
    pub made_to: AtomicU64,
    memory: Memory,
}

/// Longest layout that is copied; longer ones are mapped, and so are one for all processes.
const COPIED_BYTES_MAX: u64 = 65_536;
/// Bytes of the pieces of memory that are used again: most layouts, with all that stands before them, are shorter.
const PIECE_BYTES: usize = 4096;
const PIECES: usize = 32;

/// Pieces of [`PIECE_BYTES`] that were given back: fresh ones cost a fault each, which is more than the rest of opening a file.
static SPARE: [AtomicPtr<u8>; PIECES] = [const { AtomicPtr::new(core::ptr::null_mut()) }; PIECES];

/// Private memory for a layout.
#[derive(Clone, Copy)]
struct Memory {
    base: *mut u8,
    len: usize,
}

impl Memory {
    fn new(len: usize) -> Sys<Self> {
        let len = len.max(PIECE_BYTES);
        let take = |spare: &AtomicPtr<u8>| Some(spare.swap(core::ptr::null_mut(), Ordering::AcqRel)).filter(|base| !base.is_null());
        if let Some(base) = SPARE.iter().filter(|_| len == PIECE_BYTES).find_map(take) {
            return Ok(Self { base, len });
        }
        sys::mmap(-1, len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS).map(|base| Self { base, len })
    }

    /// # Safety
    /// Nobody refers to it any more.
    unsafe fn give_back(self) {
        let put = |spare: &AtomicPtr<u8>| spare.compare_exchange(core::ptr::null_mut(), self.base, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if self.len != PIECE_BYTES || !SPARE.iter().any(put) {
            // SAFETY: the caller's promise.
            unsafe { sys::munmap(self.base, self.len) };
        }
    }
}

/// First byte of an object that is none of the home's.
const UNUSED: u64 = u64::MAX;

/// The bytes of a layout that is not looked at yet, in the memory that will hold it; dropped, they are given back.
pub struct Raw {
    memory: Memory,
    objects: usize,
    len: usize,
    /// Its bytes, where they are a map of their own.
    mapped: Option<&'static [u8]>,
}

impl Raw {
    /// Room for a layout of `len` bytes on a store whose files have so many objects, with the zeroes of `first`.
    fn of_length(len: usize, objects: usize) -> Sys<Self> {
        let memory = Memory::new(Self::before(objects) + len)?;
        // SAFETY: memory of this length, that nobody else knows.
        unsafe { core::ptr::write_bytes(memory.base.add(core::mem::size_of::<Loaded>()), 0, objects * 8) };
        Ok(Self { memory, objects, len, mapped: None })
    }

    /// The layout of a new file: a template with its id.
    pub fn of_new(template: &[u8], id: u64, store: &Attached) -> Sys<Self> {
        let mut raw = Self::of_length(template.len(), store.objects_max()?)?;
        raw.bytes_mut().copy_from_slice(template);
        stripewise_layout::stamp(raw.bytes_mut(), [id, 0]).map_err(|_| Errno(libc::EIO))?;
        Ok(raw)
    }

    /// The layout of a new file that is spread otherwise than its template.
    pub fn of_spread(spread: &Spread<'_>, id: u64, store: &Attached) -> Sys<Self> {
        let mut raw = Self::of_length(spread.bytes(), store.objects_max()?)?;
        // The memory may have been another layout's.
        raw.bytes_mut().fill(0);
        spread.encode(raw.bytes_mut());
        stripewise_layout::stamp(raw.bytes_mut(), [id, 0]).map_err(|_| Errno(libc::EIO))?;
        Ok(raw)
    }

    const fn before(objects: usize) -> usize {
        core::mem::size_of::<Loaded>() + objects * 8
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: its own memory, of this length.
        self.mapped.unwrap_or_else(|| unsafe { core::slice::from_raw_parts(self.memory.base.add(Self::before(self.objects)), self.len) })
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.memory.base.add(Self::before(self.objects)), self.len) }
    }

    /// Puts it in force as the one after `older`; `view` is one of its bytes.
    fn into_loaded(self, view: View<'static>, older: *mut Loaded) -> &'static Loaded {
        // SAFETY: it stays as long as it is in force.
        let bytes: &'static [u8] = unsafe { &*core::ptr::from_ref(self.bytes()) };
        // SAFETY: a Loaded is as aligned as its words, and they are zeroes.
        let first: &'static mut [u64] =
            unsafe { core::slice::from_raw_parts_mut(self.memory.base.add(core::mem::size_of::<Loaded>()).cast(), self.objects) };
        view.first_bytes(|target, plane, byte| {
            if let Some(least) = first.get_mut(object_place(target, plane)) {
                *least = if *least == 0 { byte + 1 } else { (byte + 1).min(*least) };
            }
        });
        let loaded = self.memory.base.cast::<Loaded>();
        // SAFETY: the memory is page-aligned and has room for it.
        unsafe {
            loaded.write(Loaded { view, bytes, is_mapped: self.mapped.is_some(), older, first, made_to: AtomicU64::new(0), memory: self.memory });
            core::mem::forget(self);
            &*loaded
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: nobody else knows of it.
        unsafe {
            if let Some(mapped) = self.mapped {
                sys::munmap(mapped.as_ptr().cast_mut(), mapped.len());
            }
            self.memory.give_back();
        }
    }
}

impl Loaded {
    /// The objects, as (target, plane), that hold bytes of the file once it reaches them.
    pub fn objects(&self) -> impl Iterator<Item = (u32, u32)> + use<'_> {
        self.firsts().map(|(target, plane, _)| (target, plane))
    }

    /// The same, each with its first byte.
    pub fn firsts(&self) -> impl Iterator<Item = (u32, u32, u64)> + use<'_> {
        let all = (0..self.view.target_count()).flat_map(|t| [(t, 0), (t, 1)]);
        all.map(|(target, plane)| (target, plane, self.first_byte(target, plane))).filter(|(_, _, first)| *first != UNUSED)
    }

    /// First byte of the file in an object: it must be there once the file reaches further.
    pub fn first_byte(&self, target: u32, plane: u32) -> u64 {
        self.first.get(object_place(target, plane)).copied().unwrap_or(0).wrapping_sub(1)
    }

    /// Unmaps a layout and those before it.
    ///
    /// # Safety
    /// Null, or made by [`File::reload`] and used by nobody any more.
    pub(super) unsafe fn unmap_all(mut loaded: *mut Self) {
        // SAFETY: the caller's promise, of each in turn.
        while let Some(l) = unsafe { loaded.as_ref() } {
            let (older, memory) = (l.older, l.memory);
            // SAFETY: as above.
            unsafe {
                if l.is_mapped {
                    sys::munmap(l.bytes.as_ptr().cast_mut(), l.bytes.len());
                }
                memory.give_back();
            }
            loaded = older;
        }
    }
}

impl File {
    /// The layout in force; loads the new one when a move has published it.
    #[inline]
    pub fn current(&'static self) -> Sys<&'static Loaded> {
        let loaded = self.loaded.load(Ordering::Acquire);
        let ctl = self.ctl().ok_or(Errno(libc::EIO))?;
        // SAFETY: a published layout stays mapped until the file is closed.
        match unsafe { loaded.as_ref() } {
            Some(l) if l.view.generation() == ctl.header().generation.load(Ordering::SeqCst) => Ok(l),
            _ => self.renew(),
        }
    }

    #[cold]
    fn renew(&'static self) -> Sys<&'static Loaded> {
        let loaded = self.reload()?;
        // A move has made objects: they are opened as those before them were, before somebody changes our rights to them.
        if self.is_foreign() && !crate::base::process::in_vfork_child() {
            for (target, plane) in loaded.objects() {
                let _ = self.object_if_made(loaded, target, plane);
            }
        }
        Ok(loaded)
    }

    #[cold]
    pub(super) fn reload(&'static self) -> Sys<&'static Loaded> {
        let held = self.lock.lock();
        let ctl = self.ctl().ok_or(Errno(libc::EIO))?;
        let before = self.loaded.load(Ordering::Acquire);
        // SAFETY: as in `current`.
        if let Some(l) = unsafe { before.as_ref() }
            && (l.view.generation() >= ctl.header().generation.load(Ordering::SeqCst) || held.is_none())
        {
            return Ok(l);
        }
        self.put_in_force(self.read_layout()?, before)
    }

    /// Puts a layout in the place of `before`, if it is this file's, and newer.
    pub(super) fn put_in_force(&'static self, raw: Raw, before: *mut Loaded) -> Sys<&'static Loaded> {
        let ctl = self.ctl().ok_or(Errno(libc::EIO))?;
        // SAFETY: the view goes with it, or stays as long as it is in force.
        let Ok(view) = View::parse(unsafe { &*core::ptr::from_ref(raw.bytes()) }) else {
            log::say(
                b"the layout is damaged or newer than this library; data are never guessed: run stripewise store fsck",
                self.part(b"layout")?.as_bytes(),
            );
            return Err(Errno(libc::EIO));
        };
        if view.file_id()[0] != self.id() || view.target_count() as usize > self.store()?.view()?.target_count() {
            log::say(b"the layout belongs to another file or store; run stripewise store fsck", self.part(b"layout")?.as_bytes());
            return Err(Errno(libc::EIO));
        }
        // SAFETY: as in `current`.
        if let Some(l) = unsafe { before.as_ref() }
            && l.view.generation() >= view.generation()
        {
            // A mover that failed has raised the generation for nothing. One more copy of the layout at each I/O until the next move would be too much.
            return Ok(l);
        }
        if !before.is_null() {
            self.drop_removed_objects();
        }
        let loaded = raw.into_loaded(view, before);
        if self.may_write() {
            ctl.header().generation.fetch_max(view.generation(), Ordering::SeqCst);
        }
        self.loaded.store(core::ptr::from_ref(loaded).cast_mut(), Ordering::Release);
        Ok(loaded)
    }

    fn open_layout(&self) -> Sys<(Held, Stat)> {
        let at = self.at()?;
        // While the file is being opened head has just been looked at; later somebody may have given it away.
        let owner = if self.is_opening() { self.owner.load(Ordering::Relaxed) } else { at.head_stat()?.st_uid };
        at.open_part(c"layout", libc::O_RDONLY, owner, LAYOUT_BYTES_MAX).map(|(fd, stat)| (Held::from_raw(fd), stat))
    }

    /// The bytes of the layout as it is on disk now.
    #[inline(never)] // Threads may have small stacks: one path less below what follows.
    fn read_layout(&self) -> Sys<Raw> {
        let (fd, stat) = self.open_layout()?;
        let (len, objects) = (stat.st_size as u64, self.store()?.objects_max()?);
        if len > COPIED_BYTES_MAX {
            let mut raw = Raw::of_length(0, objects)?;
            raw.mapped = Some(store::take_file(&fd, &stat)?);
            return Ok(raw);
        }
        let mut raw = Raw::of_length(len as usize, objects)?;
        // It is replaced, never changed in place: one that is shorter than it was has been tampered with.
        match sys::read(fd.fd(), raw.bytes_mut()) {
            Ok(got) if got as u64 == len => Ok(raw),
            got => Err(got.err().unwrap_or(Errno(libc::EIO))),
        }
    }

    /// Does `work` with the layout as it is on disk now: whoever has the exclusive lock sees all of a move there, or nothing.
    pub fn with_layout_on_disk<T>(&self, work: impl FnOnce(&View<'_>) -> Sys<T>) -> Sys<T> {
        let raw = self.read_layout()?;
        View::parse(raw.bytes()).map_err(|_| Errno(libc::EIO)).and_then(|view| work(&view))
    }
}
