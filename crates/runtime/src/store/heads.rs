//! Which descriptors are of a store's heads: by what they are, not by what their path looks like. `files/<16 digits>/head` may be anybody's file, and
//! in a mount namespace of his own anybody may put one in the place of ours. A path alone tells only which store and file to ask for.

use crate::base::sys;
use crate::store;
use crate::store::part::Transient;
use stripewise_target::text::{ProcPath, parse_id};

/// Whether a descriptor is that of the head of file `id` of a store at `store` that this process uses.
pub fn is_head(fd: i32, store: &[u8], id: u64) -> bool {
    let head = store::attach(store).and_then(|store| Transient::open(store, id)).and_then(|at| at.pin_head()).and_then(|head| sys::fstat(head.fd()));
    head.is_ok_and(|there| sys::fstat(fd).is_ok_and(|here| (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)))
}

/// Whether a descriptor is of the kind that the program has of a managed file, and not a companion.
pub fn is_programs(fd: i32) -> bool {
    let how = sys::fcntl(fd, libc::F_GETFL, 0).unwrap_or(0) as i32;
    how & libc::O_PATH != 0 || how & libc::O_ACCMODE == 3
}

/// Store path and id of the head that a descriptor refers to.
pub fn head_of(fd: i32, text: &mut [u8; 4096]) -> Option<(&[u8], u64)> {
    named_head(fd, text).filter(|(store, id)| is_head(fd, store, *id))
}

/// The same by its path alone, where it was looked at before.
pub fn named_head(fd: i32, text: &mut [u8; 4096]) -> Option<(&[u8], u64)> {
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
