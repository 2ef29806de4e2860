//! What is made, found, renamed and removed by name, relative to directories that are held.

use std::ffi::{CStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, StatxFlags, statat, statx};
use rustix::io::Errno;
use stripewise_target::within::{Refusal, create_file};

use super::file::{RealFile, stat_of};
use super::{RealDisk, leased};
use crate::admin::medium::{Handle, Leased, Names, Open, Others, Stat};
use crate::admin::refused::Refused;

/// What a directory's mode may be at most where it is not said: nothing of a store is writable by everybody unless the store is made so.
const DIR_MODE: u32 = 0o775;

fn named(text: &CStr) -> OsString {
    OsString::from_vec(text.to_bytes().to_vec())
}

impl Names for RealDisk {
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

    fn open_leased(&self, path: &Path, others: Others, lease: bool) -> io::Result<Option<Box<dyn Leased>>> {
        leased::open(&self.roots.spot(path)?, path, others, lease)
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

    fn born_ns(&self, dir: &Path) -> io::Result<u64> {
        match statx(self.roots.dir(dir)?, c"", AtFlags::EMPTY_PATH, StatxFlags::BTIME) {
            Ok(found) if found.stx_mask & StatxFlags::BTIME.bits() != 0 => {
                Ok(u64::try_from(found.stx_btime.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::from(found.stx_btime.tv_nsec))
            }
            Ok(_) | Err(Errno::NOSYS | Errno::OPNOTSUPP) => Ok(0),
            Err(e) => Err(e.into()),
        }
    }
}
