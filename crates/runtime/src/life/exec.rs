//! The environment of a program that is about to start: one that was made anew (`env -i`, a launcher, `clearenv`) lacks the library, and its files
//! would be links to nowhere. What it lacks is added to a copy, from strings taken at start-up: nothing here allocates, so that it works
//! in vfork children and signal handlers.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};
use libc::c_char;
use stripewise_target::text::FixedPath;

/// File name of the library.
const LIBRARY: &[u8] = b"libstripewise.so";
const PRELOAD: &[u8] = b"LD_PRELOAD=";
/// A new environment with this set to 1 stays as it is.
const OFF: &[u8] = b"STRIPEWISE_OFF=1";
const NAMES: [&[u8]; 11] = [
    b"STRIPEWISE_STORE=",
    b"STRIPEWISE_MANAGE=",
    b"STRIPEWISE_PLAN=",
    b"STRIPEWISE_ENGINE=",
    b"STRIPEWISE_ENGINE_BOARD=",
    b"STRIPEWISE_TRACE=",
    b"STRIPEWISE_TRACE_LAYERS=",
    b"STRIPEWISE_LOG=",
    b"STRIPEWISE_MMAP_COPY_BYTES=",
    b"STRIPEWISE_SECCOMP=",
    b"STRIPEWISE_TRUST=",
];

/// What this process was started with, each as `NAME=value`; empty: not at all.
struct Kept {
    preload: FixedPath,
    told: [FixedPath; NAMES.len()],
}

struct Cell(UnsafeCell<Kept>);
// SAFETY: written once, by `start`, before READY is set.
unsafe impl Sync for Cell {}

static KEPT: Cell = Cell(UnsafeCell::new(Kept { preload: FixedPath::new(), told: [const { FixedPath::new() }; NAMES.len()] }));
static READY: AtomicBool = AtomicBool::new(false);

fn kept() -> Option<&'static Kept> {
    // SAFETY: not written any more once READY.
    READY.load(Ordering::Acquire).then(|| unsafe { &*KEPT.0.get() })
}

/// The strings of an environment.
///
/// # Safety
/// `envp` is null or a null-terminated array of C strings.
unsafe fn strings(envp: *const *const c_char) -> impl Iterator<Item = &'static CStr> {
    let mut at = envp;
    core::iter::from_fn(move || {
        // SAFETY: the caller's promise; stops at the closing null.
        unsafe {
            if at.is_null() || (*at).is_null() {
                return None;
            }
            let text = CStr::from_ptr(*at);
            at = at.add(1);
            Some(text)
        }
    })
}

/// Takes this process's own part of the environment for the programs that it will start.
///
/// # Safety
/// `envp` as the loader passes it to constructors; `library` is null or the path that the library was loaded from.
pub unsafe fn start(envp: *const *const c_char, library: *const c_char) {
    if READY.load(Ordering::Acquire) || library.is_null() {
        return;
    }
    // SAFETY: only writer, before READY.
    let kept = unsafe { &mut *KEPT.0.get() };
    // SAFETY: the caller's promise.
    kept.preload.push(PRELOAD).push(unsafe { CStr::from_ptr(library) }.to_bytes());
    // SAFETY: the caller's promise.
    for text in unsafe { strings(envp) }.map(CStr::to_bytes) {
        if let Some((_, into)) = NAMES.iter().zip(&mut kept.told).find(|(name, into)| text.starts_with(name) && into.is_empty()) {
            into.push(text);
        }
    }
    READY.store(true, Ordering::Release);
}

/// Whether a value of LD_PRELOAD names the library.
fn names_library(value: &[u8]) -> bool {
    value.split(|c| matches!(c, b':' | b' ')).any(|entry| entry.rsplit(|c| *c == b'/').next() == Some(LIBRARY))
}

/// What an environment holds of ours.
struct Seen {
    count: usize,
    /// The preload of others, where ours is to go in front.
    others: Option<&'static [u8]>,
    preloaded: bool,
    told: [bool; NAMES.len()],
    off: bool,
}

unsafe fn look(envp: *const *const c_char) -> Seen {
    let mut seen = Seen { count: 0, others: None, preloaded: false, told: [false; NAMES.len()], off: false };
    // SAFETY: the caller's promise.
    for text in unsafe { strings(envp) }.map(CStr::to_bytes) {
        seen.count += 1;
        if let Some(value) = text.strip_prefix(PRELOAD) {
            seen.preloaded |= names_library(value);
            seen.others = Some(value);
        } else if text.starts_with(b"STRIPEWISE_") {
            seen.off |= text == OFF;
            for (name, told) in NAMES.iter().zip(&mut seen.told) {
                *told |= text.starts_with(name);
            }
        }
    }
    seen
}

/// Elements (the closing null included) and bytes of text that the copy needs; no elements: the environment is complete.
///
/// # Safety
/// `envp` is null or a null-terminated array of C strings.
pub unsafe fn environment_size(envp: *const *const c_char) -> (usize, usize) {
    let Some(kept) = kept().filter(|k| k.preload.as_c_str().is_some()) else { return (0, 0) };
    // SAFETY: the caller's promise.
    let seen = unsafe { look(envp) };
    let lacks = kept.told.iter().zip(seen.told).filter(|(text, told)| !told && !text.is_empty()).count();
    if seen.off || seen.preloaded && lacks == 0 {
        return (0, 0);
    }
    let text = if seen.preloaded { 0 } else { kept.preload.len() + 2 + seen.others.map_or(0, <[u8]>::len) };
    (seen.count + lacks + 2, text)
}

/// Fills the copy; false when the environment has grown meanwhile and it does not fit.
///
/// # Safety
/// `envp` as in [`environment_size`]; the strings that the copy points to are those of `envp`, of `text` and statics.
pub unsafe fn fill(envp: *const *const c_char, into: &mut [*const c_char], text: &mut [u8]) -> bool {
    let Some(kept) = kept() else { return false };
    // SAFETY: the caller's promise.
    let seen = unsafe { look(envp) };
    let mut preload = kept.preload.as_c_str().map_or(core::ptr::null(), CStr::as_ptr);
    let others = seen.others.filter(|o| !o.is_empty());
    if let Some(others) = others.filter(|_| !seen.preloaded) {
        let parts = [kept.preload.as_bytes(), b":", others, b"\0"];
        let mut rest = &mut *text;
        for part in parts {
            let Some((here, after)) = rest.split_at_mut_checked(part.len()) else { return false };
            here.copy_from_slice(part);
            rest = after;
        }
        preload = text.as_ptr().cast();
    }
    let mut places = into.iter_mut();
    let mut put = |pointer: *const c_char| places.next().map(|place| *place = pointer).is_some();
    // SAFETY: the caller's promise.
    for string in unsafe { strings(envp) } {
        let replaced = !seen.preloaded && string.to_bytes().starts_with(PRELOAD);
        if !replaced && !put(string.as_ptr()) {
            return false;
        }
    }
    if !seen.preloaded && !put(preload) {
        return false;
    }
    for (told, _) in kept.told.iter().zip(seen.told).filter(|(text, told)| !told && !text.is_empty()) {
        if let Some(told) = told.as_c_str()
            && !put(told.as_ptr())
        {
            return false;
        }
    }
    put(core::ptr::null())
}
