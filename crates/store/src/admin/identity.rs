//! The identity of a target's directory: a small file that says which store's which target it is, so that a missing, wrong or
//! swapped mount is noticed before a byte lands on it.

use std::path::{Path, PathBuf};

use super::error::{Context, Result, StoreError};
use super::medium::{FsyncPoint, Kind, Medium, read_small, replace_file};

/// Name of the identity file in a target's directory.
pub const IDENTITY_FILE: &str = "stripewise-target";
const LIMIT_BYTES: u64 = 16_384;

/// What an identity file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The store's id.
    pub uuid: [u8; 16],
    /// Index of the target.
    pub index: usize,
    /// Where the store lay when the target was taken.
    pub store: PathBuf,
}

fn uuid_text(uuid: &[u8; 16]) -> String {
    uuid.iter().map(|b| format!("{b:02x}")).collect()
}

impl Identity {
    fn text(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt;
        let mut text = format!("stripewise-target 1\nuuid {}\nindex {}\nstore ", uuid_text(&self.uuid), self.index).into_bytes();
        text.extend_from_slice(self.store.as_os_str().as_bytes());
        text.push(b'\n');
        text
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(b"stripewise-target 1\nuuid ")?;
        let (hex, rest) = rest.split_at_checked(32)?;
        let rest = rest.strip_prefix(b"\nindex ")?;
        let digits = rest.iter().position(|&c| c == b'\n')?;
        let index = std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()?;
        let store = rest.get(digits..)?.strip_prefix(b"\nstore ")?.strip_suffix(b"\n")?;
        let mut uuid = [0u8; 16];
        for (byte, pair) in uuid.iter_mut().zip(hex.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self { uuid, index, store: super::store::path_of(store) })
    }
}

/// Whether a target's directory is what the store takes it for; `None` when it is.
///
/// # Errors
/// None of its own: what cannot be read is reported as not fitting.
pub fn mismatch(medium: &dyn Medium, dir: &Path, uuid: &[u8; 16], index: usize) -> Option<String> {
    match medium.stat(dir) {
        Ok(Some(s)) if s.kind == Kind::Dir || s.kind == Kind::Link => {}
        Ok(None) => return Some(format!("the directory {} is missing; mount or restore it", dir.display())),
        Ok(Some(_)) => return Some(format!("{} is no directory; mount or restore it", dir.display())),
        Err(e) => return Some(format!("{} cannot be looked at: {e}", dir.display())),
    }
    let path = dir.join(IDENTITY_FILE);
    match read_small(medium, &path, LIMIT_BYTES).ok().and_then(|b| Identity::parse(&b)) {
        None => Some(format!(
            "{} is missing or unreadable: perhaps its file system is not mounted; mount it, or put the right directory there",
            path.display()
        )),
        Some(id) if id.uuid != *uuid => {
            Some(format!("{} says that the directory belongs to the store {}; mount the right one", path.display(), id.store.display()))
        }
        Some(id) if id.index != index => Some(format!(
            "{} says that the directory is target {} of this store, not {index}; the paths of two targets are swapped",
            path.display(),
            id.index
        )),
        Some(_) => None,
    }
}

/// Takes a directory as a target: makes it when its parent is there (or when it lies in the store), and writes the identity.
/// One that is taken already, by this store and index, is left as it is; one of a create that was killed is taken over.
///
/// # Errors
/// `NotFound` when it cannot be made, `Exists` when it belongs to another store, `Io` when it is read-only.
pub fn take(medium: &dyn Medium, store: &Path, dir: &Path, uuid: &[u8; 16], index: usize) -> Result<()> {
    make_dir(medium, store, dir)?;
    let wanted = Identity { uuid: *uuid, index, store: store.to_path_buf() };
    let path = dir.join(IDENTITY_FILE);
    if medium.stat(&path).doing("look at", &path)?.is_some() {
        let bytes = read_small(medium, &path, LIMIT_BYTES).doing("read", &path)?;
        match Identity::parse(&bytes) {
            Some(found) if found.uuid == *uuid && found.index == index => return Ok(()),
            // A power cut or kill during an earlier create of this very store left it.
            Some(found) if found.store == store => {}
            None if bytes.is_empty() => {}
            Some(found) => {
                return Err(StoreError::Exists(format!(
                    "{} belongs to the store {} already; give the target another directory, or remove {} if that store is gone",
                    dir.display(),
                    found.store.display(),
                    path.display()
                )));
            }
            None => {
                return Err(StoreError::Damaged(format!("{} is no identity file; remove it if no store uses {}", path.display(), dir.display())));
            }
        }
    }
    replace_file(medium, &path, &wanted.text(), FsyncPoint::Identity, FsyncPoint::Identity).doing("write", &path)
}

fn make_dir(medium: &dyn Medium, store: &Path, dir: &Path) -> Result<()> {
    if medium.stat(dir).doing("look at", dir)?.is_some() {
        return Ok(());
    }
    let parent = dir.parent().unwrap_or(dir);
    if medium.stat(parent).doing("look at", parent)?.is_none() {
        if !dir.starts_with(store) {
            return Err(StoreError::NotFound(format!(
                "the target directory {} does not exist, nor does {}; mount its file system or make the directory",
                dir.display(),
                parent.display()
            )));
        }
        make_dir(medium, store, parent)?;
    }
    medium.mkdir(dir).doing("make the target directory", dir)?;
    medium.sync_dir(parent, FsyncPoint::Identity).doing("flush", parent)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn an_identity_reads_back_and_cut_ones_do_not() {
        let id = Identity { uuid: [0xab; 16], index: 7, store: PathBuf::from("/s/a b") };
        let text = id.text();
        assert_eq!(Identity::parse(&text), Some(id));
        for n in 0..text.len() {
            assert_eq!(Identity::parse(&text[..n]), None, "{n}");
        }
    }
}
