//! What this process was told (STRIPEWISE_STORE, _MANAGE, _PLAN, _ENGINE, _ENGINE_BOARD, _TRACE, _LOG, _TRUST), as it was when it began.

use crate::base::sys;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};
use stripewise_target::text::{FixedPath, FixedText};

struct Told {
    store: FixedPath,
    manage: FixedPath,
    trace: FixedPath,
    log: FixedPath,
    trust: TrustList,
    /// See [`plan`].
    plan: u64,
    /// See [`has_engine`].
    engine: bool,
    /// See [`engine_board`].
    board: FixedPath,
    /// See [`is_spawned`], [`namespace`].
    spawned: bool,
    namespace: FixedText<256>,
    /// Device and inode of the store's directory at the start; zeros: it was not there.
    store_identity: (u64, u64),
    /// See [`is_emulator`].
    emulator: bool,
}

/// The user's list of stores (`STRIPEWISE_TRUST`); one that is longer counts as empty.
type TrustList = FixedText<{ stripewise_store::trust::LIST_BYTES_MAX }>;

struct Cell(UnsafeCell<Told>);
// SAFETY: written once, by `read`, before READY is set.
unsafe impl Sync for Cell {}

static TOLD: Cell = Cell(UnsafeCell::new(Told {
    store: FixedPath::new(),
    manage: FixedPath::new(),
    trace: FixedPath::new(),
    log: FixedPath::new(),
    trust: TrustList::new(),
    plan: 0,
    engine: false,
    board: FixedPath::new(),
    spawned: false,
    namespace: FixedText::new(),
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

/// Whether it has been read.
pub fn is_read() -> bool {
    READY.load(Ordering::Acquire)
}

/// Reads it; false for an emulator, which is told nothing.
///
/// # Safety
/// As [`variable`]; nobody else calls this at the same time, and it has not been called before.
pub unsafe fn read(environ: *const *const libc::c_char) -> bool {
    // SAFETY: only writer, before READY.
    let told = unsafe { &mut *TOLD.0.get() };
    let mut text = [0u8; 4096];
    // The emulator shows its program another name here: the program's.
    if sys::readlinkat(libc::AT_FDCWD, c"/proc/self/exe", &mut text).is_ok_and(emulates_this_machine) {
        told.emulator = true;
        READY.store(true, Ordering::Release);
        return false;
    }
    for (name, into) in [
        (&b"STRIPEWISE_STORE"[..], &mut told.store),
        (b"STRIPEWISE_MANAGE", &mut told.manage),
        (b"STRIPEWISE_TRACE", &mut told.trace),
        (b"STRIPEWISE_LOG", &mut told.log),
        (b"STRIPEWISE_ENGINE_BOARD", &mut told.board),
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
    let plan = unsafe { variable(environ, b"STRIPEWISE_PLAN") };
    told.plan = plan.and_then(|digits| core::str::from_utf8(digits).ok()).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
    // SAFETY: the caller's promise.
    told.spawned = unsafe { variable(environ, b"PMI_SPAWNED") }.is_some();
    // SAFETY: the caller's promise.
    if let Some(name) = unsafe { variable(environ, b"PMIX_NAMESPACE") } {
        told.namespace.push(name);
    }
    // SAFETY: the caller's promise.
    told.engine = unsafe { variable(environ, b"STRIPEWISE_ENGINE") } == Some(b"1");
    // SAFETY: the caller's promise.
    if let Some(list) = unsafe { variable(environ, b"STRIPEWISE_TRUST") } {
        told.trust.push(list);
    }
    READY.store(true, Ordering::Release);
    true
}

/// The store that new files go to.
pub fn store_path() -> Option<&'static [u8]> {
    told().and_then(|t| if_any(&t.store))
}

/// Patterns of this run, colon-separated; empty: the store's rules count.
pub fn manage_globs() -> &'static [u8] {
    told().map_or(&[], |t| t.manage.as_bytes())
}

/// The kept plan that this run follows, for the layouts of new files; 0: none.
pub fn plan() -> u64 {
    told().map_or(0, |t| t.plan)
}

/// Whether new files take the stripes that a program asks MPI-IO for, and collective calls are made in the mode that suits.
pub fn has_engine() -> bool {
    told().is_some_and(|t| t.engine)
}

/// The memory in which the processes of the run decide how collective calls are made.
pub fn engine_board() -> Option<&'static CStr> {
    told().filter(|t| !t.board.is_empty()).and_then(|t| t.board.as_c_str())
}

/// Whether MPICH's process manager has started this process for one that spawns others, into a world of their own.
pub fn is_spawned() -> bool {
    told().is_some_and(|t| t.spawned)
}

/// The job's name with a process manager of PMIx (Open MPI's, and of batch systems), which no other job has; a longer one counts as none.
pub fn namespace() -> Option<&'static [u8]> {
    told().map(|t| t.namespace.as_bytes()).filter(|name| !name.is_empty())
}

/// The trace directory.
pub fn trace_dir() -> Option<&'static CStr> {
    told().filter(|t| !t.trace.is_empty()).and_then(|t| t.trace.as_c_str())
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

/// Whether a program is QEMU's user-mode emulator of the architecture that the library is for (`qemu-x86_64`, `qemu-x86_64-static`).
pub fn emulates_this_machine(program: &[u8]) -> bool {
    let name = program.rsplit(|c| *c == b'/').next().unwrap_or(program);
    let emulated = name.strip_prefix(b"qemu-").map(|rest| rest.strip_suffix(b"-static").unwrap_or(rest));
    emulated == Some(std::env::consts::ARCH.as_bytes())
}
