//! A plain file that nobody else has open, by a write lease: the kernel refuses the lease while another descriptor is open, and keeps
//! whoever opens the file later waiting (for /proc/sys/fs/lease-break-time at most) until we close it or have seen that it is wanted. A read lease does the
//! same with those who may write the file.

use std::io;
use std::os::fd::AsRawFd;

use rustix::fs::{OFlags, fstat};
use rustix::io::Errno;
use stripewise_target::within::{Refusal, open_file};

use super::attributes;
use super::file::{RealFile, stat_of};
use super::roots::Spot;
use crate::admin::medium::{Attributes, FsyncPoint, Handle, Leased, Others, Stat};
use crate::admin::refused::refused;
use crate::rights::Part;

const F_SETSIG: libc::c_int = 10;

struct Alone {
    file: RealFile,
    /// The kernel's word for the lease that was taken.
    lease: Option<libc::c_int>,
}

/// As [`crate::admin::medium::Medium::open_leased`].
pub(super) fn open(spot: &Spot, path: &std::path::Path, others: Others, lease: bool) -> io::Result<Option<Box<dyn Leased>>> {
    let open = |flags| open_file(spot.dir(), &spot.name, flags, spot.allowed.expected());
    let (flags, kind) = match others {
        Others::None => (OFlags::RDWR, libc::F_WRLCK as libc::c_int),
        // Our own descriptor for writing would be in the way, too.
        Others::Readers => (OFlags::RDONLY, libc::F_RDLCK as libc::c_int),
    };
    let opened = match open(flags) {
        Err(Refusal::Os(Errno::ACCESS)) => open(OFlags::RDONLY),
        // Another lease, or a program that is running from the file.
        Err(Refusal::Os(Errno::WOULDBLOCK | Errno::TXTBSY)) => return Ok(None),
        opened => opened,
    };
    let file = RealFile::new(opened.map_err(|why| refused(path, why))?.0);
    if lease {
        // The signal of a break must not end this process: SIGURG is ignored unless somebody asks for it.
        // SAFETY: plain calls on a descriptor that is open.
        unsafe { libc::fcntl(file.fd().as_raw_fd(), F_SETSIG, libc::SIGURG) };
        // SAFETY: as above.
        if unsafe { libc::fcntl(file.fd().as_raw_fd(), libc::F_SETLEASE, kind) } != 0 {
            let e = io::Error::last_os_error();
            return match e.raw_os_error() {
                Some(libc::EAGAIN) => Ok(None),
                Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS) => Err(io::ErrorKind::Unsupported.into()),
                // Leases are for the owner and root; beside readers, others may be content without.
                Some(libc::EACCES) if others == Others::Readers => Err(io::ErrorKind::Unsupported.into()),
                _ => Err(e),
            };
        }
    }
    Ok(Some(Box::new(Alone { file, lease: lease.then_some(kind) })))
}

impl Leased for Alone {
    fn stat(&self) -> io::Result<Stat> {
        Ok(stat_of(&fstat(self.file.fd())?))
    }

    fn attributes(&self) -> io::Result<Attributes> {
        attributes::of(self.file.fd())
    }

    fn is_wanted(&self) -> io::Result<bool> {
        let Some(taken) = self.lease else { return Ok(false) };
        // While a break is pending the kernel names the lease that would be left.
        // SAFETY: a plain call on a descriptor that is open.
        let lease = unsafe { libc::fcntl(self.file.fd().as_raw_fd(), libc::F_GETLEASE) };
        if lease < 0 { Err(io::Error::last_os_error()) } else { Ok(lease != taken) }
    }
}

impl Handle for Alone {
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        self.file.read_at(buf, at)
    }

    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()> {
        self.file.write_at(buf, at)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn next_data(&self, at: u64) -> io::Result<Option<(u64, u64)>> {
        self.file.next_data(at)
    }

    fn sync(&self, point: FsyncPoint) -> io::Result<()> {
        self.file.sync(point)
    }

    fn give_all(&self, like: &Attributes) -> io::Result<()> {
        self.file.give_all(like)
    }

    fn give_rights(&self, like: &Attributes, part: Option<Part>) -> io::Result<()> {
        self.file.give_rights(like, part)
    }
}
