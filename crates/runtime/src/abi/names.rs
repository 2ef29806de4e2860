//! Calls by name: stat, access, unlink, rename. They go to the kernel first; only a name that leads nowhere can be a managed file's.

use super::called_by_name;
use crate::base::sys::{self, Errno, Sys, to_c};
use crate::fds::{self, TRACED};
use crate::file;
use crate::names::{self, Leaving, Managed, Shown};
use crate::open::{Use, of_fd};
use crate::store::part::Seen;
use core::ffi::CStr;
use libc::c_char;
use stripewise_target::text::FixedPath;

/// The stat family.
///
/// # Safety
/// As the C library's fstatat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_fstatat(dirfd: i32, path: *const c_char, st: *mut libc::stat, flags: i32) -> i64 {
    to_c(called_by_name(|| {
        file::freeing_idle(|| {
            // SAFETY: passed through; the kernel checks.
            let plain = unsafe { sys::fstatat_raw(dirfd, path, st, flags) };
            // SAFETY: passed through; the struct is read only when the kernel has filled it.
            match unsafe { settled(dirfd, path, flags, plain, || (*st).st_mode) } {
                Answer::Plain(result) => result,
                // SAFETY: the kernel has just filled it.
                Answer::Head(open) => open.and_then(|open| Shown::of(open.file()?)).map(|shown| shown.put(unsafe { &mut *st })),
                // SAFETY: as above.
                Answer::Behind(found) => or_of_head(found.with(Shown::of).map(|shown| shown.put(unsafe { &mut *st }))),
                Answer::Named(found) => {
                    // SAFETY: the kernel checks the struct, and then has filled it.
                    let ask =
                        |dir, head: &CStr| unsafe { sys::fstatat_raw(dir, head.as_ptr(), st, libc::AT_SYMLINK_NOFOLLOW).map(|()| Seen::of(&*st)) };
                    // SAFETY: as above.
                    found.shown(ask).map(|shown| shown.into_iter().for_each(|shown| shown.put(unsafe { &mut *st })))
                }
            }
            .map(|()| 0)
        })
    }))
}

/// How often a name that others change is looked at anew before a rename replaces it.
const LOOKS: u32 = 100;

/// What the kernel's answer to a stat means.
enum Answer {
    /// It is the answer.
    Plain(Sys<()>),
    /// It is about head, which a managed descriptor led to.
    Head(Sys<Use>),
    /// It is about head, which a name like /proc/self/fd/3 led to.
    Behind(Managed),
    /// It is about the link of a managed file, or there is none because the link leads nowhere.
    Named(Managed),
}

/// Not to be opened by this user before its owner has (a power cut came in between): head has the size of the last close.
fn or_of_head(patched: Sys<()>) -> Sys<()> {
    if patched == Err(Errno(libc::EACCES)) { Ok(()) } else { patched }
}

/// # Safety
/// `path` is what the kernel has just answered `plain` to; `mode` is called only after it has answered.
unsafe fn settled(dirfd: i32, path: *const c_char, flags: i32, plain: Sys<()>, mode: impl FnOnce() -> u32) -> Answer {
    let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    if plain.is_ok() {
        // SAFETY: a path that the kernel has just read, when it is not null.
        if flags & libc::AT_EMPTY_PATH != 0 && (path.is_null() || unsafe { *path == 0 }) {
            let entry = fds::entry(dirfd);
            let is_managed = entry != 0 && entry & (TRACED | fds::INTERNAL) == 0;
            return if is_managed { Answer::Head(of_fd(dirfd)) } else { Answer::Plain(plain) };
        }
        let kind = mode() & libc::S_IFMT;
        if follow || kind != libc::S_IFLNK {
            // SAFETY: as above.
            let behind = if kind == libc::S_IFREG { unsafe { names::behind_descriptor(dirfd, path, follow, false) } } else { None };
            return behind.map_or(Answer::Plain(plain), Answer::Behind);
        }
    } else if plain != Err(Errno(libc::ENOENT)) {
        return Answer::Plain(plain);
    }
    // SAFETY: the caller's promise.
    match unsafe { names::find_to_show(dirfd, path, follow) } {
        Ok(None) => Answer::Plain(plain),
        Err(errno) => Answer::Plain(Err(errno)),
        Ok(Some(found)) => Answer::Named(found),
    }
}

/// statx.
///
/// # Safety
/// As the C library's statx.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_statx(dirfd: i32, path: *const c_char, flags: i32, mask: u32, st: *mut libc::statx) -> i64 {
    // SAFETY: the kernel has filled it.
    let put = |shown: Shown| shown.put_x(unsafe { &mut *st });
    to_c(called_by_name(|| {
        file::freeing_idle(|| {
            // SAFETY: passed through.
            let plain = unsafe { sys::statx_raw(dirfd, path, flags, mask, st) };
            // SAFETY: passed through; the struct is read only when the kernel has filled it.
            match unsafe { settled(dirfd, path, flags, plain, || u32::from((*st).stx_mode)) } {
                Answer::Plain(result) => result,
                Answer::Head(open) => open.and_then(|open| Shown::of(open.file()?)).map(put),
                Answer::Behind(found) => or_of_head(found.with(Shown::of).map(put)),
                Answer::Named(found) => {
                    // What tells one head from another is asked for, too.
                    let mask = mask | libc::STATX_TYPE | libc::STATX_MODE | libc::STATX_NLINK | libc::STATX_UID | libc::STATX_INO;
                    // SAFETY: the kernel checks the struct, and then has filled it.
                    let ask = |dir, head: &CStr| unsafe {
                        sys::statx_raw(dir, head.as_ptr(), flags | libc::AT_SYMLINK_NOFOLLOW, mask, st).map(|()| Seen::of_x(&*st))
                    };
                    found.shown(ask).map(|shown| shown.into_iter().for_each(put))
                }
            }
            .map(|()| 0)
        })
    }))
}

/// Does a call by name; when the name leads nowhere and is managed, does it again on head.
unsafe fn on_head(dirfd: i32, path: *const c_char, follow: bool, plain: Sys<i64>, again: impl Fn(&CStr) -> Sys<i64>) -> i64 {
    if plain != Err(Errno(libc::ENOENT)) {
        return to_c(plain);
    }
    // SAFETY: the caller's promise.
    to_c(called_by_name(|| {
        file::freeing_idle(|| match unsafe { names::find_to_show(dirfd, path, follow)? } {
            Some(found) => found.pin_head().and_then(|head| again(head.path())),
            None => plain,
        })
    }))
}

/// statfs.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_statfs(path: *const c_char, st: *mut u8) -> i64 {
    // SAFETY: passed through.
    unsafe { on_head(libc::AT_FDCWD, path, true, sys::statfs_raw(path, st), |head| sys::statfs_raw(head.as_ptr(), st)) }
}

/// access, faccessat.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_faccessat(dirfd: i32, path: *const c_char, mode: i32, flags: i32) -> i64 {
    let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    // Everybody may do everything with a symbolic link: the kernel must not be asked about it.
    // SAFETY: the caller's promise.
    let is_link = !follow && matches!(called_by_name(|| unsafe { names::find_to_show(dirfd, path, false) }), Ok(Some(_)));
    // SAFETY: passed through.
    let plain = if is_link { Err(Errno(libc::ENOENT)) } else { unsafe { sys::faccessat_raw(dirfd, path, mode, flags) } };
    // SAFETY: passed through.
    unsafe { on_head(dirfd, path, follow, plain, |head| sys::faccessat_raw(libc::AT_FDCWD, head.as_ptr(), mode, flags & !libc::AT_SYMLINK_NOFOLLOW)) }
}

/// unlink, unlinkat: the link goes first, then, with its last name, what it led to.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_unlinkat(dirfd: i32, path: *const c_char, flags: i32) -> i64 {
    // SAFETY: the caller's promise.
    let leaving = if flags == 0 { called_by_name(|| file::freeing_idle(|| unsafe { Leaving::hold(dirfd, path) })) } else { Ok(None) };
    let result = leaving.and_then(|leaving| {
        // SAFETY: passed through.
        let gone = unsafe { sys::unlinkat_raw(dirfd, path, flags)? };
        leaving.into_iter().for_each(Leaving::settle);
        Ok(gone)
    });
    // SAFETY: the caller's promise.
    to_c(unsafe { or_not_a_directory(result, dirfd, path) })
}

/// The same for a second name, which the kernel need not have read where the first one led nowhere: it may be no string at all.
unsafe fn or_not_a_directory_either(result: Sys<i64>, dirfd: i32, path: *const c_char) -> Sys<i64> {
    // SAFETY: passed through.
    if result != Err(Errno(libc::ENOENT)) || unsafe { sys::faccessat_raw(dirfd, path, libc::F_OK, 0) } == Err(Errno(libc::EFAULT)) {
        return result;
    }
    // SAFETY: the kernel has read it.
    unsafe { or_not_a_directory(result, dirfd, path) }
}

/// ENOENT becomes ENOTDIR where a plain file in the managed one's place would give that.
unsafe fn or_not_a_directory(result: Sys<i64>, dirfd: i32, path: *const c_char) -> Sys<i64> {
    // SAFETY: the kernel has just read this path.
    if result == Err(Errno(libc::ENOENT)) && names::leads_through_a_file(dirfd, unsafe { CStr::from_ptr(path) }) {
        return Err(Errno(libc::ENOTDIR));
    }
    result
}

/// What a call that wants a directory (or a place in one) fails with after the kernel's ENOENT: -ENOTDIR or -ENOENT. With `itself` the
/// name's last part counts, too.
///
/// # Safety
/// `path` is a C string that the kernel has just read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_not_a_directory(dirfd: i32, path: *const c_char, itself: i32) -> i64 {
    // SAFETY: the caller's promise.
    if itself != 0 && matches!(called_by_name(|| unsafe { names::find(dirfd, path, true) }), Ok(Some(_))) {
        return -i64::from(libc::ENOTDIR);
    }
    // SAFETY: the caller's promise.
    to_c(unsafe { or_not_a_directory(Err(Errno(libc::ENOENT)), dirfd, path) })
}

/// rename and its kin: a managed file whose last name is replaced goes to the trash; one that moves keeps a record of its name.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_renameat2(from_dir: i32, from: *const c_char, to_dir: i32, to: *const c_char, flags: u32) -> i64 {
    // SAFETY: passed through.
    to_c(called_by_name(|| unsafe { rename(from_dir, from, to_dir, to, flags) }))
}

unsafe fn rename(from_dir: i32, from: *const c_char, to_dir: i32, to: *const c_char, flags: u32) -> Sys<i64> {
    // SAFETY: the caller's promise.
    let moved = unsafe { names::find(from_dir, from, false).unwrap_or(None) };
    // SAFETY: passed through.
    let renamed = unsafe { replace(from_dir, from, to_dir, to, flags) };
    if let Ok(replaced) = renamed {
        let exchange = flags & libc::RENAME_EXCHANGE != 0;
        // SAFETY: paths that the kernel has just followed.
        let record = |found: Managed, dir: i32, path: *const c_char| unsafe {
            if let Ok(name) = names::absolute(dir, CStr::from_ptr(path).to_bytes()) {
                let _ = found.with_directory(|at| names::record_link(at, &name));
            }
        };
        if let Some(moved) = moved.filter(|m| m.is_copy() == Ok(false)) {
            record(moved, to_dir, to);
            moved.status_changed();
        }
        match replaced {
            Some(replaced) if exchange => {
                record(replaced.managed(), from_dir, from);
                replaced.managed().status_changed();
            }
            Some(replaced) => replaced.settle(),
            None => {}
        }
        return Ok(0);
    }
    let result = renamed.map(|_| 0);
    // SAFETY: the caller's promise.
    unsafe { or_not_a_directory_either(or_not_a_directory(result, from_dir, from), to_dir, to) }
}

/// renameat2, with what it replaces held. Where there was nothing nothing is replaced: what others put there meanwhile is held first.
unsafe fn replace(from_dir: i32, from: *const c_char, to_dir: i32, to: *const c_char, flags: u32) -> Sys<Option<Leaving>> {
    for _ in 0..LOOKS {
        // SAFETY: the caller's promise.
        let (replaced, careful) = match file::freeing_idle(|| unsafe { Leaving::hold(to_dir, to) }) {
            Err(Errno(libc::ENOENT)) if flags == 0 => (None, libc::RENAME_NOREPLACE),
            Err(Errno(libc::ENOENT)) => (None, flags),
            held => (held?, flags),
        };
        // SAFETY: passed through.
        match unsafe { sys::renameat2_raw(from_dir, from, to_dir, to, careful) } {
            Err(Errno(libc::EEXIST)) if careful != flags => {}
            // A file system that knows no flags.
            Err(Errno(libc::EINVAL)) if careful != flags => break,
            renamed => return renamed.map(|_| replaced),
        }
    }
    // SAFETY: as above.
    unsafe { sys::renameat2_raw(from_dir, from, to_dir, to, flags) }.map(|_| None)
}

/// The managed file that a link is to be made to, and the name of its symbolic link. A descriptor's file has the name that it is recorded under.
unsafe fn link_of(dirfd: i32, path: *const c_char, flags: i32) -> Sys<Option<(Managed, FixedPath)>> {
    let (follow, empty) = (flags & libc::AT_SYMLINK_FOLLOW != 0, flags & libc::AT_EMPTY_PATH != 0);
    if flags & !(libc::AT_SYMLINK_FOLLOW | libc::AT_EMPTY_PATH) != 0 {
        // The kernel refuses these.
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    if let Some(found) = unsafe { names::find_link(dirfd, path, follow)? } {
        return Ok(Some(found));
    }
    // SAFETY: found out above.
    let Some(behind) = (unsafe { names::behind_descriptor(dirfd, path, follow, empty) }) else { return Ok(None) };
    let name = behind.recorded_name().ok_or(Errno(if behind.is_unlinked() { libc::ENOENT } else { libc::EXDEV }))?;
    // SAFETY: a C string.
    unsafe { names::find_link(libc::AT_FDCWD, name.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?.as_ptr(), false) }
}

/// link, linkat. A hard link to a managed file is one of its symbolic link: the same inode, so no copy. Head itself never gets a name.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_linkat(from_dir: i32, from: *const c_char, to_dir: i32, to: *const c_char, flags: i32) -> i64 {
    // SAFETY: passed through.
    to_c(called_by_name(|| unsafe { link(from_dir, from, to_dir, to, flags) }))
}

unsafe fn link(from_dir: i32, from: *const c_char, to_dir: i32, to: *const c_char, flags: i32) -> Sys<i64> {
    // SAFETY: the caller's promise.
    let result = match unsafe { link_of(from_dir, from, flags) } {
        Ok(Some((found, link))) => {
            let linked = link
                .as_c_str()
                .ok_or(Errno(libc::ENAMETOOLONG))
                // SAFETY: the caller's promise.
                .and_then(|link| unsafe { sys::linkat_raw(from_dir, link.as_ptr(), to_dir, to, 0) });
            if linked.is_ok() {
                found.show_names(found.names + 1);
                found.status_changed();
            }
            linked
        }
        // SAFETY: passed through.
        Ok(None) => unsafe { sys::linkat_raw(from_dir, from, to_dir, to, flags) },
        Err(errno) => Err(errno),
    };
    // SAFETY: the caller's promise.
    unsafe { or_not_a_directory_either(result, to_dir, to) }
}
