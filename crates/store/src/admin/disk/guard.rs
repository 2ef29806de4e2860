//! Mapped words that another user may cut while a verb works on his file. The kernel answers the next access with SIGBUS; here that becomes a page of
//! zeros, which are no valid words, so that the verb ends with an error of that file and not by a signal. Every other SIGBUS gets to what was set for it
//! before. The preloaded library has the same for programs, with their own handlers to reckon with (`runtime/base/guard.rs`).

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// Mappings that are watched at most: a verb has few at a time. One more is mapped all the same.
const AREAS: usize = 256;

struct Area {
    base: AtomicUsize,
    len: AtomicUsize,
}

static AREA: [Area; AREAS] = [const { Area { base: AtomicUsize::new(0), len: AtomicUsize::new(0) } }; AREAS];
/// What was set for SIGBUS before; never freed.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(core::ptr::null_mut());

/// A mapping under watch, until it is forgotten.
pub(super) struct Watch(Option<&'static Area>);

impl Watch {
    /// Watches `len` bytes from `base` on.
    pub fn new(base: *mut u8, len: usize) -> Self {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(install);
        let area = AREA.iter().find(|area| area.base.compare_exchange(0, base as usize, Ordering::AcqRel, Ordering::Relaxed).is_ok());
        if let Some(area) = area {
            area.len.store(len, Ordering::Release);
        }
        Self(area)
    }

    /// Before the mapping goes: its place may be another's next.
    pub fn forget(&self) {
        if let Some(area) = self.0 {
            area.len.store(0, Ordering::Release);
            area.base.store(0, Ordering::Release);
        }
    }
}

fn install() {
    // SAFETY: plain data; the calls get valid pointers.
    unsafe {
        let mut before: libc::sigaction = core::mem::zeroed();
        let mut ours: libc::sigaction = core::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, core::ptr::null(), &raw mut before) != 0 {
            return;
        }
        BEFORE.store(Box::into_raw(Box::new(before)), Ordering::Release);
        ours.sa_sigaction = on_fault as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaction(libc::SIGBUS, &raw const ours, core::ptr::null_mut());
    }
}

/// Runs in the signal handler: atomics and one system call, or what was there before.
extern "C" fn on_fault(number: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel's own struct.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let area = AREA.iter().find(|area| {
        let base = area.base.load(Ordering::Acquire);
        base != 0 && address >= base && address - base < area.len.load(Ordering::Acquire)
    });
    if let Some(area) = area.filter(|_| code > 0) {
        let (base, len) = (area.base.load(Ordering::Acquire), area.len.load(Ordering::Acquire));
        // All of it, so that no word of the old and the new stand side by side.
        // SAFETY: the area's own mapping, which whoever uses it goes on using.
        let mended = unsafe { mmap_anonymous(base as *mut _, len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED) };
        if mended.is_ok() {
            return;
        }
    }
    // SAFETY: as it was read from the kernel, and never freed.
    let before = unsafe { BEFORE.load(Ordering::Acquire).as_ref() };
    match before {
        Some(before) if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN => {
            // SAFETY: a handler that somebody has set, of the kind that his flags say.
            unsafe {
                if before.sa_flags & libc::SA_SIGINFO != 0 {
                    core::mem::transmute::<usize, extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void)>(before.sa_sigaction)(
                        number, info, context,
                    );
                } else {
                    core::mem::transmute::<usize, extern "C" fn(libc::c_int)>(before.sa_sigaction)(number);
                }
            }
        }
        // Back to the instruction, or the sender's signal once more, with nobody in between.
        _ => unsafe {
            // SAFETY: plain calls.
            libc::signal(libc::SIGBUS, libc::SIG_DFL);
            if code <= 0 {
                libc::raise(number);
            }
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use rustix::mm::{mmap, munmap};

    #[test]
    fn memory_that_is_cut_becomes_zeros() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        // SAFETY: a fresh mapping.
        let base = unsafe { mmap(core::ptr::null_mut(), 8192, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0).unwrap() }.cast::<u8>();
        let watch = Watch::new(base, 8192);
        // SAFETY: mapped; the watch mends what is cut.
        unsafe {
            base.add(5000).write_volatile(7);
            file.set_len(0).unwrap();
            assert_eq!(base.add(5000).read_volatile(), 0);
            base.write_volatile(1);
            assert_eq!(file.metadata().unwrap().len(), 0);
            watch.forget();
            munmap(base.cast(), 8192).unwrap();
        }
    }
}
