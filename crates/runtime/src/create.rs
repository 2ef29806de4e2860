//! New managed files. The name (a symbolic link) comes last and is the claim: before it nobody can see the file, and a kill leaves
//! only an entry that fsck recognises as a creation that was never finished.

use crate::access;
use crate::config;
use crate::file;
use crate::names as managed;
use crate::part::{self, At, Held, Transient};
use crate::process;
use crate::store::{self, Store};
use crate::sys::{self, Errno, Sys};
use core::ffi::CStr;
use core::sync::atomic::Ordering;
use stripewise_store::bin::Action;
use stripewise_store::ctl::FLAG_UNLINKED;
use stripewise_store::names::{self, glob_matches, link_text};
use stripewise_store::rights::Part;
use stripewise_target::text::{FixedPath, FixedText, ProcPath};

/// Where a new file goes, if it is to be managed.
pub struct Place {
    store: &'static Store,
    path: FixedPath,
    layout: &'static [u8],
}

/// Whether a file that does not exist yet is to be managed: by the run's patterns (`STRIPEWISE_MANAGE`), else by the store's rules.
#[inline(never)] // Its buffers would lie on the stack below what is done after it.
pub fn place_for(dirfd: i32, path: &CStr) -> Sys<Option<Place>> {
    let Some(store_path) = config::store_path() else { return Ok(None) };
    if path.to_bytes().is_empty() || path.to_bytes().ends_with(b"/") {
        return Ok(None);
    }
    let Ok(absolute) = managed::absolute(dirfd, path.to_bytes()) else { return Ok(None) };
    let name = absolute.as_bytes();
    let Ok(store) = store::attach(store_path) else { return Ok(None) };
    let view = store.view()?;
    let below = |dir: &[u8]| name.strip_prefix(dir).is_some_and(|rest| rest.first() == Some(&b'/'));
    let ours = below(store.path())
        || (0..view.target_count()).filter_map(|t| view.target(t)).any(|t| below(t.path))
        || config::trace_dir().is_some_and(|dir| below(dir.to_bytes()));
    if ours || name.starts_with(b"/dev/") || name.starts_with(b"/proc/") || name.starts_with(b"/sys/") {
        return Ok(None);
    }
    let rule = view.rule_for(name);
    let asked = config::manage_globs().split(|c| *c == b':').any(|glob| !glob.is_empty() && glob_matches(glob, name));
    let managed = asked || (config::manage_globs().is_empty() && rule.is_some_and(|r| r.action == Action::Manage));
    let layout = match rule {
        Some(rule) if rule.action == Action::Manage && !rule.layout.is_empty() => rule.layout,
        _ => view.default_layout(),
    };
    Ok(managed.then_some(Place { store, path: absolute, layout }))
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
        sys::chmod(file.at()?.pin_head()?.path(), mode).map(|_| ())
    }
}

/// Makes the file. `EEXIST`: another process was first.
#[inline(never)] // As above.
pub fn create(place: &Place, mode: u32) -> Sys<Created> {
    process::refuse_vfork_child()?;
    let files = place.store.files_dir()?;
    let id = loop {
        let id = sys::random_u64();
        let name = names::id_name(id);
        match sys::mkdirat(files, part::c(&name)?, Part::Dir.mode(0)) {
            Ok(_) => break id,
            Err(Errno(libc::EEXIST)) => {}
            Err(errno) => return Err(errno),
        }
    };
    let at = Transient::open(place.store, id).inspect_err(|_| {
        let _ = part::c(&names::id_name(id)).and_then(|name| sys::unlinkat(files, name, libc::AT_REMOVEDIR));
    })?;
    // Others reach the file through this directory, whatever the umask; what they may do there is head's to say.
    let begun = part::readable_dir(at.dir).or_else(|_| open_own(&at)).and_then(|dir| {
        sys::fchmod(dir.fd(), Part::Dir.mode(0))?;
        begin(place, &at, &dir, mode)
    });
    let created = begun.inspect_err(|_| undo(&at))?;
    name(place, &at).inspect_err(|_| abandon(created.index))?;
    Ok(created)
}

/// A mover may have found it by now: it goes as a file that is unlinked does, with its last user.
fn abandon(index: u32) {
    if let Some(ctl) = file::get(index).and_then(file::File::ctl) {
        ctl.header().flags.fetch_or(FLAG_UNLINKED, Ordering::SeqCst);
    }
    file::release(index);
}

/// The directory of a new file whose umask left its own maker no right to read it.
fn open_own(at: &At) -> Sys<Held> {
    let mut path = ProcPath::from_bytes(b"/proc/self/fd/");
    path.push_decimal(at.dir as u64);
    sys::chmod(c(&path)?, Part::Dir.mode(0))?;
    part::readable_dir(at.dir)
}

/// All parts of it but its name.
#[inline(never)] // As above.
fn begin(place: &Place, at: &At, dir: &Held, mode: u32) -> Sys<Created> {
    let store = at.store;
    write_layout(at, place.layout)?;
    // The umask counts for head, as for any file that the program makes.
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    sys::close(sys::openat(at.dir, c"head", flags, mode & 0o7777)?);
    let head = at.pin_head()?;
    // What a store's owner has his directories pass on (a default ACL, a group) is none of the file's rights.
    let is_others = store.owner() != 0 && store.owner() != sys::geteuid();
    if is_others {
        access::forget_inherited(&head, mode & 0o7777)?;
    }
    let inherited = access::inherit(&place.path, mode & 0o7777, &head)? || is_others;
    let made = sys::fstat(head.fd())?;
    let wanted = made.st_mode & 0o7777;
    if Part::Dir.mode(wanted) != Part::Dir.mode(0) {
        // Of the group that may write the file.
        if sys::fstat(dir.fd())?.st_gid != made.st_gid {
            sys::chownat(dir.fd(), c"", u32::MAX, made.st_gid, libc::AT_EMPTY_PATH)?;
        }
        sys::fchmod(dir.fd(), Part::Dir.mode(wanted))?;
    }
    let late_mode = (wanted & 0o600 != 0o600).then_some(wanted);
    if late_mode.is_some() {
        sys::chmod(head.path(), wanted | 0o600)?;
    }
    drop(head);
    let index = file::acquire(store, at.id)?;
    let complete = file::get(index).ok_or(Errno(libc::EIO)).and_then(|file| {
        hold_targets(file)?;
        file.is_being_made.store(true, Ordering::Relaxed);
        let made = access::make_before(file, made.st_uid, wanted);
        file.is_being_made.store(false, Ordering::Relaxed);
        made?;
        // The umask may take from a part even what its owner must have.
        if inherited || late_mode.is_some() { access::spread(file) } else { Ok(()) }
    });
    complete.map(|()| Created { index, late_mode }).inspect_err(|_| abandon(index))
}

#[inline(never)] // As above.
fn name(place: &Place, at: &At) -> Sys<()> {
    sys::symlinkat(c(&link_text(at.store.path(), at.id))?, libc::AT_FDCWD, c(&place.path)?)?;
    match managed::record_link(at.store, at.id, &place.path) {
        // Another process has renamed or removed it already: from the moment of the link on the file is everybody's.
        Err(Errno(libc::ENOENT)) => Ok(()),
        recorded => recorded,
    }
}

/// A target that is not there, or not the store's, is told of now and not when the file has grown to it.
fn hold_targets(file: &'static file::File) -> Sys<()> {
    let passed = crate::gate::for_read(file)?;
    passed.loaded.objects().try_for_each(|(target, _)| file.store()?.target_dir(target).map(|_| ()))
}

#[inline(never)] // Its buffers would lie on the stack below what is done after it.
fn write_layout(at: &At, template: &[u8]) -> Sys<()> {
    let len = template.len();
    let memory = sys::mmap(-1, len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)?;
    // SAFETY: fresh private memory of `len` bytes, unmapped below.
    let bytes = unsafe { core::slice::from_raw_parts_mut(memory, len) };
    bytes.copy_from_slice(template);
    let result = (|| {
        stripewise_layout::stamp(bytes, [at.id, 0]).map_err(|_| Errno(libc::EIO))?;
        let fd = at.create_part(c"layout", libc::O_WRONLY, 0o644)?;
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
fn undo(at: &At) {
    let Ok(view) = at.store.view() else { return };
    let owner = sys::geteuid();
    for target in 0..view.target_count() as u32 {
        for plane in [0, 1] {
            let _ = part::remove_object(at.store, at.id, (target, plane), owner);
        }
    }
    for part in [c"link", c"layout", c"ctl", c"head"] {
        let _ = sys::unlinkat(at.dir, part, 0);
    }
    if let (Ok(files), Ok(name)) = (at.store.files_dir(), part::c(&names::id_name(at.id))) {
        let _ = sys::unlinkat(files, name, libc::AT_REMOVEDIR);
    }
}
