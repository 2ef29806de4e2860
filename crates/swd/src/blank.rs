//! A medium that does nothing and costs nothing: for what only the maps and counters of a scheme are wanted.

use crate::error::{MediumError, SwdError};
use crate::geometry::Geometry;
use crate::medium::{Extent, Medium, Spare};

/// Carries no data and no times; every request is served.
#[derive(Clone, Debug)]
pub struct BlankMedium {
    geometry: Geometry,
}

impl BlankMedium {
    /// A medium of the shape of `geometry`, its sectors without bytes.
    ///
    /// # Errors
    /// As [`Geometry::new`].
    pub fn new(geometry: &Geometry) -> Result<Self, SwdError> {
        let zones: Vec<_> = geometry.zones().map(|(_, zone)| zone).collect();
        Ok(Self { geometry: Geometry::new(&zones, geometry.head_tracks(), 0, geometry.random_access_sectors())? })
    }
}

impl Medium for BlankMedium {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn read(&mut self, _: Extent, _: &mut [u8]) -> Result<(), MediumError> {
        Ok(())
    }

    fn write(&mut self, _: Extent, _: &[u8], _: Option<&Spare>) -> Result<(), MediumError> {
        Ok(())
    }

    fn read_spare(&mut self, _: u32) -> Result<Option<Spare>, MediumError> {
        Ok(None)
    }

    fn read_random(&mut self, _: u32, _: u32, _: &mut [u8]) -> Result<(), MediumError> {
        Ok(())
    }

    fn write_random(&mut self, _: u32, _: u32, _: &[u8]) -> Result<(), MediumError> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        Ok(())
    }
}
