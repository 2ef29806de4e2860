//! The areas that a map is made of: one per run of the file that is contiguous in an object.

use crate::fds;
use crate::file::{File, Loaded};
use crate::map::pages::{Range, page};
use crate::sys::{self, Sys};
use stripewise_layout::{Logical, Piece};

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
            Some(fd) => area(fd, &piece, range, &kind),
            None => behind(&piece, range, &kind),
        });
    }
    // The kernel lets a shared map become writable if its descriptor was: here none may be.
    for (target, plane) in loaded.objects() {
        let mut own = all(loaded, range).filter(|p| (p.target, p.plane) == (target, plane)).peekable();
        if own.peek().is_some() {
            let Some(fd) = file.object_if_made(loaded, target, plane)? else {
                own.try_for_each(|piece| behind(&piece, range, &kind))?;
                continue;
            };
            let fd = fds::reopen(fd, libc::O_RDONLY)?;
            let result = own.try_for_each(|piece| area(fd, &piece, range, &kind));
            sys::close(fd);
            result?;
        }
    }
    Ok(())
}

fn all(loaded: &'static Loaded, range: Range) -> impl Iterator<Item = Piece> {
    loaded.view.pieces(Logical(range.offset), range.bytes)
}

/// Pages behind the end, of an object that only another may make: no memory, as behind the end of any file.
fn behind(piece: &Piece, range: Range, kind: &Kind) -> Sys<()> {
    let empty = sys::memfd(c"stripewise-behind")?;
    let result = area(empty, piece, range, &Kind { short: None, ..*kind });
    sys::close(empty);
    result
}

fn area(fd: i32, piece: &Piece, range: Range, kind: &Kind) -> Sys<()> {
    let at = range.start + (piece.logical - range.offset) as usize;
    // SAFETY: within the range, which is the caller's.
    unsafe { sys::mmap_at(at, piece.len as usize, kind.prot, kind.flags, fd, piece.object_offset as i64)? };
    let Some(size) = kind.short else { return Ok(()) };
    let object_bytes = sys::fstat(fd)?.st_size as u64;
    let pages = |bytes: u64| bytes.next_multiple_of(page()).min(piece.len);
    let (backed, inside) = (pages(object_bytes.saturating_sub(piece.object_offset)), pages(size.saturating_sub(piece.logical)));
    if backed < inside {
        let zeros = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: as above.
        unsafe { sys::mmap_at(at + backed as usize, (inside - backed) as usize, kind.prot, zeros, -1, 0)? };
    }
    Ok(())
}
