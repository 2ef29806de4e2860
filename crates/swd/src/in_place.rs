//! Updates in place on small bands (chapter 4): a write reads the live tracks after its own, writes, and writes them back, `1 + 2i` requests in all.
//!
//! Of each track it is known which span of sectors is live; only that is read and written back. Between the write and the last write back the
//! successors exist in memory only: these are the seed's schemes, and a power cut at that moment loses what they held.

use crate::error::SwdError;
use crate::geometry::Geometry;
use crate::medium::{Extent, Medium};
use crate::order::{Order, StaticMap};
use crate::scheme::{Counters, Scheme, check_buffer, check_range};

/// The live sectors of a track, from `from` up to `to`; none when they are equal.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    from: u32,
    to: u32,
}

impl Span {
    fn is_empty(self) -> bool {
        self.from >= self.to
    }

    /// The smallest span that holds both.
    fn hull(self, other: Self) -> Self {
        if self.is_empty() { other } else { Self { from: self.from.min(other.from), to: self.to.max(other.to) } }
    }

    fn of(at: Extent) -> Self {
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

/// A static mapping with updates in place.
#[derive(Clone, Debug)]
pub struct InPlace<M> {
    medium: M,
    map: StaticMap,
    spans: Vec<Span>,
    buffer: Vec<u8>,
    counters: Counters,
}

impl<M: Medium> InPlace<M> {
    /// A disk on `medium` with bands of `band_tracks` (N; not used by [`Order::Hdd`]), of which the first `filled_sectors` are live as the medium
    /// holds them.
    ///
    /// # Errors
    /// Bands that fit no zone, `hdd` on overlapping tracks, a fill beyond the capacity.
    pub fn new(medium: M, order: Order, band_tracks: u32, filled_sectors: u64) -> Result<Self, SwdError> {
        let map = StaticMap::new(order, medium.geometry(), band_tracks)?;
        check_range(0, filled_sectors, map.capacity())?;
        let spans = fill(&map, medium.geometry(), filled_sectors);
        Ok(Self { medium, map, spans, buffer: Vec::new(), counters: Counters::default() })
    }

    /// The medium below.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// The pieces of a request, one per track touched, with their bytes' place in the request's buffer.
    fn pieces(&self, lba: u64, sectors: u64) -> Vec<(Extent, core::ops::Range<usize>)> {
        let (mut pieces, mut done) = (Vec::new(), 0);
        while let Some(at) = self.map.locate(lba + done, sectors - done).filter(|at| at.sectors > 0) {
            let bytes = |sectors| self.medium.geometry().bytes(sectors) as usize;
            pieces.push((at, bytes(done)..bytes(done + u64::from(at.sectors))));
            done += u64::from(at.sectors);
        }
        pieces
    }

    fn span(&self, track: u32) -> Span {
        self.spans.get(track as usize).copied().unwrap_or_default()
    }

    /// Writes a piece of a track and keeps the live tracks after it. A piece away from the live span is joined to it by zeros.
    fn write_piece(&mut self, at: Extent, from: &[u8]) -> Result<(), SwdError> {
        let size = self.medium.geometry().sector_bytes() as usize;
        let (old, new) = (self.span(at.track), Span::of(at));
        let (mut padded, mut target) = (None, at);
        if !old.is_empty() && (new.from > old.to || new.to < old.from) {
            let joined = Span { from: new.from.min(old.to), to: new.to.max(old.from) };
            let mut bytes = vec![0; (joined.to - joined.from) as usize * size];
            let start = (new.from - joined.from) as usize * size;
            if let Some(part) = bytes.get_mut(start..start + from.len()) {
                part.copy_from_slice(from);
            }
            target = Extent { track: at.track, sector: joined.from, sectors: joined.to - joined.from };
            padded = Some(bytes);
        }
        let saved: Vec<(Extent, core::ops::Range<usize>)> = {
            let mut end = 0;
            let place = |(track, span): (u32, Span)| {
                let (start, sectors) = (end, span.to - span.from);
                end += sectors as usize * size;
                (Extent { track, sector: span.from, sectors }, start..end)
            };
            chain(&self.spans, at.track, self.medium.geometry().head_tracks()).map(place).collect()
        };
        self.buffer.resize(saved.last().map_or(0, |(_, range)| range.end), 0);
        for (extent, range) in &saved {
            self.medium.read(*extent, self.buffer.get_mut(range.clone()).unwrap_or_default())?;
            self.counters.extra_reads += 1;
            self.counters.extra_sectors += u64::from(extent.sectors);
        }
        self.medium.write(target, padded.as_deref().unwrap_or(from), None)?;
        for (extent, range) in &saved {
            self.medium.write(*extent, self.buffer.get(range.clone()).unwrap_or_default(), None)?;
            self.counters.extra_writes += 1;
            self.counters.extra_sectors += u64::from(extent.sectors);
        }
        if let Some(span) = self.spans.get_mut(at.track as usize) {
            *span = old.hull(new);
        }
        Ok(())
    }
}

impl<M: Medium> Scheme for InPlace<M> {
    fn capacity_sectors(&self) -> u64 {
        self.map.capacity()
    }

    fn read(&mut self, lba: u64, sectors: u64, into: &mut [u8]) -> Result<(), SwdError> {
        check_range(lba, sectors, self.map.capacity())?;
        check_buffer(into.len(), sectors, self.medium.geometry())?;
        let size = self.medium.geometry().sector_bytes() as usize;
        into.fill(0);
        for (at, range) in self.pieces(lba, sectors) {
            let span = self.span(at.track);
            let (from, to) = (span.from.max(at.sector), span.to.min(at.sector + at.sectors));
            if from < to {
                let (start, end) = ((from - at.sector) as usize * size, (to - at.sector) as usize * size);
                let part = into.get_mut(range.start + start..range.start + end).unwrap_or_default();
                self.medium.read(Extent { track: at.track, sector: from, sectors: to - from }, part)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, lba: u64, sectors: u64, from: &[u8]) -> Result<(), SwdError> {
        check_range(lba, sectors, self.map.capacity())?;
        check_buffer(from.len(), sectors, self.medium.geometry())?;
        for (at, range) in self.pieces(lba, sectors) {
            self.write_piece(at, from.get(range).unwrap_or_default())?;
            self.counters.own_writes += 1;
        }
        Ok(())
    }

    fn trim(&mut self, lba: u64, sectors: u64) -> Result<(), SwdError> {
        check_range(lba, sectors, self.map.capacity())?;
        for (at, range) in self.pieces(lba, sectors) {
            let (span, cut) = (self.span(at.track), Span::of(at));
            if cut.to <= span.from || cut.from >= span.to {
                continue;
            }
            // What a cut leaves must be one span; a hole in it becomes zeros that are written.
            let left = match (cut.from <= span.from, cut.to >= span.to) {
                (true, true) => Span::default(),
                (true, false) => Span { from: cut.to, to: span.to },
                (false, true) => Span { from: span.from, to: cut.from },
                (false, false) => {
                    self.write_piece(at, &vec![0; range.len()])?;
                    self.counters.extra_writes += 1;
                    self.counters.extra_sectors += u64::from(at.sectors);
                    span
                }
            };
            if let Some(span) = self.spans.get_mut(at.track as usize) {
                *span = left;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SwdError> {
        Ok(self.medium.flush()?)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
