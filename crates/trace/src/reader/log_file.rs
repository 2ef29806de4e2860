//! One thread's log: the header, and its records as a stream.
//!
//! The file is opened anew for each piece of 64 KiB, so a run of thousands of threads can be merged under any descriptor limit.

use super::{Error, u32_at, u64_at};
use crate::format::{COMMAND_BYTES, FIRST_SLOT, Fixed, HEADER_BYTES, Header, Identity, LOG_MAGIC, LOG_VERSION, PAIRS};
use crate::log::FIRST_BYTES;
use crate::record::{RECORD_BYTES, Record};
use std::fs::File;
use std::io::Read;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use stripewise_checksum::crc32c;

/// The header of a log, see docs/formats.md.
#[derive(Clone, Debug, Default)]
pub struct LogHeader {
    /// Which process.
    pub identity: Identity,
    /// Thread id.
    pub tid: u32,
    /// Rank in MPI_COMM_WORLD, -1 unknown.
    pub rank: i32,
    /// Size of MPI_COMM_WORLD, -1 unknown.
    pub world: i32,
    /// Which clock the ticks are of.
    pub clock_kind: u32,
    /// Ticks per second, 0 unknown.
    pub nominal_hz: u64,
    /// The machine's boot: logs with the same one share a clock.
    pub boot_id: [u8; 16],
    /// Node name.
    pub host: String,
    /// Arguments.
    pub command: Vec<String>,
    /// Records that could not be kept.
    pub dropped: u64,
    /// Names that could not be kept, in the whole process, when last looked at.
    pub names_lost: u64,
    /// Slots in use at the thread's end, 0 if it did not end by itself.
    pub closed_at_slot: u64,
    /// (ticks, CLOCK_REALTIME ns).
    pub pairs: Vec<(u64, u64)>,
}

/// A log that has been opened.
#[derive(Clone, Debug)]
pub struct LogFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Its length when it was opened.
    pub bytes: u64,
    pub header: LogHeader,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Nothing was ever written.
    Empty,
    /// Its writer was interrupted for good before the last word.
    Incomplete,
    /// The check word does not fit.
    Damaged,
    /// A record.
    Complete(Record),
}

impl LogFile {
    /// Reads the header. `None` for a log that was never begun: its process died, or its disk was full, before the first record.
    ///
    /// # Errors
    /// I/O errors, a newer version, a header that is not what was written.
    pub fn open(path: &Path) -> Result<Option<LogFile>, Error> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES as usize);
        let file = File::open(path).map_err(Error::io(path, "open"))?;
        let length = file.metadata().map_err(Error::io(path, "look at"))?.len();
        file.take(HEADER_BYTES).read_to_end(&mut bytes).map_err(Error::io(path, "read"))?;
        if bytes.iter().take(8).all(|&byte| byte == 0) {
            return Ok(None);
        }
        if !bytes.starts_with(&LOG_MAGIC) {
            return Err(Error::damaged(path, 0, "it does not begin with SWTRACE1, so it is not a trace log"));
        }
        let version = u32_at(&bytes, offset_of!(Header, version));
        if version > LOG_VERSION {
            return Err(Error::Newer { path: path.to_owned(), version, known: LOG_VERSION });
        }
        if bytes.len() < HEADER_BYTES as usize {
            return Err(Error::damaged(path, bytes.len() as u64, "the file ends inside its header of 4,096 bytes"));
        }
        let at = offset_of!(Header, fixed);
        let fixed = bytes.get(at..at + size_of::<Fixed>()).unwrap_or(&[]);
        if u32_at(&bytes, offset_of!(Header, crc)) != crc32c(fixed) || version == 0 {
            return Err(Error::damaged(path, 12, "the header's checksum does not fit"));
        }
        let sizes = (u32_at(fixed, offset_of!(Fixed, header_bytes)), u32_at(fixed, offset_of!(Fixed, record_bytes)));
        if sizes != (HEADER_BYTES as u32, RECORD_BYTES as u32) {
            return Err(Error::damaged(path, at as u64, format!("header and record of {} and {} bytes", sizes.0, sizes.1)));
        }
        Ok(Some(LogFile { path: path.to_owned(), bytes: length, header: parse(&bytes, fixed) }))
    }

    /// Whether the file ends where no thread leaves its log: one that ends cuts it to what it used, and one that is killed leaves whole chunks.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.header.closed_at_slot == 0 && !self.bytes.is_multiple_of(FIRST_BYTES)
    }

    /// All slots behind the header, in order.
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        Records { path: &self.path, next_slot: FIRST_SLOT, piece: Vec::new(), at: 0 }
    }
}

fn parse(bytes: &[u8], fixed: &[u8]) -> LogHeader {
    let identity = offset_of!(Fixed, identity);
    let field = |at: usize, length: usize| fixed.get(at..at + length).unwrap_or(&[]);
    let mut boot_id = [0; 16];
    boot_id.copy_from_slice(field(offset_of!(Fixed, boot_id), 16));
    let host = field(offset_of!(Fixed, host), 64).split(|&byte| byte == 0).next().unwrap_or(&[]);
    let length = u32_at(fixed, offset_of!(Fixed, command_bytes)) as usize;
    let command = field(offset_of!(Fixed, command), length.min(COMMAND_BYTES));
    let command = command.strip_suffix(&[0]).unwrap_or(command);
    let pair = |at: usize| (u64_at(bytes, at), u64_at(bytes, at + 8));
    let first = offset_of!(Header, pairs);
    let process = offset_of!(Header, fixed) + offset_of!(Fixed, process_pair);
    let pairs = std::iter::once(process).chain((0..PAIRS).map(|i| first + 16 * i)).map(pair);
    LogHeader {
        identity: Identity {
            start_id: u64_at(fixed, identity + offset_of!(Identity, start_id)),
            parent_start_id: u64_at(fixed, identity + offset_of!(Identity, parent_start_id)),
            pid: u32_at(fixed, identity + offset_of!(Identity, pid)),
            parent_pid: u32_at(fixed, identity + offset_of!(Identity, parent_pid)),
            first_file_id: u32_at(fixed, identity + offset_of!(Identity, first_file_id)),
            reserved: 0,
        },
        tid: u32_at(fixed, offset_of!(Fixed, tid)),
        rank: u32_at(fixed, offset_of!(Fixed, rank)) as i32,
        world: u32_at(fixed, offset_of!(Fixed, world)) as i32,
        clock_kind: u32_at(fixed, offset_of!(Fixed, clock_kind)),
        nominal_hz: u64_at(fixed, offset_of!(Fixed, nominal_hz)),
        boot_id,
        host: String::from_utf8_lossy(host).into_owned(),
        command: command.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect(),
        dropped: u64_at(bytes, offset_of!(Header, dropped)),
        names_lost: u64_at(bytes, offset_of!(Header, names_lost)),
        closed_at_slot: u64_at(bytes, offset_of!(Header, closed_at_slot)),
        pairs: pairs.filter(|&(ticks, wall_ns)| ticks != 0 && wall_ns != 0).collect(),
    }
}

/// A stream over the slots of a log.
#[derive(Debug)]
pub struct Records<'a> {
    path: &'a Path,
    next_slot: u64,
    piece: Vec<u8>,
    at: usize,
}

const PIECE_BYTES: usize = 64 << 10;

impl Records<'_> {
    /// The next slot and what it holds; `None` at the end of the file. Bytes of a cut last slot count as incomplete.
    ///
    /// # Errors
    /// I/O errors.
    pub fn next_slot(&mut self) -> Result<Option<(u64, Slot)>, Error> {
        if self.at >= self.piece.len() {
            self.fill()?;
        }
        let rest = self.piece.get(self.at..).unwrap_or(&[]);
        if rest.is_empty() {
            return Ok(None);
        }
        let bytes = rest.get(..RECORD_BYTES as usize).unwrap_or(rest);
        let slot = self.next_slot;
        self.next_slot += 1;
        self.at += bytes.len();
        Ok(Some((slot, classify(bytes, slot))))
    }

    fn fill(&mut self) -> Result<(), Error> {
        let file = File::open(self.path).map_err(Error::io(self.path, "open"))?;
        self.piece.resize(PIECE_BYTES, 0);
        self.at = 0;
        let mut filled = 0;
        while let Some(room) = self.piece.get_mut(filled..).filter(|room| !room.is_empty()) {
            match file.read_at(room, self.next_slot * RECORD_BYTES + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(self.path, "read")(error)),
            }
        }
        self.piece.truncate(filled);
        Ok(())
    }
}

fn classify(bytes: &[u8], slot: u64) -> Slot {
    if bytes.iter().all(|&byte| byte == 0) {
        return Slot::Empty;
    }
    if bytes.len() < RECORD_BYTES as usize {
        return Slot::Incomplete;
    }
    let record = Record::from_words(std::array::from_fn(|word| u64_at(bytes, 8 * word)));
    match record {
        _ if record.is_complete(slot) => Slot::Complete(record),
        Record { check: 0, .. } => Slot::Incomplete,
        _ => Slot::Damaged,
    }
}
