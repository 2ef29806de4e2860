//! Owner, mode, extended attributes and times of real files, and who locks one.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags, lgetxattr, llistxattr, lremovexattr, lsetxattr, utimensat};
use rustix::io::Errno;

use crate::rights::Part;

/// The kernel's name of a POSIX access ACL.
pub(super) const ACL: &str = "system.posix_acl_access";
/// Longest extended attribute, and longest list of their names, that the kernel gives.
const XATTR_BYTES_MAX: usize = 65_536;

/// An extended attribute; empty when there is none or the file system knows none.
pub(super) fn get(path: &Path, name: &str) -> io::Result<Vec<u8>> {
    let mut value = vec![0u8; XATTR_BYTES_MAX];
    match lgetxattr(path, name, &mut value) {
        Ok(len) => {
            value.truncate(len);
            Ok(value)
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(Vec::new()),
        Err(e) => Err(e.into()),
    }
}

/// Gives `to` the owner, mode and ACL of `like`, or what a part of a file with these has.
pub(super) fn own(like: &Path, to: &Path, part: Option<Part>) -> io::Result<()> {
    let meta = fs::symlink_metadata(like)?;
    let now = fs::symlink_metadata(to)?;
    if (now.uid(), now.gid()) != (meta.uid(), meta.gid()) {
        std::os::unix::fs::lchown(to, Some(meta.uid()), Some(meta.gid()))?;
    }
    let mut acl = get(like, ACL)?;
    let has_acl = part.map_or(!acl.is_empty(), |part| part.adapt_acl(meta.mode(), &mut acl));
    if has_acl {
        lsetxattr(to, ACL, &acl, XattrFlags::empty())?;
    } else if !get(to, ACL)?.is_empty() {
        // One that the directory gave by default is not the file's.
        lremovexattr(to, ACL)?;
    }
    // After the ACL, whose mask would change the mode.
    fs::set_permissions(to, Permissions::from_mode(part.map_or(meta.mode() & 0o7777, |part| part.mode(meta.mode()))))
}

/// As [`super::medium::Medium::copy_attributes`].
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(from)?;
    let now = fs::symlink_metadata(to)?;
    if (now.uid(), now.gid()) != (meta.uid(), meta.gid()) {
        std::os::unix::fs::lchown(to, Some(meta.uid()), Some(meta.gid()))?;
    }
    if now.is_symlink() {
        return Ok(());
    }
    copy_xattrs(from, to)?;
    // After the ACL, whose mask would change the mode.
    fs::set_permissions(to, Permissions::from_mode(meta.mode() & 0o7777))?;
    let times = Timestamps {
        last_access: Timespec { tv_sec: meta.atime(), tv_nsec: meta.atime_nsec() as _ },
        last_modification: Timespec { tv_sec: meta.mtime(), tv_nsec: meta.mtime_nsec() as _ },
    };
    Ok(utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn copy_xattrs(from: &Path, to: &Path) -> io::Result<()> {
    let mut names = vec![0u8; XATTR_BYTES_MAX];
    let len = match llistxattr(from, &mut names) {
        Err(Errno::OPNOTSUPP) => return Ok(()),
        len => len?,
    };
    for name in names.get(..len).unwrap_or(&[]).split(|c| *c == 0).filter(|n| !n.is_empty()) {
        let text = String::from_utf8_lossy(name);
        let value = get(from, &text)?;
        match lsetxattr(to, &*text, &value, XattrFlags::empty()) {
            // What belongs to the system's own labels is given by the system; a user's attribute or an ACL must not get lost.
            Err(_) if text.starts_with("security.") || text.starts_with("trusted.") => {}
            result => result?,
        }
    }
    Ok(())
}

/// As [`super::medium::Medium::lock_holders`]: from /proc/locks.
pub(super) fn lock_holders(path: &Path) -> io::Result<Vec<u32>> {
    let meta = fs::symlink_metadata(path)?;
    let device = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let place = format!("{:02x}:{:02x}:{}", device.0, device.1, meta.ino());
    let locks = String::from_utf8_lossy(&fs::read("/proc/locks")?).into_owned();
    let mut pids: Vec<u32> = locks
        .lines()
        .filter(|line| line.split_whitespace().any(|word| word == place) && !line.contains("->"))
        .filter_map(|line| line.split_whitespace().find_map(|word| word.parse().ok()))
        .collect();
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}
