//! Mapped control words and device clocks, and locks on files, of the real file system.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use stripewise_target::devices::{Devices, devices_bytes};

use super::guard::Watch;
use crate::admin::medium::{CtlMap, DevicesMap, Lock};
use crate::ctl::{CTL_BYTES, Ctl};
use crate::locks::{How, is_taken, range};

pub(super) struct HeldLock(#[allow(dead_code, reason = "closing the descriptor gives the lock back")] pub File);
impl Lock for HeldLock {}

fn ask(file: &OwnedFd, op: libc::c_int, how: How, byte: i64) -> io::Result<libc::flock> {
    let mut lock = range(how, byte);
    // SAFETY: a valid descriptor and a struct of the call's own type.
    if unsafe { libc::fcntl(file.as_raw_fd(), op, &raw mut lock) } == 0 { Ok(lock) } else { Err(io::Error::last_os_error()) }
}

/// Locks a byte; false when another has it.
pub(super) fn take(file: &OwnedFd, how: How, byte: i64) -> io::Result<bool> {
    match ask(file, libc::F_OFD_SETLK, how, byte) {
        Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        taken => taken.map(|_| true),
    }
}

/// Whether another has a lock on a byte that is in the way of one like this.
pub(super) fn is_in_the_way(file: &OwnedFd, how: How, byte: i64) -> io::Result<bool> {
    ask(file, libc::F_OFD_GETLK, how, byte).map(|found| is_taken(&found))
}

fn map(file: &OwnedFd, bytes: usize) -> io::Result<*mut u8> {
    // SAFETY: a fresh shared mapping of a file that the caller found at least that long; unmapped by the drop of what is made of it.
    let base = unsafe { mmap(core::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file.as_fd(), 0)? };
    Ok(base.cast())
}

pub(super) struct RealDevices(*mut u8, usize, Watch);

// SAFETY: a shared mapping reached through atomics only.
unsafe impl Send for RealDevices {}

impl RealDevices {
    /// Maps a file that [`stripewise_target::devices::open_devices`] has opened for that many targets.
    pub fn new(file: &OwnedFd, targets: usize) -> io::Result<Self> {
        let base = map(file, devices_bytes(targets))?;
        Ok(Self(base, targets, Watch::new(base, devices_bytes(targets))))
    }
}

impl DevicesMap for RealDevices {
    fn devices(&self) -> Devices {
        // SAFETY: mapped for that many targets; the trait's users keep nothing beyond the map.
        unsafe { Devices::from_mapping(self.0, self.1) }
    }
}

impl Drop for RealDevices {
    fn drop(&mut self) {
        self.2.forget();
        // SAFETY: mapped with this length.
        let _ = unsafe { munmap(self.0.cast(), devices_bytes(self.1)) };
    }
}

/// With the file that it maps.
pub(super) struct RealCtl(Ctl, OwnedFd, Watch);

// SAFETY: a shared mapping reached through atomics only.
unsafe impl Send for RealCtl {}

impl RealCtl {
    /// Maps a file of at least [`CTL_BYTES`].
    pub fn new(file: OwnedFd) -> io::Result<Self> {
        let base = map(&file, CTL_BYTES)?;
        // SAFETY: just mapped with this length.
        Ok(Self(unsafe { Ctl::from_mapping(base) }, file, Watch::new(base, CTL_BYTES)))
    }
}

impl CtlMap for RealCtl {
    fn ctl(&self) -> Ctl {
        self.0
    }

    fn reserve(&self) -> io::Result<()> {
        match rustix::fs::fallocate(&self.1, rustix::fs::FallocateFlags::empty(), 0, CTL_BYTES as u64) {
            // A file system that promises no blocks has none to run out of here, or gives them as they come.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            result => Ok(result?),
        }
    }
}

impl Drop for RealCtl {
    fn drop(&mut self) {
        self.2.forget();
        // SAFETY: mapped with this length; the trait's users keep no Ctl beyond the map.
        let _ = unsafe { munmap(self.0.base().cast(), CTL_BYTES) };
    }
}
