//! Cutting a request into pieces: the longest runs that are contiguous both in the file and in one object of a target.

use crate::region::RegionRef;
use crate::table::{Table, run};

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

impl<'a> Pieces<'a> {
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
