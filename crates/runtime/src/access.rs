//! Owner, mode and ACL of a managed file: head has them, objects and ctl carry them. In the course of a change no part ever allows more than
//! the file does before or after it: a mode narrows the objects first and widens them last. What a kill leaves half done `fsck` finds.

use crate::file::File;
use crate::names::Managed;
use crate::sys::{self, Errno, Sys};
use core::ffi::CStr;
use core::sync::atomic::Ordering;
use stripewise_store::names::{self as store_names, FixedPath, FixedText, ProcPath};
use stripewise_store::rights::Part;
use syscalls::Sysno;

/// The attribute that holds a file's ACL.
pub const ACL: &CStr = c"system.posix_acl_access";
/// The attribute of a directory that new files take their ACL from.
const DEFAULT_ACL: &CStr = c"system.posix_acl_default";
/// Longest ACL that is carried: 1,000 entries.
pub const ACL_BYTES_MAX: usize = 4 + 8 * 1000;

fn c<const N: usize>(path: &FixedText<N>) -> Sys<&CStr> {
    path.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))
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

/// Gives a part of the store the rights of head, as an object or as ctl.
fn follow(path: &CStr, head: &libc::stat, acl: Option<Acl>, part: Part) -> Sys<()> {
    let now = sys::stat(path, libc::AT_SYMLINK_NOFOLLOW)?;
    if (now.st_uid, now.st_gid) != (head.st_uid, head.st_gid) {
        sys::chown(path, head.st_uid, head.st_gid, libc::AT_SYMLINK_NOFOLLOW)?;
    }
    let acl = acl.and_then(|acl| acl.adapted(part, head.st_mode));
    Acl::put(acl.as_ref(), path)?;
    let mode = part.mode(head.st_mode);
    if acl.is_some() || now.st_mode & 0o7777 != mode {
        sys::chmod(path, mode)?;
    }
    Ok(())
}

/// Calls `each` with every object that the file has, those of a move included; one that its layout needs must be there.
fn for_each_object(file: &'static File, mut each: impl FnMut(&CStr) -> Sys<()>) -> Sys<()> {
    let store = file.store()?.view()?;
    let passed = crate::gate::for_read(file)?;
    let loaded = passed.loaded;
    for (number, target) in (0..store.target_count()).filter_map(|number| Some((number as u32, store.target(number)?))) {
        for plane in [0, 1] {
            match each(c(&store_names::object(target.path, file.id(), plane))?) {
                Err(Errno(libc::ENOENT)) if loaded.view.uses_object(number, plane) => return Err(Errno(libc::EIO)),
                Ok(()) | Err(Errno(libc::ENOENT)) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(())
}

/// Gives objects and ctl the rights that head has now.
#[inline(never)] // Its buffers would lie on the stack below what is done after it.
pub fn spread(file: &'static File) -> Sys<()> {
    let head = file.part(b"head")?;
    let head = c(&head)?;
    let st = sys::stat(head, 0)?;
    for_each_object(file, |object| follow(object, &st, Acl::of(head)?, Part::Object))?;
    follow(c(&file.part(b"ctl")?)?, &st, Acl::of(head)?, Part::Ctl)
}

/// Runs a change of rights with the file open, and with all that this process may still need of it opened before.
fn changing(managed: &Managed, work: impl FnOnce(&'static File, &CStr) -> Sys<()>) -> Sys<i64> {
    if managed.is_copy() {
        return Err(Errno(libc::EROFS));
    }
    managed.with(|file| {
        if file.is_open_besides() {
            file.prime();
        }
        let head = file.part(b"head")?;
        // What is written next may take set-user-id bits away.
        file.touched.store(0, Ordering::Relaxed);
        file.exclusively(|| work(file, c(&head)?))
    })?;
    Ok(0)
}

/// chmod.
pub fn set_mode(managed: &Managed, mode: u32) -> Sys<i64> {
    changing(managed, |file, head| {
        let before = sys::stat(head, 0)?;
        // Asked of head first, so that who may not do it changes nothing.
        sys::chmod(head, before.st_mode & mode & 0o7777)?;
        for_each_object(file, |object| sys::chmod(object, Part::Object.mode(before.st_mode & mode)).map(|_| ()))?;
        sys::chmod(head, mode)?;
        spread(file)
    })
}

/// chown; all that belongs to the file goes along, its name included (who owns the name decides in sticky directories).
pub fn set_owner(managed: &Managed, uid: u32, gid: u32) -> Sys<i64> {
    // Neither asked for: anybody may, who sees the name, and what the kernel does then (ctime, set-user-id bits) it does to head, which alone has it.
    if (uid, gid) == (u32::MAX, u32::MAX) && !managed.is_copy() {
        return sys::chown(c(&managed.head())?, uid, gid, 0).map(|_| 0);
    }
    changing(managed, |file, head| {
        for_each_object(file, |object| sys::stat(object, libc::AT_SYMLINK_NOFOLLOW).map(|_| ()))?;
        sys::chown(head, uid, gid, 0)?;
        spread(file)?;
        for part in [&b""[..], b"/layout", b"/link"] {
            let mut path = file.part(b"")?;
            sys::chown(c(path.push(part))?, uid, gid, libc::AT_SYMLINK_NOFOLLOW)?;
        }
        if let Some(name) = managed.recorded_name() {
            let _ = sys::chown(c(&name)?, uid, gid, libc::AT_SYMLINK_NOFOLLOW);
        }
        Ok(())
    })
}

/// setxattr or removexattr of the ACL, done on head by `on_head`.
pub fn set_acl(managed: &Managed, on_head: impl FnOnce(&CStr) -> Sys<i64>) -> Sys<i64> {
    changing(managed, |file, head| {
        for_each_object(file, |object| sys::stat(object, libc::AT_SYMLINK_NOFOLLOW).map(|_| ()))?;
        on_head(head)?;
        spread(file)
    })
}

/// A new file's rights, given by the directory of its name as a plain file's are: the group of a set-group-id directory, and a default ACL
/// in place of the umask. A file made there without a name shows them. Says whether there was any such thing.
#[inline(never)] // Its buffers would lie on the stack below what is done after it.
pub fn inherit(name: &FixedPath, mode: u32, head: &CStr) -> Sys<bool> {
    let cut = name.as_bytes().iter().rposition(|c| *c == b'/').unwrap_or(0);
    let parent = FixedPath::from_bytes(name.as_bytes().get(..cut.max(1)).unwrap_or(b"/"));
    let parent = c(&parent)?;
    let args = [DEFAULT_ACL.as_ptr() as usize, 0, 0, 0];
    // SAFETY: valid strings; a length of 0 asks for the length.
    let has_default = unsafe { sys::xattr_raw(Sysno::getxattr, parent.as_ptr() as usize, args) }.is_ok();
    let directory = sys::stat(parent, 0)?;
    if !has_default && directory.st_mode & libc::S_ISGID == 0 {
        return Ok(false);
    }
    let Ok(probe) = sys::open(parent, libc::O_TMPFILE | libc::O_WRONLY, mode) else {
        // A file system without such files has no default ACLs either.
        let _ = sys::chown(head, u32::MAX, directory.st_gid, 0);
        return Ok(true);
    };
    let mut path = ProcPath::from_bytes(b"/proc/self/fd/");
    path.push_decimal(probe as u64);
    let result = (|| {
        let st = sys::fstat(probe)?;
        // Only a member may give a file to a group; a plain file gets it from the kernel.
        let _ = sys::chown(head, u32::MAX, st.st_gid, 0);
        if let Some(acl) = Acl::of(c(&path)?)? {
            Acl::put(Some(&acl), head)?;
        }
        sys::chmod(head, st.st_mode & 0o7777)?;
        Ok(true)
    })();
    sys::close(probe);
    result
}
