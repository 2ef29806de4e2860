//! Which descriptors are of a store's heads: by what they are, not by what their path looks like. `files/<16 digits>/head` may be anybody's file, and
//! in a mount namespace of his own anybody may put one in the place of ours.

use crate::part::Transient;
use crate::store;
use crate::sys;

/// Whether a descriptor is that of the head of file `id` of a store at `store` that this process uses.
pub fn is_head(fd: i32, store: &[u8], id: u64) -> bool {
    let head = store::attach(store).and_then(|store| Transient::open(store, id)).and_then(|at| at.pin_head()).and_then(|head| sys::fstat(head.fd()));
    head.is_ok_and(|there| sys::fstat(fd).is_ok_and(|here| (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)))
}
