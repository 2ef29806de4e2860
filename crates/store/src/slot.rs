//! Slots: how a mover knows that no process is still inside an I/O that began before a change. Each process holds one
//! mapped file, flock'ed as long as it lives; each of its threads owns a line whose epoch is odd while inside an I/O. A process maps its own slot
//! only: another user's he may cut at any time, so others' are read.

use crate::run::boot_of_slot;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering, fence};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, pread};
use stripewise_target::time::{now_ns, sleep_until};
use stripewise_target::within::{Expected, Refusal, create_file, open_file};

/// Bytes of a slot file.
pub const SLOT_BYTES: usize = 65_536;
/// Bytes before the first line.
pub const SLOT_HEADER_BYTES: usize = 4096;
/// Lines of 64 bytes; the last is shared by all threads beyond and counts those inside.
pub const SLOT_LINES: usize = (SLOT_BYTES - SLOT_HEADER_BYTES) / 64;
/// First bytes of a slot file.
pub const SLOT_MAGIC: [u8; 8] = *b"SWSLOT01";
/// Where the machine's id stands in the header.
const MACHINE_AT: usize = 24;
/// Bytes of the header that say something.
pub const SLOT_HEADER_USED_BYTES: usize = MACHINE_AT + size_of::<MachineId>();

/// The id of a machine as slots have it: the text of /etc/machine-id, zeros on one that has none.
pub type MachineId = [u8; 32];

/// The id that a text, as /etc/machine-id holds it, gives.
#[must_use]
pub fn machine_id(text: &[u8]) -> MachineId {
    let mut id = MachineId::default();
    for (byte, given) in id.iter_mut().zip(text.trim_ascii()) {
        *byte = *given;
    }
    id
}

/// What a slot says of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotHeader {
    /// The process.
    pub pid: u32,
    /// Checksum of the store.bin that it knows; 0 = an older library.
    pub config: u32,
    pub targets: u32,
    /// Where it runs.
    pub machine: MachineId,
}

impl SlotHeader {
    fn to_bytes(self) -> [u8; SLOT_HEADER_USED_BYTES] {
        let mut bytes = [0u8; SLOT_HEADER_USED_BYTES];
        let words = [self.pid, self.config, self.targets].map(u32::to_le_bytes);
        let [pid, config, targets] = &words;
        for (at, part) in [(0, &SLOT_MAGIC[..]), (8, pid), (12, config), (16, targets), (MACHINE_AT, &self.machine)] {
            if let Some(room) = bytes.get_mut(at..at + part.len()) {
                room.copy_from_slice(part);
            }
        }
        bytes
    }

    /// Reads the header of somebody's slot; `None` for one that is not written yet, or is no slot.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read(file: impl AsFd) -> Result<Option<Self>, Errno> {
        let mut bytes = [0u8; SLOT_HEADER_USED_BYTES];
        let got = pread(file, &mut bytes[..], 0)?;
        Ok(if got == bytes.len() { Self::parse(&bytes) } else { None })
    }

    /// The same of its bytes.
    #[must_use]
    pub fn parse(bytes: &[u8; SLOT_HEADER_USED_BYTES]) -> Option<Self> {
        let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
        let machine = bytes.last_chunk().copied().unwrap_or_default();
        bytes.starts_with(&SLOT_MAGIC).then(|| Self { pid: word(8), config: word(12), targets: word(16), machine })
    }
}

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

    /// Writes the header of a fresh slot.
    pub fn initialise(&self, header: SlotHeader) {
        let bytes = header.to_bytes();
        // SAFETY: within the mapping, before anybody else reads it.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base, bytes.len()) };
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

    /// Enters once more, for a thread that cannot tell whether its line was left behind its back; the shared line was not, for it counts.
    #[inline]
    pub fn enter_again(&self, line: usize) {
        if line < SLOT_LINES - 1 {
            self.enter(line);
        }
    }

    /// Whether the line says that somebody is inside.
    #[inline]
    pub fn is_inside(&self, line: usize) -> bool {
        let word = self.line(line).load(Ordering::Relaxed);
        if line < SLOT_LINES - 1 { word & 1 == 1 } else { word != 0 }
    }

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

/// Makes a slot's file `name` in the run directory, owned by whoever has its flock. [`grace`] may find the file before it is locked, and remove it as a
/// dead process's: then `AGAIN` says to try another name.
///
/// # Errors
/// `AGAIN` as described, and those of making and locking a file.
pub fn claim(run: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    // While others may not open it, none of them has its lock.
    let file = create_file(run, name, OFlags::RDWR, 0o600)?;
    match fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::INTR | Errno::WOULDBLOCK) => Err(Errno::AGAIN),
        locked => {
            locked?;
            // Whoever waits for running I/O looks at everybody's slot.
            fs::fchmod(&file, fs::Mode::from_raw_mode(0o644))?;
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
/// flock can be had belong to dead processes and are removed. `run` is `<store>/run`, `boot` this boot's id, and `own` names the slot that the caller
/// waits for itself (its own process's), by file name. Allocates nothing: the preloaded library calls it too.
///
/// # Errors
/// Those of reading the directory, and `TIMEDOUT` when a living process stays inside for `patience_ns`.
pub fn grace(run: BorrowedFd<'_>, boot: &[u8], own: &[u8], patience_ns: u64) -> Result<Grace, Errno> {
    let dir = fs::openat(run, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let until = now_ns().saturating_add(patience_ns);
    let mut found = Grace::default();
    let mut buffer = [const { core::mem::MaybeUninit::uninit() }; 4096];
    let mut entries = fs::RawDir::new(&dir, &mut buffer);
    // What was stored before the call must be seen by whoever is not seen inside.
    fence(Ordering::SeqCst);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if boot_of_slot(name.to_bytes()) != Some(boot) || name.to_bytes() == own {
            continue;
        }
        // Another user's slot can be read and asked for its flock, not written.
        // One with a second name, which anybody may have given it, still tells of its owner.
        let (file, stat) = match open_file(run, name, OFlags::RDONLY, Expected::of(&[]).hard_links_too()) {
            Ok(opened) => opened,
            Err(Refusal::Os(Errno::NOENT)) => continue,
            // One that is just being made, by somebody who is not inside anything yet.
            Err(Refusal::Os(Errno::ACCESS)) if fs::statat(run, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|st| st.st_size < SLOT_BYTES as i64) => {
                continue;
            }
            // What is no file no process has made.
            Err(Refusal::Link | Refusal::Kind) => continue,
            // Somebody may be inside whom we cannot see: no grace.
            Err(refusal) => return Err(refusal.errno()),
        };
        if !is_held(&file) {
            let _ = fs::unlinkat(run, name, AtFlags::empty());
            found.dead += 1;
        } else {
            found.live += 1;
            if stat.st_size >= SLOT_BYTES as i64 {
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
    let go_on = || if is_held(file) { now_ns() < until_ns } else { false };
    let mut lines = [0u8; 4096];
    for page in 0..SLOT_LINES.div_ceil(lines.len() / 64) {
        let first = page * lines.len() / 64;
        let got = pread(file, &mut lines[..], (SLOT_HEADER_BYTES + first * 64) as u64)?;
        let words = lines.chunks(64).take(got / 64).map(|line| line.first_chunk().copied().map_or(0, u64::from_le_bytes));
        for (line, word) in (first..SLOT_LINES).zip(words).filter(|(_, word)| *word != 0) {
            wait_for_line(line, word, || read_line(file, line), go_on, || is_held(file))?;
        }
    }
    Ok(())
}

/// The epoch word of a line of another process's slot; one that was cut meanwhile says nothing.
///
/// # Errors
/// Those of reading.
pub fn read_line(file: &OwnedFd, line: usize) -> Result<u64, Errno> {
    let mut word = [0u8; 8];
    let got = pread(file, &mut word[..], (SLOT_HEADER_BYTES + line.min(SLOT_LINES - 1) * 64) as u64)?;
    fence(Ordering::SeqCst);
    Ok(if got == word.len() { u64::from_le_bytes(word) } else { 0 })
}

/// Waits until a line that said `seen` has left the I/O that it was in then.
fn wait_for_line(
    line: usize,
    seen: u64,
    read: impl Fn() -> Result<u64, Errno>,
    go_on: impl Fn() -> bool,
    alive: impl Fn() -> bool,
) -> Result<(), Errno> {
    let shared = line == SLOT_LINES - 1;
    if (shared && seen == 0) || (!shared && seen & 1 == 0) {
        return Ok(());
    }
    while if shared { read()? != 0 } else { read()? == seen } {
        if !go_on() {
            return if alive() { Err(Errno::TIMEDOUT) } else { Ok(()) };
        }
        sleep_until(now_ns() + 50_000);
    }
    Ok(())
}

impl Slot {
    /// Waits until each of these lines has left the I/O that it is in now. `go_on` is asked between looks; when it says no, the
    /// wait fails if `alive` still holds (time is up) and succeeds otherwise (the owner died).
    ///
    /// # Errors
    /// `TIMEDOUT` as described.
    pub fn wait_until_left(&self, mut lines: impl Iterator<Item = usize>, go_on: impl Fn() -> bool, alive: impl Fn() -> bool) -> Result<(), Errno> {
        lines.try_for_each(|line| {
            let read = || self.line(line).load(Ordering::SeqCst);
            wait_for_line(line, read(), || Ok(read()), &go_on, &alive)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    const BOOT: &[u8] = b"0b";
    const NAME: &str = "0b.1-1.slot";

    fn wait(dir: &std::path::Path, own: &[u8], patience_ns: u64) -> Result<Grace, Errno> {
        grace(std::fs::File::open(dir).unwrap().as_fd(), BOOT, own, patience_ns)
    }

    fn slot_file(dir: &std::path::Path) -> (std::fs::File, Slot) {
        let file = std::fs::File::options().read(true).write(true).create(true).truncate(false).open(dir.join(NAME)).unwrap();
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
        slot.initialise(SlotHeader { pid: 1, config: 2, targets: 3, machine: machine_id(b"0123\n") });
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
                let name = crate::run::slot_name(BOOT, 1, number);
                let path = dir.path().join(std::str::from_utf8(name.as_bytes()).unwrap());
                match claim(std::fs::File::open(dir.path()).unwrap().as_fd(), name.as_c_str().unwrap()) {
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
    fn a_slot_tells_its_process_and_machine() {
        let dir = tempfile::tempdir().unwrap();
        let (file, _slot) = slot_file(dir.path());
        let mut machine = MachineId::default();
        machine[..4].copy_from_slice(b"0123");
        assert_eq!(SlotHeader::read(&file).unwrap(), Some(SlotHeader { pid: 1, config: 2, targets: 3, machine }));
        file.set_len(40).unwrap();
        assert_eq!(SlotHeader::read(&file).unwrap(), None);
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
            assert_eq!(wait(dir.path(), NAME.as_bytes(), 0).unwrap().live, 0);
            slot.leave(line);
            wait(dir.path(), b"", 0).unwrap();
        }
    }

    #[test]
    fn what_no_process_has_made_and_slots_of_other_boots_delay_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let (_file, slot) = slot_file(dir.path());
        slot.enter(0);
        std::fs::rename(dir.path().join(NAME), dir.path().join("0c.1-1.slot")).unwrap();
        std::os::unix::fs::symlink("0c.1-1.slot", dir.path().join(NAME)).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("0b.2-2.slot"), rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert_eq!(wait(dir.path(), b"", 0), Ok(Grace::default()));
    }

    #[test]
    fn a_second_name_hides_no_slot() {
        let dir = tempfile::tempdir().unwrap();
        let (_file, slot) = slot_file(dir.path());
        slot.enter(0);
        std::fs::hard_link(dir.path().join(NAME), dir.path().join("other")).unwrap();
        assert_eq!(wait(dir.path(), b"", 0), Err(Errno::TIMEDOUT));
    }

    #[test]
    fn a_slot_that_is_cut_says_nothing_and_kills_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let (file, slot) = slot_file(dir.path());
        slot.enter(SLOT_LINES - 2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(dir.path(), b"", 5_000_000_000));
            std::thread::sleep(std::time::Duration::from_millis(20));
            file.set_len(100).unwrap();
            assert_eq!(waiting.join().unwrap(), Ok(Grace { live: 1, dead: 0 }));
        });
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
