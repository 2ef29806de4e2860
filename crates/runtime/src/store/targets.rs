//! The targets of a store as this process reaches them: each is opened at its first use, once it has shown that it is this store's, and held. Between calls a
//! target is a descriptor and an open object a word; here they become what the seam knows.

use super::Attached;
use super::load::HeldDir;
use crate::base::log;
use crate::base::sys::{self, Errno, Sys};
use crate::store::part::{Held, borrow, refused};
use std::os::fd::BorrowedFd;
use stripewise_target::any::{Any, AnyObject};
use stripewise_target::identity::Identity;
use stripewise_target::interface::Target;
use stripewise_target::names::ObjectName;
#[cfg(feature = "served")]
use stripewise_target::shared_memory::Served;
use stripewise_target::text::StorePath;
use stripewise_target::within::{self, Os, Refusal};

/// An object that is open, for the length of a call.
pub type OpenObject = AnyObject<BorrowedFd<'static>>;

/// A target of a store.
pub struct HeldTarget {
    held: HeldDir,
    store: &'static Attached,
    index: u32,
}

impl HeldTarget {
    /// The target itself.
    pub fn any(&self) -> Any<BorrowedFd<'_>> {
        #[cfg(feature = "served")]
        if let Some(link) = served::link(self.store, self.index, self.held.fd()) {
            return Any::Served(link);
        }
        Any::in_directory(borrow(self.held.fd()), self.store.clock(self.index))
    }
}

impl Attached {
    /// A target of this store, once it has shown that it is this store's and of this number: another user's directory, or a mount point whose file system is
    /// not there, is not.
    ///
    /// # Errors
    /// `EIO` when it is not, and those of opening it.
    pub fn target(&'static self, index: u32) -> Sys<HeldTarget> {
        let holder = self.target_fds.get(index as usize).ok_or(Errno(libc::EIO))?;
        let held = self.hold_dir(holder, || self.open_target(index))?;
        Ok(HeldTarget { held, store: self, index })
    }

    /// The object of a word that was kept when it was opened.
    #[inline]
    pub fn object(&'static self, index: u32, word: i32, name: ObjectName) -> OpenObject {
        #[cfg(feature = "served")]
        if let Some(link) = self.target_fds.get(index as usize).and_then(crate::fds::held).and_then(|fd| served::link(self, index, fd)) {
            return AnyObject::Served(Served::new(link, word as u32));
        }
        AnyObject::of_descriptor(borrow(word), self.clock(index), name)
    }

    #[cold]
    #[inline(never)] // Threads may have small stacks: one path less at a time.
    fn open_target(&'static self, index: u32) -> Sys<Held> {
        let view = self.view()?;
        let record = view.target(index as usize).ok_or(Errno(libc::EIO))?;
        let path = record.path;
        let name = StorePath::from_bytes(path);
        let owners = [self.owner(), 0, sys::geteuid()];
        let (fd, _) = within::open_root(name.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))?, &owners).map_err(|refusal| match refusal {
            Refusal::Os(Os::NOENT | Os::NOTDIR) => {
                log::say(b"this target is away: its directory is missing; mount or restore it", path);
                Errno(libc::EIO)
            }
            refusal => refused(path, [b""; 3], refusal),
        })?;
        let dir = Held::new(fd);
        #[cfg(feature = "served")]
        let dir = if record.kind == stripewise_target::kind::Kind::Served { served::open(self, index, &dir)? } else { dir };
        let is_ours = {
            let held = HeldTarget { held: HeldDir::borrowed(dir.fd()), store: self, index };
            is_target(&held.any(), &owners, view.uuid(), index as usize)?
        };
        if !is_ours {
            log::say(b"this target is away: its directory does not say that it is this store's, or may not be read; is its file system mounted? it is not used", path);
            return Err(Errno(libc::EIO));
        }
        Ok(dir)
    }
}

/// Whether a target's identity names the store and the number.
#[inline(never)] // As above.
fn is_target(target: &Any<BorrowedFd<'_>>, owners: &[u32], uuid: [u8; 16], index: usize) -> Sys<bool> {
    let mut text = [0u8; 2048];
    match target.identity(owners, &mut text) {
        Ok(len) => Ok(text.get(..len).and_then(Identity::parse).is_some_and(|identity| identity.uuid == uuid && identity.index == index)),
        // What this process lacks says nothing about the target.
        Err(Refusal::Os(errno @ (Os::MFILE | Os::NFILE | Os::NOMEM))) => Err(Errno(errno.raw_os_error())),
        Err(_) => Ok(false),
    }
}

/// Targets whose objects another process has: a kind for tests, in a library built for them.
#[cfg(feature = "served")]
mod served {
    use super::Attached;
    use crate::base::process::MAX_STORES;
    use crate::base::sys::{self, Errno, Sys};
    use crate::store::part::{Held, borrow};
    use core::sync::atomic::{AtomicPtr, Ordering};
    use stripewise_target::kind::MAX_TARGETS;
    use stripewise_target::shared_memory::{Link, SEGMENT_BYTES, SEGMENT_FILE};
    use stripewise_target::text::PartName;
    use stripewise_target::within::{Expected, OpenFlags, open_file};

    static BASES: [[AtomicPtr<u8>; MAX_TARGETS]; MAX_STORES] = [const { [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_TARGETS] }; MAX_STORES];

    fn base(store: &Attached, index: u32) -> Option<&'static AtomicPtr<u8>> {
        BASES.get(store.index)?.get(index as usize)
    }

    /// The target behind a segment that is mapped.
    pub fn link(store: &Attached, index: u32, file: i32) -> Option<Link> {
        let base = base(store, index)?.load(Ordering::Acquire);
        // SAFETY: mapped for the life of the process; the descriptor is the store's.
        (!base.is_null()).then(|| unsafe { Link::new(base, borrow(file)) })
    }

    /// Opens and maps the segment in a directory.
    pub fn open(store: &Attached, index: u32, dir: &Held) -> Sys<Held> {
        let name = PartName::from_bytes(SEGMENT_FILE.as_bytes());
        let opened = open_file(borrow(dir.fd()), name.as_c_str().ok_or(Errno(libc::EIO))?, OpenFlags::RDWR, Expected::of(&[]));
        let file = Held::new(opened.map_err(|_| Errno(libc::EIO))?.0);
        let place = base(store, index).ok_or(Errno(libc::EIO))?;
        let mapped = sys::mmap(file.fd(), SEGMENT_BYTES, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)?;
        place.store(mapped, Ordering::Release);
        Ok(file)
    }
}
