//! Directories and the text of names: a managed file's entry is one of a regular file, its name leads to itself, and what the kernel tells
//! of a managed descriptor's name is the name that the program knows.

use super::{PASS, called_by_name};
use crate::base::config;
use crate::base::sys::{self, Errno, Sys, to_c};
use crate::names::{self, Managed};
use crate::store;
use crate::store::heads;
use crate::store::part;
use core::ffi::CStr;
use libc::c_char;
use stripewise_store::names as store_names;
use stripewise_target::text::{FixedPath, PATH_MAX};

/// Inode of the managed file behind a directory's entry that is a symbolic link; 0 for any other.
fn inode_of(dirfd: i32, name: &CStr) -> u64 {
    let mut text = [0u8; PATH_MAX];
    let Ok(target) = sys::readlinkat(dirfd, name, &mut text) else { return 0 };
    let Some((store, id)) = store_names::parse_link(target) else { return 0 };
    let Ok(store) = store::attach(store) else { return 0 };
    if !sys::lstat_at(dirfd, name).is_ok_and(|link| names::shows_file(store, id, link.st_uid)) {
        return 0;
    }
    part::head_stat(store, id).map_or(0, |st| st.st_ino)
}

fn has_store() -> bool {
    config::store_path().is_some() || store::all().next().is_some()
}

/// readdir: an entry of type DT_LNK. Returns the inode to show, and that it is a regular file; 0 to leave the entry alone.
///
/// # Safety
/// `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_entry_inode(dirfd: i32, name: *const c_char) -> u64 {
    if !has_store() {
        return 0;
    }
    // SAFETY: the caller's promise.
    inode_of(dirfd, unsafe { CStr::from_ptr(name) })
}

/// getdents64, getdirentries: corrects the entries that the kernel has written.
///
/// # Safety
/// `entries` holds `len` bytes of whole entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_entries(dirfd: i32, entries: *mut u8, len: usize) {
    if !has_store() {
        return;
    }
    // SAFETY: the caller's promise.
    let mut rest = unsafe { core::slice::from_raw_parts_mut(entries, len) };
    // struct linux_dirent64: ino u64, off u64, reclen u16, type u8, name.
    while let Some(bytes) = rest.get(16..18).and_then(|b| b.try_into().ok()).map(u16::from_le_bytes) {
        let Some((entry, later)) = rest.split_at_mut_checked(usize::from(bytes).max(19)) else { return };
        let is_link = entry.get(18) == Some(&libc::DT_LNK);
        let inode =
            entry.get(19..).filter(|_| is_link).and_then(|name| CStr::from_bytes_until_nul(name).ok()).map_or(0, |name| inode_of(dirfd, name));
        if inode != 0 {
            if let Some(field) = entry.get_mut(..8) {
                field.copy_from_slice(&inode.to_le_bytes());
            }
            if let Some(kind) = entry.get_mut(18) {
                *kind = libc::DT_REG;
            }
        }
        rest = later;
    }
}

/// The path that a program knows a managed file by, for the path of its head: what its descriptor's link in /proc says.
fn known_name(head: &[u8]) -> Option<FixedPath> {
    let (store, id) = heads::parse_head(head)?;
    let found = Managed::without_name(store::attach(store).ok()?, id);
    match found.recorded_name() {
        Some(name) if !found.is_unlinked() => Some(name),
        _ => {
            let mut name = FixedPath::from_bytes(head);
            name.push(b" (deleted)");
            Some(name)
        }
    }
}

/// Whether a link is a managed file's of a store that this process uses; one of another's store, or that another has made, is a link like any.
fn is_used(target: &[u8], dirfd: i32, path: &CStr) -> bool {
    let Some((store, id)) = store_names::parse_link(target) else { return false };
    match store::attach(store) {
        Ok(store) => sys::lstat_at(dirfd, path).is_ok_and(|link| names::shows_file(store, id, link.st_uid)),
        Err(errno) => !store::is_no_store(errno),
    }
}

/// readlink: a managed file is no link; a managed descriptor's link in /proc gives the name that the program knows.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_readlinkat(dirfd: i32, path: *const c_char, into: *mut u8, len: usize) -> i64 {
    if path.is_null() || len == 0 {
        return PASS;
    }
    called_by_name(|| {
        let mut text = [core::mem::MaybeUninit::uninit(); PATH_MAX];
        // SAFETY: the kernel checks.
        let target = unsafe { sys::readlinkat_raw(dirfd, path, &mut text) };
        if let Err(errno @ Errno(libc::EFAULT | libc::ENAMETOOLONG)) = target {
            return to_c(Err(errno));
        }
        // SAFETY: the kernel has just read it.
        let path = unsafe { CStr::from_ptr(path) };
        match target {
            Ok(target) if is_used(target, dirfd, path) => -i64::from(libc::EINVAL),
            Ok(target) => {
                let known = if path.to_bytes().is_empty() { None } else { known_name(target) };
                let shown = known.as_ref().map_or(target, |name| name.as_bytes());
                let n = shown.len().min(len);
                // SAFETY: the program's buffer of `len` bytes.
                to_c(unsafe { crate::base::memory::bytes_out(into, shown.get(..n).unwrap_or(&[])) }.map(|()| n as i64))
            }
            Err(Errno(libc::ENOENT)) if names::leads_through_a_file(dirfd, path) => -i64::from(libc::ENOTDIR),
            Err(errno) => to_c(Err(errno)),
        }
    })
}

/// realpath: the path of a managed file, its directories resolved, into PATH_MAX bytes.
///
/// # Safety
/// `path` is a C string or null, `into` has room for PATH_MAX bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_realpath(path: *const c_char, into: *mut u8) -> i64 {
    called_by_name(|| {
        // SAFETY: the caller's promise.
        match unsafe { resolved(path) } {
            Ok(None) => PASS,
            Err(errno) => to_c(Err(errno)),
            Ok(Some(name)) => match name.as_c_str() {
                Some(name) => {
                    let bytes = name.to_bytes_with_nul();
                    // SAFETY: a FixedPath's string is at most PATH_MAX bytes long.
                    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), into, bytes.len()) };
                    0
                }
                None => -i64::from(libc::ENAMETOOLONG),
            },
        }
    })
}

unsafe fn resolved(path: *const c_char) -> Sys<Option<FixedPath>> {
    // SAFETY: the caller's promise.
    if let Some((_, link)) = unsafe { names::find_link(libc::AT_FDCWD, path, true)? } {
        return names::absolute(libc::AT_FDCWD, link.as_bytes()).map(Some);
    }
    // SAFETY: found out above.
    let behind = unsafe { names::behind_descriptor(libc::AT_FDCWD, path, true, false) };
    Ok(behind.and_then(|found| known_name(found.head().as_bytes())))
}

/// Path of the head of the managed file that a name leads to, into PATH_MAX bytes; 0 when it leads to none.
///
/// # Safety
/// As [`sw_realpath`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_head_path(dirfd: i32, path: *const c_char, follow: i32, into: *mut u8) -> i32 {
    called_by_name(|| {
        // SAFETY: the caller's promise.
        let Ok(Some(found)) = (unsafe { names::find(dirfd, path, follow != 0) }) else { return 0 };
        let head = found.head();
        let Some(head) = head.as_c_str() else { return 0 };
        let bytes = head.to_bytes_with_nul();
        // SAFETY: a FixedPath's string is at most PATH_MAX bytes long.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), into, bytes.len()) };
        1
    })
}

/// Whether a name that the kernel has just followed may have led to an open descriptor, and so to a head.
///
/// # Safety
/// `path` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_is_of_a_descriptor(path: *const c_char) -> i32 {
    // SAFETY: the caller's promise.
    i32::from(names::is_of_a_descriptor(unsafe { CStr::from_ptr(path) }.to_bytes()))
}

/// name_to_handle_at: a handle would lead to head, whose bytes are nobody's. 1 for a managed file.
///
/// # Safety
/// `path` is a C string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_is_managed(dirfd: i32, path: *const c_char, flags: i32) -> i32 {
    let follow = flags & libc::AT_SYMLINK_FOLLOW != 0;
    // SAFETY: the caller's promise; find has found out whether the path can be read.
    i32::from(called_by_name(|| match unsafe { names::find(dirfd, path, follow) } {
        Ok(None) => unsafe { names::behind_descriptor(dirfd, path, follow, flags & libc::AT_EMPTY_PATH != 0) }.is_some(),
        found => found.is_ok(),
    }))
}
