//! Filling a disk without its medium: the tracks are written in order, one by one, to a medium of the same shape that does nothing, and the table that
//! this leaves is the disk's. So the state is by construction that of sequential writing: alternate tracks up to the limit, then what the policy chooses
//! and its garbage collection moves. A track of which any sector is filled is live as a whole.

use super::bands::Bands;
use super::layer::TrackLayer;
use crate::blank::BlankMedium;
use crate::error::SwdError;
use crate::medium::Medium;
use crate::scheme::{Counters, Scheme};

impl<M: Medium> TrackLayer<M> {
    /// Makes the tracks of the first `sectors` live.
    pub(super) fn fill_in_order(&mut self, sectors: u64) -> Result<(), SwdError> {
        let mut copy = TrackLayer {
            medium: BlankMedium::new(self.medium.geometry())?,
            parameters: self.parameters,
            bands: self.bands.clone(),
            table: self.table.clone(),
            heat: self.heat.clone(),
            log: self.log.clone(),
            clock: self.clock,
            idle_band: 0,
            head: 0,
            copies: 0,
            has_trims: false,
            counters: Counters::default(),
        };
        let mut lba = 0;
        while lba < sectors {
            let track_sectors = whole_track(&self.bands, lba).ok_or(SwdError::Beyond { lba, sectors, capacity: self.bands.capacity() })?;
            copy.write(lba, track_sectors, &[])?;
            lba += track_sectors;
        }
        copy.checkpoint()?;
        self.head = copy.head;
        self.table = copy.table;
        if self.medium.geometry().sector_bytes() > 0 {
            self.table.touch_all();
            self.has_trims = true;
        }
        Ok(())
    }
}

/// Sectors of the logical track that begins at a sector.
fn whole_track(bands: &Bands, lba: u64) -> Option<u64> {
    bands.piece(lba, u64::MAX).map(|piece| u64::from(piece.sectors))
}
