//! Attaching a store: its directories are opened once, looked at, and held; everything else is reached from them.

use super::{Attached, Boot};
use crate::base::config;
use crate::base::locks;
use crate::base::log;
use crate::base::sys::{self, Errno, Sys};
use crate::fds::{self, held};
use crate::store::part::{self, Held, borrow, refused};
use core::sync::atomic::AtomicI32;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use stripewise_store::bin::STORE_BIN_BYTES_MAX;
use stripewise_store::bin::StoreView;
use stripewise_store::locks::{How, PRESENCE_BYTE};
use stripewise_store::{names, run};
use stripewise_target::devices::{DEVICES, Devices, devices_bytes, open_devices};
use stripewise_target::emulated::Clock;
use stripewise_target::kind::Kind;
use stripewise_target::text::{STORE_PATH_BYTES_MAX, StorePath};
use stripewise_target::within::{self, Expected, OpenFlags, Refusal};

/// A directory that the store holds from its first use on: the store's own descriptor, or, in a child of vfork, one of the call's.
pub struct HeldDir(i32, Option<Held>);

impl HeldDir {
    /// One that somebody else holds.
    pub(super) const fn borrowed(fd: i32) -> Self {
        Self(fd, None)
    }

    /// The descriptor.
    pub fn fd(&self) -> i32 {
        self.1.as_ref().map_or(self.0, Held::fd)
    }
}

/// The root of a store, opened and looked at.
pub struct Root {
    /// Its directory.
    pub fd: Held,
    /// What it is.
    pub stat: part::Stat,
}

impl Root {
    /// Opens the directory at an absolute path; links on the way are followed.
    pub fn open(path: &[u8]) -> Sys<Self> {
        if path.len() > STORE_PATH_BYTES_MAX {
            return Err(Errno(libc::ENAMETOOLONG));
        }
        let name = StorePath::from_bytes(path);
        let (fd, stat) =
            within::open_root(name.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?, &[]).map_err(|refusal| match refused(path, [b""; 3], refusal) {
                Errno(libc::EIO) => Errno(libc::EACCES),
                errno => errno,
            })?;
        let fd = Held::new(fd);
        // Who may rename it, or what lies beside it, puts another in its place.
        let parent = sys::lstat_at(fd.fd(), c"..").map_or(0, |parent| parent.st_mode);
        if stat.st_mode & 0o002 != 0 || parent & 0o1002 == 0o002 {
            refused(path, [b""; 3], Refusal::WorldWritable);
            return Err(Errno(libc::EACCES));
        }
        Ok(Self { fd, stat })
    }
}

impl Attached {
    /// Users whom the store's own parts belong to.
    pub(super) fn owners(&self) -> [u32; 2] {
        [self.owner(), 0]
    }

    fn own_dir(&self, name: &core::ffi::CStr) -> Sys<(OwnedFd, part::Stat)> {
        let root = held(&self.root_fd).ok_or(Errno(libc::EIO))?;
        within::open_dir(borrow(root), name, &self.owners()).map_err(|refusal| refused(self.path(), [name.to_bytes(), b"", b""], refusal))
    }

    #[inline(never)] // Threads may have small stacks: one path less at a time.
    pub(super) fn load(&'static self, path: &[u8], root: Root) -> Sys<()> {
        let inner = self.inner_mut();
        inner.path = StorePath::from_bytes(path);
        inner.owner = root.stat.st_uid;
        inner.mode = root.stat.st_mode;
        inner.identity = (root.stat.st_dev, root.stat.st_ino);
        fds::make_internal(root.fd.keep(), &self.root_fd, true)?;
        self.load_configuration(path)?;
        let (files, stat) = self.own_dir(c"files")?;
        // Where only this user may enter, nobody else reaches what lies below, whatever its mode.
        inner.is_common = inner.owner != sys::geteuid() || inner.mode & 0o077 != 0 || stat.st_mode & 0o022 != 0;
        fds::make_internal(files.into_raw_fd(), &self.files_fd, true)?;
        fds::make_internal(self.own_dir(c"run")?.0.into_raw_fd(), &self.run_fd, true)?;
        inner.plan = self.load_plan(path);
        inner.boot = Boot::now()?;
        self.refuse_other_machine()?;
        // Shared as long as this process lives; an offline move holds it exclusively, and we wait for it.
        let lock = self.open_session_lock()?;
        if !locks::take(lock.fd(), How::Shared, PRESENCE_BYTE)? {
            let stat = sys::fstat(lock.fd())?;
            return Err(locks::in_use(stat.st_uid, stat.st_mode, self.owner()));
        }
        fds::make_internal(lock.keep(), &self.session_fd, true)?;
        if let Some(view) = &inner.view {
            inner.devices = self.map_devices(view.target_count());
            for (i, clock) in inner.clocks.iter_mut().enumerate() {
                let model = view.target(i).filter(|t| t.kind == Kind::Emulated).map(|t| t.model);
                *clock = inner.devices.and_then(|devices| devices.line(i as u32)).map(|line| Clock { line, model });
            }
        }
        self.make_slot()
    }

    #[inline(never)] // As above.
    fn load_configuration(&self, path: &[u8]) -> Sys<()> {
        let inner = self.inner_mut();
        let root = held(&self.root_fd).ok_or(Errno(libc::EIO))?;
        let owners = self.owners();
        let opened = within::open_file(
            borrow(root),
            c"store.bin",
            OpenFlags::RDONLY | OpenFlags::NONBLOCK,
            Expected::of(&owners).at_most(STORE_BIN_BYTES_MAX),
        )
        .map_err(|refusal| refused(path, [b"store.bin", b"", b""], refusal));
        let bytes = opened
            .and_then(|(fd, stat)| take_file(&Held::new(fd), &stat))
            .inspect_err(|_| log::say(b"store.bin cannot be read; is this store complete? run: stripewise store fsck", path))?;
        match StoreView::parse(bytes) {
            Ok(view) => inner.view = Some(view),
            Err(_) => {
                log::say(b"store.bin is damaged or newer than this library; run: stripewise store fsck", path);
                // SAFETY: nothing refers to it.
                unsafe { sys::munmap(bytes.as_ptr().cast_mut(), bytes.len()) };
                return Err(Errno(libc::EIO));
            }
        }
        Ok(())
    }

    /// The rules of the kept plan that the run follows. One that cannot be read changes no program: new files lie as in any other run.
    #[inline(never)] // As above.
    fn load_plan(&self, path: &[u8]) -> Option<StoreView<'static>> {
        let number = config::plan();
        // The first place is the store's that the process was started with, by whatever name it is reached.
        if number == 0 || self.index != 0 {
            return None;
        }
        let mut name = names::id_name(number);
        name.push(b".bin");
        let owners = self.owners();
        let opened = self.own_dir(c"plans").and_then(|(dir, _)| {
            let expected = Expected::of(&owners).at_most(STORE_BIN_BYTES_MAX);
            let file = within::open_file(dir.as_fd(), part::c(&name)?, OpenFlags::RDONLY | OpenFlags::NONBLOCK, expected);
            file.map_err(|refusal| refused(path, [b"plans", name.as_bytes(), b""], refusal))
        });
        let bytes = opened.and_then(|(fd, stat)| take_file(&Held::new(fd), &stat)).ok()?;
        let store = self.inner().view.as_ref()?;
        match StoreView::parse(bytes) {
            Ok(plan) if plan.uuid() == store.uuid() && plan.target_count() <= store.target_count() => Some(plan),
            _ => {
                log::say(b"the kept plan of this run is damaged or another store's; new files lie as in any other run", path);
                // SAFETY: nothing refers to it.
                unsafe { sys::munmap(bytes.as_ptr().cast_mut(), bytes.len()) };
                None
            }
        }
    }

    /// The lock that programs share; the store's owner or root has made it, or it would be somebody's who may take it away.
    fn open_session_lock(&self) -> Sys<Held> {
        let run = self.run_dir()?;
        let owners = self.owners();
        // Programs lock it shared, for which reading is enough.
        let open =
            || within::open_file(borrow(run), run::SESSION_LOCK, OpenFlags::RDONLY | OpenFlags::NONBLOCK, Expected::of(&owners)).map(|(fd, _)| fd);
        let opened = match open() {
            Err(Refusal::Os(within::Os::NOENT)) if owners.contains(&sys::geteuid()) => {
                let mode = if self.is_shared()? { 0o644 } else { 0o600 };
                match within::create_file(borrow(run), run::SESSION_LOCK, OpenFlags::RDWR, mode) {
                    Err(within::Os::EXIST) => open(),
                    made => made.map_err(Refusal::Os),
                }
            }
            opened => opened,
        };
        opened.map(Held::new).map_err(|refusal| {
            log::say(b"run/session.lock is missing or not the store owner's: let the owner run stripewise store fsck --repair", self.path());
            match refused(self.path(), [b"run", run::SESSION_LOCK.to_bytes(), b""], refusal) {
                // Programs make a file anew that is not there.
                Errno(libc::ENOENT) => Errno(libc::EIO),
                errno => errno,
            }
        })
    }

    /// Mode of the directory of its files: whoever may make files has his directories there.
    pub fn mode_of_files(&self) -> Sys<u32> {
        Ok(sys::fstat(held(&self.files_fd).ok_or(Errno(libc::EIO))?)?.st_mode)
    }

    /// Whether everybody may make files in it.
    fn is_shared(&self) -> Sys<bool> {
        Ok(self.mode_of_files()? & 0o002 != 0)
    }

    /// The mode with which this process makes a devices file that is missing; only the store's owner and root do.
    fn mode_of_devices(&self) -> Option<u32> {
        let is_ours = self.owners().contains(&sys::geteuid());
        is_ours.then(|| if self.is_shared().unwrap_or(false) { 0o666 } else { 0o600 })
    }

    /// Clocks and counters; where they cannot be had, ones of this process's own, for no program depends on them.
    #[inline(never)] // As above.
    fn map_devices(&'static self, targets: usize) -> Option<Devices> {
        let bytes = devices_bytes(targets);
        let own = || sys::mmap(-1, bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let opened = open_devices(borrow(self.run_dir().ok()?), targets, self.boot_id(), &self.owners(), self.mode_of_devices());
        let base = match opened {
            Ok(fd) => {
                let fd = Held::new(fd);
                let base = sys::mmap(fd.fd(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
                if let Ok(base) = base
                    && self.is_common()
                {
                    crate::base::guard::watch(base, bytes, &self.devices_cut);
                }
                base
            }
            Err(refusal) => {
                refused(self.path(), [b"run", DEVICES.to_bytes(), b""], refusal);
                own()
            }
        };
        // SAFETY: the mapping stays for the life of the process.
        base.or_else(|_| own()).ok().map(|base| unsafe { Devices::from_mapping(base, targets) })
    }

    /// `<store>/trash`.
    pub fn trash_dir(&'static self) -> Sys<HeldDir> {
        self.hold_dir(&self.trash_fd, || {
            let opened = within::open_dir(borrow(self.root_dir()?), c"trash", &[]);
            opened.map(|(fd, _)| Held::new(fd)).map_err(|refusal| Errno(refusal.errno().raw_os_error()))
        })
    }

    /// A directory that is held from its first use on.
    pub(super) fn hold_dir(&'static self, holder: &'static AtomicI32, open: impl FnOnce() -> Sys<Held>) -> Sys<HeldDir> {
        if let Some(fd) = held(holder) {
            return Ok(HeldDir(fd, None));
        }
        let dir = open()?;
        if crate::base::process::in_vfork_child() {
            return Ok(HeldDir(-1, Some(dir)));
        }
        let Some(_held) = self.targets_lock.lock() else { return Ok(HeldDir(-1, Some(dir))) };
        match held(holder) {
            Some(fd) => Ok(HeldDir(fd, None)),
            None => fds::make_internal(dir.keep(), holder, true).map(|fd| HeldDir(fd, None)),
        }
    }
}

/// Takes a file that is only ever replaced, never changed in place: mapped where nobody but this user and root could cut it, else copied.
pub fn take_file(fd: &Held, stat: &part::Stat) -> Sys<&'static [u8]> {
    let len = stat.st_size as usize;
    if len == 0 {
        return Err(Errno(libc::EIO));
    }
    let is_safe = (stat.st_uid == 0 || stat.st_uid == sys::geteuid()) && stat.st_mode & 0o022 == 0;
    if is_safe {
        let base = sys::mmap(fd.fd(), len, libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_POPULATE)?;
        // SAFETY: mapped for `len` bytes; its owner unmaps it when nothing refers to it.
        return Ok(unsafe { core::slice::from_raw_parts(base, len) });
    }
    let base = sys::mmap(-1, len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)?;
    // SAFETY: as above.
    let bytes = unsafe { core::slice::from_raw_parts_mut(base, len) };
    let mut got = 0;
    while let Some(rest) = bytes.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match sys::read(fd.fd(), rest) {
            Ok(n) if n > 0 => got += n,
            // Cut meanwhile, or unreadable.
            end => {
                // SAFETY: nothing refers to it.
                unsafe { sys::munmap(base, len) };
                return Err(end.err().unwrap_or(Errno(libc::EIO)));
            }
        }
    }
    Ok(bytes)
}
