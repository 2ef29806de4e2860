//! Where the bytes of a request end in its file: of the first rank, of the last one, behind a view.

use stripewise_workpath::View;

/// No file has bytes beyond this.
pub const OFFSET_MAX: u64 = 1 << 60;

/// From the first of so many bytes of a view to the end of the last, in the file.
pub fn reach(view: &View, size: u64) -> u64 {
    let Some(last) = size.checked_sub(1) else { return 0 };
    let tile = view.piece.saturating_mul(view.pieces).max(1);
    let piece = view.piece.max(1);
    let within = (last % tile / piece).saturating_mul(view.distance).saturating_add(last % piece + 1);
    (last / tile).saturating_mul(view.tile).saturating_add(within).min(OFFSET_MAX)
}

/// Bytes of the file that so many of a view lie in, whole tiles.
pub fn spanned(view: &View, size: u64) -> u64 {
    size.div_ceil(view.piece.saturating_mul(view.pieces).max(1)).saturating_mul(view.tile).min(OFFSET_MAX)
}

/// A shift with which no rank begins before the file's begin or beyond its largest end.
pub fn sound(shift: i64, offset: u64, last_rank: i64) -> i64 {
    let moved = shift.checked_mul(last_rank).and_then(|moved| moved.checked_add(offset as i64));
    if moved.is_some_and(|at| (0..=OFFSET_MAX as i64).contains(&at)) { shift } else { 0 }
}

/// Ends of the bytes of the lowest and of the highest of these ranks.
pub fn ends(offset: u64, shift: i64, size: u64, (low, high): (i64, i64)) -> (u64, u64) {
    let end = |rank: i64| offset.saturating_add(size).saturating_add_signed(shift.saturating_mul(rank));
    (end(low), end(high))
}
