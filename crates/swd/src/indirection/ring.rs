//! A circular log on a run of tracks: where positions lie, and how far the head is from the tail.

use crate::geometry::Geometry;
use crate::medium::Extent;

/// Tracks taken as one row of sectors.
#[derive(Clone, Debug)]
pub(super) struct Region {
    first_track: u32,
    /// First sector of each track, and the end.
    starts: Vec<u64>,
}

impl Region {
    pub(super) fn new(geometry: &Geometry, first_track: u32, tracks: u32) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        for track in first_track..first_track + tracks {
            end += u64::from(geometry.track_sectors(track));
            starts.push(end);
        }
        Self { first_track, starts }
    }

    pub(super) fn sectors(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The end of the track that a sector lies on.
    pub(super) fn track_end(&self, sector: u64) -> u64 {
        self.starts.get(self.starts.partition_point(|&start| start <= sector)).copied().unwrap_or_else(|| self.sectors())
    }

    /// The pieces, one per track, of sectors in a row.
    pub(super) fn extents(&self, sector: u64, sectors: u64) -> Vec<Extent> {
        let (mut extents, mut at, end) = (Vec::new(), sector, sector + sectors);
        while at < end.min(self.sectors()) {
            let track = self.starts.partition_point(|&start| start <= at).saturating_sub(1);
            let start = self.starts.get(track).copied().unwrap_or(0);
            let count = self.track_end(at).min(end) - at;
            extents.push(Extent { track: self.first_track + track as u32, sector: (at - start) as u32, sectors: count as u32 });
            at += count;
        }
        extents
    }
}

/// A circular log. Head and tail only grow; a position is one of them modulo the size.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub(super) region: Region,
    size: u64,
    gap: u64,
    head: u64,
    tail: u64,
}

impl Ring {
    /// A log of `size` positions, of which `gap` stay free between head and tail.
    pub(super) fn new(size: u64, gap: u64, region: Region) -> Self {
        Self { region, size, gap, head: 0, tail: 0 }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn gap(&self) -> u64 {
        self.gap
    }

    /// Positions that can be written before the gap.
    pub(super) fn writable(&self) -> u64 {
        (self.size - (self.head - self.tail)).saturating_sub(self.gap)
    }

    pub(super) fn head(&self) -> u64 {
        self.head % self.size
    }

    pub(super) fn tail(&self) -> u64 {
        self.tail % self.size
    }

    /// From the tail to the head, before the modulo.
    pub(super) fn range(&self) -> (u64, u64) {
        (self.tail, self.head)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    pub(super) fn advance_head(&mut self, positions: u64) {
        self.head += positions;
    }

    /// Frees positions at the tail, up to the head.
    pub(super) fn advance_tail(&mut self, positions: u64) {
        self.tail = (self.tail + positions).min(self.head);
    }

    /// Positions from the tail to the head or the end of the row, whichever is first.
    pub(super) fn row_from_tail(&self) -> u64 {
        (self.size - self.tail()).min(self.head - self.tail)
    }
}
