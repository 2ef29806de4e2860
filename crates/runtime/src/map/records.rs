//! Which maps of managed files this process has. munmap, mremap and msync need them; and while there is one, a shared lock on byte 1 of ctl tells
//! whoever would move the file that it is pinned: a map writes without asking the gate. Forked children share that lock with their maps.

use crate::base::lock::Lock;
use crate::base::locks;
use crate::base::sys::{self, Errno, Sys};
use crate::fds;
use crate::file::{self, File};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};
use stripewise_layout::Logical;
use stripewise_store::locks::{How, PIN_BYTE};

/// Most maps of one process.
const MOST: usize = 16_384;

/// One map, or what is left of it.
#[derive(Clone, Copy)]
pub struct Map {
    /// First byte in memory.
    pub start: usize,
    /// First byte after it.
    pub end: usize,
    /// Place in the table of files.
    pub file: u32,
    /// Where in the file it begins.
    pub offset: u64,
    /// Protection it was made with.
    pub prot: i32,
    /// Flags it was made with.
    pub flags: i32,
    /// Shared, from a descriptor that could not write: no part may become writable.
    pub read_only: bool,
    /// Areas of the kernel that it takes.
    pub areas: u32,
}

/// The table.
pub struct Records {
    list: [Map; MOST],
    used: usize,
}

struct Cell(UnsafeCell<Records>);
// SAFETY: touched under LOCK only.
unsafe impl Sync for Cell {}

const NONE: Map = Map { start: 0, end: 0, file: 0, offset: 0, prot: 0, flags: 0, read_only: false, areas: 0 };
static RECORDS: Cell = Cell(UnsafeCell::new(Records { list: [NONE; MOST], used: 0 }));
static LOCK: Lock = Lock::new();
static AREAS: AtomicUsize = AtomicUsize::new(0);

/// Bounds that all maps lie in, for the shim: calls on memory outside of them are none of ours.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static sw_map_bounds: [AtomicUsize; 2] = [AtomicUsize::new(usize::MAX), AtomicUsize::new(0)];

/// Areas that all maps take.
pub fn areas() -> usize {
    AREAS.load(Ordering::Relaxed)
}

/// Runs `work` on the table.
pub fn with<T>(work: impl FnOnce(&mut Records) -> Sys<T>) -> Sys<T> {
    let Some(_held) = LOCK.lock() else { return Err(Errno(libc::EDEADLK)) };
    // SAFETY: under LOCK.
    work(unsafe { &mut *RECORDS.0.get() })
}

/// Adds a map whose pin the caller keeps; what was recorded there is gone.
pub fn add(map: Map) -> Sys<()> {
    with(|records| {
        records.cut(map.start, map.end)?;
        records.push(map)
    })
}

/// A pin that is taken back unless it is kept.
pub struct Pin {
    file: u32,
}

impl Pin {
    /// Place of the file.
    pub fn file(&self) -> u32 {
        self.file
    }

    /// A map has it now.
    pub fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let _ = with(|_| {
            unpin(self.file);
            Ok(())
        });
    }
}

/// Pins a file for one map.
pub fn pin(file: &'static File) -> Sys<Pin> {
    with(|_| pin_locked(file)).map(|file| Pin { file })
}

fn pin_locked(file: &'static File) -> Sys<u32> {
    let index = file::acquire(file.store()?, file.id())?;
    if file.maps.fetch_add(1, Ordering::AcqRel) == 0
        && let Err(errno) = lock_pin(file)
    {
        file.maps.fetch_sub(1, Ordering::AcqRel);
        file::release(index);
        return Err(errno);
    }
    if let Err(errno) = crate::gate::call_off_move(file) {
        unpin(index);
        return Err(errno);
    }
    Ok(index)
}

fn lock_pin(file: &'static File) -> Sys<()> {
    let fd = fds::reopen(file.ctl_fd()?, libc::O_RDONLY)?;
    match locks::take(fd, How::Shared, PIN_BYTE) {
        Ok(true) => fds::make_internal(fd, &file.pin, true).map(|_| ()),
        // Nobody has a use for the exclusive lock of this byte.
        taken => {
            sys::close(fd);
            Err(taken.err().unwrap_or(Errno(libc::EAGAIN)))
        }
    }
}

fn unpin(index: u32) {
    let Some(file) = file::get(index) else { return };
    if file.maps.fetch_sub(1, Ordering::AcqRel) == 1 {
        // Closed, never unlocked: a forked child may share the lock.
        fds::close_internal(&file.pin);
    }
    file::release(index);
}

/// Whether any process has a map of the file.
pub fn is_pinned(file: &'static File) -> bool {
    file.ctl_fd().map_or(true, |fd| locks::is_in_the_way(fd, How::Exclusive, PIN_BYTE))
}

impl Map {
    /// Whether any byte of `[start, end)` is in it.
    pub fn overlaps(&self, start: usize, end: usize) -> bool {
        self.start < end && start < self.end
    }

    /// Whether it can write to the file.
    pub fn is_writable(&self) -> bool {
        super::pages::is_shared(self.flags) && !self.read_only
    }

    fn part(&self, start: usize, end: usize) -> Self {
        let mut part = Self { start, end, offset: self.offset + (start - self.start) as u64, ..*self };
        part.areas = part.count();
        part
    }

    /// Areas it takes under the layout in force, which cannot change while the file is pinned.
    pub fn count(&self) -> u32 {
        let loaded = file::get(self.file).map(File::current);
        let Some(Ok(loaded)) = loaded else { return 0 };
        loaded.view.pieces(Logical(self.offset), (self.end - self.start) as u64).count() as u32
    }
}

impl Records {
    /// All maps.
    pub fn all(&self) -> &[Map] {
        self.list.get(..self.used).unwrap_or(&[])
    }

    /// The map that `[start, end)` lies in.
    pub fn containing(&self, start: usize, end: usize) -> Option<Map> {
        self.all().iter().find(|m| m.start <= start && end <= m.end).copied()
    }

    /// The first map in `[from, end)` that can write, with a pin of the caller's own.
    pub fn next_writable(&self, from: usize, end: usize) -> Sys<Option<(Map, Pin)>> {
        let first = self.all().iter().filter(|m| m.overlaps(from, end) && m.is_writable()).min_by_key(|m| m.start);
        let Some(map) = first else { return Ok(None) };
        let file = file::get(map.file).ok_or(Errno(libc::EIO)).and_then(pin_locked)?;
        Ok(Some((*map, Pin { file })))
    }

    /// Adds a map whose pin the caller keeps.
    pub fn push(&mut self, map: Map) -> Sys<()> {
        let slot = self.list.get_mut(self.used).ok_or(Errno(libc::ENOMEM))?;
        *slot = map;
        self.used += 1;
        self.count_up();
        Ok(())
    }

    /// The map that ended at `end` has grown.
    pub fn grow(&mut self, end: usize, new_end: usize) {
        let used = self.used;
        if let Some(map) = self.list.iter_mut().take(used).find(|m| m.end == end) {
            map.end = new_end;
            map.areas = map.count();
        }
        self.count_up();
    }

    /// Forgets what lies in `[start, end)`; a map that loses its middle becomes two.
    pub fn cut(&mut self, start: usize, end: usize) -> Sys<()> {
        let mut at = 0;
        let mut changed = false;
        while let Some(map) = self.list.get(at).filter(|_| at < self.used).copied() {
            if !map.overlaps(start, end) {
                at += 1;
                continue;
            }
            changed = true;
            let head = (map.start < start).then(|| map.part(map.start, start));
            let tail = (end < map.end).then(|| map.part(end, map.end));
            match (head, tail) {
                (Some(head), Some(tail)) => {
                    file::get(map.file).ok_or(Errno(libc::EIO)).and_then(pin_locked)?;
                    if let Err(errno) = self.push(tail) {
                        unpin(map.file);
                        return Err(errno);
                    }
                    self.set(at, head);
                }
                (Some(part), None) | (None, Some(part)) => self.set(at, part),
                (None, None) => {
                    let last = self.all().last().copied().unwrap_or(NONE);
                    self.set(at, last);
                    self.used = self.used.saturating_sub(1);
                    unpin(map.file);
                    continue;
                }
            }
            at += 1;
        }
        if changed {
            self.count_up();
        }
        Ok(())
    }

    /// What was at `[start, end)` of a map is `map` now.
    pub fn move_to(&mut self, start: usize, end: usize, map: Map) -> Sys<()> {
        file::get(map.file).ok_or(Errno(libc::EIO)).and_then(pin_locked)?;
        if let Err(errno) = self.cut(start, end).and_then(|()| self.push(map)) {
            unpin(map.file);
            return Err(errno);
        }
        Ok(())
    }

    fn set(&mut self, at: usize, map: Map) {
        if let Some(slot) = self.list.get_mut(at) {
            *slot = map;
        }
    }

    fn count_up(&self) {
        let [lowest, highest] = &sw_map_bounds;
        lowest.store(self.all().iter().map(|m| m.start).min().unwrap_or(usize::MAX), Ordering::Release);
        highest.store(self.all().iter().map(|m| m.end).max().unwrap_or(0), Ordering::Release);
        AREAS.store(self.all().iter().map(|m| m.areas as usize).sum(), Ordering::Relaxed);
    }
}

/// The lock of the table of maps, for those who fork.
pub fn table_lock() -> &'static Lock {
    &LOCK
}

/// In a forked child, which has its parent's maps and, through the same descriptors, its pins.
pub fn after_fork() {
    LOCK.reset();
}
