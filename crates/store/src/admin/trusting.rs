//! Whether a verb uses a store that a link names, and that nobody named on the command line: by the rule of [`crate::trust`], as the preloaded library
//! does.

use std::ffi::CString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use stripewise_target::within::{Expected, open_file, open_root};

use super::error::{Context, Result, StoreError};
use super::medium::Handle;
use crate::trust::{LIST_BYTES_MAX, OVERFLOW_UID, SITE_LIST, is_listed, owner_is_trusted};

/// Who owns a store, and whether it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Judged {
    /// The owner of its directory.
    pub owner: u32,
    /// Whether it is the user's own or root's.
    pub by_owner: bool,
    /// Whether the user or the site has listed it.
    pub by_list: bool,
}

/// Judges the store at `root` for this process's effective user; `listed` are the user's own entries, one a line.
///
/// # Errors
/// `Io` when its directory cannot be looked at, or everybody may write it.
pub fn judge(root: &Path, listed: &[u8]) -> Result<Judged> {
    let path = root.as_os_str().as_bytes();
    let name = CString::new(path).map_err(|_| StoreError::Invalid("a store's path holds a NUL byte; give another".into()))?;
    let (_, stat) = open_root(&name, &[]).map_err(|why| super::refused::refused(root, why)).doing("open", root)?;
    let overflow = std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok().and_then(|text| text.trim().parse().ok()).unwrap_or(OVERFLOW_UID);
    let by_owner = owner_is_trusted(stat.st_uid, rustix::process::geteuid().as_raw(), overflow);
    Ok(Judged { owner: stat.st_uid, by_owner, by_list: is_listed(listed, b'\n', path) || is_listed(&site_list(), b'\n', path) })
}

/// What root has listed for everybody; a list that others may write counts for nothing.
fn site_list() -> Vec<u8> {
    let read = || {
        let path = Path::new(std::ffi::OsStr::from_bytes(SITE_LIST.to_bytes()));
        let name = CString::new(path.file_name()?.as_bytes()).ok()?;
        let dir = openat(CWD, path.parent()?, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let (file, stat) = open_file(dir.as_fd(), &name, OFlags::RDONLY, Expected::of(&[0]).at_most(LIST_BYTES_MAX as u64).hard_links_too()).ok()?;
        let mut list = vec![0u8; stat.st_size as usize];
        let got = super::disk::RealFile::new(file).read_at(&mut list, 0).ok()?;
        list.truncate(got);
        (stat.st_mode & 0o022 == 0).then_some(list)
    };
    read().unwrap_or_default()
}
