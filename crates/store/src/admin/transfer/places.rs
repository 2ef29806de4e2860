//! Where a user's own files lie: the directories that a verb acts in, as paths without symbolic links. Root does not follow a link of somebody else's on
//! the way, who could make it lead to a file of root's while the verb runs.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::Errno;

use crate::admin::error::{Context, Result, StoreError};

/// Links that may be followed, as in the kernel.
const MAX_LINKS: usize = 40;

/// A path in full: its directory resolved, its last part as it is.
///
/// # Errors
/// `Io`, and `Invalid` for root on a way through another user's link.
pub fn place(path: &Path) -> Result<PathBuf> {
    let full = std::path::absolute(path).doing("find", path)?;
    match (full.parent(), full.file_name()) {
        (Some(parent), Some(name)) => Ok(resolved(parent)?.join(name)),
        _ => Ok(full),
    }
}

/// A directory's path without symbolic links.
///
/// # Errors
/// As [`place`].
pub fn resolved(dir: &Path) -> Result<PathBuf> {
    let is_root = rustix::process::geteuid().is_root();
    let full = std::path::absolute(dir).doing("find", dir)?;
    let parts = |path: &Path| path.components().map(|part| part.as_os_str().to_os_string()).collect::<VecDeque<OsString>>();
    let mut ahead = parts(&full);
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    while let Some(part) = ahead.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::Normal(name)) => {
                let path = at.join(name);
                let look = || -> std::result::Result<_, Errno> {
                    let fd = openat(CWD, &path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
                    let stat = fstat(&fd)?;
                    let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
                    let text = if is_link { Some(readlinkat(&fd, c"", Vec::new())?) } else { None };
                    Ok((stat.st_uid, text))
                };
                let (owner, text) = look().map_err(|errno| StoreError::io("find", &path, errno.into()))?;
                let Some(text) = text else {
                    at = path;
                    continue;
                };
                links += 1;
                if links > MAX_LINKS {
                    return Err(StoreError::io("follow the links of", dir, Errno::LOOP.into()));
                }
                if is_root && owner != 0 {
                    return Err(StoreError::Invalid(format!(
                        "{}: is a symbolic link of uid {owner}, who could make it lead elsewhere meanwhile; name the directory that it leads to",
                        path.display()
                    )));
                }
                let text = PathBuf::from(OsString::from_vec(text.into_bytes()));
                let mut next = parts(&text);
                next.append(&mut ahead);
                ahead = next;
            }
            Some(Component::ParentDir) => {
                at.pop();
            }
            Some(Component::RootDir) => at = PathBuf::from("/"),
            _ => {}
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    /// A directory of a test's own, and its path without links.
    fn base() -> (tempfile::TempDir, PathBuf) {
        let kept = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(kept.path()).unwrap();
        (kept, path)
    }

    #[test]
    fn a_directory_is_resolved_as_the_kernel_does_and_a_loop_is_an_error() {
        let (_kept, base) = base();
        std::fs::create_dir_all(base.join("a/b")).unwrap();
        symlink("a", base.join("one")).unwrap();
        symlink(base.join("one/b/.."), base.join("two")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        for path in ["a/b", "one/b", "two/b", "two/./b/../b", "one/../a/b"] {
            assert_eq!(resolved(&base.join(path)).unwrap(), std::fs::canonicalize(base.join(path)).unwrap(), "{path}");
        }
        assert_eq!(place(&base.join("one/b/new")).unwrap(), base.join("a/b/new"));
        assert!(resolved(&base.join("loop")).is_err() && resolved(&base.join("none")).is_err());
    }

    #[test]
    fn root_follows_no_link_of_another_user() {
        let (_kept, base) = base();
        std::fs::create_dir(base.join("a")).unwrap();
        symlink("a", base.join("theirs")).unwrap();
        if std::os::unix::fs::lchown(base.join("theirs"), Some(1003), None).is_ok() {
            let error = resolved(&base.join("theirs")).unwrap_err().to_string();
            assert!(error.contains("symbolic link of uid 1003"), "{error}");
        }
    }
}
