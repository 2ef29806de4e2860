//! Where a map cannot be made of objects (it would take too many areas, pages are longer than stripes, a kind of target has no maps), one that only reads is
//! a copy, up to a cap: in memory with a descriptor, so that it ends with SIGBUS as a file does, and that the kernel refuses to make writable what is shared.

use crate::base::log;
use crate::base::sys::{self, Errno, Sys};
use crate::base::vector::{Buffers, REQUEST_MAX};
use crate::fds;
use crate::file::File;
use crate::io;
use crate::map::copy_bytes;
use crate::map::pages::{Range, is_shared, page};
use crate::open::OpenFile;

/// Fills the range with a copy of the file as it is now.
pub fn copy(open: &OpenFile, file: &'static File, range: Range, prot: i32, flags: i32, why_not: Errno) -> Sys<()> {
    let refuse = |why: &[u8]| {
        if let Ok(path) = file.part(b"") {
            log::say(why, path.as_bytes());
        }
        Err(Errno(libc::ENODEV))
    };
    let bytes = range.inside(file.size()?);
    if is_shared(flags) {
        // Who opened for writing, or maps more than there is, expects to see what is written later.
        let may_change = open.flags() & libc::O_ACCMODE != libc::O_RDONLY || bytes.next_multiple_of(page()) < range.bytes;
        if may_change || prot & libc::PROT_WRITE != 0 {
            return refuse(if why_not == Errno(libc::ENODEV) {
                b"a shared map needs targets that are directories"
            } else {
                b"a shared map would take too many memory areas: use wider stripes, map less, or raise vm.max_map_count"
            });
        }
    }
    if bytes > copy_bytes() {
        return refuse(
            b"a map cannot be made of objects (too many areas), and is longer than STRIPEWISE_MMAP_COPY_BYTES: raise that, or use wider stripes",
        );
    }
    let memory = sys::memfd(c"stripewise-map")?;
    let result = fill(open, memory, range.offset, bytes).and_then(|()| {
        let fd = fds::reopen(memory, libc::O_RDONLY)?;
        // SAFETY: the range is the caller's.
        let placed = unsafe { sys::mmap_at(range.start, range.bytes as usize, prot, flags | libc::MAP_FIXED, fd, 0) };
        sys::close(fd);
        placed
    });
    sys::close(memory);
    result.map(|_| ())
}

fn fill(open: &OpenFile, memory: i32, offset: u64, bytes: u64) -> Sys<()> {
    sys::ftruncate(memory, bytes)?;
    if bytes == 0 {
        return Ok(());
    }
    let base = sys::mmap(memory, bytes as usize, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)?;
    let mut done = 0;
    let result = loop {
        if done == bytes {
            break Ok(());
        }
        let part = libc::iovec { iov_base: base.wrapping_add(done as usize).cast(), iov_len: (bytes - done).min(REQUEST_MAX) as usize };
        match Buffers::of(&[part]).and_then(|buffers| io::read_at(open, &buffers, offset + done, 0)) {
            // Cut meanwhile: zeros, as after a truncate under a map of whole pages.
            Ok(0) => break Ok(()),
            Ok(n) => done += n,
            Err(errno) => break Err(errno),
        }
    };
    // SAFETY: mapped above, and nothing refers to it.
    unsafe { sys::munmap(base, bytes as usize) };
    result
}
