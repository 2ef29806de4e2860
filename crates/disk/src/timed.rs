//! A scheme on a simulated disk.

use stripewise_swd::{InPlace, Indirection, IndirectionParameters, Scheme, SwdError, TrackLayer};

use crate::drive::areas::Areas;
use crate::drive::mechanics::Mechanics;
use crate::error::Error;
use crate::medium::{CacheUse, TimedMedium};
use crate::scheme::Kind;
use crate::settings::{Settings, Writes};

/// A scheme on a simulated disk.
#[derive(Clone, Debug)]
pub enum TimedScheme {
    /// Static mappings, and the ordinary disk.
    InPlace(Box<InPlace<TimedMedium>>),
    /// `tstl-*`.
    Track(Box<TrackLayer<TimedMedium>>),
    Indirection(Box<Indirection<TimedMedium>>),
}

/// Calls a method of whichever scheme it is.
macro_rules! each {
    ($scheme:expr, $inner:ident => $call:expr) => {
        match $scheme {
            TimedScheme::InPlace($inner) => $call,
            TimedScheme::Track($inner) => $call,
            TimedScheme::Indirection($inner) => $call,
        }
    };
}
pub(crate) use each;

impl TimedScheme {
    /// The scheme of the settings, filled as they say, with its clock at 0.
    ///
    /// # Errors
    /// Settings that do not fit together.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        settings.check()?;
        let mut scheme = Self::empty(settings)?;
        let used = scheme.used_sectors(settings)?;
        let filled = match (settings.filled_share, settings.filled_blocks) {
            (Some(share), _) => part(share, used),
            (None, None) => used,
            (None, Some(blocks)) => sectors_of(blocks, settings.disk.block_bytes),
        };
        if filled > used {
            let wrong = format!("is {}, more than the used blocks", settings.filled_blocks.unwrap_or_default());
            return Err(Error::key("filled_blocks", wrong, "fill no more than is used"));
        }
        each!(&mut scheme, scheme => {
            scheme.fill(filled).map_err(|error| refused("filled_blocks", &error))?;
            scheme.medium_mut().begin();
        });
        Ok(scheme)
    }

    fn empty(settings: &Settings) -> Result<Self, Error> {
        let (spec, scheme) = (&settings.disk, &settings.scheme);
        let kind = scheme.kind()?;
        let stacked = scheme.head_tracks() > 1 && spec.surfaces > 1 && spec.run_cylinders() == Some(1);
        let run_cylinders = settings.run_cylinders.or(stacked.then(|| scheme.band_tracks()));
        let mechanics = Mechanics::new(spec, run_cylinders)?;
        let areas = Areas::new(mechanics.layout(), spec.block_bytes, settings.random_access_bytes, settings.e_region_bytes)?;
        let main = areas.main(kind == Kind::Indirection);
        let cache = CacheUse { reads: settings.cache.reads, write_back: settings.cache.writes == Writes::Back };
        let medium = TimedMedium::new(spec, mechanics, &areas, main, scheme.head_tracks(), cache)?;
        let made = match kind {
            Kind::InPlace(order) if scheme.keeps_flushed == Some(true) => {
                InPlace::create(medium, order, scheme.band_tracks.unwrap_or(4), 1).map(|layer| Self::InPlace(Box::new(layer)))
            }
            Kind::InPlace(order) => InPlace::new(medium, order, scheme.band_tracks.unwrap_or(4), 0).map(|layer| Self::InPlace(Box::new(layer))),
            Kind::Track(policy) => TrackLayer::create(medium, scheme.track_parameters(policy)).map(|layer| Self::Track(Box::new(layer))),
            Kind::Indirection => {
                let default = IndirectionParameters::default();
                let parameters = IndirectionParameters {
                    cache_tracks: scheme.cache_tracks.unwrap_or(areas.e_region.tracks),
                    s_block_sectors: scheme.s_block_sectors.unwrap_or(default.s_block_sectors),
                };
                Indirection::new(medium, parameters).map(|layer| Self::Indirection(Box::new(layer)))
            }
        };
        made.map_err(|error| refused("scheme", &error))
    }

    /// Logical sectors.
    #[must_use]
    pub fn capacity_sectors(&self) -> u64 {
        each!(self, scheme => scheme.capacity_sectors())
    }

    /// The simulated disk below.
    #[must_use]
    pub fn medium(&self) -> &TimedMedium {
        each!(self, scheme => scheme.medium())
    }

    /// Sectors that requests are for.
    ///
    /// # Errors
    /// More than the scheme has, or none.
    pub fn used_sectors(&self, settings: &Settings) -> Result<u64, Error> {
        let capacity = self.capacity_sectors();
        if capacity == 0 {
            return Err(Error::key("scheme", "has no room for data on this disk", "give it a larger disk or smaller bands and areas"));
        }
        if let Some(share) = settings.used_share {
            return Ok(part(share, capacity).max(1));
        }
        let Some(blocks) = settings.used_blocks else { return Ok(capacity) };
        let used = sectors_of(blocks, settings.disk.block_bytes);
        if used == 0 || used > capacity {
            let most = capacity * u64::from(settings.disk.block_bytes / 512);
            return Err(Error::key(
                "used_blocks",
                format!("is {blocks}, the disk under this scheme has {most}"),
                "use at least 1 and no more than it has",
            ));
        }
        Ok(used)
    }
}

/// Share of a number of sectors.
fn part(share: f64, sectors: u64) -> u64 {
    ((share * sectors as f64).round() as u64).min(sectors)
}

fn sectors_of(blocks: u64, block_bytes: u32) -> u64 {
    blocks.div_ceil(u64::from(block_bytes / 512))
}

fn refused(key: &str, error: &SwdError) -> Error {
    match error {
        SwdError::Parameter { key: inner, reason } => Error::key(&format!("{key}.{inner}"), reason, "change it"),
        other => Error::Invalid(format!("{key}: {other}")),
    }
}
