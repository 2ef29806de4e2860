//! Opening by name: a new file that the rules send into the store, a managed one behind a link to nowhere, or a plain one, which the
//! C library opens as ever.

use crate::base::sys::{self, Errno, Sys};
use crate::file;
use crate::names::{self, is_of_a_descriptor};
use crate::open::create;
use crate::open::{self, Kind, of_fd};
use crate::trace;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};
use libc::c_char;
use stripewise_store::names::parse_link;
use stripewise_target::text::PATH_MAX;

unsafe extern "C" {
    fn sw_real_openat(dirfd: i32, path: *const c_char, flags: i32, mode: u32) -> i64;
}

/// The descriptor, and what it is of. Where the process has none left, those of idle files go first.
///
/// # Safety
/// `path` is a C string or null.
pub unsafe fn open_freeing_idle(dirfd: i32, path: *const c_char, flags: i32, mode: u32) -> (Sys<i64>, Kind) {
    // SAFETY: the caller's promise.
    match unsafe { open_any(dirfd, path, flags, mode) } {
        // SAFETY: as above.
        (Err(Errno(libc::EMFILE)), _) if file::forget_idle() => unsafe { open_any(dirfd, path, flags, mode) },
        opened => opened,
    }
}

unsafe fn open_any(dirfd: i32, path: *const c_char, flags: i32, mode: u32) -> (Sys<i64>, Kind) {
    // SAFETY: the caller's promise.
    match unsafe { open_new(dirfd, path, flags, mode) } {
        Ok(Some((fd, kind))) => return (Ok(fd), kind),
        Ok(None) => {}
        Err(errno) => return (Err(errno), Kind::MANAGED),
    }
    let guess = Guess::of(path, flags);
    // SAFETY: the caller's promise.
    if guess.is_managed()
        && let Ok(Some(found)) = unsafe { find_to_open(dirfd, path, flags) }
        && let opened = open_found(&found, flags)
        && opened != Err(Errno(libc::ENOENT))
    {
        return (opened, Kind::MANAGED);
    }
    // SAFETY: the caller's promise.
    let creates = unsafe { would_create(dirfd, path, flags) };
    // SAFETY: as given by the program.
    let result = sys::from_c(unsafe { sw_real_openat(dirfd, path, flags, mode) });
    // A managed name looks like a link to nowhere: a directory that does not exist, a file that does, or a link too many. O_PATH with O_NOFOLLOW opens the
    // link itself.
    // SAFETY: the caller's promise.
    if let Ok(fd) = result
        && let Some(reopened) = unsafe { reopened_head(path, fd as i32, flags) }
    {
        return (reopened, Kind::MANAGED);
    }
    let maybe = match result {
        Err(Errno(libc::ENOENT | libc::EEXIST | libc::ELOOP)) => true,
        Ok(_) => flags & (libc::O_PATH | libc::O_NOFOLLOW) == libc::O_PATH | libc::O_NOFOLLOW,
        Err(_) => false,
    };
    // SAFETY: the caller's promise.
    let found = if maybe { unsafe { find_to_open(dirfd, path, flags) } } else { Ok(None) };
    guess.note(matches!(found, Ok(Some(_))));
    match found {
        Ok(None) => (result, Kind { created: creates && result.is_ok(), ..Kind::PLAIN }),
        // A name that is there is there, whoever's the store behind it is.
        Err(Errno(libc::EACCES)) if result == Err(Errno(libc::EEXIST)) => (result, Kind::PLAIN),
        Err(errno) => (Err(errno), Kind::MANAGED),
        Ok(Some(found)) => {
            if let Ok(fd) = result {
                sys::close(fd as i32);
            }
            let opened = open_found(&found, flags);
            // An export may have put the plain file in the link's place since it was read.
            if opened == Err(Errno(libc::ENOENT)) {
                // SAFETY: as given by the program.
                let plain = sys::from_c(unsafe { sw_real_openat(dirfd, path, flags & !libc::O_CREAT, mode) });
                if plain.is_ok() {
                    return (plain, Kind::PLAIN);
                }
            }
            (opened, Kind::MANAGED)
        }
    }
}

/// While tracing, whether an open that succeeds creates a plain file: nothing is at its name just before. Where several processes create it at once, more than
/// one may be told so, and one always is.
unsafe fn would_create(dirfd: i32, path: *const c_char, flags: i32) -> bool {
    if !may_create(flags) || !trace::on() {
        return false;
    }
    // SAFETY: the caller's promise; the kernel takes any address.
    flags & libc::O_EXCL != 0 || unsafe { sys::faccessat_raw(dirfd, path, libc::F_OK, 0) } == Err(Errno(libc::ENOENT))
}

/// Whether a name is taken for a managed one's before the kernel was asked to open it, which it would refuse: its link is read at once then. Names are told
/// apart by where they lie in memory: the bytes themselves may not be there. A wrong guess costs a look at a link that is none.
struct Guess(Option<&'static AtomicBool>);

/// By the place of a name: whether the last one that lay there looked like a managed one's.
static LAST: [AtomicBool; 64] = [const { AtomicBool::new(false) }; 64];

impl Guess {
    /// About an open that follows links and may not create.
    fn of(path: *const c_char, flags: i32) -> Self {
        const OTHERWISE: i32 = libc::O_CREAT | libc::O_NOFOLLOW | libc::O_PATH | libc::O_DIRECTORY;
        let place = (path as usize).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize) >> (usize::BITS - 6);
        Self(LAST.get(place).filter(|_| flags & OTHERWISE == 0))
    }

    fn is_managed(&self) -> bool {
        self.0.is_some_and(|last| last.load(Ordering::Relaxed))
    }

    fn note(&self, is_managed: bool) {
        if let Some(last) = self.0
            && last.load(Ordering::Relaxed) != is_managed
        {
            last.store(is_managed, Ordering::Relaxed);
        }
    }
}

/// The descriptor of a file that is managed, or becomes so by being created, and which of the two; `None`, with nothing opened, for every other name: the
/// C library opens those inside itself.
///
/// # Safety
/// `path` is a C string or null.
pub unsafe fn open_if_managed(path: *const c_char, flags: i32, mode: u32) -> Sys<Option<(i64, Kind)>> {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(opened) = open_new(libc::AT_FDCWD, path, flags, mode)? {
            return Ok(Some(opened));
        }
        if let Some(found) = find_to_open(libc::AT_FDCWD, path, flags & !libc::O_NOFOLLOW)? {
            return open_found(&found, flags).map(|fd| Some((fd, Kind::MANAGED)));
        }
        if path.is_null() || !is_of_a_descriptor(CStr::from_ptr(path).to_bytes()) {
            return Ok(None);
        }
        // O_PATH has no effect on what the name leads to: a device, a pipe.
        match sys::openat(libc::AT_FDCWD, CStr::from_ptr(path), libc::O_PATH | libc::O_CLOEXEC, 0) {
            Ok(fd) => match reopened_head(path, fd, flags) {
                Some(reopened) => reopened.map(|fd| Some((fd, Kind::MANAGED))),
                None => {
                    sys::close(fd);
                    Ok(None)
                }
            },
            Err(_) => Ok(None),
        }
    }
}

/// Whether an open lets the program change the file.
fn changes(flags: i32) -> bool {
    flags & libc::O_PATH == 0 && flags & (libc::O_ACCMODE | libc::O_TRUNC) != libc::O_RDONLY
}

/// # Safety
/// As [`names::find`].
unsafe fn find_to_open(dirfd: i32, path: *const c_char, flags: i32) -> Sys<Option<names::Managed>> {
    let follow = flags & libc::O_NOFOLLOW == 0;
    // SAFETY: the caller's promise.
    unsafe { if changes(flags) { names::find(dirfd, path, follow) } else { names::find_to_read(dirfd, path, follow) } }
}

/// Opens the file that a name was found to lead to.
fn open_found(found: &names::Managed, flags: i32) -> Sys<i64> {
    if flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0 {
        return Err(Errno(libc::EEXIST));
    }
    open::managed::open_managed_if(found.store, found.id, flags, || {
        if changes(flags) && found.is_copy()? {
            crate::base::log::say(b"this link is a copy of a managed file's name and opens read-only", found.head().as_bytes());
            return Err(Errno(libc::EROFS));
        }
        Ok(())
    })
    .map(i64::from)
}

/// A descriptor of a managed file opened anew through /dev/stdin or /proc/self/fd/N: the kernel has opened head itself, whose
/// bytes are nobody's.
#[inline(never)] // Its buffer would lie on the stack below every other way to open.
unsafe fn reopened_head(path: *const c_char, fd: i32, flags: i32) -> Option<Sys<i64>> {
    // SAFETY: the kernel has just read this path.
    let name = unsafe { CStr::from_ptr(path) }.to_bytes();
    if !is_of_a_descriptor(name) {
        return None;
    }
    let mut text = [0u8; 4096];
    let (store, id) = crate::store::heads::head_of(fd, &mut text)?;
    sys::close(fd);
    Some(crate::store::attach(store).and_then(|store| open::managed::open_managed(store, id, flags & !libc::O_CREAT)).map(i64::from))
}

/// How often an open that may create begins anew because others change the name meanwhile.
const LOOKS: u32 = 100;

/// An open that may create: of a managed file, or of one that becomes so because the name does not exist and the rules say so. `None` for every other
/// name. The kernel is not asked to create what it may find gone by then: a plain file would come where a managed one is to be.
unsafe fn open_new(dirfd: i32, path: *const c_char, flags: i32, mode: u32) -> Sys<Option<(i64, Kind)>> {
    if path.is_null() || !may_create(flags) || crate::base::config::store_path().is_none() {
        return Ok(None);
    }
    for _ in 0..LOOKS {
        // SAFETY: the caller's promise.
        let found = unsafe {
            match is_managed(dirfd, path) {
                None => create_new(dirfd, CStr::from_ptr(path), flags, mode)?,
                Some(true) => open_there(dirfd, path, flags)?,
                Some(false) => return Ok(None),
            }
        };
        match found {
            Found::Opened(fd) => return Ok(Some((fd, Kind::MANAGED))),
            Found::Created(fd) => return Ok(Some((fd, Kind { created: true, ..Kind::MANAGED }))),
            Found::Plain => return Ok(None),
            Found::Changed => {}
        }
    }
    Err(Errno(libc::ENOENT))
}

/// O_DIRECTORY is in O_TMPFILE too, and creates nothing by itself.
fn may_create(flags: i32) -> bool {
    flags & (libc::O_CREAT | libc::O_DIRECTORY | libc::O_PATH) == libc::O_CREAT
}

/// What an open that may create came to.
enum Found {
    Opened(i64),
    Created(i64),
    /// Nothing of ours.
    Plain,
    /// The name is not what it was when it was looked at.
    Changed,
}

/// Whether a name is a managed file's link; `None` where there is no such name, and the path can be read.
#[inline(never)] // As above.
unsafe fn is_managed(dirfd: i32, path: *const c_char) -> Option<bool> {
    let mut text = [core::mem::MaybeUninit::uninit(); PATH_MAX];
    // SAFETY: a C string or a bad address, which the kernel tells apart.
    match unsafe { sys::readlinkat_raw(dirfd, path, &mut text) } {
        Ok(target) => Some(parse_link(target).is_some()),
        Err(Errno(libc::ENOENT)) => None,
        Err(_) => Some(false),
    }
}

/// Opens what a managed link leads to.
unsafe fn open_there(dirfd: i32, path: *const c_char, flags: i32) -> Sys<Found> {
    if flags & libc::O_EXCL != 0 {
        return Err(Errno(libc::EEXIST));
    }
    // SAFETY: the caller's promise.
    let Some(found) = (unsafe { find_to_open(dirfd, path, flags)? }) else {
        // SAFETY: as above.
        return Ok(if unsafe { is_managed(dirfd, path) } == Some(true) { Found::Plain } else { Found::Changed });
    };
    match open_found(&found, flags) {
        // SAFETY: as above.
        Err(Errno(libc::ENOENT)) if !found.is_still_at(dirfd, unsafe { CStr::from_ptr(path) }) => Ok(Found::Changed),
        opened => opened.map(Found::Opened),
    }
}

/// Creates a managed file where the rules say so.
#[inline(never)] // As above.
fn create_new(dirfd: i32, path: &CStr, flags: i32, mode: u32) -> Sys<Found> {
    let Some(place) = create::place_for(dirfd, path)? else { return Ok(Found::Plain) };
    match create::create(&place, mode) {
        Ok(created) => {
            let fd = open::managed::open_acquired(created.index, flags & !libc::O_TRUNC).inspect_err(|_| {
                let _ = created.opened();
                file::release(created.index);
            })?;
            created.opened()?;
            Ok(Found::Created(i64::from(fd)))
        }
        // Another process was first: its file is the one.
        Err(Errno(libc::EEXIST)) if flags & libc::O_EXCL == 0 => Ok(Found::Changed),
        Err(errno) => Err(errno),
    }
}

#[inline(never)] // As above.
pub fn record(path: &CStr, dirfd: i32, flags: i32, result: &Sys<i64>, kind: Kind, start: u64) {
    let mut id = 0;
    if let Ok(fd) = result {
        let fd = *fd as i32;
        let st = sys::fstat(fd);
        let regular = st.as_ref().is_ok_and(|s| s.st_mode & libc::S_IFMT == libc::S_IFREG);
        if regular {
            let name = names::absolute(dirfd, path.to_bytes()).ok();
            let name = name.as_ref().map_or(path.to_bytes(), |n| n.as_bytes());
            id = trace::file_id(name, st.as_ref().map_or(0, |s| s.st_dev), st.as_ref().map_or(0, |s| s.st_ino));
            if kind.managed {
                if let Ok(open) = of_fd(fd) {
                    open.trace_id.store(id, Ordering::Relaxed);
                }
            } else {
                open::register_plain(fd, id);
            }
        }
    } else {
        id = trace::file_id(path.to_bytes(), 0, 0);
    }
    trace::opened(id, kind, flags, result, start);
}
