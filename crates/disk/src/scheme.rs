//! The schemes by name, with their parameters, on a simulated disk.

use serde::Deserialize;
use stripewise_swd::{InPlace, Indirection, IndirectionParameters, Order, Policy, Scheme, SwdError, TrackLayer, TrackParameters};

use crate::areas::Areas;
use crate::error::Error;
use crate::mechanics::Mechanics;
use crate::medium::{CacheUse, TimedMedium};
use crate::settings::{Settings, Writes};

/// A scheme and its parameters; those that are not given are as the seed has them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemeSpec {
    /// `hdd`, `1234`, `R(4123)`, `124R(3)`, `14R(23)`, `tstl-greedy`, `tstl-smart`, `is`.
    pub name: String,
    /// W, tracks that the write head is wide: 2, for `hdd` 1.
    #[serde(default)]
    pub head_tracks: Option<u32>,
    /// N, tracks of a band: 4 of static mappings, 100 of `tstl-*`.
    #[serde(default)]
    pub band_tracks: Option<u32>,
    /// Logical tracks of a band, `tstl-*`.
    #[serde(default)]
    pub band_logical_tracks: Option<u32>,
    /// Logical tracks of a band before those of the next on an empty disk, `tstl-*`.
    #[serde(default)]
    pub first_tracks: Option<u32>,
    /// The same after that, `tstl-*`.
    #[serde(default)]
    pub spread_tracks: Option<u32>,
    /// Fragmentation ratio up to which a write collects first, `tstl-*`.
    #[serde(default)]
    pub gc_threshold: Option<f64>,
    /// Share of a band's tracks up to which alternate ones are taken, `tstl-*`.
    #[serde(default)]
    pub alternate_limit: Option<f64>,
    /// Copied tracks between two checkpoints, `tstl-*`.
    #[serde(default)]
    pub checkpoint_writes: Option<u32>,
    /// Whether a victim's size follows its band, `tstl-*`.
    #[serde(default)]
    pub victims_by_band: Option<bool>,
    /// Whether nothing flushed is lost to a power cut, `tstl-*` (false: as in the seed) and static mappings (false: as in the seed).
    #[serde(default)]
    pub keeps_flushed: Option<bool>,
    /// Whether places are written down before they are written, so that recovery is quick, `tstl-smart` (false: the seed's basic form).
    #[serde(default)]
    pub declares_pools: Option<bool>,
    /// Tracks of the cache buffer, `is`; not given: the E-region.
    #[serde(default)]
    pub cache_tracks: Option<u32>,
    /// Sectors of an S-block, `is`.
    #[serde(default)]
    pub s_block_sectors: Option<u32>,
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    InPlace(Order),
    Track(Policy),
    Indirection,
}

/// All names of schemes.
pub const SCHEMES: [&str; 8] = ["hdd", "1234", "R(4123)", "124R(3)", "14R(23)", "tstl-greedy", "tstl-smart", "is"];

impl SchemeSpec {
    fn kind(&self) -> Result<Kind, Error> {
        match self.name.as_str() {
            "tstl-greedy" => Ok(Kind::Track(Policy::Greedy)),
            "tstl-smart" => Ok(Kind::Track(Policy::Smart)),
            "is" => Ok(Kind::Indirection),
            name => Order::named(name)
                .map(Kind::InPlace)
                .ok_or_else(|| Error::key("scheme.name", format!("is \"{name}\""), &format!("give one of {}", SCHEMES.join(", ")))),
        }
    }

    /// W.
    pub(crate) fn head_tracks(&self) -> u32 {
        self.head_tracks.unwrap_or(if self.name == "hdd" { 1 } else { 2 })
    }

    /// Tracks that belong together on one surface.
    fn band_tracks(&self) -> u32 {
        let together = match self.kind() {
            Ok(Kind::InPlace(_)) => self.band_tracks.unwrap_or(4) + self.head_tracks().saturating_sub(1),
            _ => self.band_tracks.unwrap_or(100),
        };
        together.max(1)
    }

    /// # Errors
    /// An unknown name, parameters that the scheme does not take.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let kind = self.kind()?;
        let of_tracks = matches!(kind, Kind::Track(_));
        let of_static = matches!(kind, Kind::InPlace(order) if order != Order::Hdd);
        let of_is = kind == Kind::Indirection;
        let given = [
            ("scheme.band_tracks", self.band_tracks.is_some(), of_tracks || of_static),
            ("scheme.band_logical_tracks", self.band_logical_tracks.is_some(), of_tracks),
            ("scheme.first_tracks", self.first_tracks.is_some(), of_tracks),
            ("scheme.declares_pools", self.declares_pools.is_some(), kind == Kind::Track(Policy::Smart)),
            ("scheme.spread_tracks", self.spread_tracks.is_some(), of_tracks),
            ("scheme.gc_threshold", self.gc_threshold.is_some(), of_tracks),
            ("scheme.alternate_limit", self.alternate_limit.is_some(), of_tracks),
            ("scheme.checkpoint_writes", self.checkpoint_writes.is_some(), of_tracks),
            ("scheme.victims_by_band", self.victims_by_band.is_some(), of_tracks),
            ("scheme.keeps_flushed", self.keeps_flushed.is_some(), of_tracks || of_static),
            ("scheme.cache_tracks", self.cache_tracks.is_some(), of_is),
            ("scheme.s_block_sectors", self.s_block_sectors.is_some(), of_is),
        ];
        match given.iter().find(|(_, is_given, is_taken)| *is_given && !is_taken) {
            Some((key, ..)) => Err(Error::key(key, format!("is not taken by {}", self.name), "leave it out")),
            None => Ok(()),
        }
    }

    fn track_parameters(&self, policy: Policy) -> TrackParameters {
        let default = TrackParameters::default();
        TrackParameters {
            policy,
            band_tracks: self.band_tracks.unwrap_or(default.band_tracks),
            band_logical_tracks: self.band_logical_tracks.unwrap_or(default.band_logical_tracks),
            first_tracks: self.first_tracks.unwrap_or(default.first_tracks),
            spread_tracks: self.spread_tracks.unwrap_or(default.spread_tracks),
            gc_threshold: self.gc_threshold.unwrap_or(default.gc_threshold),
            alternate_limit: self.alternate_limit.unwrap_or(default.alternate_limit),
            checkpoint_writes: self.checkpoint_writes.unwrap_or(default.checkpoint_writes),
            victims_by_band: self.victims_by_band.unwrap_or(default.victims_by_band),
            keeps_flushed: self.keeps_flushed.unwrap_or(false),
            declares_pools: self.declares_pools.unwrap_or(false),
            ..default
        }
    }
}

/// A scheme on a simulated disk.
#[derive(Clone, Debug)]
pub enum TimedScheme {
    /// Static mappings, and the ordinary disk.
    InPlace(Box<InPlace<TimedMedium>>),
    /// `tstl-*`.
    Track(Box<TrackLayer<TimedMedium>>),
    /// `is`.
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
