//! Shared memory that another user may cut while it is mapped. The kernel answers the next access with SIGBUS; here that becomes a page of zeros and a
//! note that the memory is no good any more, so that the file's calls fail with EIO and the program goes on. Nothing is installed before the first such
//! memory is mapped, and every other SIGBUS gets to what the program itself has set for it (shim/signals.c).

use crate::base::sys;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Areas that are watched at most: every file, and devices and slot of every store. One more is mapped all the same.
const AREAS: usize = crate::base::process::MAX_FILES + 2 * crate::base::process::MAX_STORES;

struct Area {
    base: AtomicUsize,
    len: AtomicUsize,
    cut: AtomicPtr<AtomicBool>,
    /// The word that holds the mapping, where it is to be made anew.
    holder: AtomicPtr<AtomicPtr<u8>>,
}

static TABLE: [Area; AREAS] = [const {
    Area {
        base: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        cut: AtomicPtr::new(core::ptr::null_mut()),
        holder: AtomicPtr::new(core::ptr::null_mut()),
    }
}; AREAS];
/// One more than the highest place in use.
static HIGH_WATER: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    /// Takes SIGBUS over, once.
    fn sw_guard_install();
    /// Puts back what a new program would find ignored (1), or the library's own handler after a failed exec (0).
    fn sw_guard_exec(goes: i32);
}

pub fn before_exec() {
    // SAFETY: no preconditions.
    unsafe { sw_guard_exec(1) };
}

/// It came back.
pub fn exec_failed() {
    // SAFETY: as above.
    unsafe { sw_guard_exec(0) };
}

/// Watches a mapping that others may cut; `cut` is set when that has happened.
pub fn watch(base: *mut u8, len: usize, cut: &'static AtomicBool) {
    add(base, len, core::ptr::from_ref(cut).cast_mut(), core::ptr::null_mut());
}

/// The same for a slot: when that has happened, the word that leads to it becomes null, and whoever needs the slot next makes another.
pub fn watch_slot(base: *mut u8, len: usize, holder: &'static AtomicPtr<u8>) {
    add(base, len, core::ptr::null_mut(), core::ptr::from_ref(holder).cast_mut());
}

fn add(base: *mut u8, len: usize, cut: *mut AtomicBool, holder: *mut AtomicPtr<u8>) {
    for (place, area) in TABLE.iter().enumerate() {
        if area.base.compare_exchange(0, base as usize, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            area.cut.store(cut, Ordering::Release);
            area.holder.store(holder, Ordering::Release);
            area.len.store(len, Ordering::Release);
            HIGH_WATER.fetch_max(place + 1, Ordering::AcqRel);
            break;
        }
    }
    // SAFETY: idempotent.
    unsafe { sw_guard_install() };
}

/// The mapping goes.
pub fn forget(base: *mut u8) {
    let high = HIGH_WATER.load(Ordering::Acquire);
    for area in TABLE.iter().take(high).filter(|area| area.base.load(Ordering::Acquire) == base as usize) {
        area.len.store(0, Ordering::Release);
        area.base.store(0, Ordering::Release);
    }
}

/// Whether this is a child in its parent's memory.
#[unsafe(no_mangle)]
pub extern "C" fn sw_in_vfork_child() -> i32 {
    i32::from(crate::base::process::in_vfork_child())
}

/// SIGBUS at an address: 1 if it was ours and is mended. Runs in the signal handler: atomics and one system call.
#[unsafe(no_mangle)]
pub extern "C" fn sw_guard_fault(address: usize) -> i32 {
    let high = HIGH_WATER.load(Ordering::Acquire);
    for area in TABLE.iter().take(high) {
        let (base, len) = (area.base.load(Ordering::Acquire), area.len.load(Ordering::Acquire));
        if base == 0 || address < base || address - base >= len {
            continue;
        }
        // SAFETY: holders are statics.
        if let Some(cut) = unsafe { area.cut.load(Ordering::Acquire).as_ref() } {
            cut.store(true, Ordering::Release);
        }
        // SAFETY: as above.
        if let Some(holder) = unsafe { area.holder.load(Ordering::Acquire).as_ref() } {
            holder.store(core::ptr::null_mut(), Ordering::Release);
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // All of it, so that no word of the old and the new stand side by side.
        // SAFETY: the area's own mapping, which whoever uses it goes on using.
        let mended = unsafe { sys::mmap_at(base, len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        return i32::from(mended.is_ok());
    }
    0
}
