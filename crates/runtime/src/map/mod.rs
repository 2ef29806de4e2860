//! Maps of managed files. Stripes, regions and slices are multiples of the page, so every page of the file is a page of one object: a map of the
//! file is a row of maps of objects, made lazily by the kernel and coherent with everybody's reads and writes through the page cache. Where
//! that would take too many areas, a map that only reads is a copy. While a process has a map, it pins the file (see `records`).

mod copy;
pub mod cover;
mod pages;
mod pieces;
pub mod records;
pub mod remap;

use crate::base::log;
use crate::base::process;
use crate::base::sys::{self, Errno, Sys};
use crate::copies::managed;
use crate::file::File;
use crate::gate::cutting;
use crate::io::capacity;
use crate::open::{OpenFile, of_fd};
use crate::store::heads;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use pages::{Range, is_shared, page};
use records::Map;
pub use records::after_fork;
use std::os::fd::AsRawFd;
use stripewise_layout::{GRANULE, Logical, MAX_LOGICAL};
use stripewise_target::devices::Access;
use stripewise_target::emulated::Clock;
use stripewise_target::interface::Object;
use stripewise_target::names::ObjectName;
use stripewise_target::time::{now_ns, sleep_until};

/// Flags that concern where a map goes; the pieces go to fixed places of their own.
const PLACING: i32 = libc::MAP_FIXED_NOREPLACE | libc::MAP_32BIT;
/// Flags that make the kernel touch the pages, which is for the pieces and not for what reserves their place.
const TOUCHING: i32 = libc::MAP_POPULATE | libc::MAP_LOCKED;
/// Most bytes of one map that are copied where it cannot be made of objects.
static COPY_BYTES: AtomicU64 = AtomicU64::new(256 << 20);

/// Takes over `STRIPEWISE_MMAP_COPY_BYTES`.
pub fn limit_copies(text: &[u8]) {
    if let Some(bytes) = core::str::from_utf8(text).ok().and_then(|t| t.parse().ok()) {
        COPY_BYTES.store(bytes, Ordering::Relaxed);
    }
}

fn copy_bytes() -> u64 {
    COPY_BYTES.load(Ordering::Relaxed)
}

/// Areas that our maps may take: half of what the kernel grants a process, for the program needs some, too.
fn budget() -> usize {
    static BUDGET: AtomicUsize = AtomicUsize::new(0);
    match BUDGET.load(Ordering::Relaxed) {
        0 => {
            let mut text = [0u8; 32];
            let text = sys::read_file(c"/proc/sys/vm/max_map_count", &mut text).unwrap_or(&[]);
            let most: usize = core::str::from_utf8(text).ok().and_then(|t| t.trim().parse().ok()).unwrap_or(65_530);
            BUDGET.store(most / 2, Ordering::Relaxed);
            most / 2
        }
        areas => areas,
    }
}

fn is_same(one: i32, other: i32) -> bool {
    let inode = |fd| sys::fstat(fd).map(|st| (st.st_dev, st.st_ino));
    inode(one).is_ok() && inode(one) == inode(other)
}

/// A line in the log, once per process.
fn say_once(said: &AtomicBool, what: &[u8], file: &File) {
    if !said.swap(true, Ordering::Relaxed)
        && let Ok(path) = file.part(b"")
    {
        log::say(what, path.as_bytes());
    }
}

/// mmap of a managed descriptor; the address, or `None`: it is a plain one by now.
///
/// # Safety
/// mmap's own: with MAP_FIXED nothing that lives lies in the range.
pub unsafe fn map(fd: i32, at: usize, len: usize, prot: i32, flags: i32, offset: i64) -> Sys<Option<usize>> {
    let open = of_fd(fd)?;
    let companion = open.companion().ok_or(Errno(libc::EBADF))?;
    // One closed by a bare system call leaves its entry to a newer one of the same number. (Under an emulator all look like such a one.)
    if !heads::is_programs(fd) && !is_same(fd, companion) {
        return Ok(None);
    }
    let file = open.file()?;
    // A child of vfork would leave its parent descriptors that only the child has.
    if process::in_vfork_child() {
        return Err(Errno(libc::ENODEV));
    }
    // The companion is a plain file opened as the program asked: the kernel checks all arguments on it as it would on the program's own,
    // and takes the range.
    // SAFETY: the caller's promise.
    let start = unsafe { sys::mmap_at(at, len, prot, flags & !TOUCHING, companion, offset)? };
    let range = Range { start, bytes: (len as u64).next_multiple_of(page()), offset: offset as u64 };
    fill(&open, file, range, prot, flags & !PLACING).inspect_err(|_| {
        // SAFETY: ours since the call above.
        let _ = unsafe { sys::munmap_at(range.start, range.bytes as usize) };
    })?;
    Ok(Some(start))
}

fn fill(open: &OpenFile, file: &'static File, range: Range, prot: i32, flags: i32) -> Sys<()> {
    if range.offset.checked_add(range.bytes).is_none_or(|end| end > MAX_LOGICAL) {
        return Err(Errno(libc::EOVERFLOW));
    }
    // Behind the end a map shows what lies in the last page.
    cutting::settle_all(file)?;
    let is_writing = is_shared(flags) && prot & libc::PROT_WRITE != 0;
    let read_only = is_shared(flags) && open.flags() & libc::O_ACCMODE == libc::O_RDONLY;
    let pin = records::pin(file)?;
    let result = (|| {
        may_write(file, range.offset, range.bytes, flags, read_only)?;
        // Programs map more than there is, and look there once the file has grown.
        if file.may_write() {
            let passed = crate::gate::for_read(file)?;
            let _ = file.make_objects(passed.loaded, range.offset + range.bytes);
        }
        let is_covered = cover::cover(file)?;
        let size = file.size()?;
        if is_writing {
            allocate(file, range, size)?;
        }
        charge(file, range, size)?;
        let view = file.current()?.view;
        let left = budget().saturating_sub(records::areas());
        let areas = view.pieces(Logical(range.offset), range.bytes).take(left + 1).count();
        if areas > left || page() > GRANULE {
            return Err(Errno(libc::ENOMEM));
        }
        pieces::place(file, range, prot, flags, read_only, if is_covered { None } else { Some(size) })?;
        let map = Map { start: range.start, end: range.end(), file: pin.file(), offset: range.offset, prot, flags, read_only, areas: areas as u32 };
        records::add(map)
    })();
    match result {
        Ok(()) => {
            pin.keep();
            Ok(())
        }
        Err(errno @ Errno(libc::ENOMEM | libc::ENODEV)) => copy::copy(open, file, range, prot, flags, errno),
        Err(errno) => Err(errno),
    }
}

/// Before a pinned file is mapped: what may be written there, now or once the map is made writable, nobody sees, so copies answer for it no more.
fn may_write(file: &'static File, offset: u64, bytes: u64, flags: i32, read_only: bool) -> Sys<()> {
    if !is_shared(flags) || read_only {
        return Ok(());
    }
    let _inside = crate::gate::for_read(file)?;
    managed::invalidate(file, offset, bytes)
}

/// A shared map for writing takes its blocks at once where a target has a capacity of its own: later nothing could be refused any more.
fn allocate(file: &'static File, range: Range, size: u64) -> Sys<()> {
    let store = file.store()?;
    let has_capacity = |target: u32| store.view().is_ok_and(|view| view.target(target as usize).is_some_and(|t| t.capacity_bytes != 0));
    for extent in file.current()?.view.extents(Logical(range.offset), range.inside(size)).filter(|e| has_capacity(e.target)) {
        let object = file.object(extent.target, extent.plane)?;
        if !capacity::is_there(file, extent.target, &object, extent.object_offset, extent.len)? {
            return Err(Errno(libc::ENOSPC));
        }
        let Some(fd) = object.descriptor() else { continue };
        // A file system without fallocate allocates when it is written to.
        if let Err(Errno(libc::ENOSPC | libc::EDQUOT)) = sys::fallocate(fd.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, extent.object_offset, extent.len) {
            return Err(Errno(libc::ENOSPC));
        }
    }
    Ok(())
}

/// Emulated targets charge a map as one read of all of it, for what is touched later nobody sees. A map longer than what may be copied is free.
fn charge(file: &'static File, range: Range, size: u64) -> Sys<()> {
    static SAID: AtomicBool = AtomicBool::new(false);
    let store = file.store()?;
    let bytes = range.inside(size);
    let view = file.current()?.view;
    if !(0..view.target_count()).any(|t| store.clock(t).is_some_and(|clock| clock.model.is_some()) && view.uses_target(t)) {
        return Ok(());
    }
    if bytes > copy_bytes() {
        say_once(&SAID, b"a map of a file on emulated targets is so long that it takes no emulated time (STRIPEWISE_MMAP_COPY_BYTES)", file);
        return Ok(());
    }
    let (mut until_ns, now_ns) = (0, now_ns());
    for extent in view.extents(Logical(range.offset), bytes) {
        if let Some(Clock { line, model: Some(model) }) = store.clock(extent.target) {
            let object = ObjectName::of_plane(file.id(), extent.plane).key();
            until_ns =
                until_ns.max(line.reserve(model, Access { write: false, object, offset: extent.object_offset, bytes: extent.len }, now_ns).end_ns);
        }
    }
    sleep_until(until_ns);
    Ok(())
}
