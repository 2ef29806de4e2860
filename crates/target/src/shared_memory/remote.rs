//! A server of a test's own: the program of tests anew, as a process that has the objects.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::link::Link;
use super::segment::{SEGMENT_BYTES, Segment};
use super::served::Served;
use crate::interface::{Facts, Object, Opening, Ready, Target};
use crate::names::ObjectName;
use crate::op::Op;
use crate::within::Refusal;

/// A file, mapped.
pub(super) struct Mapped {
    base: *mut u8,
    file: File,
}

// SAFETY: what lies in the map are atomics, and windows that are their slots' owners'.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    pub(super) fn new(file: File) -> Self {
        // SAFETY: a fresh mapping of a file of this length, unmapped when dropped.
        let base = unsafe { mmap(core::ptr::null_mut(), SEGMENT_BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0) };
        Self { base: base.unwrap().cast(), file }
    }

    fn file(&self) -> BorrowedFd<'static> {
        // SAFETY: open for as long as this is, which whoever uses the link keeps.
        unsafe { BorrowedFd::borrow_raw(self.file.as_raw_fd()) }
    }

    fn link(&self) -> Link {
        // SAFETY: mapped, and kept by whoever uses the link.
        unsafe { Link::new(self.base, self.file()) }
    }

    pub(super) fn segment(&self) -> Segment {
        // SAFETY: as above.
        unsafe { Segment::new(self.base, self.file()) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; nobody refers to it any more.
        let _ = unsafe { munmap(self.base.cast(), SEGMENT_BYTES) };
    }
}

/// A target that another process serves.
pub struct Remote {
    mapped: Arc<Mapped>,
    server: Mutex<Child>,
}

/// An object that it has.
pub struct RemoteObject {
    inner: Served,
    _mapped: Arc<Mapped>,
}

impl Remote {
    /// Starts a server of its own: this program of tests anew, of which the test `server` calls [`super::serve`].
    #[must_use]
    pub fn start(server: &str) -> Self {
        let file = File::from(memfd_create(c"objects", MemfdFlags::CLOEXEC).unwrap());
        ftruncate(&file, SEGMENT_BYTES as u64).unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let server = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", server, "--test-threads", "1"])
            .env("STRIPEWISE_TEST_SEGMENT", path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { mapped: Arc::new(Mapped::new(file)), server: Mutex::new(server) }
    }

    /// Requests that were served before an earlier one.
    #[must_use]
    pub fn overtakings(&self) -> u32 {
        self.mapped.segment().header().overtakings.load(Ordering::SeqCst)
    }

    fn keeping(&self, inner: Served) -> RemoteObject {
        RemoteObject { inner, _mapped: Arc::clone(&self.mapped) }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let mut server = self.server.lock().unwrap();
        let _ = server.kill();
        let _ = server.wait();
    }
}

impl Target for Remote {
    type Object = RemoteObject;

    fn create(&self, name: ObjectName, mode: u32, ready: Option<Ready<'_>>) -> Result<RemoteObject, Errno> {
        self.mapped.link().create(name, mode, ready).map(|inner| self.keeping(inner))
    }

    fn open(&self, name: ObjectName, opening: Opening<'_>) -> Result<RemoteObject, Refusal> {
        self.mapped.link().open(name, opening).map(|inner| self.keeping(inner))
    }

    fn remove(&self, name: ObjectName, owners: &[u32]) -> Result<(), Refusal> {
        self.mapped.link().remove(name, owners)
    }

    fn look(&self, name: ObjectName) -> Result<Option<Facts>, Errno> {
        self.mapped.link().look(name)
    }

    fn list(&self, each: &mut dyn FnMut(ObjectName) -> Result<(), Errno>) -> Result<(), Errno> {
        self.mapped.link().list(each)
    }

    fn used_bytes(&self) -> Result<u64, Errno> {
        self.mapped.link().used_bytes()
    }

    fn free_bytes(&self) -> Result<u64, Errno> {
        self.mapped.link().free_bytes()
    }

    fn sync(&self) -> Result<(), Errno> {
        self.mapped.link().sync()
    }

    fn identity(&self, owners: &[u32], into: &mut [u8]) -> Result<usize, Refusal> {
        self.mapped.link().identity(owners, into)
    }

    fn identify(&self, text: &[u8]) -> Result<(), Errno> {
        self.mapped.link().identify(text)
    }
}

impl Object for RemoteObject {
    fn start(&self, op: &mut Op<'_>, is_one_of_many: bool) {
        self.inner.start(op, is_one_of_many);
    }

    fn finish(&self, op: &mut Op<'_>) {
        self.inner.finish(op);
    }

    fn punch(&self, at: u64, len: u64) -> Result<(), Errno> {
        self.inner.punch(at, len)
    }

    fn set_len(&self, len: u64) -> Result<(), Errno> {
        self.inner.set_len(len)
    }

    fn len(&self) -> Result<u64, Errno> {
        self.inner.len()
    }

    fn next_data(&self, at: u64) -> Result<Option<(u64, u64)>, Errno> {
        self.inner.next_data(at)
    }

    fn sync(&self) -> Result<(), Errno> {
        self.inner.sync()
    }
}
