//! Locks, control words, clocks and slots that verbs and programs share.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, OFlags, fstat, statat};
use rustix::io::Errno;
use stripewise_target::devices::{boot_of_devices, open_devices};
use stripewise_target::within::{Expected, Refusal, create_file, open_file};

use super::maps::{HeldLock, RealCtl, RealDevices, is_in_the_way, take};
use super::{RealDisk, attributes};
use crate::admin::medium::{CtlMap, DevicesMap, Lock, Machine, Meetings};
use crate::admin::refused::refused;
use crate::ctl::{CTL_BYTES, boot_words};
use crate::locks::{How, PIN_BYTE, PRESENCE_BYTE};
use crate::run::SESSION_LOCK;

/// How often, and how long after one another, the locks of files' directories are asked for in vain: 30 s in all, for a verb may keep everybody from the store
/// meanwhile.
const LOCK_LOOKS: u32 = 6000;
const LOCK_LOOK: Duration = Duration::from_millis(5);

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

impl Meetings for RealDisk {
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

    fn lock_holders(&self, path: &Path) -> io::Result<Vec<u32>> {
        attributes::lock_holders(self.looked_at(path)?.0)
    }

    fn is_pinned(&self, ctl: &Path) -> io::Result<bool> {
        is_in_the_way(&self.opened(ctl, OFlags::RDONLY)?, How::Exclusive, PIN_BYTE)
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
}
