//! munmap, mremap and msync on memory that has maps of managed files. The kernel's mremap knows one area at a time and would let an area grow into
//! its object, where other stripes lie: here a map is moved area by area and grows by new ones.

use crate::base::process;
use crate::base::sys::{self, Errno, Sys};
use crate::file::{self, File};
use crate::gate::cutting;
use crate::io::size;
use crate::map::pages::{Range, page};
use crate::map::records::{self, Map};
use crate::map::{cover, pieces};
use crate::open;
use std::os::fd::AsRawFd;
use stripewise_layout::Logical;
use stripewise_target::interface::Object;

fn pages(bytes: usize) -> Sys<usize> {
    bytes.checked_next_multiple_of(page() as usize).ok_or(Errno(libc::EINVAL))
}

fn is_page(at: usize) -> bool {
    (at as u64).is_multiple_of(page())
}

/// munmap.
///
/// # Safety
/// munmap's own.
pub unsafe fn unmap(at: usize, len: usize) -> Sys<i64> {
    // SAFETY: the caller's promise.
    let kernel = || unsafe { sys::munmap_at(at, len) };
    let Ok(bytes) = pages(len) else { return kernel() };
    let Some(end) = at.checked_add(bytes) else { return kernel() };
    if bytes == 0 || !is_page(at) || process::in_vfork_child() {
        return kernel();
    }
    let result = records::with(|records| {
        records.all().iter().filter(|m| m.overlaps(at, end)).for_each(note_writes);
        records.cut(at, end)?;
        kernel()
    });
    // A signal handler inside a call of ours: the memory goes, its record stays.
    if result == Err(Errno(libc::EDEADLK)) { kernel() } else { result }
}

/// Something else was mapped over `[at, at + len)`.
pub fn covered(at: usize, len: usize) {
    if let Ok(bytes) = pages(len)
        && !process::in_vfork_child()
    {
        let _ = records::with(|records| records.cut(at, at.saturating_add(bytes)));
    }
}

/// How far the objects' times may lead head's without a write through a map: plain writes set head's once per tick only.
const LEAD_NS: i64 = 16_000_000;

/// Writes through a map set the objects' times; head's, which the program sees, follow here.
fn note_writes(map: &Map) {
    let Some(file) = file::get(map.file).filter(|_| map.is_writable()) else { return };
    let _ = follow_times(file);
}

fn follow_times(file: &'static File) -> Sys<()> {
    let head = file.at()?.head_stat()?;
    let loaded = file.current()?;
    for (target, plane) in loaded.objects() {
        let object = file.object_if_made(loaded, target, plane)?;
        let Some(fd) = object.as_ref().and_then(Object::descriptor) else { continue };
        let object = sys::fstat(fd.as_raw_fd())?;
        let lead_ns = (object.st_mtime - head.st_mtime).saturating_mul(1_000_000_000).saturating_add(object.st_mtime_nsec - head.st_mtime_nsec);
        if lead_ns > LEAD_NS {
            let _ = open::touch_head(file);
            break;
        }
    }
    Ok(())
}

/// msync: the kernel's, then head's times and, with MS_SYNC, what makes the file whole after a power cut.
pub fn sync(at: usize, len: usize, flags: i32) -> Sys<i64> {
    let result = sys::msync(at, len, flags)?;
    let end = at.saturating_add(pages(len)?);
    let mut from = at;
    // Pinned and not locked meanwhile: making things durable takes long.
    while let Some((map, pin)) = records::with(|records| records.next_writable(from, end))? {
        note_writes(&map);
        if flags & libc::MS_SYNC != 0
            && let Some(file) = file::get(pin.file())
        {
            persist(file)?;
        }
        from = map.end;
    }
    Ok(result)
}

fn persist(file: &'static File) -> Sys<()> {
    // A power cut's recovery takes the longest object for the file's end.
    cutting::settle_all(file)?;
    if let Some((_open, companion)) = open::companions_of(file).next() {
        return size::sync_names(file, Some(companion));
    }
    // No descriptor is left, so there is no lock to lose by opening head and closing it.
    let fd = file.at()?.open_head(libc::O_RDONLY | libc::O_CLOEXEC)?;
    let result = size::sync_names(file, Some(fd));
    sys::close(fd);
    result
}

/// What the kernel is asked for to hold a range until areas fill it.
fn reserve(at: usize, len: usize, flags: i32) -> Sys<usize> {
    // SAFETY: what is fixed is either free (NOREPLACE) or given up by the program's own MREMAP_FIXED.
    unsafe { sys::mmap_at(at, len, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | flags, -1, 0) }
}

fn release(at: usize, len: usize) {
    // SAFETY: a range that `reserve` gave, or that the caller gave up.
    let _ = unsafe { sys::munmap_at(at, len) };
}

/// mremap of a range that touches a map; `None`: it lies in no map of ours, the kernel's call is right.
///
/// # Safety
/// mremap's own.
pub unsafe fn remap(old: usize, old_len: usize, new_len: usize, flags: i32, new: usize) -> Sys<Option<usize>> {
    let (old_bytes, new_bytes) = (pages(old_len)?, pages(new_len)?);
    let old_end = old.checked_add(old_bytes).ok_or(Errno(libc::EINVAL))?;
    let is_fixed = flags & libc::MREMAP_FIXED != 0;
    records::with(|records| {
        let Some(map) = records.containing(old, old_end.max(old + 1)) else {
            let other = !records.all().iter().any(|m| m.overlaps(old, old_end));
            return if other { Ok(None) } else { Err(Errno(libc::EFAULT)) };
        };
        let unknown = flags & !(libc::MREMAP_FIXED | libc::MREMAP_MAYMOVE) != 0 || is_fixed && flags & libc::MREMAP_MAYMOVE == 0;
        if unknown || !is_page(old) || old_bytes == 0 || new_bytes == 0 {
            return Err(Errno(libc::EINVAL));
        }
        if is_fixed {
            let new_end = new.checked_add(new_bytes).ok_or(Errno(libc::EINVAL))?;
            if !is_page(new) || new < old_end && old < new_end {
                return Err(Errno(libc::EINVAL));
            }
            records.cut(new, new_end)?;
            reserve(new, new_bytes, libc::MAP_FIXED)?;
            return carry(records, &map, old, old_bytes, new, new_bytes).map(Some);
        }
        if new_bytes <= old_bytes {
            if new_bytes < old_bytes {
                records.cut(old + new_bytes, old_end)?;
                release(old + new_bytes, old_bytes - new_bytes);
            }
            return Ok(Some(old));
        }
        let more = new_bytes - old_bytes;
        match reserve(old_end, more, libc::MAP_FIXED_NOREPLACE) {
            Ok(at) if at == old_end => {
                extend(&map, old, old_end, more).inspect_err(|_| release(old_end, more))?;
                records.grow(old_end, old_end + more);
                return Ok(Some(old));
            }
            // A kernel that does not know the flag took it for a hint.
            Ok(at) => release(at, more),
            Err(_) => {}
        }
        if flags & libc::MREMAP_MAYMOVE == 0 {
            return Err(Errno(libc::ENOMEM));
        }
        let new = reserve(0, new_bytes, 0)?;
        carry(records, &map, old, old_bytes, new, new_bytes).map(Some)
    })
}

/// Moves a part of a map into a reserved range, which is given up when that fails.
fn carry(records: &mut records::Records, map: &Map, old: usize, old_bytes: usize, new: usize, new_bytes: usize) -> Sys<usize> {
    let keep = old_bytes.min(new_bytes);
    let moved = move_areas(map, old, new, keep).and_then(|()| {
        let part = Map { offset: map.offset + (old - map.start) as u64, start: new, end: new + new_bytes, ..*map };
        if new_bytes > keep {
            extend(&part, new, new + keep, new_bytes - keep).inspect_err(|_| {
                let _ = move_areas(&Map { end: new + keep, ..part }, new, old, keep);
            })?;
        }
        Ok(part)
    });
    let part = moved.inspect_err(|_| release(new, new_bytes))?;
    if old_bytes > keep {
        release(old + keep, old_bytes - keep);
    }
    records.move_to(old, old + old_bytes, Map { areas: part.count(), ..part })?;
    Ok(new)
}

/// Moves the areas of `[from, from + bytes)` of a map; where a change of protection has split one, page by page.
fn move_areas(map: &Map, from: usize, to: usize, bytes: usize) -> Sys<()> {
    let loaded = file::get(map.file).ok_or(Errno(libc::EIO))?.current()?;
    let offset = map.offset + (from - map.start) as u64;
    let one = |at: usize, len: usize| {
        // SAFETY: both ranges are inside those of the caller.
        unsafe { sys::mremap(from + at, len, len, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, to + at) }
    };
    for piece in loaded.view.pieces(Logical(offset), bytes as u64) {
        let (at, len) = ((piece.logical - offset) as usize, piece.len as usize);
        match one(at, len) {
            Err(Errno(libc::EFAULT)) => (at..at + len).step_by(page() as usize).try_for_each(|p| one(p, page() as usize).map(|_| ()))?,
            result => {
                result?;
            }
        }
    }
    Ok(())
}

/// Fills the reserved range `[at, at + bytes)` behind a part of a map that begins at `start`.
fn extend(map: &Map, start: usize, at: usize, bytes: usize) -> Sys<()> {
    let file = file::get(map.file).ok_or(Errno(libc::EIO))?;
    let short = if cover::cover(file)? { None } else { Some(file.size()?) };
    let offset = map.offset + (start - map.start) as u64 + (at - start) as u64;
    super::may_write(file, offset, bytes as u64, map.flags, map.read_only)?;
    pieces::place(file, Range { start: at, bytes: bytes as u64, offset }, map.prot, map.flags, map.read_only, short)
}
