//! The schemes by name, with their parameters.

use serde::Deserialize;
use stripewise_swd::{Order, Policy, TrackParameters};

use crate::error::Error;

/// A scheme and its parameters; those that are not given are as the seed has them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemeSpec {
    /// `hdd`, `1234`, `R(4123)`, `124R(3)`, `14R(23)`, `tstl-greedy`, `tstl-smart`, `tstl-adaptive`, `is`.
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
    /// Whether places are written down before they are written, so that recovery is quick, `tstl-smart` and `tstl-adaptive` (false: the seed's basic form).
    #[serde(default)]
    pub declares_pools: Option<bool>,
    /// Tracks of the cache buffer, `is`; not given: the E-region.
    #[serde(default)]
    pub cache_tracks: Option<u32>,
    #[serde(default)]
    pub s_block_sectors: Option<u32>,
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    InPlace(Order),
    Track(Policy),
    Indirection,
}

/// All names of schemes.
pub const SCHEMES: [&str; 9] = ["hdd", "1234", "R(4123)", "124R(3)", "14R(23)", "tstl-greedy", "tstl-smart", "tstl-adaptive", "is"];

impl SchemeSpec {
    pub(crate) fn kind(&self) -> Result<Kind, Error> {
        match self.name.as_str() {
            "tstl-greedy" => Ok(Kind::Track(Policy::Greedy)),
            "tstl-smart" => Ok(Kind::Track(Policy::Smart)),
            "tstl-adaptive" => Ok(Kind::Track(Policy::Adaptive)),
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
    pub(crate) fn band_tracks(&self) -> u32 {
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
            ("scheme.declares_pools", self.declares_pools.is_some(), matches!(kind, Kind::Track(Policy::Smart | Policy::Adaptive))),
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

    pub(crate) fn track_parameters(&self, policy: Policy) -> TrackParameters {
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
