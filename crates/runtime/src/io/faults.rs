//! A target whose device or server fails: counted per target, where `store info` finds it, and named in the library's log. Quotas and
//! full disks are the program's to know and are passed on as they are.

use crate::base::log;
use crate::base::sys::Errno;
use crate::file::File;
use core::sync::atomic::Ordering;
use stripewise_target::text::FixedPath;

/// Takes note of an error of a call on an object.
#[cold]
pub fn note(file: &'static File, target: u32, errno: Errno) {
    if !matches!(errno.0, libc::EIO | libc::ENXIO | libc::ENODEV | libc::ESTALE | libc::EREMOTEIO | libc::ETIMEDOUT | libc::ENOTCONN | libc::EUCLEAN)
    {
        return;
    }
    let Ok(store) = file.store() else { return };
    let Some(line) = store.devices().and_then(|d| d.line(target)) else { return };
    line.last_errno.store(errno.0 as u64, Ordering::Relaxed);
    let before = line.io_errors.fetch_add(1, Ordering::Relaxed);
    // A dead disk fails every call: the log tells of the 1st, 2nd, 4th, 8th...
    if let Some(config) = store.view().ok().and_then(|v| v.target(target as usize))
        && (before + 1).is_power_of_two()
    {
        let mut text = FixedPath::from_bytes(b"target ");
        text.push(config.name.as_bytes()).push(b" failed with errno ").push_decimal(errno.0 as u64);
        text.push(b"; see `stripewise store info`, and check its disk or mount");
        log::say(text.as_bytes(), config.path);
    }
}
