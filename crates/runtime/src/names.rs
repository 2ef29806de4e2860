//! Managed files by name: recognising their symbolic links, and stat, access, unlink, rename on them.

use crate::file::{self, File};
use crate::size;
use crate::store::{self, Store};
use crate::sys::{self, Errno, Sys};
use core::ffi::CStr;
use core::sync::atomic::Ordering;
use stripewise_store::ctl::FLAG_UNLINKED;
use stripewise_store::names::{self, FixedPath, FixedText, PATH_MAX, ProcPath, StorePath};

/// Links that may be followed before a managed one is reached, as in the kernel.
const MAX_LINKS: usize = 40;

/// A managed file that a name leads to.
#[derive(Clone, Copy)]
pub struct Managed {
    /// Its store, attached.
    pub store: &'static Store,
    /// Its id.
    pub id: u64,
    /// Inode of the symbolic link that led there; 0 when a descriptor did.
    link: u64,
    /// Names (hard links) of that symbolic link; 0 when a descriptor led there.
    pub names: u64,
}

/// The managed file that `path` names, directly or (with `follow`) through symbolic links; `None` for anything else.
///
/// # Safety
/// `path` is a C string, null, or no good address (EFAULT).
pub unsafe fn find(dirfd: i32, path: *const libc::c_char, follow: bool) -> Sys<Option<Managed>> {
    // SAFETY: the caller's promise.
    Ok(unsafe { find_link(dirfd, path, follow)? }.map(|(found, _)| found))
}

/// The same, with the name (relative to `dirfd`) of the managed link itself. After any result but EFAULT and ENAMETOOLONG the path can be read.
///
/// # Safety
/// As [`find`].
#[inline(never)] // Its buffers would lie on the stack below every other call by name.
pub unsafe fn find_link(dirfd: i32, path: *const libc::c_char, follow: bool) -> Sys<Option<(Managed, FixedPath)>> {
    if path.is_null() {
        return Ok(None);
    }
    let mut text = [0u8; PATH_MAX];
    // SAFETY: the kernel checks.
    let first = unsafe { sys::readlinkat_raw(dirfd, path, &mut text) };
    if let Err(errno @ Errno(libc::EFAULT | libc::ENAMETOOLONG)) = first {
        return Err(errno);
    }
    // SAFETY: the kernel has just read it.
    let path = unsafe { CStr::from_ptr(path) };
    let len = match first {
        Ok(target) => target.len(),
        Err(Errno(libc::ENOENT)) if leads_through_a_file(dirfd, path) => return Err(Errno(libc::ENOTDIR)),
        Err(_) => return Ok(None),
    };
    follow_links(dirfd, path, &mut text, len, follow)
}

/// Follows a link whose text is the first `len` bytes of `text` until one leads into a store (or, without `follow`, looks at this one only).
#[inline(never)] // Most names are no links: the buffer here would lie on the stack below every call by name.
fn follow_links(dirfd: i32, path: &CStr, text: &mut [u8; PATH_MAX], mut len: usize, follow: bool) -> Sys<Option<(Managed, FixedPath)>> {
    let mut name = FixedPath::from_bytes(path.to_bytes());
    for _ in 0..MAX_LINKS {
        let target = text.get(..len).unwrap_or(&[]);
        if let Some((store, id)) = names::parse_link(target) {
            let (link, names) = name.as_c_str().and_then(|n| sys::lstat_at(dirfd, n).ok()).map_or((0, 1), |st| (st.st_ino, st.st_nlink));
            return Ok(Some((Managed { store: store::attach(store)?, id, link, names }, name)));
        }
        if !follow {
            return Ok(None);
        }
        // A relative link counts from its own directory.
        let is_absolute = target.first() == Some(&b'/');
        let dir = if is_absolute { 0 } else { name.as_bytes().iter().rposition(|c| *c == b'/').map_or(0, |slash| slash + 1) };
        name.truncate(dir);
        name.push(target);
        let Some(c_name) = name.as_c_str() else { return Ok(None) };
        match sys::readlinkat(dirfd, c_name, text) {
            Ok(found) => len = found.len(),
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// Whether a name may lead to an open descriptor: /dev/stdin, /dev/fd/N, /proc/self/fd/N.
pub fn is_of_a_descriptor(name: &[u8]) -> bool {
    match name.strip_prefix(b"/proc/") {
        Some(rest) => rest.windows(4).any(|part| part == b"/fd/"),
        None => name.starts_with(b"/dev/fd/") || name.starts_with(b"/dev/std"),
    }
}

/// The managed file behind a descriptor: given itself (an empty path, with `empty`), or by a name like /proc/self/fd/3 or /dev/stdin, which (with
/// `follow`) the kernel takes for head.
///
/// # Safety
/// `path` is a C string (as [`find`] has found out) or null.
#[inline(never)] // Its buffers would lie on the stack below every other call by name.
pub unsafe fn behind_descriptor(dirfd: i32, path: *const libc::c_char, follow: bool, empty: bool) -> Option<Managed> {
    // SAFETY: the caller's promise.
    let path = if path.is_null() { c"" } else { unsafe { CStr::from_ptr(path) } };
    if path.is_empty() {
        let file = crate::open::of_fd(dirfd).ok().filter(|_| empty)?.file().ok()?;
        return Some(Managed::without_name(file.store().ok()?, file.id()));
    }
    if !follow || !is_of_a_descriptor(path.to_bytes()) {
        return None;
    }
    let fd = sys::openat(dirfd, path, libc::O_PATH | libc::O_CLOEXEC, 0).ok()?;
    let mut text = [0u8; PATH_MAX];
    let head = crate::env::head_of(fd, &mut text);
    sys::close(fd);
    let (store, id) = head?;
    Some(Managed::without_name(store::attach(store).ok()?, id))
}

/// Whether a name that the kernel does not find takes a managed file for a directory: a plain file in its place gives ENOTDIR.
#[inline(never)] // Its buffers would lie on the stack below every other call by name.
pub fn leads_through_a_file(dirfd: i32, path: &CStr) -> bool {
    if crate::env::store_path().is_none() && store::all().next().is_none() {
        return false;
    }
    let mut name = FixedPath::from_bytes(path.to_bytes());
    loop {
        let bytes = name.as_bytes();
        let bare = bytes.iter().rposition(|c| *c != b'/').map_or(0, |last| last + 1);
        let cut = if bare < bytes.len() { bare } else { bytes.iter().rposition(|c| *c == b'/').unwrap_or(0) };
        if cut == 0 {
            return false;
        }
        name.truncate(cut);
        let Some(parent) = name.as_c_str() else { return false };
        let mut text = [0u8; PATH_MAX];
        match sys::readlinkat(dirfd, parent, &mut text) {
            // SAFETY: a C string.
            Ok(_) => return matches!(unsafe { find_link(dirfd, parent.as_ptr(), true) }, Ok(Some(_))),
            Err(Errno(libc::ENOENT)) => {}
            Err(_) => return false,
        }
    }
}

/// Puts the logical size, the names and the objects' blocks into a stat of head.
pub fn patch_stat(file: &'static File, st: &mut libc::stat) -> Sys<()> {
    let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
    st.st_size = ctl.size() as i64;
    // The name is gone though head is still there.
    let gone = ctl.header().flags.load(Ordering::Acquire) & FLAG_UNLINKED != 0;
    st.st_nlink = if gone { 0 } else { 1 + ctl.header().more_names.load(Ordering::Relaxed) };
    st.st_blocks = blocks(file)?;
    Ok(())
}

fn blocks(file: &'static File) -> Sys<i64> {
    let passed = crate::gate::for_read(file)?;
    let mut sum = 0;
    for (target, plane) in passed.loaded.objects() {
        sum += file.object_stat(target, plane)?.st_blocks;
    }
    Ok(sum)
}

impl Managed {
    /// The file behind a descriptor, not behind a name.
    pub fn without_name(store: &'static Store, id: u64) -> Self {
        Self { store, id, link: 0, names: 0 }
    }

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
        if self.link == 0 {
            return false;
        }
        let mut text = [0u8; PATH_MAX + 64];
        let record = names::file_part(self.store.path(), self.id, b"link");
        let Some(text) = record.as_c_str().and_then(|p| sys::read_file(p, &mut text).ok()) else { return false };
        let inode = text.split(|c| *c == b' ').nth(1).and_then(|w| core::str::from_utf8(w).ok()?.parse::<u64>().ok());
        inode.is_some_and(|inode| inode != self.link)
    }

    /// The name that its link is recorded under, if the link still is there.
    pub fn recorded_name(&self) -> Option<FixedPath> {
        let mut text = [0u8; PATH_MAX + 64];
        let record = names::file_part(self.store.path(), self.id, b"link");
        let text = sys::read_file(record.as_c_str()?, &mut text).ok()?;
        let name = text.strip_suffix(b"\n").unwrap_or(text).splitn(3, |c| *c == b' ').nth(2)?;
        let name = FixedPath::from_bytes(name);
        let mut target = [0u8; PATH_MAX];
        let target = sys::readlinkat(libc::AT_FDCWD, name.as_c_str()?, &mut target).ok()?;
        (target == names::link_text(self.store.path(), self.id).as_bytes()).then_some(name)
    }

    /// Path of its head.
    pub fn head(&self) -> StorePath {
        names::file_part(self.store.path(), self.id, b"head")
    }

    /// stat, into the program's struct.
    ///
    /// # Safety
    /// `st` points to a struct stat, or is no good address (EFAULT).
    pub unsafe fn stat(&self, st: *mut libc::stat) -> Sys<()> {
        let head = self.head();
        // SAFETY: a C string; the kernel checks the struct.
        unsafe { sys::fstatat_raw(libc::AT_FDCWD, head.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?.as_ptr(), st, 0)? };
        // SAFETY: the kernel has just filled it.
        let st = unsafe { &mut *st };
        match self.with(|file| patch_stat(file, st)) {
            // Not to be opened by this user before its owner has (a power cut came in between): head has the size of the last close.
            Err(Errno(libc::EACCES)) => {}
            result => result?,
        }
        if self.names > 0 {
            st.st_nlink = self.names;
        }
        Ok(())
    }

    /// A name of it was made, moved or removed: that moves the time of the last status change, and no other.
    pub fn status_changed(&self) {
        let head = self.head();
        let Some(head) = head.as_c_str() else { return };
        let Ok(st) = sys::stat(head, 0) else { return };
        // Giving it to nobody else changes nothing but this time, except that it would take set-user-id bits away.
        let _ = if st.st_mode & (libc::S_ISUID | libc::S_ISGID) == 0 {
            sys::chown(head, u32::MAX, u32::MAX, 0)
        } else {
            sys::chmod(head, st.st_mode & 0o7777)
        };
    }

    /// Whether its last name is gone.
    pub fn is_unlinked(&self) -> bool {
        self.with(|file| Ok(file.ctl().is_some_and(|ctl| ctl.header().flags.load(Ordering::Acquire) & FLAG_UNLINKED != 0))).unwrap_or(false)
    }

    /// Notes how many names it has, for those who ask by descriptor.
    pub fn show_names(&self, names: u64) {
        let _ = self.with(|file| {
            if let Some(ctl) = file.ctl().filter(|_| file.may_write()) {
                ctl.header().more_names.store(names.saturating_sub(1), Ordering::Relaxed);
            }
            Ok(())
        });
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
#[inline(never)] // Threads may have small stacks: what one step needs must not lie below the next.
pub fn remove_if_last(file: &'static File) {
    if !file.is_last() {
        return;
    }
    let (Ok(store), Ok(loaded)) = (file.store(), file.current()) else { return };
    let id = file.id();
    let mut trash = StorePath::from_bytes(store.path());
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
        let _ = size::mirror_size_quietly(file);
    }
}

/// A name that is about to go (unlinked, or replaced by a rename): its link is held open, so that afterwards the kernel says whether it
/// was the last one.
pub struct Leaving {
    managed: Managed,
    link: i32,
}

impl Leaving {
    /// Holds the link of a name, if it is a managed file's and no copy.
    ///
    /// # Safety
    /// `path` is a C string or null.
    pub unsafe fn hold(dirfd: i32, path: *const libc::c_char) -> Option<Self> {
        // SAFETY: the caller's promise.
        let managed = unsafe { find(dirfd, path, false) }.ok()??;
        if managed.is_copy() {
            return None;
        }
        // SAFETY: found, so not null.
        let link = sys::openat(dirfd, unsafe { CStr::from_ptr(path) }, libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC, 0).ok()?;
        if sys::fstat(link).is_ok_and(|st| st.st_ino == managed.link) {
            return Some(Self { managed, link });
        }
        sys::close(link);
        None
    }

    /// The file.
    pub fn managed(&self) -> Managed {
        self.managed
    }

    /// After the call: with the last name the file goes, else one name less is shown.
    pub fn settle(&self) {
        self.managed.status_changed();
        match sys::fstat(self.link).map(|st| st.st_nlink) {
            Ok(0) => self.managed.discard(),
            Ok(left) => self.managed.show_names(left),
            Err(_) => {}
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        sys::close(self.link);
    }
}

/// Records where the name of a file lies: "dev ino path", path absolute.
#[inline(never)] // As in `remove_if_last`.
pub fn record_link(store: &Store, id: u64, path: &FixedPath) -> Sys<()> {
    let st = sys::stat(path.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?, libc::AT_SYMLINK_NOFOLLOW)?;
    let mut text = FixedText::<{ PATH_MAX + 64 }>::new();
    text.push_decimal(st.st_dev).push(b" ").push_decimal(st.st_ino).push(b" ").push(path.as_bytes()).push(b"\n");
    let target = names::file_part(store.path(), id, b"link");
    let temporary = names::file_part(store.path(), id, b"link.tmp");
    let temporary = temporary.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?;
    let fd = sys::open(temporary, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC, 0o644)?;
    // Whoever may reach the file must be able to tell its link from a copy, whatever the creator's umask.
    let _ = sys::fchmod(fd, 0o644);
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
    let fd = open_directory(dirfd, dir)?;
    let mut link = ProcPath::from_bytes(b"/proc/self/fd/");
    link.push_decimal(fd as u64);
    let resolved = link
        .as_c_str()
        .ok_or(Errno(libc::ENAMETOOLONG))
        .and_then(|link| FixedPath::read(|buffer| sys::readlinkat(libc::AT_FDCWD, link, buffer).map(<[u8]>::len)));
    sys::close(fd);
    let mut resolved = resolved?;
    if resolved.as_bytes() != b"/" {
        resolved.push(b"/");
    }
    resolved.push(name);
    // The kernel reaches it by a short name; no rule and no record can name it.
    resolved.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?;
    Ok(resolved)
}

#[inline(never)] // Its buffer would lie on the stack below the path that is asked for.
fn open_directory(dirfd: i32, dir: &[u8]) -> Sys<i32> {
    let dir = FixedPath::from_bytes(dir);
    sys::openat(dirfd, dir.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?, libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC, 0)
}
