//! The record of an adoption or export that is under way: which plain file, under which temporary name its counterpart waits. Kept in
//! the file's directory from before anything else of it exists until nothing is left to do, so that whoever finds it after a kill
//! knows what to finish or undo. Its flock tells whether its maker lives.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stripewise_checksum::crc32c;
use stripewise_target::within::TEXT_BYTES_MAX;

use super::publish::sync_dir;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::id_text;
use crate::admin::medium::{FsyncPoint, Lock, Open, Root, Stat, read_small, replace_file};
use crate::admin::store::Store;

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A plain file becomes a managed one.
    In,
    /// A managed file becomes a plain one.
    Out,
}

impl Way {
    /// Name of the journal in the file's directory.
    pub fn part(self) -> &'static str {
        match self {
            Self::In => "adopting",
            Self::Out => "exporting",
        }
    }
}

/// What a journal says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// Which of the two.
    pub way: Way,
    /// Inode of the plain file: the one adopted, or the one that an export is about to put in the link's place (0: not yet).
    pub ino: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its last change, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// The name that file and link meet under.
    pub path: PathBuf,
}

impl Journal {
    /// The name beside `path` under which the other of the two waits.
    pub fn temporary(&self, id: u64) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("/")).join(format!(".stripewise-{}", id_text(id)))
    }

    /// Holds the directory in which link and plain file meet, so that both are put in place where they were looked at.
    ///
    /// # Errors
    /// `Io`, also when a symbolic link has appeared on its path.
    pub fn hold_place(&self, store: &Store<'_>) -> Result<()> {
        let place = self.path.parent().unwrap_or(Path::new("/"));
        store.medium.hold(place, Root::Place).doing("open", place)
    }

    /// Whether a plain file that lies where this journal says may be its own: journals of others name whatever they like.
    ///
    /// # Errors
    /// `Io`.
    pub fn may_be_about(&self, store: &Store<'_>, dir: &Path, found: &Stat) -> Result<bool> {
        for part in ["head", self.way.part()] {
            let path = dir.join(part);
            if store.medium.stat(&path).doing("look at", &path)?.is_some_and(|s| s.uid == found.uid) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn text(&self) -> Vec<u8> {
        let mut text = format!("stripewise-{} 1\nino {}\nsize {}\nmtime {}\npath ", self.way.part(), self.ino, self.size, self.mtime_ns).into_bytes();
        text.extend_from_slice(self.path.as_os_str().as_bytes());
        text.push(b'\n');
        let crc = crc32c(&text);
        text.extend_from_slice(format!("crc {crc:08x}\n").as_bytes());
        text
    }

    fn parse(way: Way, bytes: &[u8]) -> Option<Self> {
        let (body, tail) = bytes.split_at_checked(bytes.len().checked_sub(13)?)?;
        let crc = std::str::from_utf8(tail.strip_prefix(b"crc ")?.strip_suffix(b"\n")?).ok()?;
        if u32::from_str_radix(crc, 16).ok()? != crc32c(body) {
            return None;
        }
        let mut rest = body.strip_prefix(format!("stripewise-{} 1\n", way.part()).as_bytes())?;
        let mut word = |key: &str| {
            let at = rest.strip_prefix(key.as_bytes())?;
            let end = at.iter().position(|c| *c == b'\n')?;
            rest = at.get(end + 1..)?;
            std::str::from_utf8(at.get(..end)?).ok()
        };
        let ino = word("ino ")?.parse().ok()?;
        let size = word("size ")?.parse().ok()?;
        let mtime_ns = word("mtime ")?.parse().ok()?;
        let path = rest.strip_prefix(b"path ")?.strip_suffix(b"\n")?;
        Some(Self { way, ino, size, mtime_ns, path: PathBuf::from(OsStr::from_bytes(path)) })
    }

    /// Begins: makes the journal durable and keeps its lock.
    ///
    /// # Errors
    /// `InUse` when another command is at it, `Io`.
    pub fn begin(&self, store: &Store<'_>, id: u64) -> Result<Box<dyn Lock>> {
        let path = store.part(id, self.way.part());
        let file = match store.medium.open(&path, Open::CreateNew) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => return Err(busy(&self.path)),
            file => file.doing("make", &path)?,
        };
        let lock = store.medium.try_lock(&path, true).doing("lock", &path)?.ok_or_else(|| busy(&self.path))?;
        file.write_at(&self.text(), 0).doing("write", &path)?;
        file.sync(FsyncPoint::Journal).doing("flush", &path)?;
        sync_dir(store, &store.file_dir(id), FsyncPoint::Journal)?;
        sync_dir(store, &store.files_dir(), FsyncPoint::FilesDir)?;
        Ok(lock)
    }

    /// Replaces what the journal says, at once.
    ///
    /// # Errors
    /// `Io`.
    pub fn rewrite(&self, store: &Store<'_>, id: u64) -> Result<()> {
        let path = store.part(id, self.way.part());
        replace_file(store.medium, &path, &self.text(), FsyncPoint::Journal, FsyncPoint::Journal).doing("write", &path)
    }

    /// Removes it: nothing is left to do.
    ///
    /// # Errors
    /// `Io`.
    pub fn end(&self, store: &Store<'_>, id: u64) -> Result<()> {
        let path = store.part(id, self.way.part());
        store.medium.unlink(&path).doing("remove", &path)
    }
}

fn busy(path: &Path) -> StoreError {
    StoreError::InUse(format!("another stripewise command is adopting or exporting {}; wait until it is done", path.display()))
}

/// What the journal in a file's directory is worth.
pub enum Found {
    /// There is none.
    Nothing,
    /// One that was never written: nothing else had been made.
    Blank(Way),
    /// One to be finished or undone.
    Whole(Journal),
}

/// The journal of a file, if there is one.
///
/// # Errors
/// `Io`, `Newer`.
pub fn find(store: &Store<'_>, dir: &Path) -> Result<Found> {
    for way in [Way::In, Way::Out] {
        let path = dir.join(way.part());
        if store.medium.stat(&path).doing("look at", &path)?.is_none() {
            continue;
        }
        let bytes = read_small(store.medium, &path, TEXT_BYTES_MAX).doing("read", &path)?;
        let head = format!("stripewise-{} ", way.part());
        let version = bytes.strip_prefix(head.as_bytes()).and_then(|r| r.split(|c| *c == b'\n').next()).unwrap_or(b"1");
        if version != b"1" {
            return Err(StoreError::Newer(format!(
                "{} has version {}, this Stripewise reads up to 1; use the newer Stripewise",
                path.display(),
                String::from_utf8_lossy(version)
            )));
        }
        return Ok(Journal::parse(way, &bytes).map_or(Found::Blank(way), Found::Whole));
    }
    Ok(Found::Nothing)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_journal_reads_back_and_a_cut_or_changed_one_does_not() {
        let journal = Journal { way: Way::In, ino: 7, size: 8, mtime_ns: -9, path: PathBuf::from("/a/b\nc crc") };
        let text = journal.text();
        assert_eq!(Journal::parse(Way::In, &text), Some(journal));
        for n in 0..text.len() {
            assert_eq!(Journal::parse(Way::In, &text[..n]), None, "{n}");
            let mut changed = text.clone();
            changed[n] ^= 1;
            assert_eq!(Journal::parse(Way::In, &changed), None, "{n}");
        }
    }
}
