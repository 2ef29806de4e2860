//! Fresh targets of each kind.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;

use stripewise_target::any::Any;
use stripewise_target::devices::{Devices, devices_bytes};
use stripewise_target::dir::Dir;
use stripewise_target::emulated::{Clock, Emulated};
use stripewise_target::fake::{Disk, Fake};
use stripewise_target::kind::DeviceModel;
use stripewise_target::shared_memory::Remote;
use stripewise_target::suite::Subject;
use stripewise_target::within::open_root;
use tempfile::TempDir;

/// Directories, removed with this.
#[derive(Default)]
pub struct Directories(Mutex<Vec<TempDir>>);

impl Directories {
    pub fn fresh_dir(self) -> Dir {
        let made = self.fresh();
        // The process is a test's: what it leaves goes with the machine's temporary files.
        self.0.into_inner().unwrap().into_iter().for_each(|dir| drop(dir.keep()));
        made
    }
}

impl Subject for Directories {
    type Target = Dir;

    fn fresh(&self) -> Dir {
        let dir = tempfile::tempdir().unwrap();
        let made = Dir::new(open_root(&CString::new(dir.path().as_os_str().as_bytes()).unwrap(), &[]).unwrap().0);
        self.0.lock().unwrap().push(dir);
        made
    }
}

/// A target on a disk in memory.
pub fn fake() -> Fake {
    let disk = Disk::new();
    disk.make_dir(Path::new("/t")).unwrap();
    disk.settle();
    Fake::new(&disk, Path::new("/t"))
}

/// Directories of disks in memory, whose power can be cut.
pub struct Fakes;

impl Subject for Fakes {
    type Target = Fake;

    fn fresh(&self) -> Fake {
        fake()
    }

    fn cut_power(&self, target: &Fake, seed: u64) -> bool {
        target.disk().cut_power(seed);
        true
    }
}

/// The test that is a server where one is asked for.
pub const SERVER: &str = "the_server_of_the_remote_kind";

/// Targets that processes of their own serve.
pub struct Remotes;

impl Subject for Remotes {
    type Target = Remote;

    fn fresh(&self) -> Remote {
        Remote::start(SERVER)
    }
}

/// Fast enough for a test, slow enough to be noticed.
pub const MODEL: DeviceModel = DeviceModel { startup_read_ns: 2000, startup_write_ns: 3000, read_ps_per_byte: 20, write_ps_per_byte: 30 };

/// Clocks of two targets that last as long as the process.
pub fn devices() -> Devices {
    let memory = Box::leak(vec![0u64; devices_bytes(2) / 8].into_boxed_slice());
    // SAFETY: leaked, so it outlives every use; nobody else uses it.
    unsafe { Devices::from_mapping(memory.as_mut_ptr().cast(), 2) }
}

/// Targets of another kind behind emulated devices.
pub struct Behind<S> {
    inner: S,
    devices: Devices,
}

impl<S> Behind<S> {
    pub fn new(inner: S) -> Self {
        Self { inner, devices: devices() }
    }
}

impl<S: Subject> Subject for Behind<S> {
    type Target = Emulated<S::Target>;

    fn fresh(&self) -> Self::Target {
        Emulated::new(self.inner.fresh(), Clock { line: self.devices.line(1).unwrap(), model: Some(MODEL) })
    }

    fn cut_power(&self, target: &Self::Target, seed: u64) -> bool {
        self.inner.cut_power(target.inner(), seed)
    }
}

/// Targets by the table of kinds.
pub struct Kinds<F: Fn() -> Any>(pub F);

impl<F: Fn() -> Any> Subject for Kinds<F> {
    type Target = Any;

    fn fresh(&self) -> Any {
        (self.0)()
    }
}
