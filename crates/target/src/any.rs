//! A target of any kind: the one place that tells kinds apart. A call is a jump by the kind, without allocation; kinds that the preloaded library does not
//! know (the fake, those of tests) stand behind a pointer, for verbs.

#[cfg(feature = "admin")]
use std::sync::Arc;

use rustix::fd::BorrowedFd;
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
use crate::within::Refusal;

/// A target.
pub enum Any {
    /// A directory.
    Dir(Dir),
    /// A directory whose device is counted or emulated.
    Emulated(Emulated<Dir>),
    /// One of any other kind.
    #[cfg(feature = "admin")]
    Other(Arc<DynTarget>),
}

/// An object on it.
pub enum AnyObject {
    /// A file.
    Dir(FileObject),
    /// A file whose device is counted or emulated.
    Emulated(EmulatedObject<FileObject>),
    /// One of any other kind.
    #[cfg(feature = "admin")]
    Other(Box<dyn Object>),
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
            Self::Dir(dir) => Self::Emulated(Emulated::new(dir, clock)),
            Self::Emulated(emulated) => Self::Emulated(Emulated::new(emulated.into_inner(), clock)),
            #[cfg(feature = "admin")]
            Self::Other(other) => Self::other(Emulated::new(other, clock)),
        }
    }
}

macro_rules! of_kind {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            Self::Dir($inner) => $call,
            Self::Emulated($inner) => $call,
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
            #[cfg(feature = "admin")]
            Self::Other($inner) => $call.map(AnyObject::Other),
        }
    };
}

impl Object for AnyObject {
    fn start(&self, op: &mut Op<'_>, is_one_of_many: bool) {
        of_kind!(self, object => object.start(op, is_one_of_many));
    }

    fn finish(&self, op: &mut Op<'_>) {
        of_kind!(self, object => object.finish(op));
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

impl Target for Any {
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
