//! The slow paths of a log: beginning the file, adding a chunk, calibrating, ending. All run with signals blocked.
//!
//! Room is allocated in the file before it is mapped, so that a full disk is an error here and never a SIGBUS in the host. The file is
//! opened for each step and closed again: no descriptor of ours is left in the host for close_range, exec or fork to meet.

use super::{ALIVE, CHUNK_BYTES, FIRST_BYTES, FRONT_BYTES, MAPPED_BYTES, ThreadLog, WINDOW_BYTES, fork_word};
use crate::clock;
use crate::format::{FIRST_SLOT, Header, Identity, LOG_MAGIC, LOG_VERSION, PAIRS};
use crate::names::FileName;
use crate::process::Process;
use crate::record::RECORD_BYTES;
use core::ffi::c_void;
use core::sync::atomic::Ordering::{Relaxed, Release};
use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use stripewise_checksum::crc32c;

/// Logs of one thread id in one process: more than this and records are dropped.
const SUFFIX_MAX: u32 = 9_999;

/// Creates the file, maps its beginning, writes the header. After an error an empty file may be left: the reader takes it for
/// a log whose records were lost, the next attempt uses it.
pub(super) fn begin(log: &ThreadLog, process: &Process) -> Result<*mut u8, Errno> {
    let identity = process.with_identity(|identity| *identity);
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    if log.start_id.swap(identity.start_id, Relaxed) != identity.start_id {
        // A fork came between a failed attempt and this one.
        log.created.store(0, Relaxed);
    }
    log.pid.store(identity.pid, Relaxed);
    log.tid.store(tid, Relaxed);
    let file = create(log, process)?;
    allocate(&file, 0, FIRST_BYTES)?;
    let window = reserve()?;
    let mapped = map_beginning(window, &file).and_then(|()| process.header(&identity, tid));
    match mapped {
        Ok(fixed) => {
            // SAFETY: the header was mapped just now, is writable and 4,096 bytes long; nobody else knows of it.
            unsafe {
                let header = window.sub(FRONT_BYTES).cast::<Header>();
                core::ptr::addr_of_mut!((*header).fixed).write(fixed);
                (*header).version.store(LOG_VERSION, Relaxed);
                (*header).crc.store(crc32c((*header).fixed.as_bytes()), Relaxed);
                calibrate(&*header, process);
                (*header).dropped.store(process.unlogged_drops.swap(0, Relaxed), Relaxed);
                (*header).magic.store(u64::from_le_bytes(LOG_MAGIC), Release);
            }
        }
        Err(error) => {
            // SAFETY: the mapping is ours and nothing leads to it yet.
            let _ = unsafe { rustix::mm::munmap(window.sub(2 * FRONT_BYTES).cast(), MAPPED_BYTES) };
            return Err(error);
        }
    }
    log.used.store(FIRST_SLOT, Relaxed);
    log.capacity.store(FIRST_BYTES / RECORD_BYTES, Relaxed);
    log.limit.store(FIRST_BYTES / RECORD_BYTES, Relaxed);
    log.window.store(window, Release);
    Ok(window)
}

/// Gives the log room for `slot`: the rest of the first chunk, or the next chunk.
pub(super) fn grow(log: &ThreadLog, process: &Process, slot: u64) -> Result<(), Errno> {
    let chunk = slot * RECORD_BYTES / CHUNK_BYTES;
    let from = log.capacity.load(Relaxed) * RECORD_BYTES;
    let end = (chunk + 1) * CHUNK_BYTES;
    let file = open(log, process, OFlags::empty())?;
    allocate(&file, from, end - from)?;
    let window = log.window.load(Relaxed);
    let first = from.max(chunk * CHUNK_BYTES);
    // SAFETY: the half lies inside our own mapping; what it showed before is two chunks behind.
    unsafe {
        let half = window.add(((chunk * CHUNK_BYTES) & (WINDOW_BYTES - 1)) as usize);
        map_file(half, CHUNK_BYTES as usize, &file, chunk * CHUNK_BYTES)?;
        populate(half.add((first - chunk * CHUNK_BYTES) as usize), (end - first) as usize)?;
    }
    log.capacity.store(end / RECORD_BYTES, Relaxed);
    Ok(())
}

/// Adds a calibration pair, the last place being used again and again.
pub(super) fn calibrate(header: &Header, process: &Process) {
    let taken = header.pairs_taken.load(Relaxed);
    let Some([ticks, wall]) = header.pairs.get((taken as usize).min(PAIRS - 1)) else {
        return;
    };
    let (now, wall_ns) = clock::calibrate();
    wall.store(0, Release);
    ticks.store(now, Release);
    wall.store(wall_ns, Release);
    header.pairs_taken.store(taken + 1, Relaxed);
    header.names_lost.store(process.names_lost.load(Relaxed), Relaxed);
}

/// The thread ends: says so in the header and cuts the file. If it cannot be opened any more (chroot, another user) it stays long.
pub(super) fn finish(log: &ThreadLog, process: &Process) {
    let Some(header) = log.header() else { return };
    let used = log.used.load(Relaxed).min(log.capacity.load(Relaxed));
    calibrate(header, process);
    header.closed_at_slot.store(used, Relaxed);
    if let Ok(file) = open(log, process, OFlags::empty()) {
        let _ = rustix::fs::ftruncate(&file, used * RECORD_BYTES);
    }
}

/// `FBIG` where the process may not make a file of `bytes` bytes: growing it all the same would kill the host by SIGXFSZ.
pub(crate) fn check_file_size_limit(bytes: u64) -> Result<(), Errno> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    if limit.is_some_and(|limit| bytes > limit) { Err(Errno::FBIG) } else { Ok(()) }
}

/// A new file, with a suffix if an earlier thread had our id.
fn create(log: &ThreadLog, process: &Process) -> Result<OwnedFd, Errno> {
    if log.created.load(Relaxed) == 1 {
        return open(log, process, OFlags::CREATE);
    }
    let mut suffix = log.suffix.load(Relaxed);
    loop {
        match open(log, process, OFlags::CREATE | OFlags::EXCL) {
            Err(Errno::EXIST) if suffix < SUFFIX_MAX => suffix += 1,
            Err(error) => return Err(error),
            Ok(file) => {
                log.created.store(1, Relaxed);
                return Ok(file);
            }
        }
        log.suffix.store(suffix, Relaxed);
    }
}

fn open(log: &ThreadLog, process: &Process, flags: OFlags) -> Result<OwnedFd, Errno> {
    let identity = Identity { start_id: log.start_id.load(Relaxed), pid: log.pid.load(Relaxed), ..Identity::default() };
    let mut name = FileName::stem(&identity);
    name.push(b"-");
    name.push_number(u64::from(log.tid.load(Relaxed)), 10);
    let suffix = log.suffix.load(Relaxed);
    if suffix > 0 {
        name.push(b"-");
        name.push_number(u64::from(suffix), 10);
    }
    name.push(b".swt");
    let dir = process.open_dir()?;
    let flags = flags | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(&dir, name.as_c_str()?, flags, Mode::from_raw_mode(0o644))
}

/// Makes the file own its blocks from `start` on, so that storing to the mapping cannot fail.
fn allocate(file: &OwnedFd, start: u64, length: u64) -> Result<(), Errno> {
    #[cfg(test)]
    if tests_full() {
        return Err(Errno::NOSPC);
    }
    check_file_size_limit(start + length)?;
    match rustix::fs::fallocate(file, FallocateFlags::empty(), start, length) {
        // Memory is allocated page by page here; writing would only do it twice.
        Ok(()) if rustix::fs::fstatfs(file).is_ok_and(|fs| fs.f_type == TMPFS_MAGIC) => Ok(()),
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(file, start, length),
        Err(error) => Err(error),
    }
}

const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

/// For file systems without fallocate, and because page faults on a range written in large pieces are four times cheaper than on
/// an allocated hole (245 against 1,090 us per chunk on ext4). The range has never been used.
fn write_zeros(file: &OwnedFd, start: u64, length: u64) -> Result<(), Errno> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut at = start;
    while at < start + length {
        let part = ZEROS.get(..((start + length - at) as usize).min(ZEROS.len())).unwrap_or(&ZEROS);
        match rustix::io::pwrite(file, part, at)? {
            0 => return Err(Errno::NOSPC),
            written => at += written as u64,
        }
    }
    Ok(())
}

/// Address space for fork page, header and window; the address of the window.
fn reserve() -> Result<*mut u8, Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice; its first page becomes ours to write.
    unsafe {
        let base = rustix::mm::mmap_anonymous(core::ptr::null_mut(), MAPPED_BYTES, ProtFlags::empty(), flags)?;
        let window = base.cast::<u8>().add(2 * FRONT_BYTES);
        if let Err(error) = rustix::mm::mprotect(base, FRONT_BYTES, MprotectFlags::READ | MprotectFlags::WRITE) {
            let _ = rustix::mm::munmap(base, MAPPED_BYTES);
            return Err(error);
        }
        // Kernels before 4.14 do not know it: there the caller's after_fork_child does the work.
        let _ = rustix::mm::madvise(base, FRONT_BYTES, Advice::LinuxWipeOnFork);
        fork_word(window).store(ALIVE, Relaxed);
        Ok(window)
    }
}

fn map_beginning(window: *mut u8, file: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: both ranges lie inside the mapping that `reserve` made.
    unsafe {
        map_file(window.sub(FRONT_BYTES), FRONT_BYTES, file, 0)?;
        map_file(window, CHUNK_BYTES as usize, file, 0)?;
        populate(window.sub(FRONT_BYTES), Header::BYTES)?;
        populate(window, FIRST_BYTES as usize)
    }
}

/// Maps a part of the file over a part of our mapping.
///
/// # Safety
/// The range lies inside our own mapping.
unsafe fn map_file(at: *mut u8, length: usize, file: &OwnedFd, offset: u64) -> Result<(), Errno> {
    let flags = MapFlags::SHARED | MapFlags::FIXED;
    // SAFETY: the caller's promise.
    unsafe { rustix::mm::mmap(at.cast::<c_void>(), length, ProtFlags::READ | ProtFlags::WRITE, flags, file, offset) }.map(|_| ())
}

/// Takes the page faults now and all at once. Also a second line against SIGBUS: copy-on-write file systems find out here,
/// and answer with an error, that they have no block.
///
/// # Safety
/// The range lies inside our own mapping and inside the file.
unsafe fn populate(at: *mut u8, length: usize) -> Result<(), Errno> {
    // SAFETY: populating changes no contents.
    match unsafe { rustix::mm::madvise(at.cast::<c_void>(), length, Advice::LinuxPopulateWrite) } {
        // Kernels before 5.14: faults are taken one by one, later.
        Err(Errno::INVAL) => Ok(()),
        result => result,
    }
}

impl Header {
    const BYTES: usize = core::mem::size_of::<Header>();
}

#[cfg(test)]
use tests::full as tests_full;

#[cfg(test)]
pub(crate) mod tests {
    //! A disk that is full at will, for the tests of this crate.
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

    std::thread_local! {
        /// Attempts to allocate that still succeed in this thread.
        pub(crate) static ALLOCATIONS_LEFT: AtomicU64 = const { AtomicU64::new(u64::MAX) };
    }

    pub(super) fn full() -> bool {
        ALLOCATIONS_LEFT.with(|left| {
            let now = left.load(Relaxed);
            left.store(now.saturating_sub(1), Relaxed);
            now == 0
        })
    }
}
