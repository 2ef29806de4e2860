//! What this process was told (STRIPEWISE_STORE, _MANAGE, _TRACE, _LOG, _SECCOMP) and its life: start, descriptors inherited across exec, fork.

use crate::fds;
use crate::file;
use crate::heads;
use crate::limit;
use crate::lock::Lock;
use crate::map;
use crate::open;
use crate::rings;
use crate::store;
use crate::sys;
use crate::tls;
use crate::trace;
use crate::wiped::{self, PAGE};
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};
use stripewise_store::names::{FixedPath, FixedText, ProcPath, parse_id};

struct Told {
    store: FixedPath,
    manage: FixedPath,
    trace: FixedPath,
    log: FixedPath,
    trust: TrustList,
    /// Device and inode of the store's directory at the start; zeros: it was not there.
    store_identity: (u64, u64),
    /// See [`is_emulator`].
    emulator: bool,
}

/// The user's list of stores (`STRIPEWISE_TRUST`); one that is longer counts as empty.
type TrustList = FixedText<{ stripewise_store::trust::LIST_BYTES_MAX }>;

struct Cell(UnsafeCell<Told>);
// SAFETY: written once, by `start`, before READY is set.
unsafe impl Sync for Cell {}

static TOLD: Cell = Cell(UnsafeCell::new(Told {
    store: FixedPath::new(),
    manage: FixedPath::new(),
    trace: FixedPath::new(),
    log: FixedPath::new(),
    trust: TrustList::new(),
    store_identity: (0, 0),
    emulator: false,
}));
static READY: AtomicBool = AtomicBool::new(false);

fn told() -> Option<&'static Told> {
    // SAFETY: not written any more once READY.
    READY.load(Ordering::Acquire).then(|| unsafe { &*TOLD.0.get() })
}

fn if_any(path: &FixedPath) -> Option<&[u8]> {
    (!path.is_empty()).then(|| path.as_bytes())
}

/// The process id as of start or fork; differs from the kernel's answer in a vfork child.
pub fn pid() -> u32 {
    wiped::notice_fork();
    PAGE.pid.load(Ordering::Acquire)
}

/// A child of vfork closes and duplicates in its own descriptor table but in its parent's memory: only the kernel's table may change.
pub fn in_vfork_child() -> bool {
    sys::getpid() != pid()
}

/// What would leave the parent of a vfork child descriptors that only the child has is refused there.
pub fn refuse_vfork_child() -> sys::Sys<()> {
    if !in_vfork_child() {
        return Ok(());
    }
    crate::log::say(
        b"a child of vfork may use the managed files that its parent has open, but open no others; open them before, or use fork",
        b"vfork",
    );
    Err(sys::Errno(libc::EOPNOTSUPP))
}

/// The store that new files go to.
pub fn store_path() -> Option<&'static [u8]> {
    told().and_then(|t| if_any(&t.store))
}

/// Patterns of this run, colon-separated; empty: the store's rules count.
pub fn manage_globs() -> &'static [u8] {
    told().map_or(&[], |t| t.manage.as_bytes())
}

/// The trace directory.
pub fn trace_dir() -> Option<&'static [u8]> {
    told().and_then(|t| if_any(&t.trace))
}

/// Device and inode that the directory of that store had when the process began.
pub fn store_identity() -> Option<(u64, u64)> {
    told().map(|t| t.store_identity).filter(|identity| *identity != (0, 0))
}

/// Stores that the user has listed, between colons.
pub fn trusted() -> &'static [u8] {
    told().map_or(&[], |t| t.trust.as_bytes())
}

/// Whether this process is QEMU's user-mode emulator. The program that it runs loads the library itself, and would find its calls carried out twice.
pub fn is_emulator() -> bool {
    told().is_some_and(|t| t.emulator)
}

/// The file for our own messages.
pub fn log_path() -> Option<&'static CStr> {
    told().filter(|t| !t.log.is_empty()).and_then(|t| t.log.as_c_str())
}

/// Reads an environment variable.
///
/// # Safety
/// `environ` is a null-terminated array of C strings that nobody changes yet.
pub unsafe fn variable(environ: *const *const libc::c_char, name: &[u8]) -> Option<&'static [u8]> {
    // SAFETY: the caller's promise.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            let text = CStr::from_ptr(*at).to_bytes();
            if let Some(value) = text.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
                return Some(value);
            }
            at = at.add(1);
        }
    }
    None
}

unsafe fn number(environ: *const *const libc::c_char, names: &[&[u8]]) -> i32 {
    // SAFETY: the caller's promise.
    let text = names.iter().find_map(|name| unsafe { variable(environ, name) });
    text.and_then(|t| core::str::from_utf8(t).ok()?.parse().ok()).unwrap_or(-1)
}

/// The constructor, with the environment that the process was started with.
///
/// # Safety
/// `environ` is the null-terminated array of C strings that the loader passes to constructors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_start(environ: *const *const libc::c_char) {
    if READY.load(Ordering::Acquire) {
        return;
    }
    // A program with more rights than whoever started it believes none of his environment (the loader would not even have loaded us by it).
    // SAFETY: no preconditions.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return;
    }
    wiped::start();
    // The first look at the clock looks for the vDSO, through the loader: not later in a signal handler or in a fork's child.
    let _ = stripewise_store::devices::now_ns();
    PAGE.pid.store(sys::getpid(), Ordering::Release);
    // SAFETY: only writer, before READY.
    let told = unsafe { &mut *TOLD.0.get() };
    let mut text = [0u8; 4096];
    // The emulator shows its program another name here: the program's.
    if sys::readlinkat(libc::AT_FDCWD, c"/proc/self/exe", &mut text).is_ok_and(emulates_this_machine) {
        told.emulator = true;
        READY.store(true, Ordering::Release);
        return;
    }
    for (name, into) in [
        (&b"STRIPEWISE_STORE"[..], &mut told.store),
        (b"STRIPEWISE_MANAGE", &mut told.manage),
        (b"STRIPEWISE_TRACE", &mut told.trace),
        (b"STRIPEWISE_LOG", &mut told.log),
    ] {
        // SAFETY: the caller's promise.
        if let Some(value) = unsafe { variable(environ, name) } {
            into.push(value);
        }
    }
    if let Some(st) = told.store.as_c_str().filter(|store| !store.is_empty()).and_then(|store| sys::stat(store, 0).ok()) {
        told.store_identity = (st.st_dev, st.st_ino);
    }
    // SAFETY: the caller's promise.
    if let Some(list) = unsafe { variable(environ, b"STRIPEWISE_TRUST") } {
        told.trust.push(list);
    }
    // SAFETY: as above.
    if let Some(bytes) = unsafe { variable(environ, b"STRIPEWISE_MMAP_COPY_BYTES") } {
        map::limit_copies(bytes);
    }
    // SAFETY: the caller's promise.
    let filtered = unsafe { variable(environ, b"STRIPEWISE_SECCOMP") } == Some(b"1");
    READY.store(true, Ordering::Release);
    if filtered {
        rings::filter();
    }
    limit::sw_limit_changed();
    if let Some(dir) = told.trace.as_c_str().filter(|d| !d.is_empty()) {
        // SAFETY: the caller's promise.
        let number = |names: &[&[u8]]| unsafe { number(environ, names) };
        let rank = number(&[b"PMI_RANK", b"PMIX_RANK", b"OMPI_COMM_WORLD_RANK", b"SLURM_PROCID"]);
        let world = number(&[b"PMI_SIZE", b"OMPI_COMM_WORLD_SIZE", b"SLURM_NTASKS"]);
        let mut command = [0u8; 1024];
        let command = sys::read_file(c"/proc/self/cmdline", &mut command).unwrap_or(&[]);
        trace::start(dir, rank, world, command);
    }
    inherit();
}

/// Whether a program is QEMU's user-mode emulator of the architecture that the library is for (`qemu-x86_64`, `qemu-x86_64-static`).
pub fn emulates_this_machine(program: &[u8]) -> bool {
    let name = program.rsplit(|c| *c == b'/').next().unwrap_or(program);
    let emulated = name.strip_prefix(b"qemu-").map(|rest| rest.strip_suffix(b"-static").unwrap_or(rest));
    emulated == Some(std::env::consts::ARCH.as_bytes())
}

/// Finds managed descriptors that came across exec: by what the kernel knows of them, no table has to be handed on.
fn inherit() {
    const MOST: usize = 1024;
    let mut found: [(i32, bool); MOST] = [(-1, false); MOST];
    let mut used = 0;
    let _ = sys::for_each_name(c"/proc/self/fd", |name| {
        let Some(fd) = core::str::from_utf8(name).ok().and_then(|n| n.parse::<i32>().ok()) else { return };
        let mut text = [0u8; 4096];
        let programs = is_programs(fd);
        // A companion bears its mark; without one it is a plain descriptor, of a head or not, that the program was given.
        if !programs && open::tag_of(fd) == 0 || head_of(fd, &mut text).is_none() {
            return;
        }
        if let Some(slot) = found.get_mut(used) {
            *slot = (fd, programs);
            used += 1;
        }
    });
    let found = found.get_mut(..used).unwrap_or(&mut []);
    // Those without a tag (O_PATH, where a right is missing) take what companions the others leave.
    for tagged in [true, false] {
        for i in 0..found.len() {
            let Some(&(fd, true)) = found.get(i) else { continue };
            if fds::entry(fd) == 0 && (open::tag_of(fd) != 0) == tagged {
                adopt(fd, found);
            }
        }
    }
    // Companions whose descriptors did not come along; those of a store that this process does not use are left alone.
    for &(fd, programs) in found.iter() {
        let mut text = [0u8; 4096];
        if !programs && fds::entry(fd) == 0 && named_head(fd, &mut text).is_some_and(|(path, _)| store::attach(path).is_ok()) {
            sys::close(fd);
        }
    }
}

/// Whether a descriptor is of the kind that the program has of a managed file, and not a companion.
pub fn is_programs(fd: i32) -> bool {
    let how = sys::fcntl(fd, libc::F_GETFL, 0).unwrap_or(0) as i32;
    how & libc::O_PATH != 0 || how & libc::O_ACCMODE == 3
}

/// Store path and id of the head that a descriptor refers to.
pub fn head_of(fd: i32, text: &mut [u8; 4096]) -> Option<(&[u8], u64)> {
    named_head(fd, text).filter(|(store, id)| heads::is_head(fd, store, *id))
}

/// The same by its path alone, where it was looked at before.
fn named_head(fd: i32, text: &mut [u8; 4096]) -> Option<(&[u8], u64)> {
    let mut link = ProcPath::from_bytes(b"/proc/self/fd/");
    link.push_decimal(fd as u64);
    let target = sys::readlinkat(libc::AT_FDCWD, link.as_c_str()?, text).ok()?;
    parse_head(target)
}

/// Store path and id of a head's path.
pub fn parse_head(target: &[u8]) -> Option<(&[u8], u64)> {
    let dir = target.strip_suffix(b"/head")?;
    let slash = dir.iter().rposition(|c| *c == b'/')?;
    let id = parse_id(dir.get(slash + 1..)?)?;
    let store = dir.get(..slash)?.strip_suffix(b"/files")?;
    Some((store, id))
}

/// Takes over one of the program's descriptors, with its dups and its companion (equal tags on the same head).
fn adopt(fd: i32, found: &[(i32, bool)]) {
    let mut text = [0u8; 4096];
    let Some((path, id)) = named_head(fd, &mut text) else { return };
    let Ok(store) = store::attach(path) else { return };
    let tag = open::tag_of(fd);
    let same = |other: i32| {
        let mut text = [0u8; 4096];
        named_head(other, &mut text) == Some((path, id)) && (tag == 0 || open::tag_of(other) == tag)
    };
    let fits = |other: i32| fds::entry(other) == 0 && open::flags_agree(fd, other) && same(other);
    let companion = found.iter().find(|(other, programs)| !programs && fits(*other)).map(|(other, _)| *other);
    if tag == 0 && companion.is_none() {
        // A dup of one that was adopted before: its companion is theirs.
        let twin = |other: &&(i32, bool)| other.1 && fds::entry(other.0) != 0 && open::tag_of(other.0) == 0 && same(other.0);
        if let Some((twin, _)) = found.iter().find(twin) {
            let place = fds::entry(*twin);
            open::retain(place);
            fds::set_entry(fd, place);
            return;
        }
    }
    let Ok(place) = open::inherit(store, id, fd, companion) else { return };
    for (other, programs) in found {
        let dup = || sys::same_open_file(fd, *other).unwrap_or(tag != 0);
        if *programs && *other != fd && fds::entry(*other) == 0 && same(*other) && dup() {
            open::retain(place);
            fds::set_entry(*other, place);
        }
    }
}

/// Locks that a fork holds, in the order in which they are taken.
fn held_by_forks() -> [&'static Lock; 2] {
    [map::records::table_lock(), file::table_lock()]
}

/// Before a fork that runs no handlers, in the parent.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fork_bare() {
    open::share_all();
    file::before_fork();
}

/// Before fork, in the parent: no other thread is in the middle of changing a table that the child gets.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fork_prepare() {
    open::share_all();
    file::before_fork();
    let held = held_by_forks().iter().enumerate().fold(0, |held, (bit, lock)| held | u64::from(lock.hold()) << bit);
    // SAFETY: only this thread touches its block.
    unsafe { (*tls::thread()).held = held };
}

/// After fork, in the parent.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fork_parent() {
    // SAFETY: only this thread touches its block.
    let held = unsafe { core::mem::take(&mut (*tls::thread()).held) };
    held_by_forks().iter().enumerate().filter(|(bit, _)| held >> bit & 1 != 0).for_each(|(_, lock)| lock.go_on());
}

/// After fork, in the child: threads, slots and logs of the parent are not ours.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fork_child() {
    PAGE.pid.store(sys::getpid(), Ordering::Release);
    tls::after_fork();
    file::after_fork();
    open::after_fork();
    store::after_fork();
    map::after_fork();
    trace::after_fork();
}

/// The process id is not known: before start, or in the child of a fork without handlers.
#[cold]
pub fn forked() {
    if READY.load(Ordering::Acquire) {
        open::share_all();
        sw_fork_child();
    } else {
        PAGE.pid.store(sys::getpid(), Ordering::Release);
    }
}

/// When a thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn sw_thread_exit() {
    trace::at_thread_exit();
    tls::thread_exit();
}
