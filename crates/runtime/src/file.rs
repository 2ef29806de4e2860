//! Managed files that this process has open: layout, control words and object descriptors, shared by all descriptors of a file.

pub mod access;

mod family;
pub mod known;
mod layouts;
pub mod lines;
mod objects;
mod recovery;
mod removal;
mod rights;
mod table;

pub use family::before_fork;
pub use layouts::{Loaded, Raw};
pub use rights::prime_all;
pub use table::{
    acquire, acquire_at_once, acquire_if_open, acquire_new, acquire_to_open, after_fork, forget_idle, freeing_idle, get, leave, look_at_idle,
    release, table_lock, with_known,
};

use self::known::Known;
use self::lines::Lines;
use self::rights::OpenCtl;
use crate::base::guard;
use crate::base::lock::Lock;
use crate::base::locks;
use crate::base::sys::{self, Errno, Sys};
use crate::fds::{self, held};
use crate::store::part::{self, At, Directory, Held};
use crate::store::{self, Attached};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use stripewise_store::ctl::{CTL_BYTES, CTL_RESERVED_BYTES, Ctl, FLAG_UNLINKED};
use stripewise_store::locks::{How, PRESENCE_BYTE};
use stripewise_store::names;
use stripewise_store::times;
use stripewise_target::kind::MAX_TARGETS;
use stripewise_target::text::StorePath;
use stripewise_target::time::now_ns;

/// Objects that a file can have: one per target and plane.
pub const MAX_OBJECTS: usize = 2 * MAX_TARGETS;

/// The place of an object among a file's.
#[inline]
pub const fn object_place(target: u32, plane: u32) -> usize {
    target as usize * 2 + (plane & 1) as usize
}

/// How long a file that was empty counts as new: a file system makes names durable by itself in about that time.
const NEW_NS: u64 = 5_000_000_000;

/// A file that is being made: nobody else can know of it but a mover, who goes through the store.
pub struct New {
    /// Its directory, open for reading.
    pub dir: Held,
    /// What its head is.
    pub head: libc::stat,
    pub layout: Raw,
}

/// One managed file.
pub struct File {
    /// Descriptors' open files that refer to it.
    refs: AtomicU32,
    /// Store and id.
    store: AtomicU32,
    id: AtomicU64,
    loaded: AtomicPtr<Loaded>,
    /// Its directory in the store, from which all of its parts are reached.
    dir_fd: AtomicI32,
    ctl: UnsafeCell<Option<Ctl>>,
    ctl_fd: AtomicI32,
    /// Somebody has cut ctl while it was mapped.
    ctl_cut: AtomicBool,
    ctl_writable: AtomicBool,
    /// Some object is open for reading only or writing only: as far as this process's rights went then.
    narrow: AtomicBool,
    /// It was empty when it was opened, and counts as new until then.
    new_until_ns: AtomicU64,
    /// Its creation is not done.
    pub is_being_made: AtomicBool,
    /// It belonged to another user when it was opened.
    foreign: AtomicBool,
    /// Its owner then.
    owner: AtomicU32,
    /// The user that this process was then.
    user: AtomicU32,
    /// Device and inode of its head: another file under that name is not the file that was opened.
    head: [AtomicU64; 2],
    /// The link that was found to be its own, and no copy: see [`File::has_own_link`]. Read and changed under the table's lock.
    own_link: [AtomicU64; 4],
    objects: [AtomicI32; MAX_OBJECTS],
    /// Guards the slow paths of this file within the process.
    pub lock: Lock,
    /// Excludes this process's threads in [`File::exclusively`]; taken before `lock`.
    exclusive: Lock,
    /// Second (in ticks of about 4 ms) at which head's times were last set.
    pub touched: AtomicU64,
    /// Size last mirrored to head, plus one.
    pub mirrored: AtomicU64,
    /// Maps of the file in this process, and the descriptor whose lock on ctl says so to others (`map::records`).
    pub maps: AtomicU32,
    /// See `maps`.
    pub pin: AtomicI32,
    /// This process may hold POSIX locks on head: closing any descriptor of it would drop them.
    pub locked: AtomicBool,
    /// Descriptor of the file in memory that this process and its relatives lock, where they cannot lock the file each for itself (`file::family`).
    family: AtomicI32,
    /// The descriptions of ctl and directory are the parent's, and so are their locks.
    has_parents_locks: AtomicBool,
    /// It is being opened, under TABLE.
    opening: AtomicBool,
    /// Its lines in ctl for writes that extend the file.
    pub lines: Lines,
    /// What is known of its copies.
    pub copies: Known,
}

// SAFETY: `ctl` is written under TABLE before `refs` becomes positive.
unsafe impl Sync for File {}

impl File {
    /// The store it is in.
    pub fn store(&self) -> Sys<&'static Attached> {
        store::get(self.store.load(Ordering::Relaxed) as usize).ok_or(Errno(libc::EIO))
    }

    pub fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    /// Control words; none once somebody has cut them.
    #[inline]
    pub fn ctl(&self) -> Option<Ctl> {
        if self.ctl_cut.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: see `Sync`.
        unsafe { *self.ctl.get() }
    }

    /// Whose it was when it was opened.
    pub fn owner(&self) -> u32 {
        self.owner.load(Ordering::Relaxed)
    }

    /// Bytes in it, by the control words. Those come from whoever may write the file: a size that no file has is an error.
    #[inline]
    pub fn size(&self) -> Sys<u64> {
        self.ctl().and_then(|ctl| ctl.sane_size()).ok_or(Errno(libc::EIO))
    }

    /// Sets head's times, again where a process that mirrors the size has put older ones back.
    pub fn setting_times<T>(&self, mut set: impl FnMut() -> Sys<T>) -> Sys<T> {
        if !self.may_write() {
            return set();
        }
        times::set(&self.ctl().ok_or(Errno(libc::EIO))?.header().times, set)
    }

    /// Whether its last name is gone.
    pub fn is_unlinked(&self) -> bool {
        self.ctl().is_some_and(|ctl| ctl.header().flags.load(Ordering::Acquire) & FLAG_UNLINKED != 0)
    }

    /// Whether this process may change the control words.
    pub fn may_write(&self) -> bool {
        self.ctl_writable.load(Ordering::Relaxed)
    }

    /// Its directory, from which its parts are opened.
    pub fn at(&self) -> Sys<At> {
        let [device, inode] = &self.head;
        let head = (device.load(Ordering::Relaxed), inode.load(Ordering::Relaxed));
        Ok(At {
            dir: held(&self.dir_fd).ok_or(Errno(libc::EIO))?,
            store: self.store()?,
            id: self.id(),
            head: Some(head).filter(|head| *head != (0, 0)),
        })
    }

    /// Path of a part (`head`, `layout`, ...), for messages.
    pub fn part(&self, part: &[u8]) -> Sys<StorePath> {
        Ok(names::file_part(self.store()?.path(), self.id(), part))
    }

    /// Opens its parts: those that it has in the store, or those of a file that is being made.
    fn open(&'static self, new: Option<New>) -> Sys<()> {
        for word in &self.head {
            word.store(0, Ordering::Relaxed);
        }
        let (head, layout, is_dir_readable) = match new {
            None => {
                let Directory { fd, stat, is_readable } = part::open_dir_to_lock(self.store()?, self.id())?;
                fds::make_internal(fd.keep(), &self.dir_fd, true)?;
                (self.at()?.checked_head(stat.st_uid)?, None, is_readable)
            }
            Some(new) => {
                fds::make_internal(new.dir.keep(), &self.dir_fd, true)?;
                (new.head, Some(new.layout), true)
            }
        };
        for (word, value) in self.head.iter().zip([head.st_dev, head.st_ino]) {
            word.store(value, Ordering::Relaxed);
        }
        self.note_owner(head.st_uid);
        let is_new = layout.is_some();
        let ctl = self.map_ctl(&head, is_new, is_dir_readable)?;
        match layout {
            None => self.reload()?,
            Some(layout) => self.put_in_force(layout, core::ptr::null_mut())?,
        };
        if !self.is_of_this_boot(&ctl) {
            self.recover_ctl(&ctl, is_new)?;
        }
        self.note_if_new();
        Ok(())
    }

    /// Opens ctl, says by its lock that this process has the file open, and maps it.
    fn map_ctl(&'static self, head: &libc::stat, is_new: bool, is_dir_readable: bool) -> Sys<Ctl> {
        let OpenCtl { fd, is_writable: writable, is_whole } = self.open_ctl(&self.at()?, head, is_new, is_dir_readable)?;
        self.ctl_writable.store(writable, Ordering::Relaxed);
        let fd = fds::make_internal(fd, &self.ctl_fd, true)?;
        if writable && !is_whole {
            // A file system that cannot promise blocks gives them as they come; a full one refuses the file.
            match sys::fallocate(fd, 0, 0, CTL_RESERVED_BYTES as u64) {
                Err(errno @ Errno(libc::ENOSPC | libc::EDQUOT)) => return Err(errno),
                _ => sys::ftruncate(fd, CTL_BYTES as u64)?,
            };
        }
        // Whoever unlinks asks for the exclusive one, and so whether anybody has the file open.
        if !locks::take(fd, How::Shared, PRESENCE_BYTE)? {
            return Err(self.in_use());
        }
        let prot = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        let base = sys::mmap(fd, CTL_BYTES, prot, libc::MAP_SHARED)?;
        if self.store()?.is_common() {
            guard::watch(base, CTL_BYTES, &self.ctl_cut);
        }
        // SAFETY: a mapping of CTL_BYTES, unmapped in drop_parts; without write permission nothing is stored to it.
        let ctl = unsafe { Ctl::from_mapping(base) };
        // SAFETY: under TABLE, refs is 0.
        unsafe { *self.ctl.get() = Some(ctl) };
        Ok(ctl)
    }

    fn is_of_this_boot(&self, ctl: &Ctl) -> bool {
        ctl.is_valid() && self.store().is_ok_and(|store| ctl.boot_is(store.boot_id()))
    }

    fn note_if_new(&self) {
        let is_empty = self.ctl().is_some_and(|ctl| ctl.size() == 0);
        self.new_until_ns.store(if is_empty { now_ns() + NEW_NS } else { 0 }, Ordering::Relaxed);
    }

    /// Runs `work` while no other thread or process does anything exclusive on this file (append, truncate, recovery).
    pub fn exclusively<T>(&'static self, work: impl FnOnce() -> Sys<T>) -> Sys<T> {
        let held = self.exclusive.lock();
        if held.is_none() {
            // This thread is inside already: giving the lock back here would take it from whoever is further out.
            return work();
        }
        if !self.may_write() {
            return Err(Errno(libc::EACCES));
        }
        let family = self.family_lock()?;
        if let Some(family) = family {
            self.lock(family)?;
        }
        let dir = self.at()?.dir;
        let locked = self.lock(dir);
        let result = locked.and_then(|()| {
            // One that left a cut by siglongjmp has lost the lock as well.
            self.lines.set_draining(false);
            let result = work();
            let _ = sys::flock(dir, libc::LOCK_UN);
            result
        });
        if let Some(family) = family {
            let _ = sys::flock(family, libc::LOCK_UN);
        }
        result
    }

    /// Lets go of what a thread of this process holds that has left its frame.
    pub fn abandon_locks(&self) {
        if self.exclusive.abandon() {
            self.lines.set_draining(false);
            for fd in [held(&self.dir_fd), held(&self.ctl_fd), held(&self.family)].into_iter().flatten() {
                let _ = sys::flock(fd, libc::LOCK_UN);
            }
        }
        self.lock.abandon();
    }

    fn lock(&self, fd: i32) -> Sys<()> {
        match sys::flock(fd, libc::LOCK_EX | libc::LOCK_NB) {
            // While the file is being opened, TABLE is held.
            Err(Errno(libc::EWOULDBLOCK)) if self.is_opening() => Err(self.in_use()),
            Err(Errno(libc::EWOULDBLOCK)) => locks::wait_for_flock(fd, self.in_use(), names::id_name(self.id()).as_bytes()),
            locked => locked.map(|_| ()),
        }
    }

    /// The ctl descriptor, which bears this process's presence and lines.
    pub fn ctl_fd(&self) -> Sys<i32> {
        held(&self.ctl_fd).ok_or(Errno(libc::EIO))
    }

    /// In a forked child: descriptor and mapping of ctl, and the directory, are replaced by ones of its own, or its locks would be its parent's.
    fn own_locks(&'static self) -> Sys<()> {
        let Some(ctl) = self.ctl() else { return Ok(()) };
        let (flags, prot) = if self.may_write() { (libc::O_RDWR, libc::PROT_READ | libc::PROT_WRITE) } else { (libc::O_RDONLY, libc::PROT_READ) };
        let at = self.at()?;
        let (fd, _) = at.open_ctl(flags, at.head_stat()?.st_uid)?;
        let is_present = locks::take(fd, How::Shared, PRESENCE_BYTE).and_then(|taken| if taken { Ok(()) } else { Err(Errno(libc::EAGAIN)) });
        is_present.and_then(|()| sys::remap(ctl.base(), fd, CTL_BYTES, prot)).inspect_err(|_| sys::close(fd))?;
        fds::close_internal(&self.ctl_fd);
        fds::make_internal(fd, &self.ctl_fd, true)?;
        if self.may_write() { self.read_dir_again() } else { Ok(()) }
    }

    /// Whether no other process has the file open (asks to have it alone, and keeps it so), for one who is about to close it. Who may not write the file
    /// could not remove it either.
    pub fn is_last(&'static self) -> bool {
        let alone = |fd| {
            Ok(locks::take(fd, How::Exclusive, PRESENCE_BYTE)? || {
                // Of several who close it at the same moment each keeps the others from it, until they let go of what they share.
                locks::give_back(fd, PRESENCE_BYTE)?;
                locks::take(fd, How::Exclusive, PRESENCE_BYTE)?
            })
        };
        self.may_write() && !self.shares_locks() && self.ctl_fd().and_then(alone).unwrap_or(false)
    }

    /// The file is being opened, and nothing else is done with it yet.
    fn is_opening(&self) -> bool {
        self.opening.load(Ordering::Acquire)
    }

    /// Closes what it has open, where nobody uses it any more.
    fn drop_parts(&'static self) {
        self.copies.take().give_back(true);
        self.drop_objects();
        fds::close_internal(&self.ctl_fd);
        fds::close_internal(&self.dir_fd);
        fds::close_internal(&self.family);
        self.has_parents_locks.store(false, Ordering::Release);
        self.lines.reset();
        let loaded = self.loaded.swap(core::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: refs is 0, and whoever works on the file has a reference.
        let ctl = unsafe { (*self.ctl.get()).take() };
        if let Some(ctl) = ctl {
            guard::forget(ctl.base());
            // SAFETY: as above.
            unsafe { sys::munmap(ctl.base(), CTL_BYTES) };
        }
        // SAFETY: as above; it was made by reload.
        unsafe { Loaded::unmap_all(loaded) };
    }
}
