//! Owners and rights of what a path names, once it has been looked at.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FileType, OFlags};
use stripewise_target::within::{Expected, Refusal, open_file};

use super::{RealDisk, attributes};
use crate::admin::medium::{Attributes, Rights};
use crate::admin::refused::refused;
use crate::ctl::{CTL_BYTES, CTL_MAGIC};
use crate::rights::Part;

fn is_link(stat: &rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}

impl Rights for RealDisk {
    fn set_dir_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        attributes::give_mode(self.roots.dir(path)?.as_fd(), mode)
    }

    fn change_mode(&self, path: &Path, take: u32, give: u32) -> io::Result<()> {
        let (fd, stat) = self.part(path)?;
        attributes::give_mode(fd.as_fd(), stat.st_mode & 0o7777 & !take | give)
    }

    fn attributes(&self, path: &Path) -> io::Result<Attributes> {
        attributes::of(self.part(path)?.0.as_fd())
    }

    fn follow_head(&self, head: &Path, to: &Path, part: Part) -> io::Result<()> {
        let like = self.attributes(head)?;
        let (fd, stat, _) = self.looked_at(to)?;
        Expected::of(&[]).check(&stat).map_err(|why| refused(to, why))?;
        // What is another's is nobody's to give away; what is ours only while it can hold nothing that head's owner may not see.
        let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
        if stat.st_uid != like.uid && !(is_ours && holds_nothing(&fd, &stat, part)?) {
            return Err(refused(to, Refusal::Owner));
        }
        attributes::give_rights(fd.as_fd(), &like, Some(part))
    }

    fn dir_follows_head(&self, dir: &Path) -> io::Result<()> {
        let (fd, stat, _) = self.looked_at(dir)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Err(refused(dir, Refusal::Kind));
        }
        let (head, _) = open_file(fd.as_fd(), c"head", OFlags::PATH, Expected::of(&[])).map_err(|why| refused(dir, why))?;
        let like = attributes::of(head.as_fd())?;
        attributes::give_rights(fd.as_fd(), &like, Some(Part::Dir))
    }

    fn dir_follows(&self, dir: &Path, like: &Path) -> io::Result<()> {
        let like = attributes::of(self.roots.dir(like)?.as_fd())?;
        attributes::give_rights(self.roots.dir(dir)?.as_fd(), &like, None)
    }

    fn own_link(&self, link: &Path, text: &Path, uid: u32, gid: u32) -> io::Result<()> {
        let (fd, stat, _) = self.looked_at(link)?;
        let is_ours = is_link(&stat) && stat.st_nlink == 1 && stat.st_uid == rustix::process::geteuid().as_raw();
        if !is_ours || rustix::fs::readlinkat(&fd, c"", Vec::new())?.to_bytes() != text.as_os_str().as_bytes() {
            return Err(io::Error::other("somebody put something else in the link's place"));
        }
        attributes::give_owner(fd.as_fd(), &stat, uid, gid)
    }

    fn acl(&self, path: &Path) -> io::Result<Vec<u8>> {
        attributes::get(self.looked_at(path)?.0.as_fd(), attributes::ACL)
    }
}

/// Whether a part that is to get another owner tells him nothing: an object without a block, or control words.
fn holds_nothing(fd: &OwnedFd, stat: &rustix::fs::Stat, part: Part) -> io::Result<bool> {
    match part {
        Part::Object => Ok(stat.st_blocks == 0),
        Part::Dir => Ok(false),
        Part::Ctl if stat.st_size > CTL_BYTES as i64 => Ok(false),
        Part::Ctl => {
            let mut magic = [0u8; CTL_MAGIC.len()];
            let file = std::fs::File::open(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
            let got = file.read_at(&mut magic, 0)?;
            Ok(magic == CTL_MAGIC || magic.get(..got).is_none_or(|bytes| bytes.iter().all(|byte| *byte == 0)))
        }
    }
}
