//! A server of a test's own: the program of tests anew, as a process that has the objects.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};

use super::link::Link;
use super::segment::SEGMENT_BYTES;
use super::served::Served;
use crate::erased::forwarded;
use crate::interface::{Facts, Opening, Ready, Target};
use crate::names::ObjectName;
use crate::within::Refusal;

/// Maps a segment for as long as the program lives: objects may outlast their target.
pub(super) fn link_to(file: File) -> Link {
    // SAFETY: a fresh mapping of a file of this length.
    let base = unsafe { mmap(core::ptr::null_mut(), SEGMENT_BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0) };
    // SAFETY: it and the descriptor stay.
    unsafe { Link::new(base.unwrap().cast(), BorrowedFd::borrow_raw(file.into_raw_fd())) }
}

/// A target that another process serves.
pub struct Remote {
    link: Link,
    server: Mutex<Child>,
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
        Self { link: link_to(file), server: Mutex::new(server) }
    }

    /// Requests that were served before an earlier one.
    #[must_use]
    pub fn overtakings(&self) -> u32 {
        self.link.segment().header().overtakings.load(Ordering::SeqCst)
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
    type Object = Served;

    forwarded!(self => self.link, |object| object);
}
