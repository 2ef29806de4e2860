//! The two ends of a copy between descriptors: a managed file, or anything else that the kernel knows. Both are asked the same questions, and
//! moved to and from by explicit offsets; only streams (pipes, sockets, terminals) have none.

use crate::base::sys::{self, Errno, Sys, call};
use crate::base::vector::Buffers;
use crate::fds::{self, INTERNAL, TRACED};
use crate::io;
use crate::open::{Use, another};
use stripewise_layout::MAX_LOGICAL;
use syscalls::Sysno;

const NOWAIT_HERE: usize = usize::MAX;

/// One end.
pub struct End {
    /// The program's descriptor.
    pub fd: i32,
    managed: Option<Use>,
    flags: i32,
    stat: libc::stat,
}

impl End {
    /// The end behind a descriptor; EBADF for those that cannot move bytes at all.
    pub fn of(fd: i32) -> Sys<Self> {
        let entry = fds::entry(fd);
        let managed = if entry == 0 || entry & (TRACED | INTERNAL) == TRACED { None } else { Some(another(fd)?) };
        let flags = match &managed {
            Some(open) => open.flags() & !libc::O_APPEND | if open.is_append() { libc::O_APPEND } else { 0 },
            None => sys::fcntl(fd, libc::F_GETFL, 0)? as i32,
        };
        if flags & libc::O_PATH != 0 {
            return Err(Errno(libc::EBADF));
        }
        Ok(Self { fd, managed, flags, stat: sys::fstat(fd)? })
    }

    /// Opened for reading.
    pub fn reads(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_WRONLY
    }

    /// Opened for writing.
    pub fn writes(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_RDONLY
    }

    /// Writes go to the end of the file.
    pub fn appends(&self) -> bool {
        self.flags & libc::O_APPEND != 0
    }

    /// Does not wait.
    pub fn is_nonblocking(&self) -> bool {
        self.flags & libc::O_NONBLOCK != 0
    }

    /// In the store.
    pub fn is_managed(&self) -> bool {
        self.managed.is_some()
    }

    fn is(&self, kind: u32) -> bool {
        self.stat.st_mode & libc::S_IFMT == kind
    }

    pub fn is_pipe(&self) -> bool {
        self.is(libc::S_IFIFO)
    }

    /// A file with contents.
    pub fn is_regular(&self) -> bool {
        self.is(libc::S_IFREG)
    }

    pub fn is_directory(&self) -> bool {
        self.is(libc::S_IFDIR)
    }

    /// Has a position: all but pipes, sockets and terminals.
    pub fn is_seekable(&self) -> bool {
        self.position().is_ok()
    }

    /// The same file by whatever descriptor.
    pub fn is_same_file(&self, other: &Self) -> bool {
        self.stat.st_dev == other.stat.st_dev && self.stat.st_ino == other.stat.st_ino
    }

    /// Bytes in the file.
    pub fn size(&self) -> Sys<u64> {
        match &self.managed {
            Some(open) => open.file()?.size(),
            None => Ok(self.stat.st_size as u64),
        }
    }

    /// The first offset that no file of this kind has.
    pub fn offset_limit(&self) -> u64 {
        if self.is_managed() { MAX_LOGICAL } else { i64::MAX as u64 }
    }

    fn offset_fd(&self) -> i32 {
        self.managed.as_ref().map_or(self.fd, |open| open.offset_fd(self.fd))
    }

    /// The current position; ESPIPE for streams.
    pub fn position(&self) -> Sys<i64> {
        sys::lseek(self.offset_fd(), 0, libc::SEEK_CUR).map(|at| at as i64)
    }

    /// Moves the current position.
    pub fn set_position(&self, at: i64) {
        let _ = sys::lseek(self.offset_fd(), at, libc::SEEK_SET);
    }

    /// Reads at an offset.
    pub fn read_at(&self, to: &mut [u8], at: u64) -> Sys<usize> {
        match &self.managed {
            Some(open) => {
                let one = [libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() }];
                io::read_at(open, &Buffers::of(&one)?, at, 0).map(|n| n as usize)
            }
            // SAFETY: a slice of our own.
            None => unsafe { sys::pread(self.fd, to.as_mut_ptr(), to.len(), at) },
        }
    }

    /// Writes at an offset.
    pub fn write_at(&self, from: &[u8], at: u64) -> Sys<usize> {
        match &self.managed {
            Some(open) => {
                let one = [libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: from.len() }];
                io::write_at(open, &Buffers::of(&one)?, at, 0).map(|n| n as usize)
            }
            // SAFETY: a slice of our own.
            None => unsafe { sys::pwrite(self.fd, from.as_ptr(), from.len(), at) },
        }
    }

    /// Writes into a pipe as much as has room; waits only for the first room, and not even for that with `nonblocking`.
    pub fn feed(&self, from: &[u8], nonblocking: bool) -> Sys<usize> {
        loop {
            let one = [libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: from.len() }];
            let args = [self.fd as usize, one.as_ptr() as usize, 1, NOWAIT_HERE, NOWAIT_HERE, libc::RWF_NOWAIT as usize];
            match call(Sysno::pwritev2, args) {
                Err(Errno(libc::EAGAIN)) if !nonblocking => self.wait_for_room(-1)?,
                Err(Errno(libc::EOPNOTSUPP | libc::ENOSYS)) => return self.feed_pages(from, nonblocking),
                result => return result.map(|n| n as usize),
            }
        }
    }

    /// The same where the flag is not known: a pipe that was spliced before, an older kernel, an emulator. What fits a page never waits when poll
    /// promises room.
    fn feed_pages(&self, from: &[u8], nonblocking: bool) -> Sys<usize> {
        let mut done = 0;
        for page in from.chunks(libc::PIPE_BUF) {
            let timeout_ms = if nonblocking || done > 0 { 0 } else { -1 };
            match self.wait_for_room(timeout_ms).and_then(|()| sys::write(self.fd, page)) {
                Ok(n) => done += n,
                Err(errno) => return if done > 0 { Ok(done) } else { Err(errno) },
            }
        }
        Ok(done)
    }

    fn wait_for_room(&self, timeout_ms: i32) -> Sys<()> {
        let mut event = libc::pollfd { fd: self.fd, events: libc::POLLOUT, revents: 0 };
        match call(Sysno::poll, [&raw mut event as usize, 1, timeout_ms as usize, 0, 0, 0])? {
            0 => Err(Errno(libc::EAGAIN)),
            _ => Ok(()),
        }
    }
}
