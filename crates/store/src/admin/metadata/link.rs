//! A file's name: the record of it in the file's directory, and whether a link leads to the file.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stripewise_target::within::TEXT_BYTES_MAX;

use crate::admin::error::{Context, Result};
use crate::admin::ids::{id_text, quoted};
use crate::admin::medium::{Kind, read_small};
use crate::admin::store::Store;
use crate::names::parse_link;

/// The text of a file's `link` part: device and inode of its symbolic link, and its path.
pub fn link_record(dev: u64, ino: u64, path: &Path) -> Vec<u8> {
    let mut text = format!("{dev} {ino} ").into_bytes();
    text.extend_from_slice(path.as_os_str().as_bytes());
    text.push(b'\n');
    text
}

/// Reads it back: (device, inode, path).
pub fn parse_link_record(bytes: &[u8]) -> Option<(u64, u64, &Path)> {
    let mut parts = bytes.strip_suffix(b"\n")?.splitn(3, |c| *c == b' ');
    let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse::<u64>().ok();
    let (dev, ino) = (number()?, number()?);
    let path = parts.next()?;
    (path.first() == Some(&b'/')).then(|| (dev, ino, Path::new(std::ffi::OsStr::from_bytes(path))))
}

/// What a file's record of its name says.
///
/// # Errors
/// `Io`.
pub fn recorded(store: &Store<'_>, id: u64) -> Result<Option<(u64, u64, PathBuf)>> {
    let path = store.part(id, "link");
    if store.medium.stat(&path).doing("look at", &path)?.is_none() {
        return Ok(None);
    }
    let bytes = read_small(store.medium, &path, TEXT_BYTES_MAX).doing("read", &path)?;
    Ok(parse_link_record(&bytes).map(|(dev, ino, name)| (dev, ino, name.to_path_buf())))
}

/// What a file is called in a message: its id and its recorded name, which is what its user knows; without a record the id alone.
pub fn called(store: &Store<'_>, id: u64) -> String {
    match recorded(store, id) {
        Ok(Some((_, _, name))) => format!("file {} ({})", id_text(id), name.display()),
        _ => format!("file {}", id_text(id)),
    }
}

/// A file's recorded name as a word of a command, if it leads to the file; else the word that stands for one: whoever may write a file chooses what its
/// record says.
pub fn word(store: &Store<'_>, id: u64) -> String {
    let name = recorded(store, id).ok().flatten().map(|(_, _, name)| name);
    name.filter(|name| names_file(store, name, id).unwrap_or(false)).map_or_else(|| "FILE".into(), |name| quoted(&name))
}

/// Whether `path` is a symbolic link that names file `id` of this store.
///
/// # Errors
/// `Io`.
pub fn names_file(store: &Store<'_>, path: &Path, id: u64) -> Result<bool> {
    if store.medium.stat(path).doing("look at", path)?.is_none_or(|s| s.kind != Kind::Link) {
        return Ok(false);
    }
    let text = store.medium.read_link(path).doing("read", path)?;
    Ok(parse_link(text.as_os_str().as_bytes()) == Some((store.root.as_os_str().as_bytes(), id)))
}
