//! The live span of each track, and which tracks a write takes with it (chapter 4.4.1).

use crate::geometry::Geometry;
use crate::medium::Extent;
use crate::order::StaticMap;

/// The live sectors of a track, from `from` up to `to`; none when they are equal.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Span {
    pub(crate) fn is_empty(self) -> bool {
        self.from >= self.to
    }

    /// The smallest span that holds both.
    pub(crate) fn hull(self, other: Self) -> Self {
        if self.is_empty() { other } else { Self { from: self.from.min(other.from), to: self.to.max(other.to) } }
    }

    pub(crate) fn of(at: Extent) -> Self {
        Self { from: at.sector, to: at.sector + at.sectors }
    }
}

/// The live spans when the first `filled` logical sectors are live.
pub(crate) fn fill(map: &StaticMap, geometry: &Geometry, filled: u64) -> Vec<Span> {
    let mut spans = vec![Span::default(); geometry.tracks() as usize];
    let mut lba = 0;
    while let Some(at) = map.locate(lba, filled.saturating_sub(lba)).filter(|at| at.sectors > 0) {
        if let Some(span) = spans.get_mut(at.track as usize) {
            *span = span.hull(Span::of(at));
        }
        lba += u64::from(at.sectors);
    }
    spans
}

/// The live tracks that a write of `track` takes with it, in order: the chain ends at W-1 free tracks in a row, which every gap is.
pub(crate) fn chain(spans: &[Span], track: u32, head_tracks: u32) -> impl Iterator<Item = (u32, Span)> + '_ {
    let mut reach = head_tracks - 1;
    let after = spans.iter().copied().enumerate().skip(track as usize + 1);
    after
        .map_while(move |(next, span)| {
            reach = if span.is_empty() { reach.checked_sub(1)? } else { reach.checked_sub(1).map(|_| head_tracks - 1)? };
            Some((next as u32, span))
        })
        .filter(|(_, span)| !span.is_empty())
}

/// The spans as a journal keeps them: of track t, 2t is the first sector and 2t+1 the end.
pub(crate) fn table(spans: &[Span]) -> Vec<u32> {
    spans.iter().flat_map(|span| [span.from, span.to]).collect()
}

/// The spans of a journal's table.
pub(crate) fn spans(table: &[u32]) -> Vec<Span> {
    let at = |span: &[u32], index: usize| span.get(index).copied().unwrap_or(0);
    table.chunks(2).map(|span| Span { from: at(span, 0), to: at(span, 1) }).collect()
}
