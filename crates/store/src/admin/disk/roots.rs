//! The directories below which verbs touch files: a store's, its targets', and those in which a user's own files are adopted, exported or linked. Each
//! is opened once and held, so that it stays the one that was looked at; what lies below is reached from there by one name at a time
//! ([`crate::within`]).

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use stripewise_target::identity::IDENTITY_FILE;
use stripewise_target::text::parse_id;
use stripewise_target::within::{Refusal, check_dir, open_dir, open_root};

use super::parts::{Allowed, head_owner, may_own_file_dir, of_file, of_store, of_target};
use crate::admin::medium::Root;
use crate::admin::refused::refused;

/// A directory that is held open, or why it is not.
#[derive(Debug)]
struct Held {
    path: PathBuf,
    kind: HeldKind,
    dir: Result<(OwnedFd, u32), Refusal>,
    /// The way that was gone last: verbs do many things in one directory after another. Each step is looked at anew before it is trusted.
    steps: Mutex<Vec<Step>>,
}

/// A directory on the way down that is open, and which inode it is.
#[derive(Clone, Debug)]
struct Step {
    name: CString,
    fd: Arc<OwnedFd>,
    inode: (u64, u64),
}

#[derive(Debug)]
enum HeldKind {
    Store,
    /// With its store, whose files the objects belong to, and whether it is another's: then nothing in it but its identity is touched.
    Target(Arc<Held>, AtomicBool),
    Place,
}

impl Held {
    fn dir(&self) -> io::Result<(BorrowedFd<'_>, u32)> {
        self.dir.as_ref().map(|(fd, owner)| (fd.as_fd(), *owner)).map_err(|why| refused(&self.path, *why))
    }

    /// Opens a directory of one of these users, the step of this number on a way of which all before were the last way's (`is_known`); tells whether this one
    /// is, too.
    fn step(
        &self,
        above: BorrowedFd<'_>,
        (number, name): (usize, &CStr),
        owners: &[u32],
        is_known: bool,
    ) -> Result<(Arc<OwnedFd>, Stat, bool), Refusal> {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = steps.get(number).filter(|step| is_known && *step.name == *name)
            && let Ok(stat) = statat(above, name, AtFlags::SYMLINK_NOFOLLOW)
            && (stat.st_dev, stat.st_ino) == known.inode
        {
            check_dir(&stat, owners)?;
            return Ok((Arc::clone(&known.fd), stat, true));
        }
        let (fd, stat) = open_dir(above, name, owners)?;
        let fd = Arc::new(fd);
        steps.truncate(number);
        if steps.len() == number {
            steps.push(Step { name: name.to_owned(), fd: Arc::clone(&fd), inode: (stat.st_dev, stat.st_ino) });
        }
        Ok((fd, stat, false))
    }

    /// The directory of a file in a store, or in its trash, if it can be one; for a look at who owns it.
    fn dir_of_file(self: &Arc<Self>, id: &OsStr) -> Option<Dir> {
        ["files", "trash"].into_iter().find_map(|place| walk(self, &[OsStr::new(place), id]).ok()).map(|(dir, _)| dir)
    }
}

/// The directories that are held.
#[derive(Debug, Default)]
pub(super) struct Roots(RwLock<Vec<Arc<Held>>>);

/// A directory on the way to a part.
#[derive(Debug)]
enum Dir {
    Held(Arc<Held>),
    Open(Arc<OwnedFd>),
}

/// Where a name stands, and what may stand there.
#[derive(Debug)]
pub(super) struct Spot {
    dir: Dir,
    /// The last component of the path.
    pub name: CString,
    pub allowed: Allowed,
    /// Whom what is common in a store belongs to, and root; nobody in particular outside of stores.
    pub owners: Vec<u32>,
}

impl Dir {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Held(held) => held.dir.as_ref().map_or(CWD, |(fd, _)| fd.as_fd()),
            Self::Open(fd) => fd.as_fd(),
        }
    }
}

impl Spot {
    /// The directory, for the `*at` calls.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.fd()
    }
}

fn c_name(name: &OsStr) -> io::Result<CString> {
    Ok(CString::new(name.as_bytes())?)
}

impl Roots {
    pub const fn new() -> Self {
        Self(RwLock::new(Vec::new()))
    }

    fn all(&self) -> Vec<Arc<Held>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens a directory anew and holds it from now on. What cannot be opened is an error of whatever is done below it.
    pub fn hold(&self, path: &Path, root: Root<'_>) -> io::Result<()> {
        let all = self.all();
        let kind = match root {
            Root::Store => HeldKind::Store,
            Root::Target { store } => {
                let store = all.iter().find(|held| held.path == store && matches!(held.kind, HeldKind::Store));
                HeldKind::Target(Arc::clone(store.ok_or(io::ErrorKind::NotFound)?), AtomicBool::new(false))
            }
            // The store's own rules are the stricter ones.
            Root::Place if all.iter().any(|held| !matches!(held.kind, HeldKind::Place) && path.starts_with(&held.path)) => return Ok(()),
            Root::Place => HeldKind::Place,
        };
        let opened = match kind {
            HeldKind::Place => open_without_links(path),
            _ => CString::new(path.as_os_str().as_bytes())
                .map_or(Err(Refusal::Os(Errno::INVAL)), |path| open_root(&path, &[]).map(|(fd, st)| (fd, st.st_uid))),
        };
        let held = Arc::new(Held { path: path.to_path_buf(), kind, dir: opened, steps: Mutex::default() });
        let result = held.dir().map(drop);
        let mut roots = self.0.write().unwrap_or_else(PoisonError::into_inner);
        roots.retain(|other| other.path != path);
        roots.push(held);
        result
    }

    /// Closes a target that turned out to be another's.
    pub fn close(&self, path: &Path) {
        for held in self.all().iter().filter(|held| held.path == path) {
            if let HeldKind::Target(_, is_foreign) = &held.kind {
                is_foreign.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Holds a place no more.
    pub fn let_go(&self, path: &Path) {
        let mut roots = self.0.write().unwrap_or_else(PoisonError::into_inner);
        roots.retain(|held| held.path != path || !matches!(held.kind, HeldKind::Place));
    }

    /// The directory of a target that is held, unless it turned out to be another's.
    pub fn target(&self, path: &Path) -> io::Result<OwnedFd> {
        let all = self.all();
        let held = all.iter().find(|held| held.path == path && matches!(held.kind, HeldKind::Target(..))).ok_or(io::ErrorKind::NotFound)?;
        match &held.kind {
            HeldKind::Target(_, is_foreign) if is_foreign.load(Ordering::Relaxed) => Err(refused(path, Refusal::Foreign)),
            _ => held.dir()?.0.try_clone_to_owned(),
        }
    }

    /// Lets go of all that is held.
    pub fn clear(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn above<'p>(&self, path: &'p Path) -> Option<(Arc<Held>, &'p Path)> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (held, rest) = all.iter().filter_map(|held| Some((held, below(path, &held.path)?))).min_by_key(|(_, rest)| rest.as_os_str().len())?;
        Some((Arc::clone(held), rest))
    }

    /// Where the last component of a path stands. Below a held directory no symbolic link is followed; elsewhere those of the directories are, for they
    /// are the user's own.
    pub fn spot(&self, path: &Path) -> io::Result<Spot> {
        let Some((held, rest)) = self.above(path) else { return outside(path) };
        let parts = components(path, rest)?;
        let Some((name, way)) = parts.split_last() else {
            // One that is missing can still be made.
            if matches!(held.dir, Err(Refusal::Os(Errno::NOENT))) {
                return outside(path);
            }
            held.dir()?;
            return Ok(Spot { allowed: Allowed::of(&[]), owners: Vec::new(), dir: Dir::Held(held), name: c".".to_owned() });
        };
        let (dir, dir_owner) = walk(&held, way)?;
        let (_, owner) = held.dir()?;
        let fd = match &dir {
            Dir::Held(held) => held.dir()?.0,
            Dir::Open(fd) => fd.as_fd(),
        };
        let (allowed, owners) = match &held.kind {
            HeldKind::Store => match way {
                [place, id] if is_file_dir(place, id) => (of_file(fd, dir_owner, name, owner), vec![owner, 0]),
                _ => (of_store(&parts, owner), vec![owner, 0]),
            },
            HeldKind::Target(_, is_foreign) if is_foreign.load(Ordering::Relaxed) && *name != IDENTITY_FILE => {
                return Err(refused(path, Refusal::Foreign));
            }
            HeldKind::Target(store, _) => {
                let (_, owner) = store.dir()?;
                (of_target(name, owner, |id| store.dir_of_file(id).and_then(|dir| head_owner(dir.fd()))), vec![owner, 0])
            }
            HeldKind::Place => (Allowed::anything(), Vec::new()),
        };
        Ok(Spot { name: c_name(name)?, dir, allowed, owners })
    }

    /// Holds a directory open, to name what is in it.
    pub fn dir(&self, path: &Path) -> io::Result<Arc<OwnedFd>> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Some((held, rest)) = self.above(path) else { return Ok(Arc::new(openat(CWD, path, flags, Mode::empty())?)) };
        Ok(match walk(&held, &components(path, rest)?)?.0 {
            Dir::Held(held) => Arc::new(held.dir()?.0.try_clone_to_owned()?),
            Dir::Open(fd) => fd,
        })
    }
}

/// What of a path lies below a directory. Most paths are the directory's own with more behind them; the others are compared part by part.
fn below<'p>(path: &'p Path, dir: &Path) -> Option<&'p Path> {
    match path.as_os_str().as_bytes().strip_prefix(dir.as_os_str().as_bytes()) {
        Some([]) => Some(Path::new("")),
        Some([b'/', rest @ ..]) if rest.first() != Some(&b'/') => Some(Path::new(OsStr::from_bytes(rest))),
        _ => path.strip_prefix(dir).ok(),
    }
}

fn components<'p>(path: &Path, rest: &'p Path) -> io::Result<Vec<&'p OsStr>> {
    rest.components()
        .map(|part| match part {
            Component::Normal(name) => Ok(name),
            _ => Err(refused(path, Refusal::Kind)),
        })
        .collect()
}

fn is_file_dir(place: &OsStr, id: &OsStr) -> bool {
    (place == "files" || place == "trash") && parse_id(id.as_bytes()).is_some()
}

/// From a held directory down, and who owns where that ends.
fn walk(held: &Arc<Held>, way: &[&OsStr]) -> io::Result<(Dir, u32)> {
    let (_, owner) = held.dir()?;
    let mut at = held.path.clone();
    let mut dir = Dir::Held(Arc::clone(held));
    let mut dir_owner = owner;
    let mut is_known = true;
    for (depth, part) in way.iter().enumerate() {
        at.push(part);
        let above = match &dir {
            Dir::Held(held) => held.dir()?.0,
            Dir::Open(fd) => fd.as_fd(),
        };
        let within_store = matches!(held.kind, HeldKind::Store);
        // What an older version's boot left in `run/`, and what waits in the trash to be removed, is whoever's it was.
        let first = way.first().map_or(&b""[..], |first| first.as_bytes());
        let anybody = !within_store || (depth == 1 && matches!(first, b"files" | b"trash" | b"run"));
        let owners = [owner, 0];
        let owners: &[u32] = if anybody { &[] } else { &owners };
        let (fd, stat, was_known) = held.step(above, (depth, &c_name(part)?), owners, is_known).map_err(|why| refused(&at, why))?;
        is_known = was_known;
        if within_store && depth == 1 && first == b"files" && !may_own_file_dir(fd.as_fd(), stat.st_uid, owner) {
            return Err(refused(&at, Refusal::Owner));
        }
        dir_owner = stat.st_uid;
        dir = Dir::Open(fd);
    }
    Ok((dir, dir_owner))
}

/// A name below no held directory.
fn outside(path: &Path) -> io::Result<Spot> {
    let (parent, name) = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => (if parent.as_os_str().is_empty() { Path::new(".") } else { parent }, c_name(name)?),
        _ => (path, c".".to_owned()),
    };
    let dir = openat(CWD, parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(Spot { dir: Dir::Open(Arc::new(dir)), name, allowed: Allowed::anything(), owners: Vec::new() })
}

/// Opens a directory whose path holds no symbolic link any more: one that has appeared since it was resolved leads elsewhere.
fn open_without_links(path: &Path) -> Result<(OwnedFd, u32), Refusal> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir = openat(CWD, c"/", flags, Mode::empty())?;
    for part in path.components() {
        if let Component::Normal(name) = part {
            let name = CString::new(name.as_bytes()).map_err(|_| Refusal::Os(Errno::INVAL))?;
            dir = step(dir.as_fd(), &name, flags)?;
        }
    }
    let owner = fstat(&dir)?.st_uid;
    Ok((dir, owner))
}

fn step(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Refusal> {
    openat(dir, name, flags, Mode::empty()).map_err(|errno| {
        // With O_PATH the kernel opens the link itself, and then finds that it is not a directory.
        let stat = rustix::fs::statat(dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        let is_link = stat.is_ok_and(|st| rustix::fs::FileType::from_raw_mode(st.st_mode) == rustix::fs::FileType::Symlink);
        if errno == Errno::NOTDIR && is_link { Refusal::Link } else { Refusal::from(errno) }
    })
}
