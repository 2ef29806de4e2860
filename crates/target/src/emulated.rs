//! A target behind an emulated device: a decorator of any other kind. Each operation reserves its time on the clock that all processes of the machine share
//! ([`crate::devices`]) when it begins; whoever waits for a batch sleeps once, to the end of the last. Without figures of a device, accesses
//! are counted only; a file counts them by itself ([`crate::file`]).

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::devices::{Access, Line};
use crate::interface::{Facts, Object, Opening, Ready, Target};
use crate::kind::DeviceModel;
use crate::names::ObjectName;
use crate::op::{Direction, Op};
use crate::time::now_ns;
use crate::within::Refusal;

/// One target's clock and counters.
#[derive(Clone, Copy)]
pub struct Clock {
    /// Where it is counted, and when it is free.
    pub line: Line,
    /// How the device behaves; `None` for a real one, whose accesses are counted.
    pub model: Option<DeviceModel>,
}

impl Clock {
    /// Counts an access, and reserves its time from now on.
    fn reserve_for(&self, object: u64, op: &mut Op<'_>) {
        let access = Access { write: op.direction() == Direction::Write, object, offset: op.offset(), bytes: op.len() };
        match &self.model {
            None => self.line.count(access.write, access.bytes),
            Some(model) => {
                let reserved = self.line.reserve(model, access, now_ns());
                op.outcome.end_ns = op.outcome.end_ns.max(reserved.end_ns);
                op.outcome.service_ns += reserved.service_ns;
            }
        }
    }
}

/// A target and the clock of its device.
pub struct Emulated<T> {
    inner: T,
    clock: Clock,
}

impl<T> Emulated<T> {
    /// Puts a target behind a clock.
    pub const fn new(inner: T, clock: Clock) -> Self {
        Self { inner, clock }
    }

    /// The target behind the clock.
    pub const fn inner(&self) -> &T {
        &self.inner
    }

    /// The target without its clock.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

/// An object and the clock of its device.
pub struct EmulatedObject<O> {
    inner: O,
    clock: Clock,
    key: u64,
}

impl<O> EmulatedObject<O> {
    /// Puts an object of this name behind a clock.
    pub const fn new(inner: O, clock: Clock, name: ObjectName) -> Self {
        Self { inner, clock, key: name.key() }
    }

    /// The object without its clock.
    pub fn into_inner(self) -> O {
        self.inner
    }
}

impl<O: Object> Object for EmulatedObject<O> {
    fn start(&self, op: &mut Op<'_>, is_one_of_many: bool) {
        self.clock.reserve_for(self.key, op);
        // What the emulated device is waited for anyway is not also asked of the real one in advance.
        self.inner.start(op, is_one_of_many && self.clock.model.is_none());
    }

    fn finish(&self, op: &mut Op<'_>) {
        self.inner.finish(op);
    }

    fn punch(&self, at: u64, len: u64) -> Result<(), Errno> {
        self.inner.punch(at, len)
    }

    fn set_len(&self, len: u64) -> Result<(), Errno> {
        self.inner.set_len(len)
    }

    fn len(&self) -> Result<u64, Errno> {
        self.inner.len()
    }

    fn next_data(&self, at: u64) -> Result<Option<(u64, u64)>, Errno> {
        self.inner.next_data(at)
    }

    fn sync(&self) -> Result<(), Errno> {
        self.inner.sync()
    }

    fn sync_data(&self) -> Result<(), Errno> {
        self.inner.sync_data()
    }

    fn sync_range(&self, from: u64, to: u64) -> Result<(), Errno> {
        self.inner.sync_range(from, to)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }

    unsafe fn map(&self, address: *mut u8, len: usize, prot: ProtFlags, flags: MapFlags, at: u64) -> Result<*mut u8, Errno> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.map(address, len, prot, flags, at) }
    }
}

impl<T: Target> Target for Emulated<T> {
    type Object = EmulatedObject<T::Object>;

    fn create(&self, name: ObjectName, mode: u32, ready: Option<Ready<'_>>) -> Result<Self::Object, Errno> {
        // What prepares an object takes no time of the device.
        self.inner.create(name, mode, ready).map(|inner| EmulatedObject::new(inner, self.clock, name))
    }

    fn open(&self, name: ObjectName, opening: Opening<'_>) -> Result<Self::Object, Refusal> {
        self.inner.open(name, opening).map(|inner| EmulatedObject::new(inner, self.clock, name))
    }

    fn remove(&self, name: ObjectName, owners: &[u32]) -> Result<(), Refusal> {
        self.inner.remove(name, owners)
    }

    fn look(&self, name: ObjectName) -> Result<Option<Facts>, Errno> {
        self.inner.look(name)
    }

    fn list(&self, each: &mut dyn FnMut(ObjectName) -> Result<(), Errno>) -> Result<(), Errno> {
        self.inner.list(each)
    }

    fn used_bytes(&self) -> Result<u64, Errno> {
        self.inner.used_bytes()
    }

    fn free_bytes(&self) -> Result<u64, Errno> {
        self.inner.free_bytes()
    }

    fn pool(&self) -> Result<Option<u64>, Errno> {
        self.inner.pool()
    }

    fn sync(&self) -> Result<(), Errno> {
        self.inner.sync()
    }

    fn identity(&self, owners: &[u32], into: &mut [u8]) -> Result<usize, Refusal> {
        self.inner.identity(owners, into)
    }

    fn identify(&self, text: &[u8]) -> Result<(), Errno> {
        self.inner.identify(text)
    }
}
