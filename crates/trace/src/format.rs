//! The log file on disk: a header of 4,096 bytes, then records. Drawn in docs/formats.md; this is the same as a `repr(C)` struct.
//!
//! The header lives in a shared mapping while its thread runs, so whatever is stored in it survives a kill. Its first part is
//! written once and checksummed; the words behind it (drops, calibration pairs) move while the thread runs.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// First eight bytes of a log.
pub const LOG_MAGIC: [u8; 8] = *b"SWTRACE1";
/// Version of the log; a reader refuses newer ones.
pub const LOG_VERSION: u32 = 1;
/// First eight bytes of a names file.
pub const NAMES_MAGIC: [u8; 8] = *b"SWNAMES1";
/// Version of the names file; the first had names alone.
pub const NAMES_VERSION: u32 = 2;
/// Bytes of the log's header; the first record follows, in slot 64.
pub const HEADER_BYTES: u64 = 4096;
/// Slot of the first record: slots number 64-byte units from the start of the file.
pub const FIRST_SLOT: u64 = HEADER_BYTES / crate::record::RECORD_BYTES;
/// Calibration pairs in the header; the last is overwritten when they are used up.
pub const PAIRS: usize = 64;
/// Longest command line kept.
pub const COMMAND_BYTES: usize = 1984;
/// Bytes of the names file's header.
pub const NAMES_HEADER_BYTES: usize = 64;
/// Bytes of a names entry before the path.
pub const NAMES_ENTRY_BYTES: usize = 32;
/// Most bytes of a note.
pub const NOTE_BYTES_MAX: usize = 32 << 20;

/// Most hints of a set that are kept, and most bytes of the value of one.
pub const HINTS_MAX: usize = 64;
pub const HINT_BYTES_MAX: usize = 255;

/// What an entry of a names file holds. Notes are little-endian words of eight bytes.
pub mod entry_kind {
    /// A path; the id is a file's.
    pub const NAME: u32 = 0;
    /// Who opened an MPI file together: the number of the handle; rank in the communicator, then the ranks in MPI_COMM_WORLD of all in it.
    pub const COMMUNICATOR: u32 = 1;
    /// The filetype of a view, as [`crate::datatype`] has it; the id is the view's.
    pub const VIEW: u32 = 2;
    /// Hints of a file, whose number is the id: processes that opened it together, how many of the hints were given, then as text keys and values in turn, each
    /// ended by a zero byte: first those given, then those in force. A file may have several such notes.
    pub const HINTS: u32 = 3;
}

/// Which incarnation of which process wrote a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Identity {
    /// CLOCK_REALTIME ns when this process began to trace: tells an exec from its predecessor and a process from a later one of the same pid.
    pub start_id: u64,
    /// `start_id` of the process it was forked from, 0 if none traced.
    pub parent_start_id: u64,
    /// Process id.
    pub pid: u32,
    /// Process id of the process it was forked from.
    pub parent_pid: u32,
    /// File ids below this were given by the parent (or its ancestors).
    pub first_file_id: u32,
    /// Zero.
    pub reserved: u32,
}

/// The part of the header that is written once, before the magic.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Fixed {
    pub header_bytes: u32,
    /// 64.
    pub record_bytes: u32,
    /// See [`crate::clock::kind`].
    pub clock_kind: u32,
    /// Thread id.
    pub tid: u32,
    /// Who wrote it.
    pub identity: Identity,
    /// Rank in MPI_COMM_WORLD, -1 when unknown.
    pub rank: i32,
    /// Size of MPI_COMM_WORLD, -1 when unknown.
    pub world: i32,
    /// Ticks per second as the hardware states them, 0 if it does not.
    pub nominal_hz: u64,
    /// The kernel's boot id: logs with the same one share a clock.
    pub boot_id: [u8; 16],
    /// Node name, zero padded.
    pub host: [u8; 64],
    /// Calibration pair taken when the process began to trace.
    pub process_pair: [u64; 2],
    /// Bytes of `command` in use.
    pub command_bytes: u32,
    /// Zero.
    pub reserved: u32,
    /// Command line: arguments, each ended by a zero byte.
    pub command: [u8; COMMAND_BYTES],
}

/// The whole header.
#[repr(C)]
pub struct Header {
    /// [`LOG_MAGIC`], stored last: without it the log was never begun.
    pub magic: AtomicU64,
    /// [`LOG_VERSION`].
    pub version: AtomicU32,
    /// CRC-32C of [`Fixed`].
    pub crc: AtomicU32,
    /// Written once.
    pub fixed: Fixed,
    /// Records that could not be kept.
    pub dropped: AtomicU64,
    /// Names of files that could not be kept (process-wide, as of the last calibration).
    pub names_lost: AtomicU64,
    /// Slots in use when the thread ended, 0 if it did not end by itself.
    pub closed_at_slot: AtomicU64,
    /// Calibration pairs taken so far; beyond [`PAIRS`] the last one is overwritten.
    pub pairs_taken: AtomicU64,
    /// (ticks, CLOCK_REALTIME ns); ns is stored last and is 0 while a pair is being replaced.
    pub pairs: [[AtomicU64; 2]; PAIRS],
    /// Zero.
    pub reserved: [u8; HEADER_RESERVED],
}

const HEADER_RESERVED: usize = 4096 - 16 - core::mem::size_of::<Fixed>() - 32 - 16 * PAIRS;
const _: () = assert!(core::mem::size_of::<Header>() == HEADER_BYTES as usize);

impl Fixed {
    /// The bytes that the checksum covers.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        // SAFETY: Fixed is repr(C) without padding (asserted below), so all its bytes are initialised.
        unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), core::mem::size_of::<Fixed>()) }
    }
}

const _: () = assert!(core::mem::size_of::<Fixed>() == 16 + 32 + 8 + 8 + 16 + 64 + 16 + 8 + COMMAND_BYTES);
