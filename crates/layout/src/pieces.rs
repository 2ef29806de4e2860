//! Cutting a request into pieces: the longest runs that are contiguous both in the file and in one object of a target.

use crate::ORIGINAL;
use crate::region::RegionRef;
use crate::table::Table;

/// A run of bytes that is contiguous in the file and in one object of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The target, or [`ORIGINAL`].
    pub target: u32,
    /// Which of the target's two objects; 0 for [`ORIGINAL`].
    pub plane: u32,
    /// First byte in that object (in the plain file for [`ORIGINAL`]).
    pub object_offset: u64,
    /// First byte in the file.
    pub logical: u64,
    /// Bytes.
    pub len: u64,
}

/// Iterator over the pieces of a request, in logical order; neighbours that are contiguous in one object come out as one.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a> {
    table: Table<'a>,
    at: u64,
    end: u64,
    /// The window of `at`.
    region: Option<RegionRef<'a>>,
    ahead: Option<Piece>,
}

/// The run that begins at `at`, within one stripe and one window, and ends at `end` at the latest.
#[inline(always)]
fn run(region: &RegionRef<'_>, at: u64, end: u64) -> Piece {
    let left = region.reach().min(end) - at;
    if region.is_original() {
        return Piece { target: ORIGINAL, plane: 0, object_offset: at, logical: at, len: left };
    }
    let slot = region.cycle.locate(at - region.start);
    // One target alone: the whole window is one run, however narrow its stripe.
    let len = if region.cycle.count == 1 { left } else { slot.run.min(left) };
    Piece { target: slot.target, plane: region.plane(), object_offset: region.slice + slot.local, logical: at, len }
}

impl<'a> Pieces<'a> {
    /// The run of one object that the whole request is; `None` where it is several, though they may continue each other, where it is empty, and where
    /// the table does not map all of it.
    #[inline(always)] // Most requests are one: what an iterator keeps in memory would cost more than the look-up.
    pub(crate) fn single(table: &Table<'a>, at: u64, len: u64) -> Option<Piece> {
        let end = at.saturating_add(len);
        if end > table.end() || len == 0 {
            return None;
        }
        let piece = run(&table.region_at(at)?, at, end);
        (piece.len == len).then_some(piece)
    }

    #[inline]
    pub(crate) fn new(table: Table<'a>, at: u64, len: u64) -> Pieces<'a> {
        let end = at.saturating_add(len);
        let end = if at >= table.start() && end <= table.end() { end } else { at };
        Pieces { table, at, end, region: None, ahead: None }
    }

    fn cut(&mut self) -> Option<Piece> {
        if self.at >= self.end {
            return None;
        }
        let region = match self.region {
            Some(region) if self.at < region.reach() => region,
            Some(region) => self.table.after(&region)?,
            None => self.table.region_at(self.at)?,
        };
        self.region = Some(region);
        let piece = run(&region, self.at, self.end);
        self.at += piece.len;
        Some(piece)
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let mut piece = match self.ahead.take() {
            Some(piece) => piece,
            None => self.cut()?,
        };
        while let Some(next) = self.cut() {
            if next.target != piece.target || next.plane != piece.plane || next.object_offset != piece.object_offset + piece.len {
                self.ahead = Some(next);
                break;
            }
            piece.len += next.len;
        }
        Some(piece)
    }
}
