//! Copies of plain files beside them (`stripewise_store::copies`): which plain file that this process has open for reading has some, whether they still count,
//! and where in the container a block stands. Whoever opens a plain file to write it drops its copies first.
//!
//! A process looks for copies in the store that it was started with. Without a directory `copies` there none of this costs a call but a look now and then.
//! [`managed`] has those of managed files, which are found by their control words.

pub mod managed;

use crate::base::config;
use crate::base::guard;
use crate::base::lock::Lock;
use crate::base::process::in_vfork_child;
use crate::base::sys::{self, Errno, Sys};
use crate::fds;
use crate::file::{self, File};
use crate::store::part::{self, Held, borrow};
use crate::store::{self, take_file};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use stripewise_layout::OnWrite;
use stripewise_store::copies::{DROPPED, Found, HEAD_BYTES, IN_USE, Original, RECORD_BYTES_MAX, Record, STATE_AT, STATE_BYTES, state_of};
use stripewise_store::ctl::Ctl;
use stripewise_store::marks::{self, Marks};
use stripewise_target::time::now_ns;
use stripewise_target::within::{self, Expected, OpenFlags};

/// Files with copies that one process knows at a time.
const KEPT_MAX: usize = 256;
/// How long a look for the directory of records counts that found none.
const LOOK_NS: u64 = 100_000_000;
/// Of the descriptors that the process may have, so many for one container.
const DESCRIPTORS_PER_CONTAINER: usize = 64;

/// A file with copies, known since it was opened, or since its copies were made.
struct Kept {
    /// Open files that read it; of a managed one the file, and its writes that are under way.
    refs: AtomicU32,
    /// Store of a managed file, plus one; 0: it is a plain file.
    store: AtomicU32,
    /// The container was asked for when they counted, and not to be had; CLOCK_MONOTONIC, ns.
    refused_until_ns: AtomicU64,
    /// Of a managed file.
    marks: UnsafeCell<Option<Marks>>,
    /// Its record's bytes, mapped or copied; null where the place is free. Written under TABLE while nobody refers to it.
    base: AtomicPtr<u8>,
    record: UnsafeCell<Option<(Record<'static>, usize)>>,
    /// The shared page with the state word.
    state: AtomicPtr<u8>,
    /// Somebody has cut that page.
    state_cut: AtomicBool,
    /// The plain file is another than the one that was copied.
    is_stale: AtomicBool,
    /// Place of the container in the table of files, plus one.
    container: AtomicU32,
    /// Which replica answered last.
    history: AtomicU32,
    /// Some of the copies are written with the file.
    is_updated: AtomicBool,
}

// SAFETY: `record` and `marks` are written under TABLE while `refs` is 0, and read by those who hold a reference.
unsafe impl Sync for Kept {}

static TABLE: Lock = Lock::new();
static KEPT: [Kept; KEPT_MAX] = [const {
    Kept {
        refs: AtomicU32::new(0),
        store: AtomicU32::new(0),
        refused_until_ns: AtomicU64::new(0),
        marks: UnsafeCell::new(None),
        base: AtomicPtr::new(core::ptr::null_mut()),
        record: UnsafeCell::new(None),
        state: AtomicPtr::new(core::ptr::null_mut()),
        state_cut: AtomicBool::new(false),
        is_stale: AtomicBool::new(false),
        container: AtomicU32::new(0),
        history: AtomicU32::new(0),
        is_updated: AtomicBool::new(false),
    }
}; KEPT_MAX];

/// The directory of records, once it was there.
static DIR: AtomicI32 = AtomicI32::new(0);
/// When it was last looked for.
static DIR_LOOKED_NS: AtomicU64 = AtomicU64::new(0);

/// What a descriptor's file is now.
fn original_of(st: &libc::stat) -> Original {
    let ns = |seconds: i64, ns: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(ns);
    Original {
        dev: st.st_dev,
        ino: st.st_ino,
        size: st.st_size as u64,
        mtime_ns: ns(st.st_mtime, st.st_mtime_nsec),
        ctime_ns: ns(st.st_ctime, st.st_ctime_nsec),
    }
}

/// The directory of records; `None` where the store has none, as far as was seen lately. Whoever makes the first one waits until all have looked again.
#[inline]
fn dir() -> Option<i32> {
    match fds::held(&DIR) {
        Some(fd) => Some(fd),
        None => config::store_path().and_then(|_| look_for_dir()),
    }
}

/// Whether files that are opened may have copies.
pub fn may_be_there() -> bool {
    dir().is_some()
}

#[inline(never)] // Threads may have small stacks.
fn look_for_dir() -> Option<i32> {
    let (now, looked) = (now_ns(), DIR_LOOKED_NS.load(Ordering::Relaxed));
    if (looked != 0 && now.wrapping_sub(looked) < LOOK_NS) || in_vfork_child() {
        return None;
    }
    let found = match store::copies_dir() {
        Ok(found) => found,
        Err(Errno(libc::ENOENT)) => {
            // Only now: another thread must not take this look for one that has found nothing.
            DIR_LOOKED_NS.store(now, Ordering::Relaxed);
            return None;
        }
        Err(_) => return None,
    };
    let _held = TABLE.lock()?;
    if fds::held(&DIR).is_none() {
        fds::make_internal(found.keep(), &DIR, true).ok()?;
    }
    fds::held(&DIR)
}

/// The record of a file, opened; `None` where there is none that could be one.
fn open_record(dir: i32, of: &Original, flags: OpenFlags, owners: &[u32]) -> Sys<Option<(Held, part::Stat)>> {
    let name = of.record_name();
    let expected = Expected::of(owners).at_most(RECORD_BYTES_MAX);
    match within::open_file(borrow(dir), part::c(&name)?, flags, expected) {
        Ok((fd, stat)) => Ok(Some((Held::new(fd), stat)).filter(|(_, stat)| stat.st_size as usize >= HEAD_BYTES)),
        Err(refusal) => match Errno(refusal.errno().raw_os_error()) {
            errno @ Errno(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EIO) => Err(errno),
            _ => Ok(None),
        },
    }
}

/// Whether the head of a record says that it may count for the file; what does not is not read whole.
fn may_count(fd: &Held, now: &Original) -> bool {
    let mut head = [0u8; HEAD_BYTES];
    // SAFETY: its own bytes.
    let got = unsafe { sys::pread(fd.fd(), head.as_mut_ptr(), HEAD_BYTES, 0) };
    got == Ok(HEAD_BYTES) && Record::may_count(&head, now)
}

/// For a plain descriptor that was opened for reading: the place of its file's copies, with a reference; `None` where there are none that count.
#[inline]
pub fn find(fd: i32) -> Option<u32> {
    find_in(dir()?, fd)
}

#[inline(never)] // As above.
fn find_in(dir: i32, fd: i32) -> Option<u32> {
    let st = sys::fstat(fd).ok().filter(|st| st.st_mode & libc::S_IFMT == libc::S_IFREG)?;
    let open = KEPT.iter().filter(|kept| kept.refs.load(Ordering::Relaxed) > 0).count();
    // Copies are no need: the program's own files come first.
    if in_vfork_child() || open >= fds::limit() / DESCRIPTORS_PER_CONTAINER {
        return None;
    }
    let now = original_of(&st);
    let _held = TABLE.lock()?;
    let known = KEPT.iter().enumerate().find(|(_, kept)| kept.is_of(&now));
    let (place, kept) = match known {
        Some(found) => found,
        None => load_record(dir, &now, &[sys::geteuid()]).ok()??,
    };
    if kept.refs.load(Ordering::Acquire) == 0 {
        let store = store::attach_at_once(config::store_path()?).ok()?;
        // SAFETY: under TABLE.
        let id = unsafe { (*kept.record.get()).as_ref() }?.0.container;
        // Others could lead this user to what he alone may read.
        if store.is_common() {
            return None;
        }
        let index = file::acquire_at_once(store, id).ok()?;
        if file::get(index).is_none_or(|file| file.owner() != sys::geteuid()) {
            file::release(index);
            return None;
        }
        kept.container.store(index + 1, Ordering::Release);
    }
    kept.refs.fetch_add(1, Ordering::AcqRel);
    Some(place as u32)
}

/// Reads the record of a file to a free place, or that of one that nobody reads any more; `None` where none counts.
///
/// # Errors
/// Where there may be one, and it cannot be read now.
fn load_record(dir: i32, now: &Original, owners: &[u32]) -> Sys<Option<(usize, &'static Kept)>> {
    let Some((fd, stat)) = open_record(dir, now, OpenFlags::RDONLY, owners)? else { return Ok(None) };
    if stat.st_mode & 0o077 != 0 || !may_count(&fd, now) {
        return Ok(None);
    }
    let unused = |kept: &Kept| kept.refs.load(Ordering::Acquire) == 0;
    let is_free = |kept: &Kept| unused(kept) && kept.base.load(Ordering::Acquire).is_null();
    let mut places = KEPT.iter().enumerate();
    let found = places.clone().find(|(_, kept)| is_free(kept)).or_else(|| places.find(|(_, kept)| unused(kept)));
    let (place, kept) = found.ok_or(Errno(libc::ENFILE))?;
    kept.forget();
    let bytes = take_file(&fd, &stat)?;
    let give_back = || {
        // SAFETY: mapped just now, and nobody refers to it.
        unsafe { sys::munmap(bytes.as_ptr().cast_mut(), bytes.len()) };
    };
    let Some(record) = Record::parse(bytes).filter(|record| record.is_of(now)) else {
        give_back();
        return Ok(None);
    };
    let state = sys::mmap(fd.fd(), STATE_BYTES, libc::PROT_READ, libc::MAP_SHARED).inspect_err(|_| give_back())?;
    kept.state_cut.store(false, Ordering::Relaxed);
    kept.is_stale.store(false, Ordering::Relaxed);
    kept.refused_until_ns.store(0, Ordering::Relaxed);
    kept.history.store(0, Ordering::Relaxed);
    kept.is_updated.store(record.on_write != Some(OnWrite::Invalidate), Ordering::Relaxed);
    guard::watch(state, STATE_BYTES, &kept.state_cut);
    // SAFETY: under TABLE, and nobody refers to it.
    unsafe { *kept.record.get() = Some((record, bytes.len())) };
    kept.state.store(state, Ordering::Release);
    kept.base.store(bytes.as_ptr().cast_mut(), Ordering::Release);
    Ok((now.is_managed() || kept.is_in_use()).then_some((place, kept)))
}

/// A reference less; with the last one the container is closed.
pub fn release(place: u32) {
    let Some(kept) = KEPT.get(place as usize) else { return };
    let held = TABLE.lock();
    if kept.refs.fetch_sub(1, Ordering::AcqRel) == 1 {
        if let Some(index) = kept.container.swap(0, Ordering::AcqRel).checked_sub(1) {
            file::release(index);
        }
        // A plain file's stays at hand: nothing else knows the file while it is closed.
        if held.is_some() && kept.store.load(Ordering::Relaxed) != 0 {
            kept.forget();
        }
    }
}

/// Copies that counted when they were looked at; whoever has read from them looks again.
pub struct Counted {
    kept: &'static Kept,
    record: &'static Record<'static>,
    container: &'static File,
    /// Of a managed file its marks, and the words that say whose copies count.
    marked: Option<(Marks, Ctl)>,
}

/// The copies of the plain file behind `fd`; `None` where that is to be read. The caller's descriptor holds a reference to `place`.
pub fn counted(place: u32, fd: i32) -> Option<Counted> {
    let kept = KEPT.get(place as usize)?;
    if !kept.counts(fd) {
        return None;
    }
    // SAFETY: the caller's descriptor holds a reference.
    let (record, _) = unsafe { (*kept.record.get()).as_ref() }?;
    let container = file::get(kept.container.load(Ordering::Acquire).checked_sub(1)?)?;
    Some(Counted { kept, record, container, marked: None })
}

impl Counted {
    /// Whether they are those of the file with this device and inode.
    pub fn is_of(&self, (dev, ino): (u64, u64)) -> bool {
        (self.record.original.dev, self.record.original.ino) == (dev, ino)
    }

    /// What holds their bytes.
    pub fn container(&self) -> &'static File {
        self.container
    }

    /// Where the container has `len` bytes at `at` of the file, and by which replica.
    #[inline]
    pub fn place_of(&self, at: u64, len: u64) -> Option<Found> {
        self.record.lookup(at, len, &self.kept.history)
    }

    /// Whether there are marks to look at.
    pub fn has_marks(&self) -> bool {
        self.marked.is_some()
    }

    /// What a write does to the replica that has `len` bytes at `at` of the file.
    pub fn on_write(&self, at: u64, len: u64) -> Option<OnWrite> {
        self.record.on_write.or_else(|| Some(self.place_of(at, len)?.on_write))
    }

    /// A look at the marks of those bytes: a copy to which writes do this answers for them where it gives the same after they were read, and not `None`.
    #[inline]
    pub fn look(&self, at: u64, len: u64, on_write: OnWrite) -> Option<u64> {
        self.marked.as_ref().map_or(Some(0), |(marks, _)| marks::look(marks, at, len, on_write))
    }

    /// Whether what was read counts: they have not been dropped meanwhile, for then the container may be going.
    pub fn still_count(&self) -> bool {
        let is_theirs = |ctl: &Ctl| ctl.header().copies.load(Ordering::SeqCst) == self.record.container;
        self.kept.is_in_use() && self.marked.as_ref().is_none_or(|(_, ctl)| is_theirs(ctl))
    }
}

impl Kept {
    /// Whether it is the file with this stat, and its copies count.
    fn is_of(&self, now: &Original) -> bool {
        // SAFETY: under TABLE.
        let record = unsafe { (*self.record.get()).as_ref() };
        record.is_some_and(|(record, _)| record.is_of(now)) && self.is_in_use() && !self.is_stale.load(Ordering::Relaxed)
    }

    /// The shared word; 0 where there is none.
    fn state(&self) -> u32 {
        let state = self.state.load(Ordering::Acquire);
        // SAFETY: mapped as long as it is not null; one that was cut reads as 0.
        if state.is_null() { 0 } else { unsafe { state_of(state) }.load(Ordering::SeqCst) }
    }

    /// Whether the shared word says that the copies may be used.
    fn is_in_use(&self) -> bool {
        self.state() == IN_USE && !self.state_cut.load(Ordering::Relaxed)
    }

    /// Whether the copies may be used: nobody has dropped them, and what the descriptor leads to now is the plain file, as it was.
    fn counts(&self, fd: i32) -> bool {
        if self.is_stale.load(Ordering::Relaxed) || !self.is_in_use() {
            return false;
        }
        // SAFETY: as in `counted`.
        let Some((record, _)) = (unsafe { (*self.record.get()).as_ref() }) else { return false };
        let Ok(now) = sys::fstat(fd).map(|st| original_of(&st)) else { return false };
        if record.is_of(&now) {
            return true;
        }
        // Another file behind the number, by a call that this library did not see, says nothing of this one.
        if (now.dev, now.ino) == (record.original.dev, record.original.ino) {
            self.is_stale.store(true, Ordering::Relaxed);
        }
        false
    }

    /// Frees the place, under TABLE; nobody refers to it.
    fn forget(&self) {
        self.store.store(0, Ordering::Relaxed);
        // SAFETY: under TABLE.
        if let Some(marks) = unsafe { (*self.marks.get()).take() } {
            guard::forget(marks.base());
            // SAFETY: mapped by `managed::load`, and nobody refers to it.
            unsafe { sys::munmap(marks.base(), self.marks_len()) };
        }
        // Of a managed file that was closed under the lock of the table of files.
        if let Some(index) = self.container.swap(0, Ordering::AcqRel).checked_sub(1) {
            file::release(index);
        }
        let state = self.state.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !state.is_null() {
            guard::forget(state);
            // SAFETY: mapped by `load`, and nobody refers to it.
            unsafe { sys::munmap(state, STATE_BYTES) };
        }
        let base = self.base.swap(core::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: under TABLE.
        let record = unsafe { (*self.record.get()).take() };
        if let Some((_, len)) = record
            && !base.is_null()
        {
            // SAFETY: as above.
            unsafe { sys::munmap(base, len) };
        }
    }
}

/// A plain file was opened for writing: its copies are dropped before the program can write.
#[inline]
pub fn opened_to_write(fd: i32) {
    if let Some(dir) = dir() {
        let _ = sys::fstat(fd).map(|st| drop_copies(dir, &st));
    } else if in_vfork_child() {
        // Its descriptors are its own: this one is held for the call.
        let _ = store::copies_dir().and_then(|dir| sys::fstat(fd).map(|st| drop_copies(dir.fd(), &st)));
    }
}

/// The file of a name is to be changed, by a call that shows no descriptor.
///
/// # Safety
/// `path` is a C string or null.
#[inline]
pub unsafe fn name_changes(dirfd: i32, path: *const libc::c_char) {
    if let Some(dir) = dir()
        && !path.is_null()
    {
        let mut st = core::mem::MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: the caller's promise; zeroed is a valid stat.
        let _ = unsafe { sys::fstatat_raw(dirfd, path, st.as_mut_ptr(), 0).map(|()| drop_copies(dir, &st.assume_init())) };
    }
}

#[inline(never)] // Threads may have small stacks.
fn drop_copies(dir: i32, st: &libc::stat) -> Sys<()> {
    if st.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Ok(());
    }
    // A limit on the length of files counts for this write, too, and would end the program; readers see the change by the file's times.
    if sys::limit(libc::RLIMIT_FSIZE) < STATE_BYTES as u64 {
        return Ok(());
    }
    let Some((fd, _)) = file::freeing_idle(|| open_record(dir, &original_of(st), OpenFlags::WRONLY, &[]))? else { return Ok(()) };
    let word = DROPPED.to_le_bytes();
    // SAFETY: its own bytes.
    unsafe { sys::pwrite(fd.fd(), word.as_ptr(), word.len(), STATE_AT as u64) }.map(drop)
}

/// What a fork takes, so that the child finds the table whole; before that of files, as calls do.
#[inline]
pub fn table_lock() -> &'static Lock {
    &TABLE
}

/// In a forked child. After a fork without handlers a thread that is not there may have been in the middle of a place that nobody reads: it is taken for free.
pub fn after_fork() {
    TABLE.reset();
    for kept in KEPT.iter().filter(|kept| kept.refs.load(Ordering::Acquire) == 0) {
        kept.state.store(core::ptr::null_mut(), Ordering::Release);
        kept.base.store(core::ptr::null_mut(), Ordering::Release);
        kept.container.store(0, Ordering::Release);
        // SAFETY: the only thread, and nobody refers to it.
        unsafe { (*kept.record.get(), *kept.marks.get()) = (None, None) };
    }
}
