//! Making a store and changing its configuration. store.bin comes last and appears at once, so a killed create leaves no store
//! and can simply be run again.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stripewise_target::identity::IDENTITY_FILE;
use stripewise_target::names::object_stem;

use super::error::{Context, Result, StoreError};
use super::identity;
use super::ids::{id_text, path_of, quoted};
use super::info::link_path;
use super::medium::{Attributes, FsyncPoint, Kind, Medium, Root, put_file, replace_file};
use super::spec::SpecJson;
use super::store::Store;
use crate::run::{MOVER_LOCK, SESSION_LOCK};

/// Who may make files in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Users {
    /// Who makes the store, and root.
    Owner,
    /// Everybody.
    All,
}

/// Everybody makes entries, nobody removes another's.
const SHARED_MODE: u32 = 0o1777;

/// Makes a store of one user at an absolute path.
///
/// # Errors
/// `Exists` when there is one, `Invalid` for a bad specification, `NotFound` for a target that cannot be made.
pub fn create(medium: &dyn Medium, root: &Path, spec: &SpecJson) -> Result<()> {
    create_for(medium, root, spec, Users::Owner)
}

/// Makes a store at an absolute path.
///
/// # Errors
/// As [`create`].
pub fn create_for(medium: &dyn Medium, root: &Path, spec: &SpecJson, users: Users) -> Result<()> {
    if !root.is_absolute() {
        return Err(StoreError::Invalid(format!("the store's path {} is not absolute; links of files name it, give it in full", root.display())));
    }
    let bytes = spec.compile()?;
    make_dir(medium, root)?;
    medium.hold(root, Root::Store).doing("open", root)?;
    let bin = root.join("store.bin");
    if medium.stat(&bin).doing("look at", &bin)?.is_some() {
        return Err(StoreError::Exists(format!("{} is a store already; choose another directory, or change its store.toml", root.display())));
    }
    let files = root.join("files");
    if medium.stat(&files).doing("look at", &files)?.is_some() && !medium.list(&files).doing("list", &files)?.is_empty() {
        return Err(StoreError::Exists(format!(
            "{} is a store with files, whose store.bin is missing; 'stripewise store fsck {} --repair' compiles it anew",
            root.display(),
            quoted(root)
        )));
    }
    let uuid = spec.uuid()?;
    // All before the first change: a target that was taken for a store that is not made would be in the way of the next.
    for (index, target) in spec.targets.iter().enumerate() {
        identity::check(medium, root, Path::new(&target.path), &uuid, index)?;
    }
    for dir in ["files", "run", "trash"].map(|name| root.join(name)) {
        make_dir(medium, &dir)?;
        share(medium, &dir, users)?;
    }
    if users == Users::All {
        medium.set_dir_mode(root, 0o755).doing("let everybody read", root)?;
    }
    // Before anybody else can make them his own.
    for name in [SESSION_LOCK, MOVER_LOCK] {
        let path = root.join("run").join(path_of(name.to_bytes()));
        medium.make_common(&path).doing("make", &path)?;
    }
    medium.devices(&root.join("run"), spec.targets.len(), true).doing("make the device clocks in", root)?;
    if let Some(parent) = root.parent() {
        medium.sync_dir(parent, FsyncPoint::StoreDir).doing("flush", parent)?;
    }
    let mut taken = Vec::new();
    let all = spec.targets.iter().enumerate().try_for_each(|(index, target)| {
        let dir = Path::new(&target.path);
        if identity::take(medium, root, dir, &uuid, index)? {
            taken.push(dir);
        }
        share(medium, dir, users)?;
        share_identity(medium, root, dir, (&uuid, index), users)
    });
    if all.is_err() {
        for dir in taken {
            let _ = medium.unlink(&dir.join(IDENTITY_FILE));
        }
    }
    all?;
    // Whoever sees store.bin finds the directories beside it.
    medium.sync_dir(root, FsyncPoint::StoreDir).doing("flush", root)?;
    replace_file(medium, &bin, &bytes, FsyncPoint::StoreTmp, FsyncPoint::StoreDir).doing("write", &bin)?;
    match users {
        Users::Owner => Ok(()),
        Users::All => medium.change_mode(&bin, 0, 0o444).doing("let everybody read", &bin),
    }
}

fn make_dir(medium: &dyn Medium, dir: &Path) -> Result<()> {
    match medium.stat(dir).doing("look at", dir)? {
        Some(s) if s.kind == Kind::File => Err(StoreError::Exists(format!("{} is a file; choose another directory for the store", dir.display()))),
        Some(_) => Ok(()),
        None => medium.mkdir(dir).doing("make the directory", dir),
    }
}

fn share(medium: &dyn Medium, dir: &Path, users: Users) -> Result<()> {
    match users {
        Users::Owner => Ok(()),
        Users::All => medium.set_dir_mode(dir, SHARED_MODE).doing("share (make the store as the owner of its targets)", dir),
    }
}

pub(super) fn share_identity(medium: &dyn Medium, store: &Path, dir: &Path, target: (&[u8; 16], usize), users: Users) -> Result<()> {
    match users {
        Users::Owner => Ok(()),
        Users::All => identity::share(medium, store, dir, target),
    }
}

/// Compiles a store's changed specification. Targets may be added at the end, moved to where their directory now is, and
/// dropped from the end when no layout names them.
///
/// # Errors
/// `Invalid` for a bad specification or one that would lose data, `InUse` when programs hold the store.
pub fn configure(medium: &dyn Medium, root: &Path, spec: &SpecJson) -> Result<()> {
    let store = Store::open(medium, root)?;
    let bytes = spec.compile()?;
    let users = users_of(&store)?;
    let uuid = spec.uuid()?;
    if uuid != store.uuid {
        let own: String = store.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        return Err(StoreError::Invalid(format!(
            "{}: the uuid in store.toml is not this store's ({own}); put that back, or have the store.toml put back that verbs used last: stripewise store fsck {} \
             --repair",
            root.display(),
            quoted(root)
        )));
    }
    // Rules and templates are read at the next start of a program, and so are targets at the end; others may not change under one that runs.
    let _lock = if same_targets(&store, spec)? { None } else { Some(store.lock_exclusive()?) };
    keeps_targets(&store, spec.targets.len())?;
    for (index, target) in spec.targets.iter().enumerate() {
        let dir = Path::new(&target.path);
        // What cannot be held is told by what is then looked at there.
        let _ = medium.hold(dir, Root::Target { store: root });
        if let Some(old) = store.targets.get(index).filter(|_| !is_tombstone(root, dir)) {
            // One that is away where it was before keeps nobody from changing something else.
            if old.path != dir
                && let Some(why) = identity::mismatch(medium, dir, &uuid, index)
            {
                return Err(StoreError::Invalid(format!(
                    "{}: target {}: {}; its former path was {} (as in store.toml.compiled, which verbs used last)",
                    root.join("store.toml").display(),
                    target.name,
                    why.told(root, &target.name),
                    old.path.display()
                )));
            }
        } else {
            identity::take(medium, root, dir, &uuid, index)?;
            share(medium, dir, users)?;
            share_identity(medium, root, dir, (&uuid, index), users)?;
        }
    }
    let bin = root.join("store.bin");
    replace_file(medium, &bin, &bytes, FsyncPoint::StoreTmp, FsyncPoint::StoreDir).doing("write", &bin)
}

/// Compiles the specification of a store whose store.bin is missing or damaged; tells whether it was. Nothing else is changed: targets that are there
/// must say that they are this store's, and one of them at least.
///
/// # Errors
/// `Invalid` for a bad specification, or one of other targets; `Newer`, `InUse` when programs hold the store.
pub fn recompile(medium: &dyn Medium, root: &Path, spec: &SpecJson) -> Result<bool> {
    match Store::open(medium, root) {
        Ok(_) => return Ok(false),
        Err(StoreError::NotFound(_) | StoreError::Damaged(_)) => {}
        Err(e) => return Err(e),
    }
    let bytes = spec.compile()?;
    let uuid = spec.uuid()?;
    let store = Store::compiled(medium, root, &bytes)?;
    let _lock = store.lock_exclusive()?;
    keeps_targets(&store, spec.targets.len())?;
    let mut confirmed = 0;
    for (index, target) in spec.targets.iter().enumerate().filter(|(_, target)| !is_tombstone(root, Path::new(&target.path))) {
        let said = identity::says_so(medium, root, (&target.name, Path::new(&target.path)), &uuid, index);
        confirmed += usize::from(said.map_err(|e| StoreError::Invalid(format!("{}: store.toml: target {}: {e}", root.display(), target.name)))?);
    }
    if confirmed == 0 {
        return Err(StoreError::Invalid(format!(
            "{}: no target of store.toml says that it is this store's; mount them, or, where making the store was interrupted, run the same command again",
            root.display()
        )));
    }
    let (bin, toml) = (root.join("store.bin"), root.join("store.toml"));
    // Its owner's, whoever mends it.
    let like = Attributes {
        mode: if users_of(&store)? == Users::All { 0o644 } else { 0o600 },
        acl: Vec::new(),
        ..medium.attributes(&toml).doing("look at", &toml)?
    };
    put_file(medium, &bin, &bytes, Some(&like), (FsyncPoint::StoreTmp, FsyncPoint::StoreDir)).doing("write", &bin)?;
    Ok(true)
}

pub(super) fn users_of(store: &Store<'_>) -> Result<Users> {
    let run = store.run_dir();
    let is_shared = store.medium.stat(&run).doing("look at", &run)?.is_some_and(|s| s.mode & 0o002 != 0);
    Ok(if is_shared { Users::All } else { Users::Owner })
}

/// An error where a layout names a target beyond the first `targets`.
fn keeps_targets(store: &Store<'_>, targets: usize) -> Result<()> {
    if targets >= store.targets.len() {
        // A layout that is damaged is no reason then.
        return Ok(());
    }
    for id in store.ids()? {
        let named = match store.layout(id) {
            Ok(layout) => super::metadata::publish::targets_of(&layout),
            Err(StoreError::NotFound(_)) => continue,
            Err(e) => return Err(e),
        };
        if let Some(lost) = named.into_iter().find(|t| *t as usize >= targets) {
            let name = store.targets.get(lost as usize).map_or_else(|| format!("number {lost}"), |target| target.name.clone());
            let file = link_path(store, id).map_or_else(|| id_text(id), |path| path.display().to_string());
            return Err(StoreError::Invalid(format!(
                "{}: store.toml has no [[target]] table for target {name} any more, which holds data of {file}; put it back (store.toml.compiled is the one \
                 that verbs used last), and 'stripewise store drain' the target before it goes",
                store.root.display(),
            )));
        }
    }
    Ok(())
}

/// Where a removed target's number goes on existing: an empty directory of the store, so that the others keep theirs.
pub const REMOVED_DIR: &str = "removed";

pub(super) fn is_tombstone(root: &Path, dir: &Path) -> bool {
    dir.parent() == Some(&root.join(REMOVED_DIR))
}

/// Whether the targets that programs know are what they were; one without any object may have been removed.
fn same_targets(store: &Store<'_>, spec: &SpecJson) -> Result<bool> {
    for (index, (old, new)) in store.targets.iter().zip(&spec.targets).enumerate() {
        let dir = Path::new(&new.path);
        // What lies on one that is away is lost to the store, and by the caller's word no layout names it.
        if old.path != dir && is_tombstone(&store.root, dir) && identity::mismatch(store.medium, &old.path, &store.uuid, index).is_none() {
            let names = match store.medium.list(&old.path) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
                names => names.doing("list", &old.path)?,
            };
            if let Some(name) = names.iter().find(|n| object_stem(n.as_bytes()).is_some()) {
                return Err(StoreError::Invalid(format!(
                    "target {} holds {} still; empty it with `stripewise store drain`",
                    old.name,
                    old.path.join(name).display()
                )));
            }
        }
    }
    Ok(store.targets.len() <= spec.targets.len()
        && store.targets.iter().zip(&spec.targets).all(|(old, new)| {
            let m = &old.model;
            (old.path == Path::new(&new.path) || is_tombstone(&store.root, Path::new(&new.path)))
                && old.capacity_bytes == new.capacity_bytes
                && old.kind.name() == new.kind
                && (m.startup_read_ns, m.startup_write_ns, m.read_ps_per_byte, m.write_ps_per_byte)
                    == (new.startup_read_ns, new.startup_write_ns, new.read_ps_per_byte, new.write_ps_per_byte)
        }))
}
