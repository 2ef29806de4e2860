//! Copies of plain files beside them ([`crate::copies`]): made, listed, dropped. A container has its name before it has bytes and its record last, so what a
//! kill leaves is found by the name, and nobody reads copies that are not whole and durable.

mod gather;
pub mod list;
pub mod make;
mod marking;
pub mod remove;
mod source;
pub mod spec;
mod standing;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::error::{Context, Result};
use super::medium::Kind;
use super::metadata::container::copies_dir;
use super::metadata::link::recorded;
use super::store::Store;
use crate::copies::CONTAINER_SUFFIX;
use crate::marks::MARKS_SUFFIX;
use crate::names::parse_link;

/// Part of a container's directory that whoever fills it has locked.
const FILLING: &str = "copying";

/// The record of a name.
fn record_path(store: &Store<'_>, name: &str) -> PathBuf {
    copies_dir(store).join(name)
}

/// The marks of a managed file's copies.
fn marks_path(store: &Store<'_>, name: &str) -> PathBuf {
    let mut text = name.as_bytes().to_vec();
    text.extend_from_slice(MARKS_SUFFIX);
    copies_dir(store).join(OsStr::from_bytes(&text))
}

/// The link of its container.
fn link_path(store: &Store<'_>, name: &str) -> PathBuf {
    let mut text = name.as_bytes().to_vec();
    text.extend_from_slice(CONTAINER_SUFFIX);
    copies_dir(store).join(OsStr::from_bytes(&text))
}

/// The file that the link of a container leads to.
fn linked(store: &Store<'_>, name: &str) -> Result<Option<u64>> {
    let link = link_path(store, name);
    if store.medium.stat(&link).doing("look at", &link)?.is_none_or(|stat| stat.kind != Kind::Link) {
        return Ok(None);
    }
    let text = store.medium.read_link(&link).doing("read", &link)?;
    Ok(parse_link(text.as_os_str().as_bytes()).filter(|(root, _)| *root == store.root.as_os_str().as_bytes()).map(|(_, id)| id))
}

/// Whether file `id` is the container of a name. By the file's own record of its name, which only its owner and the store's can have written: a record of
/// copies, which anybody may put into a shared store, is no word on other files.
fn is_container_of(store: &Store<'_>, id: u64, name: &str) -> Result<bool> {
    let link = link_path(store, name);
    match recorded(store, id)? {
        Some((_, _, path)) => Ok(path == link),
        // Killed between the link and the record of it: both are whose the file is.
        None => {
            let of = |path: PathBuf| store.medium.stat(&path).doing("look at", &path);
            let (dir, link) = (of(store.file_dir(id))?, of(link)?);
            Ok(linked(store, name)? == Some(id) && dir.is_some_and(|dir| link.is_some_and(|link| link.uid == dir.uid)))
        }
    }
}
