//! The layout of an open file: mapped when it is opened, and again when a move has published another. The ones before it stay until the file is closed, since a
//! thread may be inside an I/O by one of them.

use super::{File, MAX_OBJECTS, object_place};
use crate::fds::{self, held};
use crate::log;
use crate::part::Held;
use crate::store;
use crate::sys::{self, Errno, Sys};
use core::sync::atomic::{AtomicU64, Ordering};
use stripewise_layout::View;
use stripewise_store::bin::LAYOUT_BYTES_MAX;

/// A layout in force, in anonymous memory of its own so that readers hold a plain pointer.
pub struct Loaded {
    /// The mapped layout.
    pub view: View<'static>,
    bytes: &'static [u8],
    older: *mut Loaded,
    /// First byte of the file in each object, plus one, by its place ([`object_place`]); 0 where the home uses none.
    first: [u64; MAX_OBJECTS],
    /// All objects whose first byte lies below are there.
    pub made_to: AtomicU64,
}

/// First byte of an object that is none of the home's.
const UNUSED: u64 = u64::MAX;

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
            let older = l.older;
            // SAFETY: as above.
            unsafe {
                sys::munmap(l.bytes.as_ptr().cast_mut(), l.bytes.len());
                sys::munmap(loaded.cast(), core::mem::size_of::<Self>());
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
        if self.is_foreign() && !crate::process::in_vfork_child() {
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
        let bytes = self.map_layout()?;
        let Ok(view) = View::parse(bytes) else {
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
            // SAFETY: mapped above, and nothing refers to it.
            unsafe { sys::munmap(bytes.as_ptr().cast_mut(), bytes.len()) };
            return Ok(l);
        }
        let memory = sys::mmap(-1, core::mem::size_of::<Loaded>(), libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)?
            .cast::<Loaded>();
        if !before.is_null() {
            self.drop_removed();
        }
        // SAFETY: fresh page-aligned memory of that size, of zeros, which all other fields may be.
        let loaded = unsafe {
            (&raw mut (*memory).view).write(view);
            (&raw mut (*memory).bytes).write(bytes);
            (&raw mut (*memory).older).write(before);
            let loaded = &mut *memory;
            view.first_bytes(|target, plane, first| {
                if let Some(least) = loaded.first.get_mut(object_place(target, plane)) {
                    *least = if *least == 0 { first + 1 } else { (first + 1).min(*least) };
                }
            });
            &*memory
        };
        if self.may_write() {
            ctl.header().generation.fetch_max(view.generation(), Ordering::SeqCst);
        }
        self.loaded.store(memory, Ordering::Release);
        Ok(loaded)
    }

    /// Closes objects that a mover has removed: a later move may have made new ones of the same names. Nobody is inside an I/O on them,
    /// because the mover waited for that before it removed them.
    fn drop_removed(&'static self) {
        for holder in &self.objects {
            if held(holder).is_some_and(|fd| sys::fstat(fd).is_ok_and(|st| st.st_nlink == 0)) {
                fds::close_internal(holder);
            }
        }
    }

    #[inline(never)] // Threads may have small stacks: one path less below what follows.
    fn map_layout(&self) -> Sys<&'static [u8]> {
        let at = self.at()?;
        // While the file is being opened head has just been looked at; later somebody may have given it away.
        let owner = if self.is_opening() { self.owner.load(Ordering::Relaxed) } else { at.head_stat()?.st_uid };
        let (fd, stat) = at.open_part(c"layout", libc::O_RDONLY, owner, LAYOUT_BYTES_MAX)?;
        store::take_file(&Held::from_raw(fd), &stat)
    }

    /// Does `work` with the layout as it is on disk now: whoever has the exclusive lock sees all of a move there, or nothing.
    pub fn with_layout_on_disk<T>(&self, work: impl FnOnce(&View<'_>) -> Sys<T>) -> Sys<T> {
        let bytes = self.map_layout()?;
        let result = View::parse(bytes).map_err(|_| Errno(libc::EIO)).and_then(|view| work(&view));
        // SAFETY: mapped above, and the view is gone.
        unsafe { sys::munmap(bytes.as_ptr().cast_mut(), bytes.len()) };
        result
    }
}
