//! One request as a disk gets it, and the form that all sources of them share.

use crate::Error;

/// Bytes of a block: what block addresses of disks and of all trace formats count.
pub const BLOCK_BYTES: u64 = 512;

/// A read or a write of consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRequest {
    /// When it arrives, ns from the source's beginning.
    pub arrival_ns: u64,
    /// First block, of [`BLOCK_BYTES`] each.
    pub lba: u64,
    /// How many blocks, at least 1.
    pub blocks: u32,
    /// Writes, else reads.
    pub write: bool,
}

impl BlockRequest {
    /// The block after the last.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.lba.saturating_add(u64::from(self.blocks))
    }
}

/// Requests by arrival: times do not decrease. After an error there is nothing more.
pub type Source = Box<dyn Iterator<Item = Result<BlockRequest, Error>> + Send>;
