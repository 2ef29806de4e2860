//! This process's slot in a store: made at its first use of the store, and anew in every child of a fork. It also tells movers which targets the process
//! knows, so that no region goes to one that it has never heard of.

use super::{ATTACH, Attached, STORES};
use crate::base::log;
use crate::base::process::PAGE;
use crate::base::sys::{self, Errno, Sys};
use crate::fds;
use crate::store::part::borrow;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::os::fd::IntoRawFd;
use stripewise_store::run;
use stripewise_store::slot::{self, MachineId, SLOT_BYTES, Slot, SlotHeader};
use stripewise_target::text::{FixedText, PartName};
use stripewise_target::within::{self, Expected, OpenFlags};

/// Names tried for a slot before the store is called unusable.
const SLOT_ATTEMPTS: u32 = 1000;

impl Attached {
    #[inline]
    fn slot_word(&self) -> &'static AtomicPtr<u8> {
        PAGE.slots.get(self.index).unwrap_or(&PAGE.slots[0])
    }

    /// This process's slot, made when there is none (first use, or a forked child).
    ///
    /// # Errors
    /// Those of making it.
    #[inline]
    pub fn slot(&self) -> Sys<Slot> {
        match self.slot_if_any() {
            Some(slot) => Ok(slot),
            None => self.first_slot(),
        }
    }

    /// The slot, if this process already has one.
    #[inline]
    pub fn slot_if_any(&self) -> Option<Slot> {
        let base = self.slot_word().load(Ordering::Acquire);
        // SAFETY: mapped by make_slot, never unmapped while published.
        (!base.is_null()).then(|| unsafe { Slot::from_mapping(base) })
    }

    #[cold]
    fn first_slot(&self) -> Sys<Slot> {
        let Some(_held) = ATTACH.lock() else { return Err(Errno(libc::EDEADLK)) };
        if let Some(slot) = self.slot_if_any() {
            return Ok(slot);
        }
        // Without a slot movers and those who truncate would not wait for us: better no I/O than one at bytes that are somebody else's by then.
        self.make_slot().inspect_err(|_| log::say(b"no slot could be made in the store's run directory; is it full or read-only?", self.path()))?;
        self.slot_if_any().ok_or(Errno(libc::EIO))
    }

    #[inline(never)] // Threads may have small stacks: one path less at a time.
    pub(super) fn make_slot(&self) -> Sys<()> {
        let inner = self.inner_mut();
        let pid = sys::getpid();
        let (config, targets) = inner.view.as_ref().map_or((0, 0), |view| (view.checksum(), view.target_count() as u32));
        let mut name = FixedText::new();
        let mut fd = Err(Errno(libc::ENFILE));
        for _ in 0..SLOT_ATTEMPTS {
            name = run::slot_name(inner.boot.text(), pid, sys::random_u64());
            fd = slot::claim(borrow(self.run_dir()?), name.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?)
                .map(IntoRawFd::into_raw_fd)
                .map_err(|errno| Errno(errno.raw_os_error()));
            if !matches!(fd, Err(Errno(libc::EEXIST | libc::EAGAIN))) {
                break;
            }
        }
        let fd = fd?;
        let made = sys::fallocate(fd, 0, 0, SLOT_BYTES as u64)
            .or_else(|_| sys::ftruncate(fd, SLOT_BYTES as u64))
            .and_then(|_| sys::mmap(fd, SLOT_BYTES, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED));
        match made {
            Ok(base) => {
                // SAFETY: a mapping of SLOT_BYTES that stays.
                let slot = unsafe { Slot::from_mapping(base) };
                slot.initialise(SlotHeader { pid, config, targets, machine: own_machine() });
                fds::make_internal(fd, self.slot_fd_static(), true)?;
                if self.is_common() {
                    // Made by the user that the thread is at this moment, who may cut it: then the next I/O makes another.
                    crate::base::guard::watch_slot(base, SLOT_BYTES, self.slot_word());
                }
                inner.slot_name = name;
                self.mapped.store(base, Ordering::Release);
                self.slot_word().store(base, Ordering::Release);
                Ok(())
            }
            Err(errno) => {
                sys::close(fd);
                Err(errno)
            }
        }
    }

    fn slot_fd_static(&self) -> &'static core::sync::atomic::AtomicI32 {
        STORES.get(self.index).map_or(&STORES[0].slot_fd, |s| &s.slot_fd)
    }

    /// Waits until every process of this boot that uses the store was outside an I/O once.
    ///
    /// # Errors
    /// `ETIMEDOUT` when one stays inside for `patience_ns`.
    pub fn grace(&self, patience_ns: u64) -> Sys<()> {
        let inner = self.inner();
        slot::grace(borrow(self.run_dir()?), inner.boot.text(), inner.slot_name.as_bytes(), patience_ns)
            .map(|_| ())
            .map_err(|errno| Errno(errno.raw_os_error()))
    }

    /// In a forked child: the slot is the parent's. Its flock must not be kept alive by us.
    pub fn after_fork(&self) {
        fds::close_internal(&self.slot_fd);
        self.slot_word().store(core::ptr::null_mut(), Ordering::Release);
        let base = self.mapped.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !base.is_null() {
            crate::base::guard::forget(base);
            // The mapping alone would keep the flock, too. SAFETY: the only thread of this child, outside any I/O.
            unsafe { sys::munmap(base, SLOT_BYTES) };
        }
    }

    /// One machine uses a `dir` store at a time: slots of another one are an error.
    #[inline(never)] // As above.
    pub(super) fn refuse_other_machine(&self) -> Sys<()> {
        let boot = self.inner().boot.clone();
        let run = self.run_dir()?;
        let mut foreign = false;
        sys::for_each_name_at(run, c".", |name| {
            if run::boot_of_slot(name).is_none_or(|other| other == boot.text()) {
                return;
            }
            let name = PartName::from_bytes(name);
            // A member of a shared store could stop it for all others with a few bytes: he is believed about himself.
            let owners = [self.owner(), 0, sys::geteuid()];
            let opened = name
                .as_c_str()
                .map(|name| within::open_file(borrow(run), name, OpenFlags::RDONLY | OpenFlags::NONBLOCK, Expected::of(&owners).hard_links_too()));
            if let Some(Ok((fd, _))) = opened
                && let Ok(Some(header)) = SlotHeader::read(&fd)
            {
                foreign |= header.machine != [0; 32] && header.machine != own_machine();
            }
        })?;
        if foreign {
            log::say(b"the store is in use by another machine; one machine writes a store at a time (if that machine is gone: stripewise store fsck --repair)", self.path());
            return Err(Errno(libc::EIO));
        }
        Ok(())
    }
}

fn own_machine() -> MachineId {
    let mut text = [0u8; 64];
    slot::machine_id(sys::read_file(c"/etc/machine-id", &mut text).unwrap_or(&[]))
}
