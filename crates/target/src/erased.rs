//! Targets and objects behind a pointer: for kinds that only verbs and tests use.

use std::sync::Arc;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::interface::{Facts, Object, Opening, Ready, Target};
use crate::names::ObjectName;
use crate::op::Op;
use crate::within::Refusal;

/// A target of some kind.
pub type DynTarget = dyn Target<Object = Box<DynObject>>;
/// An object of some kind.
pub type DynObject = dyn Object;

/// A target of a kind, whose objects are of some kind.
pub(crate) struct Boxed<T>(pub T);

macro_rules! forwarded {
    ($self:ident => $inner:expr, $wrap:expr) => {
        fn create(&$self, name: ObjectName, mode: u32, ready: Option<Ready<'_>>) -> Result<Self::Object, Errno> {
            $inner.create(name, mode, ready).map($wrap)
        }

        fn open(&$self, name: ObjectName, opening: Opening<'_>) -> Result<Self::Object, Refusal> {
            $inner.open(name, opening).map($wrap)
        }

        fn remove(&$self, name: ObjectName, owners: &[u32]) -> Result<(), Refusal> {
            $inner.remove(name, owners)
        }

        fn look(&$self, name: ObjectName) -> Result<Option<Facts>, Errno> {
            $inner.look(name)
        }

        fn list(&$self, each: &mut dyn FnMut(ObjectName) -> Result<(), Errno>) -> Result<(), Errno> {
            $inner.list(each)
        }

        fn used_bytes(&$self) -> Result<u64, Errno> {
            $inner.used_bytes()
        }

        fn free_bytes(&$self) -> Result<u64, Errno> {
            $inner.free_bytes()
        }

        fn pool(&$self) -> Result<Option<u64>, Errno> {
            $inner.pool()
        }

        fn sync(&$self) -> Result<(), Errno> {
            $inner.sync()
        }

        fn identity(&$self, owners: &[u32], into: &mut [u8]) -> Result<usize, Refusal> {
            $inner.identity(owners, into)
        }

        fn identify(&$self, text: &[u8]) -> Result<(), Errno> {
            $inner.identify(text)
        }
    };
}

#[cfg(feature = "suite")]
pub(crate) use forwarded;

impl<T: Target> Target for Boxed<T> {
    type Object = Box<DynObject>;

    forwarded!(self => self.0, |object| Box::new(object) as Box<DynObject>);
}

impl<T: Target + ?Sized> Target for Arc<T> {
    type Object = T::Object;

    forwarded!(self => (**self), |object| object);
}

impl Object for Box<DynObject> {
    fn start(&self, op: &mut Op<'_>, is_one_of_many: bool) {
        (**self).start(op, is_one_of_many);
    }

    fn finish(&self, op: &mut Op<'_>) {
        (**self).finish(op);
    }

    fn punch(&self, at: u64, len: u64) -> Result<(), Errno> {
        (**self).punch(at, len)
    }

    fn set_len(&self, len: u64) -> Result<(), Errno> {
        (**self).set_len(len)
    }

    fn len(&self) -> Result<u64, Errno> {
        (**self).len()
    }

    fn next_data(&self, at: u64) -> Result<Option<(u64, u64)>, Errno> {
        (**self).next_data(at)
    }

    fn sync(&self) -> Result<(), Errno> {
        (**self).sync()
    }

    fn sync_data(&self) -> Result<(), Errno> {
        (**self).sync_data()
    }

    fn sync_range(&self, from: u64, to: u64) -> Result<(), Errno> {
        (**self).sync_range(from, to)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (**self).descriptor()
    }

    unsafe fn map(&self, address: *mut u8, len: usize, prot: ProtFlags, flags: MapFlags, at: u64) -> Result<*mut u8, Errno> {
        // SAFETY: the caller's promise.
        unsafe { (**self).map(address, len, prot, flags, at) }
    }
}
