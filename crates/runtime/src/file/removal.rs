//! Files whose last name has gone: freed by the last close.

use super::{File, Loaded};
use crate::base::sys::{self, Errno};
use crate::store::part::{self, At};
use core::ffi::CStr;
use core::sync::atomic::Ordering;
use stripewise_store::moving::Words;
use stripewise_store::names;

/// The last close in this process of an unlinked file: when no other process has it open, it goes for good.
#[inline(never)] // Threads may have small stacks: what one step needs must not lie below the next.
pub fn remove_if_last(file: &'static File) {
    if !file.is_last() {
        return;
    }
    let (Ok(at), Ok(loaded)) = (file.at(), file.current()) else { return };
    let (At { dir, store, .. }, name) = (at, names::id_name(file.id()));
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
    remove_objects(file, loaded, owner);
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

fn remove_objects(file: &'static File, loaded: &Loaded, owner: u32) {
    let (Ok(store), view) = (file.store(), &loaded.view) else { return };
    let used = || (0..view.target_count()).filter(|target| view.uses_target(*target));
    let remove = |target, plane| part::remove_object(store, file.id(), (target, plane), owner).is_ok();
    match file.objects_at_most() {
        None => used().flat_map(|target| [(target, 0), (target, 1)]).for_each(|(target, plane)| _ = remove(target, plane)),
        Some(mut left) => {
            // That of the first byte first: most files have no other.
            for is_first in [true, false] {
                for (target, plane, _) in loaded.firsts().filter(|(.., byte)| (*byte == 0) == is_first) {
                    left -= u64::from(left > 0 && remove(target, plane));
                }
            }
        }
    }
    // How much room there is now nobody has seen.
    for line in used().filter_map(|target| store.devices()?.line(target)) {
        line.used_bytes.store(u64::MAX, Ordering::Relaxed);
    }
}

impl File {
    /// A bound on the objects that there are, all of them the home's: known of a file that this process has made, and that no mover has touched.
    fn objects_at_most(&self) -> Option<u64> {
        let ctl = self.ctl().filter(|_| self.made_here.load(Ordering::Relaxed))?;
        (Words::word(&ctl) == 0).then(|| ctl.header().objects_made.load(Ordering::SeqCst))
    }
}
