//! The medium under a store: every operation that changes durable state, as a trait. The real file system is one
//! implementation ([`super::disk::RealDisk`]); the other ([`super::fake::FakeDisk`]) keeps a live and a durable image, so
//! that tests can cut the power after any step and reorder whatever was not flushed.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use stripewise_target::any::{Any, AnyObject};
use stripewise_target::devices::Devices;
use stripewise_target::interface::Object;

use super::metadata::temporary;
use crate::ctl::Ctl;
use crate::locks::How;
use crate::rights::Part;

/// Bytes that a verb reads, writes or copies at once when nobody asks for less: enough for the targets to work side by side.
pub const CHUNK_BYTES: u64 = 8 << 20;

/// Why an fsync is done: each has a name, so that a test can leave one out and show what then breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FsyncPoint {
    /// The layout's new content, before it takes the old one's name.
    LayoutTmp,
    /// The directory of the file, after the new layout took the old one's name.
    LayoutDir,
    /// New slices, before the layout that names them.
    SliceData,
    /// The target's directory, when a new object was made in it.
    SliceDir,
    /// Punched slices, before a layout says that nothing is retired.
    PunchData,
    /// head, whose size is the durable one, before anything is moved.
    HeadSize,
    /// The parts of a new file, before its link exists.
    NewFileParts,
    /// The directory of a new file, before its link exists.
    NewFileDir,
    /// `files/`, which names the new file's directory.
    FilesDir,
    /// The directory that holds a managed file's link.
    LinkDir,
    /// store.bin's new content.
    StoreTmp,
    /// The store's directory, after store.bin took its name, and the directories made for it.
    StoreDir,
    /// A target's identity file and the directory it is in.
    Identity,
    /// A target's directory, after the objects of a removed file, or of a plane that no region uses any more, went.
    ObjectsGone,
    /// `trash/`, after an entry was removed.
    TrashDir,
    /// `files/` and `trash/`, after a file went from one to the other, before its objects go.
    Trashed,
    /// What an adoption or export is about, before anything else of it exists.
    Journal,
    /// The plain file that an export made, before it takes the link's place.
    ExportData,
    /// The checksums of a file's objects.
    Sums,
    /// The directory of a plain file, after link and file changed places.
    Swap,
    /// The same, after what is not needed any more went from it.
    Swapped,
    /// A plain file whose bytes were copied, before a record says that they are its own.
    CopySource,
    /// The record of copies, before it has its name.
    CopyRecord,
    /// `copies/`, after a record got its name.
    CopyDir,
    /// The word that says whether copies count.
    CopyState,
    /// The marks of copies, before a record needs them.
    CopyMarks,
    /// The same, before copies are dropped.
    CopyDropped,
    /// Control words, after they name other copies.
    CopyWord,
}

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Existing, for reading.
    Read,
    /// Existing, for reading and writing.
    Write,
    /// For reading and writing, mode 0600; an error when the name is taken, by whatever.
    CreateNew,
}

/// What a name leads to, links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// Anything else.
    Other,
}

/// What lstat says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Length in bytes.
    pub size: u64,
    pub allocated_bytes: u64,
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// Last change of the content, seconds since 1970.
    pub mtime_s: i64,
    /// The same in nanoseconds.
    pub mtime_ns: i64,
    /// Last change of anything, nanoseconds since 1970.
    pub ctime_ns: i64,
    /// Names that lead to it.
    pub links: u64,
    /// Permission bits, with set-user-id, set-group-id and sticky.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A directory below which files are touched, held open from the moment it is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root<'a> {
    /// A store's.
    Store,
    /// A target's, whose objects belong to files of the store at `store`, which is held.
    Target {
        /// The store's directory.
        store: &'a Path,
    },
    /// A directory of a user's own files, by a path without symbolic links.
    Place,
}

/// Owner, mode, extended attributes and times of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits, with set-user-id, set-group-id and sticky.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// POSIX access ACL as the kernel passes it; empty when there is none beyond the mode.
    pub acl: Vec<u8>,
    /// All extended attributes, the ACL among them.
    pub xattrs: Vec<(String, Vec<u8>)>,
    /// Last access: seconds since 1970, ns.
    pub accessed: (i64, i64),
    /// Last change of the content, the same.
    pub modified: (i64, i64),
}

/// An open file.
pub trait Handle: Send {
    /// Reads at an offset; short only at the end of the file.
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize>;
    /// Writes all of `buf` at an offset.
    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()>;
    /// Sets the length.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// The same; the times that a program may have set, or go by, stay.
    fn set_len_quietly(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the length is zero.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// The next range that holds data at or after `at`: (start, end); `None` when only holes follow.
    fn next_data(&self, at: u64) -> io::Result<Option<(u64, u64)>>;
    /// Makes content and length durable.
    fn sync(&self, point: FsyncPoint) -> io::Result<()>;
    /// Gives it owner, mode, ACL, extended attributes and times.
    fn give_all(&self, like: &Attributes) -> io::Result<()>;
    /// Gives it owner, mode and ACL of a file, or what a part of a file with these has.
    fn give_rights(&self, like: &Attributes, part: Option<Part>) -> io::Result<()>;
}

/// Who else may have a plain file open that is opened under a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Nobody: whoever opens it waits.
    None,
    /// Those who only read it: whoever opens it for writing, or cuts it, waits.
    Readers,
}

/// A plain file opened so that nobody else has it open in a way that is in the way, and nobody can do so unnoticed.
pub trait Leased: Handle {
    /// What it is now.
    fn stat(&self) -> io::Result<Stat>;
    /// Owner, mode and so on.
    fn attributes(&self) -> io::Result<Attributes>;
    /// Whether somebody waits to open it (and goes on waiting until this is dropped).
    fn is_wanted(&self) -> io::Result<bool>;
}

/// A lock that is given back when dropped.
pub trait Lock: Send {}

/// A mapped ctl file, unmapped when dropped.
pub trait CtlMap: Send {
    /// The words.
    fn ctl(&self) -> Ctl;

    /// Gives the bitmap its blocks: a bit set in a hole on a full disk would be a SIGBUS in the program that writes.
    ///
    /// # Errors
    /// Those of the file system, for want of room above all.
    fn reserve(&self) -> io::Result<()>;
}

/// Mapped device clocks and counters, unmapped when dropped.
pub trait DevicesMap: Send {
    /// The lines.
    fn devices(&self) -> Devices;
}

/// Directories that are held open from the moment they are named, and the targets among them.
pub trait Places {
    /// Opens a directory and holds it: what is named below it from now on lies in this very directory. Where it cannot be opened, neither can what
    /// is below.
    fn hold(&self, dir: &Path, root: Root<'_>) -> io::Result<()>;
    /// From now on nothing but its identity file is touched in a target's directory: it is not this store's.
    fn close_target(&self, dir: &Path);
    /// Holds a [`Root::Place`] no more.
    fn let_go(&self, dir: &Path);
    /// A target's directory, which is held, as a place of objects. An error where it is away, or another's.
    fn target(&self, dir: &Path) -> io::Result<Any>;
    /// Users whom an object may belong to, by the path that it would have; none where everybody may.
    fn object_owners(&self, path: &Path) -> io::Result<Vec<u32>>;
    /// Gives a new object owner, mode and ACL that follow from those of its file, where its target knows such.
    fn give_object(&self, object: &dyn Object, like: &Attributes) -> io::Result<()>;
}

/// What is made, found, renamed and removed by name.
pub trait Names {
    /// Opens a file.
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn Handle>>;
    /// Makes a directory that not everybody may write; an error when the name is taken.
    fn mkdir(&self, path: &Path) -> io::Result<()>;
    /// Renames within one file system, replacing.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file or link.
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn rmdir(&self, path: &Path) -> io::Result<()>;
    /// Makes two names of one directory change places; an error of kind Unsupported where the file system cannot.
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()>;
    /// Gives a file a second name.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Opens a plain file that nobody has open but those `others`; with `lease`, whoever else opens it later waits, and is noticed. `None` when it is in
    /// use; an error of kind Unsupported when its file system knows no leases, or we may have none on it. Beside readers it is opened for reading only.
    fn open_leased(&self, path: &Path, others: Others, lease: bool) -> io::Result<Option<Box<dyn Leased>>>;
    /// Makes a symbolic link.
    fn symlink(&self, text: &Path, at: &Path) -> io::Result<()>;
    /// The text of a symbolic link.
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;
    /// Names in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;
    /// What a name leads to; `None` when it does not exist.
    fn stat(&self, path: &Path) -> io::Result<Option<Stat>>;
    /// When a directory was made, nanoseconds since 1970; 0 where the file system does not know.
    fn born_ns(&self, _dir: &Path) -> io::Result<u64> {
        Ok(0)
    }
}

/// Whose a file is, and who may do what with it.
pub trait Rights {
    /// Sets a directory's mode, whatever the umask.
    fn set_dir_mode(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Takes bits from the mode of a file, and gives it others.
    fn change_mode(&self, path: &Path, take: u32, give: u32) -> io::Result<()>;
    /// Owner, mode and so on of a file.
    fn attributes(&self, path: &Path) -> io::Result<Attributes>;
    /// Gives a part of a file what head lets it have. An error when it belongs to somebody else than head's owner, but for one of our own that holds
    /// nothing yet.
    fn follow_head(&self, head: &Path, to: &Path, part: Part) -> io::Result<()>;
    /// Gives the directory of a managed file the owner and the rights that follow from those of the head in it.
    fn dir_follows_head(&self, dir: &Path) -> io::Result<()>;
    /// Gives a directory owner, mode and ACL of another.
    fn dir_follows(&self, dir: &Path, like: &Path) -> io::Result<()>;
    /// Gives a symbolic link with this text, which we have just made, an owner and group.
    fn own_link(&self, link: &Path, text: &Path, uid: u32, gid: u32) -> io::Result<()>;
    /// The ACL of a file, empty when it has none beyond its mode.
    fn acl(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// What becomes durable; a file's own content with its [`Handle`].
pub trait Flushes {
    /// Whether a flush of what is at `path` is done: a test leaves some out.
    fn flushes(&self, _path: &Path, _point: FsyncPoint) -> io::Result<bool> {
        Ok(true)
    }
    /// Makes `[from, to)` of several objects durable, with what is needed to find it again, and the length of one that ends before. What others write elsewhere
    /// in them need not be.
    fn sync_objects(&self, objects: &[(PathBuf, AnyObject)], (from, to): (u64, u64), point: FsyncPoint) -> io::Result<()> {
        objects.iter().try_for_each(|(path, object)| if self.flushes(path, point)? { Ok(object.sync_range(from, to)?) } else { Ok(()) })
    }
    /// Makes a directory's entries durable.
    fn sync_dir(&self, dir: &Path, point: FsyncPoint) -> io::Result<()>;
}

/// What verbs and programs meet by: locks ([`crate::locks`]), control words, device clocks, slots.
pub trait Meetings {
    /// Makes an empty file that all may use who may use the directory, if it is missing.
    fn make_common(&self, path: &Path) -> io::Result<()>;
    /// Takes the presence lock of ctl or of the session ([`crate::locks`]) without waiting; `None` when somebody else has it.
    fn try_presence(&self, path: &Path, how: How) -> io::Result<Option<Box<dyn Lock>>>;
    /// Takes `flock` of a file of our own kind (a slot, the mover's lock, a journal) without waiting; `None` when somebody else has it.
    fn try_lock(&self, path: &Path, exclusive: bool) -> io::Result<Option<Box<dyn Lock>>>;
    /// Waits for the lock of a file's directory that appends and truncates take. An error of kind TimedOut when somebody else keeps it.
    fn lock_dir(&self, dir: &Path) -> io::Result<Box<dyn Lock>>;
    /// Processes that hold a lock on a file, as far as the system tells.
    fn lock_holders(&self, path: &Path) -> io::Result<Vec<u32>>;
    /// Whether some process has a map of the file, by the lock that it holds on ctl.
    fn is_pinned(&self, ctl: &Path) -> io::Result<bool>;
    /// Maps a ctl file; made (zeroes) when missing and `create`. An error of kind InvalidData when it is too short.
    fn ctl(&self, path: &Path, create: bool) -> io::Result<Box<dyn CtlMap>>;
    /// Maps the device clocks of this boot. `None` when there are none; with `create` the file is made, or made this boot's, first.
    fn devices(&self, run_dir: &Path, targets: usize, create: bool) -> io::Result<Option<Box<dyn DevicesMap>>>;
    /// Waits until every live program was outside an I/O once; false when one stayed inside for `patience_ns`.
    fn grace(&self, run_dir: &Path, patience_ns: u64) -> io::Result<bool>;
    /// The run directory, to read slots in; `None` on a medium that has none.
    fn run_fd(&self, run_dir: &Path) -> io::Result<Option<OwnedFd>>;
}

/// The machine itself, and its time.
pub trait Machine {
    /// Waits.
    fn pause(&self, ms: u64);
    /// This boot's id, as the kernel spells it.
    fn boot_id(&self) -> io::Result<String>;
    /// This machine's id: text that differs between machines and survives reboots; empty when it has none.
    fn machine_id(&self) -> io::Result<String>;
    /// Seconds since 1970.
    fn now_s(&self) -> i64;
}

/// Everything the admin half does to durable state.
pub trait Medium: Places + Names + Rights + Flushes + Meetings + Machine + Send + Sync {}

impl<M: Places + Names + Rights + Flushes + Meetings + Machine + Send + Sync> Medium for M {}

/// Reads a whole small file (at most `limit` bytes; longer is an error of kind InvalidData).
pub fn read_small(medium: &dyn Medium, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = medium.open(path, Open::Read)?;
    let len = file.len()?;
    if len > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{len} bytes long, at most {limit} expected")));
    }
    let mut bytes = vec![0u8; len as usize];
    let got = file.read_at(&mut bytes, 0)?;
    bytes.truncate(got);
    Ok(bytes)
}

/// Replaces a small file: tmp, fsync, rename, fsync(dir). Old or new content is there whatever happens. The new one has the rights of the old one.
pub fn replace_file(medium: &dyn Medium, path: &Path, bytes: &[u8], tmp_point: FsyncPoint, dir_point: FsyncPoint) -> io::Result<()> {
    let like = if medium.stat(path)?.is_some() { Some(medium.attributes(path)?) } else { None };
    put_file(medium, path, bytes, like.as_ref(), (tmp_point, dir_point))
}

/// The same with the rights of `like`, or those of a new file of our own.
pub fn put_file(
    medium: &dyn Medium,
    path: &Path,
    bytes: &[u8],
    like: Option<&Attributes>,
    (tmp_point, dir_point): (FsyncPoint, FsyncPoint),
) -> io::Result<()> {
    let dir = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let tmp = temporary::name_for(path).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let replace = || {
        let file = medium.open(&tmp, Open::CreateNew)?;
        file.write_at(bytes, 0)?;
        if let Some(like) = like {
            file.give_rights(like, None)?;
        }
        file.sync(tmp_point)?;
        medium.rename(&tmp, path)
    };
    // Nobody else has a file of this name, and nobody looks for it.
    replace().inspect_err(|_| drop(medium.unlink(&tmp)))?;
    medium.sync_dir(dir, dir_point)
}
