//! The per-thread block in the shim's initial-exec storage, and where this thread's stack is.

use crate::base::sys;

/// `struct sw_thread` of the shim.
#[repr(C, align(16))]
pub struct Thread {
    /// The trace's log.
    pub log: [u8; 256],
    /// Line in the slots, plus one; 0 = none yet.
    pub line: u64,
    /// I/Os that this thread is inside (more than one in signal handlers).
    pub depth: u64,
    /// Stack pointer at the outermost entry.
    pub stack: u64,
    /// Store of the outermost entry.
    pub store: u64,
    /// Locks that this thread holds around a fork, one bit each.
    pub held: u64,
    /// This thread's id, as far as it was asked for; 0 = not yet, or in the child of a fork.
    pub tid: u64,
    /// Place of the open file that this thread's call works on; 0 = it is in none (`open::using`).
    pub using: u64,
    /// Stack pointer there.
    pub using_stack: u64,
    /// Frame of the outermost MPI-IO call that this thread is in; 0 = none (`mpi`).
    pub mpi: u64,
    /// Not 0: what that call does with descriptors is not recorded.
    pub mpi_muted: u64,
    /// Descriptor of a plain file with copies that the MPI-IO call has opened, plus one.
    pub mpi_copied: u64,
    /// Descriptor of a store's file that it has opened last, plus one.
    pub mpi_managed: u64,
    /// What the call that this thread is in asks for of a new file's stripes (`open::striping`).
    pub striping: [u64; 7],
    /// Number of the replica that has served the read of a managed file that this thread's call is, plus one.
    pub from_copy: u64,
    /// Address of the lock that this thread is just taking or giving back, and its stack there (`lock`).
    pub claim: [u64; 2],
}

/// Words of `struct sw_thread` behind the log: with fewer the block would lie on other thread-local objects. That the shim has as many is read from it.
const SHIM_WORDS: usize = 22;
const SHIM_HAS: &[u8] = b"uint64_t words[22]; /* as many as `Thread`";
const _: () = assert!(size_of::<Thread>() == 256 + SHIM_WORDS * 8);
const _: () = assert!(is_in(include_bytes!("../../../../shim/stripewise.h"), SHIM_HAS));

const fn is_in(mut text: &[u8], part: &[u8]) -> bool {
    while let Some((_, rest)) = text.split_first() {
        if is_before(text, part) {
            return true;
        }
        text = rest;
    }
    false
}

const fn is_before(mut text: &[u8], mut part: &[u8]) -> bool {
    while let (Some((a, more)), Some((b, rest))) = (text.split_first(), part.split_first()) {
        if *a != *b {
            return false;
        }
        (text, part) = (more, rest);
    }
    part.is_empty()
}

unsafe extern "C" {
    fn sw_thread() -> *mut Thread;
}

/// This thread's block.
#[inline]
pub fn thread() -> *mut Thread {
    // SAFETY: returns the address of a thread-local object.
    unsafe { sw_thread() }
}

/// This thread's id. In a child of vfork it is the parent's thread, whose memory and locks it uses.
#[inline]
pub fn id() -> u32 {
    // SAFETY: this thread's own block.
    let tid = unsafe { &mut (*thread()).tid };
    if *tid == 0 {
        *tid = u64::from(sys::gettid());
    }
    *tid as u32
}

/// About where this thread's stack ends now.
#[inline(always)]
pub fn stack_here() -> u64 {
    let here = 0u8;
    &raw const here as u64
}

/// Whether the frame that was at `stack` is gone, by siglongjmp or cancellation, and this is no signal handler on top of it. A handler on the
/// same stack begins below the kernel's record of a signal, which is longer than `RECORD`; one on a stack of its own the kernel knows.
#[cold]
#[inline(never)]
pub fn is_left_behind(stack: u64) -> bool {
    const RECORD: u64 = 512;
    stack_here() + RECORD > stack && !sys::on_alternate_stack()
}
