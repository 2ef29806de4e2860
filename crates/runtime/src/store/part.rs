//! The parts of managed files and their objects, reached from descriptors that are held: the only way in which this library opens anything of a
//! store (docs/security.md). What is changed by name in the kernel's interface (mode, owner, attributes, length of what is not open) is changed through
//! the /proc name of a descriptor that was looked at first ([`Pinned`]).

use crate::base::log;
use crate::base::sys::{self, Errno, Sys};
use crate::store::Attached;
use core::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use stripewise_store::names;
use stripewise_target::interface::{Facts, Target};
use stripewise_target::names::{ObjectName, object_name};
use stripewise_target::text::{FixedPath, PATH_MAX, StorePath};
use stripewise_target::text::{PartName, ProcPath};
use stripewise_target::within::{self, Expected, OpenFlags, Refusal};

/// The attribute that holds a file's ACL.
pub const ACL: &CStr = c"system.posix_acl_access";

pub use stripewise_target::within::PartStat as Stat;

/// The kernel's flags as the store's code takes them.
fn flags_of(flags: i32) -> OpenFlags {
    OpenFlags::from_bits_retain(flags as u32)
}

/// A name as the kernel takes it.
pub fn c(name: &PartName) -> Sys<&CStr> {
    name.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))
}

/// A descriptor that is held elsewhere, for as long as a call lasts.
pub fn borrow<'a>(fd: i32) -> BorrowedFd<'a> {
    // SAFETY: descriptors of stores and files stay open while these are in use, and every call tolerates one that is not (EBADF).
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// The library's own error for a refusal, after it was logged with the part's path.
#[cold]
#[inline(never)] // Its path would lie on the stack below every way to open.
pub fn refused(store: &[u8], below: [&[u8]; 3], refusal: Refusal) -> Errno {
    let errno = Errno(refusal.errno().raw_os_error());
    if !matches!(refusal, Refusal::Os(_)) {
        let mut path = StorePath::from_bytes(store);
        for part in below.iter().filter(|part| !part.is_empty()) {
            path.push(b"/").push(part);
        }
        let mut why = FixedPath::from_bytes(refusal.text().as_bytes());
        why.push(b"; it is not used: run stripewise store fsck");
        log::say(why.as_bytes(), path.as_bytes());
    }
    errno
}

/// A transient descriptor, closed when dropped.
pub struct Held(i32);

impl Held {
    /// Takes a descriptor over.
    pub fn new(fd: OwnedFd) -> Self {
        Self(fd.into_raw_fd())
    }

    /// The same for a bare number.
    pub fn from_raw(fd: i32) -> Self {
        Self(fd)
    }

    /// The descriptor.
    pub fn fd(&self) -> i32 {
        self.0
    }

    /// Gives it to the caller.
    pub fn keep(self) -> i32 {
        let fd = self.0;
        core::mem::forget(self);
        fd
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        sys::close(self.0);
    }
}

/// An inode that was looked at, and a name for it that nobody can lead elsewhere.
pub struct Pinned {
    fd: Held,
    stat: Stat,
    path: ProcPath,
}

impl Pinned {
    fn new((fd, stat): (OwnedFd, Stat)) -> Self {
        let fd = Held::new(fd);
        let mut path = ProcPath::from_bytes(b"/proc/self/fd/");
        path.push_decimal(fd.fd() as u64);
        Self { fd, stat, path }
    }

    /// Pins a regular file of a directory.
    ///
    /// # Errors
    /// What does not fit.
    pub fn open(dir: i32, name: &CStr, expected: Expected<'_>) -> Result<Self, Refusal> {
        within::open_file(borrow(dir), name, flags_of(libc::O_PATH), expected).map(Self::new)
    }

    /// Its name; none, and so ENOENT, where /proc is not the kernel's.
    pub fn path(&self) -> &CStr {
        self.path.as_c_str().filter(|_| crate::base::process::has_proc()).unwrap_or(c"")
    }

    /// The descriptor itself (`O_PATH`).
    pub fn fd(&self) -> i32 {
        self.fd.fd()
    }

    /// Its owner then.
    pub fn owner(&self) -> u32 {
        self.stat.st_uid
    }

    /// Its mode then.
    pub fn mode(&self) -> u32 {
        self.stat.st_mode
    }
}

/// The directory of a managed file, held by whoever made this.
#[derive(Clone, Copy)]
pub struct At {
    /// Its descriptor.
    pub dir: i32,
    /// The file's store.
    pub store: &'static Attached,
    /// The file's id.
    pub id: u64,
    /// Device and inode that head must have, where the file is open.
    pub head: Option<(u64, u64)>,
}

/// One that is held only as long as this lives.
pub struct Transient {
    _held: Held,
    at: At,
}

impl core::ops::Deref for Transient {
    type Target = At;
    fn deref(&self) -> &At {
        &self.at
    }
}

impl Transient {
    /// Opens the directory of file `id`.
    pub fn open(store: &'static Attached, id: u64) -> Sys<Self> {
        let held = Held::new(open_dir(store, id)?.0);
        Ok(Self { at: At { dir: held.fd(), store, id, head: None }, _held: held })
    }
}

/// Opens the directory of file `id`.
pub fn open_dir(store: &'static Attached, id: u64) -> Sys<(OwnedFd, Stat)> {
    let name = names::id_name(id);
    let opened = within::open_dir(borrow(store.files_dir()?), c(&name)?, &[]);
    opened.map_err(|refusal| refused(store.path(), [b"files", name.as_bytes(), b""], refusal))
}

/// The directory of a file, opened to be locked.
pub struct Directory {
    pub fd: Held,
    pub stat: Stat,
    /// Whether this user may read it, and so lock it.
    pub is_readable: bool,
}

/// Opens the directory of file `id` for reading where this user may, so that it can be locked.
pub fn open_dir_to_lock(store: &'static Attached, id: u64) -> Sys<Directory> {
    let name = names::id_name(id);
    let files = borrow(store.files_dir()?);
    let opened = match within::open_dir_as(files, c(&name)?, OpenFlags::RDONLY, &[]) {
        Err(Refusal::Os(within::Os::ACCESS)) => within::open_dir(files, c(&name)?, &[]).map(|opened| (opened, false)),
        opened => opened.map(|opened| (opened, true)),
    };
    let directory = opened.map(|((fd, stat), is_readable)| Directory { fd: Held::new(fd), stat, is_readable });
    directory.map_err(|refusal| refused(store.path(), [b"files", name.as_bytes(), b""], refusal))
}

/// A directory that is held, opened for reading.
pub fn readable_dir(dir: i32) -> Sys<Held> {
    sys::openat(dir, c".", libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC, 0).map(Held)
}

/// What is asked of a head, by whatever call it was looked at.
pub struct Seen {
    /// Device and inode.
    pub identity: (u64, u64),
    /// Type and permission bits.
    pub mode: u32,
    /// Names.
    pub links: u64,
    pub owner: u32,
}

impl Seen {
    /// By a stat.
    pub fn of(st: &libc::stat) -> Self {
        Self { identity: (st.st_dev, st.st_ino), mode: st.st_mode, links: st.st_nlink, owner: st.st_uid }
    }

    /// By a statx.
    pub fn of_x(st: &libc::statx) -> Self {
        let device = libc::makedev(st.stx_dev_major, st.stx_dev_minor);
        Self { identity: (device, st.stx_ino), mode: u32::from(st.stx_mode), links: u64::from(st.stx_nlink), owner: st.stx_uid }
    }
}

/// A head is a regular file with one name and, where the file is open, the one that was opened.
pub fn check_head(store: &'static Attached, id: u64, head: &Seen, open: Option<(u64, u64)>) -> Sys<()> {
    let refusal = match head.mode & libc::S_IFMT {
        libc::S_IFREG if head.links > 1 => Refusal::HardLink,
        libc::S_IFREG if open.is_some_and(|open| open != head.identity) => Refusal::Owner,
        libc::S_IFREG => return Ok(()),
        libc::S_IFLNK => Refusal::Link,
        _ => Refusal::Kind,
    };
    Err(refused(store.path(), [b"files", names::id_name(id).as_bytes(), b"head"], refusal))
}

/// `<id>/<part>`, below the directory of all files.
pub fn name_below(id: u64, part: &CStr) -> PartName {
    let mut name = names::id_name(id);
    name.push(b"/").push(part.to_bytes());
    name
}

/// Head of a file, looked at.
pub fn head_stat(store: &'static Attached, id: u64) -> Sys<libc::stat> {
    if store.is_common() {
        return Transient::open(store, id)?.head_stat();
    }
    // Nobody else can have put anything on the way.
    let head = sys::lstat_at(store.files_dir()?, c(&name_below(id, c"head"))?)?;
    check_head(store, id, &Seen::of(&head), None).map(|()| head)
}

/// Head of a file, looked at and held.
pub fn pin_head(store: &'static Attached, id: u64) -> Sys<Pinned> {
    if store.is_common() {
        return Transient::open(store, id)?.pin_head();
    }
    // As above.
    Pinned::open(store.files_dir()?, c(&name_below(id, c"head"))?, Expected::of(&[]))
        .map_err(|refusal| refused(store.path(), [b"files", names::id_name(id).as_bytes(), b"head"], refusal))
}

impl At {
    fn refused(&self, part: &CStr, refusal: Refusal) -> Errno {
        refused(self.store.path(), [b"files", names::id_name(self.id).as_bytes(), part.to_bytes()], refusal)
    }

    /// The directory is head's owner's, the store's or root's: nobody else has put anything there.
    fn check_dir(&self, owner: u32, head: u32) -> Sys<()> {
        let fits = owner == head || owner == 0 || owner == self.store.owner();
        if fits { Ok(()) } else { Err(self.refused(c"", Refusal::Owner)) }
    }

    /// Head, looked at, without opening it.
    pub fn head_stat(&self) -> Sys<libc::stat> {
        let head = sys::lstat_at(self.dir, c"head")?;
        check_head(self.store, self.id, &Seen::of(&head), self.head).map(|()| head)
    }

    /// The same, and that it lies in a directory (of `dir_owner`) of the right user.
    pub fn checked_head(&self, dir_owner: u32) -> Sys<libc::stat> {
        let head = self.head_stat()?;
        self.check_dir(dir_owner, head.st_uid)?;
        Ok(head)
    }

    /// Opens head with the program's rights, close-on-exec or not as `flags` say.
    pub fn open_head(&self, flags: i32) -> Sys<i32> {
        if !self.store.is_common() {
            // Nobody else can have put anything there.
            return sys::openat(self.dir, c"head", flags | libc::O_NOFOLLOW | libc::O_NOCTTY, 0)
                .map_err(|Errno(number)| self.refused(c"head", Refusal::from(within::Os::from_raw_os_error(number))));
        }
        let (fd, stat) =
            within::open_file(borrow(self.dir), c"head", flags_of(flags), Expected::of(&[])).map_err(|refusal| self.refused(c"head", refusal))?;
        self.check_identity(&stat)?;
        let fd = Held::new(fd);
        if flags & libc::O_CLOEXEC == 0 {
            sys::fcntl(fd.fd(), libc::F_SETFD, 0)?;
        }
        Ok(fd.keep())
    }

    /// The file that was opened, and not one that has been put in its place.
    fn check_identity(&self, head: &Stat) -> Sys<()> {
        if self.head.is_none_or(|open| open == (head.st_dev, head.st_ino)) { Ok(()) } else { Err(self.refused(c"head", Refusal::Owner)) }
    }

    pub fn pin_head(&self) -> Sys<Pinned> {
        let head = Pinned::open(self.dir, c"head", Expected::of(&[])).map_err(|refusal| self.refused(c"head", refusal))?;
        self.check_identity(&head.stat)?;
        // Of an open file it was looked at when that was opened; its owner may be just changing.
        if self.head.is_none() {
            self.check_dir(sys::fstat(self.dir)?.st_uid, head.stat.st_uid)?;
        }
        Ok(head)
    }

    /// Moves the time of head's last status change, and no other.
    pub fn change_status(&self) -> Sys<()> {
        let head = self.pin_head()?;
        // Giving it to nobody else changes nothing but this time, except that it would take set-user-id bits away.
        if head.mode() & (libc::S_ISUID | libc::S_ISGID) == 0 {
            sys::chownat(head.fd(), c"", u32::MAX, u32::MAX, libc::AT_EMPTY_PATH).map(|_| ())
        } else {
            sys::chmod(head.path(), head.mode() & 0o7777).map(|_| ())
        }
    }

    /// Pins the directory itself.
    pub fn pin_dir(&self) -> Sys<Pinned> {
        within::open_dir(borrow(self.dir), c".", &[]).map(Pinned::new).map_err(|refusal| self.refused(c"", refusal))
    }

    /// Pins another part, which belongs to one of `owners` besides root and the store's owner.
    pub fn pin(&self, part: &CStr, owners: [u32; 2]) -> Sys<Pinned> {
        let [one, other] = owners;
        let owners = [one, other, 0, self.store.owner()];
        Pinned::open(self.dir, part, Expected::of(&owners)).map_err(|refusal| self.refused(part, refusal))
    }

    /// Opens another part of a file of `head_owner`, at most `bytes_max` long.
    pub fn open_part(&self, part: &CStr, flags: i32, head_owner: u32, bytes_max: u64) -> Sys<(i32, Stat)> {
        let owners = [head_owner, 0, self.store.owner()];
        let (fd, stat) = within::open_file(borrow(self.dir), part, flags_of(flags | libc::O_NONBLOCK), Expected::of(&owners).at_most(bytes_max))
            .map_err(|refusal| self.refused(part, refusal))?;
        Ok((fd.into_raw_fd(), stat))
    }

    /// Opens ctl, which is written in place and so must be head's owner's: a file of root's, or of the store's owner, that somebody has moved here from
    /// a directory of his own is none.
    pub fn open_ctl(&self, flags: i32, head_owner: u32) -> Sys<(i32, Stat)> {
        let (fd, stat) = within::open_file(borrow(self.dir), c"ctl", flags_of(flags | libc::O_NONBLOCK), Expected::of(&[head_owner]))
            .map_err(|refusal| self.refused(c"ctl", refusal))?;
        Ok((fd.into_raw_fd(), stat))
    }

    /// Reads a small part.
    pub fn read_part<'a>(&self, part: &CStr, into: &'a mut [u8]) -> Sys<&'a [u8]> {
        self.read_part_of(part, self.head_stat()?.st_uid, into)
    }

    /// The same of a file of `head_owner`.
    pub fn read_part_of<'a>(&self, part: &CStr, head_owner: u32, into: &'a mut [u8]) -> Sys<&'a [u8]> {
        let (fd, _) = self.open_part(part, libc::O_RDONLY, head_owner, into.len() as u64)?;
        let result = sys::read(fd, into);
        sys::close(fd);
        into.get(..result?).ok_or(Errno(libc::EINVAL))
    }

    /// The name that the file's link is recorded under.
    #[inline(never)] // Its buffer would lie on the stack below what is done with the name.
    pub fn recorded_name(&self) -> Option<FixedPath> {
        let mut text = [0u8; PATH_MAX + 64];
        let text = self.read_part(c"link", &mut text).ok()?;
        let name = text.strip_suffix(b"\n").unwrap_or(text).splitn(3, |c| *c == b' ').nth(2)?;
        Some(FixedPath::from_bytes(name))
    }

    /// Makes a part that is not there yet.
    pub fn create_part(&self, part: &CStr, flags: i32, mode: u32) -> Sys<i32> {
        within::create_file(borrow(self.dir), part, flags_of(flags), mode).map(IntoRawFd::into_raw_fd).map_err(|errno| Errno(errno.raw_os_error()))
    }

    /// Makes the directory's entries durable.
    pub fn sync(&self) -> Sys<()> {
        match sync_dir(self.dir) {
            // One who may not write the file may not read the directory: the whole file system then.
            Err(Errno(libc::EACCES)) => sys::syncfs(Held(self.open_ctl(libc::O_RDONLY, self.head_stat()?.st_uid)?.0).fd()),
            synced => synced,
        }
    }
}

/// Makes the entries of a directory durable.
pub fn sync_dir(dir: i32) -> Sys<()> {
    sys::fsync(readable_dir(dir)?.fd(), false).map(|_| ())
}

/// What there is to say of an object without a right to its bytes; `None` where there is none.
pub fn object_facts(store: &'static Attached, id: u64, (target, plane): (u32, u32)) -> Result<Option<Facts>, Refusal> {
    let held = store.target(target).map_err(os)?;
    let facts = held.any().look(ObjectName::of_plane(id, plane))?;
    match facts.and_then(|facts| facts.unfit) {
        Some(refusal) => Err(refusal),
        None => Ok(facts),
    }
}

/// Pins the file that an object of one of `owners` is (none named: whosever); `None` where the kind has no files.
pub fn pin_object(store: &'static Attached, id: u64, (target, plane): (u32, u32), owners: &[u32]) -> Result<Option<Pinned>, Refusal> {
    let held = store.target(target).map_err(os)?;
    let (any, name) = (held.any(), object_name(id, plane));
    let Some(dir) = any.directory() else { return Ok(None) };
    Pinned::open(dir.as_raw_fd(), name.as_c_str().unwrap_or(c""), Expected::of(owners)).map(Some)
}

/// Removes an object of a file of `owner`; anything else that has its name stays.
pub fn remove_object(store: &'static Attached, id: u64, (target, plane): (u32, u32), owner: u32) -> Result<(), Refusal> {
    store.target(target).map_err(os)?.any().remove(ObjectName::of_plane(id, plane), &[owner])
}

fn os(Errno(number): Errno) -> Refusal {
    Refusal::Os(within::Os::from_raw_os_error(number))
}
