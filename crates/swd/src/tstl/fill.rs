//! Filling a disk without its medium: the tracks are written in order, one by one, to a medium of the same shape that does nothing, and the table that
//! this leaves is the disk's. So the state is by construction that of sequential writing: alternate tracks up to the limit, then what the policy chooses
//! and its garbage collection moves. A track of which any sector is filled is live as a whole.

use super::bands::Bands;
use super::layer::TrackLayer;
use crate::blank::BlankMedium;
use crate::error::SwdError;
use crate::medium::Medium;
use crate::scheme::Scheme;

impl<M: Medium> TrackLayer<M> {
    /// Makes the tracks of the first `sectors` live.
    pub(super) fn fill_in_order(&mut self, sectors: u64) -> Result<(), SwdError> {
        let blank = BlankMedium::new(self.medium.geometry())?;
        let copy = self.on(blank, self.parameters, self.table.clone());
        let mut copy = TrackLayer { heat: self.heat.clone(), shadow: self.shadow.clone(), credits: self.credits.clone(), ..copy };
        let mut lba = 0;
        while lba < sectors {
            let track_sectors = whole_track(&self.bands, lba).ok_or(SwdError::Beyond { lba, sectors, capacity: self.bands.capacity() })?;
            copy.write(lba, track_sectors, &[])?;
            lba += track_sectors;
        }
        copy.checkpoint()?;
        self.head = copy.head;
        self.table = copy.table;
        (self.shadow, self.credits) = (copy.shadow, copy.credits);
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
