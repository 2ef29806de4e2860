//! Emulated devices: one clock per target, shared by all processes of this machine through a mapped file, and the counters
//! that `store info` and `tune` read. A request reserves `[max(now, next_free), + startup + bytes * per_byte)` and sleeps until its end,
//! so a laptop behaves like a rack of disks for real processes that move real bytes. Everything measured on it is called emulated.

use core::ffi::CStr;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{self, FallocateFlags, FlockOperation, OFlags};
use rustix::io::{Errno, pread, pwrite};

use crate::kind::{DeviceModel, MAX_TARGETS};
use crate::time::{now_ns, sleep_until};
use crate::within::{Expected, Refusal, create_file, open_file};

/// Name of the devices file in a store's `run/`; made with the store.
pub const DEVICES: &CStr = c"devices";
/// First bytes of the devices file.
pub const DEVICES_MAGIC: [u8; 8] = *b"SWDEVICE";
/// Bytes before the first target's line.
pub const DEVICES_HEADER_BYTES: usize = 4096;
/// Bytes per target.
pub const DEVICE_LINE_BYTES: usize = 256;

/// Bytes of a devices file for `targets` targets.
pub const fn devices_bytes(targets: usize) -> usize {
    (DEVICES_HEADER_BYTES + targets * DEVICE_LINE_BYTES).next_multiple_of(4096)
}

/// Bytes of the header that say whose it is: magic, u32 targets, 4 bytes of nothing, the boot id.
const HEADER_USED_BYTES: usize = 32;
/// Where the header has the [`RoomClock`].
const ROOM_CLOCK_AT: usize = 64;
/// How long somebody who holds the file's lock, which any user of a shared store may, keeps others from it, ns.
const LOCK_PATIENCE_NS: u64 = 1_000_000_000;

/// Opens the devices file of a run directory for mapping [`devices_bytes`]`(targets)` bytes of it, which is then as long as that and of this boot: the
/// clocks of an earlier boot count from another zero. One of `owners` has made it. Where it is missing it is made with mode `make`.
///
/// # Errors
/// `NOENT` where it is missing and `make` is none; what does not fit; those of the system.
pub fn open_devices(run: BorrowedFd<'_>, targets: usize, boot: [u64; 2], owners: &[u32], make: Option<u32>) -> Result<OwnedFd, Refusal> {
    // A second name, which anybody who may write the file may give it, makes it nobody else's: its magic tells it from a file that was put in its place.
    let expected = Expected::of(owners).hard_links_too();
    let file = loop {
        match (open_file(run, DEVICES, OFlags::RDWR, expected), make) {
            (Err(Refusal::Os(Errno::NOENT)), Some(mode)) => match create_file(run, DEVICES, OFlags::RDWR, mode) {
                Err(Errno::EXIST) => {}
                made => break made?,
            },
            (opened, _) => break opened?.0,
        }
    };
    if boot_of_devices(&file)? != Some(boot) {
        lock_patiently(&file)?;
        // Another process of this boot may have been quicker.
        let begun = if boot_of_devices(&file)? == Some(boot) { Ok(()) } else { begin_boot(&file, targets, boot) };
        // The mapping would keep it.
        fs::flock(&file, FlockOperation::Unlock)?;
        begun?;
    }
    let bytes = devices_bytes(targets) as u64;
    if (fs::fstat(&file)?.st_size as u64) < bytes {
        // Never cuts what somebody who knows more targets has made longer meanwhile. The last byte belongs to no line's words.
        match fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => pwrite(&file, &[0], bytes - 1).map(drop)?,
            grown => grown?,
        }
    }
    Ok(file)
}

/// The boot whose clocks a devices file holds; `None` when it is no such file, or one that was never begun.
///
/// # Errors
/// Those of reading.
pub fn boot_of_devices(file: &OwnedFd) -> Result<Option<[u64; 2]>, Errno> {
    let mut header = [0u8; HEADER_USED_BYTES];
    let got = pread(file, &mut header[..], 0)?;
    let word = |at: usize| header.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
    Ok((got == header.len() && header.starts_with(&DEVICES_MAGIC)).then(|| [word(16), word(24)]))
}

/// Takes the file's lock. Somebody who does not give it back delays others, and does not stop them: without it two that begin a boot at once lose
/// some counts.
fn lock_patiently(file: &OwnedFd) -> Result<(), Errno> {
    let until = now_ns().saturating_add(LOCK_PATIENCE_NS);
    while let Err(errno) = fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        if !matches!(errno, Errno::WOULDBLOCK | Errno::INTR) {
            return Err(errno);
        }
        if now_ns() >= until {
            break;
        }
        sleep_until(now_ns() + 5_000_000);
    }
    Ok(())
}

/// Zeroes all lines, then says whose boot they are.
fn begin_boot(file: &OwnedFd, targets: usize, boot: [u64; 2]) -> Result<(), Refusal> {
    let stat = fs::fstat(file)?;
    if stat.st_nlink > 1 && boot_of_devices(file)?.is_none() {
        return Err(Refusal::HardLink);
    }
    let zeros = [0u8; 4096];
    let mut at = DEVICES_HEADER_BYTES as u64;
    while at < (stat.st_size as u64).min(devices_bytes(MAX_TARGETS) as u64) {
        let len = zeros.len().min((stat.st_size as u64 - at) as usize);
        at += pwrite(file, zeros.get(..len).unwrap_or(&[]), at)? as u64;
    }
    let mut header = [0u8; ROOM_CLOCK_AT + size_of::<RoomClock>()];
    let parts = [(0, &DEVICES_MAGIC[..]), (8, &(targets as u32).to_le_bytes()), (16, &boot[0].to_le_bytes()), (24, &boot[1].to_le_bytes())];
    for (at, bytes) in parts {
        header.get_mut(at..at + bytes.len()).unwrap_or(&mut []).copy_from_slice(bytes);
    }
    pwrite(file, &header, 0)?;
    Ok(())
}

/// Longest queue of an emulated device that is believed, ns: an hour.
const QUEUE_NS_MAX: u64 = 3_600_000_000_000;

/// The clock and the counters of one target.
#[repr(C)]
pub struct DeviceLine {
    /// CLOCK_MONOTONIC ns at which the device has done all that was reserved.
    pub next_free_ns: AtomicU64,
    /// Key of the byte after the last access.
    pub position: AtomicU64,
    pub accesses_read: AtomicU64,
    /// Accesses that wrote.
    pub accesses_write: AtomicU64,
    pub bytes_read: AtomicU64,
    pub bytes_written: AtomicU64,
    /// Service time of reads, ns.
    pub busy_read_ns: AtomicU64,
    /// Service time of writes, ns.
    pub busy_write_ns: AtomicU64,
    /// Accesses that paid their startup.
    pub startups: AtomicU64,
    /// Upper estimate of the bytes allocated on the target; `u64::MAX` = not counted yet.
    pub used_bytes: AtomicU64,
    /// Calls that the target's device or server failed.
    pub io_errors: AtomicU64,
    /// Error number of the last of them.
    pub last_errno: AtomicU64,
    /// Bytes that the target could take beside the others when somebody last looked, plus one; 0 = nobody has.
    pub room_bytes: AtomicU64,
    /// `used_bytes` as it was then: what was added to it since may have taken so much of the room.
    pub room_used_bytes: AtomicU64,
}

/// When somebody last looked how much room the targets have.
#[repr(C)]
pub struct RoomClock {
    /// CLOCK_MONOTONIC ns when the last look began.
    pub looked_ns: AtomicU64,
    /// How long it took.
    pub took_ns: AtomicU64,
}

/// One target's line in a mapped devices file.
#[derive(Clone, Copy, Debug)]
pub struct Line(NonNull<DeviceLine>);

// SAFETY: all access is through atomics in shared memory.
unsafe impl Send for Line {}
// SAFETY: as above.
unsafe impl Sync for Line {}

impl Deref for Line {
    type Target = DeviceLine;

    #[inline]
    fn deref(&self) -> &DeviceLine {
        // SAFETY: of a mapping that outlives every use.
        unsafe { self.0.as_ref() }
    }
}

impl DeviceLine {
    /// Counts an access.
    #[inline]
    pub fn count(&self, write: bool, bytes: u64) {
        let (accesses, moved) = if write { (&self.accesses_write, &self.bytes_written) } else { (&self.accesses_read, &self.bytes_read) };
        accesses.fetch_add(1, Ordering::Relaxed);
        moved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts an access to an emulated device, and reserves its service time from `now_ns` on.
    pub fn reserve(&self, model: &DeviceModel, access: Access, now_ns: u64) -> Reserved {
        let Access { write, object, offset, bytes } = access;
        self.count(write, bytes);
        let before = self.position.swap(position_key(object, offset.wrapping_add(bytes)), Ordering::AcqRel);
        let (startup_ns, ps_per_byte, busy) = if write {
            (model.startup_write_ns, model.write_ps_per_byte, &self.busy_write_ns)
        } else {
            (model.startup_read_ns, model.read_ps_per_byte, &self.busy_read_ns)
        };
        let mut service_ns = (u128::from(bytes) * u128::from(ps_per_byte) / 1000) as u64;
        if before != position_key(object, offset) {
            service_ns = service_ns.saturating_add(startup_ns);
            self.startups.fetch_add(1, Ordering::Relaxed);
        }
        busy.fetch_add(service_ns, Ordering::Relaxed);
        let mut free = self.next_free_ns.load(Ordering::Relaxed);
        loop {
            // A clock that another user has set to the end of time keeps nobody for ever.
            let end = free.clamp(now_ns, now_ns.saturating_add(QUEUE_NS_MAX)).saturating_add(service_ns);
            match self.next_free_ns.compare_exchange_weak(free, end, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Reserved { end_ns: end, service_ns },
                Err(seen) => free = seen,
            }
        }
    }
}

/// One access to one object.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Writes, else reads.
    pub write: bool,
    /// Key of the object ([`crate::names::object_key`]).
    pub object: u64,
    /// First byte in the object.
    pub offset: u64,
    pub bytes: u64,
}

/// What one access was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// CLOCK_MONOTONIC ns at which an emulated device has done it; 0 on a real one.
    pub end_ns: u64,
    /// Its service time on an emulated device, ns.
    pub service_ns: u64,
}

/// A mapped devices file.
#[derive(Clone, Copy)]
pub struct Devices {
    base: *mut u8,
    targets: usize,
}

// SAFETY: all access is through atomics in shared memory.
unsafe impl Send for Devices {}
// SAFETY: as above.
unsafe impl Sync for Devices {}

/// Position key of byte `offset` of the object of file `id`: equal keys mean that an access continues the last one.
#[inline]
pub fn position_key(object: u64, offset: u64) -> u64 {
    (object.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(offset).wrapping_add(1)
}

impl Devices {
    /// # Safety
    /// `base` is a shared, writable mapping of [`devices_bytes`]`(targets)` bytes that outlives every use.
    pub const unsafe fn from_mapping(base: *mut u8, targets: usize) -> Self {
        Self { base, targets }
    }

    /// The mapping's first byte, for unmapping.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Targets that it has lines for.
    pub fn targets(&self) -> usize {
        self.targets
    }

    /// When somebody last looked at the room of all targets.
    pub fn room_clock(&self) -> &RoomClock {
        // SAFETY: in the header of a mapping that outlives every use, on a multiple of 8.
        unsafe { &*self.base.add(ROOM_CLOCK_AT).cast() }
    }

    /// The line of a target; `None` past the last one.
    #[inline]
    pub fn line(&self, target: u32) -> Option<Line> {
        let target = target as usize;
        if target >= self.targets {
            return None;
        }
        // SAFETY: inside the mapping by the check.
        let line = unsafe { self.base.add(DEVICES_HEADER_BYTES + target * DEVICE_LINE_BYTES) };
        // 256-byte aligned, as its type wants it.
        NonNull::new(line.cast()).map(Line)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use rustix::fd::AsFd;

    const DISK: DeviceModel =
        DeviceModel { startup_read_ns: 3_000_000, startup_write_ns: 4_000_000, read_ps_per_byte: 10_000, write_ps_per_byte: 10_000 };

    fn devices() -> (Vec<u64>, Devices) {
        let mut memory = vec![0u64; devices_bytes(2) / 8];
        // SAFETY: the vector outlives the devices in each test.
        let devices = unsafe { Devices::from_mapping(memory.as_mut_ptr().cast(), 2) };
        (memory, devices)
    }

    #[test]
    fn a_random_access_pays_startup_and_transfer() {
        let (_memory, devices) = devices();
        assert_eq!(
            devices.line(0).unwrap().reserve(&DISK, Access { write: false, object: 7, offset: 0, bytes: 100_000 }, 50).end_ns,
            50 + 3_000_000 + 1_000_000
        );
    }

    #[test]
    fn an_access_that_continues_the_last_one_pays_no_startup() {
        let (_memory, devices) = devices();
        let first = devices.line(0).unwrap().reserve(&DISK, Access { write: true, object: 7, offset: 0, bytes: 1000 }, 0).end_ns;
        assert_eq!(devices.line(0).unwrap().reserve(&DISK, Access { write: true, object: 7, offset: 1000, bytes: 1000 }, 0).end_ns, first + 10_000);
        assert_eq!(
            devices.line(0).unwrap().reserve(&DISK, Access { write: true, object: 8, offset: 2000, bytes: 1000 }, 0).end_ns,
            first + 10_000 + 4_010_000
        );
    }

    #[test]
    fn a_device_queues_alone_and_one_that_is_only_counted_takes_no_time() {
        let (_memory, devices) = devices();
        devices.line(0).unwrap().reserve(&DISK, Access { write: false, object: 1, offset: 0, bytes: 1000 }, 0);
        let line = devices.line(1).unwrap();
        line.count(false, 1000);
        assert_eq!((line.accesses_read.load(Ordering::Relaxed), line.busy_read_ns.load(Ordering::Relaxed)), (1, 0));
        assert!(devices.line(2).is_none());
    }

    fn run_dir() -> (tempfile::TempDir, OwnedFd) {
        let dir = tempfile::tempdir().unwrap();
        let fd = OwnedFd::from(std::fs::File::open(dir.path()).unwrap());
        (dir, fd)
    }

    fn me() -> [u32; 1] {
        [rustix::process::geteuid().as_raw()]
    }

    #[test]
    fn a_devices_file_is_made_once_with_its_mode_and_grows_with_the_targets() {
        use std::os::unix::fs::PermissionsExt;
        let (dir, run) = run_dir();
        assert_eq!(open_devices(run.as_fd(), 2, [1, 2], &me(), None).unwrap_err(), Refusal::Os(Errno::NOENT));
        let file = open_devices(run.as_fd(), 2, [1, 2], &me(), Some(0o666)).unwrap();
        assert_eq!(boot_of_devices(&file).unwrap(), Some([1, 2]));
        let meta = || std::fs::metadata(dir.path().join("devices")).unwrap();
        assert_eq!((meta().len(), meta().permissions().mode() & 0o777), (devices_bytes(2) as u64, 0o666));
        open_devices(run.as_fd(), 100, [1, 2], &me(), None).unwrap();
        open_devices(run.as_fd(), 1, [1, 2], &me(), None).unwrap();
        assert_eq!(meta().len(), devices_bytes(100) as u64);
    }

    #[test]
    fn the_clocks_of_an_earlier_boot_are_zeroed_and_those_of_this_one_kept() {
        let (_dir, run) = run_dir();
        let at = DEVICES_HEADER_BYTES as u64;
        let line = |file: &OwnedFd| {
            let mut bytes = [0u8; 8];
            pread(file, &mut bytes[..], at).unwrap();
            u64::from_le_bytes(bytes)
        };
        let file = open_devices(run.as_fd(), 2, [1, 2], &me(), Some(0o600)).unwrap();
        pwrite(&file, &77u64.to_le_bytes(), at).unwrap();
        assert_eq!(line(&open_devices(run.as_fd(), 2, [1, 2], &me(), None).unwrap()), 77);
        let file = open_devices(run.as_fd(), 2, [1, 3], &me(), None).unwrap();
        assert_eq!((line(&file), boot_of_devices(&file).unwrap()), (0, Some([1, 3])));
        // Whoever keeps the lock delays nobody for ever.
        fs::flock(&file, FlockOperation::LockExclusive).unwrap();
        assert_eq!(boot_of_devices(&open_devices(run.as_fd(), 2, [1, 4], &me(), None).unwrap()).unwrap(), Some([1, 4]));
    }

    #[test]
    fn what_was_put_in_the_place_of_a_devices_file_is_not_written() {
        let (dir, run) = run_dir();
        let (victim, devices) = (dir.path().join("victim"), dir.path().join("devices"));
        std::fs::write(&victim, b"precious").unwrap();
        let open = |owners: &[u32]| open_devices(run.as_fd(), 2, [1, 2], owners, Some(0o600)).map(drop).unwrap_err();
        std::os::unix::fs::symlink(&victim, &devices).unwrap();
        assert_eq!(open(&me()), Refusal::Link);
        std::fs::remove_file(&devices).unwrap();
        std::fs::hard_link(&victim, &devices).unwrap();
        assert_eq!(open(&me()), Refusal::HardLink);
        assert_eq!(open(&[me()[0] + 1]), Refusal::Owner);
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        std::fs::remove_file(&devices).unwrap();
        // One of ours that somebody gave a second name stays usable.
        drop(open_devices(run.as_fd(), 2, [1, 2], &me(), Some(0o600)).unwrap());
        std::fs::hard_link(&devices, dir.path().join("second")).unwrap();
        open_devices(run.as_fd(), 2, [1, 3], &me(), None).unwrap();
    }
}
