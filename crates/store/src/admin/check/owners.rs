//! The check of who owns what (docs/security.md, "How a store is opened"): parts that programs and verbs refuse are named, with what is wrong with them.
//! Mended is only what nobody can have arranged to get at another's bytes: a part that we have made ourselves and that holds nothing goes to head's
//! owner; what holds bytes is given to nobody, for its name alone does not prove whose they are.

use std::path::{Path, PathBuf};

use stripewise_target::devices::DEVICES;
use stripewise_target::names::OBJECT_SUFFIXES;

use super::findings::{Finding, Severity};
use super::state::Check;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::{id_text, path_of};
use crate::admin::medium::{Kind, Stat};
use crate::admin::refused::Refused;
use crate::admin::store::Store;
use crate::rights::Part;
use crate::run::{MOVER_LOCK, SESSION_LOCK};

/// What is said of a part that is refused.
const REFUSED: &str = "part-refused";
const ASIDE: &str = "find out who put it there; nothing uses it until it is removed";

/// Checks `run/` before anything is locked there: who made a lock his own, where an older store lacks it, could take it away from others.
///
/// # Errors
/// `Io`.
pub fn check_common(store: &Store<'_>, repair: bool) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    let root = look(store, &store.root)?;
    let owners = [root.map_or(0, |s| s.uid), 0];
    for name in [SESSION_LOCK, MOVER_LOCK, DEVICES] {
        let path = store.run_dir().join(path_of(name.to_bytes()));
        let Some(stat) = look(store, &path)? else { continue };
        let why = if stat.kind != Kind::File {
            "is not a regular file"
        } else if !owners.contains(&stat.uid) {
            "belongs to neither the store's owner nor root"
        } else {
            continue;
        };
        // Nobody uses one that is not the owner's, so nobody misses it.
        let mended = repair && store.medium.unlink(&path).is_ok();
        let cure = format!("{} by the store's owner or root makes it anew", store.repair_command());
        found.push(Finding::new(Severity::Warning, REFUSED, format!("{} {why}", path.display()), &cure).at(&path).mended(mended));
    }
    let session = store.run_dir().join(path_of(SESSION_LOCK.to_bytes()));
    if look(store, &session)?.is_some_and(|s| s.kind == Kind::File && owners.contains(&s.uid) && s.mode & 0o022 != 0) {
        let mended = repair && store.medium.change_mode(&session, 0o022, 0).is_ok();
        let text = format!("{} may be written by others than its owner: they can keep everybody from the store", session.display());
        found.push(
            Finding::new(Severity::Warning, "lock-writable", text, &format!("{}, or chmod go-w", store.repair_command())).at(&session).mended(mended),
        );
    }
    let is_private = look(store, &store.run_dir())?.is_some_and(|s| s.mode & 0o002 == 0);
    let dirs = ["files", "trash"].map(|name| store.root.join(name));
    for path in dirs.iter().chain(store.targets.iter().map(|t| &t.path)).filter(|_| is_private) {
        if look(store, path)?.is_some_and(|s| s.kind == Kind::Dir && s.mode & 0o002 != 0) {
            let text = format!("{} may be written by everybody, though the store is not shared", path.display());
            found.push(Finding::new(Severity::Warning, "world-writable", text, "take that right away: chmod o-w").at(path));
        }
    }
    Ok(found)
}

fn look(store: &Store<'_>, path: &Path) -> Result<Option<Stat>> {
    match store.medium.stat(path) {
        Err(e) if Refused::of(&e).is_some() => Ok(None),
        stat => stat.doing("look at", path),
    }
}

/// Checks the parts of a file. False when it cannot be used as it is; then nothing else of it is looked at.
///
/// # Errors
/// `Io`.
pub fn check_parts(check: &mut Check<'_>, id: u64) -> Result<bool> {
    let store = check.store;
    let (dir, head) = (store.file_dir(id), store.part(id, "head"));
    if !check_dir(check, id, &dir)? {
        return Ok(false);
    }
    let Some(owner) = look(store, &head)?.filter(|s| s.kind == Kind::File && s.links == 1).map(|s| s.uid) else {
        return Ok(check_kind(check, id, &head)?.is_none_or(|found| found));
    };
    let mut sound = true;
    let root = look(store, &store.root)?.map_or(0, |s| s.uid);
    for name in ["layout", "link", "sums", "adopting", "exporting"] {
        sound &= check_part(check, id, &store.part(id, name), &[owner, root, 0], None)?;
    }
    sound &= check_part(check, id, &store.part(id, "ctl"), &[owner], Some(Part::Ctl))?;
    for target in 0..store.targets.len() as u32 {
        if !check.sound.get(target as usize).copied().unwrap_or(false) {
            continue;
        }
        for plane in 0..OBJECT_SUFFIXES.len() as u32 {
            sound &= check_part(check, id, &store.object(target, id, plane)?, &[owner], Some(Part::Object))?;
        }
    }
    Ok(sound)
}

/// `files/<id>` is head's owner's, the store's or root's; after a change of the owner that was killed it may still be the old one's.
fn check_dir(check: &mut Check<'_>, id: u64, dir: &Path) -> Result<bool> {
    let store = check.store;
    let Err(e) = store.medium.stat(&dir.join("head")) else { return Ok(true) };
    let Some(refused) = Refused::of(&e) else { return Err(StoreError::io("look at", dir, e)) };
    let mended = check.repair && store.medium.dir_follows_head(dir).is_ok();
    check.found(Severity::Error, REFUSED, id, refused.to_string(), refused.cure(), mended);
    Ok(mended)
}

/// Whether a part is a regular file of one name; `None` when it is not there.
fn check_kind(check: &mut Check<'_>, id: u64, path: &Path) -> Result<Option<bool>> {
    let Some(stat) = look(check.store, path)? else { return Ok(None) };
    let why = match stat.kind {
        Kind::File if stat.links == 1 => return Ok(Some(true)),
        Kind::File => "has a second name (a hard link)",
        Kind::Link => "is a symbolic link",
        Kind::Dir | Kind::Other => "is not a regular file",
    };
    check.found(Severity::Error, REFUSED, id, format!("{} {why}, which no part of a store is", path.display()), ASIDE, false);
    Ok(Some(false))
}

fn check_part(check: &mut Check<'_>, id: u64, path: &Path, owners: &[u32], follows: Option<Part>) -> Result<bool> {
    match check_kind(check, id, path)? {
        Some(true) => {}
        other => return Ok(other.is_none()),
    }
    let Some(stat) = look(check.store, path)?.filter(|s| !owners.contains(&s.uid)) else { return Ok(true) };
    let head = check.store.part(id, "head");
    let mended = check.repair && follows.is_some_and(|part| check.store.medium.follow_head(&head, path, part).is_ok());
    let text = format!("{} belongs to uid {}, file {} to uid {}", path.display(), stat.uid, id_text(id), owners.first().copied().unwrap_or(0));
    let cure = "if its bytes are that file's (its owner was being changed when a program was killed), give it to the file's owner with chown; else remove it";
    check.found(Severity::Error, "owner", id, text, cure, mended);
    Ok(mended)
}

/// What killed verbs were writing to replace something else.
///
/// # Errors
/// `Io`.
pub fn check_leftovers(check: &mut Check<'_>, dirs: &[PathBuf]) -> Result<()> {
    for dir in dirs {
        let names = match check.store.medium.list(dir) {
            Err(e) if Refused::of(&e).is_some() || e.kind() == std::io::ErrorKind::NotFound => continue,
            names => names.doing("list", dir)?,
        };
        let count = names.iter().filter(|name| crate::admin::metadata::temporary::is_temporary(name)).count();
        if count > 0 && check.idle {
            let mended = check.repair && crate::admin::metadata::leftovers::temporaries(check.store, dir, true)? == count;
            let text = format!("{}: {count} file(s) that a killed command was writing", dir.display());
            check.report.add(Finding::new(Severity::Info, "leftover", text, "`stripewise store gc` removes them").at(dir).mended(mended));
        }
    }
    Ok(())
}
