//! Managed files by name: recognising their symbolic links, and stat, access, unlink, rename on them.

use crate::file::{self, File};
use crate::size;
use crate::store::{self, Store};
use crate::sys::{self, Errno, Sys};
use core::ffi::CStr;
use core::sync::atomic::Ordering;
use stripewise_store::ctl::FLAG_UNLINKED;
use stripewise_store::names::{self, FixedPath, PATH_MAX};

/// Links that may be followed before a managed one is reached, as in the kernel.
const MAX_LINKS: usize = 40;

/// A managed file that a name leads to.
#[derive(Clone, Copy)]
pub struct Managed {
    /// Its store, attached.
    pub store: &'static Store,
    /// Its id.
    pub id: u64,
    /// Inode of the symbolic link that led there.
    link: u64,
}

/// The managed file that `path` names, directly or (with `follow`) through symbolic links; `None` for anything else.
///
/// # Safety
/// `path` is a C string or null.
pub unsafe fn find(dirfd: i32, path: *const libc::c_char, follow: bool) -> Sys<Option<Managed>> {
    if path.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    find_str(dirfd, unsafe { CStr::from_ptr(path) }, follow)
}

/// The same for a checked string.
pub fn find_str(dirfd: i32, path: &CStr, follow: bool) -> Sys<Option<Managed>> {
    let mut text = [0u8; PATH_MAX];
    let Ok(mut target) = sys::readlinkat(dirfd, path, &mut text) else { return Ok(None) };
    let mut name = FixedPath::from_bytes(path.to_bytes());
    let mut second = [0u8; PATH_MAX];
    for _ in 0..MAX_LINKS {
        if let Some((store, id)) = names::parse_link(target) {
            let link = name.as_c_str().and_then(|n| sys::lstat_at(dirfd, n).ok()).map_or(0, |st| st.st_ino);
            return Ok(Some(Managed { store: store::attach(store)?, id, link }));
        }
        if !follow {
            return Ok(None);
        }
        // A relative link counts from its own directory.
        let next = if target.first() == Some(&b'/') {
            FixedPath::from_bytes(target)
        } else {
            let dir = name.as_bytes().iter().rposition(|c| *c == b'/').map_or(0, |slash| slash + 1);
            let mut next = FixedPath::from_bytes(name.as_bytes().get(..dir).unwrap_or(&[]));
            next.push(target);
            next
        };
        name = next;
        let Some(c_name) = name.as_c_str() else { return Ok(None) };
        match sys::readlinkat(dirfd, c_name, &mut second) {
            Ok(found) => {
                let len = found.len();
                text = second;
                target = text.get(..len).unwrap_or(&[]);
            }
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// Puts the logical size and the objects' blocks into a stat of head.
pub fn patch_stat(file: &'static File, st: &mut libc::stat) -> Sys<()> {
    let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
    st.st_size = ctl.size() as i64;
    // The name is gone though head is still there.
    if ctl.header().flags.load(Ordering::Acquire) & FLAG_UNLINKED != 0 {
        st.st_nlink = 0;
    }
    st.st_blocks = blocks(file)?;
    Ok(())
}

fn blocks(file: &'static File) -> Sys<i64> {
    let loaded = file.current()?;
    let mut sum = 0;
    for (target, plane) in loaded.objects() {
        sum += sys::fstat(file.object(target, plane)?)?.st_blocks;
    }
    Ok(sum)
}

impl Managed {
    /// Runs `work` with the file open.
    pub fn with<T>(&self, work: impl FnOnce(&'static File) -> Sys<T>) -> Sys<T> {
        let index = file::acquire(self.store, self.id)?;
        let result = file::get(index).ok_or(Errno(libc::EIO)).and_then(work);
        file::release(index);
        result
    }

    /// Whether the link is a copy (made by `cp -a`, `tar`, `rsync` without the library): a name, but not the file. Told by the inode that
    /// was recorded for the link; device numbers change from boot to boot.
    pub fn is_copy(&self) -> bool {
        let mut text = [0u8; PATH_MAX + 64];
        let record = names::file_part(self.store.path(), self.id, b"link");
        let Some(text) = record.as_c_str().and_then(|p| sys::read_file(p, &mut text).ok()) else { return false };
        let inode = text.split(|c| *c == b' ').nth(1).and_then(|w| core::str::from_utf8(w).ok()?.parse::<u64>().ok());
        inode.is_some_and(|inode| inode != self.link)
    }

    /// Path of its head.
    pub fn head(&self) -> FixedPath {
        names::file_part(self.store.path(), self.id, b"head")
    }

    /// stat.
    pub fn stat(&self) -> Sys<libc::stat> {
        let mut st = sys::stat(self.head().as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?, 0)?;
        self.with(|file| patch_stat(file, &mut st))?;
        Ok(st)
    }

    /// Puts it into the trash: called when its link is gone. Freed at once when nobody has it open, else by the last closer or by gc.
    pub fn discard(&self) {
        let Ok(index) = file::acquire(self.store, self.id) else { return };
        if let Some(file) = file::get(index)
            && let Some(ctl) = file.ctl().filter(|_| file.may_write())
        {
            ctl.header().flags.fetch_or(FLAG_UNLINKED, Ordering::AcqRel);
        }
        // The release sees the flag, and removes if this was the last.
        file::release(index);
    }
}

/// The last close in this process of an unlinked file: when no other process has it open, it goes for good.
pub fn remove_if_last(file: &'static File) {
    if !file.is_last() {
        return;
    }
    let (Ok(store), Ok(loaded)) = (file.store(), file.current()) else { return };
    let id = file.id();
    let mut trash = FixedPath::from_bytes(store.path());
    trash.push(b"/trash/").push_id(id);
    let dir = names::file_part(store.path(), id, b"");
    let (Some(dir), Some(trash_path)) = (dir.as_c_str(), trash.as_c_str()) else { return };
    // From here on a kill leaves an entry in the trash, which gc finishes.
    if sys::rename(dir, trash_path).is_err() {
        return;
    }
    let Ok(view) = store.view() else { return };
    for target in (0..loaded.view.target_count()).filter(|t| loaded.view.uses_target(*t)) {
        if let Some(target) = view.target(target as usize) {
            for object in [names::object(target.path, id, 0), names::object(target.path, id, 1)] {
                let _ = object.as_c_str().map(|path| sys::unlink(path, 0));
            }
        }
        if let Some(line) = store.devices().and_then(|d| d.line(target)) {
            line.used_bytes.store(u64::MAX, Ordering::Relaxed);
        }
    }
    for part in [&b"/link"[..], b"/sums", b"/layout", b"/ctl", b"/head"] {
        let mut path = trash.clone();
        if let Some(path) = path.push(part).as_c_str() {
            let _ = sys::unlink(path, 0);
        }
    }
    let _ = sys::unlink(trash_path, libc::AT_REMOVEDIR);
}

/// The last close of a writable open file: head shows size and times as they are now.
pub fn at_close(file: &'static File) {
    if file.may_write() {
        let _ = size::mirror_size(file);
    }
}

/// Records where the name of a file lies: "dev ino path", path absolute.
pub fn record_link(store: &Store, id: u64, path: &FixedPath) -> Sys<()> {
    let st = sys::stat(path.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?, libc::AT_SYMLINK_NOFOLLOW)?;
    let mut text = FixedPath::new();
    text.push_decimal(st.st_dev).push(b" ").push_decimal(st.st_ino).push(b" ").push(path.as_bytes()).push(b"\n");
    let target = names::file_part(store.path(), id, b"link");
    let temporary = names::file_part(store.path(), id, b"link.tmp");
    let temporary = temporary.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?;
    let fd = sys::open(temporary, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC, 0o644)?;
    let wrote = sys::write(fd, text.as_bytes());
    sys::close(fd);
    wrote?;
    sys::rename(temporary, target.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?).map(|_| ())
}

/// The absolute path of a name: its directory resolved by the kernel, its last part as it is.
pub fn absolute(dirfd: i32, path: &[u8]) -> Sys<FixedPath> {
    let cut = path.iter().rposition(|c| *c == b'/');
    let (dir, name) = match cut {
        Some(slash) => (path.get(..slash.max(1)).unwrap_or(b"/"), path.get(slash + 1..).unwrap_or(&[])),
        None => (&b"."[..], path),
    };
    let dir = FixedPath::from_bytes(dir);
    let fd = sys::openat(dirfd, dir.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?, libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC, 0)?;
    let mut link = FixedPath::from_bytes(b"/proc/self/fd/");
    link.push_decimal(fd as u64);
    let mut text = [0u8; PATH_MAX];
    let resolved =
        link.as_c_str().ok_or(Errno(libc::ENAMETOOLONG)).and_then(|l| sys::readlinkat(libc::AT_FDCWD, l, &mut text)).map(FixedPath::from_bytes);
    sys::close(fd);
    let mut resolved = resolved?;
    if resolved.as_bytes() != b"/" {
        resolved.push(b"/");
    }
    resolved.push(name);
    Ok(resolved)
}
