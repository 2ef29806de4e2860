//! Blocking every signal of the calling thread around the slow paths (starting a log, adding a chunk, naming a file).
//!
//! The fast path needs nothing of the kind. The slow ones change several words at once, and a handler that records in between
//! would have to understand each half-done state. rustix offers no stable `rt_sigprocmask`, hence the system call by hand.

use core::arch::asm;

const SIG_SETMASK: usize = 2;
const ALL: u64 = !0;

/// While this lives, no signal handler runs in this thread.
pub(crate) struct Blocked {
    before: u64,
}

impl Blocked {
    pub(crate) fn all() -> Blocked {
        let mut before = 0u64;
        // SAFETY: both sets are live 64-bit words, which is the kernel's size of a set.
        unsafe { set_mask(&ALL, &mut before) };
        Blocked { before }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let mut ignored = 0u64;
        // SAFETY: as above; the mask is the one that was in force before.
        unsafe { set_mask(&self.before, &mut ignored) };
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn set_mask(new: &u64, old: &mut u64) {
    const RT_SIGPROCMASK: usize = 14;
    // SAFETY: the kernel reads eight bytes of `new`, writes eight of `old`; the instruction clobbers rcx and r11 only.
    unsafe {
        asm!("syscall", inlateout("rax") RT_SIGPROCMASK => _, in("rdi") SIG_SETMASK, in("rsi") new, in("rdx") old,
            in("r10") 8usize, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
}

#[cfg(target_arch = "aarch64")]
unsafe fn set_mask(new: &u64, old: &mut u64) {
    const RT_SIGPROCMASK: usize = 135;
    // SAFETY: as on x86_64; `svc` clobbers x0 only.
    unsafe {
        asm!("svc 0", in("x8") RT_SIGPROCMASK, inlateout("x0") SIG_SETMASK => _, in("x1") new, in("x2") old,
            in("x3") 8usize, options(nostack));
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("stripewise-trace knows the system calls of x86_64 and aarch64 only");
