//! posix_fadvise, readahead, sync_file_range, syncfs and lockf.

use crate::base::sys::{self, Errno, Sys, to_c};
use crate::descriptors;
use crate::io::advice;
use crate::open::of_fd;
use crate::trace;
use libc::off_t;
use stripewise_trace::Op;

/// posix_fadvise.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fadvise(fd: i32, at: off_t, len: off_t, advice: i32) -> i64 {
    to_c(of_fd(fd).and_then(|open| advice::fadvise(&open, at, len, advice)).map(|()| 0))
}

/// readahead.
#[unsafe(no_mangle)]
pub extern "C" fn sw_readahead(fd: i32, at: off_t, len: usize) -> i64 {
    to_c(of_fd(fd).and_then(|open| advice::readahead(&open, at, len)).map(|()| 0))
}

/// sync_file_range.
#[unsafe(no_mangle)]
pub extern "C" fn sw_sync_file_range(fd: i32, at: off_t, len: off_t, flags: u32) -> i64 {
    let start = trace::begin();
    let result = of_fd(fd).and_then(|open| advice::sync_file_range(&open, at, len, flags)).map(|()| 0);
    trace::data(fd, Op::Sync, at as u64, len as u64, &result, start);
    to_c(result)
}

/// syncfs.
#[unsafe(no_mangle)]
pub extern "C" fn sw_syncfs(fd: i32) -> i64 {
    let start = trace::begin();
    let result = of_fd(fd).and_then(|open| advice::syncfs(&open)).map(|()| 0);
    trace::data(fd, Op::Sync, 0, 0, &result, start);
    to_c(result)
}

/// lockf: a byte-range lock from the current position on, as the C library makes it of fcntl.
#[unsafe(no_mangle)]
pub extern "C" fn sw_lockf(fd: i32, cmd: i32, len: off_t) -> i64 {
    let mut range = libc::flock { l_type: libc::F_WRLCK as i16, l_whence: libc::SEEK_CUR as i16, l_start: 0, l_len: len, l_pid: 0 };
    let mut ask = |op: i32, kind: i32| -> Sys<i64> {
        range.l_type = kind as i16;
        descriptors::fcntl(fd, op, &raw mut range as usize)
    };
    to_c(match cmd {
        libc::F_LOCK => ask(libc::F_SETLKW, libc::F_WRLCK),
        libc::F_TLOCK => ask(libc::F_SETLK, libc::F_WRLCK),
        libc::F_ULOCK => ask(libc::F_SETLK, libc::F_UNLCK),
        libc::F_TEST => ask(libc::F_GETLK, libc::F_RDLCK).and_then(|_| {
            let free = i32::from(range.l_type) == libc::F_UNLCK || range.l_pid as u32 == sys::getpid();
            if free { Ok(0) } else { Err(Errno(libc::EACCES)) }
        }),
        _ => Err(Errno(libc::EINVAL)),
    })
}
