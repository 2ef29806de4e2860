//! The random access zone: checkpoints of a table, and the pools that Smart allocates in, as records in one of two halves (chapter
//! 5.2.6).
//!
//! A half begins with the whole table, or before its first use with a void record; records of what changed follow. When a half is full, the other is
//! begun anew. A record begins at a sector: words magic, disk, kind, number of entries, then sequence and timestamp of 8 bytes, entries of 8 bytes, a
//! CRC-32C; little endian. Records of a half have consecutive sequence numbers; the half whose first record has the higher one is the newest. A disk's
//! first sequence number follows from what lay where its log begins, so that no record of an earlier disk there continues the new one's.

use crate::error::SwdError;
use crate::medium::{Medium, Purpose};
use crate::words::{long, word};
use stripewise_checksum::crc32c;

const MAGIC: u32 = 0x4c54_5354;
const HEADER_BYTES: usize = 32;
const VOID: u32 = 0;
const WHOLE: u32 = 1;
const CHANGES: u32 = 2;
const POOL: u32 = 3;
/// Sectors without data (a medium for times only) count as this many bytes.
const NOMINAL_SECTOR_BYTES: u32 = 512;

/// What the newest half says.
#[derive(Clone, Debug)]
pub(crate) struct Recovered {
    /// Pairs of a table's index and value (T-STL: logical and physical track), later ones count.
    pub(crate) entries: Vec<(u32, u32)>,
    /// First track and number of tracks of the pools since the checkpoint.
    pub(crate) pools: Vec<(u32, u32)>,
    /// Of the newest checkpoint.
    pub(crate) timestamp: u64,
}

/// Where the next record goes.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    disk: u32,
    half_sectors: u32,
    half: u32,
    next: u32,
    sequence: u64,
}

/// Half of the random access zone, sectors.
pub(crate) fn half_of<M: Medium>(medium: &M) -> u32 {
    medium.geometry().random_access_sectors() / 2
}

/// Sectors of a record of so many entries.
pub(crate) fn record_sectors<M: Medium>(medium: &M, entries: usize) -> u64 {
    let size = match medium.geometry().sector_bytes() {
        0 => NOMINAL_SECTOR_BYTES,
        bytes => bytes,
    };
    (HEADER_BYTES as u64 + entries as u64 * 8 + 4).div_ceil(u64::from(size))
}

/// FNV-1a. A CRC would not do: over records that end in their own it is the same for all.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Log {
    /// An empty log in place of whatever the zone held; refuses a zone whose halves do not hold the table and some changes.
    pub(crate) fn new<M: Medium>(medium: &mut M, disk: u32, logical_tracks: usize, half_sectors: u32) -> Result<Self, SwdError> {
        if record_sectors(medium, logical_tracks) + record_sectors(medium, 1) > u64::from(half_sectors) {
            return Err(SwdError::Parameter {
                key: "random_access_sectors",
                reason: "half of the zone must hold 8 bytes per logical track and a record more",
            });
        }
        medium.purpose(Purpose::Upkeep);
        let sectors = record_sectors(medium, 1) as u32;
        let length = medium.geometry().bytes(u64::from(sectors)) as usize;
        let mut before = vec![0; 2 * length];
        for (half, bytes) in (0..).zip(before.chunks_mut(length.max(1))) {
            medium.read_random(half * half_sectors, sectors, bytes)?;
        }
        let log = Self { disk, half_sectors, half: 1, next: half_sectors, sequence: fingerprint(&before) << 32 };
        let void = if length == 0 { Vec::new() } else { log.record(VOID, 0, &[], length) };
        for half in [0, 1] {
            medium.write_random(half * half_sectors, sectors, &void)?;
        }
        medium.flush()?;
        Ok(log)
    }

    /// The next record's sequence number, which no record of another disk on this medium has.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Begins the other half with the whole table.
    pub(crate) fn begin<M: Medium>(&mut self, medium: &mut M, timestamp: u64, table: &[u32]) -> Result<(), SwdError> {
        let entries: Vec<(u32, u32)> = (0u32..).zip(table.iter().copied()).collect();
        self.half ^= 1;
        self.next = 0;
        self.append(medium, WHOLE, timestamp, &entries)
    }

    /// Whether a record of so many entries fits.
    pub(crate) fn has_room<M: Medium>(&self, medium: &M, entries: usize) -> bool {
        u64::from(self.next) + record_sectors(medium, entries) <= u64::from(self.half_sectors)
    }

    pub(crate) fn changes<M: Medium>(&mut self, medium: &mut M, timestamp: u64, entries: &[(u32, u32)]) -> Result<(), SwdError> {
        self.append(medium, CHANGES, timestamp, entries)
    }

    pub(crate) fn pool<M: Medium>(&mut self, medium: &mut M, timestamp: u64, first: u32, tracks: u32) -> Result<(), SwdError> {
        self.append(medium, POOL, timestamp, &[(first, tracks)])
    }

    fn append<M: Medium>(&mut self, medium: &mut M, kind: u32, timestamp: u64, entries: &[(u32, u32)]) -> Result<(), SwdError> {
        let sectors = record_sectors(medium, entries.len()) as u32;
        let length = medium.geometry().bytes(u64::from(sectors)) as usize;
        let bytes = if length == 0 { Vec::new() } else { self.record(kind, timestamp, entries, length) };
        medium.purpose(Purpose::Upkeep);
        medium.write_random(self.half * self.half_sectors + self.next, sectors, &bytes)?;
        medium.flush()?;
        self.next += sectors;
        self.sequence += 1;
        Ok(())
    }

    fn record(&self, kind: u32, timestamp: u64, entries: &[(u32, u32)], length: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = [MAGIC, self.disk, kind, entries.len() as u32].iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend(timestamp.to_le_bytes());
        bytes.extend(entries.iter().flat_map(|(a, b)| a.to_le_bytes().into_iter().chain(b.to_le_bytes())));
        bytes.extend(crc32c(&bytes).to_le_bytes());
        bytes.resize(length, 0);
        bytes
    }

    /// The newest half's records, and the log as it goes on after them. `None` when neither half begins with a whole table of this disk.
    pub(crate) fn recover<M: Medium>(medium: &mut M, disk: u32, half_sectors: u32) -> Result<Option<(Self, Recovered)>, SwdError> {
        medium.purpose(Purpose::Upkeep);
        let (first, second) = (Self::read_half(medium, disk, half_sectors, 0)?, Self::read_half(medium, disk, half_sectors, 1)?);
        Ok(match (first, second) {
            (Some(first), Some(second)) => Some(if first.0.sequence > second.0.sequence { first } else { second }),
            (first, second) => first.or(second),
        })
    }

    fn read_half<M: Medium>(medium: &mut M, disk: u32, half_sectors: u32, half: u32) -> Result<Option<(Self, Recovered)>, SwdError> {
        let (sectors, size) = (half_sectors, medium.geometry().sector_bytes() as usize);
        let mut bytes = vec![0; sectors as usize * size];
        medium.read_random(half * sectors, sectors, &mut bytes)?;
        let mut log = Self { disk, half_sectors, half, next: 0, sequence: 0 };
        let mut found: Option<Recovered> = None;
        while let Some(record) = bytes.get(log.next as usize * size..).filter(|rest| rest.len() > HEADER_BYTES) {
            let (kind, count) = (word(record, 8), word(record, 12) as usize);
            let end = HEADER_BYTES.saturating_add(count.saturating_mul(8));
            let Some(body) = record.get(..end).filter(|_| record.len() >= end.saturating_add(4)) else { break };
            let (sequence, timestamp) = (long(record, 16), long(record, 24));
            let is_ours = word(record, 0) == MAGIC && word(record, 4) == disk && crc32c(body) == word(record, end);
            let continues = if found.is_none() { kind == WHOLE } else { kind != WHOLE && sequence == log.sequence };
            if !is_ours || !continues {
                break;
            }
            let entries = body.get(HEADER_BYTES..).unwrap_or_default().chunks(8).map(|entry| (word(entry, 0), word(entry, 4)));
            let state = found.get_or_insert(Recovered { entries: Vec::new(), pools: Vec::new(), timestamp });
            if kind == POOL {
                state.pools.extend(entries);
            } else {
                state.entries.extend(entries);
                state.pools.clear();
                state.timestamp = timestamp;
            }
            log.next += record_sectors(medium, count) as u32;
            log.sequence = sequence + 1;
        }
        Ok(found.map(|state| (log, state)))
    }
}
