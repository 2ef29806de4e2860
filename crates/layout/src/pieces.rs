//! Cutting a request into pieces: the longest runs that are contiguous both in the file and in one target's object.

use crate::ORIGINAL;
use crate::table::{RegionRef, Table};

/// A run of bytes that is contiguous in the file and in one target's object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The target, or [`ORIGINAL`].
    pub target: u32,
    /// First byte in the target's object (in the plain file for [`ORIGINAL`]).
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
    region: Option<RegionRef<'a>>,
    at: u64,
    end: u64,
    ahead: Option<Piece>,
}

impl<'a> Pieces<'a> {
    #[inline]
    pub(crate) fn new(table: Table<'a>, at: u64, len: u64) -> Pieces<'a> {
        let end = at.saturating_add(len);
        let region = if end <= table.end() && len > 0 {
            table.region_at(at)
        } else {
            None
        };
        Pieces {
            table,
            region,
            at,
            end,
            ahead: None,
        }
    }

    /// The next run within one stripe and one window.
    #[inline]
    fn cut(&mut self) -> Option<Piece> {
        if self.at >= self.end {
            return None;
        }
        let mut region = self.region?;
        if self.at >= region.reach() {
            self.region = self.table.after(&region);
            region = self.region?;
        }
        let left = region.reach().min(self.end) - self.at;
        let piece = if region.is_original() {
            Piece {
                target: ORIGINAL,
                object_offset: self.at,
                logical: self.at,
                len: left,
            }
        } else {
            let l = self.at - region.start;
            let slot = region.cycle.locate(l);
            // One target alone: the whole window is one run, however narrow its stripe.
            let run = if region.cycle.count == 1 {
                left
            } else {
                slot.run.min(left)
            };
            Piece {
                target: slot.target,
                object_offset: region.slice + slot.local,
                logical: self.at,
                len: run,
            }
        };
        self.at += piece.len;
        Some(piece)
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        let mut piece = match self.ahead.take() {
            Some(piece) => piece,
            None => self.cut()?,
        };
        while let Some(next) = self.cut() {
            if next.target != piece.target || next.object_offset != piece.object_offset + piece.len
            {
                self.ahead = Some(next);
                break;
            }
            piece.len += next.len;
        }
        Some(piece)
    }
}
