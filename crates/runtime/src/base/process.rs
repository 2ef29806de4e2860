//! The process: its id, whether it is the child of a fork or vfork, whether it changes its root directory.
//!
//! [`PAGE`] is one page that the kernel empties in every child of fork, however it was made: `_Fork` and a bare clone run no handlers, and the child must not
//! go on in its parent's epoch slots. What is asked for on the hot path anyhow lies here, so that noticing costs nothing: a null slot, a process id of 0.

use crate::base::log;
use crate::base::sys;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// Most stores that one process may use at a time; the first place is kept for the one that it was started with.
pub const MAX_STORES: usize = 16;
/// Most managed files that one process has open at a time.
pub const MAX_FILES: usize = 8192;

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

/// What does the child's part of a fork that nobody has told us of; null before the start.
static CHILD: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Has `child` called in the child of a fork that is only noticed.
pub fn when_forked(child: fn()) {
    CHILD.store(child as *mut (), Ordering::Release);
}

/// Does the child's part of a fork that nobody has told us of.
#[inline]
pub fn notice_fork() {
    if PAGE.pid.load(Ordering::Acquire) == 0 {
        forked();
    }
}

/// The process id is not known: before start, or in the child of a fork without handlers.
#[cold]
fn forked() {
    let child = CHILD.load(Ordering::Acquire);
    if child.is_null() {
        note_pid();
    } else {
        // SAFETY: only `when_forked` stores one, a function that takes nothing.
        unsafe { core::mem::transmute::<*mut (), fn()>(child)() };
    }
}

/// The process id from here on: at start, and in the child of a fork.
pub fn note_pid() {
    PAGE.pid.store(sys::getpid(), Ordering::Release);
}

/// The process id as of start or fork; differs from the kernel's answer in a vfork child.
pub fn pid() -> u32 {
    notice_fork();
    PAGE.pid.load(Ordering::Acquire)
}

/// Whether the process may have had a child in its own memory, as vfork and clone make them; the hooks of these set it before they jump to the C library's.
/// Its own spawns never come back to the library before they become another program.
#[unsafe(no_mangle)]
pub static SW_MEMORY_SHARED: AtomicBool = AtomicBool::new(false);

/// The same, from a call by number.
#[unsafe(no_mangle)]
pub extern "C" fn sw_memory_is_shared() {
    SW_MEMORY_SHARED.store(true, Ordering::Release);
}

/// A child of vfork closes and duplicates in its own descriptor table but in its parent's memory: only the kernel's table may change.
pub fn in_vfork_child() -> bool {
    let own = pid();
    SW_MEMORY_SHARED.load(Ordering::Acquire) && sys::getpid() != own
}

/// What would leave the parent of a vfork child descriptors that only the child has is refused there.
pub fn refuse_vfork_child() -> sys::Sys<()> {
    if !in_vfork_child() {
        return Ok(());
    }
    log::say(b"a child of vfork may use the managed files that its parent has open, but open no others; open them before, or use fork", b"vfork");
    Err(sys::Errno(libc::EOPNOTSUPP))
}

/// How often the process has begun to change its root directory: a path may lead elsewhere than when a store was attached by it.
static ROOT_MOVES: AtomicU32 = AtomicU32::new(0);

/// The process is about to change its root directory.
pub fn root_moves() {
    ROOT_MOVES.fetch_add(1, Ordering::AcqRel);
}

/// How often it has.
pub fn root_moves_seen() -> u32 {
    ROOT_MOVES.load(Ordering::Acquire)
}

/// Whether /proc is the kernel's, and not something that somebody has put there for who changes his root directory. Asked anew after that.
pub fn has_proc() -> bool {
    static KNOWN: AtomicU32 = AtomicU32::new(u32::MAX);
    const PROC_SUPER_MAGIC: u64 = 0x9fa0;
    let root = root_moves_seen();
    if KNOWN.load(Ordering::Acquire) == root {
        return true;
    }
    let mut text = [0u64; 16];
    // SAFETY: a C string and room for a struct statfs.
    let is_proc = unsafe { sys::statfs_raw(c"/proc/self/fd".as_ptr(), text.as_mut_ptr().cast()) }.is_ok() && text[0] == PROC_SUPER_MAGIC;
    if is_proc {
        KNOWN.store(root, Ordering::Release);
    }
    is_proc
}
