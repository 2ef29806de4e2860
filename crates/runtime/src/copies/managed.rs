//! Copies of managed files: reads that they answer, and marks that writers set ([`stripewise_store::marks`]).
//!
//! Whether a file has copies stands in its control words: the id of their container, 0 without any. A file that has none costs its reads and writes one look
//! at that word. The word is looked at inside the epoch, and whoever makes copies sets it and waits until all have left theirs, so no writer of that time is
//! unmarked. A writer that cannot mark, whatever keeps it from that, takes the word away: then the copies count for nobody any more.

use super::{Counted, DESCRIPTORS_PER_CONTAINER, KEPT, Kept, TABLE, load_record, release};
use crate::base::guard;
use crate::base::process::in_vfork_child;
use crate::base::sys::{self, Errno, Sys};
use crate::base::tls;
use crate::fds;
use crate::file::known::{self, NO_PLACE};
use crate::file::{self, File};
use crate::gate::epoch;
use crate::store::part::{self, Held, borrow};
use core::sync::atomic::{AtomicU64, Ordering};
use stripewise_layout::{Logical, OnWrite, Overlap, ReplicaRef};
use stripewise_store::copies::{BUILDING, COPIES_DIR, DROPPED, IN_USE, Original, Record};
use stripewise_store::ctl::{COPIES_LEAVE, CTL_HEADER_BYTES, Ctl};
use stripewise_store::marks::{self, Blocks, MARKS_HEAD_BYTES, MARKS_SUFFIX, Marks};
use stripewise_target::text::PartName;
use stripewise_target::time::now_ns;
use stripewise_target::within::{self, Expected, OpenFlags};

/// How long one who would give back earlier copies waits for those who may use them, and how soon after that failed somebody tries again.
const PATIENCE_NS: u64 = 1_000_000;
const LOOK_NS: u64 = 100_000_000;
/// A container that could not be opened is asked for again after so long.
const AGAIN_NS: u64 = 1_000_000_000;

/// Before the gate: looks for copies that were made since.
#[inline]
pub fn refresh(file: &'static File) {
    let Some(ctl) = file.ctl() else { return };
    if !file.copies.is_current(&ctl) || file.copies.has_any() {
        look(file, &ctl);
    }
}

/// For a file that has copies, or had other ones when it was last looked at.
#[inline(never)]
fn look(file: &'static File, ctl: &Ctl) {
    if !file.copies.is_current(ctl) {
        learn(file, ctl);
    }
    if file.copies.has_any() {
        open_container(file);
        if file.copies.has_old() {
            release_old(file);
        }
    }
}

/// Gives back earlier copies once nobody uses them. One thread may stay in an I/O for long: the others look now and then.
#[cold]
fn release_old(file: &'static File) {
    static FAILED_NS: AtomicU64 = AtomicU64::new(0);
    let failed = FAILED_NS.load(Ordering::Relaxed);
    if (failed != 0 && now_ns().wrapping_sub(failed) < LOOK_NS) || epoch::is_inside() {
        return;
    }
    // One that is replaced while this thread waits may have users it does not wait for.
    let old = file.copies.old();
    if epoch::quiesce(PATIENCE_NS) {
        FAILED_NS.store(0, Ordering::Relaxed);
        file.copies.take_old(old).for_each(|place| release(place - 1));
    } else {
        FAILED_NS.store(now_ns(), Ordering::Relaxed);
    }
}

/// Opens the container of copies that were being made when they were learned of: whoever fills one has it for himself.
#[inline(never)]
fn open_container(file: &'static File) {
    let Some(kept) = kept_at(file.copies.place()) else { return };
    let is_wanted = || kept.container.load(Ordering::Acquire) == 0 && kept.is_in_use() && kept.refused_until_ns.load(Ordering::Relaxed) <= now_ns();
    if is_wanted()
        && let Some(_held) = TABLE.lock()
        && kept_at(file.copies.place()).is_some_and(|now| core::ptr::eq(now, kept))
        && is_wanted()
        && let Some(record) = kept.record()
    {
        kept.open_container(file, record.container);
        kept.refused_until_ns.store(now_ns() + AGAIN_NS, Ordering::Relaxed);
    }
}

#[cold]
#[inline(never)]
fn learn(file: &'static File, ctl: &Ctl) {
    if file.copies.is_old_full() {
        release_old(file);
    }
    {
        // Two who learn of different copies would leave the place of the ones with the container of the others.
        let Some(_held) = TABLE.lock() else { return };
        if file.copies.is_old_full() {
            return;
        }
        let container = ctl.header().copies.load(Ordering::SeqCst);
        // Only the word says that there are none: what cannot be found or opened here may be read elsewhere.
        let place = match container {
            0 => 0,
            container => find(file, container).ok().flatten().map_or(NO_PLACE, |place| place + 1),
        };
        known::given_back_by(give_back);
        match file.copies.place.swap(place, Ordering::AcqRel) {
            0 | NO_PLACE => {}
            before => file.copies.keep_old(before),
        }
        file.copies.container.store(container, Ordering::Release);
    }
    if file.copies.has_old() {
        release_old(file);
    }
}

/// Gives back what a file knew that nobody uses any more; where the table of files is locked containers go when their places are taken.
fn give_back(place: u32, is_locked: bool) {
    match kept_at(place) {
        Some(kept) if is_locked => _ = kept.refs.fetch_sub(1, Ordering::AcqRel),
        _ => release(place - 1),
    }
}

/// The place of a file's copies, with a reference; `None` where none count. An error where there may be some, and this process has no place for them. Under
/// TABLE.
fn find(file: &'static File, container: u64) -> Sys<Option<u32>> {
    let store = file.store()?;
    let now = Original::managed(file.id(), 0);
    let is_it = |kept: &Kept| kept.store.load(Ordering::Relaxed) == store.index as u32 + 1 && kept.is_of_managed(&now, container);
    let (place, kept) = match KEPT.iter().enumerate().find(|(_, kept)| is_it(kept)) {
        Some(found) => found,
        None => match load(file, &now, container)? {
            Some(found) => found,
            None => return Ok(None),
        },
    };
    if kept.container.load(Ordering::Acquire) == 0 {
        kept.open_container(file, container);
    }
    kept.refs.fetch_add(1, Ordering::AcqRel);
    Ok(Some(place as u32))
}

/// The directory of records of the file's own store.
fn dir_of(file: &File) -> Sys<Held> {
    let store = file.store()?;
    let opened = within::open_dir(borrow(store.root_dir()?), COPIES_DIR, &[store.owner(), 0]);
    opened.map(|(fd, _)| Held::new(fd)).map_err(|refusal| Errno(refusal.errno().raw_os_error()))
}

fn load(file: &'static File, now: &Original, container: u64) -> Sys<Option<(usize, &'static Kept)>> {
    let dir = match dir_of(file) {
        Err(Errno(libc::ENOENT)) => return Ok(None),
        dir => dir?,
    };
    let Some((place, kept)) = load_record(dir.fd(), now, &[])? else { return Ok(None) };
    let marks = map_marks(&dir, now, kept.size(), container).inspect_err(|_| kept.forget())?;
    // Another container: copies that are being replaced; the word changes again when they are.
    let Some(marks) = marks.filter(|_| kept.is_of_managed(now, container)) else {
        kept.forget();
        return Ok(None);
    };
    guard::watch(marks.base(), kept.marks_len(), &kept.state_cut);
    let is_usable = marks.count_in(file.store()?.boot_id());
    // SAFETY: under TABLE, and nobody refers to it.
    unsafe { *kept.marks.get() = Some(marks) };
    kept.store.store(file.store()?.index as u32 + 1, Ordering::Release);
    if !is_usable {
        kept.forget();
        return Ok(None);
    }
    Ok(Some((place, kept)))
}

/// Maps the marks of a file's copies; `None` where there are none of these.
fn map_marks(dir: &Held, now: &Original, size: u64, container: u64) -> Sys<Option<Marks>> {
    let mut name = PartName::new();
    name.push(now.record_name().as_bytes()).push(MARKS_SUFFIX);
    let (fd, stat) = match within::open_file(borrow(dir.fd()), part::c(&name)?, OpenFlags::RDWR, Expected::of(&[])) {
        Ok((fd, stat)) => (Held::new(fd), stat),
        Err(refusal) => {
            let errno = Errno(refusal.errno().raw_os_error());
            return if errno == Errno(libc::ENOENT) { Ok(None) } else { Err(errno) };
        }
    };
    let len = Blocks::of(size).bytes();
    if stat.st_size as u64 != len as u64 {
        return Ok(None);
    }
    let base = sys::mmap(fd.fd(), len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)?;
    // SAFETY: mapped for that length, until it is forgotten.
    let marks = unsafe { Marks::from_mapping(base, size, container) };
    if marks.is_none() {
        // SAFETY: as above, and nobody refers to it.
        unsafe { sys::munmap(base, len) };
    }
    Ok(marks)
}

impl Kept {
    /// Whether it is of the managed file, and of these copies, and they count or are being made.
    fn is_of_managed(&self, now: &Original, container: u64) -> bool {
        // SAFETY: under TABLE.
        let record = unsafe { (*self.record.get()).as_ref() };
        record.is_some_and(|(record, _)| record.is_of(now) && record.container == container)
            && matches!(self.state(), IN_USE | BUILDING)
            && !self.state_cut.load(Ordering::Relaxed)
    }

    /// Opens their container, under TABLE. Without it copies are marked, and not read. Others could lead this user to what he alone may read.
    fn open_container(&self, file: &File, container: u64) {
        let Ok(store) = file.store() else { return };
        let open = KEPT.iter().filter(|kept| kept.container.load(Ordering::Relaxed) > 0).count();
        if in_vfork_child() || open >= fds::limit() / DESCRIPTORS_PER_CONTAINER || store.is_common() {
            return;
        }
        if let Ok(index) = file::acquire_at_once(store, container) {
            if file::get(index).is_some_and(|file| file.owner() == sys::geteuid()) {
                self.container.store(index + 1, Ordering::Release);
            } else {
                file::release(index);
            }
        }
    }

    /// Bytes of the file when its copies were made.
    fn size(&self) -> u64 {
        // SAFETY: under TABLE.
        unsafe { (*self.record.get()).as_ref() }.map_or(0, |(record, _)| record.original.size)
    }

    /// Bytes of its marks.
    pub(super) fn marks_len(&self) -> usize {
        Blocks::of(self.size()).bytes()
    }

    fn record(&'static self) -> Option<&'static Record<'static>> {
        // SAFETY: the caller has a reference, or is inside the epoch of one who has.
        unsafe { (*self.record.get()).as_ref() }.map(|(record, _)| record)
    }

    fn marks(&self) -> Option<Marks> {
        // SAFETY: as above.
        unsafe { *self.marks.get() }
    }

    fn container(&self) -> Option<&'static File> {
        file::get(self.container.load(Ordering::Acquire).checked_sub(1)?)
    }
}

fn kept_at(place: u32) -> Option<&'static Kept> {
    KEPT.get(place.checked_sub(1)? as usize)
}

/// Notes which replica has served the read that this thread is making; none: the home has.
pub fn note_copied(by: Option<u32>) {
    // SAFETY: this thread's own block.
    unsafe { (*tls::thread()).from_copy = by.map_or(0, |replica| u64::from(replica) + 1) };
}

/// The replica that has served the read that this thread has just made; asked for once.
pub fn was_copied() -> Option<u32> {
    // SAFETY: this thread's own block.
    unsafe { core::mem::take(&mut (*tls::thread()).from_copy) }.checked_sub(1).map(|replica| replica as u32)
}

/// The copies of a file; `None` where its home is to be read. Inside the epoch.
pub fn counted(file: &'static File) -> Option<Counted> {
    let kept = kept_at(file.copies.place())?;
    if !kept.is_in_use() || !file.copies.is_current(&file.ctl()?) {
        return None;
    }
    Some(Counted { kept, record: kept.record()?, container: kept.container()?, marked: Some((kept.marks()?, file.ctl()?)) })
}

/// Whether reads of the file may come from copies.
#[inline]
pub fn has_any(file: &File) -> bool {
    file.copies.has_any()
}

/// Whether writes of the file may go to copies as well; where that is wrong, those copies are stale.
#[inline]
pub fn has_updated(file: &File) -> bool {
    file.copies.has_any() && kept_at(file.copies.place()).is_some_and(|kept| kept.is_updated.load(Ordering::Relaxed))
}

/// Bytes of the file whose copies are marked, and follow with [`Marked::settle`]; they are stale where it is dropped before.
pub struct Marked {
    kept: &'static Kept,
    place: u32,
    at: u64,
    len: u64,
}

/// Before the home of `[at, at + len)` is written, inside the epoch: marks those bytes; `None` where no copies are to be written after it.
///
/// # Errors
/// Those of making it durable that there are no copies any more, where the bytes cannot be marked: then nothing may be written.
#[inline]
pub fn begin(file: &'static File, at: u64, len: u64) -> Sys<Option<Marked>> {
    let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
    if file.copies.is_current(&ctl) && !file.copies.has_any() {
        return Ok(None);
    }
    mark(file, &ctl, at, len)
}

#[inline(never)]
fn mark(file: &'static File, ctl: &Ctl, at: u64, len: u64) -> Sys<Option<Marked>> {
    let Some((kept, place)) = writable(file, ctl)? else { return Ok(None) };
    let Some((record, marks)) = kept.record().zip(kept.marks()) else { return Ok(None) };
    let held = record.held(at, len);
    if held.updated.count == 0 && !held.is_invalidated {
        return Ok(None);
    }
    if note_boot(file, &marks).is_err() {
        return drop_copies(ctl).map(|()| None);
    }
    if held.is_invalidated {
        marks::invalidate_on_write(&marks, at, len);
    }
    let marked = if held.updated.count == 0 {
        None
    } else if kept.is_in_use() && kept.container().is_some() && !held.updated.are_small() {
        kept.refs.fetch_add(1, Ordering::AcqRel);
        marks::begin(&marks, at, len);
        Some(Marked { kept, place, at, len })
    } else {
        marks::invalidate(&marks, at, len);
        None
    };
    is_marked(kept, ctl)?;
    Ok(marked)
}

/// Whether the marks that were just set are where others see them: memory that was cut has become this process's own.
fn is_marked(kept: &Kept, ctl: &Ctl) -> Sys<()> {
    if kept.state_cut.load(Ordering::SeqCst) { drop_copies(ctl) } else { Ok(()) }
}

/// Before the home of `[at, at + len)` changes in another way than by a write, inside the epoch or pinned: its copies are stale from now on.
///
/// # Errors
/// As [`begin`].
#[inline]
pub fn invalidate(file: &'static File, at: u64, len: u64) -> Sys<()> {
    let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
    if file.copies.is_current(&ctl) && !file.copies.has_any() {
        return Ok(());
    }
    if let Some((kept, _)) = writable(file, &ctl)?
        && let Some(marks) = kept.marks()
    {
        if note_boot(file, &marks).is_err() {
            return drop_copies(&ctl);
        }
        marks::invalidate(&marks, at, len);
        is_marked(kept, &ctl)?;
    }
    Ok(())
}

/// What is known of the copies of a file that is to be changed; `None` where none count, or they are marked already.
#[cold]
fn writable(file: &'static File, ctl: &Ctl) -> Sys<Option<(&'static Kept, u32)>> {
    if !file.copies.is_current(ctl) {
        learn(file, ctl);
    }
    match file.copies.place() {
        place if place == NO_PLACE || !file.copies.is_current(ctl) => drop_copies(ctl).map(|()| None),
        place => match kept_at(place) {
            Some(kept) if matches!(kept.state(), IN_USE | BUILDING) && !kept.state_cut.load(Ordering::SeqCst) => Ok(Some((kept, place - 1))),
            // Who has dropped them has noted the boot before.
            None => Ok(None),
            Some(kept) if kept.state() == DROPPED => Ok(None),
            // A record that somebody has cut may be whole to others.
            Some(_) => drop_copies(ctl).map(|()| None),
        },
    }
}

fn note_boot(file: &File, marks: &Marks) -> Sys<()> {
    marks.note_boot(file.store()?.boot_id(), || sys::msync(marks.base() as usize, MARKS_HEAD_BYTES, libc::MS_SYNC).map(|_| ()))
}

/// Takes the word away, durably: for a writer that cannot mark, inside the epoch and before it writes.
#[cold]
fn drop_copies(ctl: &Ctl) -> Sys<()> {
    let word = &ctl.header().copies;
    let exchange = |from, to| word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    let mut container = word.load(Ordering::SeqCst);
    while container != 0 {
        // Until it is gone for good all who write see to that.
        if container == COPIES_LEAVE || exchange(container, COPIES_LEAVE) {
            sys::msync(ctl.base() as usize, CTL_HEADER_BYTES, libc::MS_SYNC)?;
            exchange(COPIES_LEAVE, 0);
            return Ok(());
        }
        container = word.load(Ordering::SeqCst);
    }
    Ok(())
}

impl Marked {
    /// Where the copies of the marked bytes are that are to be written: the container, and each replica's overlaps with them; `None` where they cannot be.
    pub fn copies(&self) -> Option<(&'static File, impl Iterator<Item = (u64, Overlap)>)> {
        let overlaps = |replica: ReplicaRef<'static>| replica.overlaps(Logical(self.at), self.len).map(move |overlap| (replica.domain_base, overlap));
        let updated = self.kept.record()?.replicas().filter(|replica| replica.on_write == OnWrite::Update);
        Some((self.kept.container()?, updated.flat_map(overlaps)))
    }

    /// The first marked byte.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// After the home was written, and the copies of these bytes if `is_copied`: else they are stale.
    pub fn settle(self, is_copied: bool) {
        self.end(is_copied);
        core::mem::forget(self);
    }

    fn end(&self, is_copied: bool) {
        if let Some(marks) = self.kept.marks() {
            marks::settle(&marks, self.at, self.len, is_copied && self.kept.is_in_use());
        }
        let refs = &self.kept.refs;
        let mut seen = refs.load(Ordering::Acquire);
        while seen > 1 {
            match refs.compare_exchange_weak(seen, seen - 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
        release(self.place);
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        self.end(false);
    }
}
