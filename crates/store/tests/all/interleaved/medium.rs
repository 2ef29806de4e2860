//! The fake disk with a hook: programs of the test act between any two operations of a mover.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use stripewise_store::admin::fake::FakeDisk;
use stripewise_store::admin::medium::*;
use stripewise_store::locks::How;
use stripewise_store::rights::Part;
use stripewise_target::any::Any;
use stripewise_target::interface::Object;

use crate::interleaved::target::HookedTarget;

/// Sees each operation of the mover, and whether it has the file's exclusive lock; false kills it there.
pub type Hook = Box<dyn FnMut(&str, bool) -> bool + Send>;

#[derive(Default)]
pub struct Shared {
    pub hook: Mutex<Option<Hook>>,
    dir_locked: AtomicBool,
    pub killed: AtomicBool,
}

/// A disk on which a hook runs before each operation of a mover.
#[derive(Clone)]
pub struct Hooked {
    pub disk: FakeDisk,
    pub st: Arc<Shared>,
}

impl Shared {
    pub fn at(&self, what: &str) -> io::Result<()> {
        let dead = || io::Error::other("the mover was killed here");
        if self.killed.load(Ordering::SeqCst) {
            return Err(dead());
        }
        let taken = self.hook.lock().unwrap().take();
        if let Some(mut hook) = taken {
            let goes_on = hook(what, self.dir_locked.load(Ordering::SeqCst));
            *self.hook.lock().unwrap() = Some(hook);
            if !goes_on {
                self.killed.store(true, Ordering::SeqCst);
                return Err(dead());
            }
        }
        Ok(())
    }
}

struct DirLock {
    _held: Box<dyn Lock>,
    st: Arc<Shared>,
}

impl Lock for DirLock {}
impl Drop for DirLock {
    fn drop(&mut self) {
        self.st.dir_locked.store(false, Ordering::SeqCst);
    }
}

struct Watched {
    inner: Box<dyn Handle>,
    st: Arc<Shared>,
    name: String,
}

impl Handle for Watched {
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        self.st.at(&format!("read {} {at}", self.name))?;
        self.inner.read_at(buf, at)
    }
    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()> {
        self.st.at(&format!("write {} {at}+{}", self.name, buf.len()))?;
        self.inner.write_at(buf, at)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.st.at(&format!("set_len {} {len}", self.name))?;
        self.inner.set_len(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn next_data(&self, at: u64) -> io::Result<Option<(u64, u64)>> {
        self.inner.next_data(at)
    }
    fn sync(&self, point: FsyncPoint) -> io::Result<()> {
        self.st.at(&format!("sync {} {point:?}", self.name))?;
        self.inner.sync(point)
    }
    fn give_all(&self, like: &Attributes) -> io::Result<()> {
        self.inner.give_all(like)
    }
    fn give_rights(&self, like: &Attributes, part: Option<Part>) -> io::Result<()> {
        self.inner.give_rights(like, part)
    }
}

fn short(path: &Path) -> String {
    let text = path.display().to_string();
    text.rsplit('/').take(2).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("/")
}

impl Places for Hooked {
    fn hold(&self, dir: &Path, root: Root<'_>) -> io::Result<()> {
        self.disk.hold(dir, root)
    }
    fn let_go(&self, dir: &Path) {
        self.disk.let_go(dir)
    }

    fn close_target(&self, dir: &Path) {
        self.disk.close_target(dir)
    }
    fn target(&self, dir: &Path) -> io::Result<Any> {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Any::other(HookedTarget { inner: self.disk.target(dir)?, st: self.st.clone(), name }))
    }
    fn object_owners(&self, path: &Path) -> io::Result<Vec<u32>> {
        self.disk.object_owners(path)
    }
    fn give_object(&self, object: &dyn Object, like: &Attributes) -> io::Result<()> {
        self.disk.give_object(object, like)
    }
}

impl Names for Hooked {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn Handle>> {
        self.st.at(&format!("open {} {how:?}", short(path)))?;
        let inner = self.disk.open(path, how)?;
        Ok(Box::new(Watched { inner, st: self.st.clone(), name: short(path) }))
    }
    fn mkdir(&self, path: &Path) -> io::Result<()> {
        self.disk.mkdir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.st.at(&format!("rename {} {}", short(from), short(to)))?;
        self.disk.rename(from, to)
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.st.at(&format!("unlink {}", short(path)))?;
        self.disk.unlink(path)
    }
    fn rmdir(&self, path: &Path) -> io::Result<()> {
        self.disk.rmdir(path)
    }
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        self.disk.exchange(one, other)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.hard_link(from, to)
    }
    fn open_leased(&self, path: &Path, others: Others, lease: bool) -> io::Result<Option<Box<dyn Leased>>> {
        self.disk.open_leased(path, others, lease)
    }
    fn symlink(&self, text: &Path, at: &Path) -> io::Result<()> {
        self.disk.symlink(text, at)
    }
    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.disk.read_link(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.disk.list(dir)
    }
    fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        self.st.at(&format!("stat {}", short(path)))?;
        self.disk.stat(path)
    }
}

impl Rights for Hooked {
    fn set_dir_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.disk.set_dir_mode(path, mode)
    }
    fn change_mode(&self, path: &Path, take: u32, give: u32) -> io::Result<()> {
        self.disk.change_mode(path, take, give)
    }
    fn attributes(&self, path: &Path) -> io::Result<Attributes> {
        self.disk.attributes(path)
    }
    fn follow_head(&self, head: &Path, to: &Path, part: Part) -> io::Result<()> {
        self.disk.follow_head(head, to, part)
    }
    fn dir_follows_head(&self, dir: &Path) -> io::Result<()> {
        self.disk.dir_follows_head(dir)
    }
    fn dir_follows(&self, dir: &Path, like: &Path) -> io::Result<()> {
        self.disk.dir_follows(dir, like)
    }
    fn own_link(&self, link: &Path, text: &Path, uid: u32, gid: u32) -> io::Result<()> {
        self.disk.own_link(link, text, uid, gid)
    }
    fn acl(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.disk.acl(path)
    }
}

impl Flushes for Hooked {
    fn flushes(&self, path: &Path, point: FsyncPoint) -> io::Result<bool> {
        self.st.at(&format!("sync {} {point:?}", short(path)))?;
        self.disk.flushes(path, point)
    }
    fn sync_dir(&self, dir: &Path, point: FsyncPoint) -> io::Result<()> {
        self.st.at(&format!("sync_dir {}", short(dir)))?;
        self.disk.sync_dir(dir, point)
    }
}

impl Meetings for Hooked {
    fn make_common(&self, path: &Path) -> io::Result<()> {
        self.disk.make_common(path)
    }
    fn try_presence(&self, path: &Path, how: How) -> io::Result<Option<Box<dyn Lock>>> {
        self.disk.try_presence(path, how)
    }
    fn try_lock(&self, path: &Path, exclusive: bool) -> io::Result<Option<Box<dyn Lock>>> {
        self.disk.try_lock(path, exclusive)
    }
    fn lock_dir(&self, dir: &Path) -> io::Result<Box<dyn Lock>> {
        self.st.at("lock_dir")?;
        let inner = self.disk.lock_dir(dir)?;
        self.st.dir_locked.store(true, Ordering::SeqCst);
        Ok(Box::new(DirLock { _held: inner, st: self.st.clone() }))
    }
    fn lock_holders(&self, path: &Path) -> io::Result<Vec<u32>> {
        self.disk.lock_holders(path)
    }
    fn is_pinned(&self, ctl: &Path) -> io::Result<bool> {
        self.disk.is_pinned(ctl)
    }
    fn ctl(&self, path: &Path, create: bool) -> io::Result<Box<dyn CtlMap>> {
        self.disk.ctl(path, create)
    }
    fn devices(&self, run_dir: &Path, targets: usize, create: bool) -> io::Result<Option<Box<dyn DevicesMap>>> {
        self.disk.devices(run_dir, targets, create)
    }
    fn grace(&self, run_dir: &Path, patience_ns: u64) -> io::Result<bool> {
        self.st.at("grace")?;
        self.disk.grace(run_dir, patience_ns)
    }
    fn run_fd(&self, run_dir: &Path) -> io::Result<Option<OwnedFd>> {
        self.disk.run_fd(run_dir)
    }
}

impl Machine for Hooked {
    fn pause(&self, ms: u64) {
        self.disk.pause(ms)
    }
    fn boot_id(&self) -> io::Result<String> {
        self.disk.boot_id()
    }
    fn machine_id(&self) -> io::Result<String> {
        self.disk.machine_id()
    }
    fn now_s(&self) -> i64 {
        self.disk.now_s()
    }
}
