//! What adoptions and exports that were killed left: finished or undone, by fsck, gc, or the next command on the same file.

use std::path::{Path, PathBuf};

use super::journal::{self, Found, Journal, Way};
use super::link::names_file;
use super::publish::sync_dir;
use super::trash::{in_trash, remove_file, remove_file_from, to_trash};
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::id_text;
use crate::admin::medium::{FsyncPoint, Kind, Others, Stat};
use crate::admin::store::Store;
use crate::locks::How;

/// Finishes or undoes what the journal of file `id` says; false when there is none or its maker lives.
///
/// # Errors
/// `InUse` when somebody has the old plain file open, `Damaged` when nobody can tell which of two is the file; `Io`.
pub fn recover(store: &Store<'_>, id: u64) -> Result<bool> {
    let dir = store.file_dir(id);
    let found = journal::find(store, &dir)?;
    let way = match &found {
        Found::Nothing => return Ok(false),
        Found::Blank(way) => *way,
        Found::Whole(journal) => journal.way,
    };
    let path = dir.join(way.part());
    let Some(_held) = store.medium.try_lock(&path, true).doing("lock", &path)? else { return Ok(false) };
    // An export replaces its journal, and with it the lock, but has the file to itself.
    let ctl = store.part(id, "ctl");
    let _alone = if way == Way::Out && store.medium.stat(&ctl).doing("look at", &ctl)?.is_some() {
        let Some(lock) = store.medium.try_presence(&ctl, How::Exclusive).doing("lock", &ctl)? else { return Ok(false) };
        Some(lock)
    } else {
        None
    };
    match (found, way) {
        (Found::Whole(journal), Way::In) => settle_adoption(store, id, &journal).map(|_| true),
        (Found::Whole(journal), Way::Out) => settle_export(store, id, &journal).map(|_| true),
        // Nothing had been done yet: of an adoption only the directory is there.
        (_, Way::In) => {
            to_trash(store, id)?;
            remove_file(store, id, &in_trash(store, id)).map(|()| true)
        }
        (_, Way::Out) => store.medium.unlink(&path).doing("remove", &path).map(|()| true),
    }
}

/// Finishes or undoes an adoption whose maker is gone. Returns whether the file is managed now.
///
/// # Errors
/// `InUse` when somebody has the old plain file open, `Damaged` when nobody can tell which of two is the file; `Io`.
pub fn settle_adoption(store: &Store<'_>, id: u64, journal: &Journal) -> Result<bool> {
    let (path, temporary) = (&journal.path, journal.temporary(id));
    let medium = store.medium;
    let third = third_name(&temporary);
    let parent = path.parent().unwrap_or(Path::new("/"));
    journal.hold_place(store)?;
    let look = |p: &Path| medium.stat(p).doing("look at", p);
    let original = |s: &Option<Stat>| s.is_some_and(|s| s.kind == Kind::File && s.ino == journal.ino);
    if names_file(store, path, id)? {
        for old in [temporary.as_path(), &third] {
            let stat = look(old)?;
            if !original(&stat) {
                continue;
            }
            if stat.is_some_and(|s| (s.size, s.mtime_ns) != (journal.size, journal.mtime_ns)) {
                return Err(StoreError::Damaged(format!(
                    "{}: the plain file that was adopted as {} has been written since; compare the two, then remove one of them",
                    old.display(),
                    path.display()
                )));
            }
            // Nobody may be left with a descriptor of what goes: file systems without leases cannot tell.
            match medium.open_leased(old, Others::None, true) {
                Ok(None) => return Err(StoreError::InUse(format!("{} is still open somewhere; stop that program first", old.display()))),
                Err(e) if e.kind() != std::io::ErrorKind::Unsupported => return Err(StoreError::io("open", old, e)),
                _ => {}
            }
            medium.unlink(old).doing("remove", old)?;
        }
        sync_dir(store, parent, FsyncPoint::Swapped)?;
        journal.end(store, id)?;
        return Ok(true);
    }
    let (here, there) = (look(path)?, look(&temporary)?);
    let waiting = names_file(store, &temporary, id)?;
    if !original(&here) && !waiting {
        let record = store.part(id, "link");
        if original(&there) || look(&record)?.is_some() {
            return Err(StoreError::Damaged(format!(
                "{}: its adoption as file {} was interrupted, and the name is gone or taken; put the link or the file {} back, or relink",
                path.display(),
                id_text(id),
                temporary.display()
            )));
        }
    }
    undo(store, id, journal)?;
    Ok(false)
}

/// Takes back what an adoption made before the change of places. From the first step on the file is in the trash, which gc finishes.
fn undo(store: &Store<'_>, id: u64, journal: &Journal) -> Result<()> {
    to_trash(store, id)?;
    discard(store, id, &in_trash(store, id), Some(journal), false)
}

/// Removes a file of the trash, with what an adoption left beside the plain file.
///
/// # Errors
/// `Io`.
fn discard(store: &Store<'_>, id: u64, dir: &Path, journal: Option<&Journal>, leave_away: bool) -> Result<()> {
    if let Some(journal) = journal {
        journal.hold_place(store)?;
        let temporary = journal.temporary(id);
        let ino = |p: &Path| -> Result<Option<u64>> { Ok(store.medium.stat(p).doing("look at", p)?.map(|s| s.ino)) };
        // A second name of the plain file, from a file system on which names cannot change places.
        for other in [temporary.as_path(), &third_name(&temporary)] {
            if ino(&journal.path)? == Some(journal.ino) && ino(other)? == Some(journal.ino) {
                store.medium.unlink(other).doing("remove", other)?;
            }
        }
        if names_file(store, &temporary, id)? {
            store.medium.unlink(&temporary).doing("remove", &temporary)?;
        }
        let parent = journal.path.parent().unwrap_or(Path::new("/"));
        sync_dir(store, parent, FsyncPoint::Swapped)?;
    }
    remove_file_from(store, id, dir, leave_away)
}

/// Another name beside it, for a file system on which names cannot change places.
pub fn third_name(temporary: &Path) -> PathBuf {
    let mut name = temporary.as_os_str().to_os_string();
    name.push("-old");
    PathBuf::from(name)
}

/// Finishes or undoes an export: the plain file has taken the link's place, or goes. Returns whether the file is plain now.
///
/// # Errors
/// `Io`.
pub fn settle_export(store: &Store<'_>, id: u64, journal: &Journal) -> Result<bool> {
    let (path, temporary) = (&journal.path, journal.temporary(id));
    let parent = path.parent().unwrap_or(Path::new("/"));
    journal.hold_place(store)?;
    let dir = store.file_dir(id);
    let here = store.medium.stat(path).doing("look at", path)?;
    if journal.ino != 0 && here.is_some_and(|s| s.kind == Kind::File && s.ino == journal.ino) {
        sync_dir(store, parent, FsyncPoint::Swap)?;
        to_trash(store, id)?;
        match remove_file(store, id, &in_trash(store, id)) {
            // It is plain by now. Its entry in the trash waits for the target, on which it may have nothing.
            Err(_) if (0..store.targets.len()).any(|target| store.away(target).is_some()) => {}
            done => done?,
        }
        return Ok(true);
    }
    if let Some(left) = store.medium.stat(&temporary).doing("look at", &temporary)?
        && left.kind == Kind::File
        && journal.may_be_about(store, &dir, &left)?
    {
        store.medium.unlink(&temporary).doing("remove", &temporary)?;
    }
    sync_dir(store, parent, FsyncPoint::Swapped)?;
    let part = store.part(id, journal.way.part());
    if store.medium.stat(&part).doing("look at", &part)?.is_some() {
        journal.end(store, id)?;
    }
    Ok(false)
}

/// Removes one entry of the trash for good. Objects go first, so that a kill leaves an entry that the next gc finishes.
///
/// # Errors
/// `Io`.
pub fn empty_trash(store: &Store<'_>, id: u64) -> Result<()> {
    empty_trash_of(store, id, false)
}

/// The same; with `leave_away` what lies on targets that are away stays there.
///
/// # Errors
/// As [`empty_trash`].
pub fn empty_trash_of(store: &Store<'_>, id: u64, leave_away: bool) -> Result<()> {
    let dir = in_trash(store, id);
    match journal::find(store, &dir)? {
        Found::Whole(journal) if journal.way == Way::In => discard(store, id, &dir, Some(&journal), leave_away),
        _ => remove_file_from(store, id, &dir, leave_away),
    }
}
