//! The table of managed files in this process: those that are open, and some that were open until just now. A program opens the files that it has closed again
//! and again (make, git, an interpreter), so directory, control words and layout of the last ones stay at hand, idle. Nobody notices an idle file: it has no
//! locks, so others remove, export and move it at will, and no objects, whose blocks would outlive it. It is looked at again before it is used.

use super::known::Known;
use super::lines::Lines;
use super::{File, MAX_OBJECTS, New, removal};
use crate::base::lock::Lock;
use crate::base::locks;
use crate::base::process::MAX_FILES;
use crate::base::sys::{self, Errno, Sys};
use crate::fds::{self, held};
use crate::store::Attached;
use crate::store::part::{self, Seen};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use stripewise_store::locks::{How, PRESENCE_BYTE};
use stripewise_store::names;

/// Most idle files: each keeps two descriptors.
const IDLE_MAX: usize = 128;
/// Of the descriptors that the process may have, so many for one idle file.
const DESCRIPTORS_PER_IDLE: usize = 32;
/// Set in every key, so that none is 0.
const NAMED: u64 = 1 << 63;

static TABLE: Lock = Lock::new();
static FILES: [File; MAX_FILES] = [const { File::none() }; MAX_FILES];
/// Id of the file at each place, with [`NAMED`]; 0 where there is none. Apart from the files, so that a look through all of them reads few lines of memory.
static KEYS: [AtomicU64; MAX_FILES] = [const { AtomicU64::new(0) }; MAX_FILES];
/// When each file became idle, by [`CLOCK`]; 0 = it is not.
static IDLE_SINCE: [AtomicU64; MAX_FILES] = [const { AtomicU64::new(0) }; MAX_FILES];
static CLOCK: AtomicU64 = AtomicU64::new(0);
static IDLE: AtomicU32 = AtomicU32::new(0);
static HIGH_WATER: AtomicU32 = AtomicU32::new(0);

/// The file of a place in the table.
#[inline]
pub fn get(index: u32) -> Option<&'static File> {
    FILES.get(index as usize)
}

/// The places that have been used, open or not.
fn used() -> impl Iterator<Item = &'static File> {
    FILES.iter().take(HIGH_WATER.load(Ordering::Acquire) as usize)
}

/// Does `work` on each file that is open, held meanwhile.
pub fn each_open(work: impl Fn(&'static File)) {
    for (index, file) in used().enumerate() {
        let is_open = TABLE.lock().is_some_and(|_held| file.refs.load(Ordering::Acquire) > 0 && file.refs.fetch_add(1, Ordering::AcqRel) > 0);
        if is_open {
            work(file);
            release(index as u32);
        }
    }
}

/// The files that are open.
fn open_files() -> impl Iterator<Item = &'static File> {
    used().filter(|file| file.refs.load(Ordering::Acquire) > 0)
}

fn word(words: &'static [AtomicU64; MAX_FILES], index: usize) -> &'static AtomicU64 {
    words.get(index).unwrap_or(&words[0])
}

/// The place of a file that is open or idle, under the table's lock.
fn place_of(store: &Attached, id: u64) -> Option<(usize, &'static File)> {
    let high = HIGH_WATER.load(Ordering::Acquire) as usize;
    let is_it = |file: &File| file.id.load(Ordering::Relaxed) == id && file.store.load(Ordering::Relaxed) as usize == store.index;
    let named = KEYS.iter().take(high).zip(&FILES).enumerate().filter(|(_, (key, _))| key.load(Ordering::Relaxed) == id | NAMED);
    named.map(|(index, (_, file))| (index, file)).find(|(_, file)| is_it(file))
}

/// The file `id` of `store`, opened in this process if it was not; the caller gives it back with [`release`].
pub fn acquire(store: &'static Attached, id: u64) -> Sys<u32> {
    acquire_unless(store, id, crate::base::process::refuse_vfork_child)
}

/// The same where it is open; `None` where it is not.
pub fn acquire_if_open(store: &'static Attached, id: u64) -> Option<u32> {
    let _held = TABLE.lock()?;
    let (index, file) = place_of(store, id).filter(|(_, file)| file.refs.load(Ordering::Acquire) > 0)?;
    file.refs.fetch_add(1, Ordering::AcqRel);
    Some(index as u32)
}

/// The same for one who has asked whether this is a child of vfork, which may open no files.
pub fn acquire_to_open(store: &'static Attached, id: u64) -> Sys<u32> {
    acquire_unless(store, id, || Ok(()))
}

/// The same without waiting for a verb that has the file for itself.
pub fn acquire_at_once(store: &'static Attached, id: u64) -> Sys<u32> {
    acquire_now(store, id, crate::base::process::refuse_vfork_child)
}

fn acquire_unless(store: &'static Attached, id: u64, refuse: impl Fn() -> Sys<()>) -> Sys<u32> {
    // Waited for outside of TABLE, or one file that a verb has for itself would stop all others.
    locks::patiently(names::id_name(id).as_bytes(), || acquire_now(store, id, &refuse))
}

fn acquire_now(store: &'static Attached, id: u64, refuse: impl Fn() -> Sys<()>) -> Sys<u32> {
    let Some(_held) = TABLE.lock() else { return Err(Errno(libc::EDEADLK)) };
    let there = place_of(store, id);
    if let Some((index, file)) = there
        && file.refs.load(Ordering::Acquire) > 0
    {
        file.refs.fetch_add(1, Ordering::AcqRel);
        return Ok(index as u32);
    }
    refuse()?;
    if let Some((index, file)) = there {
        if file.wake()? {
            set_idle(index, 0);
            file.refs.store(1, Ordering::Release);
            return Ok(index as u32);
        }
        close(index, file);
    }
    or_freeing_idle(|| open_at_free_place(store, id, None))
}

/// Does what opens descriptors, under the table's lock: where the process has none left, once more without those of idle files.
fn or_freeing_idle(open: impl Fn() -> Sys<u32>) -> Sys<u32> {
    match open() {
        Err(Errno(libc::EMFILE)) if IDLE.load(Ordering::Relaxed) > 0 => {
            forget_idle_beyond(0);
            open()
        }
        opened => opened,
    }
}

/// A file that is being made; the caller gives it back with [`release`].
pub fn acquire_new(store: &'static Attached, id: u64, new: New) -> Sys<u32> {
    let Some(_held) = TABLE.lock() else { return Err(Errno(libc::EDEADLK)) };
    open_at_free_place(store, id, Some(new))
}

/// Opens a file that is neither open nor idle, under the table's lock.
fn open_at_free_place(store: &'static Attached, id: u64, new: Option<New>) -> Sys<u32> {
    let (index, file) = free_place().ok_or(Errno(libc::ENFILE))?;
    file.store.store(store.index as u32, Ordering::Relaxed);
    file.id.store(id, Ordering::Relaxed);
    file.ctl_cut.store(false, Ordering::Relaxed);
    file.note_own_link([0; 4]);
    file.begin_use();
    file.opening.store(true, Ordering::Release);
    let opened = file.open(new);
    file.opening.store(false, Ordering::Release);
    if let Err(errno) = opened {
        close(index, file);
        return Err(errno);
    }
    HIGH_WATER.fetch_max(index as u32 + 1, Ordering::AcqRel);
    word(&KEYS, index).store(id | NAMED, Ordering::Relaxed);
    file.refs.store(1, Ordering::Release);
    Ok(index as u32)
}

fn free_place() -> Option<(usize, &'static File)> {
    let free = |index: usize| KEYS.get(index).is_some_and(|key| key.load(Ordering::Relaxed) == 0);
    let index = (0..MAX_FILES).find(|index| free(*index)).or_else(|| {
        forget_idle_beyond(IDLE.load(Ordering::Relaxed).saturating_sub(1) as usize);
        (0..MAX_FILES).find(|index| free(*index))
    })?;
    FILES.get(index).map(|file| (index, file))
}

/// Gives a reference back; with the last one the file becomes idle, or is closed.
pub fn release(index: u32) {
    let Some(file) = get(index) else { return };
    let table = TABLE.lock();
    if file.refs.fetch_sub(1, Ordering::AcqRel) != 1 {
        return;
    }
    let left = file.copies.take();
    let rests = !file.is_unlinked() && file.rest(table.is_some());
    // Looked at once this process has let go of the file: who has unlinked it until then leaves it to this one.
    if file.is_unlinked() {
        removal::remove_if_last(file);
        close(index as usize, file);
    } else if rests {
        set_idle(index as usize, CLOCK.fetch_add(1, Ordering::Relaxed) + 1);
        forget_idle_beyond(IDLE_MAX.min(fds::limit() / DESCRIPTORS_PER_IDLE));
    } else {
        close(index as usize, file);
    }
    let is_locked = table.is_none();
    drop(table);
    left.give_back(is_locked);
}

fn set_idle(index: usize, since: u64) {
    match (word(&IDLE_SINCE, index).swap(since, Ordering::Relaxed), since) {
        (0, 0) => {}
        (0, _) => _ = IDLE.fetch_add(1, Ordering::Relaxed),
        (_, 0) => _ = IDLE.fetch_sub(1, Ordering::Relaxed),
        _ => {}
    }
}

/// Closes a file that nobody uses, under the table's lock.
fn close(index: usize, file: &'static File) {
    file.drop_parts();
    set_idle(index, 0);
    word(&KEYS, index).store(0, Ordering::Relaxed);
}

/// Closes idle files until no more than `left` remain, the one that has been so for longest first.
fn forget_idle_beyond(left: usize) {
    while IDLE.load(Ordering::Relaxed) as usize > left {
        let high = HIGH_WATER.load(Ordering::Acquire) as usize;
        let since = IDLE_SINCE.iter().take(high).map(|since| since.load(Ordering::Relaxed)).enumerate();
        let oldest = since.filter(|(_, since)| *since > 0).min_by_key(|(_, since)| *since);
        let Some((index, file)) = oldest.and_then(|(index, _)| Some((index, FILES.get(index)?))) else { return };
        close(index, file);
    }
}

/// Closes all idle files, and says whether there were any: before a fork, whose child would share what they have open, before this process gives up rights or
/// changes its root directory, and when it has no descriptor left.
pub fn forget_idle() -> bool {
    if IDLE.load(Ordering::Relaxed) > 0
        && !crate::base::process::in_vfork_child()
        && let Some(_held) = TABLE.lock()
    {
        forget_idle_beyond(0);
        return true;
    }
    false
}

/// Does a call; where the process has no descriptor left for it, once more without those of idle files.
pub fn freeing_idle<T>(mut call: impl FnMut() -> Sys<T>) -> Sys<T> {
    match call() {
        Err(Errno(libc::EMFILE)) if forget_idle() => call(),
        done => done,
    }
}

/// Does `work` on what this process knows of a file that is open or idle.
pub fn with_known<T>(store: &Attached, id: u64, work: impl FnOnce(&'static File) -> T) -> Option<T> {
    let _held = TABLE.lock()?;
    place_of(store, id).map(|(_, file)| work(file))
}

/// Does `work` on an idle file, for a mere look at it, if it still is what it was; `None` where it is not, or not idle.
pub fn look_at_idle<T>(store: &Attached, id: u64, work: impl FnOnce(&'static File) -> Option<Sys<T>>) -> Option<Sys<T>> {
    if IDLE.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let _held = TABLE.lock()?;
    let (index, file) = place_of(store, id)?;
    if word(&IDLE_SINCE, index).load(Ordering::Relaxed) == 0 { None } else { work(file) }
}

/// The process ends: open files without a name, which nobody else has open, go for good as they do at their last close. Threads may still be
/// at them, so all of their parts are opened first.
pub fn leave() {
    if open_files().next().is_none() || crate::base::process::in_vfork_child() {
        return;
    }
    let Some(_held) = TABLE.lock() else { return };
    for file in open_files().filter(|file| file.is_unlinked()) {
        file.prime();
        removal::remove_if_last(file);
    }
}

/// The lock of the table of files, for those who fork.
pub fn table_lock() -> &'static Lock {
    &TABLE
}

/// In a forked child: locks of threads that are gone are free.
pub fn after_fork() {
    TABLE.reset();
    // The place after the last used one may just be filling.
    let high = HIGH_WATER.load(Ordering::Acquire) as usize + 1;
    for (index, file) in FILES.iter().enumerate().take(high) {
        file.lock.reset();
        file.exclusive.reset();
        if file.refs.load(Ordering::Acquire) > 0 {
            file.join_or_leave_family();
            continue;
        }
        if held(&file.ctl_fd).is_some() || !file.loaded.load(Ordering::Acquire).is_null() {
            // Idle, or a thread that is gone was opening or closing it: the next file at this place must not get its objects.
            file.drop_parts();
        }
        set_idle(index, 0);
        word(&KEYS, index).store(0, Ordering::Relaxed);
    }
}

impl File {
    /// A place without a file.
    const fn none() -> Self {
        Self {
            refs: AtomicU32::new(0),
            store: AtomicU32::new(0),
            id: AtomicU64::new(0),
            loaded: AtomicPtr::new(core::ptr::null_mut()),
            dir_fd: AtomicI32::new(0),
            ctl: UnsafeCell::new(None),
            ctl_fd: AtomicI32::new(0),
            ctl_cut: AtomicBool::new(false),
            ctl_writable: AtomicBool::new(false),
            narrow: AtomicBool::new(false),
            new_until_ns: AtomicU64::new(0),
            is_being_made: AtomicBool::new(false),
            foreign: AtomicBool::new(false),
            owner: AtomicU32::new(0),
            user: AtomicU32::new(0),
            head: [const { AtomicU64::new(0) }; 2],
            own_link: [const { AtomicU64::new(0) }; 4],
            objects: [const { AtomicI32::new(0) }; MAX_OBJECTS],
            lock: Lock::new(),
            exclusive: Lock::new(),
            touched: AtomicU64::new(0),
            mirrored: AtomicU64::new(0),
            maps: AtomicU32::new(0),
            pin: AtomicI32::new(0),
            locked: AtomicBool::new(false),
            family: AtomicI32::new(0),
            has_parents_locks: AtomicBool::new(false),
            opening: AtomicBool::new(false),
            lines: Lines::new(),
            copies: Known::nothing(),
        }
    }

    /// What this process knows of it from before counts no more.
    fn begin_use(&self) {
        self.touched.store(0, Ordering::Relaxed);
        self.mirrored.store(0, Ordering::Relaxed);
        self.locked.store(false, Ordering::Relaxed);
    }

    /// Lets go of what others would notice; false where it is to be closed altogether. One of another user's is: its rights may be taken back meanwhile.
    fn rest(&'static self, may_rest: bool) -> bool {
        if self.ctl().is_none() || self.shares_locks() || !self.ctl_fd().is_ok_and(|ctl| locks::give_all_back(ctl).is_ok()) {
            return false;
        }
        let has_maps = self.maps.load(Ordering::Acquire) > 0 || held(&self.pin).is_some();
        if !may_rest || has_maps || self.is_foreign() {
            return false;
        }
        self.drop_objects();
        self.lines.reset();
        true
    }

    /// Takes an idle file into use again; false where it is not what it was.
    fn wake(&'static self) -> Sys<bool> {
        // Without one it was left while it was being closed.
        let Ok(ctl) = self.ctl_fd() else { return Ok(false) };
        match locks::take(ctl, How::Shared, PRESENCE_BYTE) {
            Ok(true) => {}
            Ok(false) => return Err(self.in_use()),
            // The program has closed it behind our back.
            Err(_) => return Ok(false),
        }
        // What cannot be looked at is opened anew, and says why it cannot.
        let head = self.head_by_name().unwrap_or(None);
        if !head.is_some_and(|head| self.is_what_it_was(&head)) || !self.ctl().is_some_and(|ctl| self.is_of_this_boot(&ctl)) {
            return Ok(false);
        }
        self.begin_use();
        // A repair may have removed what it had not reached.
        self.current()?.made_to.store(0, Ordering::Relaxed);
        self.note_if_new();
        Ok(true)
    }

    /// Whether a link (device, inode, last change of status, owner) was found to be the file's own since this process opened it.
    pub fn has_own_link(&self, link: [u64; 4]) -> bool {
        self.own_link.iter().zip(link).all(|(known, asked)| known.load(Ordering::Relaxed) == asked)
    }

    /// It was.
    pub fn note_own_link(&self, link: [u64; 4]) {
        self.own_link.iter().zip(link).for_each(|(known, found)| known.store(found, Ordering::Relaxed));
    }

    fn head_by_name(&self) -> Sys<Option<Seen>> {
        match sys::lstat_at(self.store()?.files_dir()?, part::c(&part::name_below(self.id(), c"head"))?) {
            Ok(head) => Ok(Some(Seen::of(&head))),
            Err(Errno(libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::EACCES)) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Whether the parts of an idle file are those that were opened, given what lies in head's place, and this is the same user as then.
    pub fn is_what_it_was(&'static self, head: &Seen) -> bool {
        let [device, inode] = &self.head;
        self.store().is_ok_and(|store| store.judged_for() == self.user.load(Ordering::Relaxed))
            && head.identity == (device.load(Ordering::Relaxed), inode.load(Ordering::Relaxed))
            && (head.links, head.owner) == (1, self.owner.load(Ordering::Relaxed))
            // Control words that were lost and made anew are others.
            && self.ctl_fd().and_then(sys::fstat).is_ok_and(|ctl| ctl.st_nlink == 1)
    }
}
