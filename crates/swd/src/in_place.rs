//! Updates in place on small bands (chapter 4): a write reads the live tracks after its own, writes, and writes them back, `1 + 2i` requests in all.
//!
//! Of each track it is known which span of sectors is live; only that is read and written back. Between the write and the last write back the
//! successors exist in memory only, and a power cut at that moment loses what they held: so are the seed's schemes ([`InPlace::new`]). With a journal
//! in the random access zone ([`InPlace::create`]) nothing that was flushed is lost.

use core::ops::Range;

use crate::error::SwdError;
use crate::journal::Journal;
use crate::medium::{Extent, Medium, Purpose};
use crate::order::{Order, StaticMap};
use crate::scheme::{Counters, Scheme, check_buffer, check_empty, check_range};
use crate::span::{Span, chain, fill, spans, table};

/// A static mapping with updates in place.
#[derive(Clone, Debug)]
pub struct InPlace<M> {
    medium: M,
    map: StaticMap,
    spans: Vec<Span>,
    buffer: Vec<u8>,
    journal: Option<Journal>,
    /// Tracks whose spans the journal does not know yet.
    dirty: Vec<u32>,
    has_trims: bool,
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
        Ok(Self::with_spans(medium, map, spans, None))
    }

    /// An empty disk that loses nothing flushed to a power cut: chains of writes go to a journal in the random access zone first. `disk_id` marks its
    /// records.
    ///
    /// # Errors
    /// As [`InPlace::new`]; a random access zone that is too small, a medium that fails.
    pub fn create(mut medium: M, order: Order, band_tracks: u32, disk_id: u32) -> Result<Self, SwdError> {
        let map = StaticMap::new(order, medium.geometry(), band_tracks)?;
        let spans = fill(&map, medium.geometry(), 0);
        let longest_track = medium.geometry().zones().map(|(_, zone)| u64::from(zone.sectors)).max().unwrap_or(0);
        let chain = (band_tracks as usize, longest_track * u64::from(band_tracks));
        let journal = Journal::new(&mut medium, disk_id, &table(&spans), chain)?;
        Ok(Self::with_spans(medium, map, spans, Some(journal)))
    }

    /// The disk that [`InPlace::create`] made, as the last flush left it, or later.
    ///
    /// # Errors
    /// No such disk on the medium, a medium that fails.
    pub fn open(mut medium: M, order: Order, band_tracks: u32, disk_id: u32) -> Result<Self, SwdError> {
        let map = StaticMap::new(order, medium.geometry(), band_tracks)?;
        let (journal, table) = Journal::open(&mut medium, disk_id)?;
        Ok(Self::with_spans(medium, map, spans(&table), Some(journal)))
    }

    fn with_spans(medium: M, map: StaticMap, spans: Vec<Span>, journal: Option<Journal>) -> Self {
        Self { medium, map, spans, buffer: Vec::new(), journal, dirty: Vec::new(), has_trims: false, counters: Counters::default() }
    }

    fn set_span(&mut self, track: u32, new: Span) {
        if let Some(span) = self.spans.get_mut(track as usize).filter(|span| **span != new) {
            *span = new;
            if self.journal.is_some() {
                self.dirty.push(track);
            }
        }
    }

    /// Makes everything so far durable, spans too, and ends the journal's records.
    fn settle(&mut self) -> Result<(), SwdError> {
        self.medium.flush()?;
        let Some(journal) = self.journal.as_mut().filter(|journal| !self.dirty.is_empty() || !journal.is_empty()) else { return Ok(()) };
        self.dirty.sort_unstable();
        self.dirty.dedup();
        let spans = &self.spans;
        let entries = |&track: &u32| {
            let span = spans.get(track as usize).copied().unwrap_or_default();
            [(2 * track, span.from), (2 * track + 1, span.to)]
        };
        let changes: Vec<(u32, u32)> = self.dirty.iter().flat_map(entries).collect();
        journal.settle(&mut self.medium, &changes, || table(spans))?;
        self.dirty.clear();
        self.has_trims = false;
        Ok(())
    }

    fn settle_for_itself(&mut self) -> Result<(), SwdError> {
        self.counters.own_flushes += 1;
        self.medium.purpose(Purpose::Upkeep);
        self.settle()
    }

    /// Makes a chain of writes durable before it begins.
    fn record(&mut self, target: Extent, from: &[u8], saved: &[(Extent, Range<usize>)]) -> Result<(), SwdError> {
        let extents: Vec<Extent> = core::iter::once(target).chain(saved.iter().map(|(extent, _)| *extent)).collect();
        if self.journal.as_ref().is_some_and(|journal| !saved.is_empty() && !journal.has_room(&self.medium, &extents)) {
            self.settle_for_itself()?;
        }
        let Some(journal) = self.journal.as_mut().filter(|_| !saved.is_empty()) else { return Ok(()) };
        self.counters.journal_writes += 1;
        journal.append(&mut self.medium, &extents, &[from, &self.buffer].concat())
    }

    /// The pieces of a request, one per track touched, with their bytes' place in the request's buffer.
    fn pieces(&self, lba: u64, sectors: u64) -> Vec<(Extent, Range<usize>)> {
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
    fn write_piece(&mut self, at: Extent, from: &[u8], purpose: Purpose) -> Result<(), SwdError> {
        // A track that was trimmed and is then destroyed must not come back to life.
        if self.has_trims && self.journal.is_some() {
            self.settle_for_itself()?;
        }
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
        let saved: Vec<(Extent, Range<usize>)> = {
            let mut end = 0;
            let place = |(track, span): (u32, Span)| {
                let (start, sectors) = (end, span.to - span.from);
                end += sectors as usize * size;
                (Extent { track, sector: span.from, sectors }, start..end)
            };
            chain(&self.spans, at.track, self.medium.geometry().head_tracks()).map(place).collect()
        };
        self.buffer.resize(saved.last().map_or(0, |(_, range)| range.end), 0);
        self.medium.purpose(Purpose::Amplification);
        for (extent, range) in &saved {
            self.medium.read(*extent, self.buffer.get_mut(range.clone()).unwrap_or_default())?;
            self.counters.extra_reads += 1;
            self.counters.extra_sectors += u64::from(extent.sectors);
        }
        self.record(target, padded.as_deref().unwrap_or(from), &saved)?;
        self.medium.purpose(purpose);
        self.medium.write(target, padded.as_deref().unwrap_or(from), None)?;
        self.medium.purpose(Purpose::Amplification);
        for (extent, range) in &saved {
            self.medium.write(*extent, self.buffer.get(range.clone()).unwrap_or_default(), None)?;
            self.counters.extra_writes += 1;
            self.counters.extra_sectors += u64::from(extent.sectors);
        }
        self.set_span(at.track, old.hull(new));
        Ok(())
    }
}

impl<M: Medium> Scheme for InPlace<M> {
    type Medium = M;

    fn medium(&self) -> &M {
        &self.medium
    }

    fn medium_mut(&mut self) -> &mut M {
        &mut self.medium
    }

    fn into_medium(self) -> M {
        self.medium
    }

    fn capacity_sectors(&self) -> u64 {
        self.map.capacity()
    }

    fn locate(&self, lba: u64) -> Option<Extent> {
        self.map.locate(lba, 1)
    }

    fn fill(&mut self, sectors: u64) -> Result<(), SwdError> {
        check_range(0, sectors, self.map.capacity())?;
        check_empty(self.spans.iter().all(|span| span.is_empty()))?;
        let filled = fill(&self.map, self.medium.geometry(), sectors);
        for (track, span) in (0u32..).zip(filled) {
            self.set_span(track, span);
        }
        if self.medium.geometry().sector_bytes() == 0 {
            self.dirty.clear();
        }
        Ok(())
    }

    fn read(&mut self, lba: u64, sectors: u64, into: &mut [u8]) -> Result<(), SwdError> {
        check_range(lba, sectors, self.map.capacity())?;
        check_buffer(into.len(), sectors, self.medium.geometry())?;
        let size = self.medium.geometry().sector_bytes() as usize;
        into.fill(0);
        self.medium.purpose(Purpose::Own);
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
            self.write_piece(at, from.get(range).unwrap_or_default(), Purpose::Own)?;
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
                    self.write_piece(at, &vec![0; range.len()], Purpose::Amplification)?;
                    self.counters.extra_writes += 1;
                    self.counters.extra_sectors += u64::from(at.sectors);
                    span
                }
            };
            self.set_span(at.track, left);
            self.has_trims |= left != span;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SwdError> {
        self.medium.purpose(Purpose::Own);
        self.settle()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
