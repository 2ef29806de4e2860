//! Owner, mode and ACL of a managed file: head has them, objects, directory and ctl carry them. In the course of a change no part ever allows more than
//! the file does before or after it: a mode narrows the objects first and widens them last. What a kill leaves half done `fsck` finds.

use crate::base::sys::{self, Errno, Sys};
use crate::file::File;
use crate::names::Managed;
use crate::store::part::ACL;
use crate::store::part::{self, At, Pinned};
use core::ffi::CStr;
use core::sync::atomic::Ordering;
use std::os::fd::AsRawFd;
use stripewise_store::rights::Part;
use stripewise_target::interface::Object;
use stripewise_target::names::object_name;
use stripewise_target::text::{FixedPath, FixedText, ProcPath};
use stripewise_target::within::{Os, Refusal};
use syscalls::Sysno;

/// The attribute of a directory that new files take their ACL from.
const DEFAULT_ACL: &CStr = c"system.posix_acl_default";
/// Longest ACL that is carried: 1,000 entries.
pub const ACL_BYTES_MAX: usize = 4 + 8 * 1000;

fn c<const N: usize>(path: &FixedText<N>) -> Sys<&CStr> {
    path.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))
}

/// How often head's rights are looked at again that may just be changing.
const LOOKS: u32 = 50;

/// Whether head has an ACL.
pub fn has_acl(at: &At) -> bool {
    let mut path = ProcPath::from_bytes(b"/proc/self/fd/");
    path.push_decimal(at.dir as u64).push(b"/head");
    let args = [ACL.as_ptr() as usize, 0, 0, 0];
    // SAFETY: valid C strings; a length of 0 asks for the length.
    path.as_c_str().is_some_and(|path| unsafe { sys::xattr_raw(Sysno::lgetxattr, path.as_ptr() as usize, args) }.is_ok_and(|len| len > 0))
}

/// An ACL as the kernel passes it: a version, then entries of tag u16, permissions u16, id u32.
struct Acl {
    bytes: [u8; ACL_BYTES_MAX],
    len: usize,
}

impl Acl {
    /// A file's ACL; `None` where mode bits say all.
    fn of(path: &CStr) -> Sys<Option<Self>> {
        let mut acl = Self { bytes: [0; ACL_BYTES_MAX], len: 0 };
        let args = [ACL.as_ptr() as usize, acl.bytes.as_mut_ptr() as usize, ACL_BYTES_MAX, 0];
        // SAFETY: valid strings and a buffer of that length.
        match unsafe { sys::xattr_raw(Sysno::getxattr, path.as_ptr() as usize, args) } {
            Ok(len) => {
                acl.len = len as usize;
                Ok(Some(acl))
            }
            Err(Errno(libc::ENODATA | libc::EOPNOTSUPP)) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// That of a part of a file whose ACL and mode these are.
    fn adapted(mut self, part: Part, mode: u32) -> Option<Self> {
        part.adapt_acl(mode, self.bytes.get_mut(..self.len)?).then_some(self)
    }

    fn put(acl: Option<&Self>, path: &CStr) -> Sys<()> {
        let result = match acl {
            // SAFETY: valid strings and a buffer of that length.
            Some(acl) => unsafe {
                sys::xattr_raw(Sysno::setxattr, path.as_ptr() as usize, [ACL.as_ptr() as usize, acl.bytes.as_ptr() as usize, acl.len, 0])
            },
            // SAFETY: valid strings.
            None => unsafe { sys::xattr_raw(Sysno::removexattr, path.as_ptr() as usize, [ACL.as_ptr() as usize, 0, 0, 0]) },
        };
        match result {
            Err(Errno(libc::ENODATA | libc::EOPNOTSUPP)) if acl.is_none() => Ok(()),
            result => result.map(|_| ()),
        }
    }
}

/// Gives a part of the store the rights that follow from head's.
fn follow(pinned: &Pinned, head: &libc::stat, acl: Option<Acl>, part: Part) -> Sys<()> {
    let now = sys::fstat(pinned.fd())?;
    if (now.st_uid, now.st_gid) != (head.st_uid, head.st_gid) {
        sys::chownat(pinned.fd(), c"", head.st_uid, head.st_gid, libc::AT_EMPTY_PATH)?;
    }
    let acl = acl.and_then(|acl| acl.adapted(part, head.st_mode));
    Acl::put(acl.as_ref(), pinned.path())?;
    let mode = part.mode(head.st_mode);
    if acl.is_some() || now.st_mode & 0o7777 != mode {
        sys::chmod(pinned.path(), mode)?;
    }
    Ok(())
}

/// Calls `each` with every object that the file has by its layout, those of a move included, and with nothing else that has such a name; each that the file
/// reaches must be there, and belong to one of `owners`.
fn for_each_object(file: &'static File, owners: [u32; 2], mut each: impl FnMut(&Pinned) -> Sys<()>) -> Sys<()> {
    let at = file.at()?;
    // Objects are not removed under us by a move.
    let _inside = crate::gate::for_read(file)?;
    let size = file.size()?;
    file.with_layout_on_disk(|view| {
        for target in 0..at.store.view()?.target_count() as u32 {
            for plane in [0, 1] {
                let needed = view.uses_object(target, plane);
                if !needed && !view.moves_object(target, plane) {
                    continue;
                }
                match part::pin_object(at.store, at.id, (target, plane), &owners) {
                    Ok(Some(pinned)) => each(&pinned)?,
                    // A kind without files keeps strangers from its objects by itself.
                    Ok(None) => {}
                    // A move may not have made it yet, or have removed it already.
                    Err(Refusal::Os(Os::NOENT)) if !needed || view.first_byte(target, plane).is_some_and(|first| first >= size) => {}
                    Err(Refusal::Os(Os::NOENT)) => return Err(Errno(libc::EIO)),
                    Err(refusal) => {
                        let path = at.store.view()?.target(target as usize).map_or(&b""[..], |target| target.path);
                        return Err(part::refused(path, [object_name(at.id, plane).as_bytes(), b"", b""], refusal));
                    }
                }
            }
        }
        Ok(())
    })
}

/// Gives objects, directory and ctl the rights of head, whose mode was `before` and is another now, and which has no ACL.
fn spread_mode(file: &'static File, owner: u32, before: u32, after: u32) -> Sys<()> {
    let at = file.at()?;
    for_each_object(file, [owner; 2], |object| {
        let mode = Part::Object.mode(after);
        if object.mode() & 0o7777 == mode { Ok(()) } else { sys::chmod(object.path(), mode).map(|_| ()) }
    })?;
    // Before ctl: who may write that finds a directory that he may lock.
    if Part::Dir.mode(before) != Part::Dir.mode(after) {
        let dir = at.pin_dir()?;
        if dir.owner() == owner || sys::geteuid() == 0 {
            sys::chmod(dir.path(), Part::Dir.mode(after))?;
        }
    }
    if Part::Ctl.mode(before) != Part::Ctl.mode(after) {
        sys::chmod(at.pin(c"ctl", [owner; 2])?.path(), Part::Ctl.mode(after))?;
    }
    Ok(())
}

/// Gives objects, directory and ctl the rights that head has now; they are its owner's, or still those of `before`.
#[inline(never)] // Its buffers would lie on the stack below what is done after it.
fn spread_from(file: &'static File, head: &Pinned, before: u32) -> Sys<()> {
    let at = file.at()?;
    let st = sys::fstat(head.fd())?;
    let owners = [before, st.st_uid];
    for_each_object(file, owners, |object| follow(object, &st, Acl::of(head.path())?, Part::Object))?;
    // Before ctl: who may write that finds a directory that he may lock. One that root or the store's owner has made is theirs to change.
    let dir = at.pin_dir()?;
    if owners.contains(&dir.owner()) || sys::geteuid() == 0 {
        follow(&dir, &st, Acl::of(head.path())?, Part::Dir)?;
    }
    follow(&at.pin(c"ctl", owners)?, &st, Acl::of(head.path())?, Part::Ctl)
}

/// Gives an object that nobody else knows of yet head's owner and group, and a mode.
pub fn make_as(object: &dyn Object, head: &libc::stat, mode: u32) -> Sys<()> {
    let Some(fd) = object.descriptor().map(|fd| fd.as_raw_fd()) else { return Ok(()) };
    let made = sys::fstat(fd)?;
    if (made.st_uid, made.st_gid) != (head.st_uid, head.st_gid) {
        sys::chownat(fd, c"", head.st_uid, head.st_gid, libc::AT_EMPTY_PATH)?;
    }
    // What the target's directory has passed on to it.
    // SAFETY: a valid C string.
    let _ = unsafe { sys::xattr_raw(Sysno::fremovexattr, fd as usize, [ACL.as_ptr() as usize, 0, 0, 0]) };
    sys::fchmod(fd, mode).map(|_| ())
}

/// Gives an object that has just been made the rights that follow from head's. Whoever changes those goes over the objects that are there: this one may have
/// been missed.
#[inline(never)] // As above.
pub fn give_heads(at: &At, (target, plane): (u32, u32)) -> Sys<()> {
    let pinned = part::pin_object(at.store, at.id, (target, plane), &[]).map_err(|refusal| Errno(refusal.errno().raw_os_error()))?;
    let Some(object) = pinned else { return Ok(()) };
    let head = at.pin_head()?;
    let mut before = sys::fstat(head.fd())?;
    // Its ctime also moves with the file's data, but not each time.
    for _ in 0..LOOKS {
        follow(&object, &before, Acl::of(head.path())?, Part::Object)?;
        let after = sys::fstat(head.fd())?;
        if (before.st_ctime, before.st_ctime_nsec) == (after.st_ctime, after.st_ctime_nsec) {
            break;
        }
        before = after;
    }
    Ok(())
}

/// Before rights change so that others may write the file who could not make its objects: all are made. `owner` and `mode` are those that head will have.
pub fn make_before(file: &'static File, owner: u32, mode: u32) -> Sys<()> {
    if file.may_lack_objects(owner, mode)? { Ok(()) } else { file.make_all_objects() }
}

/// Gives the parts of a file that has just been made the rights that follow from head's.
pub fn spread(file: &'static File) -> Sys<()> {
    spread_from(file, &file.at()?.pin_head()?, sys::geteuid())
}

/// Runs a change of rights with the file open, and with all that this process may still need of it opened before.
fn changing(managed: &Managed, work: impl FnOnce(&'static File, &Pinned) -> Sys<()>) -> Sys<i64> {
    if managed.is_copy()? {
        return Err(Errno(libc::EROFS));
    }
    managed.with(|file| {
        if file.is_open_besides() {
            file.prime();
        }
        let head = file.at()?.pin_head()?;
        // What is written next may take set-user-id bits away.
        file.touched.store(0, Ordering::Relaxed);
        // One who may not write it is refused by the kernel, or has a right to ask for no lock.
        if file.may_write() { file.exclusively(|| work(file, &head)) } else { work(file, &head) }
    })?;
    Ok(0)
}

/// chmod.
pub fn set_mode(managed: &Managed, mode: u32) -> Sys<i64> {
    changing(managed, |file, head| {
        let before = sys::fstat(head.fd())?;
        // Asked of head first, so that who may not do it changes nothing.
        sys::chmod(head.path(), before.st_mode & mode & 0o7777)?;
        make_before(file, before.st_uid, mode).inspect_err(|_| {
            let _ = sys::chmod(head.path(), before.st_mode & 0o7777);
        })?;
        let owners = [before.st_uid; 2];
        if Part::Object.mode(before.st_mode & mode) != Part::Object.mode(before.st_mode) {
            for_each_object(file, owners, |object| sys::chmod(object.path(), Part::Object.mode(before.st_mode & mode)).map(|_| ()))?;
        }
        sys::chmod(head.path(), mode)?;
        if has_acl(&file.at()?) {
            return spread_from(file, head, before.st_uid);
        }
        // The kernel may have kept a bit back.
        spread_mode(file, before.st_uid, before.st_mode, sys::fstat(head.fd())?.st_mode)
    })
}

/// chown; all that belongs to the file goes along, its name included (who owns the name decides in sticky directories).
pub fn set_owner(managed: &Managed, uid: u32, gid: u32) -> Sys<i64> {
    // Neither asked for: anybody may, who sees the name, and what the kernel does then (ctime, set-user-id bits) it does to head, which alone has it.
    if (uid, gid) == (u32::MAX, u32::MAX) && !managed.is_copy()? {
        return sys::chownat(managed.pin_head()?.fd(), c"", uid, gid, libc::AT_EMPTY_PATH);
    }
    changing(managed, |file, head| {
        let st = sys::fstat(head.fd())?;
        let before = st.st_uid;
        // An archiver gives each file the owner that it has: that is head's affair alone.
        if [u32::MAX, st.st_uid].contains(&uid) && [u32::MAX, st.st_gid].contains(&gid) {
            return sys::chownat(head.fd(), c"", uid, gid, libc::AT_EMPTY_PATH).map(|_| ());
        }
        for_each_object(file, [before; 2], |_| Ok(()))?;
        // Of all others the kernel takes no other owner.
        if uid != u32::MAX && sys::geteuid() == 0 {
            make_before(file, uid, st.st_mode)?;
        }
        sys::chownat(head.fd(), c"", uid, gid, libc::AT_EMPTY_PATH)?;
        let (at, after) = (file.at()?, sys::fstat(head.fd())?.st_uid);
        // The layout first: it says which objects follow.
        for part in [c"layout", c"link"] {
            sys::chownat(at.pin(part, [before, after])?.fd(), c"", uid, gid, libc::AT_EMPTY_PATH)?;
        }
        spread_from(file, head, before)?;
        managed.give_link(uid, gid);
        Ok(())
    })
}

/// setxattr or removexattr of the ACL, done on head by `on_head`.
pub fn set_acl(managed: &Managed, on_head: impl FnOnce() -> Sys<i64>) -> Sys<i64> {
    changing(managed, |file, head| {
        let before = sys::fstat(head.fd())?.st_uid;
        for_each_object(file, [before; 2], |_| Ok(()))?;
        on_head()?;
        // Only now it is known whom it lets in.
        make_before(file, before, sys::fstat(head.fd())?.st_mode)?;
        spread_from(file, head, before)
    })
}

/// Takes from a new head what the directories of the store have passed on to it.
pub fn forget_inherited(head: &Pinned, mode: u32) -> Sys<()> {
    Acl::put(None, head.path())?;
    let (_, group) = sys::effective_ids();
    sys::chownat(head.fd(), c"", u32::MAX, group, libc::AT_EMPTY_PATH)?;
    sys::chmod(head.path(), mode & !sys::umask()).map(|_| ())
}

/// The directory that a name is in.
fn parent_of(name: &FixedPath) -> FixedPath {
    let cut = name.as_bytes().iter().rposition(|c| *c == b'/').unwrap_or(0);
    FixedPath::from_bytes(name.as_bytes().get(..cut.max(1)).unwrap_or(b"/"))
}

/// The directory of a name, where a new file gets more from it than a place: its group, or a default ACL.
#[inline(never)] // Its buffers would lie on the stack below what is done after it.
pub fn passes_on(name: &FixedPath) -> Sys<Option<libc::stat>> {
    let parent = parent_of(name);
    let parent = c(&parent)?;
    let args = [DEFAULT_ACL.as_ptr() as usize, 0, 0, 0];
    // SAFETY: valid strings; a length of 0 asks for the length.
    let has_default = unsafe { sys::xattr_raw(Sysno::getxattr, parent.as_ptr() as usize, args) }.is_ok();
    let directory = sys::stat(parent, 0)?;
    Ok(Some(directory).filter(|directory| has_default || directory.st_mode & libc::S_ISGID != 0))
}

/// A new file's rights, given by the directory of its name as a plain file's are: the group of a set-group-id directory, and a default ACL
/// in place of the umask. A file made there without a name shows them.
#[inline(never)] // As above.
pub fn inherit(name: &FixedPath, directory: &libc::stat, mode: u32, head: &Pinned) -> Sys<()> {
    let parent = parent_of(name);
    let parent = c(&parent)?;
    let Ok(probe) = sys::open(parent, libc::O_TMPFILE | libc::O_WRONLY, mode) else {
        // A file system without such files has no default ACLs either.
        let _ = sys::chownat(head.fd(), c"", u32::MAX, directory.st_gid, libc::AT_EMPTY_PATH);
        return Ok(());
    };
    let mut path = ProcPath::from_bytes(b"/proc/self/fd/");
    path.push_decimal(probe as u64);
    let result = (|| {
        let st = sys::fstat(probe)?;
        // Only a member may give a file to a group; a plain file gets it from the kernel.
        let _ = sys::chownat(head.fd(), c"", u32::MAX, st.st_gid, libc::AT_EMPTY_PATH);
        if let Some(acl) = Acl::of(c(&path)?)? {
            Acl::put(Some(&acl), head.path())?;
        }
        sys::chmod(head.path(), st.st_mode & 0o7777).map(|_| ())
    })();
    sys::close(probe);
    result
}
