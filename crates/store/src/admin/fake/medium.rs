//! What verbs do to the disk, as they do it to a real one.

use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use stripewise_target::any::Any;
use stripewise_target::fake::{Fake, Found};
use stripewise_target::interface::Object;

use super::file::{FakeCtl, FakeFile, FakeLock, Unlocked};
use super::{FakeDisk, MODE};
use crate::admin::medium::{
    Attributes, CtlMap, DevicesMap, Flushes, FsyncPoint, Handle, Kind, Leased, Lock, Machine, Meetings, Names, Open, Others, Places, Rights, Root,
    Stat,
};
use crate::ctl::CTL_BYTES;
use crate::locks::How;
use crate::rights::Part;

fn missing(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no {} on the fake disk", path.display()))
}

impl Places for FakeDisk {
    fn hold(&self, _dir: &Path, _root: Root<'_>) -> io::Result<()> {
        Ok(())
    }

    fn close_target(&self, _dir: &Path) {}

    fn let_go(&self, _dir: &Path) {}

    fn target(&self, dir: &Path) -> io::Result<Any> {
        self.disk.find(dir).ok_or_else(|| missing(dir))?;
        if let Some(place) = &self.more().elsewhere {
            return Ok(place(dir));
        }
        Ok(Any::other(Fake::new(&self.disk, dir)))
    }

    fn object_owners(&self, _path: &Path) -> io::Result<Vec<u32>> {
        Ok(Vec::new())
    }

    fn give_object(&self, _object: &dyn Object, _like: &Attributes) -> io::Result<()> {
        Ok(())
    }
}

impl Names for FakeDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn Handle>> {
        let file = match how {
            Open::Read | Open::Write => self.disk.open(path)?,
            Open::CreateNew => self.disk.make_file(path)?,
        };
        Ok(Box::new(FakeFile { disk: self.clone(), file }))
    }

    fn mkdir(&self, path: &Path) -> io::Result<()> {
        Ok(self.disk.make_dir(path)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(self.disk.rename(from, to)?)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        Ok(self.disk.unlink(path)?)
    }

    fn rmdir(&self, path: &Path) -> io::Result<()> {
        Ok(self.disk.remove_dir(path)?)
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        if self.more().cannot_exchange {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(self.disk.exchange(one, other)?)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(self.disk.hard_link(from, to)?)
    }

    fn open_leased(&self, path: &Path, _others: Others, _lease: bool) -> io::Result<Option<Box<dyn Leased>>> {
        let file = self.disk.open(path)?;
        if self.is_wanted() {
            return Ok(None);
        }
        Ok(Some(Box::new(FakeFile { disk: self.clone(), file })))
    }

    fn symlink(&self, text: &Path, at: &Path) -> io::Result<()> {
        Ok(self.disk.make_link(text, at)?)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        match self.disk.find(path) {
            Some((_, Found::Link(text))) => Ok(text),
            Some(_) => Err(io::Error::from(io::ErrorKind::InvalidInput)),
            None => Err(missing(path)),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        Ok(self.disk.list(dir)?)
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        let Some((ino, found)) = self.disk.find(path) else { return Ok(None) };
        let (kind, size, allocated_bytes) = match found {
            Found::File(len, used_bytes) => (Kind::File, len, used_bytes),
            Found::Dir => (Kind::Dir, 0, 0),
            Found::Link(text) => (Kind::Link, text.as_os_str().len() as u64, 0),
            Found::Memory => (Kind::File, CTL_BYTES as u64, CTL_BYTES as u64),
        };
        let links = self.disk.names_of(ino);
        let mode = if kind == Kind::Dir { Part::Dir.mode(MODE) } else { MODE };
        Ok(Some(Stat { kind, size, allocated_bytes, dev: 1, ino, mtime_s: 0, mtime_ns: 0, ctime_ns: 0, links, mode, uid: 0, gid: 0 }))
    }
}

impl Rights for FakeDisk {
    fn set_dir_mode(&self, _path: &Path, _mode: u32) -> io::Result<()> {
        Ok(())
    }

    fn change_mode(&self, _path: &Path, _take: u32, _give: u32) -> io::Result<()> {
        Ok(())
    }

    fn attributes(&self, _path: &Path) -> io::Result<Attributes> {
        Ok(Attributes::default())
    }

    fn follow_head(&self, _head: &Path, _to: &Path, _part: Part) -> io::Result<()> {
        Ok(())
    }

    fn dir_follows_head(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn dir_follows(&self, _dir: &Path, _like: &Path) -> io::Result<()> {
        Ok(())
    }

    fn own_link(&self, _link: &Path, _text: &Path, _uid: u32, _gid: u32) -> io::Result<()> {
        Ok(())
    }

    fn acl(&self, _path: &Path) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }
}

impl Flushes for FakeDisk {
    fn flushes(&self, _path: &Path, point: FsyncPoint) -> io::Result<bool> {
        self.is_flushed(point)
    }

    fn sync_dir(&self, dir: &Path, point: FsyncPoint) -> io::Result<()> {
        if self.is_flushed(point)? { Ok(self.disk.sync_dir(dir)?) } else { Ok(()) }
    }
}

impl Meetings for FakeDisk {
    fn make_common(&self, path: &Path) -> io::Result<()> {
        if self.disk.find(path).is_some() { Ok(()) } else { Ok(self.disk.make_file(path).map(drop)?) }
    }

    fn try_presence(&self, path: &Path, how: How) -> io::Result<Option<Box<dyn Lock>>> {
        self.try_lock(path, how == How::Exclusive)
    }

    fn try_lock(&self, path: &Path, exclusive: bool) -> io::Result<Option<Box<dyn Lock>>> {
        self.disk.find(path).ok_or_else(|| missing(path))?;
        match self.more().locks.entry(path.to_path_buf()) {
            Entry::Occupied(held) if exclusive || held.get().1 => return Ok(None),
            Entry::Occupied(mut held) => held.get_mut().0 += 1,
            Entry::Vacant(room) => {
                room.insert((1, exclusive));
            }
        }
        Ok(Some(Box::new(FakeLock { disk: self.clone(), path: path.to_path_buf() })))
    }

    fn lock_dir(&self, _dir: &Path) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(Unlocked))
    }

    fn lock_holders(&self, _path: &Path) -> io::Result<Vec<u32>> {
        Ok(Vec::new())
    }

    fn is_pinned(&self, _ctl: &Path) -> io::Result<bool> {
        Ok(false)
    }

    fn ctl(&self, path: &Path, create: bool) -> io::Result<Box<dyn CtlMap>> {
        match self.disk.memory(path, CTL_BYTES / 8, create) {
            Ok(memory) => Ok(Box::new(FakeCtl(memory))),
            Err(Errno::INVAL) => Err(io::Error::new(io::ErrorKind::InvalidData, "not a ctl")),
            Err(errno) => Err(errno.into()),
        }
    }

    fn devices(&self, _run_dir: &Path, _targets: usize, _create: bool) -> io::Result<Option<Box<dyn DevicesMap>>> {
        Ok(None)
    }

    fn grace(&self, _run_dir: &Path, _patience_ns: u64) -> io::Result<bool> {
        Ok(true)
    }

    fn run_fd(&self, _run_dir: &Path) -> io::Result<Option<OwnedFd>> {
        Ok(None)
    }
}

impl Machine for FakeDisk {
    /// The only time that passes here.
    fn pause(&self, ms: u64) {
        self.more().now_ms += ms;
    }

    fn boot_id(&self) -> io::Result<String> {
        Ok(format!("00000000-0000-4000-8000-{:012x}", self.disk.boot()))
    }

    fn machine_id(&self) -> io::Result<String> {
        Ok("fake".to_string())
    }

    fn now_s(&self) -> i64 {
        (self.more().now_ms / 1000) as i64
    }
}
