//! What the C library's streams need: opening by name when the file is managed, and word when a managed file arrives behind standard
//! input, output or error. The streams themselves are the shim's (shim/streams/stream.c).

use crate::base::process::in_vfork_child;
use crate::base::sys::{Errno, Sys, to_c};
use crate::open::{Kind, by_name, of_fd};
use crate::trace;
use core::ffi::CStr;
use libc::c_char;

unsafe extern "C" {
    fn sw_standard(fd: i32);
}

/// fopen: the descriptor of a managed file, or "not ours" with nothing opened.
///
/// # Safety
/// `path` is a C string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_stream_open(path: *const c_char, flags: i32, mode: u32) -> i64 {
    let start = trace::begin();
    // SAFETY: the caller's promise.
    let (result, kind) = match super::called_by_name(|| unsafe { by_name::open_if_managed(path, flags, mode) }) {
        Ok(None) => {
            if flags & (libc::O_ACCMODE | libc::O_TRUNC) != libc::O_RDONLY {
                // The C library opens it inside itself. SAFETY: the caller's promise.
                unsafe { crate::copies::name_changes(libc::AT_FDCWD, path) };
            }
            return super::PASS;
        }
        Ok(Some((fd, kind))) => (Ok(fd), kind),
        Err(errno) => (Err(errno), Kind::MANAGED),
    };
    if start != 0 && !matches!(result, Err(Errno(libc::EFAULT | libc::ENAMETOOLONG))) {
        // SAFETY: the kernel has read it.
        by_name::record(unsafe { CStr::from_ptr(path) }, libc::AT_FDCWD, flags, &result, kind, start);
    }
    to_c(result)
}

/// The result of a call that made a descriptor: when it put a managed file behind 0, 1 or 2, the C library's stream for that number can
/// no longer serve it, and the shim puts another in its place.
pub fn arrived(result: Sys<i64>) -> i64 {
    if let Ok(fd @ 0..=2) = result
        && of_fd(fd as i32).is_ok()
        && !in_vfork_child()
    {
        // SAFETY: one of the three numbers.
        unsafe { sw_standard(fd as i32) };
    }
    to_c(result)
}
