//! What verbs do to the disk, as they do it to a real one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::content::PAGE;
use super::file::{CtlMemory, FakeCtl, FakeFile, FakeLock, Unlocked};
use super::{FakeDisk, MODE, Node, apply_dir, missing, new_file};
use crate::admin::medium::{Attributes, CtlMap, DevicesMap, FsyncPoint, Handle, Kind, Leased, Lock, Medium, Open, Root, Stat};
use crate::ctl::CTL_BYTES;
use crate::locks::How;
use crate::rights::Part;

impl Medium for FakeDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn Handle>> {
        let mut inner = self.lock();
        let found = inner.find(path);
        let node = match (found, how) {
            (Some(_), Open::CreateNew) => return Err(io::Error::from(io::ErrorKind::AlreadyExists)),
            (Some(node), _) => node,
            (None, Open::Read | Open::Write) => return Err(missing(path)),
            (None, Open::CreateNew) => inner.add(path, new_file())?,
        };
        drop(inner);
        Ok(Box::new(FakeFile { disk: self.clone(), node }))
    }

    fn hold(&self, _dir: &Path, _root: Root<'_>) -> io::Result<()> {
        Ok(())
    }

    fn close_target(&self, _dir: &Path) {}

    fn set_dir_mode(&self, _path: &Path, _mode: u32) -> io::Result<()> {
        Ok(())
    }

    fn change_mode(&self, _path: &Path, _take: u32, _give: u32) -> io::Result<()> {
        Ok(())
    }

    fn make_common(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        if inner.find(path).is_some() { Ok(()) } else { inner.add(path, new_file()).map(drop) }
    }

    fn mkdir(&self, path: &Path) -> io::Result<()> {
        self.lock().add(path, Node::Dir { live: BTreeMap::new(), durable: BTreeMap::new(), ops: Vec::new() }).map(drop)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        let node = inner.find(from).ok_or_else(|| missing(from))?;
        let (old_dir, old_name) = inner.parent(from)?;
        let (new_dir, new_name) = inner.parent(to)?;
        inner.step()?;
        let number = inner.next_op();
        if old_dir == new_dir {
            return inner.change_dir(old_dir, number, vec![(old_name, None), (new_name, Some(node))]);
        }
        inner.change_dir(old_dir, number, vec![(old_name, None)])?;
        inner.change_dir(new_dir, number, vec![(new_name, Some(node))])
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.lock().find(to).is_some() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        self.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        inner.find(path).ok_or_else(|| missing(path))?;
        inner.remove(path)
    }

    fn rmdir(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        let node = inner.find(path).ok_or_else(|| missing(path))?;
        match inner.nodes.get(&node) {
            Some(Node::Dir { live, .. }) if live.is_empty() => inner.remove(path),
            Some(Node::Dir { .. }) => Err(io::Error::from(io::ErrorKind::DirectoryNotEmpty)),
            _ => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        if inner.cannot_exchange {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let first = inner.find(one).ok_or_else(|| missing(one))?;
        let second = inner.find(other).ok_or_else(|| missing(other))?;
        let (dir, one) = inner.parent(one)?;
        let (_, other) = inner.parent(other)?;
        inner.step()?;
        let number = inner.next_op();
        inner.change_dir(dir, number, vec![(one, Some(second)), (other, Some(first))])
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        let node = inner.find(from).ok_or_else(|| missing(from))?;
        if inner.find(to).is_some() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let (dir, name) = inner.parent(to)?;
        inner.step()?;
        let number = inner.next_op();
        inner.change_dir(dir, number, vec![(name, Some(node))])
    }

    fn open_alone(&self, path: &Path, _lease: bool) -> io::Result<Option<Box<dyn Leased>>> {
        let inner = self.lock();
        let node = inner.find(path).ok_or_else(|| missing(path))?;
        if inner.is_wanted() {
            return Ok(None);
        }
        Ok(Some(Box::new(FakeFile { disk: self.clone(), node })))
    }

    fn symlink(&self, text: &Path, at: &Path) -> io::Result<()> {
        self.lock().add(at, Node::Link(text.to_path_buf())).map(drop)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let inner = self.lock();
        match inner.find(path).and_then(|n| inner.nodes.get(&n)) {
            Some(Node::Link(text)) => Ok(text.clone()),
            Some(_) => Err(io::Error::from(io::ErrorKind::InvalidInput)),
            None => Err(missing(path)),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let inner = self.lock();
        match inner.find(dir).and_then(|n| inner.nodes.get(&n)) {
            Some(Node::Dir { live, .. }) => Ok(live.keys().cloned().collect()),
            Some(_) => Err(io::Error::from(io::ErrorKind::NotADirectory)),
            None => Err(missing(dir)),
        }
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        let inner = self.lock();
        let Some(ino) = inner.find(path) else { return Ok(None) };
        let (kind, size, allocated_bytes) = match inner.nodes.get(&ino) {
            Some(Node::File { live, .. }) => (Kind::File, live.len, live.pages.len() as u64 * PAGE),
            Some(Node::Dir { .. }) => (Kind::Dir, 0, 0),
            Some(Node::Link(text)) => (Kind::Link, text.as_os_str().len() as u64, 0),
            Some(Node::Ctl(_)) => (Kind::File, CTL_BYTES as u64, CTL_BYTES as u64),
            None => return Ok(None),
        };
        let links = inner.names_of(ino);
        let mode = if kind == Kind::Dir { Part::Dir.mode(MODE) } else { MODE };
        Ok(Some(Stat { kind, size, allocated_bytes, dev: 1, ino, mtime_s: 0, mtime_ns: 0, ctime_ns: 0, links, mode, uid: 0, gid: 0 }))
    }

    fn sync_dir(&self, dir: &Path, point: FsyncPoint) -> io::Result<()> {
        let mut inner = self.lock();
        let node = inner.find(dir).ok_or_else(|| missing(dir))?;
        if !inner.flushes(point)? {
            return Ok(());
        }
        let mut flushed = Vec::new();
        if let Some(Node::Dir { live, durable, ops }) = inner.nodes.get_mut(&node) {
            durable.clone_from(live);
            flushed.extend(ops.drain(..).map(|op| op.number));
        }
        // The other half of a rename between directories goes with it.
        for other in inner.nodes.values_mut() {
            if let Node::Dir { durable, ops, .. } = other {
                ops.retain(|op| {
                    let goes = flushed.contains(&op.number);
                    if goes {
                        apply_dir(durable, &op.changes);
                    }
                    !goes
                });
            }
        }
        Ok(())
    }

    fn try_presence(&self, path: &Path, how: How) -> io::Result<Option<Box<dyn Lock>>> {
        self.try_lock(path, how == How::Exclusive)
    }

    fn try_lock(&self, path: &Path, exclusive: bool) -> io::Result<Option<Box<dyn Lock>>> {
        let mut inner = self.lock();
        inner.find(path).ok_or_else(|| missing(path))?;
        match inner.locks.get_mut(path) {
            Some((_, true)) => return Ok(None),
            Some((_, false)) if exclusive => return Ok(None),
            Some((holders, false)) => *holders += 1,
            None => {
                inner.locks.insert(path.to_path_buf(), (1, exclusive));
            }
        }
        drop(inner);
        Ok(Some(Box::new(FakeLock { disk: self.clone(), path: path.to_path_buf() })))
    }

    fn ctl(&self, path: &Path, create: bool) -> io::Result<Box<dyn CtlMap>> {
        let mut inner = self.lock();
        let node = match inner.find(path) {
            Some(node) => node,
            None if create => inner.add(path, Node::Ctl(CtlMemory::zeroed()))?,
            None => return Err(missing(path)),
        };
        match inner.nodes.get(&node) {
            Some(Node::Ctl(memory)) => Ok(Box::new(FakeCtl(memory.clone()))),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "not a ctl")),
        }
    }

    fn devices(&self, _run_dir: &Path, _targets: usize, _create: bool) -> io::Result<Option<Box<dyn DevicesMap>>> {
        Ok(None)
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

    fn own_link(&self, _link: &Path, _text: &Path, _uid: u32, _gid: u32) -> io::Result<()> {
        Ok(())
    }

    fn acl(&self, _path: &Path) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn lock_holders(&self, _path: &Path) -> io::Result<Vec<u32>> {
        Ok(Vec::new())
    }

    fn pause(&self, _ms: u64) {}

    fn grace(&self, _run_dir: &Path, _patience_ns: u64) -> io::Result<bool> {
        Ok(true)
    }

    fn run_fd(&self, _run_dir: &Path) -> io::Result<Option<OwnedFd>> {
        Ok(None)
    }

    fn lock_dir(&self, _dir: &Path) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(Unlocked))
    }

    fn is_pinned(&self, _ctl: &Path) -> io::Result<bool> {
        Ok(false)
    }

    fn boot_id(&self) -> io::Result<String> {
        Ok(format!("00000000-0000-4000-8000-{:012x}", self.lock().boot))
    }

    fn machine_id(&self) -> io::Result<String> {
        Ok("fake".to_string())
    }

    fn free_bytes(&self, _dir: &Path) -> io::Result<u64> {
        Ok(self.lock().free_bytes)
    }

    fn now_s(&self) -> i64 {
        0
    }
}
