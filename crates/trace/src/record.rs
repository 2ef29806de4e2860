//! One traced call: 64 bytes that hold everything spec'd for a trace record; process, rank and thread come from the log's header.
//!
//! The last word carries a check over the other seven and the slot number. It is stored last, so a record that a kill cut
//! short, or that lies in the wrong slot, does not pass for data.

/// Bytes of a record on disk and in memory.
pub const RECORD_BYTES: u64 = 64;

/// Bits of [`Record::flags`].
pub mod flags {
    /// Logical layer (an MPI-IO call, before collective optimisation); without it the record is of the posix layer.
    pub const MPI: u32 = 1;
    /// The file lives in a Stripewise store.
    pub const MANAGED: u32 = 1 << 1;
    /// A collective call.
    pub const COLLECTIVE: u32 = 1 << 2;
    /// The call returned before the I/O was done (nonblocking, asynchronous, split collective).
    pub const NONBLOCKING: u32 = 1 << 3;
    /// The offset was the file position, not an argument.
    pub const IMPLICIT_OFFSET: u32 = 1 << 4;
    /// The offset is not known (a pipe, `O_APPEND` on a foreign file); `offset` is meaningless.
    pub const UNKNOWN_OFFSET: u32 = 1 << 5;
    /// Scattered memory (`readv`, `preadv`): one contiguous range of the file all the same.
    pub const VECTOR: u32 = 1 << 6;
    /// Opened with `O_DIRECT`.
    pub const DIRECT: u32 = 1 << 7;
    /// Opened with `O_APPEND`.
    pub const APPEND: u32 = 1 << 8;
    /// Through a stdio stream.
    pub const STDIO: u32 = 1 << 9;
    /// This record continues the one before it (an extent of a flattened datatype).
    pub const CONTINUES: u32 = 1 << 10;
    /// By the shared file pointer of an MPI file.
    pub const SHARED: u32 = 1 << 11;
    /// Of several nonblocking calls that may have caused this one, the first stands as its parent (set by `collect`).
    pub const AMBIGUOUS: u32 = 1 << 12;
    /// Read from a copy of the file (`stripewise replicate`), all of it.
    pub const COPIED: u32 = 1 << 13;
    /// This open has created the file: nothing was at its name.
    pub const CREATED: u32 = 1 << 14;
}

/// Flags and aux of a read by the number of the replica that has served it: a read without a number is not of replica 0.
#[must_use]
pub const fn read_from(replica: Option<u32>) -> (u32, u32) {
    match replica {
        Some(number) => (flags::COPIED, number + 1),
        None => (0, 0),
    }
}

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        /// What was called. The numbers are the on-disk form and never change; 100 and up are of the mpi layer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        #[non_exhaustive]
        pub enum Op { $($(#[$doc])* $name = $value,)* }

        impl Op {
            /// Every operation, in the order of its number.
            pub const ALL: &'static [Op] = &[$(Op::$name),*];

            /// The name used in Parquet, JSON and the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Op::$name => $text),* }
            }

            /// The operation with this number, if this version knows it.
            #[must_use]
            pub const fn from_number(number: u16) -> Option<Op> {
                match number { $($value => Some(Op::$name),)* _ => None }
            }
        }
    };
}

ops! {
    /// open, openat, creat: aux = flags, done = descriptor or -1.
    Open = 1, "open";
    Close = 2, "close";
    /// read, pread, readv, ...: aux = 1 + number of the replica that served it, where it was read from a copy; 0 = of none, or of one not known.
    Read = 3, "read";
    /// write, pwrite, writev, ...
    Write = 4, "write";
    /// lseek: requested = the argument, aux = whence, done = new position.
    Seek = 5, "seek";
    /// truncate, ftruncate: offset = new length.
    Truncate = 6, "truncate";
    /// fallocate, posix_fallocate: offset, requested = the range, aux = mode.
    Fallocate = 7, "fallocate";
    /// fsync, fdatasync (requested = 1), sync_file_range (offset, requested = the range), syncfs.
    Sync = 8, "sync";
    /// The stat family: done = 0 or -1.
    Stat = 9, "stat";
    /// statfs, statvfs.
    Statfs = 10, "statfs";
    /// access, faccessat: aux = mode.
    Access = 11, "access";
    /// unlink, unlinkat, remove.
    Unlink = 12, "unlink";
    /// rename: file = old name, aux = file id of the new name.
    Rename = 13, "rename";
    /// dup, dup2, dup3, F_DUPFD: done = new descriptor.
    Dup = 14, "dup";
    /// fcntl byte-range locks, flock: offset, requested = the range, aux = command.
    Lock = 15, "lock";
    /// Any other fcntl: aux = command.
    Fcntl = 16, "fcntl";
    /// fork, vfork: done = pid of the child.
    Fork = 17, "fork";
    /// exec: file = the program.
    Exec = 18, "exec";
    /// mmap of a file: offset, requested = the range, aux = protection.
    Mmap = 19, "mmap";
    Munmap = 20, "munmap";
    /// mkdir, mkdirat.
    Mkdir = 21, "mkdir";
    Rmdir = 22, "rmdir";
    /// link, linkat: aux = file id of the new name.
    Link = 23, "link";
    /// symlink, symlinkat.
    Symlink = 24, "symlink";
    /// readlink, readlinkat.
    Readlink = 25, "readlink";
    /// opendir, fdopendir.
    Opendir = 26, "opendir";
    /// readdir, getdents.
    Readdir = 27, "readdir";
    /// chmod, chown, utimens, setxattr, ...
    Setattr = 28, "setattr";
    /// posix_fadvise, readahead: offset, requested = the range, aux = advice.
    Advise = 29, "advise";
    /// copy_file_range, sendfile, splice out of this file.
    Copy = 30, "copy";
    /// exit of the process: aux = status where known.
    Exit = 31, "exit";
    /// getxattr, listxattr.
    Getattr = 32, "getattr";
    /// mknod, mkfifo.
    Mknod = 33, "mknod";

    /// MPI_File_open: fd = number of the handle, requested = access mode; aux = communicator size, here and in all of the mpi layer.
    MpiOpen = 100, "mpi_open";
    /// MPI_File_close.
    MpiClose = 101, "mpi_close";
    /// MPI_File_read* and iread*: in the log, offset counts the bytes of the view's data; of a nonblocking one, done = number of the request.
    MpiRead = 102, "mpi_read";
    /// MPI_File_write* and iwrite*: as MpiRead.
    MpiWrite = 103, "mpi_write";
    /// MPI_File_seek, seek_shared: offset = the argument in bytes of the view's data, requested = 0 set, 1 current, 2 end.
    MpiSeek = 104, "mpi_seek";
    /// MPI_File_set_view: offset = displacement, requested = bytes of the etype, done = number of the view's description, 0 = bytes as they lie.
    View = 105, "view";
    /// MPI_File_set_size: offset = new size.
    MpiSetSize = 106, "mpi_set_size";
    /// MPI_File_preallocate.
    MpiPreallocate = 107, "mpi_preallocate";
    /// MPI_File_sync.
    MpiSync = 108, "mpi_sync";
    /// MPI_File_delete.
    MpiDelete = 109, "mpi_delete";
    /// MPI_File_get_size.
    MpiGetSize = 110, "mpi_get_size";
    /// MPI_Wait and the like, and the end of a split collective call: in the log, offset = number of the request; done = its bytes.
    MpiWait = 111, "mpi_wait";
    /// MPI_File_set_atomicity.
    MpiAtomicity = 112, "mpi_atomicity";
    /// A part of what a call touched (only in tables): offset = first byte, requested = block bytes, done = stride, aux = count; one that continues the
    /// part before repeats all of it, `aux` times, `done` bytes apart.
    Extent = 120, "extent";
}

/// One call. `check` is filled in by the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Record {
    /// Ticks (see [`crate::clock`]) before the call.
    pub start_ticks: u64,
    /// Ticks after the call.
    pub end_ticks: u64,
    /// First byte, in the file.
    pub offset: u64,
    /// Bytes asked for.
    pub requested_bytes: u64,
    /// Bytes done, or the call's result.
    pub done: i64,
    /// File id from [`crate::Process::file_id`]; 0 = not a named file.
    pub file: u32,
    /// Descriptor; in the mpi layer the number of the MPI file handle.
    pub fd: i32,
    /// [`Op`] as number.
    pub op: u16,
    /// errno of a failed call, else 0.
    pub errno: u16,
    /// See [`flags`].
    pub flags: u32,
    /// See [`Op`]; the communicator's size in the mpi layer.
    pub aux: u32,
    /// Check word; never 0 in a complete record.
    pub check: u32,
}

const _: () = assert!(core::mem::size_of::<Record>() == RECORD_BYTES as usize);

impl Record {
    /// The record as eight little-endian words, the upper half of the last (the check) zero.
    #[inline(always)]
    #[must_use]
    pub const fn words(&self) -> [u64; 8] {
        [
            self.start_ticks,
            self.end_ticks,
            self.offset,
            self.requested_bytes,
            self.done as u64,
            self.file as u64 | (self.fd as u32 as u64) << 32,
            self.op as u64 | (self.errno as u64) << 16 | (self.flags as u64) << 32,
            self.aux as u64,
        ]
    }

    /// The record of eight words, check included.
    #[must_use]
    pub const fn from_words(words: [u64; 8]) -> Record {
        let [start_ticks, end_ticks, offset, requested_bytes, done, file_fd, op, aux] = words;
        Record {
            start_ticks,
            end_ticks,
            offset,
            requested_bytes,
            done: done as i64,
            file: file_fd as u32,
            fd: (file_fd >> 32) as i32,
            op: op as u16,
            errno: (op >> 16) as u16,
            flags: (op >> 32) as u32,
            aux: aux as u32,
            check: (aux >> 32) as u32,
        }
    }

    /// Is this what the log would have written in `slot`?
    #[must_use]
    pub const fn is_complete(&self, slot: u64) -> bool {
        self.check == check(&self.words(), slot)
    }
}

/// Check word of a record: the upper half of a multilinear sum (one odd 64-bit multiplier per word: independent multiplications,
/// about 3 ns), made odd so that it is never the zero of an unwritten slot.
#[inline(always)]
#[must_use]
pub const fn check(words: &[u64; 8], slot: u64) -> u32 {
    let [a, b, c, d, e, f, g, h] = *words;
    let sum = a
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(b.wrapping_mul(0xbf58_476d_1ce4_e5b9))
        .wrapping_add(c.wrapping_mul(0x94d0_49bb_1331_11eb))
        .wrapping_add(d.wrapping_mul(0xd6e8_feb8_6659_fd93))
        .wrapping_add(e.wrapping_mul(0xa076_1d64_78bd_642f))
        .wrapping_add(f.wrapping_mul(0xe703_7ed1_a0b4_28db))
        .wrapping_add(g.wrapping_mul(0x8ebc_6af0_9c88_c6e3))
        .wrapping_add(h.wrapping_mul(0x5899_65cc_7537_4cc3))
        .wrapping_add(slot.wrapping_add(1).wrapping_mul(0xff51_afd7_ed55_8ccd));
    (sum >> 32) as u32 | 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_read_of_the_first_replica_is_told_from_one_of_none() {
        assert_eq!(read_from(None), (0, 0));
        assert_eq!(read_from(Some(0)), (flags::COPIED, 1));
        assert_eq!(read_from(Some(4095)), (flags::COPIED, 4096));
    }

    #[test]
    fn every_operation_has_its_own_number_and_name() {
        let mut names: Vec<_> = Op::ALL.iter().map(|op| op.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Op::ALL.len());
        for &op in Op::ALL {
            assert_eq!(Op::from_number(op as u16), Some(op));
        }
        assert_eq!(Op::from_number(0), None);
    }

    #[test]
    fn an_unwritten_slot_is_never_a_complete_record() {
        for slot in 0..4096 {
            assert!(!Record::default().is_complete(slot));
        }
    }

    proptest! {
        #[test]
        fn words_and_record_are_the_same_thing(words: [u64; 8]) {
            let record = Record::from_words(words);
            let mut back = record.words();
            back[7] |= u64::from(record.check) << 32;
            prop_assert_eq!(back, words);
        }

        #[test]
        fn a_changed_bit_or_a_wrong_slot_is_noticed(mut words: [u64; 8], slot in 0u64..1 << 40, word in 0usize..8, bit in 0u32..64) {
            words[7] &= 0xffff_ffff;
            words[7] |= u64::from(check(&words, slot)) << 32;
            prop_assert!(Record::from_words(words).is_complete(slot));
            prop_assert!(!Record::from_words(words).is_complete(slot + 1));
            words[word] ^= 1 << bit;
            prop_assert!(!Record::from_words(words).is_complete(slot));
        }
    }
}
