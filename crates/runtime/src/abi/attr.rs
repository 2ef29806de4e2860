//! Attributes of managed files: mode, owner, times, extended attributes with the ACL; and giving rights up.

use super::PASS;
use crate::base::sys::{self, Errno, Sys, to_c};
use crate::file;
use crate::file::access;
use crate::io::size;
use crate::names::{self, Managed};
use crate::open::{self, OpenFile, of_fd};
use crate::trace;
use core::ffi::CStr;
use core::sync::atomic::Ordering;
use libc::{c_char, timespec};
use stripewise_trace::Op;
use syscalls::Sysno;

/// The managed file that a call names: by a path, by a descriptor's path, or (with AT_EMPTY_PATH) by a descriptor.
unsafe fn named(dirfd: i32, path: *const c_char, flags: i32) -> Sys<Option<Managed>> {
    let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    // SAFETY: the caller's promise; find has found out whether the path can be read.
    match unsafe { names::find(dirfd, path, follow)? } {
        None => Ok(unsafe { names::behind_descriptor(dirfd, path, follow, flags & libc::AT_EMPTY_PATH != 0) }),
        found => Ok(found),
    }
}

/// Does `work` on the managed file that a call names; PASS for any other name, and for flags that the plain call refuses.
unsafe fn on_name(dirfd: i32, path: *const c_char, flags: i32, work: impl Fn(&Managed) -> Sys<i64>) -> i64 {
    if flags & !(libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH) != 0 {
        return PASS;
    }
    // SAFETY: the caller's promise.
    let done = super::called_by_name(|| file::freeing_idle(|| unsafe { named(dirfd, path, flags)? }.map(|found| work(&found)).transpose()));
    done.map_or_else(|errno| to_c(Err(errno)), |done| done.unwrap_or(PASS))
}

/// The same for a managed descriptor; one that was opened with O_PATH changes and shows nothing.
fn on_fd(fd: i32, op: Op, work: impl FnOnce(&OpenFile, &Managed) -> Sys<i64>) -> i64 {
    let start = trace::begin();
    let result = of_fd(fd).and_then(|open| {
        if open.flags() & libc::O_PATH != 0 {
            return Err(Errno(libc::EBADF));
        }
        let file = open.file()?;
        work(&open, &Managed::without_name(file.store()?, file.id()))
    });
    trace::data(fd, op, 0, 0, &result, start);
    to_c(result)
}

fn head_of<T>(found: &Managed, work: impl FnOnce(&CStr) -> Sys<T>) -> Sys<T> {
    work(found.pin_head()?.path())
}

/// chmod, lchmod, fchmodat.
///
/// # Safety
/// `path` is a C string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_fchmodat(dirfd: i32, path: *const c_char, mode: u32, flags: i32) -> i64 {
    // SAFETY: passed through.
    unsafe { on_name(dirfd, path, flags, |found| access::set_mode(found, mode)) }
}

/// fchmod.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fchmod(fd: i32, mode: u32) -> i64 {
    on_fd(fd, Op::Setattr, |_, found| access::set_mode(found, mode))
}

/// chown, lchown, fchownat.
///
/// # Safety
/// `path` is a C string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_fchownat(dirfd: i32, path: *const c_char, uid: u32, gid: u32, flags: i32) -> i64 {
    // SAFETY: passed through.
    unsafe { on_name(dirfd, path, flags, |found| access::set_owner(found, uid, gid)) }
}

/// fchown.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fchown(fd: i32, uid: u32, gid: u32) -> i64 {
    on_fd(fd, Op::Setattr, |_, found| access::set_owner(found, uid, gid))
}

/// Sets times after all that this process has done has reached head, and so that what it does next shows again.
fn set_times(found: &Managed, companion: Option<i32>, set: impl Fn() -> Sys<i64>) -> Sys<i64> {
    if found.is_copy()? {
        return Err(Errno(libc::EROFS));
    }
    let mut done = None;
    let _ = found.with(|file| {
        file.touched.store(0, Ordering::Relaxed);
        let _ = if file.may_write() { size::mirror_size_quietly(file, companion) } else { Ok(()) };
        done = Some(file.setting_times(&set));
        Ok(())
    });
    // Whoever sees the file may have a right to its times.
    done.unwrap_or_else(set)
}

/// utimensat by name, and all older spellings.
///
/// # Safety
/// `path` is a C string or null, `times` null or two timespecs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_utimensat(dirfd: i32, path: *const c_char, times: *const timespec, flags: i32) -> i64 {
    // SAFETY: passed through; the kernel checks.
    let set =
        |found: &Managed| set_times(found, None, || head_of(found, |head| unsafe { sys::utimensat_raw(libc::AT_FDCWD, head.as_ptr(), times, 0) }));
    // SAFETY: passed through.
    unsafe { on_name(dirfd, path, flags, set) }
}

/// futimens, futimes.
///
/// # Safety
/// `times` is null or points to two timespecs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_futimens(fd: i32, times: *const timespec) -> i64 {
    on_fd(fd, Op::Setattr, |open, found| {
        let companion = open.companion().ok_or(Errno(libc::EBADF))?;
        // SAFETY: passed through; the kernel checks.
        set_times(found, Some(companion), || unsafe { sys::utimensat_raw(companion, core::ptr::null(), times, 0) })
    })
}

fn is_acl(name: *const c_char) -> bool {
    // SAFETY: a name that the program gave as a C string; null is left to the kernel.
    !name.is_null() && unsafe { CStr::from_ptr(name) } == crate::store::part::ACL
}

/// Does a call on extended attributes on the file whose path (or descriptor, for the calls that take one) is given.
fn change_attribute(found: &Managed, number: Sysno, file: usize, args: [usize; 4]) -> Sys<i64> {
    if found.is_copy()? {
        return Err(Errno(libc::EROFS));
    }
    // SAFETY: as the program gave them; the kernel checks.
    let call = || unsafe { sys::xattr_raw(number, file, args) };
    if is_acl(args[0] as *const c_char) {
        if args[2] > access::ACL_BYTES_MAX {
            return Err(Errno(libc::ENOSPC));
        }
        return access::set_acl(found, call);
    }
    call()
}

/// setxattr, lsetxattr.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_setxattr(path: *const c_char, name: *const c_char, value: *const u8, len: usize, how: i32, flags: i32) -> i64 {
    let args = [name as usize, value as usize, len, how as usize];
    let set = |found: &Managed| head_of(found, |head| change_attribute(found, Sysno::setxattr, head.as_ptr() as usize, args));
    // SAFETY: passed through.
    unsafe { on_name(libc::AT_FDCWD, path, flags, set) }
}

/// removexattr, lremovexattr.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_removexattr(path: *const c_char, name: *const c_char, flags: i32) -> i64 {
    let remove =
        |found: &Managed| head_of(found, |head| change_attribute(found, Sysno::removexattr, head.as_ptr() as usize, [name as usize, 0, 0, 0]));
    // SAFETY: passed through.
    unsafe { on_name(libc::AT_FDCWD, path, flags, remove) }
}

/// getxattr, lgetxattr.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_getxattr(path: *const c_char, name: *const c_char, value: *mut u8, len: usize, flags: i32) -> i64 {
    let args = [name as usize, value as usize, len, 0];
    // SAFETY: passed through; the kernel checks.
    unsafe { on_name(libc::AT_FDCWD, path, flags, |found| head_of(found, |head| sys::xattr_raw(Sysno::getxattr, head.as_ptr() as usize, args))) }
}

/// listxattr, llistxattr.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_listxattr(path: *const c_char, list: *mut u8, len: usize, flags: i32) -> i64 {
    let args = [list as usize, len, 0, 0];
    // SAFETY: passed through; the kernel checks.
    unsafe { on_name(libc::AT_FDCWD, path, flags, |found| head_of(found, |head| sys::xattr_raw(Sysno::listxattr, head.as_ptr() as usize, args))) }
}

fn companion(open: &OpenFile) -> Sys<usize> {
    open.companion().map(|fd| fd as usize).ok_or(Errno(libc::EBADF))
}

/// fsetxattr.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_fsetxattr(fd: i32, name: *const c_char, value: *const u8, len: usize, how: i32) -> i64 {
    let args = [name as usize, value as usize, len, how as usize];
    on_fd(fd, Op::Setattr, |open, found| change_attribute(found, Sysno::fsetxattr, companion(open)?, args))
}

/// fremovexattr.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_fremovexattr(fd: i32, name: *const c_char) -> i64 {
    on_fd(fd, Op::Setattr, |open, found| change_attribute(found, Sysno::fremovexattr, companion(open)?, [name as usize, 0, 0, 0]))
}

/// fgetxattr.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_fgetxattr(fd: i32, name: *const c_char, value: *mut u8, len: usize) -> i64 {
    // SAFETY: passed through; the kernel checks.
    on_fd(fd, Op::Getattr, |open, _| unsafe { sys::xattr_raw(Sysno::fgetxattr, companion(open)?, [name as usize, value as usize, len, 0]) })
}

/// flistxattr.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_flistxattr(fd: i32, list: *mut u8, len: usize) -> i64 {
    // SAFETY: passed through; the kernel checks.
    on_fd(fd, Op::Getattr, |open, _| unsafe { sys::xattr_raw(Sysno::flistxattr, companion(open)?, [list as usize, len, 0, 0]) })
}

/// The process has another root directory now.
#[unsafe(no_mangle)]
pub extern "C" fn sw_root_moved() {
    crate::base::process::root_moves();
}

/// Before this process gives up rights (or its root directory): open files stay usable.
#[unsafe(no_mangle)]
pub extern "C" fn sw_giving_up_rights() {
    file::forget_idle();
    if open::any_managed() {
        file::prime_all();
    }
}
