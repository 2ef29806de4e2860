//! The real file system as a [`Medium`]: std and rustix calls, one to one.

use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom};

use super::leased::open_alone;
use super::medium::{CtlMap, DevicesMap, FsyncPoint, Handle, Kind, Leased, Lock, Medium, Open, Stat};
use crate::ctl::{CTL_BYTES, Ctl};
use crate::devices::{DEVICES_MAGIC, Devices, devices_bytes};
use crate::rights::Part;

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

pub(super) struct RealFile(pub(super) File);

impl Handle for RealFile {
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|r| !r.is_empty()) {
            match self.0.read_at(rest, at + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()> {
        self.0.write_all_at(buf, at)
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        Ok(rustix::fs::fallocate(self.0.as_fd(), FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, len)?)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn set_len_quietly(&self, len: u64) -> io::Result<()> {
        let before = self.0.metadata()?;
        self.0.set_len(len)?;
        match self.0.set_times(fs::FileTimes::new().set_accessed(before.accessed()?).set_modified(before.modified()?)) {
            // Only the owner may; whoever else may write the file moves its times.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            set => set,
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn next_data(&self, at: u64) -> io::Result<Option<(u64, u64)>> {
        match rustix::fs::seek(self.0.as_fd(), SeekFrom::Data(at)) {
            Ok(start) => match rustix::fs::seek(self.0.as_fd(), SeekFrom::Hole(start)) {
                Ok(stop) => Ok(Some((start, stop))),
                // Cut in between: there is nothing behind the new end.
                Err(rustix::io::Errno::NXIO) => Ok(None),
                Err(e) => Err(e.into()),
            },
            Err(rustix::io::Errno::NXIO) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    fn sync(&self, _point: FsyncPoint) -> io::Result<()> {
        self.0.sync_all()
    }
}

struct HeldLock(#[allow(dead_code, reason = "closing the descriptor gives the lock back")] File);
impl Lock for HeldLock {}

/// Byte of ctl that appends and truncates lock.
const EXCLUSIVE_BYTE: i64 = 0;
/// Byte of ctl that maps of the file keep locked.
const PIN_BYTE: i64 = 1;

/// Asks for an exclusive open-file-description lock on one byte; returns what the kernel left in `l_type`.
fn ctl_lock(file: &File, how: libc::c_int, byte: i64) -> io::Result<libc::c_short> {
    let mut range =
        libc::flock { l_type: libc::F_WRLCK as libc::c_short, l_whence: libc::SEEK_SET as libc::c_short, l_start: byte, l_len: 1, l_pid: 0 };
    loop {
        // SAFETY: a valid descriptor and a struct of the call's own type.
        if unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(file), how, &raw mut range) } == 0 {
            return Ok(range.l_type);
        }
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
}

/// fdatasync of a range: msync of a map is the call that takes one. fsync would also wait for what programs write to other regions of the object.
fn sync_range(path: &Path, (from, to): (u64, u64)) -> io::Result<()> {
    use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
    let file = File::options().read(true).write(true).open(path)?;
    let to = to.min(file.metadata()?.len());
    let Some(len) = to.checked_sub(from).and_then(|len| usize::try_from(len).ok()).filter(|len| *len > 0) else { return Ok(()) };
    // SAFETY: a fresh mapping of a range that begins on a page (regions do), which nobody touches, unmapped below.
    let mapped = unsafe { mmap(core::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), from) };
    let Ok(base) = mapped else { return file.sync_all() };
    // SAFETY: the mapping above.
    let flushed = unsafe { msync(base, len, MsyncFlags::SYNC) };
    // SAFETY: as above.
    let _ = unsafe { munmap(base, len) };
    Ok(flushed?)
}

struct RealDevices(*mut u8, usize);

// SAFETY: a shared mapping reached through atomics only.
unsafe impl Send for RealDevices {}

impl DevicesMap for RealDevices {
    fn devices(&self) -> Devices {
        // SAFETY: mapped by `RealDisk::devices` for that many targets; the trait's users keep nothing beyond the map.
        unsafe { Devices::from_mapping(self.0, self.1) }
    }
}

impl Drop for RealDevices {
    fn drop(&mut self) {
        // SAFETY: mapped by `RealDisk::devices` with this length.
        let _ = unsafe { rustix::mm::munmap(self.0.cast(), devices_bytes(self.1)) };
    }
}

/// With the file that it maps.
struct RealCtl(Ctl, File);

// SAFETY: a shared mapping reached through atomics only.
unsafe impl Send for RealCtl {}

impl CtlMap for RealCtl {
    fn ctl(&self) -> Ctl {
        self.0
    }

    fn reserve(&self) -> io::Result<()> {
        match rustix::fs::fallocate(&self.1, rustix::fs::FallocateFlags::empty(), 0, CTL_BYTES as u64) {
            // A file system that promises no blocks has none to run out of here, or gives them as they come.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            result => Ok(result?),
        }
    }
}

impl Drop for RealCtl {
    fn drop(&mut self) {
        // SAFETY: mapped by `RealDisk::ctl` with this length; the trait's users keep no Ctl beyond the map.
        let _ = unsafe { rustix::mm::munmap(self.0.base().cast(), CTL_BYTES) };
    }
}

/// What the system says of a file, in the medium's words.
pub(super) fn stat_of(meta: &fs::Metadata) -> Stat {
    let kind = match meta.file_type() {
        t if t.is_file() => Kind::File,
        t if t.is_dir() => Kind::Dir,
        t if t.is_symlink() => Kind::Link,
        _ => Kind::Other,
    };
    let ns = |s: i64, ns: i64| s.saturating_mul(1_000_000_000).saturating_add(ns);
    Stat {
        kind,
        size: meta.len(),
        allocated_bytes: meta.blocks() * 512,
        dev: meta.dev(),
        ino: meta.ino(),
        mtime_s: meta.mtime(),
        mtime_ns: ns(meta.mtime(), meta.mtime_nsec()),
        ctime_ns: ns(meta.ctime(), meta.ctime_nsec()),
        links: meta.nlink(),
        mode: meta.mode() & 0o7777,
        uid: meta.uid(),
        gid: meta.gid(),
    }
}

impl Medium for RealDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn Handle>> {
        let mut options = File::options();
        options.read(true).mode(0o600);
        match how {
            Open::Read => &mut options,
            Open::Write => options.write(true),
            Open::Create => options.write(true).create(true).truncate(false),
            Open::CreateNew => options.write(true).create_new(true),
        };
        Ok(Box::new(RealFile(options.open(path)?)))
    }

    fn mkdir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rmdir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => Err(io::ErrorKind::Unsupported.into()),
            result => Ok(result?),
        }
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn open_alone(&self, path: &Path, lease: bool) -> io::Result<Option<Box<dyn Leased>>> {
        open_alone(path, lease)
    }

    fn symlink(&self, text: &Path, at: &Path) -> io::Result<()> {
        std::os::unix::fs::symlink(text, at)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        fs::read_link(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let mut names = fs::read_dir(dir)?.map(|e| Ok(e?.file_name())).collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        let meta = match fs::symlink_metadata(path) {
            Ok(meta) => meta,
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
            Err(e) => return Err(e),
        };
        Ok(Some(stat_of(&meta)))
    }

    /// Side by side: the devices work at the same time, and a file system joins what it has to write to its journal.
    fn sync_ranges(&self, paths: &[PathBuf], range: (u64, u64), _point: FsyncPoint) -> io::Result<()> {
        let Some((first, others)) = paths.split_first() else { return Ok(()) };
        std::thread::scope(|scope| {
            let running: Vec<_> = others.iter().map(|path| scope.spawn(move || sync_range(path, range))).collect();
            let mut result = sync_range(first, range);
            for thread in running {
                result = result.and(thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread that flushed panicked"))));
            }
            result
        })
    }

    fn sync_dir(&self, dir: &Path, _point: FsyncPoint) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn try_lock(&self, path: &Path, exclusive: bool) -> io::Result<Option<Box<dyn Lock>>> {
        let file = File::options().read(true).write(true).create(true).truncate(false).mode(0o666).open(path)?;
        let how = if exclusive { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingLockShared };
        match rustix::fs::flock(file.as_fd(), how) {
            Ok(()) => Ok(Some(Box::new(HeldLock(file)))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    fn ctl(&self, path: &Path, create: bool) -> io::Result<Box<dyn CtlMap>> {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let file = File::options().read(true).write(true).create(create).truncate(false).mode(0o600).open(path)?;
        if file.metadata()?.len() < CTL_BYTES as u64 {
            if !create {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "shorter than 65,536 bytes"));
            }
            file.set_len(CTL_BYTES as u64)?;
        }
        // SAFETY: a fresh shared mapping of a file at least that long; unmapped by RealCtl's drop.
        let base = unsafe { mmap(core::ptr::null_mut(), CTL_BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file.as_fd(), 0)? };
        // SAFETY: as above.
        Ok(Box::new(RealCtl(unsafe { Ctl::from_mapping(base.cast()) }, file)))
    }

    fn devices(&self, run_dir: &Path, targets: usize, create: bool) -> io::Result<Option<Box<dyn DevicesMap>>> {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let path = run_dir.join("devices");
        if create && !run_dir.exists() {
            fs::create_dir(run_dir)?;
            // As a program does at its first use of the store: everybody makes slots there, nobody removes another's.
            fs::set_permissions(run_dir, fs::Permissions::from_mode(0o1777))?;
            fs::write(run_dir.join("host"), fs::read("/etc/machine-id").unwrap_or_default())?;
        }
        let file = match File::options().read(true).write(true).create(create).truncate(false).mode(0o666).open(&path) {
            Err(e) if !create && e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let bytes = devices_bytes(targets);
        if file.metadata()?.len() < bytes as u64 {
            file.set_len(bytes as u64)?;
            let mut header = DEVICES_MAGIC.to_vec();
            header.extend((targets as u32).to_le_bytes());
            file.write_all_at(&header, 0)?;
            // Best effort: only the owner can, and only the owner has to.
            let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o666));
        }
        // SAFETY: a fresh shared mapping of a file at least that long; unmapped by RealDevices's drop.
        let base = unsafe { mmap(core::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file.as_fd(), 0)? };
        Ok(Some(Box::new(RealDevices(base.cast(), targets))))
    }

    fn own_like(&self, like: &Path, to: &Path) -> io::Result<()> {
        super::attributes::own(like, to, None)
    }

    fn follow_head(&self, head: &Path, to: &Path, part: Part) -> io::Result<()> {
        super::attributes::own(head, to, Some(part))
    }

    fn copy_attributes(&self, from: &Path, to: &Path) -> io::Result<()> {
        super::attributes::copy(from, to)
    }

    fn acl(&self, path: &Path) -> io::Result<Vec<u8>> {
        super::attributes::get(path, super::attributes::ACL)
    }

    fn lock_holders(&self, path: &Path) -> io::Result<Vec<u32>> {
        super::attributes::lock_holders(path)
    }

    fn pause(&self, ms: u64) {
        std::thread::sleep(std::time::Duration::from_millis(ms));
    }

    fn grace(&self, run_dir: &Path, patience_ns: u64) -> io::Result<bool> {
        let run = CString::new(run_dir.as_os_str().as_bytes())?;
        match crate::slot::grace(&run, b"", patience_ns) {
            // No directory of this boot: no program has used the store since it began.
            Ok(_) | Err(rustix::io::Errno::NOENT) => Ok(true),
            Err(rustix::io::Errno::TIMEDOUT) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    fn lock_ctl(&self, ctl: &Path) -> io::Result<Box<dyn Lock>> {
        let file = File::options().read(true).write(true).open(ctl)?;
        ctl_lock(&file, libc::F_OFD_SETLKW, EXCLUSIVE_BYTE)?;
        Ok(Box::new(HeldLock(file)))
    }

    fn is_pinned(&self, ctl: &Path) -> io::Result<bool> {
        let file = File::options().read(true).write(true).open(ctl)?;
        Ok(ctl_lock(&file, libc::F_OFD_GETLK, PIN_BYTE)? != libc::F_UNLCK as libc::c_short)
    }

    fn boot_id(&self) -> io::Result<String> {
        Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_string())
    }

    fn machine_id(&self) -> io::Result<String> {
        match fs::read_to_string("/etc/machine-id") {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            text => Ok(text?.trim().to_string()),
        }
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        let s = rustix::fs::statvfs(dir)?;
        Ok(s.f_bavail.saturating_mul(s.f_frsize))
    }

    fn now_s(&self) -> i64 {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64)
    }
}
