//! The disk that T-STL makes of a medium: creating, opening after a power cut, requests.

use super::bands::{Bands, Piece};
use super::credit::Credit;
use super::heat::Heat;
use super::parameters::TrackParameters;
use super::plan::Policy;
use super::recover::{Scan, recover};
use super::table::{NONE, Table};
use crate::blank::BlankMedium;
use crate::error::SwdError;
use crate::log::{Log, half_of};
use crate::medium::{Extent, Medium, Purpose};
use crate::scheme::{Counters, Scheme, check_buffer, check_empty, check_range};

/// A disk of logical tracks on a shingled medium: `tstl-greedy`, `tstl-smart` and `tstl-adaptive`.
#[derive(Clone, Debug)]
pub struct TrackLayer<M> {
    pub(super) medium: M,
    pub(super) parameters: TrackParameters,
    pub(super) bands: Bands,
    pub(super) table: Table,
    /// Empty where the policy does not ask for it.
    pub(super) heat: Heat,
    pub(super) log: Log,
    pub(super) clock: u64,
    /// Where an idle disk looks next for what to collect.
    pub(super) idle_band: usize,
    /// Physical track of the last request.
    pub(super) head: u32,
    pub(super) copies: u32,
    pub(super) has_trims: bool,
    /// What Greedy would do, where the policy asks for it, and what each band may lose to that.
    pub(super) shadow: Option<Box<TrackLayer<BlankMedium>>>,
    pub(super) credits: Vec<Credit>,
    pub(super) counters: Counters,
}

impl<M: Medium> TrackLayer<M> {
    /// An empty disk; whatever the medium held is forgotten.
    ///
    /// # Errors
    /// Parameters that do not fit the medium, a medium that fails.
    pub fn create(mut medium: M, parameters: TrackParameters) -> Result<Self, SwdError> {
        parameters.check()?;
        let bands = Bands::new(medium.geometry(), &parameters)?;
        let table = Table::new(&bands, medium.geometry().head_tracks(), parameters.keeps_flushed);
        let half = half_of(&medium);
        let log = Log::new(&mut medium, parameters.disk_id, bands.logical_tracks(), half)?;
        // Back pointers of an earlier disk of the same id must not be newer than the first checkpoint. A medium without data has none.
        let mut clock = 0;
        let tracks = if medium.geometry().sector_bytes() == 0 { 0 } else { medium.geometry().tracks() };
        for track in 0..tracks {
            clock = clock.max(super::spare::timestamp(medium.read_spare(track)?));
        }
        Self::new(medium, parameters, bands, table, log, clock).begin()
    }

    /// The disk as the last flush left it, or later. [`Scan::Pools`] needs a disk that was run by Smart or Adaptive.
    ///
    /// # Errors
    /// No table of this disk, other parameters than it was created with, a medium that fails.
    pub fn open(mut medium: M, parameters: TrackParameters, scan: Scan) -> Result<Self, SwdError> {
        parameters.check()?;
        if scan == Scan::Pools && !parameters.declares() {
            return Err(SwdError::Parameter {
                key: "declares_pools",
                reason: "only a disk that declared its pools can be opened by them; scan all tracks",
            });
        }
        let bands = Bands::new(medium.geometry(), &parameters)?;
        let mut table = Table::new(&bands, medium.geometry().head_tracks(), parameters.keeps_flushed);
        let state = recover(&mut medium, &bands, parameters.disk_id, scan)?;
        for (logical_track, track) in (0u32..).zip(state.physical).filter(|&(_, track)| track != NONE) {
            let band = bands.band_of(logical_track);
            let place = track.wrapping_sub(bands.first_track(band)) as usize;
            // The band's last W-1 tracks are the gap to the next.
            if place > (parameters.band_tracks - medium.geometry().head_tracks()) as usize || table.at(band, place).is_some() {
                return Err(SwdError::Table { logical_track });
            }
            table.assign(logical_track, band, Some(place));
        }
        Self::new(medium, parameters, bands, table, state.log, state.clock).begin()
    }

    fn new(medium: M, parameters: TrackParameters, bands: Bands, table: Table, log: Log, clock: u64) -> Self {
        let heat = if parameters.policy == Policy::Adaptive {
            Heat::new(bands.count(), bands.logical_tracks() / bands.count().max(1))
        } else {
            Heat::new(0, 0)
        };
        let (head, idle_band, copies, has_trims, counters) = (0, 0, 0, false, Counters::default());
        let (shadow, credits) = (None, Vec::new());
        Self { medium, parameters, bands, table, heat, log, clock, idle_band, head, copies, has_trims, shadow, credits, counters }
    }

    /// A disk of the same bands with these tracks on another medium, nothing done yet.
    pub(super) fn on<O: Medium>(&self, medium: O, parameters: TrackParameters, table: Table) -> TrackLayer<O> {
        TrackLayer::new(medium, parameters, self.bands.clone(), table, self.log.clone(), self.clock)
    }

    fn begin(mut self) -> Result<Self, SwdError> {
        self.begin_shadow()?;
        self.log.begin(&mut self.medium, self.clock, &self.table.entries(&self.bands))?;
        self.table.checkpointed();
        Ok(self)
    }

    /// The used and free tracks of each band, as they are now.
    pub fn spaces(&self) -> impl Iterator<Item = &super::space::Space> {
        self.table.bands.iter().map(|band| &band.space)
    }

    pub(super) fn place(&self, logical_track: u32) -> Option<usize> {
        self.table.place(logical_track)
    }

    pub(super) fn bytes(&self, sectors: u32) -> usize {
        self.medium.geometry().bytes(u64::from(sectors)) as usize
    }
}

impl<M: Medium> Scheme for TrackLayer<M> {
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
        self.bands.capacity()
    }

    fn locate(&self, lba: u64) -> Option<Extent> {
        let Piece { logical_track, sector, .. } = self.bands.piece(lba, 1)?;
        let place = self.place(logical_track)?;
        Some(Extent { track: self.bands.first_track(self.bands.band_of(logical_track)) + place as u32, sector, sectors: 1 })
    }

    fn fill(&mut self, sectors: u64) -> Result<(), SwdError> {
        check_range(0, sectors, self.bands.capacity())?;
        check_empty(self.table.is_empty())?;
        self.fill_in_order(sectors)
    }

    fn idle_step(&mut self) -> Result<bool, SwdError> {
        self.collect_idle()
    }

    fn read(&mut self, lba: u64, sectors: u64, into: &mut [u8]) -> Result<(), SwdError> {
        check_range(lba, sectors, self.bands.capacity())?;
        check_buffer(into.len(), sectors, self.medium.geometry())?;
        let mut rest = into;
        for Piece { logical_track, sector, sectors } in self.bands.pieces(lba, sectors) {
            let (part, after) = rest.split_at_mut(self.bytes(sectors).min(rest.len()));
            rest = after;
            self.shadow_read(logical_track);
            match self.place(logical_track) {
                Some(place) => {
                    let track = self.bands.first_track(self.bands.band_of(logical_track)) + place as u32;
                    self.medium.purpose(Purpose::Own);
                    self.medium.read(Extent { track, sector, sectors }, part)?;
                    self.head = track;
                }
                None => part.fill(0),
            }
        }
        Ok(())
    }

    fn write(&mut self, lba: u64, sectors: u64, from: &[u8]) -> Result<(), SwdError> {
        check_range(lba, sectors, self.bands.capacity())?;
        check_buffer(from.len(), sectors, self.medium.geometry())?;
        let pieces = self.bands.pieces(lba, sectors);
        let (mut rest, mut wanted) = (from, pieces.len());
        for piece in pieces {
            let (part, after) = rest.split_at(self.bytes(piece.sectors).min(rest.len()));
            rest = after;
            self.update(piece, part, wanted, Purpose::Own)?;
            self.counters.own_writes += 1;
            wanted -= 1;
        }
        Ok(())
    }

    fn trim(&mut self, lba: u64, sectors: u64) -> Result<(), SwdError> {
        check_range(lba, sectors, self.bands.capacity())?;
        for piece in self.bands.pieces(lba, sectors) {
            let (band, logical_track) = (self.bands.band_of(piece.logical_track), piece.logical_track);
            if self.place(logical_track).is_none() {
                continue;
            }
            if piece.sectors == self.bands.track_sectors(band) {
                self.table.assign(logical_track, band, None);
                self.shadow_trim(logical_track, band);
                self.has_trims = true;
            } else {
                self.update(piece, &vec![0; self.bytes(piece.sectors)], 1, Purpose::Amplification)?;
                self.counters.extra_writes += 1;
                self.counters.extra_sectors += u64::from(piece.sectors);
            }
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
