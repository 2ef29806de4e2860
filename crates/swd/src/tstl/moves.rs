//! How tracks get to where they are: updates in place and by copy, garbage collection, bringing free tracks together, checkpoints.

use core::ops::Range;

use super::bands::Piece;
use super::layer::TrackLayer;
use super::plan::{Move, Policy, victim_limit};
use super::spare::BackPointer;
use crate::error::SwdError;
use crate::medium::{Extent, Medium, Purpose, SPARE_BYTES};
use stripewise_checksum::crc32c;

impl<M: Medium> TrackLayer<M> {
    /// Writes sectors of a logical track, the first of `wanted` tracks in a row.
    pub(super) fn update(&mut self, piece: Piece, from: &[u8], wanted: usize, purpose: Purpose) -> Result<(), SwdError> {
        let before = self.counters.extra_requests();
        self.write_piece(piece, from, wanted, purpose)?;
        let requests = self.counters.extra_requests() - before;
        self.shadow_write(piece, wanted, requests)
    }

    fn write_piece(&mut self, piece: Piece, from: &[u8], wanted: usize, purpose: Purpose) -> Result<(), SwdError> {
        let (band, logical_track) = (self.bands.band_of(piece.logical_track), piece.logical_track);
        let place = self.place(logical_track);
        self.heat.visit(logical_track, place.is_none());
        let policy = self.policy_of(band, place);
        self.collect(band, policy)?;
        if let Some(place) = self.place(logical_track)
            && self.table.bands.get(band).is_some_and(|band| band.space.spares_others(place))
        {
            return self.update_in_place(band, place, piece, from, purpose);
        }
        if policy == Policy::Adaptive {
            self.make_room_by_heat(band, logical_track)?;
        }
        let to = loop {
            match self.choose(band, logical_track, wanted, policy) {
                Some(to) => break to,
                None => self.gather(band)?,
            }
        };
        let sectors = self.bands.track_sectors(band);
        let mut bytes = vec![0; self.bytes(sectors)];
        if let Some(place) = self.place(logical_track).filter(|_| piece.sectors < sectors) {
            self.read_track(band, place, &mut bytes, Purpose::Amplification)?;
        }
        let start = self.bytes(piece.sector);
        if let Some(part) = bytes.get_mut(start..start + from.len()) {
            part.copy_from_slice(from);
        }
        self.open_pool(band, to)?;
        self.write_track(band, to, logical_track, &bytes, purpose)?;
        if self.copies >= self.parameters.checkpoint_writes {
            self.checkpoint()?;
        }
        Ok(())
    }

    fn update_in_place(&mut self, band: usize, place: usize, piece: Piece, from: &[u8], purpose: Purpose) -> Result<(), SwdError> {
        let is_safe = self.parameters.keeps_flushed;
        if is_safe && self.table.is_dirty(piece.logical_track) {
            self.checkpoint()?;
        }
        if is_safe && self.table.bands.get(band).is_some_and(|band| !band.held.spares_others(place)) {
            self.settle_for_itself()?;
        }
        let track = self.bands.first_track(band) + place as u32;
        self.medium.purpose(purpose);
        self.medium.write(Extent { track, sector: piece.sector, sectors: piece.sectors }, from, None)?;
        self.head = track;
        Ok(())
    }

    /// Where a logical track goes: in a little used band to an alternate track, its own if that is free; else where the policy says.
    fn choose(&self, band: usize, logical_track: u32, wanted: usize, policy: Policy) -> Option<usize> {
        let state = self.table.bands.get(band)?;
        let (space, head_tracks) = (&state.space, state.space.head_tracks());
        if self.place(logical_track).is_none() && !self.is_aggressive(band, 1) {
            let own = self.bands.index_of(logical_track) * head_tracks;
            let mut alternate = core::iter::once(own).chain((0..space.tracks()).step_by(head_tracks));
            let fits = |&to: &usize| space.can_take(to);
            if let Some(to) = alternate.find(fits) {
                return Some(to);
            }
        }
        if policy == Policy::Adaptive {
            return self.choose_by_heat(band);
        }
        space.choose(policy, self.head_in(band), wanted, &state.pool)
    }

    /// Whether a band with so many more tracks is used beyond the limit of alternate tracks.
    fn is_aggressive(&self, band: usize, more: usize) -> bool {
        let used = self.table.bands.get(band).map_or(0, |band| band.space.used_tracks());
        (used + more) as f64 > self.parameters.alternate_limit * f64::from(self.parameters.band_tracks)
    }

    /// The head's position in tracks of a band; its ends stand for whatever lies beyond.
    fn head_in(&self, band: usize) -> usize {
        self.head.saturating_sub(self.bands.first_track(band)).min(self.parameters.band_tracks - 1) as usize
    }

    /// One step of garbage collection before a write, if the band is fragmented.
    fn collect(&mut self, band: usize, policy: Policy) -> Result<(), SwdError> {
        if policy == Policy::Adaptive {
            return Ok(());
        }
        let is_fragmented = self.table.bands.get(band).is_some_and(|band| band.space.fragmentation() <= self.parameters.gc_threshold);
        if is_fragmented && self.is_aggressive(band, 0) {
            self.collect_as(band, policy)?;
        }
        Ok(())
    }

    /// One step of garbage collection in a band, however fragmented it is: what a disk does when idle. False when no step would gain anything.
    ///
    /// # Errors
    /// A medium that fails.
    pub fn collect_band(&mut self, band: usize) -> Result<bool, SwdError> {
        if self.parameters.policy == Policy::Adaptive {
            return self.collect_by_heat(band, usize::MAX);
        }
        self.collect_as(band, self.parameters.policy)
    }

    fn collect_as(&mut self, band: usize, policy: Policy) -> Result<bool, SwdError> {
        let Some(state) = self.table.bands.get(band) else { return Ok(false) };
        let (used, free) = if self.parameters.victims_by_band {
            let used = state.space.used_tracks() as u64;
            (used, u64::from(self.parameters.band_tracks) - used)
        } else {
            self.table.usage()
        };
        let Some(limit) = victim_limit(used, free) else { return Ok(false) };
        let head = self.head_in(band);
        // Tracks of a pool stay where recovery looks for them. Where all victims are such, the move takes a checkpoint.
        let step = state.space.collection_step(policy, head, limit, |victim| !state.is_any_declared(victim));
        let is_any_declared = state.is_any_declared(&(0..state.space.tracks()));
        let step = step.or_else(|| if is_any_declared { state.space.collection_step(policy, head, limit, |_| true) } else { None });
        let Some(step) = step else {
            self.table.tidy(band);
            return Ok(false);
        };
        self.counters.collections += 1;
        self.counters.collected_tracks += step.from.len() as u64;
        self.move_tracks(band, step)?;
        Ok(true)
    }

    /// A step of garbage collection in the next band, from the last one on, in which a step gains anything: for an idle disk, as far as no write has asked
    /// for it. Bands up to the limit of alternate tracks are left as they are.
    pub(super) fn collect_idle(&mut self) -> Result<bool, SwdError> {
        let count = self.bands.count();
        for _ in 0..count {
            let band = self.idle_band % count;
            let is_due = self.table.bands.get(band).is_some_and(|state| !state.is_tidy) && self.is_aggressive(band, 0);
            if is_due && self.collect_in_idle_band(band)? {
                return Ok(true);
            }
            self.idle_band = (band + 1) % count;
        }
        Ok(false)
    }

    /// Moves one track so that the band's free tracks come together.
    fn gather(&mut self, band: usize) -> Result<(), SwdError> {
        let step = self.table.bands.get(band).and_then(|band| band.space.gather_step());
        let step = step.ok_or(SwdError::NoFreeTrack { band })?;
        self.counters.gathered_tracks += 1;
        self.move_tracks(band, step)
    }

    pub(super) fn move_tracks(&mut self, band: usize, step: Move) -> Result<(), SwdError> {
        let keeps_pools = self.parameters.policy == Policy::Smart;
        if keeps_pools && self.table.bands.get(band).is_some_and(|state| state.is_any_declared(&step.from)) {
            self.checkpoint()?;
        }
        self.declare(band, step.to..step.to + step.from.len())?;
        let mut bytes = vec![0; self.bytes(self.bands.track_sectors(band))];
        for (place, to) in step.from.zip(step.to..) {
            let Some(logical_track) = self.table.at(band, place) else { continue };
            self.read_track(band, place, &mut bytes, Purpose::Collection)?;
            self.write_track(band, to, logical_track, &bytes, Purpose::Collection)?;
            self.counters.extra_writes += 1;
            self.counters.extra_sectors += u64::from(self.bands.track_sectors(band));
        }
        Ok(())
    }

    fn read_track(&mut self, band: usize, place: usize, into: &mut [u8], purpose: Purpose) -> Result<(), SwdError> {
        let (track, sectors) = (self.bands.first_track(band) + place as u32, self.bands.track_sectors(band));
        self.medium.purpose(purpose);
        self.medium.read(Extent { track, sector: 0, sectors }, into)?;
        self.head = track;
        self.counters.extra_reads += 1;
        self.counters.extra_sectors += u64::from(sectors);
        Ok(())
    }

    /// Writes a whole track with its back pointer to a free place and makes it the logical track's.
    fn write_track(&mut self, band: usize, to: usize, logical_track: u32, bytes: &[u8], purpose: Purpose) -> Result<(), SwdError> {
        let is_safe = |state: &super::table::Band| state.held.can_take(to);
        if self.parameters.keeps_flushed && self.table.bands.get(band).is_some_and(|state| !is_safe(state)) {
            self.settle_for_itself()?;
        }
        // A checkpoint that settling took has ended the pools.
        self.declare(band, to..to + 1)?;
        self.clock += 1;
        let has_data = self.medium.geometry().sector_bytes() > 0;
        let pointer = BackPointer { logical_track, disk: self.parameters.disk_id, timestamp: self.clock, checksum: crc32c(bytes) };
        let (track, sectors) = (self.bands.first_track(band) + to as u32, self.bands.track_sectors(band));
        self.medium.purpose(purpose);
        self.medium.write(Extent { track, sector: 0, sectors }, bytes, Some(&if has_data { pointer.encode() } else { [0; SPARE_BYTES] }))?;
        self.table.assign(logical_track, band, Some(to));
        self.head = track;
        self.copies += 1;
        Ok(())
    }

    /// Declares the pool that `to` begins, and moves Smart's bookmark past it. Alternate tracks are a pool of the whole band.
    fn open_pool(&mut self, band: usize, to: usize) -> Result<(), SwdError> {
        let is_aggressive = self.is_aggressive(band, 1);
        let Some(state) = self.table.bands.get_mut(band).filter(|_| self.parameters.policy == Policy::Smart) else { return Ok(()) };
        if !is_aggressive {
            let all = 0..state.space.tracks();
            return self.declare(band, all);
        }
        if state.pool.start != to || state.pool.is_empty() {
            let end = state.space.free_until(to);
            state.pool = to..(end + 1).saturating_sub(state.space.head_tracks()).max(to + 1);
        }
        let pool = state.pool.clone();
        state.pool.start = to + 1;
        self.declare(band, pool)
    }

    /// Makes recovery look at these tracks.
    fn declare(&mut self, band: usize, pool: Range<usize>) -> Result<(), SwdError> {
        let Some(state) = self.table.bands.get(band).filter(|_| self.parameters.declares()) else { return Ok(()) };
        if state.are_declared(&pool) {
            return Ok(());
        }
        if !self.log.has_room(&self.medium, 1) {
            self.checkpoint()?;
        }
        if self.parameters.policy == Policy::Adaptive {
            return self.declare_bands(band);
        }
        let first = self.bands.first_track(band) + pool.start as u32;
        self.log.pool(&mut self.medium, self.clock, first, pool.len() as u32)?;
        self.table.declare(band, pool);
        Ok(())
    }

    /// Writes the table's changes to the random access zone, or all of it where they do not fit. Everything before it is durable then.
    ///
    /// # Errors
    /// A medium that fails.
    pub fn checkpoint(&mut self) -> Result<(), SwdError> {
        self.medium.purpose(Purpose::Upkeep);
        self.medium.flush()?;
        let changes = self.table.changes(&self.bands);
        if self.log.has_room(&self.medium, changes.len()) {
            self.log.changes(&mut self.medium, self.clock, &changes)?;
        } else {
            self.log.begin(&mut self.medium, self.clock, &self.table.entries(&self.bands))?;
        }
        self.table.checkpointed();
        self.counters.checkpoints += 1;
        self.copies = 0;
        self.has_trims = false;
        Ok(())
    }

    /// Makes everything so far durable; trims are durable with a checkpoint only.
    pub(super) fn settle(&mut self) -> Result<(), SwdError> {
        if self.has_trims {
            return self.checkpoint();
        }
        self.medium.flush()?;
        self.table.release();
        Ok(())
    }

    fn settle_for_itself(&mut self) -> Result<(), SwdError> {
        self.counters.own_flushes += 1;
        self.medium.purpose(Purpose::Upkeep);
        self.settle()
    }
}
