//! Which descriptors are of a store's heads: by what they are, not by what their path looks like, for `files/<16 digits>/head` may be anybody's file.

use crate::sys;
use core::ffi::CStr;
use stripewise_store::bin::STORE_MAGIC;
use stripewise_store::names::{StorePath, file_part};

/// Whether a descriptor is that of the head of file `id` of a store at `store`: there is a store there, and its file is this one.
#[inline(never)] // Its path would lie on the stack below every other call by name.
pub fn is_head(fd: i32, store: &[u8], id: u64) -> bool {
    let mut bin = StorePath::from_bytes(store);
    bin.push(b"/store.bin");
    if !bin.as_c_str().is_some_and(is_store) {
        return false;
    }
    let head = file_part(store, id, b"head");
    let Some(Ok(there)) = head.as_c_str().map(|head| sys::stat(head, libc::AT_SYMLINK_NOFOLLOW)) else { return false };
    sys::fstat(fd).is_ok_and(|here| (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino) && there.st_mode & libc::S_IFMT == libc::S_IFREG)
}

fn is_store(path: &CStr) -> bool {
    // Not to wait for the writer of a FIFO.
    let Ok(fd) = sys::open(path, libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY, 0) else { return false };
    let mut magic = [0u8; STORE_MAGIC.len()];
    let read = sys::read(fd, &mut magic);
    sys::close(fd);
    read.is_ok() && magic == STORE_MAGIC
}
