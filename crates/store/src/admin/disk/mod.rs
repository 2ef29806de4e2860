//! The real file system as a [`Medium`]: the one seam through which verbs touch files. Whatever a path names is opened below a directory that is held
//! open, and looked at before anything is done with it (docs/security.md); what is changed by name is changed relative to a descriptor.

mod attributes;
mod file;
mod guard;
mod leased;
mod maps;
mod meetings;
mod names;
mod parts;
mod rights;
mod roots;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;

use rustix::fs::{Mode, OFlags, fstat, openat};
use stripewise_target::any::{Any, AnyObject};
use stripewise_target::dir::Dir;
use stripewise_target::interface::Object;
use stripewise_target::time::{now_ns, sleep_until};
use stripewise_target::within::{Refusal, open_file};

pub(super) use self::file::RealFile;
use self::roots::{Roots, Spot};
use super::medium::{Attributes, Flushes, FsyncPoint, Machine, Places, Root};
use super::refused::refused;
use crate::rights::{OWNER_LOOK_NS, OWNER_LOOKS, Part};

/// The file system of this machine, and the directories of it that are held open.
#[derive(Debug, Default)]
pub struct RealDisk {
    roots: Roots,
    /// Looks at locks of directories that were in vain.
    in_vain: AtomicU32,
}

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

impl Places for RealDisk {
    fn hold(&self, dir: &Path, root: Root<'_>) -> io::Result<()> {
        self.roots.hold(dir, root)
    }

    fn close_target(&self, dir: &Path) {
        self.roots.close(dir);
    }

    fn let_go(&self, dir: &Path) {
        self.roots.let_go(dir);
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
}

impl Flushes for RealDisk {
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
}

impl Machine for RealDisk {
    fn pause(&self, ms: u64) {
        std::thread::sleep(std::time::Duration::from_millis(ms));
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
