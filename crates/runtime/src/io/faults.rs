//! A target whose device or server fails: counted per target, where `store info` finds it, and named in the library's log. Of quotas and full disks the log
//! tells which target it was, once; to the program they are passed on as they are.

use crate::base::log;
use crate::base::sys::Errno;
use crate::file::File;
use core::sync::atomic::{AtomicU64, Ordering};
use stripewise_layout::Origin;
use stripewise_target::kind::MAX_TARGETS;
use stripewise_target::text::FixedText;

/// Targets of which it was told that they are full, a bit each; of two stores those of one number count as one.
static FULL: [AtomicU64; MAX_TARGETS / 64] = [const { AtomicU64::new(0) }; MAX_TARGETS / 64];

/// True whether the other targets are full or not: to look would take calls that a program's write must not wait for.
const WITHOUT_ROOM: &[u8] =
    b"; 'store rebalance' helps where another target has room, else remove files or 'store add' a target: see 'stripewise store df ";
/// The same of a file that somebody laid out: as long as the template is there, the next one lies as it does.
const WITHOUT_ROOM_WHERE_GIVEN: &[u8] =
    b"; set-layout, a template ('store template ls') or a plan laid the file out: 'store set-layout' and 'store rebalance --all' help where another target has room, else remove files or 'store add' a target: see 'stripewise store df ";

/// Takes note of an error of a call on an object.
#[cold]
pub fn note(file: &'static File, target: u32, errno: Errno) {
    if matches!(errno.0, libc::ENOSPC | libc::EDQUOT) {
        // A program may try again for ever: the log tells of each target once.
        let told = FULL.get(target as usize / 64).map(|bits| bits.fetch_or(1 << (target % 64), Ordering::Relaxed));
        if told.is_none_or(|bits| bits >> (target % 64) & 1 != 0) {
            return;
        }
        let what: &[u8] =
            if errno.0 == libc::EDQUOT { b" has no room for this user, whose quota is full" } else { b" has no room for what was to be written" };
        let is_given = file.current().is_ok_and(|layout| matches!(layout.view.origin(), Origin::Given | Origin::Drained));
        return say(file, target, None, what, if is_given { WITHOUT_ROOM_WHERE_GIVEN } else { WITHOUT_ROOM });
    }
    if !matches!(errno.0, libc::EIO | libc::ENXIO | libc::ENODEV | libc::ESTALE | libc::EREMOTEIO | libc::ETIMEDOUT | libc::ENOTCONN | libc::EUCLEAN)
    {
        return;
    }
    let Ok(store) = file.store() else { return };
    let Some(line) = store.devices().and_then(|d| d.line(target)) else { return };
    line.last_errno.store(errno.0 as u64, Ordering::Relaxed);
    let before = line.io_errors.fetch_add(1, Ordering::Relaxed);
    // A dead disk fails every call: the log tells of the 1st, 2nd, 4th, 8th...
    if (before + 1).is_power_of_two() {
        say(file, target, Some(errno), b" failed with errno ", b"; check its disk or mount, and see 'stripewise store info ");
    }
}

/// `cure` ends within the command that the store's path completes.
fn say(file: &'static File, target: u32, errno: Option<Errno>, what: &[u8], cure: &[u8]) {
    let Ok(store) = file.store() else { return };
    let Some(config) = store.view().ok().and_then(|v| v.target(target as usize)) else { return };
    // Small: a program may have been called on a stack of a few KiB.
    let mut text = FixedText::<512>::from_bytes(b"target ");
    text.push(config.name.as_bytes()).push(what);
    if let Some(errno) = errno {
        text.push_decimal(errno.0 as u64);
    }
    text.push(cure);
    // A word of a shell, which stands in quotes itself.
    for byte in store.path() {
        if !(byte.is_ascii_alphanumeric() || *byte >= 128 || b"@%+=:,./_-".contains(byte)) {
            text.push(b"\\");
        }
        text.push(core::slice::from_ref(byte));
    }
    text.push(b"'");
    log::say(text.as_bytes(), config.path);
}
