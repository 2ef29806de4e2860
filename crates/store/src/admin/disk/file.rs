//! Open files of the real file system.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Timestamps, fstat, futimens};
use rustix::io::Errno;
use rustix::time::Timespec;
use stripewise_target::batch;
use stripewise_target::file::FileObject;
use stripewise_target::interface::Object;

use super::attributes;
use crate::admin::medium::{Attributes, FsyncPoint, Handle, Kind, Stat};
use crate::rights::Part;

pub struct RealFile(FileObject);

impl RealFile {
    pub fn new(fd: OwnedFd) -> Self {
        Self(FileObject::new(fd))
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }
}

impl Handle for RealFile {
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        Ok(batch::read_at(&self.0, buf, at)?)
    }

    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()> {
        Ok(batch::write_at(&self.0, buf, at)?)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Ok(self.0.set_len(len)?)
    }

    fn set_len_quietly(&self, len: u64) -> io::Result<()> {
        let before = fstat(self.fd())?;
        self.0.set_len(len)?;
        let last_access = Timespec { tv_sec: before.st_atime, tv_nsec: before.st_atime_nsec as _ };
        let last_modification = Timespec { tv_sec: before.st_mtime, tv_nsec: before.st_mtime_nsec as _ };
        match futimens(self.fd(), &Timestamps { last_access, last_modification }) {
            // Only the owner may; whoever else may write the file moves its times.
            Err(Errno::PERM | Errno::ACCESS) => Ok(()),
            set => Ok(set?),
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len()?)
    }

    fn next_data(&self, at: u64) -> io::Result<Option<(u64, u64)>> {
        Ok(self.0.next_data(at)?)
    }

    fn sync(&self, _point: FsyncPoint) -> io::Result<()> {
        Ok(self.0.sync()?)
    }

    fn give_all(&self, like: &Attributes) -> io::Result<()> {
        attributes::give_all(self.fd(), like)
    }

    fn give_rights(&self, like: &Attributes, part: Option<Part>) -> io::Result<()> {
        attributes::give_rights(self.fd(), like, part)
    }
}

/// What the system says of a file, in the medium's words.
pub(super) fn stat_of(st: &rustix::fs::Stat) -> Stat {
    let kind = match FileType::from_raw_mode(st.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Dir,
        FileType::Symlink => Kind::Link,
        _ => Kind::Other,
    };
    let ns = |s: i64, ns: i64| s.saturating_mul(1_000_000_000).saturating_add(ns);
    Stat {
        kind,
        size: st.st_size as u64,
        allocated_bytes: st.st_blocks as u64 * 512,
        dev: st.st_dev,
        ino: st.st_ino,
        mtime_s: st.st_mtime,
        mtime_ns: ns(st.st_mtime, st.st_mtime_nsec as i64),
        ctime_ns: ns(st.st_ctime, st.st_ctime_nsec as i64),
        links: st.st_nlink,
        mode: st.st_mode & 0o7777,
        uid: st.st_uid,
        gid: st.st_gid,
    }
}
