//! Names of managed files after tools without the library moved or copied them: which link is a file's name, and links of a store that was
//! itself moved. A name is recorded before it is put in place, so that a kill leaves something that running it again finishes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stripewise_target::within::TEXT_BYTES_MAX;

use super::export::file_at;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::identity;
use crate::admin::ids::{id_text, path_of};
use crate::admin::medium::{FsyncPoint, Kind, Root, read_small, replace_file};
use crate::admin::metadata::link::{called, link_record, names_file, recorded};
use crate::admin::metadata::publish::sync_dir;
use crate::admin::refused::Refused;
use crate::admin::store::Store;
use crate::names::{link_text, parse_link};

/// Directories below one that was given: a loop of mounts ends there.
const DEPTH_MAX: usize = 128;

/// What relinking a moved store did.
#[derive(Clone, Debug, Default, serde::Serialize, PartialEq, Eq)]
pub struct Moved {
    /// Links that name the store where it is now.
    pub rewritten: usize,
    /// Links that already did.
    pub current: usize,
    /// Files whose name was not found: id and where it was.
    pub missing: Vec<(String, String)>,
    /// What could not be looked at or changed, and why.
    pub left: Vec<(String, String)>,
}

/// Makes the link `path` (absolute, its directory resolved) the name of the file that it leads to; returns its id.
///
/// # Errors
/// `Exists` when the recorded name is still there and `force` is not given, `Invalid` when `path` is no link to a file of the store.
pub fn relink(store: &Store<'_>, path: &Path, force: bool) -> Result<String> {
    let _session = store.lock_shared()?;
    let id = file_at(store, path)?;
    if !names_file(store, path, id)? {
        return Err(StoreError::Invalid(format!("{} leads to a managed file by way of another link; name that one", path.display())));
    }
    let dir = store.file_dir(id);
    if store.medium.stat(&dir).doing("look at", &dir)?.is_none() {
        return Err(StoreError::NotFound(format!("{}: the store has no file {}; it was removed", path.display(), id_text(id))));
    }
    if let Some((_, ino, name)) = recorded(store, id)?
        && name != path
        && !force
        && names_file(store, &name, id)?
        && store.medium.stat(&name).doing("look at", &name)?.is_some_and(|s| s.ino == ino)
    {
        return Err(StoreError::Exists(format!(
            "{}: the file's name is still {}; remove that link, or make this one the name with --force",
            path.display(),
            name.display()
        )));
    }
    record(store, id, path, path)?;
    Ok(id_text(id))
}

/// After the store's directory was moved: links that name it where it was are made to name it where it is, those recorded and those
/// below `dirs`. What cannot be looked at or changed keeps nothing else from it.
///
/// # Errors
/// `Invalid` when a store still lies where the links say: this one is then a copy. `Stopped`, `Io`.
pub fn relink_moved(store: &Store<'_>, dirs: &[PathBuf]) -> Result<Moved> {
    let _session = store.lock_shared()?;
    let mut moved = Moved::default();
    // Directories that lie in one another show a link twice, and twice replaced it would not be the one that is recorded.
    let mut found = BTreeSet::new();
    for dir in dirs {
        let (mut links, mut unseen) = (Vec::new(), Vec::new());
        walk(store, dir, 0, &mut links, &mut unseen)?;
        found.extend(links);
        moved.left.extend(unseen.into_iter().map(|(path, e)| (path.to_string_lossy().into_owned(), e.to_string())));
    }
    let mut by_id: BTreeMap<u64, Vec<(PathBuf, PathBuf)>> = BTreeMap::new();
    for link in found {
        if let Some((old, id)) = target_of(store, &link)? {
            by_id.entry(id).or_default().push((link, old));
        }
    }
    for id in store.ids()? {
        store.go_on()?;
        match relink_file(store, id, by_id.remove(&id).unwrap_or_default(), &mut moved) {
            Err(e @ (StoreError::Invalid(_) | StoreError::Stopped(_))) => return Err(e),
            Err(e) => moved.left.push((called(store, id), e.to_string())),
            Ok(()) => {}
        }
    }
    for (index, target) in store.targets.iter().enumerate() {
        identity::renew(store.medium, &store.root, &target.path, &store.uuid, index)?;
    }
    Ok(moved)
}

/// One file, to which these links lead by way of the store at the path beside each, and the recorded one.
fn relink_file(store: &Store<'_>, id: u64, mut ours: Vec<(PathBuf, PathBuf)>, moved: &mut Moved) -> Result<()> {
    let Some((_, ino, name)) = recorded(store, id)? else { return Ok(()) };
    if !ours.iter().any(|(link, _)| *link == name)
        && let Some((old, _)) = target_of(store, &name)?.filter(|(_, linked)| *linked == id)
    {
        ours.push((name.clone(), old));
    }
    let mut named = false;
    // What tar or rsync brought is the name when it is the only one.
    let alone = ours.len() == 1;
    for (link, old) in ours {
        let is_name = alone || link == name || store.medium.stat(&link).doing("look at", &link)?.is_some_and(|s| s.ino == ino);
        if old == store.root {
            moved.current += 1;
            if is_name {
                record(store, id, &link, &link)?;
            }
        } else {
            let bin = old.join("store.bin");
            if store.medium.stat(&bin).doing("look at", &bin)?.is_some() {
                return Err(StoreError::Invalid(format!(
                    "{} names the store {}, which is still there: {} is a copy of it, not the same store moved",
                    link.display(),
                    old.display(),
                    store.root.display()
                )));
            }
            if !rewrite(store, id, &link, is_name)? {
                continue;
            }
            moved.rewritten += 1;
        }
        named |= is_name;
    }
    if !named {
        moved.missing.push((id_text(id), name.to_string_lossy().into_owned()));
    }
    Ok(())
}

fn vanished(path: &Path) -> StoreError {
    StoreError::NotFound(format!("{} vanished; who removes it?", path.display()))
}

/// Records that the link which lies at `at` is, or will be, at `path`.
fn record(store: &Store<'_>, id: u64, at: &Path, path: &Path) -> Result<()> {
    let stat = store.medium.stat(at).doing("look at", at)?.ok_or_else(|| vanished(at))?;
    let wanted = link_record(stat.dev, stat.ino, path);
    let part = store.part(id, "link");
    if read_small(store.medium, &part, TEXT_BYTES_MAX).is_ok_and(|held| held == wanted) {
        return Ok(());
    }
    replace_file(store.medium, &part, &wanted, FsyncPoint::NewFileParts, FsyncPoint::NewFileDir).doing("write", &part)
}

/// False for one whose directory is reached by way of a symbolic link by now: it is not where it was recorded.
fn rewrite(store: &Store<'_>, id: u64, link: &Path, is_name: bool) -> Result<bool> {
    let parent = link.parent().unwrap_or(Path::new("/"));
    let held = store.medium.hold(parent, Root::Place);
    let done = match held {
        Err(e) if Refused::of(&e).is_some() => Ok(false),
        Err(e) => Err(e).doing("open", parent),
        Ok(()) => replace(store, id, link, parent, is_name).map(|()| true),
    };
    // A store may have files in more directories than a process has descriptors.
    store.medium.let_go(parent);
    done
}

/// Puts a link that names the store where it is now in the place of one.
fn replace(store: &Store<'_>, id: u64, link: &Path, parent: &Path, is_name: bool) -> Result<()> {
    let temporary = parent.join(format!(".stripewise-{}", id_text(id)));
    let old = store.medium.stat(link).doing("look at", link)?.ok_or_else(|| vanished(link))?;
    if store.medium.stat(&temporary).doing("look at", &temporary)?.is_some_and(|s| s.kind == Kind::Link) {
        store.medium.unlink(&temporary).doing("remove", &temporary)?;
    }
    let text = path_of(link_text(store.root.as_os_str().as_bytes(), id).as_bytes());
    store.medium.symlink(&text, &temporary).doing("make the link", &temporary)?;
    store.medium.own_link(&temporary, &text, old.uid, old.gid).doing("give the owner of the link to", &temporary)?;
    if is_name {
        record(store, id, &temporary, link)?;
    }
    store.medium.rename(&temporary, link).doing("replace the link", link)?;
    sync_dir(store, parent, FsyncPoint::LinkDir)
}

/// The store and id that a link names; `None` for anything else.
fn target_of(store: &Store<'_>, link: &Path) -> Result<Option<(PathBuf, u64)>> {
    if store.medium.stat(link).doing("look at", link)?.is_none_or(|s| s.kind != Kind::Link) {
        return Ok(None);
    }
    let text = store.medium.read_link(link).doing("read", link)?;
    Ok(parse_link(text.as_os_str().as_bytes()).map(|(store, id)| (path_of(store), id)))
}

/// The links to managed files of any store below a directory, and what of it cannot be looked at.
///
/// # Errors
/// `Stopped`.
pub fn walk(store: &Store<'_>, dir: &Path, depth: usize, found: &mut Vec<PathBuf>, unseen: &mut Vec<(PathBuf, StoreError)>) -> Result<()> {
    store.go_on()?;
    let names = match store.medium.list(dir).doing("list", dir) {
        Ok(names) => names,
        Err(e) => {
            unseen.push((dir.to_path_buf(), e));
            return Ok(());
        }
    };
    for name in names {
        let path = dir.join(name);
        match store.medium.stat(&path).doing("look at", &path).map(|found| found.map(|s| s.kind)) {
            Ok(Some(Kind::Dir)) if depth < DEPTH_MAX => walk(store, &path, depth + 1, found, unseen)?,
            Ok(Some(Kind::Link)) => match target_of(store, &path) {
                Ok(Some(_)) => found.push(path),
                Ok(None) => {}
                Err(e) => unseen.push((path, e)),
            },
            Ok(_) => {}
            Err(e) => unseen.push((path, e)),
        }
    }
    Ok(())
}
