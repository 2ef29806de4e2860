//! What a user may do with a file's parts. The program's rights are checked where it opens head; objects and ctl carry head's rights, so that
//! nobody reaches bytes past the library who may not reach them through it. A file that is open stays usable when rights change, as a plain
//! one does: its objects are opened before ([`File::prime`]), and opened wider when a later open is allowed more ([`File::widen`]).

use super::{File, held, object_place};
use crate::fds;
use crate::log;
use crate::store;
use crate::sys::{self, Errno, Sys};
use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, Ordering};
use stripewise_store::ctl::{CTL_BYTES, Ctl, MoveState};
use stripewise_store::moving::Words;
use stripewise_store::names::{self, StorePath};
use stripewise_store::rights::Part;

/// Opens one of the store's files both ways, or as far as the user's rights go; says whether both ways.
fn open_widest(path: &CStr) -> Sys<(i32, bool)> {
    // Nobody reads an object's access time, so reads need not keep it; only the owner may ask for that.
    let both = match sys::open(path, libc::O_RDWR | libc::O_NOATIME, 0) {
        Err(Errno(libc::EPERM)) => sys::open(path, libc::O_RDWR, 0),
        result => result,
    };
    match both {
        Ok(fd) => Ok((fd, true)),
        Err(Errno(libc::EACCES | libc::EROFS)) => match sys::open(path, libc::O_RDONLY, 0) {
            Err(Errno(libc::EACCES)) => sys::open(path, libc::O_WRONLY, 0),
            result => result,
        }
        .map(|fd| (fd, false)),
        Err(errno) => Err(errno),
    }
}

/// Opens ctl, made when it is missing; says whether for writing.
pub fn open_ctl(path: &CStr, head_mode: u32) -> Sys<(i32, bool)> {
    let made = match sys::open(path, libc::O_RDWR, 0) {
        Err(Errno(libc::ENOENT)) => match sys::open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, 0o600) {
            Ok(fd) => {
                sys::fchmod(fd, Part::Ctl.mode(head_mode)).inspect_err(|_| sys::close(fd))?;
                Ok(fd)
            }
            Err(Errno(libc::EEXIST)) => sys::open(path, libc::O_RDWR, 0),
            result => result,
        },
        result => result,
    };
    match made {
        Ok(fd) => Ok((fd, true)),
        Err(Errno(libc::EACCES | libc::EROFS | libc::EPERM)) => Ok((sys::open(path, libc::O_RDONLY, 0)?, false)),
        Err(errno) => Err(errno),
    }
}

/// Puts a wider descriptor in the place of one that is in use: same number, so that running I/O goes on.
fn replace(holder: &AtomicI32, wider: i32) {
    if let Some(fd) = held(holder) {
        let _ = sys::dup3(wider, fd, libc::O_CLOEXEC);
    }
    sys::close(wider);
}

impl File {
    fn object_path(&self, target: u32, plane: u32) -> Sys<StorePath> {
        let dir = self.store()?.view()?.target(target as usize).ok_or(Errno(libc::EIO))?;
        Ok(names::object(dir.path, self.id(), plane))
    }

    #[cold]
    pub(super) fn open_object(&'static self, target: u32, plane: u32) -> Sys<i32> {
        let holder = self.objects.get(object_place(target, plane)).ok_or(Errno(libc::EIO))?;
        let _held = self.lock.lock();
        if let Some(fd) = held(holder) {
            return Ok(fd);
        }
        let path = self.object_path(target, plane)?;
        let (fd, both) = open_widest(path.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?).map_err(|errno| missing(errno, &path))?;
        if !both {
            self.narrow.store(true, Ordering::Release);
        }
        if crate::env::in_vfork_child() {
            // Its parent must not take this number for its own: the descriptor serves once, and ends with the child's exec.
            return Ok(fd);
        }
        fds::make_internal(fd, holder, true)
    }

    /// stat of an object, which needs no right to its bytes.
    #[inline(never)] // As `trust_ctl`.
    pub fn object_stat(&'static self, target: u32, plane: u32) -> Sys<libc::stat> {
        if let Some(fd) = self.objects.get(object_place(target, plane)).and_then(held) {
            return sys::fstat(fd);
        }
        let path = self.object_path(target, plane)?;
        sys::stat(path.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?, libc::AT_SYMLINK_NOFOLLOW).map_err(|errno| missing(errno, &path))
    }

    /// Opens every object that holds bytes of the file, as far as rights go: from here on they may change.
    pub fn prime(&'static self) {
        let Ok(passed) = crate::gate::for_read(self) else { return };
        for (target, plane) in passed.loaded.objects() {
            let _ = self.object(target, plane);
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
        self.foreign.store(user != 0 && user != owner, Ordering::Relaxed);
        self.narrow.store(false, Ordering::Relaxed);
    }

    /// For one who opens the file with rights that this process did not have when it opened the parts.
    pub fn widen(&'static self) {
        if !self.narrow.load(Ordering::Acquire) && self.may_write() {
            return;
        }
        let Some(_held) = self.lock.lock() else { return };
        let mut narrow = false;
        let Ok(store) = self.store().and_then(|store| store.view()) else { return };
        for (place, holder) in self.objects.iter().enumerate().filter(|(_, holder)| held(holder).is_some()) {
            let Some(dir) = store.target(place / 2) else { continue };
            let path = names::object(dir.path, self.id(), (place % 2) as u32);
            match path.as_c_str().map(open_widest) {
                Some(Ok((fd, true))) => replace(holder, fd),
                Some(Ok((fd, false))) => {
                    narrow = true;
                    sys::close(fd);
                }
                _ => narrow = true,
            }
        }
        self.narrow.store(narrow, Ordering::Release);
        if !self.may_write() {
            let _ = self.widen_ctl();
        }
    }

    fn widen_ctl(&'static self) -> Sys<()> {
        let ctl = self.ctl().ok_or(Errno(libc::EIO))?;
        let path = self.part(b"ctl")?;
        let fd = sys::open(path.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?, libc::O_RDWR, 0)?;
        let mapped = sys::flock(fd, libc::LOCK_SH).and_then(|_| sys::remap(ctl.base(), fd, CTL_BYTES, libc::PROT_READ | libc::PROT_WRITE));
        if let Err(errno) = mapped {
            sys::close(fd);
            return Err(errno);
        }
        replace(&self.ctl_fd, fd);
        self.ctl_writable.store(true, Ordering::Release);
        Ok(())
    }

    /// After a boot, for one who may only read: ctl is as good as new when it says what head and objects say, and nothing was under way.
    #[inline(never)] // Its buffers would lie on the stack below the recovery of a file.
    pub(super) fn trust_ctl(&'static self, ctl: &Ctl) -> Sys<()> {
        let quiet = MoveState::of(ctl.word()) == MoveState::Idle && ctl.header().flags.load(Ordering::Acquire) & !crate::size::FLAG_DURABLE == 0;
        if ctl.is_valid() && quiet && ctl.size() == self.size_on_disk()? {
            return Ok(());
        }
        log::say(
            b"after an unclean stop a file is first opened by one who may write it; let its owner open it, or run stripewise store fsck",
            self.part(b"ctl")?.as_bytes(),
        );
        Err(Errno(libc::EACCES))
    }

    /// The lock of [`File::exclusively`] for one who may not write ctl: a byte-range lock needs that, a flock of the layout does not.
    #[inline(never)] // As above.
    pub(super) fn exclusively_as_reader<T>(&'static self, work: impl FnOnce() -> Sys<T>) -> Sys<T> {
        let path = self.part(b"layout")?;
        let fd = sys::open(path.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?, libc::O_RDONLY, 0)?;
        let result = loop {
            match sys::flock(fd, libc::LOCK_EX) {
                Err(Errno(libc::EINTR)) => {}
                Err(errno) => break Err(errno),
                Ok(_) => break work(),
            }
        };
        sys::close(fd);
        result
    }
}

fn missing(errno: Errno, path: &StorePath) -> Errno {
    if !matches!(errno, Errno(libc::ENOENT | libc::ENOTDIR)) {
        return errno;
    }
    log::say(b"an object is missing; is its target mounted? run stripewise store fsck", path.as_bytes());
    Errno(libc::EIO)
}

/// Before this process gives rights up (setuid and its kin): what it has open stays usable, as plain files do.
pub fn prime_all() {
    for store in store::all() {
        for (_, file) in super::used().filter(|(_, file)| file.refs.load(Ordering::Acquire) > 0) {
            if file.store.load(Ordering::Relaxed) as usize == store.index {
                file.prime();
            }
        }
    }
}
