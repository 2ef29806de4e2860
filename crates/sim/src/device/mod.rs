//! Devices: how long an access takes, by what the device has done before. Built-in ones behind an enum, others behind [`Device`].

mod builtin;
mod disk;
mod spec;

pub(crate) use builtin::Builtin;
pub(crate) use disk::Disk;
pub use spec::{DeviceSpec, Figures, Startup};

/// One access, as its device sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAccess {
    /// First byte on the device: files one after another with a gap, an object's byte at its file's base plus its offset in the object.
    pub address: u64,
    /// Bytes, at least 1.
    pub bytes: u64,
    /// Writes, else reads.
    pub write: bool,
    /// When a channel takes it up, ns.
    pub begin_ns: u64,
}

/// What an access costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// How long it keeps a channel busy, ns.
    pub ns: u64,
    /// Whether it did not continue the access before.
    pub startup: bool,
}

/// A device beyond the built-in ones: a shingled disk, or one that is plugged in from outside. Accesses come in the order of their service.
pub trait Device {
    /// Service time of an access; the device may change its state.
    fn service(&mut self, access: &DeviceAccess) -> Service;

    /// Told before [`Device::service`] that nothing was asked of the device from `from_ns` until `until_ns`: background work goes here.
    /// Returns how long that work took, counted from `from_ns`; where it lasts beyond `until_ns`, the access waits for its end.
    fn idle(&mut self, from_ns: u64, until_ns: u64) -> u64 {
        let _ = (from_ns, until_ns);
        0
    }

    /// Why an access could not be served, once one could not: the run ends with it.
    fn failed(&self) -> Option<&str> {
        None
    }
}
