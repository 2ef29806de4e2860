//! ioctl on managed descriptors. What acts on a file's blocks would act on head's, so it is refused; what asks for size or position is answered from
//! the file; the rest goes to the kernel, which has only a descriptor that moves no bytes.

use crate::base::sys::{Errno, Sys};
use crate::descriptors;
use crate::fds::{self, INTERNAL, TRACED};
use crate::io::size;
use crate::open::{OpenFile, of_fd};

const FICLONE: u32 = 0x4004_9409;
const FICLONERANGE: u32 = 0x4020_940d;
const FIDEDUPERANGE: u32 = 0xc018_9436;
const FIBMAP: u32 = 0x0001;
const FIEMAP: u32 = 0xc020_660b;
const FIONREAD: u32 = 0x541b;
const FIONBIO: u32 = 0x5421;
const FIONCLEX: u32 = 0x5450;
const FIOCLEX: u32 = 0x5451;
const FIOQSIZE: u32 = 0x5460;
const FS_IOC_SETFLAGS: u32 = 0x4008_6602;
const FS_IOC_FSSETXATTR: u32 = 0x401c_5820;

/// Bytes of file_dedupe_range before its list, and of an entry of the list.
const DEDUPE: (usize, usize) = (24, 32);

fn is_managed(fd: i64) -> bool {
    i32::try_from(fd).is_ok_and(|fd| fds::entry(fd) & !TRACED != 0 && fds::entry(fd) & TRACED == 0)
}

/// ioctl on a managed descriptor, or one of the commands that name a second descriptor on any; `None`: the kernel's answer is right.
///
/// # Safety
/// `arg` is what the command asks for.
pub unsafe fn ioctl(fd: i32, command: u32, arg: usize) -> Sys<Option<i64>> {
    if fds::entry(fd) & INTERNAL != 0 {
        return Err(Errno(libc::EBADF));
    }
    let refused = match command {
        FICLONE => is_managed(arg as i32 as i64),
        // SAFETY: the commands' argument begins so (null is left to the kernel).
        FICLONERANGE if arg != 0 => is_managed(unsafe { (arg as *const i64).read_unaligned() }),
        // SAFETY: as above.
        FIDEDUPERANGE if arg != 0 => unsafe { dedupe_names_managed(arg) },
        _ => false,
    };
    if refused {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    let Ok(open) = of_fd(fd) else { return Ok(None) };
    // SAFETY: the caller's promise.
    unsafe { managed(&open, fd, command, arg) }
}

/// # Safety
/// `arg` points to a file_dedupe_range.
unsafe fn dedupe_names_managed(arg: usize) -> bool {
    // SAFETY: the caller's promise: the count stands at 16, the descriptors at the beginning of the entries.
    unsafe {
        let count = ((arg + 16) as *const u16).read_unaligned() as usize;
        (0..count).any(|i| is_managed(((arg + DEDUPE.0 + i * DEDUPE.1) as *const i64).read_unaligned()))
    }
}

/// # Safety
/// `arg` is what the command asks for.
unsafe fn managed(open: &OpenFile, fd: i32, command: u32, arg: usize) -> Sys<Option<i64>> {
    let fault = Errno(libc::EFAULT);
    match command {
        FICLONE | FICLONERANGE | FIDEDUPERANGE | FIBMAP | FIEMAP | FS_IOC_SETFLAGS | FS_IOC_FSSETXATTR => Err(Errno(libc::EOPNOTSUPP)),
        FIOCLEX => descriptors::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC as usize).map(|_| Some(0)),
        FIONCLEX => descriptors::fcntl(fd, libc::F_SETFD, 0).map(|_| Some(0)),
        FIONBIO => {
            // SAFETY: the command's argument.
            let on = unsafe { (arg as *const i32).as_ref() }.ok_or(fault)?;
            let flags = descriptors::fcntl(fd, libc::F_GETFL, 0)? as i32;
            let flags = if *on != 0 { flags | libc::O_NONBLOCK } else { flags & !libc::O_NONBLOCK };
            descriptors::fcntl(fd, libc::F_SETFL, flags as usize).map(|_| Some(0))
        }
        FIONREAD => {
            // SAFETY: the command's argument.
            let left = unsafe { (arg as *mut i32).as_mut() }.ok_or(fault)?;
            let at = size::seek(open, fd, 0, libc::SEEK_CUR)?;
            *left = (size_of(open)? - at) as i32;
            Ok(Some(0))
        }
        FIOQSIZE => {
            // SAFETY: the command's argument.
            *unsafe { (arg as *mut i64).as_mut() }.ok_or(fault)? = size_of(open)?;
            Ok(Some(0))
        }
        _ => Ok(None),
    }
}

fn size_of(open: &OpenFile) -> Sys<i64> {
    Ok(open.file()?.size()? as i64)
}
