//! Parts of a store and of its targets, opened so that nobody leads us elsewhere: by one name at a time, relative to a directory that is held
//! open, never through a symbolic link, never waiting (a FIFO, a lease), and looked at before anything is done with them. Library and verbs open
//! nothing of a store in any other way (docs/security.md). Nothing here allocates.

use core::ffi::CStr;
use core::fmt;

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{self, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

pub use rustix::fs::{OFlags as OpenFlags, Stat as PartStat};
pub use rustix::io::Errno as Os;

/// Longest of the small texts: a link's record, an identity, a journal.
pub const TEXT_BYTES_MAX: u64 = 16_384;

/// Why a part is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The kernel said so.
    Os(Errno),
    /// A symbolic link stands in its place.
    Link,
    /// Neither regular file nor directory where one is due: a FIFO, a device, a directory for a file.
    Kind,
    /// It belongs to somebody who has no business there.
    Owner,
    /// It has another name: somebody else's file may have been given this one.
    HardLink,
    /// Longer than the format allows.
    Size,
    /// A directory in which everybody may replace everybody's files.
    WorldWritable,
    /// It lies in a directory that does not say that it is this store's target.
    Foreign,
}

impl Refusal {
    /// What a program gets to see: the kernel's own error, or EIO, for data are never guessed.
    #[must_use]
    pub const fn errno(self) -> Errno {
        match self {
            Self::Os(errno) => errno,
            _ => Errno::IO,
        }
    }

    /// What is wrong, for a sentence that begins with the path.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Os(_) => "cannot be opened",
            Self::Link => "is a symbolic link, which no part of a store is",
            Self::Kind => "is not a regular file or directory, as a part of a store must be",
            Self::Owner => "belongs to a user who has no business there",
            Self::HardLink => "has a second name (a hard link), which no part of a store has",
            Self::Size => "is longer than the format allows",
            Self::WorldWritable => "is a directory in which everybody may replace everybody's files",
            Self::Foreign => "lies in a directory that does not say that it is this store's target",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os(errno) => write!(f, "{errno}"),
            _ => f.write_str(self.text()),
        }
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        match errno {
            // What O_NOFOLLOW answers for a link in the last place.
            Errno::LOOP => Self::Link,
            // A directory where a file is due, or the reverse; what a socket or a device without a driver answers.
            Errno::ISDIR | Errno::NOTDIR | Errno::NXIO | Errno::NODEV => Self::Kind,
            errno => Self::Os(errno),
        }
    }
}

/// What a part must be.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// Users whom it may belong to; empty: anybody.
    pub owners: &'a [u32],
    /// Longest length in bytes.
    pub bytes_max: u64,
    /// It may have several names: for what is only looked at.
    pub hard_links: bool,
}

impl<'a> Expected<'a> {
    /// A part of one of these users, of any length.
    #[must_use]
    pub const fn of(owners: &'a [u32]) -> Self {
        Self { owners, bytes_max: u64::MAX, hard_links: false }
    }

    /// The same with a limit.
    #[must_use]
    pub const fn at_most(self, bytes_max: u64) -> Self {
        Self { bytes_max, ..self }
    }

    /// The same, whatever other names it has.
    #[must_use]
    pub const fn hard_links_too(self) -> Self {
        Self { hard_links: true, ..self }
    }

    /// Looks at an opened file.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check(&self, stat: &Stat) -> Result<(), Refusal> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(Refusal::Link),
            _ => return Err(Refusal::Kind),
        }
        if stat.st_nlink > 1 && !self.hard_links {
            return Err(Refusal::HardLink);
        }
        check_owner(stat, self.owners)?;
        if stat.st_size as u64 > self.bytes_max { Err(Refusal::Size) } else { Ok(()) }
    }
}

fn check_owner(stat: &Stat, owners: &[u32]) -> Result<(), Refusal> {
    if owners.is_empty() || owners.contains(&stat.st_uid) { Ok(()) } else { Err(Refusal::Owner) }
}

/// Opens a regular file `name` (one component) of a directory, and looks at it before anybody reads or writes it.
///
/// # Errors
/// The kernel's, or what does not fit.
pub fn open_file(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags, expected: Expected<'_>) -> Result<(OwnedFd, Stat), Refusal> {
    let fd = fs::openat(dir, name, flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())?;
    let stat = fs::fstat(&fd)?;
    expected.check(&stat)?;
    if !flags.contains(OFlags::NONBLOCK) && !flags.contains(OFlags::PATH) {
        // It was for the opening alone.
        fs::fcntl_setfl(&fd, flags)?;
    }
    Ok((fd, stat))
}

/// Makes a regular file; an error when the name is taken, by whatever. Its mode is `mode`, whatever the umask.
///
/// # Errors
/// The kernel's.
pub fn create_file(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags, mode: u32) -> Result<OwnedFd, Errno> {
    let fd = fs::openat(dir, name, flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::from_raw_mode(mode))?;
    // A look costs less than a change, which a journal has to write down.
    if fs::fstat(&fd)?.st_mode & 0o7777 != mode {
        fs::fchmod(&fd, Mode::from_raw_mode(mode))?;
    }
    Ok(fd)
}

/// Holds a directory `name` (one component) of a directory open, as a place to open its entries from.
///
/// # Errors
/// The kernel's, or what does not fit.
pub fn open_dir(dir: BorrowedFd<'_>, name: &CStr, owners: &[u32]) -> Result<(OwnedFd, Stat), Refusal> {
    open_dir_as(dir, name, OFlags::PATH, owners)
}

/// The same, opened for more than that.
///
/// # Errors
/// As [`open_dir`].
pub fn open_dir_as(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags, owners: &[u32]) -> Result<(OwnedFd, Stat), Refusal> {
    let fd = fs::openat(dir, name, flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| {
        // The kernel finds that the link itself is not a directory.
        let is_link = errno == Errno::NOTDIR
            && fs::statat(dir, name, fs::AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|st| FileType::from_raw_mode(st.st_mode) == FileType::Symlink);
        if is_link { Refusal::Link } else { Refusal::from(errno) }
    })?;
    let stat = fs::fstat(&fd)?;
    check_dir(&stat, owners)?;
    Ok((fd, stat))
}

/// Looks at a directory that was opened before: it still is what [`open_dir`] would open.
///
/// # Errors
/// What does not fit.
pub fn check_dir(stat: &Stat, owners: &[u32]) -> Result<(), Refusal> {
    check_owner(stat, owners)?;
    check_writers(stat)
}

/// Holds the root of a store or of a target open; symbolic links on the way are followed, this once.
///
/// # Errors
/// The kernel's, or what does not fit.
pub fn open_root(path: &CStr, owners: &[u32]) -> Result<(OwnedFd, Stat), Refusal> {
    let fd = fs::openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(Refusal::Os)?;
    let stat = fs::fstat(&fd)?;
    check_dir(&stat, owners)?;
    Ok((fd, stat))
}

/// Where everybody may make entries, nobody may remove another's: the sticky bit.
fn check_writers(stat: &Stat) -> Result<(), Refusal> {
    if stat.st_mode & 0o1002 == 0o002 { Err(Refusal::WorldWritable) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use rustix::fd::AsFd;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn place() -> (tempfile::TempDir, OwnedFd) {
        let dir = tempfile::tempdir().unwrap();
        let path = std::ffi::CString::new(dir.path().to_str().unwrap()).unwrap();
        let fd = open_root(&path, &[]).unwrap().0;
        (dir, fd)
    }

    fn me() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn a_regular_file_of_the_right_user_is_opened_without_o_nonblock() {
        let (dir, fd) = place();
        std::fs::write(dir.path().join("part"), b"abc").unwrap();
        let (file, stat) = open_file(fd.as_fd(), c"part", OFlags::RDWR, Expected::of(&[me()]).at_most(3)).unwrap();
        assert_eq!(stat.st_size, 3);
        assert!(!fs::fcntl_getfl(&file).unwrap().contains(OFlags::NONBLOCK));
    }

    #[test]
    fn what_stands_in_the_place_of_a_file_is_named_and_never_opened_through() {
        let (dir, fd) = place();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("victim"), b"abc").unwrap();
        symlink(at("victim"), at("link")).unwrap();
        fs::mknodat(&fd, c"fifo", FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        std::fs::create_dir(at("dir")).unwrap();
        std::fs::hard_link(at("victim"), at("hard")).unwrap();
        let open = |name: &CStr, expected| open_file(fd.as_fd(), name, OFlags::RDONLY, expected).map(|_| ()).unwrap_err();
        assert_eq!(open(c"link", Expected::of(&[])), Refusal::Link);
        assert_eq!(open(c"fifo", Expected::of(&[])), Refusal::Kind);
        assert_eq!(open(c"dir", Expected::of(&[])), Refusal::Kind);
        assert_eq!(open(c"hard", Expected::of(&[])), Refusal::HardLink);
        assert_eq!(open(c"missing", Expected::of(&[])), Refusal::Os(Errno::NOENT));
        std::fs::remove_file(at("hard")).unwrap();
        let (other, mine) = ([me() + 1], [me()]);
        assert_eq!(open(c"victim", Expected::of(&other)), Refusal::Owner);
        assert_eq!(open(c"victim", Expected::of(&mine).at_most(2)), Refusal::Size);
    }

    #[test]
    fn a_directory_is_neither_a_link_nor_everybody_s() {
        let (dir, fd) = place();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("real")).unwrap();
        symlink(at("real"), at("link")).unwrap();
        std::fs::write(at("file"), b"").unwrap();
        assert!(open_dir(fd.as_fd(), c"real", &[me()]).is_ok());
        assert_eq!(open_dir(fd.as_fd(), c"link", &[]).unwrap_err(), Refusal::Link);
        assert_eq!(open_dir(fd.as_fd(), c"file", &[]).unwrap_err(), Refusal::Kind);
        assert_eq!(open_dir(fd.as_fd(), c"real", &[me() + 1]).unwrap_err(), Refusal::Owner);
        std::fs::set_permissions(at("real"), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(open_dir(fd.as_fd(), c"real", &[]).unwrap_err(), Refusal::WorldWritable);
        std::fs::set_permissions(at("real"), std::fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(open_dir(fd.as_fd(), c"real", &[]).is_ok());
    }

    #[test]
    fn a_new_file_takes_no_name_that_is_taken_and_has_its_mode_whatever_the_umask() {
        let (dir, fd) = place();
        symlink(dir.path().join("nowhere"), dir.path().join("taken")).unwrap();
        assert_eq!(create_file(fd.as_fd(), c"taken", OFlags::RDWR, 0o644).unwrap_err(), Errno::EXIST);
        create_file(fd.as_fd(), c"new", OFlags::RDWR, 0o666).unwrap();
        assert_eq!(std::fs::metadata(dir.path().join("new")).unwrap().permissions().mode() & 0o7777, 0o666);
        assert!(!dir.path().join("nowhere").exists());
    }
}
