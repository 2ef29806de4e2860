//! A directory as a target: an object is a file in it, opened by its name relative to the directory, which is held open ([`crate::within`]). The one kind that
//! has both capabilities, descriptor and map.

use core::ffi::CStr;
use core::mem::MaybeUninit;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, Mode, OFlags, RawDir, RenameFlags};
use rustix::io::Errno;

use crate::devices::Line;
use crate::file::FileObject;
use crate::identity::IDENTITY_FILE;
use crate::interface::{Facts, Opening, Ready, Target};
use crate::names::{ObjectName, object_stem};
use crate::text::PartName;
use crate::within::{Expected, Refusal, TEXT_BYTES_MAX, create_file, open_file};

/// Bytes of directory entries that are read at once: on the stack of whoever lists.
const LIST_BYTES: usize = 4096;
/// How new files are opened. Nobody asks for the time of an object's last access.
const NEW: OFlags = OFlags::RDWR.union(OFlags::NOATIME);
/// Mode of a new identity file.
const IDENTITY_MODE: u32 = 0o644;

/// A directory that is held open, if only as a place to open its entries from.
#[derive(Debug)]
pub struct Dir<F = OwnedFd> {
    dir: F,
    counters: Option<Line>,
}

impl<F: AsFd> Dir<F> {
    /// The target in a directory that has been looked at.
    pub const fn new(dir: F) -> Self {
        Self { dir, counters: None }
    }

    /// The same, the operations on whose objects are counted there.
    #[must_use]
    pub fn counted(self, counters: Option<Line>) -> Self {
        Self { counters, ..self }
    }

    /// Its descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    fn object(&self, file: OwnedFd) -> FileObject {
        FileObject::new(file).counted(self.counters)
    }

    fn readable(&self) -> Result<OwnedFd, Errno> {
        fs::openat(self.fd(), c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }

    fn each_name(&self, mut each: impl FnMut(&CStr) -> Result<(), Errno>) -> Result<(), Errno> {
        let dir = self.readable()?;
        let mut room = [MaybeUninit::uninit(); LIST_BYTES];
        let mut entries = RawDir::new(&dir, &mut room);
        while let Some(entry) = entries.next() {
            each(entry?.file_name())?;
        }
        Ok(())
    }

    /// Makes a file under a name that nobody guesses, has it prepared, and gives it its own name, unless that is taken and `replaces` does not say so.
    fn make(&self, (unready, name): (&PartName, &PartName), mode: u32, replaces: bool, ready: Ready<'_>) -> Result<FileObject, Errno> {
        let (unready, name) = (c(unready)?, c(name)?);
        let made = FileObject::new(create_file(self.fd(), unready, NEW, mode)?);
        let named =
            ready(&made).and_then(|()| if replaces { fs::renameat(self.fd(), unready, self.fd(), name) } else { self.rename_new(unready, name) });
        if let Err(errno) = named {
            let _ = fs::unlinkat(self.fd(), unready, AtFlags::empty());
            return Err(errno);
        }
        Ok(made)
    }

    fn rename_new(&self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        match fs::renameat_with(self.fd(), from, self.fd(), to, RenameFlags::NOREPLACE) {
            // A file system without it.
            Err(Errno::INVAL | Errno::NOSYS) => {
                fs::linkat(self.fd(), from, self.fd(), to, AtFlags::empty())?;
                fs::unlinkat(self.fd(), from, AtFlags::empty())
            }
            renamed => renamed,
        }
    }
}

/// A name as the kernel takes it.
fn c(name: &PartName) -> Result<&CStr, Errno> {
    name.as_c_str().ok_or(Errno::NAMETOOLONG)
}

/// A number that nobody guesses.
fn chance() -> Result<u64, Errno> {
    let mut number = [0u8; 8];
    rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(number))
}

fn flags_of(opening: Opening<'_>) -> Result<OFlags, Errno> {
    let flags = match (opening.reads, opening.writes) {
        (true, false) => OFlags::RDONLY,
        (false, true) => OFlags::WRONLY,
        (true, true) => OFlags::RDWR,
        (false, false) => return Err(Errno::INVAL),
    };
    Ok(if opening.keeps_times { flags | OFlags::NOATIME } else { flags })
}

impl<F: AsFd + Send + Sync> Target for Dir<F> {
    type Object = FileObject;

    fn create(&self, name: ObjectName, mode: u32, ready: Option<Ready<'_>>) -> Result<FileObject, Errno> {
        match ready {
            None => create_file(self.fd(), c(&name.text())?, NEW, mode).map(|file| self.object(file)),
            Some(ready) => self.make((&name.unready_text(chance()?), &name.text()), mode, false, ready),
        }
    }

    fn open(&self, name: ObjectName, opening: Opening<'_>) -> Result<FileObject, Refusal> {
        let (fd, _) = open_file(self.fd(), c(&name.text())?, flags_of(opening)?, Expected::of(opening.owners))?;
        Ok(self.object(fd))
    }

    fn remove(&self, name: ObjectName, owners: &[u32]) -> Result<(), Refusal> {
        let text = name.text();
        let text = c(&text)?;
        if !owners.is_empty() {
            Expected::of(owners).check(&fs::statat(self.fd(), text, AtFlags::SYMLINK_NOFOLLOW)?)?;
        }
        Ok(fs::unlinkat(self.fd(), text, AtFlags::empty())?)
    }

    fn look(&self, name: ObjectName) -> Result<Option<Facts>, Errno> {
        match fs::statat(self.fd(), c(&name.text())?, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            stat => stat.map(|stat| Some(facts_of(&stat))),
        }
    }

    fn list(&self, each: &mut dyn FnMut(ObjectName) -> Result<(), Errno>) -> Result<(), Errno> {
        self.each_name(|name| ObjectName::of_text(name.to_bytes()).map_or(Ok(()), &mut *each))
    }

    /// Also that of files which only look like objects: they take room as well.
    fn used_bytes(&self) -> Result<u64, Errno> {
        let mut sum = 0u64;
        self.each_name(|name| {
            if object_stem(name.to_bytes()).is_some() {
                match fs::statat(self.fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => sum = sum.saturating_add(facts_of(&stat).used_bytes),
                    // Removed meanwhile.
                    Err(Errno::NOENT) => {}
                    Err(errno) => return Err(errno),
                }
            }
            Ok(())
        })?;
        Ok(sum)
    }

    fn free_bytes(&self) -> Result<u64, Errno> {
        let stat = fs::fstatvfs(self.fd())?;
        // What is mounted read-only takes nothing, whatever is free.
        Ok(if stat.f_flag.contains(fs::StatVfsMountFlags::RDONLY) { 0 } else { stat.f_bavail.saturating_mul(stat.f_frsize) })
    }

    fn pool(&self) -> Result<Option<u64>, Errno> {
        fs::fstat(self.fd()).map(|stat| Some(stat.st_dev))
    }

    fn sync(&self) -> Result<(), Errno> {
        fs::fsync(self.readable()?)
    }

    fn identity(&self, owners: &[u32], into: &mut [u8]) -> Result<usize, Refusal> {
        let name = PartName::from_bytes(IDENTITY_FILE.as_bytes());
        // It is only ever replaced. That it does not wait was for the opening alone, and changes no read of a regular file.
        match open_file(self.fd(), c(&name)?, OFlags::RDONLY | OFlags::NONBLOCK, Expected::of(owners).at_most(TEXT_BYTES_MAX)) {
            Err(Refusal::Os(Errno::NOENT)) => Ok(0),
            opened => {
                let (file, stat) = opened?;
                let len = into.len().min(stat.st_size as usize);
                Ok(crate::batch::read_at(&FileObject::new(file), into.get_mut(..len).unwrap_or(&mut []), 0)?)
            }
        }
    }

    fn identify(&self, text: &[u8]) -> Result<(), Errno> {
        let name = PartName::from_bytes(IDENTITY_FILE.as_bytes());
        let mut unready = PartName::from_bytes(b".");
        unready.push(name.as_bytes()).push(b".").push_id(chance()?).push(b".tmp");
        self.make((&unready, &name), IDENTITY_MODE, true, &mut |file| {
            crate::batch::write_at(file, text, 0)?;
            file.sync()
        })?;
        self.sync()
    }
}

fn facts_of(stat: &fs::Stat) -> Facts {
    let ns = |s: i64, ns: i64| s.saturating_mul(1_000_000_000).saturating_add(ns);
    Facts {
        len: stat.st_size as u64,
        used_bytes: stat.st_blocks as u64 * 512,
        modified_ns: ns(stat.st_mtime, stat.st_mtime_nsec as i64),
        changed_ns: ns(stat.st_ctime, stat.st_ctime_nsec as i64),
        unfit: Expected::of(&[]).check(stat).err(),
    }
}
