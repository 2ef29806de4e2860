//! What a scheme asks of a disk: sectors of tracks, a little spare space with each track, a zone where writes destroy nothing, and a flush.

use crate::error::MediumError;
use crate::geometry::Geometry;

/// Bytes of a track's spare area: a back pointer, a timestamp and their checksums (chapter 5.2.6).
pub const SPARE_BYTES: usize = 32;

/// A track's spare area.
pub type Spare = [u8; SPARE_BYTES];

/// A run of sectors of one track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Physical track.
    pub track: u32,
    /// First sector.
    pub sector: u32,
    /// How many; at least one.
    pub sectors: u32,
}

/// Why a scheme asks: what a medium that keeps accounts puts a request down to.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A read or write that a plain disk would have made too; of a track that is copied, the write that holds the user's sectors.
    #[default]
    Own,
    /// What an update takes with it: reads before it, writes back after it, zeros that a trim leaves.
    Amplification,
    /// Moves that bring free space together: garbage collection, gathering, destaging.
    Collection,
    /// Checkpoints, a journal, tables, and what opening a disk reads.
    Upkeep,
}

/// A disk as a scheme sees it. Buffers are `sectors * sector_bytes` long. A write is durable after the next [`Medium::flush`]; until then a power cut
/// may keep any of its sectors and lose any other, and writes may become durable in any order. A sector is never torn.
pub trait Medium {
    /// The disk's shape.
    fn geometry(&self) -> &Geometry;

    /// Why the requests from now on are made.
    fn purpose(&mut self, _: Purpose) {}

    /// Reads sectors.
    ///
    /// # Errors
    /// Destroyed sectors, ranges outside, a device that fails.
    fn read(&mut self, at: Extent, into: &mut [u8]) -> Result<(), MediumError>;

    /// Writes sectors and, with them, the track's spare area when one is given; destroys the next W-1 tracks, spare areas too.
    ///
    /// # Errors
    /// Ranges outside, a device that fails.
    fn write(&mut self, at: Extent, from: &[u8], spare: Option<&Spare>) -> Result<(), MediumError>;

    /// A track's spare area; `None` when it was never written or is destroyed.
    ///
    /// # Errors
    /// Ranges outside, a device that fails.
    fn read_spare(&mut self, track: u32) -> Result<Option<Spare>, MediumError>;

    /// Reads sectors of the random access zone.
    ///
    /// # Errors
    /// Ranges outside, a device that fails.
    fn read_random(&mut self, sector: u32, sectors: u32, into: &mut [u8]) -> Result<(), MediumError>;

    /// Writes sectors of the random access zone; destroys nothing.
    ///
    /// # Errors
    /// Ranges outside, a device that fails.
    fn write_random(&mut self, sector: u32, sectors: u32, from: &[u8]) -> Result<(), MediumError>;

    /// Makes durable whatever was written before.
    ///
    /// # Errors
    /// A device that fails.
    fn flush(&mut self) -> Result<(), MediumError>;
}

impl<M: Medium + ?Sized> Medium for &mut M {
    fn geometry(&self) -> &Geometry {
        (**self).geometry()
    }

    fn purpose(&mut self, purpose: Purpose) {
        (**self).purpose(purpose);
    }

    fn read(&mut self, at: Extent, into: &mut [u8]) -> Result<(), MediumError> {
        (**self).read(at, into)
    }

    fn write(&mut self, at: Extent, from: &[u8], spare: Option<&Spare>) -> Result<(), MediumError> {
        (**self).write(at, from, spare)
    }

    fn read_spare(&mut self, track: u32) -> Result<Option<Spare>, MediumError> {
        (**self).read_spare(track)
    }

    fn read_random(&mut self, sector: u32, sectors: u32, into: &mut [u8]) -> Result<(), MediumError> {
        (**self).read_random(sector, sectors, into)
    }

    fn write_random(&mut self, sector: u32, sectors: u32, from: &[u8]) -> Result<(), MediumError> {
        (**self).write_random(sector, sectors, from)
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        (**self).flush()
    }
}
