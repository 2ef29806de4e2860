//! A target of any kind: the one place that tells kinds apart. A call is a jump by the kind, without allocation; kinds that the preloaded library does not
//! know (the fake, those of tests) stand behind a pointer, for verbs. The library holds descriptors in words of its own: it makes a target, or an object, of
//! what such a word says, for the length of a call.

#[cfg(feature = "admin")]
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::dir::Dir;
use crate::emulated::{Clock, Emulated, EmulatedObject};
#[cfg(feature = "admin")]
use crate::erased::{Boxed, DynTarget};
use crate::file::FileObject;
use crate::interface::{Facts, Object, Opening, Ready, Target};
use crate::names::ObjectName;
use crate::op::Op;
#[cfg(feature = "served")]
use crate::shared_memory::{Link, Served};
use crate::within::Refusal;

/// A target.
pub enum Any<F = OwnedFd> {
    /// A directory.
    Dir(Dir<F>),
    /// A directory whose device is emulated.
    Emulated(Emulated<Dir<F>>),
    /// Objects of another process.
    #[cfg(feature = "served")]
    Served(Link),
    /// One of any other kind.
    #[cfg(feature = "admin")]
    Other(Arc<DynTarget>),
}

/// An object on it.
pub enum AnyObject<F = OwnedFd> {
    /// A file.
    Dir(FileObject<F>),
    /// A file whose device is emulated.
    Emulated(EmulatedObject<FileObject<F>>),
    /// One of another process.
    #[cfg(feature = "served")]
    Served(Served),
    /// One of any other kind.
    #[cfg(feature = "admin")]
    Other(Box<dyn Object>),
}

/// What an open object is to whoever keeps it in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handle {
    /// A descriptor of this process, to be closed.
    Descriptor(i32),
    /// A number of the kind's own.
    Number(u32),
}

impl<F: AsFd> Any<F> {
    /// A directory that is held open, behind a clock or without one.
    pub fn in_directory(dir: F, clock: Option<&Clock>) -> Self {
        Self::dir_behind(Dir::new(dir), clock)
    }

    fn dir_behind(dir: Dir<F>, clock: Option<&Clock>) -> Self {
        match clock {
            Some(clock) if clock.model.is_some() => Self::Emulated(Emulated::new(dir.counted(None), *clock)),
            _ => Self::Dir(dir.counted(clock.map(|clock| clock.line))),
        }
    }

    /// The directory that its objects lie in, for what is done to files and not to objects. A capability: `None` where there is none.
    pub fn directory(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Dir(dir) => Some(dir.fd()),
            Self::Emulated(emulated) => Some(emulated.inner().fd()),
            #[cfg(feature = "served")]
            Self::Served(_) => None,
            #[cfg(feature = "admin")]
            Self::Other(_) => None,
        }
    }
}

impl Any {
    /// A target of a kind that has no variant of its own.
    #[cfg(feature = "admin")]
    pub fn other<T: Target + 'static>(target: T) -> Self {
        Self::Other(Arc::new(Boxed(target)))
    }

    /// The same target behind a clock, in place of one that it may have had.
    #[must_use]
    pub fn behind(self, clock: Clock) -> Self {
        match self {
            Self::Dir(dir) => Self::dir_behind(dir, Some(&clock)),
            Self::Emulated(emulated) => Self::dir_behind(emulated.into_inner(), Some(&clock)),
            // One for tests, whose devices nobody asks about.
            #[cfg(feature = "served")]
            Self::Served(link) => Self::Served(link),
            #[cfg(feature = "admin")]
            Self::Other(other) => Self::other(Emulated::new(other, clock)),
        }
    }
}

impl AnyObject {
    /// What it is to whoever keeps it in a word; `None` for a kind that is never kept so.
    pub fn into_handle(self) -> Option<Handle> {
        match self {
            Self::Dir(file) => Some(Handle::Descriptor(file.into_inner().into_raw_fd())),
            Self::Emulated(object) => Some(Handle::Descriptor(object.into_inner().into_inner().into_raw_fd())),
            #[cfg(feature = "served")]
            Self::Served(object) => Some(Handle::Number(object.number())),
            #[cfg(feature = "admin")]
            Self::Other(_) => None,
        }
    }
}

impl<'a> AnyObject<BorrowedFd<'a>> {
    /// The object of a descriptor that somebody else holds open, behind a clock or without one.
    #[inline]
    #[must_use]
    pub fn of_descriptor(fd: BorrowedFd<'a>, clock: Option<&Clock>, name: ObjectName) -> Self {
        let file = FileObject::new(fd);
        match clock {
            Some(clock) if clock.model.is_some() => Self::Emulated(EmulatedObject::new(file, *clock, name)),
            _ => Self::Dir(file.counted(clock.map(|clock| clock.line))),
        }
    }
}

macro_rules! of_kind {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            Self::Dir($inner) => $call,
            Self::Emulated($inner) => $call,
            #[cfg(feature = "served")]
            Self::Served($inner) => $call,
            #[cfg(feature = "admin")]
            Self::Other($inner) => $call,
        }
    };
}

macro_rules! object_of_kind {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            Self::Dir($inner) => $call.map(AnyObject::Dir),
            Self::Emulated($inner) => $call.map(AnyObject::Emulated),
            #[cfg(feature = "served")]
            Self::Served($inner) => $call.map(AnyObject::Served),
            #[cfg(feature = "admin")]
            Self::Other($inner) => $call.map(AnyObject::Other),
        }
    };
}

impl<F: AsFd + Send + Sync> Object for AnyObject<F> {
    #[inline]
    fn start(&self, op: &mut Op<'_>, is_one_of_many: bool) {
        of_kind!(self, object => object.start(op, is_one_of_many));
    }

    #[inline]
    fn finish(&self, op: &mut Op<'_>) {
        of_kind!(self, object => object.finish(op));
    }

    #[inline]
    fn run(&self, op: &mut Op<'_>) {
        of_kind!(self, object => object.run(op));
    }

    fn punch(&self, at: u64, len: u64) -> Result<(), Errno> {
        of_kind!(self, object => object.punch(at, len))
    }

    fn set_len(&self, len: u64) -> Result<(), Errno> {
        of_kind!(self, object => object.set_len(len))
    }

    fn len(&self) -> Result<u64, Errno> {
        of_kind!(self, object => object.len())
    }

    fn next_data(&self, at: u64) -> Result<Option<(u64, u64)>, Errno> {
        of_kind!(self, object => object.next_data(at))
    }

    fn sync(&self) -> Result<(), Errno> {
        of_kind!(self, object => object.sync())
    }

    fn sync_data(&self) -> Result<(), Errno> {
        of_kind!(self, object => object.sync_data())
    }

    fn sync_range(&self, from: u64, to: u64) -> Result<(), Errno> {
        of_kind!(self, object => object.sync_range(from, to))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        of_kind!(self, object => object.descriptor())
    }

    unsafe fn map(&self, address: *mut u8, len: usize, prot: ProtFlags, flags: MapFlags, at: u64) -> Result<*mut u8, Errno> {
        // SAFETY: the caller's promise.
        of_kind!(self, object => unsafe { object.map(address, len, prot, flags, at) })
    }
}

impl<F: AsFd + Send + Sync> Target for Any<F> {
    type Object = AnyObject;

    fn create(&self, name: ObjectName, mode: u32, ready: Option<Ready<'_>>) -> Result<AnyObject, Errno> {
        object_of_kind!(self, target => target.create(name, mode, ready))
    }

    fn open(&self, name: ObjectName, opening: Opening<'_>) -> Result<AnyObject, Refusal> {
        object_of_kind!(self, target => target.open(name, opening))
    }

    fn remove(&self, name: ObjectName, owners: &[u32]) -> Result<(), Refusal> {
        of_kind!(self, target => target.remove(name, owners))
    }

    fn look(&self, name: ObjectName) -> Result<Option<Facts>, Errno> {
        of_kind!(self, target => target.look(name))
    }

    fn list(&self, each: &mut dyn FnMut(ObjectName) -> Result<(), Errno>) -> Result<(), Errno> {
        of_kind!(self, target => target.list(each))
    }

    fn used_bytes(&self) -> Result<u64, Errno> {
        of_kind!(self, target => target.used_bytes())
    }

    fn free_bytes(&self) -> Result<u64, Errno> {
        of_kind!(self, target => target.free_bytes())
    }

    fn pool(&self) -> Result<Option<u64>, Errno> {
        of_kind!(self, target => target.pool())
    }

    fn sync(&self) -> Result<(), Errno> {
        of_kind!(self, target => target.sync())
    }

    fn identity(&self, owners: &[u32], into: &mut [u8]) -> Result<usize, Refusal> {
        of_kind!(self, target => target.identity(owners, into))
    }

    fn identify(&self, text: &[u8]) -> Result<(), Errno> {
        of_kind!(self, target => target.identify(text))
    }
}
