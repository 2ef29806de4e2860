//! The operations of a workload path: one list, whose numbers stand in path files and never change.
//!
//! A digit after a name tells what is folded into the call (thesis, section 2.5.2): `read1` has a seek before it, `mpi_iread01` has none and is waited for
//! at once. `workloads/player/path/ops.h` has the same list for the player; a test compares them.

/// Whether an operation moves a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Data,
    Metadata,
}

/// Whether an operation needs an open file (thesis, figure 2.2: columns 2 and 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Inside,
    Outside,
    /// `opendir` alone: it opens a session of a directory, or stands by itself ([`crate::node::ALONE`]).
    Both,
}

/// Which interface has the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    Posix,
    Mpi,
}

/// What a data operation does to the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    Nothing,
    Reads,
    Writes,
}

/// Where the offset of a call comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The operation has none.
    None,
    /// Given with the call.
    Explicit,
    /// The file's pointer, set by a seek before the call.
    Seek,
    /// The file's pointer, as the call before left it.
    Pointer,
    /// The pointer that all processes share.
    Shared,
}

/// What is known of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub name: &'static str,
    pub kind: Kind,
    pub place: Place,
    pub layer: Layer,
    pub moves: Moves,
    pub position: Position,
    /// All processes of the communicator make the call together.
    pub collective: bool,
    /// A wait follows later (`false` too where it is folded in).
    pub pending: bool,
}

const fn metadata(name: &'static str, place: Place, layer: Layer, collective: bool) -> Facts {
    Facts { name, kind: Kind::Metadata, place, layer, moves: Moves::Nothing, position: Position::None, collective, pending: false }
}

const fn data(name: &'static str, layer: Layer, moves: Moves, position: Position, collective: bool, pending: bool) -> Facts {
    Facts { name, kind: Kind::Data, place: Place::Inside, layer, moves, position, collective, pending }
}

macro_rules! ops {
    ($($variant:ident = $number:literal, $facts:expr;)*) => {
        /// An operation; the number is the one in the file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Op { $($variant = $number),* }

        /// All operations, by number.
        pub const OPS: &[Op] = &[$(Op::$variant),*];

        impl Op {
            /// The operation of a number.
            #[must_use]
            pub const fn of(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }

            /// What is known of it.
            #[must_use]
            pub const fn facts(self) -> Facts {
                match self { $(Self::$variant => $facts),* }
            }
        }
    };
}

use Layer::{Mpi, Posix};
use Moves::{Reads, Writes};
use Place::{Both, Inside, Outside};
use Position::{Explicit, Pointer, Seek, Shared};

ops! {
    Open = 1, metadata("open", Inside, Posix, false);
    Close = 2, metadata("close", Inside, Posix, false);
    Read0 = 3, data("read0", Posix, Reads, Pointer, false, false);
    Read1 = 4, data("read1", Posix, Reads, Seek, false, false);
    Write0 = 5, data("write0", Posix, Writes, Pointer, false, false);
    Write1 = 6, data("write1", Posix, Writes, Seek, false, false);
    Pread = 7, data("pread", Posix, Reads, Explicit, false, false);
    Pwrite = 8, data("pwrite", Posix, Writes, Explicit, false, false);
    Seek = 9, Facts { position: Explicit, ..metadata("seek", Inside, Posix, false) };
    Fsync = 10, metadata("fsync", Inside, Posix, false);
    Fdatasync = 11, metadata("fdatasync", Inside, Posix, false);
    Ftruncate = 12, metadata("ftruncate", Inside, Posix, false);
    Fallocate = 13, Facts { position: Explicit, ..metadata("fallocate", Inside, Posix, false) };
    Fstat = 14, metadata("fstat", Inside, Posix, false);
    Fcntl = 15, metadata("fcntl", Inside, Posix, false);
    Lock = 16, Facts { position: Explicit, ..metadata("lock", Inside, Posix, false) };
    Mmap = 17, Facts { position: Explicit, ..metadata("mmap", Inside, Posix, false) };
    Munmap = 18, metadata("munmap", Inside, Posix, false);
    Readdir = 19, metadata("readdir", Inside, Posix, false);
    Advise = 20, Facts { position: Explicit, ..metadata("advise", Inside, Posix, false) };

    Stat = 32, metadata("stat", Outside, Posix, false);
    Access = 33, metadata("access", Outside, Posix, false);
    Statfs = 34, metadata("statfs", Outside, Posix, false);
    Unlink = 35, metadata("unlink", Outside, Posix, false);
    Rename = 36, metadata("rename", Outside, Posix, false);
    Link = 37, metadata("link", Outside, Posix, false);
    Symlink = 38, metadata("symlink", Outside, Posix, false);
    Readlink = 39, metadata("readlink", Outside, Posix, false);
    Mkdir = 40, metadata("mkdir", Outside, Posix, false);
    Rmdir = 41, metadata("rmdir", Outside, Posix, false);
    Mknod = 42, metadata("mknod", Outside, Posix, false);
    Truncate = 43, metadata("truncate", Outside, Posix, false);
    Setattr = 44, metadata("setattr", Outside, Posix, false);
    Opendir = 45, metadata("opendir", Both, Posix, false);

    MpiOpen = 64, metadata("mpi_open", Inside, Mpi, true);
    MpiClose = 65, metadata("mpi_close", Inside, Mpi, true);
    MpiReadAt = 66, data("mpi_read_at", Mpi, Reads, Explicit, false, false);
    MpiWriteAt = 67, data("mpi_write_at", Mpi, Writes, Explicit, false, false);
    MpiReadAtAll = 68, data("mpi_read_at_all", Mpi, Reads, Explicit, true, false);
    MpiWriteAtAll = 69, data("mpi_write_at_all", Mpi, Writes, Explicit, true, false);
    MpiRead0 = 70, data("mpi_read0", Mpi, Reads, Pointer, false, false);
    MpiRead1 = 71, data("mpi_read1", Mpi, Reads, Position::Seek, false, false);
    MpiWrite0 = 72, data("mpi_write0", Mpi, Writes, Pointer, false, false);
    MpiWrite1 = 73, data("mpi_write1", Mpi, Writes, Position::Seek, false, false);
    MpiReadAll0 = 74, data("mpi_read_all0", Mpi, Reads, Pointer, true, false);
    MpiReadAll1 = 75, data("mpi_read_all1", Mpi, Reads, Position::Seek, true, false);
    MpiWriteAll0 = 76, data("mpi_write_all0", Mpi, Writes, Pointer, true, false);
    MpiWriteAll1 = 77, data("mpi_write_all1", Mpi, Writes, Position::Seek, true, false);
    MpiReadShared = 78, data("mpi_read_shared", Mpi, Reads, Shared, false, false);
    MpiWriteShared = 79, data("mpi_write_shared", Mpi, Writes, Shared, false, false);
    MpiReadOrdered = 80, data("mpi_read_ordered", Mpi, Reads, Shared, true, false);
    MpiWriteOrdered = 81, data("mpi_write_ordered", Mpi, Writes, Shared, true, false);
    MpiIread00 = 82, data("mpi_iread00", Mpi, Reads, Pointer, false, true);
    MpiIread01 = 83, data("mpi_iread01", Mpi, Reads, Pointer, false, false);
    MpiIread10 = 84, data("mpi_iread10", Mpi, Reads, Position::Seek, false, true);
    MpiIread11 = 85, data("mpi_iread11", Mpi, Reads, Position::Seek, false, false);
    MpiIwrite00 = 86, data("mpi_iwrite00", Mpi, Writes, Pointer, false, true);
    MpiIwrite01 = 87, data("mpi_iwrite01", Mpi, Writes, Pointer, false, false);
    MpiIwrite10 = 88, data("mpi_iwrite10", Mpi, Writes, Position::Seek, false, true);
    MpiIwrite11 = 89, data("mpi_iwrite11", Mpi, Writes, Position::Seek, false, false);
    MpiIreadAt0 = 90, data("mpi_iread_at0", Mpi, Reads, Explicit, false, true);
    MpiIreadAt1 = 91, data("mpi_iread_at1", Mpi, Reads, Explicit, false, false);
    MpiIwriteAt0 = 92, data("mpi_iwrite_at0", Mpi, Writes, Explicit, false, true);
    MpiIwriteAt1 = 93, data("mpi_iwrite_at1", Mpi, Writes, Explicit, false, false);
    MpiIreadAtAll0 = 94, data("mpi_iread_at_all0", Mpi, Reads, Explicit, true, true);
    MpiIreadAtAll1 = 95, data("mpi_iread_at_all1", Mpi, Reads, Explicit, true, false);
    MpiIwriteAtAll0 = 96, data("mpi_iwrite_at_all0", Mpi, Writes, Explicit, true, true);
    MpiIwriteAtAll1 = 97, data("mpi_iwrite_at_all1", Mpi, Writes, Explicit, true, false);
    MpiWait = 98, metadata("mpi_wait", Inside, Mpi, false);
    MpiSeek = 99, Facts { position: Explicit, ..metadata("mpi_seek", Inside, Mpi, false) };
    MpiView = 100, Facts { position: Explicit, ..metadata("mpi_view", Inside, Mpi, true) };
    MpiSync = 101, metadata("mpi_sync", Inside, Mpi, true);
    MpiSetSize = 102, metadata("mpi_set_size", Inside, Mpi, true);
    MpiGetSize = 103, metadata("mpi_get_size", Inside, Mpi, false);
    MpiPreallocate = 104, metadata("mpi_preallocate", Inside, Mpi, true);
    MpiAtomicity = 105, metadata("mpi_atomicity", Inside, Mpi, true);
    MpiDelete = 112, metadata("mpi_delete", Outside, Mpi, false);
}

impl Op {
    /// The number in the file.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The name, as users and profiles write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Whether it may be made on a file that is marked as a directory, apart from `rename`.
    #[must_use]
    pub const fn is_on_directories(self) -> bool {
        use Op::{Access, Close, Fcntl, Fdatasync, Fstat, Fsync, Mkdir, Opendir, Readdir, Readlink, Rmdir, Setattr, Stat, Statfs};
        matches!(self, Mkdir | Rmdir | Opendir | Readdir | Close | Fstat | Fcntl | Fsync | Fdatasync | Stat | Access | Statfs | Readlink | Setattr)
    }

    /// The operation of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        OPS.iter().copied().find(|op| op.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::{OPS, Op};

    #[test]
    fn numbers_and_names_lead_back_to_their_operation() {
        for op in OPS {
            assert_eq!(Op::of(op.number()), Some(*op));
            assert_eq!(Op::named(op.name()), Some(*op));
        }
        assert_eq!(Op::of(0), None);
    }
}
