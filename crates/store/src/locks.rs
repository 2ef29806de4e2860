//! The locks by which processes meet on a file and on a store, and why nobody can hold one who has no business there.
//!
//! Of a lock of the kernel's only the right to open its inode decides who may take it: a reader may take `flock` of either kind, and a shared lock of a
//! byte, which keeps everybody from the exclusive one. So there are two kinds:
//!
//! - *Presence* (who has the file, a line, or a map of it): shared locks on bytes of ctl or of `run/session.lock`. Exclusive ones take a descriptor
//!   for writing, so one who may only read keeps others from having the file for themselves, as anybody does who opens it, and nobody from opening it.
//! - *Exclusion* (append, cut, growth of a map, recovery): `flock` of the file's directory, opened for reading, which its mode ([`crate::rights::Part::Dir`])
//!   allows to those who may write the file and to nobody else.
//!
//! All are of the open file description (OFD), and the kernel gives them back with the last descriptor.

/// Byte of ctl, and of `run/session.lock`, that all who use the file, or the store, have locked shared; exclusively who has it for himself.
pub const PRESENCE_BYTE: i64 = 0;
/// Byte of ctl that maps of the file keep locked, shared.
pub const PIN_BYTE: i64 = 1;
/// Byte of ctl whose exclusive lock says that the owner of line 0 lives; that of line `n` is `n` further on.
pub const LINES_AT: i64 = 64;

/// How a byte is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With others.
    Shared,
    /// Alone.
    Exclusive,
}

/// What `fcntl` takes for the lock of one byte.
#[must_use]
pub const fn range(how: How, byte: i64) -> libc::flock {
    let kind = match how {
        How::Shared => libc::F_RDLCK,
        How::Exclusive => libc::F_WRLCK,
    };
    libc::flock { l_type: kind as libc::c_short, l_whence: libc::SEEK_SET as libc::c_short, l_start: byte, l_len: 1, l_pid: 0 }
}

/// Whether `F_OFD_GETLK` has found a lock in the way. Asked for a shared one, only an exclusive one is: who may only read the inode has none of those.
#[must_use]
pub const fn is_taken(found: &libc::flock) -> bool {
    found.l_type != libc::F_UNLCK as libc::c_short
}
