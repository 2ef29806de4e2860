//! The back pointer that every track carries in its spare area (chapter 5.2.6): whose data it holds, since when, and the checksum that tells a whole
//! write from a torn one.

use crate::medium::{SPARE_BYTES, Spare};
use crate::words::{long, word};
use stripewise_checksum::crc32c;

/// A track's back pointer. Bytes 0-3 logical track, 4-7 disk, 8-15 timestamp, 16-19 CRC-32C of the track's bytes, 28-31 CRC-32C of bytes 0-27; little
/// endian, the rest zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BackPointer {
    pub(crate) logical_track: u32,
    pub(crate) disk: u32,
    pub(crate) timestamp: u64,
    pub(crate) checksum: u32,
}

impl BackPointer {
    pub(crate) fn encode(&self) -> Spare {
        let mut spare = [0; SPARE_BYTES];
        let words = self.logical_track.to_le_bytes().into_iter().chain(self.disk.to_le_bytes());
        let bytes = words.chain(self.timestamp.to_le_bytes()).chain(self.checksum.to_le_bytes());
        spare.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        let (body, sum) = spare.split_at_mut(SPARE_BYTES - 4);
        sum.copy_from_slice(&crc32c(body).to_le_bytes());
        spare
    }

    pub(crate) fn decode(spare: &Spare) -> Option<Self> {
        let (body, _) = spare.split_at(SPARE_BYTES - 4);
        (crc32c(body) == word(spare, SPARE_BYTES - 4)).then(|| Self {
            logical_track: word(spare, 0),
            disk: word(spare, 4),
            timestamp: long(spare, 8),
            checksum: word(spare, 16),
        })
    }
}

/// The timestamp of a spare area; 0 where there is none.
pub(crate) fn timestamp(spare: Option<Spare>) -> u64 {
    spare.and_then(|spare| BackPointer::decode(&spare)).map_or(0, |pointer| pointer.timestamp)
}
