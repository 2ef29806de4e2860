//! Stores that this process uses: their configuration, devices and this process's slot, mapped at the first managed file.

use crate::fds;
use crate::lock::Lock;
use crate::log;
use crate::sys::{self, Errno, Sys};
use crate::wiped::PAGE;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::os::fd::IntoRawFd;
use stripewise_store::bin::{Kind, MAX_TARGETS, StoreView};
use stripewise_store::devices::{DEVICES_MAGIC, DeviceModel, Devices, devices_bytes};
use stripewise_store::names::StorePath;
use stripewise_store::slot::{self, SLOT_BYTES, Slot};

/// Most stores that one process may use at a time.
pub const MAX_STORES: usize = 16;
const READY: u32 = 2;
/// Names tried for a slot before the store is called unusable.
const SLOT_ATTEMPTS: u32 = 1000;

/// One store.
pub struct Store {
    /// Its place in the table.
    pub index: usize,
    state: AtomicU32,
    inner: &'static InnerCell,
    /// The slot's mapping, known in a forked child, too.
    mapped: AtomicPtr<u8>,
    slot_fd: AtomicI32,
    session_fd: AtomicI32,
}

struct Inner {
    path: StorePath,
    run: StorePath,
    slot_name: StorePath,
    view: Option<StoreView<'static>>,
    devices: Option<Devices>,
    /// Models of the emulated targets, looked up at each I/O.
    models: [Option<DeviceModel>; MAX_TARGETS],
    boot_id: [u64; 2],
}

/// Apart from [`Store`], so that all of it is zero at first and takes no room in the library's file.
struct InnerCell(UnsafeCell<Inner>);

// SAFETY: written under ATTACH before `state` becomes READY, and only read afterwards (slot_name: under ATTACH).
unsafe impl Sync for InnerCell {}

static ATTACH: Lock = Lock::new();
static INNER: [InnerCell; MAX_STORES] = [const {
    InnerCell(UnsafeCell::new(Inner {
        path: StorePath::new(),
        run: StorePath::new(),
        slot_name: StorePath::new(),
        view: None,
        devices: None,
        models: [None; MAX_TARGETS],
        boot_id: [0; 2],
    }))
}; MAX_STORES];
static STORES: [Store; MAX_STORES] = {
    let mut index = 0;
    let mut stores = [const {
        Store {
            index: 0,
            state: AtomicU32::new(0),
            inner: &INNER[0],
            mapped: AtomicPtr::new(core::ptr::null_mut()),
            slot_fd: AtomicI32::new(0),
            session_fd: AtomicI32::new(0),
        }
    }; MAX_STORES];
    while index < MAX_STORES {
        #[allow(clippy::indexing_slicing)] // Evaluated by the compiler.
        let (store, inner) = (&mut stores[index], &INNER[index]);
        store.index = index;
        store.inner = inner;
        index += 1;
    }
    stores
};
static SLOT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The stores in use.
pub fn all() -> impl Iterator<Item = &'static Store> {
    STORES.iter().filter(|s| s.state.load(Ordering::Acquire) == READY)
}

/// The store of an index.
pub fn get(index: usize) -> Option<&'static Store> {
    STORES.get(index).filter(|s| s.state.load(Ordering::Acquire) == READY)
}

/// This boot's id as two words, and its text.
fn boot_id(text: &mut [u8; 64]) -> Sys<([u64; 2], usize)> {
    let len = sys::read_file(c"/proc/sys/kernel/random/boot_id", text)?.iter().take_while(|c| c.is_ascii_hexdigit() || **c == b'-').count();
    let mut words = [0u64; 2];
    for (digit, c) in text.iter().take(len).filter(|c| **c != b'-').enumerate() {
        let nibble = (*c as char).to_digit(16).unwrap_or(0);
        if let Some(word) = words.get_mut(digit / 16) {
            *word = *word << 4 | u64::from(nibble);
        }
    }
    Ok((words, len))
}

/// The store at an absolute path, attached if it was not.
pub fn attach(path: &[u8]) -> Sys<&'static Store> {
    if let Some(store) = all().find(|s| s.path() == path) {
        return Ok(store);
    }
    let Some(_held) = ATTACH.lock() else { return Err(Errno(libc::EDEADLK)) };
    if let Some(store) = all().find(|s| s.path() == path) {
        return Ok(store);
    }
    crate::env::refuse_vfork_child()?;
    let store = STORES.iter().find(|s| s.state.load(Ordering::Acquire) == 0).ok_or(Errno(libc::EMFILE))?;
    store.load(path).inspect_err(|_| fds::close_internal(&store.session_fd))?;
    store.state.store(READY, Ordering::Release);
    Ok(store)
}

impl Store {
    #[allow(clippy::mut_from_ref)]
    fn inner_mut(&self) -> &mut Inner {
        // SAFETY: called under ATTACH only, see `Sync`.
        unsafe { &mut *self.inner.0.get() }
    }

    fn inner(&self) -> &Inner {
        // SAFETY: see `Sync`.
        unsafe { &*self.inner.0.get() }
    }

    /// Absolute path.
    pub fn path(&self) -> &[u8] {
        self.inner().path.as_bytes()
    }

    /// Configuration.
    pub fn view(&self) -> Sys<&StoreView<'static>> {
        self.inner().view.as_ref().ok_or(Errno(libc::EIO))
    }

    /// Device clocks and counters.
    pub fn devices(&self) -> Option<&Devices> {
        self.inner().devices.as_ref()
    }

    /// The model of an emulated target.
    #[inline]
    pub fn model(&self, target: u32) -> Option<&DeviceModel> {
        self.inner().models.get(target as usize)?.as_ref()
    }

    /// This boot.
    pub fn boot_id(&self) -> [u64; 2] {
        self.inner().boot_id
    }

    /// `<store>/run/<boot-id>`.
    pub fn run(&self) -> &StorePath {
        &self.inner().run
    }

    /// File name of this process's slot.
    pub fn slot_name(&self) -> &[u8] {
        let name = self.inner().slot_name.as_bytes();
        name.rsplit(|c| *c == b'/').next().unwrap_or(name)
    }

    #[inline]
    fn slot_word(&self) -> &'static AtomicPtr<u8> {
        PAGE.slots.get(self.index).unwrap_or(&PAGE.slots[0])
    }

    fn publish_slot(&self, base: *mut u8) {
        self.mapped.store(base, Ordering::Release);
        self.slot_word().store(base, Ordering::Release);
    }

    /// This process's slot, made when there is none (first use, or a forked child).
    #[inline]
    pub fn slot(&self) -> Slot {
        let base = self.slot_word().load(Ordering::Acquire);
        if !base.is_null() {
            // SAFETY: mapped by make_slot, never unmapped while published.
            return unsafe { Slot::from_mapping(base) };
        }
        self.first_slot()
    }

    /// The slot, if this process already has one.
    pub fn slot_if_any(&self) -> Option<Slot> {
        let base = self.slot_word().load(Ordering::Acquire);
        // SAFETY: as in `slot`.
        (!base.is_null()).then(|| unsafe { Slot::from_mapping(base) })
    }

    #[cold]
    fn first_slot(&self) -> Slot {
        let held = ATTACH.lock();
        if self.slot_word().load(Ordering::Acquire).is_null() && self.make_slot().is_err() {
            // Without a slot a mover could not know of us. A private one keeps this process right as long as nothing moves,
            // which session.lock ensures.
            log::say(b"no slot could be made in the store's run directory; is it full or read-only?", self.path());
            if let Ok(base) = sys::mmap(-1, SLOT_BYTES, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) {
                self.publish_slot(base);
            }
        }
        drop(held);
        // SAFETY: set above; memory for 64 KiB was had, or the process is beyond help.
        unsafe { Slot::from_mapping(self.slot_word().load(Ordering::Acquire)) }
    }

    #[inline(never)] // As above.
    fn make_slot(&self) -> Sys<()> {
        let inner = self.inner_mut();
        let pid = sys::getpid();
        let (config, targets) = inner.view.as_ref().map_or((0, 0), |view| (view.checksum(), view.target_count() as u32));
        let mut name = inner.run.clone();
        let run_len = name.len();
        let mut fd = Err(Errno(libc::ENFILE));
        for _ in 0..SLOT_ATTEMPTS {
            name.truncate(run_len);
            name.push(b"/").push_decimal(u64::from(pid)).push(b"-").push_decimal(SLOT_NUMBER.fetch_add(1, Ordering::Relaxed)).push(b".slot");
            fd = slot::claim(name.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?)
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
                slot.initialise(pid, config, targets);
                fds::make_internal(fd, self.slot_fd_static(), true)?;
                inner.slot_name = name;
                self.publish_slot(base);
                Ok(())
            }
            Err(errno) => {
                sys::close(fd);
                Err(errno)
            }
        }
    }

    fn slot_fd_static(&self) -> &'static AtomicI32 {
        STORES.get(self.index).map_or(&STORES[0].slot_fd, |s| &s.slot_fd)
    }

    fn session_fd_static(&self) -> &'static AtomicI32 {
        STORES.get(self.index).map_or(&STORES[0].session_fd, |s| &s.session_fd)
    }

    #[inline(never)] // Threads may have small stacks: one path less at a time.
    fn load(&self, path: &[u8]) -> Sys<()> {
        let inner = self.inner_mut();
        inner.path = StorePath::from_bytes(path);
        let mut name = inner.path.clone();
        name.push(b"/store.bin");
        let bytes = map_file(name.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?)
            .inspect_err(|_| log::say(b"store.bin cannot be read; is this store complete? run: stripewise store fsck", path))?;
        match StoreView::parse(bytes) {
            Ok(view) => inner.view = Some(view),
            Err(_) => {
                log::say(b"store.bin is damaged or newer than this library; run: stripewise store fsck", path);
                return Err(Errno(libc::EIO));
            }
        }
        let mut text = [0u8; 64];
        let (words, len) = boot_id(&mut text)?;
        inner.boot_id = words;
        let mut run = inner.path.clone();
        run.push(b"/run");
        self.refuse_other_machine(&run, text.get(..len).unwrap_or(&[]))?;
        let mut session = run.clone();
        session.push(b"/session.lock");
        run.push(b"/").push(text.get(..len).unwrap_or(&[]));
        let run_path = run.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?;
        if sys::mkdir(run_path, 0o777).is_ok() {
            let _ = sys::chmod(run_path, 0o1777);
            write_host(&run);
        }
        inner.run = run.clone();
        // Shared as long as this process lives; an offline move holds it exclusively, and we wait for it.
        let fd = open_shared(session.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?, 0o666)?;
        sys::flock(fd, libc::LOCK_SH).inspect_err(|_| sys::close(fd))?;
        fds::make_internal(fd, self.session_fd_static(), true)?;
        let targets = inner.view.as_ref().map_or(0, StoreView::target_count);
        inner.devices = Some(map_devices(run, targets)?);
        if let Some(view) = &inner.view {
            for (i, model) in inner.models.iter_mut().enumerate() {
                *model = view.target(i).filter(|t| t.kind == Kind::Emulated).map(|t| t.model);
            }
        }
        self.make_slot()
    }

    /// One machine uses a `dir` store at a time: another one's run directory that still has slots is an error.
    #[inline(never)] // As above.
    fn refuse_other_machine(&self, run: &StorePath, boot: &[u8]) -> Sys<()> {
        let mut own = [0u8; 64];
        let own = sys::read_file(c"/etc/machine-id", &mut own).unwrap_or(&[]);
        let mut foreign = false;
        sys::for_each_name(run.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?, |name| {
            if name == boot || name.len() != boot.len() {
                return;
            }
            let mut host = run.clone();
            host.push(b"/").push(name);
            let mut slots = false;
            if let Some(dir) = host.as_c_str() {
                let _ = sys::for_each_name(dir, |n| slots |= n.ends_with(b".slot"));
            }
            host.push(b"/host");
            let mut other = [0u8; 64];
            let other = host.as_c_str().and_then(|p| sys::read_file(p, &mut other).ok()).unwrap_or(&[]);
            foreign |= slots && !other.is_empty() && other != own;
        })?;
        if foreign {
            log::say(b"the store is in use by another machine; one machine writes a store at a time (if that machine is gone: stripewise store fsck --repair)", self.path());
            return Err(Errno(libc::EIO));
        }
        Ok(())
    }

    /// In a forked child: the slot is the parent's. Its flock must not be kept alive by us.
    pub fn after_fork(&self) {
        fds::close_internal(&self.slot_fd);
        self.slot_word().store(core::ptr::null_mut(), Ordering::Release);
        let base = self.mapped.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !base.is_null() {
            // The mapping alone would keep the flock, too. SAFETY: the only thread of this child, outside any I/O.
            unsafe { sys::munmap(base, SLOT_BYTES) };
        }
    }
}

/// In a forked child.
pub fn after_fork() {
    ATTACH.reset();
    for store in all() {
        store.after_fork();
    }
}

fn write_host(run: &StorePath) {
    let mut id = [0u8; 64];
    let mut path = run.clone();
    path.push(b"/host");
    if let (Ok(id), Some(path)) = (sys::read_file(c"/etc/machine-id", &mut id), path.as_c_str())
        && let Ok(fd) = sys::open(path, libc::O_WRONLY | libc::O_CREAT, 0o644)
    {
        let _ = sys::fchmod(fd, 0o644);
        let _ = sys::write(fd, id);
        sys::close(fd);
    }
}

/// Opens a file that all users of the store share, made if it is missing. Never O_CREAT on one that exists: in a sticky directory the kernel
/// may refuse that for another user's file (fs.protected_regular). For the flock alone reading is enough.
fn open_shared(path: &core::ffi::CStr, mode: u32) -> Sys<i32> {
    loop {
        match sys::open(path, libc::O_RDWR, 0) {
            Err(Errno(libc::ENOENT)) => {}
            Err(Errno(libc::EACCES | libc::EROFS)) => return sys::open(path, libc::O_RDONLY, 0),
            result => return result,
        }
        match sys::open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, mode) {
            Err(Errno(libc::EEXIST)) => {}
            result => {
                let fd = result?;
                let _ = sys::fchmod(fd, mode);
                return Ok(fd);
            }
        }
    }
}

/// Maps a file that is only ever replaced, never changed in place.
pub fn map_file(path: &core::ffi::CStr) -> Sys<&'static [u8]> {
    let fd = sys::open(path, libc::O_RDONLY, 0)?;
    let mapped = sys::fstat(fd).and_then(|st| {
        let len = st.st_size as usize;
        if len == 0 {
            return Err(Errno(libc::EIO));
        }
        let base = sys::mmap(fd, len, libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_POPULATE)?;
        // SAFETY: mapped for `len` bytes; its owner unmaps it when nothing refers to it.
        Ok(unsafe { core::slice::from_raw_parts(base, len) })
    });
    sys::close(fd);
    mapped
}

#[inline(never)] // As above.
fn map_devices(mut run: StorePath, targets: usize) -> Sys<Devices> {
    let path = run.push(b"/devices").as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?;
    let bytes = devices_bytes(targets);
    let fd = open_shared(path, 0o666)?;
    let mapped = sys::fstat(fd).and_then(|st| {
        if (st.st_size as usize) < bytes {
            sys::fallocate(fd, 0, 0, bytes as u64).or_else(|_| sys::ftruncate(fd, bytes as u64))?;
            // SAFETY: plain bytes.
            let _ = unsafe { sys::pwrite(fd, DEVICES_MAGIC.as_ptr(), 8, 0) };
            let count = (targets as u32).to_le_bytes();
            // SAFETY: plain bytes.
            let _ = unsafe { sys::pwrite(fd, count.as_ptr(), 4, 8) };
        }
        sys::mmap(fd, bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)
    });
    sys::close(fd);
    // SAFETY: the mapping stays for the life of the process.
    mapped.map(|base| unsafe { Devices::from_mapping(base, targets) })
}
