//! Slots: how a mover knows that no process is still inside an I/O that began before a change. Each process holds one
//! mapped file, flock'ed as long as it lives; each of its threads owns a line whose epoch is odd while inside an I/O.

use crate::devices::{now_ns, sleep_until};
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::fd::OwnedFd;
use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes of a slot file.
pub const SLOT_BYTES: usize = 65_536;
/// Bytes before the first line.
pub const SLOT_HEADER_BYTES: usize = 4096;
/// Lines of 64 bytes; the last is shared by all threads beyond and counts those inside.
pub const SLOT_LINES: usize = (SLOT_BYTES - SLOT_HEADER_BYTES) / 64;
/// First bytes of a slot file.
pub const SLOT_MAGIC: [u8; 8] = *b"SWSLOT01";

/// A mapped slot file.
#[derive(Clone, Copy)]
pub struct Slot {
    base: *mut u8,
}

// SAFETY: all access is through atomics in shared memory.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    /// # Safety
    /// `base` is a shared, writable mapping of [`SLOT_BYTES`] bytes that outlives every use.
    pub const unsafe fn from_mapping(base: *mut u8) -> Self {
        Self { base }
    }

    /// Writes magic, owner and what the owner knows of the store into a fresh slot: the checksum of its store.bin, and how many targets that has.
    pub fn initialise(&self, pid: u32, config: u32, targets: u32) {
        // SAFETY: within the mapping, before anybody else reads it.
        unsafe {
            core::ptr::copy_nonoverlapping(SLOT_MAGIC.as_ptr(), self.base, 8);
            self.base.add(8).cast::<u32>().write(pid);
            self.base.add(12).cast::<u32>().write(config);
            self.base.add(16).cast::<u32>().write(targets);
        }
    }

    /// The mapping's first byte, for unmapping.
    pub fn base(self) -> *mut u8 {
        self.base
    }

    /// The epoch word of a line; the last line when `line` is past it.
    #[inline]
    pub fn line(&self, line: usize) -> &AtomicU64 {
        let line = line.min(SLOT_LINES - 1);
        // SAFETY: inside the mapping by the minimum, 64-byte aligned.
        unsafe { &*self.base.add(SLOT_HEADER_BYTES + line * 64).cast::<AtomicU64>() }
    }

    /// Enters an I/O. Sequentially consistent: the loads of the move word that follow must not pass this store.
    #[inline]
    pub fn enter(&self, line: usize) {
        let word = self.line(line);
        if line < SLOT_LINES - 1 {
            let epoch = word.load(Ordering::Relaxed);
            word.swap(epoch | 1, Ordering::SeqCst);
        } else {
            word.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Leaves it.
    #[inline]
    pub fn leave(&self, line: usize) {
        let word = self.line(line);
        if line < SLOT_LINES - 1 {
            let epoch = word.load(Ordering::Relaxed);
            word.store((epoch | 1).wrapping_add(1), Ordering::Release);
        } else {
            word.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Makes a slot's file, owned by whoever has its flock. [`grace`] may find the file before it is locked, and remove it as a dead process's: then
/// `AGAIN` says to try another name.
///
/// # Errors
/// `AGAIN` as described, and those of making and locking a file.
pub fn claim(name: &CStr) -> Result<OwnedFd, Errno> {
    let file = fs::openat(fs::CWD, name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC, Mode::from_raw_mode(0o644))?;
    // Whoever waits for running I/O looks at everybody's slot, whatever the umask.
    let _ = fs::fchmod(&file, Mode::from_raw_mode(0o644));
    match fs::flock(&file, FlockOperation::LockExclusive) {
        Err(Errno::INTR) => Err(Errno::AGAIN),
        locked => {
            locked?;
            if fs::fstat(&file)?.st_nlink > 0 { Ok(file) } else { Err(Errno::AGAIN) }
        }
    }
}

/// What [`grace`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grace {
    /// Slots of living processes.
    pub live: usize,
    /// Slots of dead ones, removed.
    pub dead: usize,
}

/// Waits until every thread of every living process has left the I/O that it was in at the call, or is outside. Slots whose
/// flock can be had belong to dead processes and are removed. `own` names slots that the caller waits for itself (its own
/// process's), by file name. Allocates nothing: the preloaded library calls it too.
///
/// # Errors
/// Those of reading the directory `run` (`<store>/run/<boot-id>`), and `TIMEDOUT` when a living process stays inside for `patience_ns`.
pub fn grace(run: &CStr, own: &[u8], patience_ns: u64) -> Result<Grace, Errno> {
    let dir = fs::openat(fs::CWD, run, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let until = now_ns().saturating_add(patience_ns);
    let mut found = Grace::default();
    let mut buffer = [const { core::mem::MaybeUninit::uninit() }; 4096];
    let mut entries = fs::RawDir::new(&dir, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if !name.to_bytes().ends_with(b".slot") || name.to_bytes() == own {
            continue;
        }
        // Another user's slot can be read and asked for its flock, not written.
        let Ok(file) = fs::openat(&dir, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else { continue };
        if !is_held(&file) {
            let _ = fs::unlinkat(&dir, name, AtFlags::empty());
            found.dead += 1;
        } else {
            found.live += 1;
            if fs::fstat(&file)?.st_size >= SLOT_BYTES as i64 {
                wait_for_slot(&file, until)?;
            }
        }
    }
    Ok(found)
}

/// Whether the owner of a slot file lives. (The exclusive lock that a test takes goes with the caller's descriptor.)
fn is_held(file: &OwnedFd) -> bool {
    fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_err()
}

fn wait_for_slot(file: &OwnedFd, until_ns: u64) -> Result<(), Errno> {
    // SAFETY: a fresh shared mapping of a file at least as long, unmapped below.
    let base = unsafe { mmap(core::ptr::null_mut(), SLOT_BYTES, ProtFlags::READ, MapFlags::SHARED, file, 0)? };
    // SAFETY: the mapping lives until the munmap below.
    let slot = unsafe { Slot::from_mapping(base.cast()) };
    let result = slot.wait_until_left(SLOT_LINES, || if is_held(file) { now_ns() < until_ns } else { false }, || is_held(file));
    // SAFETY: mapped above, no reference left.
    unsafe { munmap(base, SLOT_BYTES)? };
    result
}

impl Slot {
    /// Waits until each line but `skip` has left the I/O that it is in now. `go_on` is asked between looks; when it says no, the
    /// wait fails if `alive` still holds (time is up) and succeeds otherwise (the owner died).
    ///
    /// # Errors
    /// `TIMEDOUT` as described.
    pub fn wait_until_left(&self, skip: usize, go_on: impl Fn() -> bool, alive: impl Fn() -> bool) -> Result<(), Errno> {
        for line in (0..SLOT_LINES).filter(|&line| line != skip) {
            let word = self.line(line);
            let seen = word.load(Ordering::SeqCst);
            let shared = line == SLOT_LINES - 1;
            if (shared && seen == 0) || (!shared && seen & 1 == 0) {
                continue;
            }
            while if shared { word.load(Ordering::SeqCst) != 0 } else { word.load(Ordering::SeqCst) == seen } {
                if !go_on() {
                    return if alive() { Err(Errno::TIMEDOUT) } else { Ok(()) };
                }
                sleep_until(now_ns() + 50_000);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn wait(dir: &std::path::Path, own: &[u8], patience_ns: u64) -> Result<Grace, Errno> {
        grace(&std::ffi::CString::new(dir.to_str().unwrap()).unwrap(), own, patience_ns)
    }

    fn slot_file(dir: &std::path::Path) -> (std::fs::File, Slot) {
        let file = std::fs::File::options().read(true).write(true).create(true).truncate(false).open(dir.join("1-1.slot")).unwrap();
        file.set_len(SLOT_BYTES as u64).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
        // SAFETY: leaked mapping of a long enough file.
        let base = unsafe {
            rustix::mm::mmap(
                core::ptr::null_mut(),
                SLOT_BYTES,
                rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
                rustix::mm::MapFlags::SHARED,
                &file,
                0,
            )
            .unwrap()
        };
        // SAFETY: as above.
        let slot = unsafe { Slot::from_mapping(base.cast()) };
        slot.initialise(1, 0, 0);
        (file, slot)
    }

    #[test]
    fn a_claimed_slot_is_there_however_often_somebody_looks_for_dead_ones() {
        let dir = tempfile::tempdir().unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        let mut taken_away = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    wait(dir.path(), b"", u64::MAX).unwrap();
                }
            });
            for number in 0..3000 {
                let path = dir.path().join(format!("1-{number}.slot"));
                match claim(&std::ffi::CString::new(path.to_str().unwrap()).unwrap()) {
                    Ok(_held) => assert!(path.exists()),
                    Err(Errno::AGAIN) => taken_away += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(taken_away < 3000, "every slot was taken for a dead process's");
    }

    #[test]
    fn grace_waits_for_whoever_is_inside_and_for_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let (_file, slot) = slot_file(dir.path());
        slot.enter(3);
        slot.leave(3);
        assert_eq!(wait(dir.path(), b"", 0).unwrap(), Grace { live: 1, dead: 0 });
        for line in [3, SLOT_LINES - 1] {
            slot.enter(line);
            assert_eq!(wait(dir.path(), b"", 5_000_000), Err(Errno::TIMEDOUT));
            assert_eq!(wait(dir.path(), b"1-1.slot", 0).unwrap().live, 0);
            slot.leave(line);
            wait(dir.path(), b"", 0).unwrap();
        }
    }

    #[test]
    fn a_dead_process_never_delays_a_mover() {
        let dir = tempfile::tempdir().unwrap();
        let (file, slot) = slot_file(dir.path());
        slot.enter(0);
        // The flock lasts as long as the open file description, which the mapping keeps as well; a death ends both.
        drop(file);
        // SAFETY: mapped by slot_file, not used any more.
        unsafe { rustix::mm::munmap(slot.base().cast(), SLOT_BYTES).unwrap() };
        assert_eq!(wait(dir.path(), b"", 0).unwrap(), Grace { live: 0, dead: 1 });
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
