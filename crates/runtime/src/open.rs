//! Open files: what the program's descriptors of managed (and of recorded plain) files refer to. The program's own descriptor is
//! one of `head` in access mode 3: the kernel lets fstat, dup, fsync, lseek and close through and refuses everything that would move bytes.
//! A private companion, opened as the program asked, carries locks and status flags, and is inherited like the program's.

pub mod by_name;
pub mod create;

pub mod managed;
mod offset;
pub mod striping;
mod using;

use crate::base::lock::Lock;
use crate::base::process;
use crate::base::sys::{self, Errno, Sys};
use crate::copies;
use crate::fds::{self, TRACED, held};
use crate::file::{self, File};
use crate::store::Attached;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use stripewise_target::time::now_ns;
pub use using::{Use, another, forget_left_behind, of_copied, of_fd, release, retain, thread_exit};

/// Most open files (not descriptors: dups share one) of one process.
pub const MAX_OPEN: usize = 65_536;
/// "ioctl only": neither readable nor writable, but not O_PATH either.
const ACCESS_NONE: i32 = 3;
/// Flags of the program's open that its companion is opened with.
const COMPANION_FLAGS: i32 = libc::O_ACCMODE | STATUS_FLAGS | libc::O_NOATIME;
/// Flags that the program's descriptor has, too, should its companion get lost on the way to another program.
const STATUS_FLAGS: i32 = libc::O_APPEND | libc::O_NONBLOCK | libc::O_SYNC | libc::O_DSYNC;
/// Flags that F_SETFL sets and clears.
const SETTABLE_FLAGS: i32 = libc::O_APPEND | libc::O_NONBLOCK | libc::O_NOATIME | libc::O_DIRECT;

/// What an open by name was of.
#[derive(Clone, Copy)]
pub struct Kind {
    pub managed: bool,
    /// The open has created it, where that is known: of plain files only while tracing.
    pub created: bool,
}

impl Kind {
    pub const PLAIN: Kind = Kind { managed: false, created: false };
    pub const MANAGED: Kind = Kind { managed: true, created: false };
}

/// One open file.
pub struct OpenFile {
    /// Descriptors that refer to it, and calls that work on it (`using`).
    refs: AtomicU64,
    /// Place in the table of files plus one; 0 for a plain file that is only recorded.
    file: AtomicU32,
    flags: AtomicI32,
    companion: AtomicI32,
    /// The mark on descriptor and companion.
    mark: AtomicU32,
    /// Another process may use the same offset: reads and writes that move it exclude each other across processes.
    shared: AtomicBool,
    /// The program's descriptor is O_PATH (a permission was missing): the offset lives in the companion.
    path_only: AtomicBool,
    /// What the program has set by F_SETSIG: the descriptors themselves bear a mark of ours there.
    pub signal: AtomicI32,
    /// Id in the trace.
    pub trace_id: AtomicU32,
    /// Place of the copies that its reads are served from, plus one.
    copies: AtomicU32,
    /// Its companion was let through an exec or spawn that is under way.
    pub lent: AtomicBool,
    offset_lock: Lock,
}

static TABLE: [OpenFile; MAX_OPEN] = [const {
    OpenFile {
        refs: AtomicU64::new(0),
        file: AtomicU32::new(0),
        flags: AtomicI32::new(0),
        companion: AtomicI32::new(0),
        mark: AtomicU32::new(0),
        shared: AtomicBool::new(false),
        path_only: AtomicBool::new(false),
        signal: AtomicI32::new(0),
        trace_id: AtomicU32::new(0),
        copies: AtomicU32::new(0),
        lent: AtomicBool::new(false),
        offset_lock: Lock::new(),
    }
}; MAX_OPEN];
/// No place below this one is free, as far as was seen: places are taken from below, so that whoever looks through those in use looks at few.
static LOWEST_FREE: AtomicU32 = AtomicU32::new(1);
static HIGH_WATER: AtomicU32 = AtomicU32::new(0);

/// The open file of a table entry.
#[inline]
pub fn of_entry(entry: u32) -> Option<&'static OpenFile> {
    TABLE.get(fds::place(entry) as usize)
}

fn used() -> impl Iterator<Item = (u32, &'static OpenFile)> {
    let high = HIGH_WATER.load(Ordering::Acquire) as usize + 1;
    TABLE.iter().take(high).enumerate().map(|(i, o)| (i as u32, o)).filter(|(_, o)| o.refs.load(Ordering::Acquire) > 0)
}

/// The open files that have a companion, with its descriptor.
pub fn companions() -> impl Iterator<Item = (Use, i32)> {
    using::all().filter_map(|open| open.companion().map(|companion| (open, companion)))
}

/// Takes a free place with one reference.
fn claim() -> Sys<(u32, &'static OpenFile)> {
    // Place 0 is never used: entry 0 means "not ours".
    let start = (LOWEST_FREE.load(Ordering::Relaxed) as usize).clamp(1, MAX_OPEN - 1);
    for at in (start..MAX_OPEN).chain(1..start) {
        if let Some(open) = TABLE.get(at)
            && open.refs.compare_exchange(0, using::DESCRIPTOR, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            let _ = LOWEST_FREE.compare_exchange(start as u32, at as u32 + 1, Ordering::Relaxed, Ordering::Relaxed);
            HIGH_WATER.fetch_max(at as u32, Ordering::AcqRel);
            open.file.store(0, Ordering::Relaxed);
            open.flags.store(0, Ordering::Relaxed);
            open.shared.store(false, Ordering::Relaxed);
            open.mark.store(0, Ordering::Relaxed);
            open.path_only.store(false, Ordering::Relaxed);
            open.signal.store(0, Ordering::Relaxed);
            open.lent.store(false, Ordering::Relaxed);
            open.copies.store(0, Ordering::Relaxed);
            open.trace_id.store(0, Ordering::Relaxed);
            open.offset_lock.reset();
            return Ok((at as u32, open));
        }
    }
    Err(Errno(libc::ENFILE))
}

/// Registers a plain descriptor whose calls are recorded.
pub fn register_plain(fd: i32, trace_id: u32) {
    // A child of vfork would leave its parent an entry for a descriptor that only the child has.
    if !process::in_vfork_child()
        && let Ok((index, open)) = claim()
    {
        open.trace_id.store(trace_id, Ordering::Relaxed);
        fds::set_entry(fd, index | TRACED);
    }
}

/// A descriptor that is new has an entry only where its number was closed by a call that this library did not see: that one goes.
#[inline]
pub fn forget_left(fd: i32) {
    if fds::entry(fd) & fds::COPIED != 0 {
        release(fds::set_entry(fd, 0));
    }
}

/// Has the reads of a plain descriptor, recorded or not, served from copies of its file; their reference goes with the last descriptor.
pub fn register_copied(fd: i32, copies: u32) {
    let entry = match fds::entry(fd) {
        0 => claim().ok().map(|(index, _)| index | TRACED),
        entry => Some(entry).filter(|entry| entry & (TRACED | fds::COPIED) == TRACED),
    };
    let Some(entry) = entry else { return copies::release(copies) };
    if let Some(open) = of_entry(entry) {
        open.copies.store(copies + 1, Ordering::Release);
        fds::set_entry(fd, entry | fds::COPIED);
    }
}

/// Takes over a descriptor that an earlier image of this process (or its parent) had of `head`.
pub fn inherit(store: &'static Attached, id: u64, fd: i32, companion: Option<i32>) -> Sys<u32> {
    let index = file::acquire(store, id)?;
    let (place, open) = claim().inspect_err(|_| file::release(index))?;
    open.file.store(index + 1, Ordering::Relaxed);
    let raw = sys::fcntl(fd, libc::F_GETFL, 0).unwrap_or(0) as i32;
    let flags = open.take_companion(fd, raw, companion).inspect_err(|_| open.give_up(place))?;
    open.mark.store(tag_of(fd) as u32 & 63, Ordering::Relaxed);
    // Locks that the earlier image took are still there.
    if let Some(file) = file::get(index) {
        file.locked.store(true, Ordering::Relaxed);
    }
    open.flags.store(flags, Ordering::Relaxed);
    open.path_only.store(raw & libc::O_PATH != 0, Ordering::Relaxed);
    open.shared.store(true, Ordering::Relaxed);
    fds::set_entry(fd, place);
    Ok(place)
}

/// This process's open files of `file` that have a companion, with its descriptor.
pub fn companions_of(file: &'static File) -> impl Iterator<Item = (Use, i32)> {
    companions().filter(move |(open, _)| open.file().is_ok_and(|other| core::ptr::eq(other, file)))
}

/// Whether a companion may be that of a program's descriptor as far as their status flags tell, which are kept alike.
pub fn flags_agree(fd: i32, companion: i32) -> bool {
    let of = |fd| sys::fcntl(fd, libc::F_GETFL, 0).unwrap_or(0) as i32;
    of(fd) & libc::O_PATH != 0 || (of(fd) ^ of(companion)) & STATUS_FLAGS == 0
}

/// In parent and child of a fork: offsets are shared from now on.
pub fn share_all() {
    for (_, open) in used() {
        open.shared.store(true, Ordering::Relaxed);
    }
}

/// In a forked child.
pub fn after_fork() {
    for (_, open) in used() {
        open.offset_lock.reset();
    }
    using::after_fork();
}

/// The mark that ties a companion to its descriptor across exec: equal signal numbers, which nobody receives without O_ASYNC.
pub fn tag_of(fd: i32) -> i64 {
    sys::fcntl(fd, F_GETSIG, 0).unwrap_or(0)
}

/// The access mode that a mark tells; none: an O_PATH descriptor, which neither reads nor writes.
fn access_of(tag: i64) -> Option<i32> {
    (tag > 0).then(|| ((tag - 1) % 3) as i32)
}

/// Marks per access mode: signal numbers end at 64.
const TAGS: usize = 20;
const F_SETSIG: i32 = 10;
const F_GETSIG: i32 = 11;

impl OpenFile {
    fn tag(&self, place: u32, fd: i32, flags: i32) {
        let file = self.file.load(Ordering::Relaxed);
        // Two open files of one head must not be taken for each other by a program that inherits both.
        let has_others = file.checked_sub(1).and_then(file::get).is_none_or(File::is_open_besides);
        let same = used().take_while(|_| has_others).filter(|(_, other)| !core::ptr::eq(*other, self) && other.file.load(Ordering::Relaxed) == file);
        let taken = same.fold(0u64, |taken, (_, other)| taken | 1 << other.mark.load(Ordering::Relaxed));
        let mode = 1 + (flags & libc::O_ACCMODE).min(2) as usize;
        let candidates = (0..TAGS).map(|step| mode + 3 * ((place as usize + step) % TAGS));
        let tag = candidates.clone().find(|tag| taken >> tag & 1 == 0).or_else(|| candidates.clone().next()).unwrap_or(mode);
        self.mark.store(tag as u32, Ordering::Relaxed);
        let _ = sys::fcntl(fd, F_SETSIG, tag);
        if let Some(companion) = held(&self.companion) {
            let _ = sys::fcntl(companion, F_SETSIG, tag);
        }
    }

    /// Takes over the companion of an inherited descriptor, or makes one by what the descriptor itself tells; returns the flags of the open file.
    fn take_companion(&'static self, fd: i32, raw: i32, companion: Option<i32>) -> Sys<i32> {
        if let Some(companion) = companion {
            let flags = sys::fcntl(companion, libc::F_GETFL, 0)? as i32 & !libc::O_NOFOLLOW;
            fds::adopt_internal(companion, &self.companion)?;
            return Ok(flags);
        }
        let Some(access) = access_of(tag_of(fd)) else { return Ok(libc::O_PATH) };
        let flags = access | raw & STATUS_FLAGS;
        fds::make_internal(self.file()?.at()?.open_head(flags | libc::O_CLOEXEC)?, &self.companion, false)?;
        Ok(flags)
    }

    /// Closes companion and file, then frees the place: nobody may claim it before.
    fn give_up(&'static self, place: u32) {
        let file = self.file.swap(0, Ordering::AcqRel);
        fds::close_internal(&self.companion);
        if let Some(index) = file.checked_sub(1) {
            file::release(index);
        }
        if let Some(copies) = self.copies.swap(0, Ordering::AcqRel).checked_sub(1) {
            copies::release(copies);
        }
        using::forget(place);
        self.refs.store(0, Ordering::Release);
        LOWEST_FREE.fetch_min(place, Ordering::Relaxed);
    }

    /// The copies that its reads are served from.
    pub fn copies(&self) -> Option<u32> {
        self.copies.load(Ordering::Acquire).checked_sub(1)
    }

    #[inline]
    pub fn file(&self) -> Sys<&'static File> {
        self.file.load(Ordering::Acquire).checked_sub(1).and_then(file::get).ok_or(Errno(libc::EBADF))
    }

    /// The flags it was opened with, as changed since.
    pub fn flags(&self) -> i32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Takes over what F_SETFL changed.
    pub fn set_flags(&self, flags: i32) {
        self.flags.store(flags, Ordering::Relaxed);
    }

    /// The file, if it was opened for reading.
    #[inline]
    pub fn readable(&self) -> Sys<&'static File> {
        let flags = self.flags();
        if matches!(flags & libc::O_ACCMODE, libc::O_WRONLY | ACCESS_NONE) || flags & libc::O_PATH != 0 {
            return Err(Errno(libc::EBADF));
        }
        self.file()
    }

    /// The file, if it was opened for writing.
    pub fn writable(&self) -> Sys<&'static File> {
        let flags = self.flags();
        if matches!(flags & libc::O_ACCMODE, libc::O_RDONLY | ACCESS_NONE) || flags & libc::O_PATH != 0 {
            return Err(Errno(libc::EBADF));
        }
        self.file()
    }

    /// Opened with O_APPEND, or set so since. Another process that shares the open file may have changed it: then the companion knows.
    pub fn is_append(&self) -> bool {
        let flags = match self.companion() {
            Some(companion) if self.shared.load(Ordering::Relaxed) => sys::fcntl(companion, libc::F_GETFL, 0).unwrap_or(0) as i32,
            _ => self.flags(),
        };
        flags & libc::O_APPEND != 0
    }

    /// Opened with O_SYNC or O_DSYNC.
    pub fn is_sync(&self) -> bool {
        self.flags() & libc::O_DSYNC != 0
    }

    /// The companion descriptor.
    pub fn companion(&self) -> Option<i32> {
        held(&self.companion)
    }

    /// Data moved: head's times follow, at most once per 4 ms.
    pub fn touch(&self, file: &'static File) {
        let tick = now_ns() >> 22;
        if file.touched.swap(tick, Ordering::Relaxed) != tick {
            self.touch_now(file);
        }
    }

    /// Head's times become now. One who has given up his rights since he opened the file still changes them by what he does: cutting head to
    /// the size it has. The kernel takes that for a write and removes set-user-id bits by its rules, so it is done where there are any, too.
    pub fn touch_now(&self, file: &'static File) {
        let Some(companion) = self.companion() else { return };
        let has_set_id = sys::fstat(companion).is_ok_and(|st| st.st_mode & (libc::S_ISUID | libc::S_ISGID) != 0);
        let cut = || {
            let Some(size) = file.size().ok().filter(|size| !crate::io::limit::exceeds(*size)) else { return false };
            let done = sys::ftruncate(companion, size).is_ok();
            if done {
                file.mirrored.store(size + 1, Ordering::Release);
            }
            done
        };
        // SAFETY: no path, the descriptor itself; no times means now.
        let touch = || file.setting_times(|| unsafe { sys::utimensat_raw(companion, core::ptr::null(), core::ptr::null(), 0) });
        if !(has_set_id && cut()) && matches!(touch(), Err(Errno(libc::EACCES | libc::EPERM))) {
            cut();
        }
    }

    /// Close-on-exec of a descriptor changed: the companion stays open across exec as long as any descriptor does.
    pub fn mirror_close_on_exec(&self, close_on_exec: bool) {
        if let Some(companion) = self.companion()
            && (!close_on_exec || self.has_one_descriptor())
        {
            let _ = sys::fcntl(companion, libc::F_SETFD, if close_on_exec { libc::FD_CLOEXEC as usize } else { 0 });
        }
    }
}

/// Sets head's times to now.
pub fn touch_head(file: &'static File) -> Sys<i64> {
    let head = file.at()?.pin_head()?;
    // SAFETY: a valid C string; no times means now.
    file.setting_times(|| unsafe { sys::utimensat_raw(libc::AT_FDCWD, head.path().as_ptr(), core::ptr::null(), 0) })
}

/// Whether any managed file is open.
pub fn any_managed() -> bool {
    used().any(|(_, open)| open.file.load(Ordering::Relaxed) != 0)
}

/// One that has a companion that may write head, whatever rights are left by now.
pub fn writing_companion(file: &'static File) -> Option<(Use, i32)> {
    companions_of(file).find(|(_, fd)| sys::fcntl(*fd, libc::F_GETFL, 0).is_ok_and(|flags| flags as i32 & libc::O_ACCMODE != libc::O_RDONLY))
}
