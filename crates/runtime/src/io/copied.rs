//! Reads of managed files that their copies answer, and what brings copies up to a write.

use super::{limit, read_some, write_home};
use crate::base::vector::Buffers;
use crate::copies::managed::{self, Marked};
use crate::file::File;
use core::sync::atomic::{Ordering, fence};

/// The first `len` bytes of a request from a copy; `None` where the home is to be read. Inside the epoch.
#[inline]
pub fn read(file: &'static File, buffers: &Buffers<'_>, len: u64, at: u64) -> Option<u64> {
    if !managed::has_any(file) {
        return None;
    }
    read_copy(file, buffers, len, at)
}

#[inline(never)] // Off the way of files without copies.
fn read_copy(file: &'static File, buffers: &Buffers<'_>, len: u64, at: u64) -> Option<u64> {
    let copies = managed::counted(file)?;
    let from = copies.place_of(at, len)?;
    let before = copies.look(at, len, from.on_write)?;
    let read = read_some(copies.container(), buffers, len, from.at, 0).ok()?;
    fence(Ordering::SeqCst);
    let is_served = read == len && copies.still_count() && copies.look(at, len, from.on_write) == Some(before);
    managed::note_copied(is_served.then_some(from.replica));
    is_served.then_some(read)
}

/// After the home was written: brings the copies of the marked bytes up to it. `bytes` are what the home has got, of memory that nobody else writes. A copy
/// that cannot be written is stale, and no error.
pub fn follow(marked: Marked, bytes: *mut u8) {
    let is_copied = copy(&marked, bytes).is_some();
    marked.settle(is_copied);
}

fn copy(marked: &Marked, bytes: *mut u8) -> Option<()> {
    let (container, copies) = marked.copies()?;
    // The kernel would end the program for it.
    if limit::exceeds(container.size().ok()?) {
        return None;
    }
    for (domain, overlap) in copies {
        let mut from = bytes.wrapping_add((overlap.at.0 - marked.at()) as usize);
        let (mut at, mut left) = (domain + overlap.offset.0, overlap.len);
        while left > 0 {
            let vector = [libc::iovec { iov_base: from.cast(), iov_len: left as usize }];
            let wrote = write_home(container, &Buffers::of(&vector).ok()?, at, (left, false), None).ok().filter(|wrote| *wrote > 0)?;
            from = from.wrapping_add(wrote as usize);
            at += wrote;
            left -= wrote;
        }
    }
    Some(())
}
