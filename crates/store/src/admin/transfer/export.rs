//! Turning a managed file into a plain one in place, or copying it out. The plain file is complete and durable under a temporary name
//! before it takes the link's place in one step; only then do the store's parts go, through the trash.

use std::path::{Path, PathBuf};

use stripewise_target::interface::Opening;
use stripewise_target::within::TEXT_BYTES_MAX;

use crate::admin::copies::remove;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::quoted;
use crate::admin::info::{current_size, link_path, resolve};
use crate::admin::medium::{FsyncPoint, Open, Root};
use crate::admin::metadata::container::is_container;
use crate::admin::metadata::journal::{Journal, Way};
use crate::admin::metadata::link::{names_file, parse_link_record};
use crate::admin::metadata::publish::sync_dir;
use crate::admin::metadata::reader::{Objects, layout_bytes, view};
use crate::admin::metadata::settle::settle_export;
use crate::admin::metadata::size::{open_ctl, sane_size};
use crate::admin::moves::apply::{self, forget_usage};
use crate::admin::store::Store;
use crate::copies::Original;

/// What an export did.
#[derive(Clone, Debug, Default, serde::Serialize, PartialEq, Eq)]
pub struct Exported {
    /// The plain file.
    pub path: String,
    pub size: u64,
    /// Bytes of data that were copied.
    pub data_bytes: u64,
    /// Whether the store had copies of it, which went with it.
    pub dropped_copies: bool,
}

/// The file that a path of this store names: by the link it was made with, or a copy of it.
///
/// # Errors
/// `Invalid` when it is not a managed file of this store.
pub fn file_at(store: &Store<'_>, path: &Path) -> Result<u64> {
    match resolve(store.medium, path)? {
        Some((root, id)) if root == store.root => Ok(id),
        Some((root, _)) => {
            Err(StoreError::Invalid(format!("{} is a file of the store {}, not of {}", path.display(), root.display(), store.root.display())))
        }
        None => Err(StoreError::Invalid(format!("{} is not a managed file; see `stripewise store ls`", path.display()))),
    }
}

/// Makes the managed file behind the link `path` (absolute, its directory resolved) a plain one again.
///
/// # Errors
/// `InUse` with the processes that have it open, `Invalid` when the link is a copy, or the file holds copies. The file is then managed as before.
pub fn export(store: &Store<'_>, path: &Path) -> Result<Exported> {
    let _session = store.lock_shared()?;
    let place = path.parent().unwrap_or(Path::new("/"));
    store.medium.hold(place, Root::Place).doing("open", place)?;
    let id = file_at(store, path)?;
    check_no_copies(store, id, path)?;
    check_link(store, id, path)?;
    crate::admin::metadata::settle::recover(store, id)?;
    if !names_file(store, path, id)? {
        return Err(StoreError::Exists(format!("{} is a plain file now: an interrupted export was finished", path.display())));
    }
    let layout = store.layout(id)?;
    if store.medium.stat(&store.part(id, "ctl")).doing("look at", path)?.is_none() {
        drop(open_ctl(store, id, &layout)?);
    }
    let _alone = store.lock_file(id, path)?;
    apply::recover(store, id)?;
    let layout = store.layout(id)?;
    let words = open_ctl(store, id, &layout)?;
    // Should the export be undone, the file is what it was, and ends where it says.
    crate::admin::metadata::cutting::trim(store, id, &layout, words.ctl())?;
    let size = sane_size(store, id, words.ctl())?;
    drop(words);
    let mut journal = Journal { way: Way::Out, ino: 0, size, mtime_ns: 0, path: path.to_path_buf() };
    let result = journal.begin(store, id).and_then(|_held| {
        let data_bytes = copy_out(store, id, &journal.temporary(id), size)?;
        let temporary = journal.temporary(id);
        let stat = store.medium.stat(&temporary).doing("look at", &temporary)?;
        journal.ino = stat.map_or(0, |s| s.ino);
        journal.rewrite(store, id)?;
        store.medium.rename(&temporary, path).doing("put the plain file at", path)?;
        Ok(data_bytes)
    });
    // Finishes what was done, or takes back what was begun; the first error is the one to report.
    let settled = settle_export(store, id, &journal);
    let data_bytes = result?;
    settled?;
    let run = store.run_dir();
    // Copies are of what the store holds; those that a kill leaves here count no more, and go with the next gc.
    let dropped_copies = remove::clear(store, &String::from_utf8_lossy(Original::managed(id, size).record_name().as_bytes()))?;
    forget_usage(store, store.medium.devices(&run, store.targets.len(), false).unwrap_or(None).as_deref());
    Ok(Exported { path: path.to_string_lossy().into_owned(), size, data_bytes, dropped_copies })
}

/// Copies a managed file to a plain one at `to` (absolute), which must not exist; the store keeps its own.
///
/// # Errors
/// `Exists`, `Io`.
pub fn export_to(store: &Store<'_>, id: u64, to: &Path) -> Result<Exported> {
    let _session = store.lock_shared()?;
    let place = to.parent().unwrap_or(Path::new("/"));
    store.medium.hold(place, Root::Place).doing("open", place)?;
    if store.medium.stat(to).doing("look at", to)?.is_some() {
        return Err(StoreError::Exists(format!("{} exists already; choose another name", to.display())));
    }
    let size = current_size(store, id, &store.layout(id)?)?;
    let journal = Journal { way: Way::Out, ino: 0, size, mtime_ns: 0, path: to.to_path_buf() };
    let temporary = journal.temporary(id);
    let copied = copy_out(store, id, &temporary, size).and_then(|data_bytes| {
        store.medium.rename(&temporary, to).doing("put the plain file at", to)?;
        sync_dir(store, to.parent().unwrap_or(Path::new("/")), FsyncPoint::Swap)?;
        Ok(data_bytes)
    });
    if copied.is_err() {
        let _ = store.medium.unlink(&temporary);
    }
    Ok(Exported { path: to.to_string_lossy().into_owned(), size, data_bytes: copied?, dropped_copies: false })
}

/// Writes the file's bytes and attributes to a plain file at `to`, durably; what a killed export left there goes first.
fn copy_out(store: &Store<'_>, id: u64, to: &Path, size: u64) -> Result<u64> {
    if store.medium.stat(to).doing("look at", to)?.is_some() {
        store.medium.unlink(to).doing("remove", to)?;
    }
    let bytes = layout_bytes(store, id)?;
    let mut objects = Objects::new(store, id, view(store, id, &bytes)?, Opening::READ);
    let plain = store.medium.open(to, Open::CreateNew).doing("make", to)?;
    let mut data_bytes = 0;
    objects.stream(0, size, false, |at, part| {
        data_bytes += part.len() as u64;
        plain.write_at(part, at).doing("write", to)?;
        Ok(true)
    })?;
    plain.set_len(size).doing("set the length of", to)?;
    let head = store.part(id, "head");
    let like = store.medium.attributes(&head).doing("look at", &head)?;
    plain.give_all(&like).doing("give the attributes of the file to", to)?;
    plain.sync(FsyncPoint::ExportData).doing("flush", to)?;
    Ok(data_bytes)
}

/// A file that holds copies is the store's own: as a plain one it would be nobody's.
fn check_no_copies(store: &Store<'_>, id: u64, path: &Path) -> Result<()> {
    if !is_container(store, id)? {
        return Ok(());
    }
    Err(StoreError::Invalid(format!(
        "{}: holds copies and is none of your files, so it stays in the store; `stripewise store replica ls {root}` says whose copies they are, and \
         `stripewise store replica rm {root} FILE` drops them",
        path.display(),
        root = quoted(&store.root)
    )))
}

/// The link must be the file's name: a copy of it would leave the name behind, leading nowhere.
fn check_link(store: &Store<'_>, id: u64, path: &Path) -> Result<()> {
    let record = crate::admin::medium::read_small(store.medium, &store.part(id, "link"), TEXT_BYTES_MAX).unwrap_or_default();
    let ino = store.medium.stat(path).doing("look at", path)?.map_or(0, |s| s.ino);
    let Some((_, recorded, _)) = parse_link_record(&record) else { return Ok(()) };
    if recorded == ino {
        return Ok(());
    }
    let name: PathBuf = link_path(store, id).unwrap_or_default();
    if name == path {
        return Err(StoreError::Invalid(format!(
            "{} is not the link that was made with the file; make it the file's name with `stripewise store relink {}`, or copy with --to",
            path.display(),
            quoted(path)
        )));
    }
    Err(StoreError::Invalid(format!(
        "{} is a copy of the link {}; export that one, copy with --to, or make this the file's name with `stripewise store relink`",
        path.display(),
        name.display()
    )))
}
