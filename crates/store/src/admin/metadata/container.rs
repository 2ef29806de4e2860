//! Containers: the managed files that hold copies of plain files ([`crate::copies`]). They are told from others by their recorded names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use stripewise_target::text::{ID_DIGITS, parse_id};

use super::link::recorded;
use crate::admin::error::Result;
use crate::admin::store::Store;
use crate::copies::{CONTAINER_SUFFIX, COPIES_DIR};

/// `<store>/copies`, where records and the links of containers lie.
#[must_use]
pub fn copies_dir(store: &Store<'_>) -> PathBuf {
    store.root.join(OsStr::from_bytes(COPIES_DIR.to_bytes()))
}

/// The device and inode that the name of a record is of; `None` for a name of anything else.
#[must_use]
pub fn parse_name(name: &[u8]) -> Option<(u64, u64)> {
    let (dev, rest) = name.split_at_checked(ID_DIGITS)?;
    Some((parse_id(dev)?, parse_id(rest.strip_prefix(b"-")?)?))
}

/// Whether the recorded name of file `id` is one of a container.
///
/// # Errors
/// `Io`.
pub fn is_container(store: &Store<'_>, id: u64) -> Result<bool> {
    let Some((_, _, path)) = recorded(store, id)? else { return Ok(false) };
    let name = path.file_name().and_then(|name| name.as_bytes().strip_suffix(CONTAINER_SUFFIX));
    Ok(path.parent() == Some(&copies_dir(store)) && name.and_then(parse_name).is_some())
}
