//! Stores that this process uses: their directories, configuration, devices and this process's slot, opened at the first managed file.

pub mod heads;
pub mod part;

mod load;
pub mod room;
mod slots;
mod targets;
mod trusted;

pub use load::take_file;
pub use targets::OpenObject;

use crate::base::config;
use crate::base::lock::Lock;
use crate::base::locks;
use crate::base::process::{self, MAX_STORES};
use crate::base::sys::{self, Errno, Sys};
use crate::fds::{self, held};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};
use load::Root;
use stripewise_store::bin::StoreView;
use stripewise_store::run::SlotName;
use stripewise_target::devices::{Devices, devices_bytes};
use stripewise_target::emulated::Clock;
use stripewise_target::kind::MAX_TARGETS;
use stripewise_target::text::StorePath;
use stripewise_target::within;

const READY: u32 = 2;

/// A store that this process uses.
pub struct Attached {
    /// Its place in the table.
    pub index: usize,
    state: AtomicU32,
    inner: &'static InnerCell,
    /// Effective user, plus one, for whom it was last found to be trusted.
    judged: AtomicU32,
    /// The slot's mapping, known in a forked child, too.
    mapped: AtomicPtr<u8>,
    slot_fd: AtomicI32,
    session_fd: AtomicI32,
    root_fd: AtomicI32,
    files_fd: AtomicI32,
    run_fd: AtomicI32,
    /// Opened when first needed.
    trash_fd: AtomicI32,
    /// Directories of the targets, opened when first needed.
    target_fds: [AtomicI32; MAX_TARGETS],
    targets_lock: Lock,
    /// Somebody has cut the devices file: from then on the clocks are this process's own.
    devices_cut: AtomicBool,
}

struct Inner {
    path: StorePath,
    owner: u32,
    mode: u32,
    /// Device and inode of its directory.
    identity: (u64, u64),
    /// Others than this user may write in it.
    is_common: bool,
    slot_name: SlotName,
    view: Option<StoreView<'static>>,
    /// Rules for new files of a run that follows a kept plan.
    plan: Option<StoreView<'static>>,
    devices: Option<Devices>,
    /// Of each target, looked up at each I/O.
    clocks: [Option<Clock>; MAX_TARGETS],
    boot: Boot,
}

/// This boot's id, as two words and as text.
#[derive(Clone)]
pub struct Boot {
    words: [u64; 2],
    text: [u8; 40],
    len: usize,
}

impl Boot {
    const fn none() -> Self {
        Self { words: [0; 2], text: [0; 40], len: 0 }
    }

    fn now() -> Sys<Self> {
        let mut boot = Self::none();
        let text = sys::read_file(c"/proc/sys/kernel/random/boot_id", &mut boot.text)?;
        boot.len = text.iter().take_while(|c| c.is_ascii_hexdigit() || **c == b'-').count();
        for (digit, c) in boot.text.iter().take(boot.len).filter(|c| **c != b'-').enumerate() {
            let nibble = (*c as char).to_digit(16).unwrap_or(0);
            if let Some(word) = boot.words.get_mut(digit / 16) {
                *word = *word << 4 | u64::from(nibble);
            }
        }
        Ok(boot)
    }

    /// As the kernel spells it.
    pub fn text(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or(&[])
    }
}

/// Apart from [`Attached`], so that all of it is zero at first and takes no room in the library's file.
struct InnerCell(UnsafeCell<Inner>);

// SAFETY: written under ATTACH before `state` becomes READY, and only read afterwards (slot_name: under ATTACH).
unsafe impl Sync for InnerCell {}

static ATTACH: Lock = Lock::new();
static INNER: [InnerCell; MAX_STORES] = [const {
    InnerCell(UnsafeCell::new(Inner {
        path: StorePath::new(),
        owner: 0,
        mode: 0,
        identity: (0, 0),
        is_common: false,
        slot_name: SlotName::new(),
        view: None,
        plan: None,
        devices: None,
        clocks: [None; MAX_TARGETS],
        boot: Boot::none(),
    }))
}; MAX_STORES];
static STORES: [Attached; MAX_STORES] = {
    let mut index = 0;
    let mut stores = [const {
        Attached {
            index: 0,
            state: AtomicU32::new(0),
            inner: &INNER[0],
            judged: AtomicU32::new(0),
            mapped: AtomicPtr::new(core::ptr::null_mut()),
            slot_fd: AtomicI32::new(0),
            session_fd: AtomicI32::new(0),
            root_fd: AtomicI32::new(0),
            files_fd: AtomicI32::new(0),
            run_fd: AtomicI32::new(0),
            trash_fd: AtomicI32::new(0),
            target_fds: [const { AtomicI32::new(0) }; MAX_TARGETS],
            targets_lock: Lock::new(),
            devices_cut: AtomicBool::new(false),
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
/// The stores in use.
pub fn all() -> impl Iterator<Item = &'static Attached> {
    STORES.iter().filter(|s| s.state.load(Ordering::Acquire) == READY)
}

/// The store of an index.
pub fn get(index: usize) -> Option<&'static Attached> {
    STORES.get(index).filter(|s| s.state.load(Ordering::Acquire) == READY)
}

/// The store at an absolute path, attached if it was not.
///
/// # Errors
/// `EACCES` for one that this process, with the rights that it has now, does not trust.
pub fn attach(path: &[u8]) -> Sys<&'static Attached> {
    // Waited for outside of ATTACH: other stores are none of that.
    locks::patiently(path, || attach_now(path))
}

/// Held while a store is attached.
#[inline]
pub fn attach_lock() -> &'static Lock {
    &ATTACH
}

/// The same without waiting for a verb that has the store for itself.
pub fn attach_at_once(path: &[u8]) -> Sys<&'static Attached> {
    attach_now(path)
}

/// The directory of records of copies in the store that the process was started with, which need not be attached.
///
/// # Errors
/// `ENOENT` where there is none, `EACCES` for a store that this process does not trust.
pub fn copies_dir() -> Sys<part::Held> {
    let path = config::store_path().ok_or(Errno(libc::ENOENT))?;
    let root = Root::open(path)?;
    if !is_started_with(path, (root.stat.st_dev, root.stat.st_ino)) {
        return Err(Errno(libc::EACCES));
    }
    let opened = within::open_dir(part::borrow(root.fd.fd()), stripewise_store::copies::COPIES_DIR, &[root.stat.st_uid, 0]);
    opened.map(|(fd, _)| part::Held::new(fd)).map_err(|refusal| Errno(refusal.errno().raw_os_error()))
}

fn attach_now(path: &[u8]) -> Sys<&'static Attached> {
    if let Some(store) = all().find(|s| s.path() == path) {
        return store.admit(path);
    }
    let root = Root::open(path)?;
    let identity = (root.stat.st_dev, root.stat.st_ino);
    // The same directory by another name.
    if let Some(store) = all().find(|s| s.inner().identity == identity) {
        return store.admit(path);
    }
    let is_own = is_started_with(path, identity);
    trusted::judge(path, root.stat.st_uid, sys::geteuid(), is_own)?;
    let Some(_held) = ATTACH.lock() else { return Err(Errno(libc::EDEADLK)) };
    if let Some(store) = all().find(|s| s.inner().identity == identity) {
        return Ok(store);
    }
    crate::base::process::refuse_vfork_child()?;
    let (own, others) = STORES.split_at(1);
    let mut places = if is_own { own.iter() } else { others.iter() };
    let store = places.find(|s| s.state.load(Ordering::Acquire) == 0).ok_or(Errno(libc::EMFILE))?;
    store.load(path, root).inspect_err(|_| store.close_all())?;
    store.judged.store(sys::geteuid() + 1, Ordering::Release);
    store.state.store(READY, Ordering::Release);
    Ok(store)
}

/// Whether an attach failed because there is no store, or none that this process uses.
pub fn is_no_store(errno: Errno) -> bool {
    matches!(errno, Errno(libc::EACCES | libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::ENAMETOOLONG))
}

/// Whether a store is the one that the process was started with, by whatever name.
fn is_started_with(path: &[u8], identity: (u64, u64)) -> bool {
    let Some(told) = config::store_path() else { return false };
    if let Some(own) = get(0) {
        return own.inner().identity == identity;
    }
    if let Some(at_start) = config::store_identity() {
        return at_start == identity;
    }
    // It was not there then, and the name still means what it meant.
    told == path && process::root_moves_seen() == 0
}

impl Attached {
    #[allow(clippy::mut_from_ref)]
    fn inner_mut(&self) -> &mut Inner {
        // SAFETY: called under ATTACH only, see `Sync`.
        unsafe { &mut *self.inner.0.get() }
    }

    fn inner(&self) -> &Inner {
        // SAFETY: see `Sync`.
        unsafe { &*self.inner.0.get() }
    }

    /// The store, if the user that the process is now may use it by this name.
    fn admit(&'static self, path: &[u8]) -> Sys<&'static Self> {
        if process::root_moves_seen() > 0 {
            let root = Root::open(path)?;
            if (root.stat.st_dev, root.stat.st_ino) != self.inner().identity {
                return Err(Errno(libc::ENOENT));
            }
        }
        let euid = sys::geteuid();
        if self.judged.load(Ordering::Acquire) != euid + 1 {
            // The place of the store that the process was started with is nobody else's.
            trusted::judge(path, self.owner(), euid, self.index == 0)?;
            self.judged.store(euid + 1, Ordering::Release);
        }
        Ok(self)
    }

    /// The effective user for whom it was last found to be trusted: every call by name asks anew.
    pub fn judged_for(&self) -> u32 {
        self.judged.load(Ordering::Acquire).wrapping_sub(1)
    }

    /// Absolute path.
    pub fn path(&self) -> &[u8] {
        self.inner().path.as_bytes()
    }

    /// Whose it is.
    pub fn owner(&self) -> u32 {
        self.inner().owner
    }

    /// Whether others than this user may write in it: then what they may cut is mapped under a guard.
    pub fn is_common(&self) -> bool {
        self.inner().is_common
    }

    /// Configuration.
    pub fn view(&self) -> Sys<&StoreView<'static>> {
        self.inner().view.as_ref().ok_or(Errno(libc::EIO))
    }

    /// What the kept plan that the run follows says of new files.
    pub fn plan(&self) -> Option<&StoreView<'static>> {
        self.inner().plan.as_ref()
    }

    /// Objects that one of its files may have: one per target and plane.
    pub fn objects_max(&self) -> Sys<usize> {
        Ok(2 * self.view()?.target_count())
    }

    /// Device clocks and counters.
    pub fn devices(&self) -> Option<&Devices> {
        self.inner().devices.as_ref()
    }

    /// Clock and counters of a target.
    #[inline]
    pub fn clock(&self, target: u32) -> Option<&Clock> {
        self.inner().clocks.get(target as usize)?.as_ref()
    }

    /// This boot.
    pub fn boot_id(&self) -> [u64; 2] {
        self.inner().boot.words
    }

    /// `<store>`.
    pub fn root_dir(&self) -> Sys<i32> {
        held(&self.root_fd).ok_or(Errno(libc::EIO))
    }

    /// `<store>/files`.
    pub fn files_dir(&self) -> Sys<i32> {
        held(&self.files_fd).ok_or(Errno(libc::EIO))
    }

    /// `<store>/run`.
    pub fn run_dir(&self) -> Sys<i32> {
        held(&self.run_fd).ok_or(Errno(libc::EIO))
    }

    /// After a failed attach: nobody else has seen it.
    fn close_all(&self) {
        let inner = self.inner_mut();
        if let Some(devices) = inner.devices.take() {
            crate::base::guard::forget(devices.base());
            // SAFETY: mapped by this attach, and used by nobody.
            unsafe { sys::munmap(devices.base(), devices_bytes(devices.targets())) };
        }
        for view in [inner.view.take(), inner.plan.take()].into_iter().flatten() {
            let bytes = view.bytes();
            // SAFETY: as above.
            unsafe { sys::munmap(bytes.as_ptr().cast_mut(), bytes.len()) };
        }
        for holder in [&self.session_fd, &self.root_fd, &self.files_fd, &self.run_fd, &self.slot_fd] {
            fds::close_internal(holder);
        }
    }
}

/// In a forked child.
pub fn after_fork() {
    ATTACH.reset();
    for store in all() {
        store.targets_lock.reset();
        store.after_fork();
    }
}
