//! The exec and spawn families: the environment of the new program, the companions that go along with its descriptors, and a hint in the log
//! when it is one that no preloaded library reaches.

use crate::descriptors;
use crate::life::companions;
use crate::life::exec;
use crate::life::unreached;
use libc::c_char;

/// What the copy of an environment needs.
#[repr(C)]
pub struct EnvironmentSize {
    pointers: usize,
    bytes: usize,
}

/// At start-up.
///
/// # Safety
/// `envp` as the loader passes it to constructors; `library` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_exec_start(envp: *const *const c_char, library: *const c_char) {
    // SAFETY: passed through.
    unsafe { exec::start(envp, library) }
}

/// What the copy of an environment takes; nothing: it is complete.
///
/// # Safety
/// `envp` is null or a null-terminated array of C strings, `size` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_exec_environment_size(envp: *const *const c_char, size: *mut EnvironmentSize) {
    // SAFETY: the caller's promise.
    unsafe {
        let (pointers, bytes) = exec::environment_size(envp);
        *size = EnvironmentSize { pointers, bytes };
    }
}

/// The environment for the new program: `envp` itself, or a copy in `pointers` and `text` with what it lacks.
///
/// # Safety
/// `pointers` and `text` are as long as `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_exec_environment(
    envp: *const *const c_char,
    size: *const EnvironmentSize,
    pointers: *mut *const c_char,
    text: *mut u8,
) -> *const *const c_char {
    // SAFETY: the caller's promise.
    unsafe {
        let size = &*size;
        if size.pointers == 0 {
            return envp;
        }
        let copy = core::slice::from_raw_parts_mut(pointers, size.pointers);
        let text = core::slice::from_raw_parts_mut(text, size.bytes);
        if exec::fill(envp, copy, text) { pointers.cast_const() } else { envp }
    }
}

/// Before an exec; `search`: the name is looked for in PATH.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_exec_begin(name: *const c_char, search: i32) {
    companions::begin_exec();
    crate::base::guard::before_exec();
    // SAFETY: the caller's promise.
    unsafe { unreached::hint(name, search != 0) };
}

/// daemon and its kin have put other files behind the standard descriptors.
#[unsafe(no_mangle)]
pub extern "C" fn sw_rewired() {
    descriptors::rewired();
}

/// An exec came back.
#[unsafe(no_mangle)]
pub extern "C" fn sw_exec_failed() {
    companions::exec_failed();
    crate::base::guard::exec_failed();
}

/// Before a spawn; `rewired`: the child will close and duplicate descriptors before it starts.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_spawn_begin(name: *const c_char, search: i32, rewired: i32) {
    companions::begin_spawn(rewired != 0);
    crate::base::guard::before_exec();
    // SAFETY: the caller's promise.
    unsafe { unreached::hint(name, search != 0) };
}

/// After a spawn.
#[unsafe(no_mangle)]
pub extern "C" fn sw_spawn_end(rewired: i32) {
    companions::end_spawn(rewired != 0);
    crate::base::guard::exec_failed();
}

/// exit and _exit.
#[unsafe(no_mangle)]
pub extern "C" fn sw_process_ends() {
    crate::file::leave();
}
