//! Open files and mapped control words of the fake disk.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::content::{Content, DataOp, PAGE, apply_content};
use super::{FakeDisk, Node};
use crate::admin::medium::{Attributes, CtlMap, FsyncPoint, Handle, Kind, Leased, Lock, Stat};
use crate::ctl::{CTL_BYTES, Ctl};
use crate::rights::Part;

/// Memory of a mapped ctl file; lives as long as a map of it.
pub(super) struct CtlMemory(*mut u8);
// SAFETY: reached through atomics only.
unsafe impl Send for CtlMemory {}
// SAFETY: as above.
unsafe impl Sync for CtlMemory {}

const CTL_WORDS: usize = CTL_BYTES / 8;

impl CtlMemory {
    pub(super) fn zeroed() -> Arc<Self> {
        let words: Box<[u64; CTL_WORDS]> = Box::new([0; CTL_WORDS]);
        Arc::new(Self(Box::into_raw(words).cast()))
    }
}

impl Drop for CtlMemory {
    fn drop(&mut self) {
        // SAFETY: made by Box::into_raw of this very type in `zeroed`; dropped once, after the last map.
        drop(unsafe { Box::from_raw(self.0.cast::<[u64; CTL_WORDS]>()) });
    }
}

pub(super) struct FakeCtl(pub(super) Arc<CtlMemory>);
impl CtlMap for FakeCtl {
    fn ctl(&self) -> Ctl {
        // SAFETY: CTL_BYTES of memory, 8-byte aligned, that live as long as this map.
        unsafe { Ctl::from_mapping(self.0.0) }
    }

    fn reserve(&self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) struct FakeFile {
    pub(super) disk: FakeDisk,
    pub(super) node: u64,
}

impl FakeFile {
    fn change(&self, op: DataOp) -> io::Result<()> {
        let mut inner = self.disk.lock();
        inner.step()?;
        match inner.nodes.get_mut(&self.node) {
            Some(Node::File { live, ops, .. }) => {
                apply_content(live, &op);
                ops.push(op);
                Ok(())
            }
            _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
    }

    fn with<T>(&self, f: impl FnOnce(&Content) -> T) -> io::Result<T> {
        match self.disk.lock().nodes.get(&self.node) {
            Some(Node::File { live, .. }) => Ok(f(live)),
            _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
    }
}

impl Handle for FakeFile {
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        self.with(|content| {
            let want = (buf.len() as u64).min(content.len.saturating_sub(at)) as usize;
            let mut done = 0;
            while let Some(rest) = buf.get_mut(done..want).filter(|r| !r.is_empty()) {
                let here = at + done as u64;
                let within = (here % PAGE) as usize;
                let len = rest.len().min(PAGE as usize - within);
                if let Some(to) = rest.get_mut(..len) {
                    match content.pages.get(&(here / PAGE)).and_then(|p| p.get(within..within + len)) {
                        Some(from) => to.copy_from_slice(from),
                        None => to.fill(0),
                    }
                }
                done += len;
            }
            want
        })
    }

    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()> {
        self.change(DataOp::Write(at, buf.to_vec()))
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        self.change(DataOp::Punch(at, len))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(DataOp::Truncate(len))
    }

    fn len(&self) -> io::Result<u64> {
        self.with(|content| content.len)
    }

    fn next_data(&self, at: u64) -> io::Result<Option<(u64, u64)>> {
        self.with(|content| {
            let first = *content.pages.range(at / PAGE..).next()?.0;
            let mut end = first;
            while content.pages.contains_key(&end) {
                end += 1;
            }
            let start = (first * PAGE).max(at);
            (start < content.len).then(|| (start, (end * PAGE).min(content.len)))
        })
    }

    fn give_all(&self, _like: &Attributes) -> io::Result<()> {
        Ok(())
    }

    fn give_rights(&self, _like: &Attributes, _part: Option<Part>) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self, point: FsyncPoint) -> io::Result<()> {
        let mut inner = self.disk.lock();
        if inner.flushes(point)?
            && let Some(Node::File { live, durable, ops }) = inner.nodes.get_mut(&self.node)
        {
            durable.clone_from(live);
            ops.clear();
        }
        Ok(())
    }
}

impl Leased for FakeFile {
    fn stat(&self) -> io::Result<Stat> {
        let size = self.len()?;
        let links = self.disk.lock().names_of(self.node);
        let (dev, ino) = (1, self.node);
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
        Ok(self.disk.lock().is_wanted())
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
        let mut inner = self.disk.lock();
        if let Some((holders, _)) = inner.locks.get_mut(&self.path) {
            *holders = holders.saturating_sub(1);
            if *holders == 0 {
                inner.locks.remove(&self.path);
            }
        }
    }
}

impl Default for FakeDisk {
    fn default() -> Self {
        Self::new()
    }
}
