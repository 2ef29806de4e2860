//! A file as an object. Its operations are vectored calls on its descriptor. In a batch, what the page cache holds is taken when the operation begins, and
//! the kernel is told of the rest before any of it is waited for, so that devices work side by side. They are counted in the line of the target's device.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, Advice, FallocateFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use crate::devices::Line;
use crate::interface::Object;
use crate::op::{Direction, OFFSET_MAX, Op};
use crate::vectored::transfer;

/// An open file, or one that somebody else holds open.
#[derive(Debug)]
pub struct FileObject<F = OwnedFd> {
    file: F,
    counters: Option<Line>,
}

impl<F: AsFd> FileObject<F> {
    /// The object in a file that has been looked at.
    pub const fn new(file: F) -> Self {
        Self { file, counters: None }
    }

    /// The same, whose operations are counted there.
    #[must_use]
    pub fn counted(self, counters: Option<Line>) -> Self {
        Self { counters, ..self }
    }

    /// Its descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Gives the descriptor back.
    pub fn into_inner(self) -> F {
        self.file
    }
}

impl<F: AsFd + Send + Sync> Object for FileObject<F> {
    #[inline]
    fn start(&self, op: &mut Op<'_>, is_one_of_many: bool) {
        if let Some(counters) = &self.counters {
            counters.count(op.direction() == Direction::Write, op.len());
        }
        if op.direction() == Direction::Write || !is_one_of_many || op.is_nowait() {
            return;
        }
        transfer(self.fd(), op, ReadWriteFlags::NOWAIT);
        // Whatever kept it from going on, the blocking call says better.
        op.outcome.error = None;
        let rest = op.len() - op.outcome.done;
        if let Some(rest) = core::num::NonZeroU64::new(rest) {
            let _ = fs::fadvise(self.fd(), op.offset() + op.outcome.done, Some(rest), Advice::WillNeed);
        }
    }

    #[inline]
    fn finish(&self, op: &mut Op<'_>) {
        if op.outcome.done < op.len() {
            let flags = if op.is_nowait() { ReadWriteFlags::NOWAIT } else { ReadWriteFlags::empty() };
            transfer(self.fd(), op, flags);
        }
    }

    fn punch(&self, at: u64, len: u64) -> Result<(), Errno> {
        at.checked_add(len).filter(|end| *end <= OFFSET_MAX).ok_or(Errno::INVAL)?;
        if len == 0 {
            return Ok(());
        }
        let punch = |len| fs::fallocate(self.fd(), FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, len);
        match punch(len) {
            // It ends where no file of this file system can: what lies before the object's end is all that there is to punch.
            Err(Errno::FBIG) => self.len()?.checked_sub(at).filter(|len| *len > 0).map_or(Ok(()), punch),
            punched => punched,
        }
    }

    fn set_len(&self, len: u64) -> Result<(), Errno> {
        fs::ftruncate(self.fd(), len)
    }

    fn len(&self) -> Result<u64, Errno> {
        fs::fstat(self.fd()).map(|stat| stat.st_size as u64)
    }

    fn next_data(&self, at: u64) -> Result<Option<(u64, u64)>, Errno> {
        if at > OFFSET_MAX {
            return Ok(None);
        }
        match fs::seek(self.fd(), SeekFrom::Data(at)) {
            Ok(start) => match fs::seek(self.fd(), SeekFrom::Hole(start)) {
                Ok(stop) => Ok(Some((start, stop))),
                // Cut in between: there is nothing behind the new end.
                Err(Errno::NXIO) => Ok(None),
                Err(errno) => Err(errno),
            },
            Err(Errno::NXIO) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    fn sync(&self) -> Result<(), Errno> {
        fs::fsync(self.fd())
    }

    fn sync_data(&self) -> Result<(), Errno> {
        fs::fdatasync(self.fd())
    }

    /// fdatasync of a range: msync of a map is the call that takes one. fsync would also wait for what programs write to other regions of the object.
    fn sync_range(&self, from: u64, to: u64) -> Result<(), Errno> {
        let to = to.min(self.len()?);
        // One that ends before the range may have been cut there just now: that must last, too.
        let Some(len) = to.checked_sub(from).and_then(|len| usize::try_from(len).ok()).filter(|len| *len > 0) else {
            return fs::fdatasync(self.fd());
        };
        // SAFETY: a fresh mapping, which nobody touches, unmapped below.
        let mapped = unsafe { mmap(core::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, self.fd(), from) };
        // A range that begins on no page has no map.
        let Ok(base) = mapped else { return self.sync() };
        // SAFETY: the mapping above.
        let flushed = unsafe { msync(base, len, MsyncFlags::SYNC) };
        // SAFETY: as above.
        let _ = unsafe { munmap(base, len) };
        flushed
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd())
    }

    unsafe fn map(&self, address: *mut u8, len: usize, prot: ProtFlags, flags: MapFlags, at: u64) -> Result<*mut u8, Errno> {
        // SAFETY: the caller's promise.
        unsafe { mmap(address.cast(), len, prot, flags, self.fd(), at) }.map(<*mut _>::cast)
    }
}
