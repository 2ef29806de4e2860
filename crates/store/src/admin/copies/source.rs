//! What is copied: a plain file, which nobody may change meanwhile, or a managed one, whose writers mark what they change ([`crate::marks`]).

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use stripewise_layout::Span;
use stripewise_target::interface::Opening;

use super::gather::Read;
use super::marking;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::info::current_size;
use crate::admin::medium::{DevicesMap, FsyncPoint, Kind, Leased, Lock, Others, Stat};
use crate::admin::metadata::publish::{objects_of, sync_slices, targets_of};
use crate::admin::metadata::reader::{Objects, layout_bytes, view};
use crate::admin::objects;
use crate::admin::session::MoverLock;
use crate::admin::store::Store;
use crate::copies::Original;
use crate::names::parse_link;

/// For so long a plain file must have been left alone: longer than any step of a file system's clock, so that whoever writes it later moves its times.
const AGE_MS: u64 = 2000;

/// A file that is copied, and what keeps it as it is or tells of changes.
pub(super) enum Source {
    /// A plain file.
    Plain {
        /// It, under a lease.
        file: Box<dyn Leased>,
        /// What it was before its first byte was read.
        was: Stat,
        /// Keeps offline changes of the store away.
        _session: Option<Box<dyn Lock>>,
    },
    /// A managed file.
    Managed {
        id: u64,
        /// Bytes when the copying began.
        size: u64,
        /// Its owner.
        uid: u32,
        /// Its layout, which stays as it is.
        layout: Vec<u8>,
        /// Nobody moves a file of the store meanwhile.
        _mover: MoverLock,
    },
}

impl Source {
    /// What is at a path, checked.
    ///
    /// # Errors
    /// `Invalid` for what cannot be copied, `InUse`, `NotFound`, `Io`.
    pub(super) fn at(store: &Store<'_>, path: &Path, lease: bool) -> Result<Self> {
        match managed_id(store, path)? {
            // Its name was there a moment ago; what is at the path now may be nothing, or another file.
            Some(id) => Self::managed(store, id).map_err(|e| if is_missing(&e) { gone(path) } else { e }),
            None => Self::plain(store, path, lease).map_err(|e| if is_missing(&e) && Self::is_managed_now(store, path) { gone(path) } else { e }),
        }
    }

    fn is_managed_now(store: &Store<'_>, path: &Path) -> bool {
        matches!(managed_id(store, path), Ok(Some(_)) | Err(_))
    }

    fn plain(store: &Store<'_>, path: &Path, lease: bool) -> Result<Self> {
        let session = store.lock_shared()?;
        check_path(store, path)?;
        let file = open_source(store, path, lease)?;
        let was = settled(store, file.as_ref(), path)?;
        Ok(Self::Plain { file, was, _session: session })
    }

    fn managed(store: &Store<'_>, id: u64) -> Result<Self> {
        let mover = store.lock_mover()?;
        let layout = store.layout(id)?;
        if let Some(why) = targets_of(&layout).into_iter().find_map(|target| store.away(target as usize)) {
            return Err(StoreError::Damaged(why));
        }
        let head = store.part(id, "head");
        let stat = store.medium.stat(&head).doing("look at", &head)?.ok_or_else(|| StoreError::NotFound(format!("{} is missing", head.display())))?;
        Ok(Self::Managed { id, size: current_size(store, id, &layout)?, uid: stat.uid, layout: layout_bytes(store, id)?, _mover: mover })
    }

    /// What its record says of it.
    pub(super) fn original(&self) -> Original {
        match self {
            Self::Plain { was, .. } => Original { dev: was.dev, ino: was.ino, size: was.size, mtime_ns: was.mtime_ns, ctime_ns: was.ctime_ns },
            Self::Managed { id, size, .. } => Original::managed(*id, *size),
        }
    }

    /// Whether it is a managed file that was removed meanwhile.
    pub(super) fn is_gone(&self, store: &Store<'_>) -> Result<bool> {
        let Self::Managed { id, .. } = self else { return Ok(false) };
        let head = store.part(*id, "head");
        Ok(store.medium.stat(&head).doing("look at", &head)?.is_none())
    }

    /// Whose it is.
    pub(super) fn uid(&self) -> u32 {
        match self {
            Self::Plain { was, .. } => was.uid,
            Self::Managed { uid, .. } => *uid,
        }
    }

    /// An error when its bytes are no longer those of one moment.
    pub(super) fn check(&self, path: &Path) -> Result<()> {
        let Self::Plain { file, .. } = self else { return Ok(()) };
        if file.is_wanted().doing("watch the lease of", path)? {
            let path = path.display();
            return Err(StoreError::InUse(format!("a program opened {path} for writing while it was being copied; try again when that has ended")));
        }
        Ok(())
    }

    /// Reads its bytes for as long as the returned function lives: (buffer, from); false when it ends before.
    pub(super) fn reader<'a>(&'a self, store: &'a Store<'a>, path: &'a Path, clocks: Option<&'a dyn DevicesMap>) -> Result<Box<Read<'a>>> {
        match self {
            Self::Plain { file, .. } => Ok(Box::new(move |buf, from| Ok(file.read_at(buf, from).doing("read", path)? == buf.len()))),
            Self::Managed { id, layout, .. } => {
                let mut objects = Objects::new(store, *id, view(store, *id, layout)?, Opening::READ).behind(clocks);
                Ok(Box::new(move |buf, from| objects.read(from, buf).map(|_| true)))
            }
        }
    }

    /// From now on the writers of a managed file mark what they write, of whom none is at it who does not know of the copies in `container` yet.
    pub(super) fn announce(&self, store: &Store<'_>, path: &Path, container: u64, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
        match self {
            Self::Plain { .. } => Ok(()),
            Self::Managed { id, .. } => marking::announce(store, *id, path, container, go_on),
        }
    }

    /// All of it is durable that was copied, and it is still what was copied.
    pub(super) fn settle(&self, store: &Store<'_>, path: &Path) -> Result<()> {
        match self {
            Self::Plain { file, was, .. } => {
                // What is copied must not be lost to a power cut that leaves the file's times.
                file.sync(FsyncPoint::CopySource).doing("flush", path)?;
                self.check(path)?;
                let named = store.medium.stat(path).doing("look at", path)?;
                let now = file.stat().doing("look at", path)?;
                if !is_same(&now, was) || !named.is_some_and(|named| is_same(&named, was)) {
                    return Err(changed(path));
                }
                Ok(())
            }
            Self::Managed { id, .. } => {
                // Those that no byte has come to are not made yet.
                let mut made = BTreeSet::new();
                for object in objects_of(&store.layout(*id)?) {
                    if objects::is_there(store, *id, object)? {
                        made.insert(object);
                    }
                }
                sync_slices(store, *id, &made, Span::to_end(0), FsyncPoint::CopySource)
            }
        }
    }
}

/// The id of the file of this store that a path leads to; `None` for a path of anything else.
fn managed_id(store: &Store<'_>, path: &Path) -> Result<Option<u64>> {
    use std::os::unix::ffi::OsStrExt;
    if store.medium.stat(path).doing("look at", path)?.is_none_or(|stat| stat.kind != Kind::Link) {
        return Ok(None);
    }
    let text = match store.medium.read_link(path) {
        // Removed, or replaced by a plain file, since it was looked at.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => return Err(gone(path)),
        text => text.doing("read", path)?,
    };
    match parse_link(text.as_os_str().as_bytes()) {
        None => Ok(None),
        Some((root, id)) if root == store.root.as_os_str().as_bytes() => Ok(Some(id)),
        Some((root, _)) => Err(StoreError::Invalid(format!(
            "{}: is a managed file of the store {}; give that one",
            path.display(),
            Path::new(std::ffi::OsStr::from_bytes(root)).display()
        ))),
    }
}

fn is_missing(error: &StoreError) -> bool {
    match error {
        StoreError::NotFound(_) => true,
        StoreError::Io { source, .. } => source.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

/// An error for a managed file that goes while it is looked at.
pub(super) fn gone(path: &Path) -> StoreError {
    StoreError::NotFound(format!("{} is being made or was removed just now; name a file that stays", path.display()))
}

/// An error for a file that changed under the copying.
pub(super) fn changed(path: &Path) -> StoreError {
    StoreError::InUse(format!("{} was changed while it was being copied; try again later", path.display()))
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    let of = |stat: &Stat| (stat.dev, stat.ino, stat.size, stat.mtime_ns, stat.ctime_ns);
    of(one) == of(other)
}

fn check_path(store: &Store<'_>, path: &Path) -> Result<()> {
    let invalid = |why: &str| Err(StoreError::Invalid(format!("{}: {why}", path.display())));
    let Some(stat) = store.medium.stat(path).doing("look at", path)? else {
        return Err(StoreError::NotFound(format!("{} does not exist; name a file", path.display())));
    };
    if stat.kind == Kind::Link {
        return invalid("is a symbolic link; name the file it leads to");
    }
    if stat.kind != Kind::File {
        return invalid("is not a regular file; only those have copies");
    }
    let inside = std::iter::once(&store.root).chain(store.targets.iter().map(|target| &target.path)).find(|dir| path.starts_with(dir));
    match inside {
        Some(dir) => invalid(&format!("lies in {}, which belongs to the store; move it elsewhere first", dir.display())),
        None => Ok(()),
    }
}

fn open_source(store: &Store<'_>, path: &Path, lease: bool) -> Result<Box<dyn Leased>> {
    match store.medium.open_leased(path, Others::Readers, lease) {
        Ok(Some(file)) => Ok(file),
        Ok(None) => Err(StoreError::InUse(format!("{} is open for writing in a program; close it there, then make its copies", path.display()))),
        Err(e) if e.kind() == std::io::ErrorKind::Unsupported => Err(StoreError::Invalid(format!(
            "{}: no lease on it, so that nobody can tell who opens it for writing: its file system knows none, or you are neither its owner nor root; \
             stop all programs that write it and add --without-lease",
            path.display()
        ))),
        Err(e) => Err(StoreError::io("open", path, e)),
    }
}

/// What the plain file is, once it has been left alone long enough. By its last change of anything, which nobody can set.
fn settled(store: &Store<'_>, source: &dyn Leased, path: &Path) -> Result<Stat> {
    let was = source.stat().doing("look at", path)?;
    let age_ms = store.medium.now_s().saturating_mul(1000).saturating_sub(was.ctime_ns / 1_000_000);
    let young_ms = (AGE_MS as i64).saturating_sub(age_ms);
    if young_ms > 0 {
        // A clock that is behind the file system's is no reason to wait longer.
        store.medium.pause((young_ms as u64).min(AGE_MS) + 100);
        if !is_same(&source.stat().doing("look at", path)?, &was) {
            return Err(StoreError::InUse(format!("{} is being changed; make its copies when it is not", path.display())));
        }
    }
    Ok(was)
}
