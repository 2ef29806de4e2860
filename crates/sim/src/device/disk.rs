//! A mechanical disk under a scheme of shingled writing as a device: `crates/disk` knows how, this says when.

use stripewise_disk::{Settings, SimulatedDisk};

use super::{Device, DeviceAccess, Service};
use crate::Error;

/// The disk of one server. An access or an idle time that its scheme refuses is kept as the run's error: nothing is timed without its disk.
#[derive(Debug)]
pub(crate) struct Disk {
    device: SimulatedDisk,
    /// Address after the last access.
    position: u64,
    failed: Option<String>,
}

impl Disk {
    pub(crate) fn new(server: &str, settings: &Settings) -> Result<Self, Error> {
        let device = SimulatedDisk::new(settings).map_err(|error| Error::Invalid(format!("scenario: server {server}: disk: {error}")))?;
        Ok(Disk { device, position: u64::MAX, failed: None })
    }
}

impl Device for Disk {
    fn service(&mut self, access: &DeviceAccess) -> Service {
        let before = core::mem::replace(&mut self.position, access.address.wrapping_add(access.bytes));
        let served = self.device.serve(access.begin_ns, access.address, access.bytes, access.write);
        let ns = served.unwrap_or_else(|error| {
            self.failed.get_or_insert_with(|| error.to_string());
            0
        });
        Service { ns, startup: before != access.address }
    }

    fn idle(&mut self, from_ns: u64, until_ns: u64) -> u64 {
        self.device.idle(from_ns, until_ns).unwrap_or_else(|error| {
            self.failed.get_or_insert_with(|| error.to_string());
            0
        })
    }

    fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }
}
