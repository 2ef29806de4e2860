//! The record of where the link lies that is a file's name: made with the file and with every rename, and what tells the file's own link from a copy.

use super::Managed;
use crate::base::sys::{self, Errno, Sys};
use crate::file;
use crate::store::part::{self, At};
use core::ffi::CStr;
use stripewise_target::text::{FixedPath, FixedText, PATH_MAX, PartName};

/// What a file's record of its name says of the link that lies at `path`: "dev ino path", path absolute; and what lies there.
///
/// # Errors
/// `ENOENT` where others have moved or replaced the link since: whose link lies there now is not this file's.
fn record_of(at: &At, path: &FixedPath) -> Sys<(FixedText<{ PATH_MAX + 64 }>, Managed)> {
    let c_path = path.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?;
    let st = sys::stat(c_path, libc::AT_SYMLINK_NOFOLLOW)?;
    let link = Managed::behind_link(at.store, at.id, &st);
    if !link.is_still_at(libc::AT_FDCWD, c_path) {
        return Err(Errno(libc::ENOENT));
    }
    let mut text = FixedText::new();
    text.push_decimal(st.st_dev).push(b" ").push_decimal(st.st_ino).push(b" ").push(path.as_bytes()).push(b"\n");
    Ok((text, link))
}

/// Makes the record under a name that is free. Whoever may reach the file must be able to tell its link from a copy, whatever the creator's umask.
fn write_record(at: &At, part: &CStr, text: &[u8]) -> Sys<()> {
    let fd = at.create_part(part, libc::O_WRONLY, 0o644)?;
    let wrote = sys::write(fd, text);
    sys::close(fd);
    wrote.and_then(|wrote| if wrote == text.len() { Ok(()) } else { Err(Errno(libc::ENOSPC)) }).inspect_err(|_| {
        let _ = sys::unlinkat(at.dir, part, 0);
    })
}

/// Records where the name of a file lies, which has come there by a rename.
///
/// # Errors
/// As [`record_of`].
#[inline(never)] // Threads may have small stacks: what one step needs must not lie below the next.
pub fn record_link(at: &At, path: &FixedPath) -> Sys<()> {
    let (text, _) = record_of(at, path)?;
    let mut temporary = PartName::from_bytes(b"link.");
    temporary.push_id(sys::random_u64());
    let temporary = part::c(&temporary)?;
    write_record(at, temporary, text.as_bytes())?;
    let placed = sys::renameat(at.dir, temporary, at.dir, c"link").inspect_err(|_| {
        let _ = sys::unlinkat(at.dir, temporary, 0);
    });
    placed.map(|_| ())
}

/// The same of a file that this process is making, under the record's own name at once: as long as it is empty nothing is recorded, and where another
/// process has renamed the file meanwhile the record that it has made is the newer one, and stays. Returns the link.
///
/// # Errors
/// As [`record_of`].
#[inline(never)] // As above.
pub fn record_first_link(at: &At, path: &FixedPath) -> Sys<Managed> {
    let (text, link) = record_of(at, path)?;
    match write_record(at, c"link", text.as_bytes()) {
        Ok(()) | Err(Errno(libc::EEXIST)) => Ok(link),
        Err(errno) => Err(errno),
    }
}

impl Managed {
    /// Whether the link is a copy (made by `cp -a`, `tar`, `rsync` without the library, or by somebody who wishes the file to go): a name, but not the file.
    /// The file's own link belongs to its owner, and has the inode that was recorded for it; device numbers change from boot to boot, so where that
    /// differs the link that lies at the recorded name, if one does, is the file's.
    pub fn is_copy(&self) -> Sys<bool> {
        if self.link == 0 {
            return Ok(false);
        }
        if self.is_known() {
            return Ok(false);
        }
        let own = self.is_own_link();
        if own == Ok(true) {
            file::with_known(self.store, self.id, |file| file.note_own_link(self.identity()));
        }
        match own {
            // What this process lacks says nothing about the link, and of a file that has just gone nobody can tell.
            Err(errno @ Errno(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOENT)) => Err(errno),
            own => Ok(own != Ok(true)),
        }
    }

    /// The link of a file that this process has just made, and recorded, is its own, where nobody else can have put it there.
    pub fn note_own(&self) {
        if self.owner == sys::geteuid() {
            file::with_known(self.store, self.id, |file| file.note_own_link(self.identity()));
        }
    }

    fn identity(&self) -> [u64; 4] {
        [self.device, self.link, self.changed_ns as u64, u64::from(self.owner)]
    }

    /// Whether the link was found to be the file's own since this process opened it, and has not changed.
    pub(super) fn is_known(&self) -> bool {
        file::with_known(self.store, self.id, |file| file.has_own_link(self.identity())) == Some(true)
    }

    fn is_own_link(&self) -> Sys<bool> {
        self.with_directory(|at| self.is_own_link_at(at))
    }

    #[inline(never)] // Its buffer would lie on the stack below what is done with the file.
    fn is_own_link_at(&self, at: &At) -> Sys<bool> {
        let head = at.head_stat()?.st_uid;
        if ![head, 0, self.store.owner()].contains(&self.owner) {
            return Ok(false);
        }
        let mut text = [0u8; PATH_MAX + 64];
        let text = match at.read_part_of(c"link", head, &mut text) {
            // A file that is just being made: its name is there before the record of it.
            Ok(&[]) | Err(Errno(libc::ENOENT)) => return Ok(true),
            text => text?,
        };
        let mut numbers = text.split(|c| *c == b' ').map(|word| core::str::from_utf8(word).ok().and_then(|word| word.parse::<u64>().ok()));
        let (device, inode) = (numbers.next().flatten(), numbers.next().flatten());
        if inode != Some(self.link) {
            return Ok(false);
        }
        Ok(device == Some(self.device) || self.recorded_link().is_none_or(|(_, there)| there == (self.device, self.link)))
    }

    /// The name that the link is recorded under, where a link of the file lies, and that link's device and inode.
    pub(super) fn recorded_link(&self) -> Option<(FixedPath, (u64, u64))> {
        let name = self.recorded_name()?;
        let st = sys::lstat_at(libc::AT_FDCWD, name.as_c_str()?).ok()?;
        Some((name, (st.st_dev, st.st_ino)))
    }

    /// Gives its link, where it still is where it was recorded, to a user.
    #[inline(never)] // Its buffers would lie on the stack below what is done after it.
    pub fn give_link(&self, uid: u32, gid: u32) {
        let Some(name) = self.recorded_name() else { return };
        let Some(path) = name.as_c_str() else { return };
        let Ok(fd) = sys::openat(libc::AT_FDCWD, path, libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC, 0) else { return };
        let mut text = [0u8; PATH_MAX];
        // The name may lead elsewhere by now: what is held is looked at, and nothing else is given away.
        if sys::readlinkat(fd, c"", &mut text).is_ok_and(|target| self.is_text_of_it(target)) {
            let _ = sys::chownat(fd, c"", uid, gid, libc::AT_EMPTY_PATH);
        }
        sys::close(fd);
    }

    /// The name that its link is recorded under, if the link still is there.
    pub fn recorded_name(&self) -> Option<FixedPath> {
        let name = self.with_directory(|at| Ok(at.recorded_name())).ok()??;
        let mut target = [0u8; PATH_MAX];
        let target = sys::readlinkat(libc::AT_FDCWD, name.as_c_str()?, &mut target).ok()?;
        self.is_text_of_it(target).then_some(name)
    }
}
