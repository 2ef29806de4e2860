//! One page that the kernel empties in every child of fork, however it was made: `_Fork` and a bare clone run no handlers, and the child must not go
//! on in its parent's epoch slots. What is asked for on the hot path anyhow lies here, so that noticing costs nothing: a null slot, a process id of 0.

use crate::env;
use crate::store::MAX_STORES;
use crate::sys;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The page.
#[repr(C, align(4096))]
pub struct Page {
    /// Process id; 0 = not started, or forked and not noticed yet.
    pub pid: AtomicU32,
    /// The mapped slot of each store.
    pub slots: [AtomicPtr<u8>; MAX_STORES],
}

/// The page of this process.
pub static PAGE: Page = Page { pid: AtomicU32::new(0), slots: [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_STORES] };

/// At start-up. A kernel that does not know how leaves forks without handlers unnoticed, no more.
pub fn start() {
    const MADV_WIPEONFORK: usize = 18;
    sys::madvise(&raw const PAGE as usize, core::mem::size_of::<Page>(), MADV_WIPEONFORK);
}

/// Does the child's part of a fork that nobody has told us of.
#[inline]
pub fn notice_fork() {
    if PAGE.pid.load(Ordering::Acquire) == 0 {
        env::forked();
    }
}
