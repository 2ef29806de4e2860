//! A redo journal for updates in place, in the random access zone: what a chain of writes will leave is durable before the chain begins, so that a power
//! cut in its midst loses nothing. The seed's schemes have none; a disk that is to keep what was flushed needs one.
//!
//! The zone holds a [`Log`] of the tracks' live spans (index 2t: from, 2t+1: to) and after it the records of the current *epoch*, which is the
//! timestamp of the log's newest entry: a new one ends them all. A record begins at a sector: words magic, disk, number of extents, 0, then epoch and
//! number of the record of 8 bytes; 12 bytes per extent (track, sector, sectors); a CRC-32C of all that and the data; from the next sector on the data.

use crate::error::SwdError;
use crate::log::{Log, record_sectors};
use crate::medium::{Extent, Medium, Purpose};
use crate::words::{long, word};
use stripewise_checksum::crc32c;

const MAGIC: u32 = 0x4a44_5753;
const HEADER_BYTES: usize = 32;

/// Where the next record goes.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    log: Log,
    disk: u32,
    epoch: u64,
    first: u32,
    end: u32,
    next: u32,
    records: u64,
}

/// Sectors of each half of the log: the whole table and as much again for changes.
fn half_sectors<M: Medium>(medium: &M) -> Result<u32, SwdError> {
    let whole = record_sectors(medium, medium.geometry().tracks() as usize * 2);
    u32::try_from(2 * whole)
        .ok()
        .filter(|half| half.checked_mul(2).is_some_and(|log| log < medium.geometry().random_access_sectors()))
        .ok_or(SwdError::Parameter { key: "random_access_sectors", reason: "the zone must hold 64 bytes per track and a band's tracks" })
}

fn header_sectors<M: Medium>(medium: &M, extents: usize) -> u32 {
    let size = medium.geometry().sector_bytes().max(1) as usize;
    (HEADER_BYTES + 12 * extents + 4).div_ceil(size) as u32
}

impl Journal {
    /// An empty journal that knows these spans; refuses a zone that does not hold a record of `longest` extents and sectors.
    pub(crate) fn new<M: Medium>(medium: &mut M, disk: u32, table: &[u32], longest: (usize, u64)) -> Result<Self, SwdError> {
        let half = half_sectors(medium)?;
        let (first, end) = (2 * half, medium.geometry().random_access_sectors());
        if u64::from(end - first) < u64::from(header_sectors(medium, longest.0)) + longest.1 {
            return Err(SwdError::Parameter { key: "random_access_sectors", reason: "the zone must hold 64 bytes per track and a band's tracks" });
        }
        let mut log = Log::new(medium, disk, table.len(), half)?;
        // Records of an earlier disk must not have an epoch of this one.
        let epoch = log.sequence();
        log.begin(medium, epoch, table)?;
        Ok(Self { log, disk, epoch, first, end, next: first, records: 0 })
    }

    /// Whether there are records of this epoch.
    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Whether a record fits.
    pub(crate) fn has_room<M: Medium>(&self, medium: &M, extents: &[Extent]) -> bool {
        let sectors: u64 = extents.iter().map(|extent| u64::from(extent.sectors)).sum();
        u64::from(self.next) + u64::from(header_sectors(medium, extents.len())) + sectors <= u64::from(self.end)
    }

    /// Makes durable what the extents will hold.
    pub(crate) fn append<M: Medium>(&mut self, medium: &mut M, extents: &[Extent], data: &[u8]) -> Result<(), SwdError> {
        let mut bytes: Vec<u8> = [MAGIC, self.disk, extents.len() as u32, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(self.epoch.to_le_bytes());
        bytes.extend(self.records.to_le_bytes());
        bytes.extend(extents.iter().flat_map(|extent| [extent.track, extent.sector, extent.sectors]).flat_map(u32::to_le_bytes));
        let body = bytes.len();
        bytes.extend_from_slice(data);
        let sum = crc32c(&bytes);
        bytes.truncate(body);
        bytes.extend(sum.to_le_bytes());
        let header = header_sectors(medium, extents.len());
        bytes.resize(medium.geometry().bytes(u64::from(header)) as usize, 0);
        bytes.extend_from_slice(data);
        let sectors = header + extents.iter().map(|extent| extent.sectors).sum::<u32>();
        medium.purpose(Purpose::Upkeep);
        medium.write_random(self.next, sectors, &bytes)?;
        medium.flush()?;
        self.next += sectors;
        self.records += 1;
        Ok(())
    }

    /// Ends the epoch: all writes are durable, and so are the spans that `changes` or, where those do not fit, `table` give.
    pub(crate) fn settle<M: Medium>(&mut self, medium: &mut M, changes: &[(u32, u32)], table: impl FnOnce() -> Vec<u32>) -> Result<(), SwdError> {
        self.epoch += 1;
        if self.log.has_room(medium, changes.len()) {
            self.log.changes(medium, self.epoch, changes)?;
        } else {
            self.log.begin(medium, self.epoch, &table())?;
        }
        self.next = self.first;
        self.records = 0;
        Ok(())
    }

    /// The spans as the last flush left them, after what was begun is done again.
    pub(crate) fn open<M: Medium>(medium: &mut M, disk: u32) -> Result<(Self, Vec<u32>), SwdError> {
        let half = half_sectors(medium)?;
        let (log, state) = Log::recover(medium, disk, half)?.ok_or(SwdError::NoTable)?;
        let mut table = vec![0; medium.geometry().tracks() as usize * 2];
        for (index, value) in state.entries {
            *table.get_mut(index as usize).ok_or(SwdError::Table { logical_track: index / 2 })? = value;
        }
        let (first, end) = (2 * half, medium.geometry().random_access_sectors());
        let mut journal = Self { log, disk, epoch: state.timestamp, first, end, next: first, records: 0 };
        while journal.redo(medium)? {}
        medium.flush()?;
        journal.settle(medium, &[], || table.clone())?;
        Ok((journal, table))
    }

    /// Carries out the next record; false when there is none.
    fn redo<M: Medium>(&mut self, medium: &mut M) -> Result<bool, SwdError> {
        let size = medium.geometry().sector_bytes() as usize;
        if size == 0 || self.next >= self.end {
            return Ok(false);
        }
        let mut bytes = vec![0; size * (self.end - self.next) as usize];
        medium.read_random(self.next, self.end - self.next, &mut bytes)?;
        let count = word(&bytes, 8) as usize;
        let is_next = word(&bytes, 0) == MAGIC && word(&bytes, 4) == self.disk && long(&bytes, 16) == self.epoch && long(&bytes, 24) == self.records;
        let body = HEADER_BYTES.saturating_add(count.saturating_mul(12));
        let Some(list) = bytes.get(HEADER_BYTES..body).filter(|_| is_next) else { return Ok(false) };
        let extent = |entry: &[u8]| Extent { track: word(entry, 0), sector: word(entry, 4), sectors: word(entry, 8) };
        let extents: Vec<Extent> = list.chunks(12).map(extent).collect();
        let header = header_sectors(medium, count);
        let sectors: u64 = extents.iter().map(|extent| u64::from(extent.sectors)).sum();
        let start = header as usize * size;
        let Some(data) = bytes.get(start..start.saturating_add(medium.geometry().bytes(sectors) as usize)) else { return Ok(false) };
        let summed: Vec<u8> = bytes.get(..body).unwrap_or_default().iter().chain(data).copied().collect();
        if crc32c(&summed) != word(&bytes, body) {
            return Ok(false);
        }
        let mut rest = data;
        for extent in extents {
            let (part, after) = rest.split_at((extent.sectors as usize * size).min(rest.len()));
            rest = after;
            medium.write(extent, part, None)?;
        }
        self.next += header + sectors as u32;
        self.records += 1;
        Ok(true)
    }
}
