//! The real file system as a [`Medium`]: the one seam through which verbs touch files. Whatever a path names is opened below a directory that is held
//! open, and looked at before anything is done with it (docs/security.md); what is changed by name is changed relative to a descriptor.

mod attributes;
mod file;
mod guard;
mod leased;
mod maps;
mod parts;
mod roots;

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, fstat, openat, statat};
use rustix::io::Errno;
use stripewise_target::any::{Any, AnyObject};
use stripewise_target::devices::{boot_of_devices, now_ns, open_devices, sleep_until};
use stripewise_target::dir::Dir;
use stripewise_target::interface::Object;
use stripewise_target::within::{Expected, Refusal, create_file, open_file};

pub(super) use self::file::RealFile;
use self::file::stat_of;
use self::maps::{HeldLock, RealCtl, RealDevices, is_in_the_way, take};
use self::roots::{Roots, Spot};
use super::medium::{Attributes, CtlMap, DevicesMap, FsyncPoint, Handle, Leased, Lock, Medium, Open, Root, Stat};
use super::refused::{Refused, refused};
use crate::ctl::{CTL_BYTES, CTL_MAGIC, boot_words};
use crate::locks::{How, PIN_BYTE, PRESENCE_BYTE};
use crate::rights::{OWNER_LOOK_NS, OWNER_LOOKS, Part};
use crate::run::SESSION_LOCK;

/// The file system of this machine, and the directories of it that are held open.
#[derive(Debug, Default)]
pub struct RealDisk {
    roots: Roots,
    /// Looks at locks of directories that were in vain.
    in_vain: AtomicU32,
}

/// What a directory's mode may be at most where it is not said: nothing of a store is writable by everybody unless the store is made so.
const DIR_MODE: u32 = 0o775;
/// How often, and how long after one another, the locks of files' directories are asked for in vain: 30 s in all, for a verb may keep everybody from the store
/// meanwhile.
const LOCK_LOOKS: u32 = 6000;
const LOCK_LOOK: Duration = Duration::from_millis(5);

impl RealDisk {
    /// Nothing held yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { roots: Roots::new(), in_vain: AtomicU32::new(0) }
    }

    /// Lets go of all directories.
    pub fn let_go(&self) {
        self.roots.clear();
    }

    fn opened(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let mut looks = OWNER_LOOKS;
        loop {
            let spot = self.roots.spot(path)?;
            match open_file(spot.dir(), &spot.name, flags, spot.allowed.expected()) {
                Err(Refusal::Owner) if looks > 0 => {
                    looks -= 1;
                    sleep_until(now_ns() + OWNER_LOOK_NS);
                }
                opened => return Ok(opened.map_err(|why| refused(path, why))?.0),
            }
        }
    }

    /// Names the inode that a path leads to, whatever it is and whoever may read it.
    fn looked_at(&self, path: &Path) -> io::Result<(OwnedFd, rustix::fs::Stat, Spot)> {
        let spot = self.roots.spot(path)?;
        let fd = openat(spot.dir(), &spot.name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let stat = fstat(&fd)?;
        Ok((fd, stat, spot))
    }

    /// The same of a part that is a regular file, and of those who may own it.
    fn part(&self, path: &Path) -> io::Result<(OwnedFd, rustix::fs::Stat)> {
        let (fd, stat, spot) = self.looked_at(path)?;
        spot.allowed.expected().check(&stat).map_err(|why| refused(path, why))?;
        Ok((fd, stat))
    }

    fn readable_dir(&self, path: &Path) -> io::Result<OwnedFd> {
        Ok(openat(self.roots.dir(path)?, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
    }
}

/// The mode of what is common in `run/`: whoever may make slots there may use it.
fn common_mode(run: &rustix::fs::Stat) -> u32 {
    let class = |bit: u32, mode: u32| if run.st_mode & bit == 0 { 0 } else { mode };
    0o600 | class(0o020, 0o060) | class(0o002, 0o006)
}

/// The same of what is locked exclusively by the store's owner and root alone.
fn session_mode(run: &rustix::fs::Stat) -> u32 {
    common_mode(run) & !0o022
}

/// What root makes in `run/` is to be of use to the store's owner.
fn give_to_owner_of(run: &rustix::fs::Stat, file: &OwnedFd) -> io::Result<()> {
    let is_root = rustix::process::geteuid().is_root();
    if is_root { attributes::give_owner(file.as_fd(), &fstat(file)?, run.st_uid, run.st_gid) } else { Ok(()) }
}

fn is_link(stat: &rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}

fn named(text: &CStr) -> OsString {
    OsString::from_vec(text.to_bytes().to_vec())
}

impl Medium for RealDisk {
    fn hold(&self, dir: &Path, root: Root<'_>) -> io::Result<()> {
        self.roots.hold(dir, root)
    }

    fn close_target(&self, dir: &Path) {
        self.roots.close(dir);
    }

    fn target(&self, dir: &Path) -> io::Result<Any> {
        self.roots.target(dir).map(|dir| Any::Dir(Dir::new(dir)))
    }

    fn object_owners(&self, path: &Path) -> io::Result<Vec<u32>> {
        Ok(self.roots.spot(path)?.allowed.owners().to_vec())
    }

    fn give_object(&self, object: &dyn Object, like: &Attributes) -> io::Result<()> {
        object.descriptor().map_or(Ok(()), |fd| attributes::give_rights(fd, like, Some(Part::Object)))
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn Handle>> {
        let fd = match how {
            Open::Read => self.opened(path, OFlags::RDONLY)?,
            Open::Write => self.opened(path, OFlags::RDWR)?,
            Open::CreateNew => {
                let spot = self.roots.spot(path)?;
                match create_file(spot.dir(), &spot.name, OFlags::RDWR, 0o600) {
                    // A program that has just opened the file was quicker.
                    Err(Errno::EXIST) => self.opened(path, OFlags::RDWR)?,
                    made => made?,
                }
            }
        };
        Ok(Box::new(RealFile::new(fd)))
    }

    fn mkdir(&self, path: &Path) -> io::Result<()> {
        let spot = self.roots.spot(path)?;
        Ok(rustix::fs::mkdirat(spot.dir(), &spot.name, Mode::from_raw_mode(DIR_MODE))?)
    }

    fn set_dir_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        attributes::give_mode(self.roots.dir(path)?.as_fd(), mode)
    }

    fn change_mode(&self, path: &Path, take: u32, give: u32) -> io::Result<()> {
        let (fd, stat) = self.part(path)?;
        attributes::give_mode(fd.as_fd(), stat.st_mode & 0o7777 & !take | give)
    }

    fn make_common(&self, path: &Path) -> io::Result<()> {
        let spot = self.roots.spot(path)?;
        let run = fstat(spot.dir())?;
        let mode = if *spot.name == *SESSION_LOCK { session_mode(&run) } else { common_mode(&run) };
        match create_file(spot.dir(), &spot.name, OFlags::RDWR, mode) {
            Ok(made) => give_to_owner_of(&run, &made),
            Err(Errno::EXIST) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.roots.spot(from)?, self.roots.spot(to)?);
        Ok(rustix::fs::renameat(from.dir(), &from.name, to.dir(), &to.name)?)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let spot = self.roots.spot(path)?;
        Ok(rustix::fs::unlinkat(spot.dir(), &spot.name, AtFlags::empty())?)
    }

    fn rmdir(&self, path: &Path) -> io::Result<()> {
        let spot = self.roots.spot(path)?;
        Ok(rustix::fs::unlinkat(spot.dir(), &spot.name, AtFlags::REMOVEDIR)?)
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        let (one, other) = (self.roots.spot(one)?, self.roots.spot(other)?);
        match rustix::fs::renameat_with(one.dir(), &one.name, other.dir(), &other.name, RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Err(io::ErrorKind::Unsupported.into()),
            result => Ok(result?),
        }
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.roots.spot(from)?, self.roots.spot(to)?);
        Ok(rustix::fs::linkat(from.dir(), &from.name, to.dir(), &to.name, AtFlags::empty())?)
    }

    fn open_alone(&self, path: &Path, lease: bool) -> io::Result<Option<Box<dyn Leased>>> {
        leased::open_alone(&self.roots.spot(path)?, path, lease)
    }

    fn symlink(&self, text: &Path, at: &Path) -> io::Result<()> {
        let spot = self.roots.spot(at)?;
        Ok(rustix::fs::symlinkat(text, spot.dir(), &spot.name)?)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let spot = self.roots.spot(path)?;
        Ok(PathBuf::from(named(&rustix::fs::readlinkat(spot.dir(), &spot.name, Vec::new())?)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let mut names = rustix::fs::Dir::new(self.readable_dir(dir)?)?.map(|e| Ok(named(e?.file_name()))).collect::<io::Result<Vec<_>>>()?;
        names.retain(|name| name != "." && name != "..");
        names.sort();
        Ok(names)
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        // What lies in another's target is nothing of this store's.
        let is_foreign = |e: &io::Error| Refused::of(e).is_some_and(|refused| refused.why == Refusal::Foreign);
        let absent = |e: &io::Error| matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) || is_foreign(e);
        let spot = match self.roots.spot(path) {
            Err(e) if absent(&e) => return Ok(None),
            spot => spot?,
        };
        match statat(spot.dir(), &spot.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat_of(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Side by side: the devices work at the same time, and a file system joins what it has to write to its journal.
    fn sync_objects(&self, objects: &[(PathBuf, AnyObject)], (from, to): (u64, u64), _point: FsyncPoint) -> io::Result<()> {
        let flush = |(_, object): &(PathBuf, AnyObject)| Ok(object.sync_range(from, to)?);
        let Some((first, others)) = objects.split_first() else { return Ok(()) };
        std::thread::scope(|scope| {
            let running: Vec<_> = others.iter().map(|object| scope.spawn(move || flush(object))).collect();
            let mut result: io::Result<()> = flush(first);
            for thread in running {
                result = result.and(thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread that flushed panicked"))));
            }
            result
        })
    }

    fn sync_dir(&self, dir: &Path, _point: FsyncPoint) -> io::Result<()> {
        Ok(rustix::fs::fsync(self.readable_dir(dir)?)?)
    }

    fn try_presence(&self, path: &Path, how: How) -> io::Result<Option<Box<dyn Lock>>> {
        let flags = if how == How::Exclusive { OFlags::RDWR } else { OFlags::RDONLY };
        let file = self.opened(path, flags)?;
        Ok(if take(&file, how, PRESENCE_BYTE)? { Some(Box::new(HeldLock(file.into()))) } else { None })
    }

    fn try_lock(&self, path: &Path, exclusive: bool) -> io::Result<Option<Box<dyn Lock>>> {
        let file = match self.opened(path, OFlags::RDWR) {
            // A lock on a whole file needs no right to write it.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => self.opened(path, OFlags::RDONLY)?,
            file => file?,
        };
        let how = if exclusive { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingLockShared };
        match rustix::fs::flock(&file, how) {
            Ok(()) => Ok(Some(Box::new(HeldLock(file.into())))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    fn ctl(&self, path: &Path, create: bool) -> io::Result<Box<dyn CtlMap>> {
        let file = match self.opened(path, OFlags::RDWR) {
            Err(e) if create && e.kind() == io::ErrorKind::NotFound => {
                let spot = self.roots.spot(path)?;
                match create_file(spot.dir(), &spot.name, OFlags::RDWR, 0o600) {
                    // A program that has just opened the file was quicker.
                    Err(Errno::EXIST) => self.opened(path, OFlags::RDWR)?,
                    made => made?,
                }
            }
            file => file?,
        };
        if fstat(&file)?.st_size < CTL_BYTES as i64 {
            if !create {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "shorter than 65,536 bytes"));
            }
            rustix::fs::ftruncate(&file, CTL_BYTES as u64)?;
        }
        Ok(Box::new(RealCtl::new(file)?))
    }

    fn devices(&self, run_dir: &Path, targets: usize, create: bool) -> io::Result<Option<Box<dyn DevicesMap>>> {
        let path = run_dir.join("devices");
        let boot = boot_words(&self.boot_id()?);
        let spot = match self.roots.spot(&path) {
            Err(e) if !create && e.kind() == io::ErrorKind::NotFound => return Ok(None),
            spot => spot?,
        };
        let refused = |why| refused(&path, why);
        if !create {
            // What another boot left is not for one who only looks to zero.
            match open_file(spot.dir(), &spot.name, OFlags::RDONLY, Expected::of(&spot.owners).hard_links_too()) {
                Err(Refusal::Os(Errno::NOENT)) => return Ok(None),
                opened => {
                    if boot_of_devices(&opened.map_err(refused)?.0)? != Some(boot) {
                        return Ok(None);
                    }
                }
            }
        }
        // Made by the store's owner and root only: others would own what everybody uses.
        let may_make = create && spot.owners.contains(&rustix::process::geteuid().as_raw());
        let run = fstat(spot.dir())?;
        let is_missing = matches!(statat(spot.dir(), &spot.name, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT));
        let mode = may_make.then(|| common_mode(&run));
        let file = match open_devices(spot.dir(), targets, boot, &spot.owners, mode) {
            Err(Refusal::Os(Errno::NOENT)) if !may_make => return Ok(None),
            file => file.map_err(refused)?,
        };
        if is_missing {
            give_to_owner_of(&run, &file)?;
        }
        Ok(Some(Box::new(RealDevices::new(&file, targets)?)))
    }

    fn attributes(&self, path: &Path) -> io::Result<Attributes> {
        attributes::of(self.part(path)?.0.as_fd())
    }

    fn follow_head(&self, head: &Path, to: &Path, part: Part) -> io::Result<()> {
        let like = self.attributes(head)?;
        let (fd, stat, _) = self.looked_at(to)?;
        Expected::of(&[]).check(&stat).map_err(|why| refused(to, why))?;
        // What is another's is nobody's to give away; what is ours only while it can hold nothing that head's owner may not see.
        let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
        if stat.st_uid != like.uid && !(is_ours && holds_nothing(&fd, &stat, part)?) {
            return Err(refused(to, Refusal::Owner));
        }
        attributes::give_rights(fd.as_fd(), &like, Some(part))
    }

    fn dir_follows_head(&self, dir: &Path) -> io::Result<()> {
        let (fd, stat, _) = self.looked_at(dir)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Err(refused(dir, Refusal::Kind));
        }
        let (head, _) = open_file(fd.as_fd(), c"head", OFlags::PATH, Expected::of(&[])).map_err(|why| refused(dir, why))?;
        let like = attributes::of(head.as_fd())?;
        attributes::give_rights(fd.as_fd(), &like, Some(Part::Dir))
    }

    fn own_link(&self, link: &Path, text: &Path, uid: u32, gid: u32) -> io::Result<()> {
        let (fd, stat, _) = self.looked_at(link)?;
        let is_ours = is_link(&stat) && stat.st_nlink == 1 && stat.st_uid == rustix::process::geteuid().as_raw();
        if !is_ours || rustix::fs::readlinkat(&fd, c"", Vec::new())?.to_bytes() != text.as_os_str().as_bytes() {
            return Err(io::Error::other("somebody put something else in the link's place"));
        }
        attributes::give_owner(fd.as_fd(), &stat, uid, gid)
    }

    fn acl(&self, path: &Path) -> io::Result<Vec<u8>> {
        attributes::get(self.looked_at(path)?.0.as_fd(), attributes::ACL)
    }

    fn lock_holders(&self, path: &Path) -> io::Result<Vec<u32>> {
        attributes::lock_holders(self.looked_at(path)?.0)
    }

    fn pause(&self, ms: u64) {
        std::thread::sleep(std::time::Duration::from_millis(ms));
    }

    fn grace(&self, run_dir: &Path, patience_ns: u64) -> io::Result<bool> {
        match crate::slot::grace(self.roots.dir(run_dir)?.as_fd(), self.boot_id()?.as_bytes(), b"", patience_ns) {
            Ok(_) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::TIMEDOUT) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    fn run_fd(&self, run_dir: &Path) -> io::Result<Option<OwnedFd>> {
        Ok(Some(self.roots.dir(run_dir)?.try_clone()?))
    }

    fn lock_dir(&self, dir: &Path) -> io::Result<Box<dyn Lock>> {
        let file = self.readable_dir(dir)?;
        let left = LOCK_LOOKS.saturating_sub(self.in_vain.load(Ordering::Relaxed));
        for look in 0..=left {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Box::new(HeldLock(file.into()))),
                Err(Errno::WOULDBLOCK) if look < left => std::thread::sleep(LOCK_LOOK),
                Err(Errno::WOULDBLOCK) => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.in_vain.fetch_add(left, Ordering::Relaxed);
        Err(io::Error::new(io::ErrorKind::TimedOut, "another process that may write the file keeps it locked"))
    }

    fn is_pinned(&self, ctl: &Path) -> io::Result<bool> {
        is_in_the_way(&self.opened(ctl, OFlags::RDONLY)?, How::Exclusive, PIN_BYTE)
    }

    fn boot_id(&self) -> io::Result<String> {
        Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_string())
    }

    fn machine_id(&self) -> io::Result<String> {
        match std::fs::read_to_string("/etc/machine-id") {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            text => Ok(text?.trim().to_string()),
        }
    }

    fn now_s(&self) -> i64 {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64)
    }
}

/// Whether a part that is to get another owner tells him nothing: an object without a block, or control words.
fn holds_nothing(fd: &OwnedFd, stat: &rustix::fs::Stat, part: Part) -> io::Result<bool> {
    match part {
        Part::Object => Ok(stat.st_blocks == 0),
        Part::Dir => Ok(false),
        Part::Ctl if stat.st_size > CTL_BYTES as i64 => Ok(false),
        Part::Ctl => {
            use std::os::fd::AsRawFd;
            use std::os::unix::fs::FileExt;
            let mut magic = [0u8; CTL_MAGIC.len()];
            let file = std::fs::File::open(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
            let got = file.read_at(&mut magic, 0)?;
            Ok(magic == CTL_MAGIC || magic.get(..got).is_none_or(|bytes| bytes.iter().all(|byte| *byte == 0)))
        }
    }
}
