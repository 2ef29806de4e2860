//! New managed files. The name (a symbolic link) comes last and is the claim: before it nobody can see the file, and a kill leaves
//! only an entry that fsck recognises as a creation that was never finished.

use crate::access;
use crate::env;
use crate::file;
use crate::names;
use crate::store::{self, Store};
use crate::sys::{self, Errno, Sys};
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering};
use stripewise_layout::View;
use stripewise_store::bin::Action;
use stripewise_store::devices::now_ns;
use stripewise_store::names::{FixedPath, FixedText, file_part, glob_matches, link_text, object};
use stripewise_store::rights::Part;

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Where a new file goes, if it is to be managed.
pub struct Place {
    store: &'static Store,
    path: FixedPath,
    layout: &'static [u8],
}

/// Whether a file that does not exist yet is to be managed: by the run's patterns (`STRIPEWISE_MANAGE`), else by the store's rules.
#[inline(never)] // Its buffers would lie on the stack below what is done after it.
pub fn place_for(dirfd: i32, path: &CStr) -> Sys<Option<Place>> {
    let Some(store_path) = env::store_path() else { return Ok(None) };
    if path.to_bytes().is_empty() || path.to_bytes().ends_with(b"/") {
        return Ok(None);
    }
    let Ok(absolute) = names::absolute(dirfd, path.to_bytes()) else { return Ok(None) };
    let name = absolute.as_bytes();
    let Ok(store) = store::attach(store_path) else { return Ok(None) };
    let view = store.view()?;
    let below = |dir: &[u8]| name.strip_prefix(dir).is_some_and(|rest| rest.first() == Some(&b'/'));
    let ours =
        below(store.path()) || (0..view.target_count()).filter_map(|t| view.target(t)).any(|t| below(t.path)) || env::trace_dir().is_some_and(below);
    if ours || name.starts_with(b"/dev/") || name.starts_with(b"/proc/") || name.starts_with(b"/sys/") {
        return Ok(None);
    }
    let rule = view.rule_for(name);
    let asked = env::manage_globs().split(|c| *c == b':').any(|glob| !glob.is_empty() && glob_matches(glob, name));
    let managed = asked || (env::manage_globs().is_empty() && rule.is_some_and(|r| r.action == Action::Manage));
    let layout = match rule {
        Some(rule) if rule.action == Action::Manage && !rule.layout.is_empty() => rule.layout,
        _ => view.default_layout(),
    };
    Ok(managed.then_some(Place { store, path: absolute, layout }))
}

fn fresh_id() -> u64 {
    let mut x = now_ns() ^ (u64::from(sys::getpid()) << 40) ^ COUNTER.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn c<const N: usize>(path: &FixedText<N>) -> Sys<&CStr> {
    path.as_c_str().ok_or(Errno(libc::ENAMETOOLONG))
}

/// A new file.
pub struct Created {
    /// Its place in the table of files, held for the caller.
    pub index: u32,
    /// The mode that head gets once its creator, who may do everything with what it has made, has opened it.
    late_mode: Option<u32>,
}

impl Created {
    /// The creator has opened it: its mode counts from here on.
    #[inline(never)] // Its path would lie on the stack below every way to open.
    pub fn opened(&self) -> Sys<()> {
        let (Some(mode), Some(file)) = (self.late_mode, file::get(self.index)) else { return Ok(()) };
        sys::chmod(c(&file.part(b"head")?)?, mode).map(|_| ())
    }
}

/// Makes the file. `EEXIST`: another process was first.
#[inline(never)] // As above.
pub fn create(place: &Place, mode: u32) -> Sys<Created> {
    env::refuse_vfork_child()?;
    let id = loop {
        let id = fresh_id();
        let dir = file_part(place.store.path(), id, b"");
        match sys::mkdir(c(&dir)?, 0o755) {
            // Others reach the file through this directory, whatever the umask; what they may do there is head's to say.
            Ok(_) => break sys::chmod(c(&dir)?, 0o755).map(|_| id)?,
            Err(Errno(libc::EEXIST)) => {}
            Err(errno) => return Err(errno),
        }
    };
    let result = fill(place, id, mode);
    if result.is_err() {
        undo(place, id);
    }
    result
}

#[inline(never)] // As above.
fn fill(place: &Place, id: u64, mode: u32) -> Sys<Created> {
    let store = place.store;
    write_layout(store, id, place.layout)?;
    let Ok(template) = View::parse(place.layout) else { return Err(Errno(libc::EIO)) };
    let head = file_part(store.path(), id, b"head");
    let head = c(&head)?;
    sys::close(sys::open(head, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, mode & 0o7777)?);
    let inherited = access::inherit(&place.path, mode & 0o7777, head)?;
    let wanted = sys::stat(head, 0)?.st_mode & 0o7777;
    let rights = Part::Object.mode(wanted);
    let late_mode = (wanted & 0o600 != 0o600).then_some(wanted);
    if late_mode.is_some() {
        sys::chmod(head, wanted | 0o600)?;
    }
    let mut made: [i32; file::MAX_OBJECTS] = [-1; file::MAX_OBJECTS];
    let result = (|| {
        for (target, plane) in file::objects(&template) {
            let config = store.view()?.target(target as usize).ok_or(Errno(libc::EIO))?;
            let fd = sys::open(c(&object(config.path, id, plane))?, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOATIME, rights)
                .inspect_err(|_| crate::log::say(b"an object could not be created on this target", config.path))?;
            if let Some(slot) = made.get_mut(file::object_place(target, plane)) {
                *slot = fd;
            }
        }
        file::acquire(store, id)
    })();
    let index = match result {
        Ok(index) => index,
        Err(errno) => {
            made.iter().filter(|fd| **fd >= 0).for_each(|fd| sys::close(*fd));
            return Err(errno);
        }
    };
    // The creator may write through them whatever the mode says.
    let mut complete = Err(Errno(libc::EIO));
    if let Some(file) = file::get(index) {
        // The umask may take from an object even what its owner must have.
        complete = if inherited || late_mode.is_some() { access::spread(file) } else { Ok(()) };
        for (place, fd) in made.iter().enumerate().filter(|(_, fd)| **fd >= 0) {
            let _ = file.give_object(place, *fd);
        }
    }
    let named = complete
        .and_then(|()| sys::symlinkat(c(&link_text(store.path(), id))?, libc::AT_FDCWD, c(&place.path)?))
        .and_then(|_| names::record_link(store, id, &place.path));
    if let Err(errno) = named {
        file::release(index);
        return Err(errno);
    }
    Ok(Created { index, late_mode })
}

#[inline(never)] // Its buffers would lie on the stack below what is done after it.
fn write_layout(store: &Store, id: u64, template: &[u8]) -> Sys<()> {
    let len = template.len();
    let memory = sys::mmap(-1, len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)?;
    // SAFETY: fresh private memory of `len` bytes, unmapped below.
    let bytes = unsafe { core::slice::from_raw_parts_mut(memory, len) };
    bytes.copy_from_slice(template);
    let result = (|| {
        stripewise_layout::stamp(bytes, [id, 0]).map_err(|_| Errno(libc::EIO))?;
        let fd = sys::open(c(&file_part(store.path(), id, b"layout"))?, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, 0o644)?;
        let _ = sys::fchmod(fd, 0o644);
        let wrote = sys::write(fd, bytes);
        sys::close(fd);
        if wrote? == len { Ok(()) } else { Err(Errno(libc::ENOSPC)) }
    })();
    // SAFETY: mapped above.
    unsafe { sys::munmap(memory, len) };
    result
}

/// Takes back what a failed creation made.
#[inline(never)] // Its buffers would lie on the stack below what is done after it.
fn undo(place: &Place, id: u64) {
    let Ok(view) = place.store.view() else { return };
    for target in (0..view.target_count()).filter_map(|t| view.target(t)) {
        for plane in [0, 1] {
            if let Ok(path) = c(&object(target.path, id, plane)) {
                let _ = sys::unlink(path, 0);
            }
        }
    }
    for part in [&b"link.tmp"[..], b"link", b"layout", b"ctl", b"head"] {
        if let Ok(path) = c(&file_part(place.store.path(), id, part)) {
            let _ = sys::unlink(path, 0);
        }
    }
    if let Ok(path) = c(&file_part(place.store.path(), id, b"")) {
        let _ = sys::unlink(path, libc::AT_REMOVEDIR);
    }
}
