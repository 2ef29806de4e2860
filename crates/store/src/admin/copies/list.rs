//! What copies a store has, by their records and by what is left without one, and which of them still count.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Serialize;
use stripewise_layout::{OnWrite, ReplicaRef};

use super::spec::OnWriteJson;
use super::{is_container_of, link_path, linked, marking, record_path};
use crate::admin::error::{Context, Result};
use crate::admin::ids::{id_text, path_of};
use crate::admin::info::size_at_least;
use crate::admin::medium::{Kind, read_small};
use crate::admin::metadata::container::{copies_dir, parse_name};
use crate::admin::metadata::link::recorded;
use crate::admin::store::Store;
use crate::copies::{BUILDING, CONTAINER_SUFFIX, IN_USE, Original, RECORD_BYTES_MAX, Record, state_in};
use crate::marks::MARKS_SUFFIX;

/// Whether copies count, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum State {
    /// Readers of the plain file use them.
    #[serde(rename = "in use")]
    InUse,
    /// The plain file was written, cut or touched since.
    #[serde(rename = "changed")]
    Changed,
    /// Its name leads to another file now, or nowhere.
    #[serde(rename = "gone")]
    Gone,
    /// Somebody dropped them; their container is to be removed.
    #[serde(rename = "dropped")]
    Dropped,
    /// There is a container without a record: it is being made, or that was interrupted.
    #[serde(rename = "unfinished")]
    Unfinished,
    /// The record says nothing that can be used, or its container is missing.
    #[serde(rename = "damaged")]
    Damaged,
}

/// The copies of one plain file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CopyInfo {
    /// Device and inode of the plain file, as in the record's name.
    pub name: String,
    /// Its path when they were made; empty where no record tells.
    pub path: String,
    /// The id of the container; empty where nothing tells.
    pub container: String,
    /// How many replicas.
    pub replicas: usize,
    /// How many of them a write leaves stale where it writes; the others it writes, too.
    pub invalidated: usize,
    /// Bytes of the container.
    pub bytes: u64,
    /// Bytes of a managed file that were written without some of them since: its home is read there.
    pub stale_bytes: u64,
    /// Whether they count.
    pub state: State,
}

/// All copies of a store, by name.
///
/// # Errors
/// `Io` of the directory itself.
pub fn list(store: &Store<'_>) -> Result<Vec<CopyInfo>> {
    let dir = copies_dir(store);
    if store.medium.stat(&dir).doing("look at", &dir)?.is_none_or(|stat| stat.kind != Kind::Dir) {
        return Ok(Vec::new());
    }
    let mut names = BTreeSet::new();
    for name in store.medium.list(&dir).doing("list", &dir)? {
        let bytes = name.as_bytes();
        let stem = bytes.strip_suffix(CONTAINER_SUFFIX).or_else(|| bytes.strip_suffix(MARKS_SUFFIX)).unwrap_or(bytes);
        if parse_name(stem).is_some() {
            names.insert(String::from_utf8_lossy(stem).into_owned());
        }
    }
    names.into_iter().map(|name| info(store, name)).collect()
}

/// Which bytes of its file a replica holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocks {
    /// The first of them.
    pub base: u64,
    /// Bytes of a block.
    pub block: u64,
    /// (stride, count) of the loops, outermost first.
    pub dims: Vec<(u64, u64)>,
    /// What writes do to it.
    pub on_write: OnWriteJson,
    /// Where its first block begins in the container.
    pub at: u64,
}

/// What the replicas of the copies `name` hold, by their numbers; nothing where no record tells.
#[must_use]
pub fn blocks(store: &Store<'_>, name: &str) -> Vec<Blocks> {
    let is_name = parse_name(name.as_bytes()).is_some();
    let bytes = if is_name { read_small(store.medium, &record_path(store, name), RECORD_BYTES_MAX).unwrap_or_default() } else { Vec::new() };
    let replicas = Record::parse(&bytes).map(|record| record.replicas().collect::<Vec<_>>()).unwrap_or_default();
    let blocks = |each: &ReplicaRef<'_>| Blocks {
        base: each.base,
        block: each.block,
        dims: each.dims().collect(),
        on_write: each.on_write.into(),
        at: each.domain_base,
    };
    replicas.iter().map(blocks).collect()
}

fn info(store: &Store<'_>, name: String) -> Result<CopyInfo> {
    let record = record_path(store, &name);
    let container = linked(store, &name)?;
    let mut info = CopyInfo {
        name,
        path: String::new(),
        container: String::new(),
        replicas: 0,
        invalidated: 0,
        bytes: 0,
        stale_bytes: 0,
        state: State::Damaged,
    };
    if store.medium.stat(&record).doing("look at", &record)?.is_none() {
        info.state = State::Unfinished;
        of_container(store, container, &mut info);
        return Ok(info);
    }
    // One that cannot be read, or is not its owner's word alone, is as good as none.
    let bytes = read_small(store.medium, &record, RECORD_BYTES_MAX).unwrap_or_default();
    let Some(parsed) = Record::parse(&bytes).filter(|parsed| parsed.original.record_name().as_bytes() == info.name.as_bytes()) else {
        of_container(store, container, &mut info);
        return Ok(info);
    };
    let path = path_of(parsed.path);
    info.path = path.to_string_lossy().into_owned();
    info.replicas = parsed.view.replica_count();
    info.invalidated = parsed.replicas().filter(|replica| replica.on_write == OnWrite::Invalidate).count();
    let is_whole = of_container(store, Some(parsed.container), &mut info) && is_container_of(store, parsed.container, &info.name)?;
    info.state = match state_in(&bytes) {
        _ if !is_whole || store.medium.stat(&link_path(store, &info.name)).doing("look at", &record)?.is_none() => State::Damaged,
        IN_USE if parsed.original.is_managed() => of_managed_file(store, &parsed, &mut info)?,
        IN_USE => of_plain_file(store, &path, &parsed.original),
        BUILDING => State::Unfinished,
        _ => State::Dropped,
    };
    Ok(info)
}

/// Notes the container; false where it is missing or cannot be used.
fn of_container(store: &Store<'_>, id: Option<u64>, info: &mut CopyInfo) -> bool {
    let Some(id) = id else { return false };
    info.container = id_text(id);
    match store.layout(id).and_then(|layout| size_at_least(store, id, &layout)) {
        Ok(bytes) => info.bytes = bytes,
        Err(_) => return false,
    }
    true
}

/// What a managed file has become; where it has another name now, that is noted.
fn of_managed_file(store: &Store<'_>, record: &Record<'_>, info: &mut CopyInfo) -> Result<State> {
    let id = record.original.ino;
    let head = store.part(id, "head");
    if store.medium.stat(&head).doing("look at", &head)?.is_none() {
        return Ok(State::Gone);
    }
    if let Some((_, _, path)) = recorded(store, id)? {
        info.path = path.to_string_lossy().into_owned();
    }
    Ok(match marking::stale_bytes(store, &info.name, &record.original, record.container)? {
        Some(bytes) => {
            info.stale_bytes = bytes;
            State::InUse
        }
        None => State::Changed,
    })
}

/// What the plain file has become, by the path that it had.
fn of_plain_file(store: &Store<'_>, path: &Path, original: &Original) -> State {
    match store.medium.stat(path) {
        Ok(Some(stat)) if (stat.dev, stat.ino) == (original.dev, original.ino) => {
            let is_same = (stat.size, stat.mtime_ns, stat.ctime_ns) == (original.size, original.mtime_ns, original.ctime_ns);
            if is_same { State::InUse } else { State::Changed }
        }
        Ok(_) => State::Gone,
        // Where we may not look nothing is known against them.
        Err(_) => State::InUse,
    }
}
