//! What a user may do with a file's parts. The program's rights are checked where it opens head; objects and ctl carry head's rights, so that
//! nobody reaches bytes past the library who may not reach them through it. A file that is open stays usable when rights change, as a plain
//! one does: its objects are opened before ([`File::prime`]), and opened wider when a later open is allowed more ([`File::widen`]).

use super::{File, held};
use crate::base::locks;
use crate::base::log;
use crate::base::sys::{self, Errno, Sys};
use crate::store::Attached;
use crate::store::part::{self, At};
use core::sync::atomic::{AtomicI32, Ordering};
use stripewise_store::ctl::CTL_BYTES;
use stripewise_store::locks::{How, PRESENCE_BYTE};
use stripewise_store::rights::{OWNER_LOOK_NS, OWNER_LOOKS, Part};
use stripewise_target::time::{now_ns, sleep_until};

/// How long one who may not write a file waits until it is his turn to read at a shared offset.
const READERS_NS: u64 = 200_000_000;

/// What an opening of ctl came to.
pub(super) struct OpenCtl {
    pub fd: i32,
    pub is_writable: bool,
    /// It has its length.
    pub is_whole: bool,
}

/// Opens ctl, made when it is missing.
fn open_ctl(at: &At, head: &libc::stat, is_new: bool) -> Sys<OpenCtl> {
    let open = |flags| at.open_ctl(flags, head.st_uid).map(|(fd, stat)| (fd, stat.st_size >= CTL_BYTES as i64));
    let there = if is_new { Err(Errno(libc::ENOENT)) } else { open(libc::O_RDWR) };
    let made = match there {
        Err(Errno(libc::ENOENT)) => match at.create_part(c"ctl", libc::O_RDWR, Part::Ctl.mode(head.st_mode)) {
            Err(Errno(libc::EEXIST)) => open(libc::O_RDWR),
            // Root's process makes it for the file's owner.
            Ok(fd) if head.st_uid != sys::geteuid() => {
                let given = sys::chownat(fd, c"", head.st_uid, head.st_gid, libc::AT_EMPTY_PATH);
                given.map(|_| (fd, false)).inspect_err(|_| sys::close(fd))
            }
            result => result.map(|fd| (fd, false)),
        },
        result => result,
    };
    match made {
        Ok((fd, is_whole)) => Ok(OpenCtl { fd, is_writable: true, is_whole }),
        Err(Errno(libc::EACCES | libc::EROFS | libc::EPERM)) => {
            open(libc::O_RDONLY).map(|(fd, is_whole)| OpenCtl { fd, is_writable: false, is_whole })
        }
        Err(errno) => Err(errno),
    }
}

/// Puts a wider descriptor in the place of one that is in use: same number, so that running I/O goes on.
pub(super) fn replace(holder: &AtomicI32, wider: i32) {
    if let Some(fd) = held(holder) {
        let _ = sys::dup3(wider, fd, libc::O_CLOEXEC);
    }
    sys::close(wider);
}

impl File {
    /// Opens ctl; where that is for writing, the directory is open for reading, to be locked.
    pub(super) fn open_ctl(&'static self, at: &At, head: &libc::stat, is_new: bool, is_dir_readable: bool) -> Sys<OpenCtl> {
        let mut looks = OWNER_LOOKS;
        loop {
            let ctl = open_ctl(at, head, is_new)?;
            if !ctl.is_writable || is_dir_readable || self.read_dir_again().is_ok() {
                return Ok(ctl);
            }
            sys::close(ctl.fd);
            if looks == 0 {
                log::say(b"who may write this file may not read its directory; run stripewise store fsck --repair", self.part(b"")?.as_bytes());
                return Err(Errno(libc::EACCES));
            }
            // The rights of both may just be changing.
            looks -= 1;
            sleep_until(now_ns() + OWNER_LOOK_NS);
        }
    }

    fn is_dir_readable(&self) -> bool {
        held(&self.dir_fd).is_some_and(|dir| sys::fcntl(dir, libc::F_GETFL, 0).is_ok_and(|flags| flags as i32 & libc::O_PATH == 0))
    }

    /// Opens the directory once more, to be locked by this process alone.
    pub(super) fn read_dir_again(&self) -> Sys<()> {
        replace(&self.dir_fd, part::readable_dir(self.at()?.dir)?.keep());
        Ok(())
    }

    /// What to say where another process has the file for itself.
    #[cold]
    pub(super) fn in_use(&self) -> Errno {
        let is_common = self.store().map_or(true, Attached::is_common);
        // Who might write it once, or owned it, may still have what he opened then.
        if is_common { locks::IN_USE_BY_OTHERS } else { locks::IN_USE }
    }

    /// Opens every object that holds bytes of the file, as far as rights go: from here on they may change.
    pub fn prime(&'static self) {
        let Ok(passed) = crate::gate::for_read(self) else { return };
        for (target, plane) in passed.loaded.objects() {
            let _ = self.object_if_made(passed.loaded, target, plane);
        }
    }

    /// Whether anybody but the caller has it open in this process.
    pub fn is_open_besides(&self) -> bool {
        self.refs.load(Ordering::Acquire) > 1
    }

    /// Whether others decide about this process's rights: then it must not rely on opening objects later.
    pub fn is_foreign(&self) -> bool {
        self.foreign.load(Ordering::Relaxed)
    }

    pub(super) fn note_owner(&self, owner: u32) {
        let user = sys::geteuid();
        self.owner.store(owner, Ordering::Relaxed);
        self.user.store(user, Ordering::Relaxed);
        self.foreign.store(user != 0 && user != owner, Ordering::Relaxed);
        self.narrow.store(false, Ordering::Relaxed);
    }

    /// For one who opens the file with rights that this process did not have when it opened the parts.
    pub fn widen(&'static self) {
        if !self.narrow.load(Ordering::Acquire) && self.may_write() {
            return;
        }
        let Some(_held) = self.lock.lock() else { return };
        let is_wide = self.widen_objects();
        self.narrow.store(!is_wide, Ordering::Release);
        if !self.may_write() {
            let _ = self.widen_ctl();
        }
    }

    fn widen_ctl(&'static self) -> Sys<()> {
        let ctl = self.ctl().ok_or(Errno(libc::EIO))?;
        let at = self.at()?;
        let (fd, _) = at.open_ctl(libc::O_RDWR, at.head_stat()?.st_uid)?;
        // Not refused: the narrow descriptor has the same lock.
        let present = locks::take(fd, How::Shared, PRESENCE_BYTE).and_then(|_| if self.is_dir_readable() { Ok(()) } else { self.read_dir_again() });
        let mapped = present.and_then(|()| sys::remap(ctl.base(), fd, CTL_BYTES, libc::PROT_READ | libc::PROT_WRITE));
        if let Err(errno) = mapped {
            sys::close(fd);
            return Err(errno);
        }
        replace(&self.ctl_fd, fd);
        self.ctl_writable.store(true, Ordering::Release);
        Ok(())
    }

    /// Runs `work` while no other process does anything exclusive on this file that shares an offset of it with this one. One who may not write the file
    /// has only a lock that every reader can take, and so waits for it no longer than [`READERS_NS`]; `work` is told whether it is alone.
    pub fn one_after_another<T>(&'static self, work: impl FnOnce(bool) -> Sys<T>) -> Sys<T> {
        if self.may_write() {
            return self.exclusively(|| work(true));
        }
        // Its threads have one descriptor of ctl.
        let held = self.exclusive.lock();
        let Some(ctl) = self.ctl_fd().ok().filter(|_| held.is_some()) else { return work(false) };
        let until_ns = now_ns() + READERS_NS;
        let take = || sys::flock(ctl, libc::LOCK_EX | libc::LOCK_NB).is_ok();
        let mut is_alone = take();
        while !is_alone && now_ns() < until_ns {
            sleep_until(now_ns() + OWNER_LOOK_NS / 20);
            is_alone = take();
        }
        let result = work(is_alone);
        if is_alone {
            let _ = sys::flock(ctl, libc::LOCK_UN);
        }
        result
    }
}

/// Before this process gives rights up (setuid and its kin): what it has open stays usable, as plain files do.
pub fn prime_all() {
    super::table::each_open(|file| {
        // What it may not make later.
        if crate::open::writing_companion(file).is_some() {
            let _ = file.make_all_objects();
        }
        file.prime();
    });
}
