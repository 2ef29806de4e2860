//! Files whose last name has gone: freed by the last close.

use super::File;
use crate::base::sys::{self, Errno};
use crate::store::part::{self, At};
use core::ffi::CStr;
use core::sync::atomic::Ordering;
use stripewise_store::names;

/// The last close in this process of an unlinked file: when no other process has it open, it goes for good.
#[inline(never)] // Threads may have small stacks: what one step needs must not lie below the next.
pub fn remove_if_last(file: &'static File) {
    if !file.is_last() {
        return;
    }
    let (Ok(at), Ok(loaded)) = (file.at(), file.current()) else { return };
    let (At { dir, store, id, .. }, name) = (at, names::id_name(file.id()));
    let Ok(owner) = at.head_stat().map(|head| head.st_uid) else { return };
    let (Ok(name), Ok(files), Ok(trash)) = (part::c(&name), store.files_dir(), store.trash_dir()) else { return };
    // From here on a kill leaves an entry in the trash, which gc finishes. It is this directory, and no other that somebody has put in its place.
    let is_same =
        || sys::lstat_at(files, name).is_ok_and(|named| sys::fstat(dir).is_ok_and(|own| (own.st_dev, own.st_ino) == (named.st_dev, named.st_ino)));
    if store.is_common() && !is_same() {
        return;
    }
    let parent = match sys::renameat(files, name, trash.fd(), name) {
        Ok(_) => trash.fd(),
        // Somebody has taken its name in the trash, or the trash itself: it goes from where it is.
        Err(Errno(libc::ENOENT | libc::EEXIST | libc::ENOTEMPTY | libc::EPERM | libc::EACCES | libc::ENOTDIR)) => files,
        Err(_) => return,
    };
    for target in (0..loaded.view.target_count()).filter(|t| loaded.view.uses_target(*t)) {
        for plane in [0, 1] {
            let _ = part::remove_object(store, id, (target, plane), owner);
        }
        if let Some(line) = store.devices().and_then(|d| d.line(target)) {
            line.used_bytes.store(u64::MAX, Ordering::Relaxed);
        }
    }
    // A verb that has just opened the directory may give it a ctl once more, where it finds none.
    for parts in [&PARTS[..4], &PARTS, &PARTS] {
        for part in parts {
            let _ = sys::unlinkat(dir, part, 0);
        }
        if sys::unlinkat(parent, name, libc::AT_REMOVEDIR) != Err(Errno(libc::ENOTEMPTY)) {
            break;
        }
    }
}

/// The parts of a file, those that few have last.
const PARTS: [&CStr; 5] = [c"link", c"layout", c"ctl", c"head", c"sums"];
