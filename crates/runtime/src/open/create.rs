//! New managed files. The name (a symbolic link) comes last and is the claim: before it nobody can see the file, and a kill leaves
//! only an entry that fsck recognises as a creation that was never finished.

use crate::base::config;
use crate::base::locks;
use crate::base::process;
use crate::base::sys::{self, Errno, Sys};
use crate::file::access;
use crate::file::{self, New, Raw};
use crate::names as managed;
use crate::open::striping::{self, Asked, Told};
use crate::store::part::{self, At, Directory, Held, Stat, Transient};
use crate::store::room::Chosen;
use crate::store::{self, Attached};
use core::cell::Cell;
use core::ffi::CStr;
use core::sync::atomic::Ordering;
use stripewise_layout::{Striping, View};
use stripewise_store::bin::Action;
use stripewise_store::ctl::FLAG_UNLINKED;
use stripewise_store::names::{self, glob_matches, link_text};
use stripewise_store::rights::Part;
use stripewise_target::text::{FixedPath, FixedText, ProcPath};

/// Where a new file goes, if it is to be managed.
pub struct Place {
    store: &'static Attached,
    path: FixedPath,
    layout: &'static [u8],
    /// Somebody gave it: a kept plan, a rule of the store.
    is_given: bool,
    /// Other stripes that it was asked for, and what became of that.
    asked: Option<Asked>,
    told: Cell<Told>,
}

/// Whether a file that does not exist yet is to be managed: by the run's patterns (`STRIPEWISE_MANAGE`), else by the store's rules.
/// A kept plan says how it lies then, not whether.
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
    if !managed {
        return Ok(None);
    }
    let (layout, is_given) = match store.plan().and_then(|plan| plan.rule_for(name)).or(rule) {
        Some(rule) if rule.action == Action::Manage && !rule.layout.is_empty() => (rule.layout, true),
        _ => (view.default_layout(), false),
    };
    let asked = striping::asked(name);
    Ok(Some(Place { store, path: absolute, layout, is_given, asked, told: Cell::new(Told::Nothing) }))
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
    let store = place.store;
    let files = store.files_dir()?;
    let id = loop {
        let id = sys::random_u64();
        let name = names::id_name(id);
        match sys::mkdirat(files, part::c(&name)?, Part::Dir.mode(0)) {
            Ok(_) => break id,
            Err(Errno(libc::EEXIST)) => {}
            Err(errno) => return Err(errno),
        }
    };
    let dir = open_new_dir(store, id).inspect_err(|_| {
        let _ = part::c(&names::id_name(id)).and_then(|name| sys::unlinkat(files, name, libc::AT_REMOVEDIR));
    })?;
    let created = begin(place, id, dir, mode)?;
    let named = file::get(created.index).ok_or(Errno(libc::EIO)).and_then(file::File::at).and_then(|at| name(place, &at));
    named.inspect_err(|_| abandon(created.index))?;
    if let Some(asked) = &place.asked {
        striping::say(store.path(), asked, place.told.get());
    }
    Ok(created)
}

/// The directory of a new file, open for reading.
fn open_new_dir(store: &'static Attached, id: u64) -> Sys<Directory> {
    let dir = part::open_dir_to_lock(store, id)?;
    // A umask may leave its own maker no right to read it.
    if dir.is_readable { Ok(dir) } else { open_own(store, id, &dir.fd) }
}

/// A mover may have found it by now: it goes as a file that is unlinked does, with its last user.
fn abandon(index: u32) {
    if let Some(ctl) = file::get(index).and_then(file::File::ctl) {
        ctl.header().flags.fetch_or(FLAG_UNLINKED, Ordering::SeqCst);
    }
    file::release(index);
}

fn open_own(store: &'static Attached, id: u64, dir: &Held) -> Sys<Directory> {
    let mut path = ProcPath::from_bytes(b"/proc/self/fd/");
    path.push_decimal(dir.fd() as u64);
    sys::chmod(c(&path)?, Part::Dir.mode(0))?;
    part::open_dir_to_lock(store, id).and_then(|dir| if dir.is_readable { Ok(dir) } else { Err(Errno(libc::EACCES)) })
}

/// All parts of it but its name.
#[inline(never)] // As above.
fn begin(place: &Place, id: u64, dir: Directory, mode: u32) -> Sys<Created> {
    let store = place.store;
    let at = At { dir: dir.fd.fd(), store, id, head: None };
    let made = write_layout(&at, place).and_then(|layout| Ok((make_head(place, &at, &dir.stat, mode)?, layout)));
    let (made, layout) = made.inspect_err(|_| undo(store, id))?;
    let index = match file::acquire_new(store, id, New { dir: dir.fd, head: made.head, layout }) {
        // A verb that goes through the store has it for a moment.
        Err(locks::IN_USE | locks::IN_USE_BY_OTHERS) => file::acquire(store, id),
        acquired => acquired,
    };
    let index = index.inspect_err(|_| undo(store, id))?;
    let complete = file::get(index).ok_or(Errno(libc::EIO)).and_then(|file| {
        hold_targets(file)?;
        file.is_being_made.store(true, Ordering::Relaxed);
        let done = if !made.inherits && file.may_lack_objects_by_mode(made.head.st_uid, made.wanted)? {
            Ok(())
        } else {
            access::make_before(file, made.head.st_uid, made.wanted)
        };
        file.is_being_made.store(false, Ordering::Relaxed);
        done?;
        // The umask may take from a part even what its owner must have.
        if made.inherits || made.wanted & 0o600 != 0o600 { access::spread(file) } else { Ok(()) }
    });
    let late_mode = (made.wanted & 0o600 != 0o600).then_some(made.wanted);
    complete.map(|()| Created { index, late_mode }).inspect_err(|_| {
        abandon(index);
        undo(store, id);
    })
}

/// Head of a new file.
struct Made {
    head: libc::stat,
    /// The mode that it is to have.
    wanted: u32,
    /// Its rights are more than its mode and its maker.
    inherits: bool,
}

#[inline(never)] // As above.
fn make_head(place: &Place, at: &At, dir: &Stat, mode: u32) -> Sys<Made> {
    let store = at.store;
    // The umask counts for head, as for any file that the program makes.
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let fd = Held::from_raw(sys::openat(at.dir, c"head", flags, mode & 0o7777)?);
    let mut head = sys::fstat(fd.fd())?;
    // What a store's owner has his directories pass on (a default ACL, a group) is none of the file's rights.
    let is_others = store.owner() != 0 && store.owner() != sys::geteuid();
    let from = access::passes_on(&place.path)?;
    let inherits = is_others || from.is_some();
    if inherits {
        let pinned = at.pin_head()?;
        if is_others {
            access::forget_inherited(&pinned, mode & 0o7777)?;
        }
        if let Some(directory) = from {
            access::inherit(&place.path, &directory, mode & 0o7777, &pinned)?;
        }
        head = sys::fstat(fd.fd())?;
    }
    let wanted = head.st_mode & 0o7777;
    // Of the group that may write the file.
    if Part::Dir.mode(wanted) != Part::Dir.mode(0) && dir.st_gid != head.st_gid {
        sys::chownat(at.dir, c"", u32::MAX, head.st_gid, libc::AT_EMPTY_PATH)?;
    }
    // Others reach the file through this directory, whatever the umask; what they may do there is head's to say.
    if dir.st_mode & 0o7777 != Part::Dir.mode(wanted) {
        sys::fchmod(at.dir, Part::Dir.mode(wanted))?;
    }
    if wanted & 0o600 != 0o600 {
        sys::fchmod(fd.fd(), wanted | 0o600)?;
        head = sys::fstat(fd.fd())?;
    }
    Ok(Made { head, wanted, inherits })
}

#[inline(never)] // As above.
fn name(place: &Place, at: &At) -> Sys<()> {
    sys::symlinkat(c(&link_text(at.store.path(), at.id))?, libc::AT_FDCWD, c(&place.path)?)?;
    match managed::record_first_link(at, &place.path) {
        // Another process has renamed or removed it already: from the moment of the link on the file is everybody's.
        Err(Errno(libc::ENOENT)) => Ok(()),
        recorded => recorded.map(|link| link.note_own()),
    }
}

/// A target that is not there, or not the store's, is told of now and not when the file has grown to it.
fn hold_targets(file: &'static file::File) -> Sys<()> {
    let passed = crate::gate::for_read(file)?;
    passed.loaded.objects().try_for_each(|(target, _)| file.store()?.target(target).map(|_| ()))
}

#[inline(never)] // As above.
fn write_layout(at: &At, place: &Place) -> Sys<Raw> {
    let chosen = match &place.asked {
        Some(asked) if asked.is_something() => as_asked(at, place, asked)?,
        _ => at.store.layout_for(place.layout, at.id)?,
    };
    let layout = match &chosen.spread {
        None => Raw::of_new(chosen.template, at.id, at.store)?,
        Some(spread) => Raw::of_spread(spread, at.id, at.store)?,
    };
    let fd = Held::from_raw(at.create_part(c"layout", libc::O_WRONLY, 0o644)?);
    if sys::write(fd.fd(), layout.bytes())? == layout.bytes().len() { Ok(layout) } else { Err(Errno(libc::ENOSPC)) }
}

/// The layout of a file that was asked for in some stripes. What somebody has given counts more: he may have measured it.
#[cold]
#[inline(never)] // As above.
fn as_asked(at: &At, place: &Place, asked: &Asked) -> Sys<Chosen> {
    let own = View::parse(place.layout).ok().and_then(|view| view.home().region(0)?.stripes().map(|(_, width_bytes)| width_bytes).max());
    let striping = asked.stripes(own.unwrap_or(0));
    let told = if place.is_given {
        Told::Given
    } else if striping == Striping::default() {
        // What it is meant for asks for no other stripes.
        Told::Nothing
    } else {
        match at.store.layout_asked(place.layout, &striping, at.id)? {
            Ok(spread) => {
                let width_bytes = spread.stripes().next().map_or(0, |(_, width_bytes)| width_bytes);
                place.told.set(Told::Got(spread.stripes().count() as u32, width_bytes));
                return Ok(Chosen { template: place.layout, spread: Some(spread) });
            }
            Err(why) => Told::Refused(why),
        }
    };
    place.told.set(told);
    at.store.layout_for(place.layout, at.id)
}

/// Takes back what a failed creation made.
#[inline(never)] // Its buffers would lie on the stack below what is done after it.
fn undo(store: &'static Attached, id: u64) {
    let (Ok(view), Ok(at)) = (store.view(), Transient::open(store, id)) else { return };
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
