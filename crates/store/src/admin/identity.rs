//! The identity of a target's directory: a small file that says which store's which target it is, so that a missing, wrong or
//! swapped mount is noticed before a byte lands on it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{getegid, geteuid};
use stripewise_target::identity::{IDENTITY_FILE, Identity};
use stripewise_target::within::TEXT_BYTES_MAX;

use super::error::{Context, Result, StoreError};
use super::ids::{path_of, quoted};
use super::medium::{Attributes, FsyncPoint, Kind, Medium, Root, put_file, read_small, replace_file};
use super::refused::Refused;

/// What is written into the identity file.
fn text(identity: &Identity<'_>) -> Vec<u8> {
    let uuid: String = identity.uuid.iter().map(|b| format!("{b:02x}")).collect();
    let mut text = format!("stripewise-target 1\nuuid {uuid}\nindex {}\nstore ", identity.index).into_bytes();
    text.extend_from_slice(identity.store);
    text.push(b'\n');
    text
}

/// Why a target's directory is not what the store takes it for.
pub struct Mismatch {
    why: String,
    cure: Cure,
}

enum Cure {
    Other(String),
    /// For a directory that is missing.
    Path,
    /// For one without a mark.
    Mark,
    /// For one with the mark of another target.
    Swapped,
}

impl Mismatch {
    fn new(why: String, cure: impl Into<String>) -> Option<Self> {
        Some(Self { why, cure: Cure::Other(cure.into()) })
    }

    /// What is wrong, and the cure, for the target `name` of the store at `root`.
    #[must_use]
    pub fn told(&self, root: &Path, name: &str) -> String {
        let store = quoted(root);
        let mark = || format!("have it marked anew ('stripewise store fsck {store} --repair --mark {}')", quoted(Path::new(name)));
        let relink = || format!("stripewise store relink --moved {store}");
        let cure = match &self.cure {
            Cure::Other(cure) => cure.clone(),
            Cure::Path => {
                format!("mount or restore it, or where it was moved give its new path in store.toml (with the whole store: {})", relink())
            }
            Cure::Mark => {
                format!(
                    "perhaps its file system is not mounted; mount it, put the right directory there, or, where it is the very one that the target had, {}",
                    mark()
                )
            }
            Cure::Swapped => format!(
                "where the paths of two targets are swapped, '{}' puts them right; where the file was copied from the other's, {}",
                relink(),
                mark()
            ),
        };
        format!("{}; {cure}", self.why)
    }
}

/// Whether a target's directory is what the store takes it for; `None` when it is.
///
/// # Errors
/// None of its own: what cannot be read is reported as not fitting.
pub fn mismatch(medium: &dyn Medium, dir: &Path, uuid: &[u8; 16], index: usize) -> Option<Mismatch> {
    match medium.stat(dir) {
        Ok(Some(s)) if s.kind == Kind::Dir => {}
        Ok(None) => return Some(Mismatch { why: format!("the directory {} is missing", dir.display()), cure: Cure::Path }),
        Ok(Some(_)) => return Mismatch::new(format!("{} is not a directory", dir.display()), "mount or restore it"),
        Err(e) => {
            return match Refused::of(&e) {
                Some(refused) => Mismatch::new(refused.to_string(), refused.cure()),
                None => Mismatch::new(format!("{} cannot be looked at: {e}", dir.display()), "give yourself access to it"),
            };
        }
    }
    let path = dir.join(IDENTITY_FILE);
    let read = read_small(medium, &path, TEXT_BYTES_MAX);
    if let Some(refused) = read.as_ref().err().and_then(Refused::of) {
        return Mismatch::new(refused.to_string(), refused.cure());
    }
    let bytes = read.unwrap_or_default();
    match Identity::parse(&bytes) {
        None => Some(Mismatch { why: format!("{} is missing or unreadable", path.display()), cure: Cure::Mark }),
        Some(id) if id.uuid != *uuid => Mismatch::new(
            format!("{} says that the directory belongs to the store {}", path.display(), path_of(id.store).display()),
            "mount the right one",
        ),
        Some(id) if id.index != index => Some(Mismatch {
            why: format!("{} says that the directory is target {} of this store, not {index}", path.display(), id.index),
            cure: Cure::Swapped,
        }),
        Some(_) => None,
    }
}

/// Whether a directory says of itself that it is this target; not where it says nothing, or is not there.
///
/// # Errors
/// `Invalid` where it says that it is another one, `Io` where it cannot be looked at.
pub fn says_so(medium: &dyn Medium, store: &Path, (name, dir): (&str, &Path), uuid: &[u8; 16], index: usize) -> Result<bool> {
    if medium.hold(dir, Root::Target { store }).is_err() {
        return Ok(false);
    }
    let path = dir.join(IDENTITY_FILE);
    if medium.stat(&path).doing("look at", &path)?.is_none() {
        return Ok(false);
    }
    let bytes = read_small(medium, &path, TEXT_BYTES_MAX).doing("read", &path)?;
    if Identity::parse(&bytes).is_none() {
        return Ok(false);
    }
    mismatch(medium, dir, uuid, index).map_or(Ok(true), |why| Err(StoreError::Invalid(why.told(store, name))))
}

/// Takes a directory as a target: makes it when its parent is there (or when it lies in the store), and writes the identity; tells whether it did.
/// One that is taken already, by this store and index, is left as it is; one of a create that was killed is taken over.
///
/// # Errors
/// As [`check`], and `Io` when it is read-only.
pub fn take(medium: &dyn Medium, store: &Path, dir: &Path, uuid: &[u8; 16], index: usize) -> Result<bool> {
    check_there(medium, store, dir)?;
    make_dir(medium, store, dir)?;
    let wanted = Identity { uuid: *uuid, index, store: store.as_os_str().as_bytes() };
    let is_taken = is_taken(medium, store, dir, &wanted)?;
    // Of one that says so itself, too: whoever may write in another's directory can have it say so.
    check_owner(medium, store, dir)?;
    if is_taken {
        return Ok(false);
    }
    write(medium, store, dir, uuid, index)?;
    Ok(true)
}

/// Whether a held directory is one that root may write into in the name of the store's owner: his own. By his store.toml he would gain others' directories,
/// through root's hands.
///
/// # Errors
/// `Invalid` where it is another's, `Io`.
pub fn check_owner(medium: &dyn Medium, store: &Path, dir: &Path) -> Result<()> {
    let of = |path: &Path| medium.stat(path).doing("look at", path);
    let (true, Some(owner), Some(there)) = (geteuid().is_root(), of(store)?, of(dir)?) else { return Ok(()) };
    if owner.uid == there.uid {
        return Ok(());
    }
    Err(StoreError::Invalid(format!(
        "{} belongs to uid {}, and the store to uid {}; give the directory to the store's owner (chown), or run this as whoever may write both",
        dir.display(),
        there.uid,
        owner.uid
    )))
}

/// The same of one that is to be made: root makes none for others.
fn check_there(medium: &dyn Medium, store: &Path, dir: &Path) -> Result<()> {
    let of = |path: &Path| medium.stat(path).doing("look at", path);
    match (geteuid().is_root(), of(store)?, of(dir)?) {
        (true, Some(owner), None) if owner.uid != 0 => {
            Err(StoreError::Invalid(format!("{} does not exist; make it as the store's owner (uid {})", dir.display(), owner.uid)))
        }
        _ => Ok(()),
    }
}

/// Whose a directory says that it is, store and number; `None` where it says nothing that can be read.
///
/// # Errors
/// `Io` where that cannot be looked at.
pub fn marked(medium: &dyn Medium, dir: &Path) -> Result<Option<([u8; 16], usize)>> {
    let path = dir.join(IDENTITY_FILE);
    if medium.stat(&path).doing("look at", &path)?.is_none() {
        return Ok(None);
    }
    let bytes = read_small(medium, &path, TEXT_BYTES_MAX).doing("read", &path)?;
    Ok(Identity::parse(&bytes).map(|of| (of.uuid, of.index)))
}

/// Writes the identity of a directory that the caller knows for this target.
///
/// # Errors
/// `Io`.
pub fn write(medium: &dyn Medium, store: &Path, dir: &Path, uuid: &[u8; 16], index: usize) -> Result<()> {
    write_as(medium, store, dir, (uuid, index), 0o600)
}

/// The same for everybody to read, where not everybody may yet: a new file, whatever has its name by now.
///
/// # Errors
/// `Io`.
pub fn share(medium: &dyn Medium, store: &Path, dir: &Path, target: (&[u8; 16], usize)) -> Result<()> {
    let path = dir.join(IDENTITY_FILE);
    match medium.stat(&path).doing("look at", &path)? {
        Some(stat) if stat.kind == Kind::File && stat.mode & 0o444 == 0o444 => Ok(()),
        _ => write_as(medium, store, dir, target, 0o644),
    }
}

fn write_as(medium: &dyn Medium, store: &Path, dir: &Path, (uuid, index): (&[u8; 16], usize), mode: u32) -> Result<()> {
    let path = dir.join(IDENTITY_FILE);
    let wanted = text(&Identity { uuid: *uuid, index, store: store.as_os_str().as_bytes() });
    // Whoever owns the store reads it, whoever writes it.
    let mut like = Attributes { mode, uid: geteuid().as_raw(), gid: getegid().as_raw(), ..Attributes::default() };
    if geteuid().is_root()
        && let Some(owner) = medium.stat(store).doing("look at", store)?
    {
        (like.uid, like.gid) = (owner.uid, owner.gid);
    }
    put_file(medium, &path, &wanted, Some(&like), (FsyncPoint::Identity, FsyncPoint::Identity)).doing("write", &path)
}

/// Makes the identity of a target that is this store's say where the store is now, after it was moved; one that is away stays as it is.
///
/// # Errors
/// `Io`.
pub fn renew(medium: &dyn Medium, store: &Path, dir: &Path, uuid: &[u8; 16], index: usize) -> Result<()> {
    if mismatch(medium, dir, uuid, index).is_some() {
        return Ok(());
    }
    medium.hold(dir, Root::Target { store }).doing("open the target directory", dir)?;
    let path = dir.join(IDENTITY_FILE);
    let wanted = text(&Identity { uuid: *uuid, index, store: store.as_os_str().as_bytes() });
    let found = read_small(medium, &path, TEXT_BYTES_MAX).doing("read", &path)?;
    let Some(of) = Identity::parse(&found).filter(|_| found != wanted) else { return Ok(()) };
    let before = path_of(of.store).join("store.bin");
    if medium.stat(&before).doing("look at", &before)?.is_some() {
        // This one is a copy of it.
        return Ok(());
    }
    replace_file(medium, &path, &wanted, FsyncPoint::Identity, FsyncPoint::Identity).doing("write", &path)
}

/// Whether [`take`] would take a directory; changes nothing.
///
/// # Errors
/// `NotFound` when it cannot be made, `Exists` when it belongs to another store.
pub fn check(medium: &dyn Medium, store: &Path, dir: &Path, uuid: &[u8; 16], index: usize) -> Result<()> {
    if medium.stat(dir).doing("look at", dir)?.is_none() {
        return check_parent(medium, store, dir);
    }
    is_taken(medium, store, dir, &Identity { uuid: *uuid, index, store: store.as_os_str().as_bytes() }).map(drop)
}

/// Whether a directory is this target already; an error where it is another's.
fn is_taken(medium: &dyn Medium, store: &Path, dir: &Path, wanted: &Identity<'_>) -> Result<bool> {
    medium.hold(dir, Root::Target { store }).doing("open the target directory", dir)?;
    let path = dir.join(IDENTITY_FILE);
    if medium.stat(&path).doing("look at", &path)?.is_some() {
        let bytes = read_small(medium, &path, TEXT_BYTES_MAX).doing("read", &path)?;
        match Identity::parse(&bytes) {
            Some(found) if found.uuid == wanted.uuid && found.index == wanted.index => return Ok(true),
            // A power cut or kill during an earlier create of this very store left it.
            Some(found) if found.store == wanted.store => {}
            None if bytes.is_empty() => {}
            Some(found) => {
                return Err(StoreError::Exists(format!(
                    "{} belongs to the store {} already; give the target another directory, or remove {} if that store is gone",
                    dir.display(),
                    path_of(found.store).display(),
                    path.display()
                )));
            }
            None => {
                return Err(StoreError::Damaged(format!("{} is not an identity file; remove it if no store uses {}", path.display(), dir.display())));
            }
        }
    }
    Ok(false)
}

fn make_dir(medium: &dyn Medium, store: &Path, dir: &Path) -> Result<()> {
    if medium.stat(dir).doing("look at", dir)?.is_some() {
        return Ok(());
    }
    check_parent(medium, store, dir)?;
    let parent = dir.parent().unwrap_or(dir);
    if dir.starts_with(store) {
        make_dir(medium, store, parent)?;
    }
    medium.mkdir(dir).doing("make the target directory", dir)?;
    medium.sync_dir(parent, FsyncPoint::Identity).doing("flush", parent)
}

/// A target's directory that is missing is made where its parent is there, or in the store.
fn check_parent(medium: &dyn Medium, store: &Path, dir: &Path) -> Result<()> {
    let parent = dir.parent().unwrap_or(dir);
    if dir.starts_with(store) || medium.stat(parent).doing("look at", parent)?.is_some() {
        return Ok(());
    }
    Err(StoreError::NotFound(format!(
        "the target directory {} does not exist, nor does {}; mount its file system or make the directory",
        dir.display(),
        parent.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_reads_back() {
        let id = Identity { uuid: [0xab; 16], index: 7, store: b"/s/a b" };
        assert_eq!(Identity::parse(&text(&id)), Some(id));
    }
}
