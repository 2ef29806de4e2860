//! What a store can tell about itself: targets, files, counters; all from its own files, never from the index.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use serde::Serialize;
use serde_json::{Value, json};

use super::capacity::room_bytes;
use super::error::{Context, Result};
use super::ids::{id_text, path_of};
use super::medium::{Kind, Medium};
use super::metadata::journal;
use super::metadata::link::{names_file, recorded};
use super::metadata::size::{recovered_size, size_by_what_is_there};
use super::metadata::unlinked::was_unlinked;
use super::objects;
use super::spec::{OriginJson, regions_json};
use super::store::Store;
use crate::bin::STORE_VERSION;
use crate::ctl::boot_words;
use crate::names::parse_link;

/// One managed file.
#[derive(Clone, Debug, Serialize)]
pub struct FileInfo {
    /// 16 hexadecimal digits.
    pub id: String,
    /// Where its link was made; empty when no record of it is left.
    pub path: String,
    /// Bytes; where there is an error, a lower bound.
    pub size: u64,
    /// Generation of its layout.
    pub generation: u64,
    /// Regions of its layout.
    pub regions: usize,
    /// What is wrong with it, when it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The store as JSON: path, version, uuid, targets.
pub fn store_info(store: &Store<'_>) -> Value {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let targets: Vec<Value> = store
        .targets
        .iter()
        .map(|t| {
            json!({"name": t.name, "path": t.path.to_string_lossy(), "class": t.class.name(), "kind": t.kind.name(),
                "capacity_bytes": t.capacity_bytes, "startup_read_ns": t.model.startup_read_ns, "startup_write_ns": t.model.startup_write_ns,
                "read_ps_per_byte": t.model.read_ps_per_byte, "write_ps_per_byte": t.model.write_ps_per_byte})
        })
        .collect();
    json!({"store": store.root.to_string_lossy(), "version": STORE_VERSION, "uuid": hex(&store.uuid), "toml_sha256": hex(&store.toml_sha256),
        "region_bytes": store.region_bytes, "targets": targets, "rules": store.rules.len()})
}

/// All files, by id. One that cannot be read is listed with its error.
///
/// # Errors
/// `Io` of `files/` itself.
pub fn store_files(store: &Store<'_>) -> Result<Vec<FileInfo>> {
    Ok(store.ids()?.into_iter().map(|id| file_info(store, id)).collect())
}

fn file_info(store: &Store<'_>, id: u64) -> FileInfo {
    let path = link_path(store, id).map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    let mut info = FileInfo { id: id_text(id), path, size: 0, generation: 0, regions: 0, error: None };
    let mut read = || -> Result<()> {
        let layout = store.layout(id)?;
        (info.generation, info.regions) = (layout.generation, layout.regions.len());
        info.size = size_at_least(store, id, &layout)?;
        info.size = current_size(store, id, &layout)?;
        Ok(())
    };
    info.error = read().err().map(|e| e.to_string());
    info
}

/// The size without changing anything: from ctl when it is of this boot, else as recovery would find it.
///
/// # Errors
/// Those of [`recovered_size`].
pub fn current_size(store: &Store<'_>, id: u64, layout: &stripewise_layout::Layout) -> Result<u64> {
    if let Some(size) = size_in_ctl(store, id)? { Ok(size) } else { recovered_size(store, id, layout) }
}

/// As [`current_size`], but a lower bound where it is to be recovered and targets are away: for those who look after objects, and show no size.
///
/// # Errors
/// Those of [`size_by_what_is_there`].
pub fn size_at_least(store: &Store<'_>, id: u64, layout: &stripewise_layout::Layout) -> Result<u64> {
    if let Some(size) = size_in_ctl(store, id)? { Ok(size) } else { size_by_what_is_there(store, id, layout) }
}

/// `None` where ctl is damaged, or of another boot.
fn size_in_ctl(store: &Store<'_>, id: u64) -> Result<Option<u64>> {
    let boot = boot_words(&store.boot_id()?);
    if let Ok(map) = store.medium.ctl(&store.part(id, "ctl"), false)
        && map.ctl().is_valid()
        && map.ctl().boot_is(boot)
        && let Some(size) = map.ctl().sane_size()
    {
        return Ok(Some(size));
    }
    Ok(None)
}

/// Where a file's link was made.
pub fn link_path(store: &Store<'_>, id: u64) -> Option<PathBuf> {
    recorded(store, id).ok()?.map(|(_, _, path)| path)
}

/// Files whose recorded name leads to them no more, though nobody removed them through the library.
#[derive(Clone, Debug, Serialize)]
pub struct Nameless {
    /// They.
    pub files: Vec<FileInfo>,
    /// Of how many files the names were looked at, and how many there are.
    pub looked_at: usize,
    pub of: usize,
}

/// Looks at the recorded names of the first `most` files. Which of them lead elsewhere now, only `gc` finds out.
///
/// # Errors
/// `Io` of `files/` itself.
pub fn nameless(store: &Store<'_>, most: usize) -> Result<Nameless> {
    let ids = store.ids()?;
    let looked_at = ids.len().min(most);
    // What cannot be looked at has its name as far as anybody knows.
    let gone = ids.iter().take(looked_at).filter(|id| is_nameless(store, **id).unwrap_or(false));
    Ok(Nameless { files: gone.map(|id| file_info(store, *id)).collect(), looked_at, of: ids.len() })
}

/// One that is under way into the store or out of it, or goes with its last user, is none.
fn is_nameless(store: &Store<'_>, id: u64) -> Result<bool> {
    let Some((_, _, name)) = recorded(store, id)? else { return Ok(false) };
    if names_file(store, &name, id)? || was_unlinked(store, id)? {
        return Ok(false);
    }
    Ok(matches!(journal::find(store, &store.file_dir(id))?, journal::Found::Nothing))
}

/// A file's layout as JSON: generation, size, regions, and the move if there is one. Where the size cannot be told it is a lower bound, and `size_error`
/// says why.
///
/// # Errors
/// As [`Store::layout`].
pub fn layout_json(store: &Store<'_>, id: u64) -> Result<Value> {
    let layout = store.layout(id)?;
    let size = size_at_least(store, id, &layout)?;
    let error = current_size(store, id, &layout).err().map(|e| e.to_string());
    Ok(json!({"id": id_text(id), "generation": layout.generation, "size": size, "size_error": error, "origin": OriginJson::of(layout.origin),
        "regions": regions_json(&layout.regions),
        "pending": regions_json(&layout.pending), "retired": regions_json(&layout.retired)}))
}

/// Counters of all targets since boot; zeros when no program has used the store.
///
/// # Errors
/// `Io`.
pub fn devices_json(store: &Store<'_>) -> Result<Value> {
    let run = store.run_dir();
    let map = store.medium.devices(&run, store.targets.len(), false).doing("map the device clocks in", &run)?;
    let room = room_bytes(store)?;
    let mut targets = Vec::new();
    for (index, target) in store.targets.iter().enumerate() {
        let devices = map.as_ref().map(|m| m.devices());
        let line = devices.as_ref().and_then(|d| d.line(index as u32));
        let of =
            |pick: fn(&stripewise_target::devices::DeviceLine) -> &std::sync::atomic::AtomicU64| line.map_or(0, |l| pick(&l).load(Ordering::Relaxed));
        let away = super::identity::mismatch(store.medium, &target.path, &store.uuid, index).map(|why| why.told(&store.root, &target.name));
        let files = if away.is_some() { None } else { Some(files_on(store, index as u32)?) };
        targets.push(json!({"name": target.name, "away": away, "files": files,
            "free_bytes": room.get(index).copied().flatten().filter(|_| away.is_none()),
            "io_errors": of(|l| &l.io_errors), "last_error": match of(|l| &l.last_errno) {
                0 => None,
                errno => Some(std::io::Error::from_raw_os_error(errno as i32).to_string()),
            },
            "accesses_read": of(|l| &l.accesses_read), "accesses_write": of(|l| &l.accesses_write),
            "bytes_read": of(|l| &l.bytes_read), "bytes_written": of(|l| &l.bytes_written),
            "busy_read_ns": of(|l| &l.busy_read_ns), "busy_write_ns": of(|l| &l.busy_write_ns), "startups": of(|l| &l.startups)}));
    }
    Ok(json!({"targets": targets}))
}

/// Files that have an object on a target.
fn files_on(store: &Store<'_>, target: u32) -> Result<usize> {
    let ids: std::collections::BTreeSet<u64> = objects::list(store, target)?.into_iter().map(|name| name.file).collect();
    Ok(ids.len())
}

/// The links of a directory that lead to files of the store, by file; none where there is no such directory.
///
/// # Errors
/// `Io`.
pub fn links_in(store: &Store<'_>, dir: &Path) -> Result<BTreeMap<u64, PathBuf>> {
    let mut links = BTreeMap::new();
    if store.medium.stat(dir).doing("look at", dir)?.is_none_or(|s| s.kind != Kind::Dir) {
        return Ok(links);
    }
    for link in store.medium.list(dir).doing("list", dir)?.into_iter().map(|name| dir.join(name)) {
        let is_link = store.medium.stat(&link).doing("look at", &link)?.is_some_and(|s| s.kind == Kind::Link);
        if is_link && let Some((_, id)) = resolve(store.medium, &link).ok().flatten().filter(|(root, _)| *root == store.root) {
            links.entry(id).or_insert(link);
        }
    }
    Ok(links)
}

/// Links that may be followed before a managed one is reached, as in the kernel.
const MAX_LINKS: usize = 40;

/// The store and id that a path leads to; `None` when it is not a managed file.
///
/// # Errors
/// `Io`, a loop of links included.
pub fn resolve(medium: &dyn Medium, path: &Path) -> Result<Option<(PathBuf, u64)>> {
    let mut at = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(text) = medium.read_link(&at) else { return Ok(None) };
        if let Some((store, id)) = parse_link(text.as_os_str().as_bytes()) {
            return Ok(Some((path_of(store), id)));
        }
        at = at.parent().unwrap_or(Path::new("/")).join(text);
    }
    Err(super::error::StoreError::io("follow the links of", path, rustix::io::Errno::LOOP.into()))
}
