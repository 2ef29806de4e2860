//! Owner, mode, extended attributes and times of real files, always of an inode that was looked at: through `/proc/self/fd`, for a descriptor that
//! only names an inode takes no such call itself. And who locks a file.

use std::ffi::CString;
use std::io;

use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::{
    AtFlags, CWD, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags, chmod, chownat, fstat, getxattr, listxattr, removexattr, setxattr,
    utimensat,
};
use rustix::io::Errno;

use crate::admin::medium::Attributes;
use crate::rights::Part;

/// The kernel's name of a POSIX access ACL.
pub(super) const ACL: &str = "system.posix_acl_access";
/// Longest extended attribute, and longest list of their names, that the kernel gives.
const XATTR_BYTES_MAX: usize = 65_536;

fn name_of(fd: BorrowedFd<'_>) -> io::Result<CString> {
    Ok(CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd()))?)
}

/// An extended attribute; empty when there is none or the file system knows none.
pub(super) fn get(fd: BorrowedFd<'_>, name: &str) -> io::Result<Vec<u8>> {
    let mut value = vec![0u8; XATTR_BYTES_MAX];
    match getxattr(&*name_of(fd)?, name, &mut value) {
        Ok(len) => {
            value.truncate(len);
            Ok(value)
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(Vec::new()),
        Err(e) => Err(e.into()),
    }
}

/// All of a file.
pub(super) fn of(fd: BorrowedFd<'_>) -> io::Result<Attributes> {
    let stat = fstat(fd)?;
    let mut names = vec![0u8; XATTR_BYTES_MAX];
    let len = match listxattr(&*name_of(fd)?, &mut names) {
        Err(Errno::OPNOTSUPP) => 0,
        len => len?,
    };
    let names = names.get(..len).unwrap_or(&[]).split(|c| *c == 0).filter(|n| !n.is_empty()).map(|n| String::from_utf8_lossy(n).into_owned());
    let xattrs = names.map(|name| get(fd, &name).map(|value| (name, value))).collect::<io::Result<_>>()?;
    Ok(Attributes {
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        acl: get(fd, ACL)?,
        xattrs,
        accessed: (stat.st_atime, stat.st_atime_nsec as i64),
        modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
    })
}

/// Gives a file, or a link, an owner.
pub(super) fn give_owner(fd: BorrowedFd<'_>, now: &Stat, uid: u32, gid: u32) -> io::Result<()> {
    if (now.st_uid, now.st_gid) != (uid, gid) {
        chownat(fd, c"", Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)), AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

/// Gives a file owner, mode and ACL, or what a part of a file with these has.
pub(super) fn give_rights(fd: BorrowedFd<'_>, like: &Attributes, part: Option<Part>) -> io::Result<()> {
    give_owner(fd, &fstat(fd)?, like.uid, like.gid)?;
    let mut acl = like.acl.clone();
    let has_acl = part.map_or(!acl.is_empty(), |part| part.adapt_acl(like.mode, &mut acl));
    let name = name_of(fd)?;
    if has_acl {
        setxattr(&*name, ACL, &acl, XattrFlags::empty())?;
    } else if !get(fd, ACL)?.is_empty() {
        // One that the directory gave by default is not the file's.
        removexattr(&*name, ACL)?;
    }
    // After the ACL, whose mask would change the mode.
    give_mode(fd, part.map_or(like.mode, |part| part.mode(like.mode)))
}

/// Gives a file or directory a mode.
pub(super) fn give_mode(fd: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    Ok(chmod(&*name_of(fd)?, Mode::from_raw_mode(mode))?)
}

/// Gives a file all attributes of another.
pub(super) fn give_all(fd: BorrowedFd<'_>, like: &Attributes) -> io::Result<()> {
    give_owner(fd, &fstat(fd)?, like.uid, like.gid)?;
    let name = name_of(fd)?;
    for (key, value) in &like.xattrs {
        match setxattr(&*name, &**key, value, XattrFlags::empty()) {
            // What belongs to the system's own labels is given by the system; a user's attribute or an ACL must not get lost.
            Err(_) if key.starts_with("security.") || key.starts_with("trusted.") => {}
            result => result?,
        }
    }
    // After the ACL, whose mask would change the mode.
    give_mode(fd, like.mode)?;
    let time = |(s, ns): (i64, i64)| Timespec { tv_sec: s, tv_nsec: ns as _ };
    let times = Timestamps { last_access: time(like.accessed), last_modification: time(like.modified) };
    Ok(utimensat(CWD, &*name, &times, AtFlags::empty())?)
}

/// As [`crate::admin::medium::Medium::lock_holders`]: from what the system tells of each process's descriptors, for /proc/locks names no process for a lock of
/// an open file description.
pub(super) fn lock_holders(file: impl AsFd) -> io::Result<Vec<u32>> {
    let stat = fstat(file)?;
    let place = format!(" {:02x}:{:02x}:{} ", rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev), stat.st_ino);
    let has_lock = |fds: std::fs::ReadDir| {
        let told = fds.flatten().filter_map(|fd| std::fs::read_to_string(fd.path()).ok());
        told.into_iter().any(|text| text.lines().any(|line| line.starts_with("lock:") && line.contains(&place)))
    };
    let mut pids: Vec<u32> = std::fs::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| std::fs::read_dir(format!("/proc/{pid}/fdinfo")).is_ok_and(has_lock))
        .collect();
    pids.sort_unstable();
    Ok(pids)
}
