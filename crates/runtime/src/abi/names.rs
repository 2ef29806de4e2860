//! Calls by name: stat, access, unlink, rename. They go to the kernel first; only a name that leads nowhere can be a managed file's.

use crate::fds::{self, TRACED};
use crate::names::{self, Leaving};
use crate::open::of_fd;
use crate::sys::{self, Errno, Sys, to_c};
use core::ffi::CStr;
use libc::c_char;

/// The stat family.
///
/// # Safety
/// As the C library's fstatat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_fstatat(dirfd: i32, path: *const c_char, st: *mut libc::stat, flags: i32) -> i64 {
    // SAFETY: passed through; the kernel checks.
    let plain = unsafe { sys::fstatat_raw(dirfd, path, st, flags) };
    // SAFETY: a path that the kernel has just read, when it is not null.
    let empty = flags & libc::AT_EMPTY_PATH != 0 && (path.is_null() || unsafe { *path == 0 });
    match plain {
        Ok(()) if empty => {
            let entry = fds::entry(dirfd);
            if entry != 0 && entry & (TRACED | fds::INTERNAL) == 0 {
                let patched = of_fd(dirfd).and_then(|open| open.file()).and_then(|file| {
                    // SAFETY: the kernel has just written it.
                    names::patch_stat(file, unsafe { &mut *st })
                });
                return to_c(patched.map(|()| 0));
            }
            0
        }
        // SAFETY: the kernel has just written it.
        Ok(()) if flags & libc::AT_SYMLINK_NOFOLLOW == 0 || unsafe { (*st).st_mode } & libc::S_IFMT != libc::S_IFLNK => 0,
        Ok(()) | Err(Errno(libc::ENOENT)) => {
            // SAFETY: the caller's promise.
            match unsafe { names::find(dirfd, path, flags & libc::AT_SYMLINK_NOFOLLOW == 0) } {
                Ok(None) => to_c(plain.map(|()| 0)),
                Err(errno) => to_c(Err(errno)),
                Ok(Some(found)) => to_c(found.stat().map(|patched| {
                    // SAFETY: the program's struct, which the kernel has accepted or will not see again.
                    unsafe { st.write(patched) };
                    0
                })),
            }
        }
        Err(errno) => to_c(Err(errno)),
    }
}

/// statx.
///
/// # Safety
/// As the C library's statx.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_statx(dirfd: i32, path: *const c_char, flags: i32, mask: u32, st: *mut libc::statx) -> i64 {
    // SAFETY: passed through.
    let plain = unsafe { sys::statx_raw(dirfd, path, flags, mask, st) };
    // SAFETY: as in sw_fstatat.
    let empty = flags & libc::AT_EMPTY_PATH != 0 && (path.is_null() || unsafe { *path == 0 });
    let patch = |file: &'static crate::file::File, names: u64| {
        // SAFETY: the kernel has filled it.
        let st = unsafe { &mut *st };
        // SAFETY: a struct of numbers.
        let mut patched: libc::stat = unsafe { core::mem::zeroed() };
        names::patch_stat(file, &mut patched)?;
        st.stx_size = patched.st_size as u64;
        st.stx_blocks = patched.st_blocks as u64;
        st.stx_nlink = if names > 0 { names } else { patched.st_nlink } as u32;
        Ok(0)
    };
    match plain {
        Ok(()) if empty => match of_fd(dirfd).and_then(|open| open.file()) {
            Ok(file) => to_c(patch(file, 0)),
            Err(_) => 0,
        },
        // SAFETY: the kernel has just written it.
        Ok(()) if flags & libc::AT_SYMLINK_NOFOLLOW == 0 || i32::from(unsafe { (*st).stx_mode }) & libc::S_IFMT as i32 != libc::S_IFLNK as i32 => 0,
        Ok(()) | Err(Errno(libc::ENOENT)) => {
            // SAFETY: the caller's promise.
            match unsafe { names::find(dirfd, path, flags & libc::AT_SYMLINK_NOFOLLOW == 0) } {
                Ok(None) => to_c(plain.map(|()| 0)),
                Err(errno) => to_c(Err(errno)),
                Ok(Some(found)) => to_c((|| {
                    let head = found.head();
                    // SAFETY: valid path, the program's struct.
                    unsafe {
                        sys::statx_raw(
                            libc::AT_FDCWD,
                            head.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?.as_ptr(),
                            flags & !libc::AT_SYMLINK_NOFOLLOW,
                            mask,
                            st,
                        )?
                    };
                    match found.with(|file| patch(file, found.names)) {
                        // As in Managed::stat.
                        Err(Errno(libc::EACCES)) => Ok(0),
                        result => result,
                    }
                })()),
            }
        }
        Err(errno) => to_c(Err(errno)),
    }
}

/// Does a call by name; when the name leads nowhere and is managed, does it again on head.
unsafe fn on_head(dirfd: i32, path: *const c_char, follow: bool, plain: Sys<i64>, again: impl FnOnce(&CStr) -> Sys<i64>) -> i64 {
    if plain != Err(Errno(libc::ENOENT)) {
        return to_c(plain);
    }
    // SAFETY: the caller's promise.
    match unsafe { names::find(dirfd, path, follow) } {
        Ok(Some(found)) => to_c(found.head().as_c_str().ok_or(Errno(libc::ENAMETOOLONG)).and_then(again)),
        Ok(None) => to_c(plain),
        Err(errno) => to_c(Err(errno)),
    }
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
    let is_link = !follow && matches!(unsafe { names::find(dirfd, path, false) }, Ok(Some(_)));
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
    let leaving = if flags & libc::AT_REMOVEDIR == 0 { unsafe { Leaving::hold(dirfd, path) } } else { None };
    // SAFETY: passed through.
    let result = unsafe { sys::unlinkat_raw(dirfd, path, flags) };
    if let (Some(leaving), Ok(_)) = (leaving, result) {
        leaving.settle();
    }
    // SAFETY: the caller's promise.
    to_c(unsafe { or_not_a_directory(result, dirfd, path) })
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
    if itself != 0 && matches!(unsafe { names::find(dirfd, path, true) }, Ok(Some(_))) {
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
    // SAFETY: the caller's promise.
    let (moved, replaced) = unsafe { (names::find(from_dir, from, false).unwrap_or(None), Leaving::hold(to_dir, to)) };
    // SAFETY: passed through.
    let result = unsafe { sys::renameat2_raw(from_dir, from, to_dir, to, flags) };
    if result.is_ok() {
        let exchange = flags & libc::RENAME_EXCHANGE != 0;
        // SAFETY: paths that the kernel has just followed.
        let record = |found: names::Managed, dir: i32, path: *const c_char| unsafe {
            if let Ok(name) = names::absolute(dir, CStr::from_ptr(path).to_bytes()) {
                let _ = names::record_link(found.store, found.id, &name);
            }
        };
        if let Some(moved) = moved.filter(|m| !m.is_copy()) {
            record(moved, to_dir, to);
        }
        match replaced {
            Some(replaced) if exchange => record(replaced.managed(), from_dir, from),
            Some(replaced) => replaced.settle(),
            None => {}
        }
        return 0;
    }
    // SAFETY: the caller's promise.
    to_c(unsafe { or_not_a_directory(or_not_a_directory(result, from_dir, from), to_dir, to) })
}

/// link, linkat. A hard link to a managed file is one of its symbolic link: the same inode, so no copy. Head itself never gets a name.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_linkat(from_dir: i32, from: *const c_char, to_dir: i32, to: *const c_char, flags: i32) -> i64 {
    let follow = flags & libc::AT_SYMLINK_FOLLOW != 0;
    // SAFETY: the caller's promise.
    if unsafe { names::behind_descriptor(from_dir, from, follow, flags & libc::AT_EMPTY_PATH != 0) }.is_some() {
        return -i64::from(libc::EXDEV);
    }
    let found = if from.is_null() {
        Ok(None)
    } else {
        // SAFETY: the caller's promise.
        names::find_link(from_dir, unsafe { CStr::from_ptr(from) }, follow)
    };
    let result = match found {
        Ok(Some((found, link))) => {
            let linked = link
                .as_c_str()
                .ok_or(Errno(libc::ENAMETOOLONG))
                // SAFETY: the caller's promise.
                .and_then(|link| unsafe { sys::linkat_raw(from_dir, link.as_ptr(), to_dir, to, 0) });
            if linked.is_ok() {
                found.show_names(found.names + 1);
            }
            linked
        }
        // SAFETY: passed through.
        Ok(None) => unsafe { sys::linkat_raw(from_dir, from, to_dir, to, flags) },
        Err(errno) => Err(errno),
    };
    // SAFETY: the caller's promise.
    to_c(unsafe { or_not_a_directory(result, to_dir, to) })
}
