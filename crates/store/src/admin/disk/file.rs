//! Open files of the real file system.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, FileType, SeekFrom};

use super::attributes;
use crate::admin::medium::{Attributes, FsyncPoint, Handle, Kind, Stat};
use crate::rights::Part;

pub struct RealFile(pub File);

impl RealFile {
    pub fn new(fd: OwnedFd) -> Self {
        Self(File::from(fd))
    }
}

impl Handle for RealFile {
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|r| !r.is_empty()) {
            match self.0.read_at(rest, at + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()> {
        self.0.write_all_at(buf, at)
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        Ok(rustix::fs::fallocate(self.0.as_fd(), FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, len)?)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn set_len_quietly(&self, len: u64) -> io::Result<()> {
        let before = self.0.metadata()?;
        self.0.set_len(len)?;
        match self.0.set_times(fs::FileTimes::new().set_accessed(before.accessed()?).set_modified(before.modified()?)) {
            // Only the owner may; whoever else may write the file moves its times.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            set => set,
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn next_data(&self, at: u64) -> io::Result<Option<(u64, u64)>> {
        match rustix::fs::seek(self.0.as_fd(), SeekFrom::Data(at)) {
            Ok(start) => match rustix::fs::seek(self.0.as_fd(), SeekFrom::Hole(start)) {
                Ok(stop) => Ok(Some((start, stop))),
                // Cut in between: there is nothing behind the new end.
                Err(rustix::io::Errno::NXIO) => Ok(None),
                Err(e) => Err(e.into()),
            },
            Err(rustix::io::Errno::NXIO) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    fn sync(&self, _point: FsyncPoint) -> io::Result<()> {
        self.0.sync_all()
    }

    fn give_all(&self, like: &Attributes) -> io::Result<()> {
        attributes::give_all(self.0.as_fd(), like)
    }

    fn give_rights(&self, like: &Attributes, part: Option<Part>) -> io::Result<()> {
        attributes::give_rights(self.0.as_fd(), like, part)
    }
}

/// fdatasync of a range: msync of a map is the call that takes one. fsync would also wait for what programs write to other regions of the object.
pub(super) fn sync_range(file: &File, (from, to): (u64, u64)) -> io::Result<()> {
    use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
    let to = to.min(file.metadata()?.len());
    // One that ends before the range may have been cut there just now: that must last, too.
    let Some(len) = to.checked_sub(from).and_then(|len| usize::try_from(len).ok()).filter(|len| *len > 0) else { return file.sync_data() };
    // SAFETY: a fresh mapping of a range that begins on a page (regions do), which nobody touches, unmapped below.
    let mapped = unsafe { mmap(core::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), from) };
    let Ok(base) = mapped else { return file.sync_all() };
    // SAFETY: the mapping above.
    let flushed = unsafe { msync(base, len, MsyncFlags::SYNC) };
    // SAFETY: as above.
    let _ = unsafe { munmap(base, len) };
    Ok(flushed?)
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
