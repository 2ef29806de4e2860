//! The limit of a file's size (`RLIMIT_FSIZE`). The kernel would count it on each object; the program means the file. It is kept here, so that a
//! write costs one comparison, and asked for again whenever the program sets it.

use crate::base::process::in_vfork_child;
use crate::base::sys::{self, Errno, Sys};
use crate::fds;
use core::sync::atomic::{AtomicU64, Ordering};

static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Asks the kernel: at the start, and after the program may have set it. A child of vfork sets its own, not that of the memory it runs in.
#[unsafe(no_mangle)]
pub extern "C" fn sw_limit_changed() {
    if !in_vfork_child() {
        fds::limit_changed();
        LIMIT.store(sys::limit(libc::RLIMIT_FSIZE), Ordering::Relaxed);
    }
}

/// How much of a write of `len` bytes at `at` is allowed: as in the kernel, what fits; nothing is an error and a signal.
#[inline]
pub fn clip(at: u64, len: u64) -> Sys<u64> {
    let limit = LIMIT.load(Ordering::Relaxed);
    if at.saturating_add(len) <= limit {
        return Ok(len);
    }
    if at >= limit { Err(refuse()) } else { Ok(limit - at) }
}

/// Whether a file may grow from `size` to `to` without a write.
pub fn grow(size: u64, to: u64) -> Sys<()> {
    if to > size && exceeds(to) { Err(refuse()) } else { Ok(()) }
}

/// Whether a size is more than this process may give a file. Another's write may have made it so.
pub fn exceeds(size: u64) -> bool {
    size > LIMIT.load(Ordering::Relaxed)
}

#[cold]
fn refuse() -> Errno {
    sys::signal_thread(libc::SIGXFSZ);
    Errno(libc::EFBIG)
}
