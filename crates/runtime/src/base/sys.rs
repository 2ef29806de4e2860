//! System calls without libc. The library hooks libc, so calling it from here would come back through our own hooks.
//! Results are those of the kernel: a value, or an [`Errno`].

use core::ffi::CStr;
use syscalls::Sysno;

/// The kernel's error number (positive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

/// Result of a system call.
pub type Sys<T> = Result<T, Errno>;

/// Turns a kernel result into what the C side takes: the value, or -errno.
pub fn to_c(result: Sys<i64>) -> i64 {
    match result {
        Ok(value) => value,
        Err(Errno(number)) => -i64::from(number),
    }
}

/// Turns what the C side returned (-errno on failure) into a result.
pub fn from_c(value: i64) -> Sys<i64> {
    if (-4095..0).contains(&value) { Err(Errno(-value as i32)) } else { Ok(value) }
}

/// What a target answered, as the rest of the library has it.
#[inline]
pub fn of_target<T>(answer: Result<T, stripewise_target::within::Os>) -> Sys<T> {
    answer.map_err(|errno| Errno(errno.raw_os_error()))
}

/// A raw system call.
#[inline]
pub fn call(nr: Sysno, args: [usize; 6]) -> Sys<i64> {
    let [a, b, c, d, e, f] = args;
    // SAFETY: each wrapper below states what its call needs; the kernel checks pointers and answers EFAULT.
    match unsafe { syscalls::syscall6(nr, a, b, c, d, e, f) } {
        Ok(value) => Ok(value as i64),
        Err(errno) => Err(Errno(errno.into_raw())),
    }
}

fn fd_arg(fd: i32) -> usize {
    fd as isize as usize
}

fn path_arg(path: &CStr) -> usize {
    path.as_ptr() as usize
}

/// openat(2) with raw flags (access mode 3 among them).
pub fn openat(dirfd: i32, path: &CStr, flags: i32, mode: u32) -> Sys<i32> {
    call(Sysno::openat, [fd_arg(dirfd), path_arg(path), flags as usize, mode as usize, 0, 0]).map(|fd| fd as i32)
}

/// open by absolute path, always close-on-exec.
pub fn open(path: &CStr, flags: i32, mode: u32) -> Sys<i32> {
    openat(libc::AT_FDCWD, path, flags | libc::O_CLOEXEC, mode)
}

/// close(2).
pub fn close(fd: i32) {
    let _ = call(Sysno::close, [fd_arg(fd), 0, 0, 0, 0, 0]);
}

/// close_range(2).
pub fn close_range(first: u32, last: u32, flags: u32) -> Sys<i64> {
    call(Sysno::close_range, [first as usize, last as usize, flags as usize, 0, 0, 0])
}

/// pread(2).
/// # Safety
/// `to` is writable for `len` bytes (else EFAULT).
#[inline]
pub unsafe fn pread(fd: i32, to: *mut u8, len: usize, at: u64) -> Sys<usize> {
    call(Sysno::pread64, [fd_arg(fd), to as usize, len, at as usize, 0, 0]).map(|n| n as usize)
}

/// pwrite(2).
/// # Safety
/// `from` is readable for `len` bytes (else EFAULT).
#[inline]
pub unsafe fn pwrite(fd: i32, from: *const u8, len: usize, at: u64) -> Sys<usize> {
    call(Sysno::pwrite64, [fd_arg(fd), from as usize, len, at as usize, 0, 0]).map(|n| n as usize)
}

/// read(2).
/// # Safety
/// `to` is writable for `len` bytes (else EFAULT).
pub unsafe fn read_raw(fd: i32, to: *mut u8, len: usize) -> Sys<u64> {
    call(Sysno::read, [fd_arg(fd), to as usize, len, 0, 0, 0]).map(|n| n as u64)
}

/// readv(2).
/// # Safety
/// `iov` points to `count` elements (else EFAULT).
pub unsafe fn readv_raw(fd: i32, iov: *const libc::iovec, count: i32) -> Sys<u64> {
    call(Sysno::readv, [fd_arg(fd), iov as usize, count as usize, 0, 0, 0]).map(|n| n as u64)
}

/// Reads from the current position.
pub fn read(fd: i32, to: &mut [u8]) -> Sys<usize> {
    call(Sysno::read, [fd_arg(fd), to.as_mut_ptr() as usize, to.len(), 0, 0, 0]).map(|n| n as usize)
}

/// Writes at the current position.
pub fn write(fd: i32, from: &[u8]) -> Sys<usize> {
    call(Sysno::write, [fd_arg(fd), from.as_ptr() as usize, from.len(), 0, 0, 0]).map(|n| n as usize)
}

/// lseek(2).
#[inline]
pub fn lseek(fd: i32, at: i64, whence: i32) -> Sys<u64> {
    call(Sysno::lseek, [fd_arg(fd), at as usize, whence as usize, 0, 0, 0]).map(|v| v as u64)
}

/// fstat by descriptor or path: newfstatat(2) into the C library's `struct stat`, which is the kernel's on 64-bit Linux.
/// # Safety
/// `path` is a C string or null, `st` writable (else EFAULT).
pub unsafe fn fstatat_raw(dirfd: i32, path: *const libc::c_char, st: *mut libc::stat, flags: i32) -> Sys<()> {
    call(Sysno::newfstatat, [fd_arg(dirfd), path as usize, st as usize, flags as usize, 0, 0]).map(|_| ())
}

/// stat of a path.
pub fn stat(path: &CStr, flags: i32) -> Sys<libc::stat> {
    let mut st = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: both pointers are valid; zeroed is a valid stat.
    unsafe { fstatat_raw(libc::AT_FDCWD, path.as_ptr(), st.as_mut_ptr(), flags).map(|()| st.assume_init()) }
}

/// stat of a name itself, not of what it links to.
pub fn lstat_at(dirfd: i32, path: &CStr) -> Sys<libc::stat> {
    let mut st = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: both pointers are valid; zeroed is a valid stat.
    unsafe { fstatat_raw(dirfd, path.as_ptr(), st.as_mut_ptr(), libc::AT_SYMLINK_NOFOLLOW).map(|()| st.assume_init()) }
}

/// stat of a descriptor.
pub fn fstat(fd: i32) -> Sys<libc::stat> {
    let mut st = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: as above; the empty path names the descriptor itself.
    unsafe { fstatat_raw(fd, c"".as_ptr(), st.as_mut_ptr(), libc::AT_EMPTY_PATH).map(|()| st.assume_init()) }
}

/// statx(2).
/// # Safety
/// As [`fstatat_raw`].
pub unsafe fn statx_raw(dirfd: i32, path: *const libc::c_char, flags: i32, mask: u32, st: *mut libc::statx) -> Sys<()> {
    call(Sysno::statx, [fd_arg(dirfd), path as usize, flags as usize, mask as usize, st as usize, 0]).map(|_| ())
}

/// statfs(2).
/// # Safety
/// As [`fstatat_raw`].
pub unsafe fn statfs_raw(path: *const libc::c_char, st: *mut u8) -> Sys<i64> {
    call(Sysno::statfs, [path as usize, st as usize, 0, 0, 0, 0])
}

/// faccessat(2), with flags faccessat2(2).
/// # Safety
/// `path` is a C string or null (else EFAULT).
pub unsafe fn faccessat_raw(dirfd: i32, path: *const libc::c_char, mode: i32, flags: i32) -> Sys<i64> {
    // Kernels before 5.8 know the call without flags only.
    let number = if flags == 0 { Sysno::faccessat } else { Sysno::faccessat2 };
    call(number, [fd_arg(dirfd), path as usize, mode as usize, flags as usize, 0, 0])
}

/// readlinkat(2); the bytes of the link's text, or an error.
pub fn readlinkat<'a>(dirfd: i32, path: &CStr, into: &'a mut [u8]) -> Sys<&'a [u8]> {
    let n = call(Sysno::readlinkat, [fd_arg(dirfd), path_arg(path), into.as_mut_ptr() as usize, into.len(), 0, 0])? as usize;
    into.get(..n).ok_or(Errno(libc::EINVAL))
}

/// The same for a path that the program gave.
/// # Safety
/// `path` is a C string or null (else EFAULT).
pub unsafe fn readlinkat_raw(dirfd: i32, path: *const libc::c_char, into: &mut [core::mem::MaybeUninit<u8>]) -> Sys<&[u8]> {
    let n = call(Sysno::readlinkat, [fd_arg(dirfd), path as usize, into.as_mut_ptr() as usize, into.len(), 0, 0])? as usize;
    let text = into.get(..n).ok_or(Errno(libc::EINVAL))?;
    // SAFETY: the kernel has written them.
    Ok(unsafe { core::slice::from_raw_parts(text.as_ptr().cast(), n) })
}

/// symlinkat(2).
pub fn symlinkat(text: &CStr, dirfd: i32, path: &CStr) -> Sys<i64> {
    call(Sysno::symlinkat, [path_arg(text), fd_arg(dirfd), path_arg(path), 0, 0, 0])
}

/// unlinkat(2).
/// # Safety
/// As [`faccessat_raw`].
pub unsafe fn unlinkat_raw(dirfd: i32, path: *const libc::c_char, flags: i32) -> Sys<i64> {
    call(Sysno::unlinkat, [fd_arg(dirfd), path as usize, flags as usize, 0, 0, 0])
}

/// Removes a file (or, with `AT_REMOVEDIR`, a directory) of a directory.
pub fn unlinkat(dirfd: i32, path: &CStr, flags: i32) -> Sys<i64> {
    // SAFETY: a valid C string.
    unsafe { unlinkat_raw(dirfd, path.as_ptr(), flags) }
}

/// renameat2(2).
/// # Safety
/// Both paths are C strings or null (else EFAULT).
pub unsafe fn renameat2_raw(from_dir: i32, from: *const libc::c_char, to_dir: i32, to: *const libc::c_char, flags: u32) -> Sys<i64> {
    call(Sysno::renameat2, [fd_arg(from_dir), from as usize, fd_arg(to_dir), to as usize, flags as usize, 0])
}

/// Renames between two directories.
pub fn renameat(from_dir: i32, from: &CStr, to_dir: i32, to: &CStr) -> Sys<i64> {
    // SAFETY: valid C strings.
    unsafe { renameat2_raw(from_dir, from.as_ptr(), to_dir, to.as_ptr(), 0) }
}

/// mkdirat(2).
pub fn mkdirat(dirfd: i32, path: &CStr, mode: u32) -> Sys<i64> {
    call(Sysno::mkdirat, [fd_arg(dirfd), path_arg(path), mode as usize, 0, 0, 0])
}

/// chmod by absolute path.
pub fn chmod(path: &CStr, mode: u32) -> Sys<i64> {
    call(Sysno::fchmodat, [fd_arg(libc::AT_FDCWD), path_arg(path), mode as usize, 0, 0, 0])
}

/// fchmod(2).
pub fn fchmod(fd: i32, mode: u32) -> Sys<i64> {
    call(Sysno::fchmod, [fd_arg(fd), mode as usize, 0, 0, 0, 0])
}

/// fchownat(2).
pub fn chownat(dirfd: i32, path: &CStr, uid: u32, gid: u32, flags: i32) -> Sys<i64> {
    call(Sysno::fchownat, [fd_arg(dirfd), path_arg(path), uid as usize, gid as usize, flags as usize, 0])
}

/// utimensat(2); without a path on the descriptor itself.
/// # Safety
/// `path` is a C string or null, `times` null or two timespecs (else EFAULT).
pub unsafe fn utimensat_raw(dirfd: i32, path: *const libc::c_char, times: *const libc::timespec, flags: i32) -> Sys<i64> {
    call(Sysno::utimensat, [fd_arg(dirfd), path as usize, times as usize, flags as usize, 0, 0])
}

/// The calls on extended attributes, by name (`setxattr`) and by descriptor (`fsetxattr`): all take a file, a name, a buffer, a length and flags,
/// or less.
/// # Safety
/// The pointers are what the call takes (else EFAULT).
pub unsafe fn xattr_raw(call_number: Sysno, file: usize, args: [usize; 4]) -> Sys<i64> {
    let [name, value, len, flags] = args;
    call(call_number, [file, name, value, len, flags, 0])
}

/// linkat(2).
/// # Safety
/// Both paths are C strings or null (else EFAULT).
pub unsafe fn linkat_raw(from_dir: i32, from: *const libc::c_char, to_dir: i32, to: *const libc::c_char, flags: i32) -> Sys<i64> {
    call(Sysno::linkat, [fd_arg(from_dir), from as usize, fd_arg(to_dir), to as usize, flags as usize, 0])
}

/// A number that nobody guesses. Where the kernel has no randomness yet the clock and the process have to do.
pub fn random_u64() -> u64 {
    let mut word = [0u8; 8];
    match call(Sysno::getrandom, [word.as_mut_ptr() as usize, word.len(), libc::GRND_NONBLOCK as usize, 0, 0, 0]) {
        Ok(8) => u64::from_ne_bytes(word),
        _ => stripewise_target::time::now_ns().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(getpid()) << 40 ^ u64::from(gettid()),
    }
}

/// The process's umask, as /proc tells it: asking the kernel would change it.
pub fn umask() -> u32 {
    let mut text = [0u8; 256];
    let text = read_file(c"/proc/self/status", &mut text).unwrap_or(&[]);
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Umask:"));
    line.and_then(|octal| u32::from_str_radix(core::str::from_utf8(octal.trim_ascii()).ok()?, 8).ok()).unwrap_or(0o077)
}

/// Effective user id.
pub fn geteuid() -> u32 {
    call(Sysno::geteuid, [0; 6]).unwrap_or(0) as u32
}

/// truncate(2).
pub fn truncate(path: &CStr, len: u64) -> Sys<i64> {
    call(Sysno::truncate, [path_arg(path), len as usize, 0, 0, 0, 0])
}

/// ftruncate(2).
pub fn ftruncate(fd: i32, len: u64) -> Sys<i64> {
    call(Sysno::ftruncate, [fd_arg(fd), len as usize, 0, 0, 0, 0])
}

/// fallocate(2).
pub fn fallocate(fd: i32, mode: i32, at: u64, len: u64) -> Sys<i64> {
    call(Sysno::fallocate, [fd_arg(fd), mode as usize, at as usize, len as usize, 0, 0])
}

/// fsync(2) or fdatasync(2).
pub fn fsync(fd: i32, data_only: bool) -> Sys<i64> {
    call(if data_only { Sysno::fdatasync } else { Sysno::fsync }, [fd_arg(fd), 0, 0, 0, 0, 0])
}

/// syncfs(2).
pub fn syncfs(fd: i32) -> Sys<()> {
    call(Sysno::syncfs, [fd_arg(fd), 0, 0, 0, 0, 0]).map(|_| ())
}

/// fcntl(2).
pub fn fcntl(fd: i32, op: i32, arg: usize) -> Sys<i64> {
    call(Sysno::fcntl, [fd_arg(fd), op as usize, arg, 0, 0, 0])
}

/// flock(2).
pub fn flock(fd: i32, op: i32) -> Sys<i64> {
    call(Sysno::flock, [fd_arg(fd), op as usize, 0, 0, 0, 0])
}

/// dup3(2).
pub fn dup3(fd: i32, to: i32, flags: i32) -> Sys<i64> {
    call(Sysno::dup3, [fd_arg(fd), fd_arg(to), flags as usize, 0, 0, 0])
}

/// posix_fadvise(2).
pub fn fadvise(fd: i32, at: u64, len: u64, advice: i32) {
    let _ = call(Sysno::fadvise64, [fd_arg(fd), at as usize, len as usize, advice as usize, 0, 0]);
}

/// Effective user and group id.
pub fn effective_ids() -> (u32, u32) {
    (call(Sysno::geteuid, [0; 6]).unwrap_or(0) as u32, call(Sysno::getegid, [0; 6]).unwrap_or(0) as u32)
}

/// Whether a file has an extended attribute.
pub fn has_xattr(path: &CStr, name: &CStr) -> bool {
    call(Sysno::getxattr, [path_arg(path), path_arg(name), 0, 0, 0, 0]).is_ok()
}

/// Whether two of this process's descriptors are dups of each other; `None` where the kernel does not say.
pub fn same_open_file(a: i32, b: i32) -> Option<bool> {
    const KCMP_FILE: usize = 0;
    let pid = getpid() as usize;
    call(Sysno::kcmp, [pid, pid, KCMP_FILE, fd_arg(a), fd_arg(b), 0]).ok().map(|order| order == 0)
}

/// Sets both times of a file to those of a stat.
pub fn set_times(path: &CStr, st: &libc::stat) {
    let times =
        [libc::timespec { tv_sec: st.st_atime, tv_nsec: st.st_atime_nsec }, libc::timespec { tv_sec: st.st_mtime, tv_nsec: st.st_mtime_nsec }];
    let _ = call(Sysno::utimensat, [fd_arg(libc::AT_FDCWD), path_arg(path), times.as_ptr() as usize, 0, 0, 0]);
}

/// The same of a descriptor.
pub fn set_times_of(fd: i32, st: &libc::stat) {
    let times =
        [libc::timespec { tv_sec: st.st_atime, tv_nsec: st.st_atime_nsec }, libc::timespec { tv_sec: st.st_mtime, tv_nsec: st.st_mtime_nsec }];
    let _ = call(Sysno::utimensat, [fd_arg(fd), 0, times.as_ptr() as usize, 0, 0, 0]);
}

/// Process id, from the kernel: right in vfork children too.
pub fn getpid() -> u32 {
    call(Sysno::getpid, [0; 6]).unwrap_or(0) as u32
}

/// Whether this thread runs on its alternate signal stack.
pub fn on_alternate_stack() -> bool {
    let mut stack = libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    call(Sysno::sigaltstack, [0, &raw mut stack as usize, 0, 0, 0, 0]).is_ok() && stack.ss_flags & libc::SS_ONSTACK != 0
}

/// Thread id.
pub fn gettid() -> u32 {
    call(Sysno::gettid, [0; 6]).unwrap_or(0) as u32
}

/// Maps a file (or, with fd -1, anonymous memory).
pub fn mmap(fd: i32, len: usize, prot: i32, flags: i32) -> Sys<*mut u8> {
    call(Sysno::mmap, [0, len, prot as usize, flags as usize, fd_arg(fd), 0]).map(|p| p as *mut u8)
}

/// madvise(2); failure means that the advice is not known.
pub fn madvise(at: usize, len: usize, advice: usize) {
    let _ = call(Sysno::madvise, [at, len, advice, 0, 0, 0]);
}

/// mmap(2) with all its arguments.
/// # Safety
/// With MAP_FIXED nothing that lives lies in `[at, at + len)`.
pub unsafe fn mmap_at(at: usize, len: usize, prot: i32, flags: i32, fd: i32, offset: i64) -> Sys<usize> {
    call(Sysno::mmap, [at, len, prot as usize, flags as usize, fd_arg(fd), offset as usize]).map(|p| p as usize)
}

/// munmap(2).
/// # Safety
/// Nothing that lives lies in `[at, at + len)`.
pub unsafe fn munmap_at(at: usize, len: usize) -> Sys<i64> {
    call(Sysno::munmap, [at, len, 0, 0, 0, 0])
}

/// mremap(2).
/// # Safety
/// As munmap for the old range, and for the new one with MREMAP_FIXED.
pub unsafe fn mremap(old: usize, old_len: usize, new_len: usize, flags: i32, new: usize) -> Sys<usize> {
    call(Sysno::mremap, [old, old_len, new_len, flags as usize, new, 0]).map(|p| p as usize)
}

/// msync(2).
pub fn msync(at: usize, len: usize, flags: i32) -> Sys<i64> {
    call(Sysno::msync, [at, len, flags as usize, 0, 0, 0])
}

/// memfd_create(2), close-on-exec.
pub fn memfd(name: &CStr) -> Sys<i32> {
    call(Sysno::memfd_create, [path_arg(name), libc::MFD_CLOEXEC as usize, 0, 0, 0, 0]).map(|fd| fd as i32)
}

/// Replaces a shared mapping in place by one of another descriptor of the same file.
pub fn remap(base: *mut u8, fd: i32, len: usize, prot: i32) -> Sys<i64> {
    call(Sysno::mmap, [base as usize, len, prot as usize, (libc::MAP_SHARED | libc::MAP_FIXED) as usize, fd_arg(fd), 0])
}

/// Unmaps.
/// # Safety
/// Nothing refers to the mapping any more.
pub unsafe fn munmap(base: *mut u8, len: usize) {
    let _ = call(Sysno::munmap, [base as usize, len, 0, 0, 0, 0]);
}

/// Waits on a futex word while it is `value`, at most 10 ms (a killed waker must not block anybody for good).
pub fn futex_wait(word: &core::sync::atomic::AtomicU32, value: u32) {
    let timeout = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    let _ = call(Sysno::futex, [word.as_ptr() as usize, libc::FUTEX_WAIT as usize, value as usize, &raw const timeout as usize, 0, 0]);
}

/// Wakes one waiter.
pub fn futex_wake(word: &core::sync::atomic::AtomicU32) {
    let _ = call(Sysno::futex, [word.as_ptr() as usize, libc::FUTEX_WAKE as usize, 1, 0, 0, 0]);
}

/// A soft limit.
pub fn limit(resource: u32) -> u64 {
    let mut limit = [u64::MAX; 2];
    let _ = call(Sysno::prlimit64, [0, resource as usize, 0, limit.as_mut_ptr() as usize, 0, 0]);
    limit[0]
}

/// Sends a signal to this thread.
pub fn signal_thread(number: i32) {
    let _ = call(Sysno::tgkill, [getpid() as usize, gettid() as usize, number as usize, 0, 0, 0]);
}

/// Directory entries, raw.
pub fn getdents(fd: i32, into: &mut [u8]) -> Sys<&[u8]> {
    let n = call(Sysno::getdents64, [fd_arg(fd), into.as_mut_ptr() as usize, into.len(), 0, 0, 0])? as usize;
    into.get(..n).ok_or(Errno(libc::EINVAL))
}

/// Calls `each` with every name in a directory but `.` and `..`.
pub fn for_each_name(dir: &CStr, each: impl FnMut(&[u8])) -> Sys<()> {
    for_each_name_at(libc::AT_FDCWD, dir, each)
}

/// The same for a directory named relative to another.
pub fn for_each_name_at(dirfd: i32, dir: &CStr, mut each: impl FnMut(&[u8])) -> Sys<()> {
    let fd = openat(dirfd, dir, libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC, 0)?;
    let mut buffer = [0u8; 4096];
    let result = loop {
        match getdents(fd, &mut buffer) {
            Ok([]) => break Ok(()),
            Err(errno) => break Err(errno),
            Ok(mut entries) => {
                // struct linux_dirent64: ino u64, off u64, reclen u16, type u8, name.
                while let Some(len) = entries.get(16..18).and_then(|b| b.try_into().ok()).map(u16::from_le_bytes) {
                    let Some(entry) = entries.get(19..len as usize) else { break };
                    let name = entry.split(|&c| c == 0).next().unwrap_or(&[]);
                    if name != b"." && name != b".." {
                        each(name);
                    }
                    entries = entries.get(len as usize..).unwrap_or(&[]);
                }
            }
        }
    };
    close(fd);
    result
}

/// Reads a small file whole.
pub fn read_file<'a>(path: &CStr, into: &'a mut [u8]) -> Sys<&'a [u8]> {
    let fd = open(path, libc::O_RDONLY, 0)?;
    let result = read(fd, into);
    close(fd);
    into.get(..result?).ok_or(Errno(libc::EINVAL))
}
