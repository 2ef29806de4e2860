//! Open files and mapped control words of the fake disk.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use stripewise_target::batch;
use stripewise_target::fake::{FakeObject, Memory};
use stripewise_target::interface::Object;

use super::FakeDisk;
use crate::admin::medium::{Attributes, CtlMap, FsyncPoint, Handle, Kind, Leased, Lock, Stat};
use crate::ctl::Ctl;
use crate::rights::Part;

pub(super) struct FakeCtl(pub(super) Arc<Memory>);
impl CtlMap for FakeCtl {
    fn ctl(&self) -> Ctl {
        // SAFETY: as many bytes as a ctl file has, 8-byte aligned, that live as long as this map.
        unsafe { Ctl::from_mapping(self.0.base()) }
    }

    fn reserve(&self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) struct FakeFile {
    pub(super) disk: FakeDisk,
    pub(super) file: FakeObject,
}

impl Handle for FakeFile {
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        Ok(batch::read_at(&self.file, buf, at)?)
    }

    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()> {
        Ok(batch::write_at(&self.file, buf, at)?)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Ok(self.file.set_len(len)?)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.len()?)
    }

    fn next_data(&self, at: u64) -> io::Result<Option<(u64, u64)>> {
        Ok(self.file.next_data(at)?)
    }

    fn give_all(&self, _like: &Attributes) -> io::Result<()> {
        Ok(())
    }

    fn give_rights(&self, _like: &Attributes, _part: Option<Part>) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self, point: FsyncPoint) -> io::Result<()> {
        if self.disk.is_flushed(point)? { Ok(self.file.sync()?) } else { Ok(()) }
    }
}

impl Leased for FakeFile {
    fn stat(&self) -> io::Result<Stat> {
        let size = self.len()?;
        let (dev, ino) = (1, self.file.inode());
        let links = self.disk.disk.names_of(ino);
        Ok(Stat {
            kind: Kind::File,
            size,
            allocated_bytes: size,
            dev,
            ino,
            mtime_s: 0,
            mtime_ns: 0,
            ctime_ns: 0,
            links,
            mode: super::MODE,
            uid: 0,
            gid: 0,
        })
    }

    fn attributes(&self) -> io::Result<Attributes> {
        Ok(Attributes::default())
    }

    fn is_wanted(&self) -> io::Result<bool> {
        Ok(self.disk.is_wanted())
    }
}

/// A lock that nobody else asks for: there are no programs on this disk.
pub(super) struct Unlocked;
impl Lock for Unlocked {}

pub(super) struct FakeLock {
    pub(super) disk: FakeDisk,
    pub(super) path: PathBuf,
}
impl Lock for FakeLock {}
impl Drop for FakeLock {
    fn drop(&mut self) {
        let mut more = self.disk.more();
        if let Some((holders, _)) = more.locks.get_mut(&self.path) {
            *holders = holders.saturating_sub(1);
            if *holders == 0 {
                more.locks.remove(&self.path);
            }
        }
    }
}
