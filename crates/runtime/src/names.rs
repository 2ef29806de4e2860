//! Managed files by name: recognising their symbolic links, and stat, access, unlink, rename on them.

mod leaving;
mod record;
mod shown;

pub use leaving::Leaving;
pub use record::{record_first_link, record_link};
pub use shown::Shown;

use crate::base::sys::{self, Errno, Sys};
use crate::file::{self, File};
use crate::store::part::{self, At, Pinned, Transient};
use crate::store::{self, Attached};
use core::ffi::CStr;
use core::sync::atomic::Ordering;
use stripewise_store::ctl::FLAG_UNLINKED;
use stripewise_store::names;
use stripewise_target::text::{FixedPath, PATH_MAX, ProcPath, StorePath};

/// Links that may be followed before a managed one is reached, as in the kernel.
const MAX_LINKS: usize = 40;

/// A managed file that a name leads to.
#[derive(Clone, Copy)]
pub struct Managed {
    /// Its store, attached.
    pub store: &'static Attached,
    pub id: u64,
    /// The symbolic link that led there: inode (0 when a descriptor did), device, owner.
    link: u64,
    device: u64,
    owner: u32,
    /// Its last change of status, ns.
    changed_ns: i64,
    /// Names (hard links) of that symbolic link; 0 when a descriptor led there.
    pub names: u64,
}

/// The managed file that `path` names, directly or (with `follow`) through symbolic links; `None` for anything else.
///
/// # Safety
/// `path` is a C string, null, or no good address (EFAULT).
pub unsafe fn find(dirfd: i32, path: *const libc::c_char, follow: bool) -> Sys<Option<Managed>> {
    // SAFETY: the caller's promise.
    Ok(unsafe { find_noting(dirfd, path, follow, Note::Link)? }.map(|(found, _)| found))
}

/// The same for one who only shows what he finds: the link's own stat may be of one that has just been put in its place.
///
/// # Safety
/// As [`find`].
pub unsafe fn find_to_show(dirfd: i32, path: *const libc::c_char, follow: bool) -> Sys<Option<Managed>> {
    // SAFETY: the caller's promise.
    Ok(unsafe { find_noting(dirfd, path, follow, Note::Names)? }.map(|(found, _)| found))
}

/// The same for one who only reads the file: nothing is asked of the link but where it leads.
///
/// # Safety
/// As [`find`].
pub unsafe fn find_to_read(dirfd: i32, path: *const libc::c_char, follow: bool) -> Sys<Option<Managed>> {
    // SAFETY: the caller's promise.
    Ok(unsafe { find_noting(dirfd, path, follow, Note::Nothing)? }.map(|(found, _)| found))
}

/// The same, with the name (relative to `dirfd`) of the managed link itself. After any result but EFAULT and ENAMETOOLONG the path can be read.
///
/// # Safety
/// As [`find`].
pub unsafe fn find_link(dirfd: i32, path: *const libc::c_char, follow: bool) -> Sys<Option<(Managed, FixedPath)>> {
    // SAFETY: the caller's promise; it was read where something was found.
    unsafe {
        let found = find_noting(dirfd, path, follow, Note::Link)?;
        Ok(found.map(|(found, last)| (found, last.unwrap_or_else(|| FixedPath::from_bytes(CStr::from_ptr(path).to_bytes())))))
    }
}

/// What is asked of the managed link itself.
#[derive(Clone, Copy, PartialEq)]
enum Note {
    Link,
    /// How many names it has.
    Names,
    Nothing,
}

/// How often a name is looked at that others change meanwhile.
const LOOKS: u32 = 100;

/// What a managed link was found to be.
enum Behind {
    File(Managed),
    /// What acts on the link itself takes it for a link.
    Link,
    /// The name led elsewhere, or nowhere, when it was looked at again.
    Changed,
}

/// The same, with the name of the managed link where it is another than `path`.
unsafe fn find_noting(dirfd: i32, path: *const libc::c_char, follow: bool, note: Note) -> Sys<Option<(Managed, Option<FixedPath>)>> {
    if path.is_null() {
        return Ok(None);
    }
    for _ in 0..LOOKS {
        // SAFETY: the caller's promise.
        if let Some(found) = unsafe { look(dirfd, path, follow, note)? } {
            return Ok(found);
        }
    }
    Err(Errno(libc::ENOENT))
}

/// One look at a name; `None` where it changed meanwhile.
#[inline(never)] // Its buffer would lie on the stack below every other call by name.
#[allow(clippy::type_complexity)] // What is found, of a look that may find nothing certain.
unsafe fn look(dirfd: i32, path: *const libc::c_char, follow: bool, note: Note) -> Sys<Option<Option<(Managed, Option<FixedPath>)>>> {
    let mut text = [core::mem::MaybeUninit::uninit(); PATH_MAX];
    // SAFETY: the kernel checks.
    let first = unsafe { sys::readlinkat_raw(dirfd, path, &mut text) };
    if let Err(errno @ Errno(libc::EFAULT | libc::ENAMETOOLONG)) = first {
        return Err(errno);
    }
    // SAFETY: the kernel has just read it.
    let path = unsafe { CStr::from_ptr(path) };
    match first {
        Ok(target) => match names::parse_link(target) {
            Some(named) => Ok(match behind(dirfd, path, named, follow, note)? {
                Behind::File(found) => Some(Some((found, None))),
                Behind::Link => Some(None),
                Behind::Changed => None,
            }),
            None if follow => Ok(Some(follow_links(dirfd, path, target, note)?.map(|(found, last)| (found, Some(last))))),
            None => Ok(Some(None)),
        },
        Err(Errno(libc::ENOENT)) if leads_through_a_file(dirfd, path) => Err(Errno(libc::ENOTDIR)),
        Err(_) => Ok(Some(None)),
    }
}

/// The file behind a managed link.
fn behind(dirfd: i32, name: &CStr, (store, id): (&[u8], u64), follow: bool, note: Note) -> Sys<Behind> {
    let link = (note != Note::Nothing || !follow).then(|| sys::lstat_at(dirfd, name));
    let Some(store) = store_behind(store, follow)? else { return Ok(Behind::Link) };
    Ok(match link {
        Some(Ok(st)) if !follow && !shows_file(store, id, st.st_uid) => Behind::Link,
        Some(Ok(st)) => {
            let found = Managed::behind_link(store, id, &st);
            // Two looks at one name: what it was and where it led go together only if neither changed in between.
            if note != Note::Link || found.is_known() || found.is_still_at(dirfd, name) { Behind::File(found) } else { Behind::Changed }
        }
        Some(Err(_)) => Behind::Changed,
        None => Behind::File(Managed::without_name(store, id)),
    })
}

/// The store that a link names. What acts on the link itself takes it for what it is where that is none: a link, to nothing that there is or that this
/// process would use. An emulator does no more with it: the program that it runs has the library, too.
fn store_behind(store: &[u8], follow: bool) -> Sys<Option<&'static Attached>> {
    match store::attach(store) {
        Err(errno) if (!follow || crate::base::config::is_emulator()) && store::is_no_store(errno) => Ok(None),
        attached => attached.map(Some),
    }
}

/// Follows a link that leads to `first` until one leads into a store; with the name of that one.
#[inline(never)] // Most names are managed links themselves, or none: the buffers here would lie on the stack below every call by name.
fn follow_links(dirfd: i32, path: &CStr, first: &[u8], note: Note) -> Sys<Option<(Managed, FixedPath)>> {
    let mut name = FixedPath::from_bytes(path.to_bytes());
    let mut text = [0u8; PATH_MAX];
    let mut target = first;
    for _ in 1..MAX_LINKS {
        // A relative link counts from its own directory.
        let is_absolute = target.first() == Some(&b'/');
        let dir = if is_absolute { 0 } else { name.as_bytes().iter().rposition(|c| *c == b'/').map_or(0, |slash| slash + 1) };
        name.truncate(dir);
        name.push(target);
        let Some(c_name) = name.as_c_str() else { return Ok(None) };
        target = match sys::readlinkat(dirfd, c_name, &mut text) {
            Ok(found) => found,
            Err(_) => return Ok(None),
        };
        if let Some(managed) = names::parse_link(target) {
            return Ok(match behind(dirfd, c_name, managed, true, note)? {
                Behind::File(found) => Some((found, name)),
                Behind::Link | Behind::Changed => None,
            });
        }
    }
    Ok(None)
}

/// Whether what acts on a link itself (lstat, readdir, an archiver) sees the file: not where somebody else has made the link, for a plain symbolic link
/// of his would not hand the file's bytes over either.
pub fn shows_file(store: &'static Attached, id: u64, owner: u32) -> bool {
    owner == 0 || owner == store.owner() || owner == sys::geteuid() || part::head_stat(store, id).is_ok_and(|head| head.st_uid == owner)
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
    let head = crate::store::heads::head_of(fd, &mut text);
    sys::close(fd);
    let (store, id) = head?;
    Some(Managed::without_name(store::attach(store).ok()?, id))
}

/// Whether a name that the kernel does not find takes a managed file for a directory: a plain file in its place gives ENOTDIR.
#[inline(never)] // Its buffers would lie on the stack below every other call by name.
pub fn leads_through_a_file(dirfd: i32, path: &CStr) -> bool {
    if crate::base::config::store_path().is_none() && store::all().next().is_none() {
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

impl Managed {
    /// The file behind a link.
    fn behind_link(store: &'static Attached, id: u64, link: &libc::stat) -> Self {
        Self {
            store,
            id,
            link: link.st_ino,
            device: link.st_dev,
            owner: link.st_uid,
            changed_ns: link.st_ctime.wrapping_mul(1_000_000_000).wrapping_add(link.st_ctime_nsec),
            names: link.st_nlink,
        }
    }

    /// Whether a name is a link to it now.
    #[inline(never)] // Its buffers would lie on the stack below every other call by name.
    pub fn is_still_at(&self, dirfd: i32, name: &CStr) -> bool {
        let mut text = [0u8; PATH_MAX];
        sys::readlinkat(dirfd, name, &mut text).is_ok_and(|target| self.is_text_of_it(target))
    }

    /// Whether a link's text leads to it: by the name that the store has in this process, or by another one of the same store.
    fn is_text_of_it(&self, target: &[u8]) -> bool {
        let same = |store: &[u8]| store == self.store.path() || store::attach(store).is_ok_and(|other| core::ptr::eq(other, self.store));
        names::parse_link(target).is_some_and(|(store, id)| id == self.id && same(store))
    }

    /// The file behind a descriptor, not behind a name.
    pub fn without_name(store: &'static Attached, id: u64) -> Self {
        Self { store, id, link: 0, device: 0, owner: 0, changed_ns: 0, names: 0 }
    }

    /// Runs `work` with the file open.
    pub fn with<T>(&self, work: impl FnOnce(&'static File) -> Sys<T>) -> Sys<T> {
        let index = file::acquire(self.store, self.id)?;
        let result = file::get(index).ok_or(Errno(libc::EIO)).and_then(work);
        file::release(index);
        result
    }

    /// Its directory, for the length of a call.
    pub fn at(&self) -> Sys<Transient> {
        Transient::open(self.store, self.id)
    }

    /// Runs `work` with its directory: the one that this process holds of a file that is open or idle, or one that is opened for the length of the call.
    pub fn with_directory<T>(&self, mut work: impl FnMut(&At) -> Sys<T>) -> Sys<T> {
        let idle = file::look_at_idle(self.store, self.id, |file| file.at().ok().map(|at| work(&at)));
        idle.unwrap_or_else(|| match file::acquire_if_open(self.store, self.id) {
            Some(index) => {
                let result = file::get(index).ok_or(Errno(libc::EIO)).and_then(File::at).and_then(|at| work(&at));
                file::release(index);
                result
            }
            None => work(&*self.at()?),
        })
    }

    /// Path of its head, for messages and for those who ask for a name.
    pub fn head(&self) -> StorePath {
        names::file_part(self.store.path(), self.id, b"head")
    }

    /// Its head, looked at and held.
    pub fn pin_head(&self) -> Sys<Pinned> {
        part::pin_head(self.store, self.id)
    }

    /// A name of it was made, moved or removed: that moves the time of the last status change, and no other.
    pub fn status_changed(&self) {
        let _ = self.with_directory(At::change_status);
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

    /// Puts it into the trash: called when its link is gone, with the reference that its caller has, if he has one. Freed at once when nobody else has it
    /// open, else by the last closer or by gc.
    fn discard(&self, held: Option<u32>) {
        let Some(index) = held.or_else(|| file::acquire(self.store, self.id).ok()) else { return };
        if let Some(file) = file::get(index)
            && let Some(ctl) = file.ctl().filter(|_| file.may_write())
        {
            ctl.header().flags.fetch_or(FLAG_UNLINKED, Ordering::AcqRel);
            // Who has it open sees that a name of it went.
            if file.is_open_besides() || !file.is_last() {
                let _ = file.at().and_then(|at| at.change_status());
            }
        }
        // The release sees the flag, and removes if this was the last.
        file::release(index);
    }
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
