//! The areas that a map is made of: one per run of the file that is contiguous in an object.

use crate::base::sys::{self, Errno, Sys, of_target};
use crate::fds;
use crate::file::{File, Loaded};
use crate::map::pages::{Range, page};
use crate::store::part::{Held, borrow};
use std::os::fd::AsRawFd;
use stripewise_layout::{Logical, Piece};
use stripewise_target::file::FileObject;
use stripewise_target::interface::{MapFlags, Object, ProtFlags};

/// What a kind answers that cannot be mapped.
const NO_MAP: Errno = Errno(libc::ENODEV);

/// What all areas of a map have in common.
struct Kind {
    prot: i32,
    flags: i32,
    /// Objects may be shorter than a file of this size needs them.
    short: Option<u64>,
}

/// Puts the objects' pages into a range that the caller holds. `short`: the file's size, where objects could not be extended up to it.
pub fn place(file: &'static File, range: Range, prot: i32, flags: i32, read_only: bool, short: Option<u64>) -> Sys<()> {
    let loaded = file.current()?;
    let kind = Kind { prot, flags: flags | libc::MAP_FIXED, short };
    if !read_only {
        return all(loaded, range).try_for_each(|piece| match file.object_if_made(loaded, piece.target, piece.plane)? {
            Some(object) => object_area(&object, &piece, range, &kind),
            None => behind(&piece, range, &kind),
        });
    }
    // The kernel lets a shared map become writable if its descriptor was: here none may be.
    for (target, plane) in loaded.objects() {
        let mut own = all(loaded, range).filter(|p| (p.target, p.plane) == (target, plane)).peekable();
        if own.peek().is_some() {
            let Some(object) = file.object_if_made(loaded, target, plane)? else {
                own.try_for_each(|piece| behind(&piece, range, &kind))?;
                continue;
            };
            let fd = Held::from_raw(fds::reopen(object.descriptor().ok_or(NO_MAP)?.as_raw_fd(), libc::O_RDONLY)?);
            let object = FileObject::new(borrow(fd.fd()));
            own.try_for_each(|piece| object_area(&object, &piece, range, &kind))?;
        }
    }
    Ok(())
}

fn all(loaded: &'static Loaded, range: Range) -> impl Iterator<Item = Piece> {
    loaded.view.pieces(Logical(range.offset), range.bytes)
}

/// Pages behind the end, of an object that only another may make: no memory, as behind the end of any file.
fn behind(piece: &Piece, range: Range, kind: &Kind) -> Sys<()> {
    let empty = Held::from_raw(sys::memfd(c"stripewise-behind")?);
    object_area(&FileObject::new(borrow(empty.fd())), piece, range, &Kind { short: None, ..*kind })
}

fn object_area(object: &impl Object, piece: &Piece, range: Range, kind: &Kind) -> Sys<()> {
    let at = range.start + (piece.logical - range.offset) as usize;
    let (prot, flags) = (ProtFlags::from_bits_retain(kind.prot as u32), MapFlags::from_bits_retain(kind.flags as u32));
    // SAFETY: within the range, which is the caller's.
    of_target(unsafe { object.map(at as *mut u8, piece.len as usize, prot, flags, piece.object_offset) })?;
    let Some(size) = kind.short else { return Ok(()) };
    let object_bytes = of_target(object.len())?;
    let pages = |bytes: u64| bytes.next_multiple_of(page()).min(piece.len);
    let (backed, inside) = (pages(object_bytes.saturating_sub(piece.object_offset)), pages(size.saturating_sub(piece.logical)));
    if backed < inside {
        let zeros = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: as above.
        unsafe { sys::mmap_at(at + backed as usize, (inside - backed) as usize, kind.prot, zeros, -1, 0)? };
    }
    Ok(())
}
