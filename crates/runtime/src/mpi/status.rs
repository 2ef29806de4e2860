//! Statuses that calls are given: the program's, or ours where it ignores them.

use super::{Call, library};
use core::ffi::c_void;

/// The status that the call is given.
///
/// # Safety
/// `call` was begun; `status` is the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_status(call: *mut Call, status: *mut c_void) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe {
        let ignored = library::get().is_some_and(|library| library.is_ignored(status));
        (&raw mut (*call).own_status).write([0; 4]);
        let used = if ignored { (&raw mut (*call).own_status).cast() } else { status };
        (*call).status = used;
        used
    }
}

/// The same for an array; `own` is null where the program's many requests do not fit ours.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_statuses(call: *mut Call, statuses: *mut c_void, own: *mut c_void) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe {
        let ignored = library::get().is_some_and(|library| library.is_ignored(statuses));
        let used = if ignored && !own.is_null() { own } else { statuses };
        (*call).status = if ignored { own } else { statuses };
        used
    }
}

/// The MPI error class of a result.
pub(super) fn error_class(result: i32) -> u16 {
    let mut class = result;
    if result != 0
        && let Some(library) = library::get()
    {
        // SAFETY: MPI's prototype.
        unsafe { (library.error_class)(result, &raw mut class) };
    }
    class.clamp(0, i32::from(u16::MAX)) as u16
}
