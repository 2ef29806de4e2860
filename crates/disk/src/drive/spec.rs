//! The facts of a disk drive, as a disk file gives them: shape, rotation, zones, seek curve, switches, cache, overheads.

use serde::Deserialize;

use crate::error::Error;

/// The most cylinders a disk may have: seek times are a table of one entry for each.
pub const CYLINDERS_MAX: u32 = 4_000_000;
/// The most sectors of a track.
pub const TRACK_SECTORS_MAX: u32 = 100_000;
const SURFACES_MAX: u32 = 64;
const SEGMENTS_MAX: u32 = 4096;
/// Fits the table of seek times, whose entries have 32 bits of ns.
const MILLISECONDS_MAX: f64 = 4000.0;

/// One disk drive. Times are in milliseconds, as disk files give them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// What it is called.
    #[serde(default)]
    pub name: String,
    /// Cylinders: tracks of a surface.
    pub cylinders: u32,
    /// Recorded surfaces, each with a head.
    pub surfaces: u32,
    /// Blocks that the drive offers; `None`: all there are. Where the zones hold more, the rest are spares.
    #[serde(default)]
    pub blocks: Option<u64>,
    #[serde(default = "default_block_bytes")]
    pub block_bytes: u32,
    /// Rotations per minute.
    pub rpm: f64,
    /// Time to change the head without moving the arm.
    #[serde(default)]
    pub head_switch_ms: f64,
    /// What a write waits longer than a read after the arm has moved or the head has changed.
    #[serde(default)]
    pub write_settle_ms: f64,
    /// Order of the tracks: cylinder by cylinder (also where it is not given), or "serpentine, runs of N cylinders per surface".
    #[serde(default)]
    pub layout: String,
    /// Where skews are not given with the zones: computed from the switch times so that no turn is lost, or none.
    #[serde(default)]
    pub skew: Skew,
    /// From the outermost cylinder on.
    pub zones: Vec<ZoneSpec>,
    /// Cylinders and the time to seek over them, from 1 cylinder on; between two points the time is interpolated, after the last one extrapolated.
    pub seek: Vec<(u32, f64)>,
    /// Segments of the cache for reads; 0: none.
    #[serde(default)]
    pub cache_segments: u32,
    #[serde(default)]
    pub cache_segment_blocks: u32,
    /// How many segments may hold written data.
    #[serde(default)]
    pub cache_write_segments: u32,
    /// Command overhead of a read that the cache serves.
    #[serde(default)]
    pub overhead_read_hit_ms: Overhead,
    /// Command overhead of a read from the medium.
    #[serde(default)]
    pub overhead_read_miss_ms: Overhead,
    /// Command overhead of a write that the cache takes.
    #[serde(default)]
    pub overhead_write_hit_ms: Option<Overhead>,
    /// Command overhead of a write to the medium.
    #[serde(default)]
    pub overhead_write_miss_ms: Option<Overhead>,
    /// Command overhead of writes where the two above are not given.
    #[serde(default)]
    pub overhead_write_ms: Overhead,
    /// Time of a block on the way between disk and host: before a write begins, after a read has ended. 0: not simulated.
    #[serde(default)]
    pub bus_block_ms: f64,
    /// Whether blocks cross the bus while the head transfers others of the request.
    #[serde(default)]
    pub bus_overlaps: bool,
}

/// Tracks of one size.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub enum ZoneSpec {
    /// First cylinder, sectors per track, and, in sectors, track skew and cylinder skew.
    Skewed(u32, u32, u32, u32),
    /// First cylinder and sectors per track.
    Plain(u32, u32),
}

impl ZoneSpec {
    pub(crate) fn first_cylinder(self) -> u32 {
        match self {
            Self::Skewed(first, ..) | Self::Plain(first, _) => first,
        }
    }

    pub(crate) fn sectors(self) -> u32 {
        match self {
            Self::Skewed(_, sectors, ..) | Self::Plain(_, sectors) => sectors,
        }
    }
}

/// What is done about skews that the zones do not give.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Skew {
    /// The next track begins where the head is when it has got there.
    #[default]
    Computed,
    /// All tracks begin at one angle: a switch costs a turn.
    None,
}

/// A command overhead, ms: one figure, or one after a read and one after a write.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Overhead {
    Always(f64),
    /// After a read, after a write.
    After(f64, f64),
}

impl Default for Overhead {
    fn default() -> Self {
        Self::Always(0.0)
    }
}

impl Overhead {
    /// (after a read, after a write), ms.
    pub(crate) fn pair(self) -> (f64, f64) {
        match self {
            Self::Always(ms) => (ms, ms),
            Self::After(read, write) => (read, write),
        }
    }
}

impl DiskSpec {
    /// From JSON text.
    ///
    /// # Errors
    /// Keys that are unknown or missing, values out of their limits.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let spec: Self = serde_json::from_str(text).map_err(|error| Error::key("disk", error, "correct the disk's file"))?;
        spec.check()?;
        Ok(spec)
    }

    /// Tracks of all surfaces.
    #[must_use]
    pub fn tracks(&self) -> u32 {
        self.cylinders.saturating_mul(self.surfaces)
    }

    /// Cylinders of a run on one surface; 1 is cylinder by cylinder. `None` where the layout is no known one.
    pub(crate) fn run_cylinders(&self) -> Option<u32> {
        let layout = self.layout.trim();
        if layout.is_empty() || layout.starts_with("cylinder") {
            return Some(1);
        }
        let digits = layout.strip_prefix("serpentine")?.trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits.get(..end)?.parse().ok().filter(|&run| run > 0)
    }

    /// # Errors
    /// The first thing that cannot be.
    pub fn check(&self) -> Result<(), Error> {
        within("disk.cylinders", self.cylinders, CYLINDERS_MAX)?;
        within("disk.surfaces", self.surfaces, SURFACES_MAX)?;
        if !self.block_bytes.is_power_of_two() || !(512..=65536).contains(&self.block_bytes) {
            return Err(Error::key("disk.block_bytes", format!("is {}", self.block_bytes), "give a power of two between 512 and 65536"));
        }
        if !(100.0..=100_000.0).contains(&self.rpm) {
            return Err(Error::key("disk.rpm", format!("is {}", self.rpm), "give between 100 and 100000 rotations a minute"));
        }
        if self.run_cylinders().is_none() {
            let cure = "write \"cylinders\" or \"serpentine, runs of N cylinders per surface\"";
            return Err(Error::key("disk.layout", format!("is \"{}\"", self.layout), cure));
        }
        self.check_times()?;
        self.check_zones()?;
        self.check_seek()?;
        for (key, value) in [("disk.cache_segments", self.cache_segments), ("disk.cache_write_segments", self.cache_write_segments)] {
            if value > SEGMENTS_MAX {
                return Err(Error::key(key, format!("is {value}"), &format!("give at most {SEGMENTS_MAX}")));
            }
        }
        if self.cache_segments.max(self.cache_write_segments) > 0 && self.cache_segment_blocks == 0 {
            return Err(Error::key("disk.cache_segment_blocks", "is 0 though there are segments", "give the blocks of a segment"));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), Error> {
        let write = self.overhead_write_ms;
        let pairs = [
            ("disk.overhead_read_hit_ms", self.overhead_read_hit_ms),
            ("disk.overhead_read_miss_ms", self.overhead_read_miss_ms),
            ("disk.overhead_write_hit_ms", self.overhead_write_hit_ms.unwrap_or(write)),
            ("disk.overhead_write_miss_ms", self.overhead_write_miss_ms.unwrap_or(write)),
            ("disk.overhead_write_ms", write),
        ];
        let overheads = pairs.iter().flat_map(|&(key, overhead)| [(key, overhead.pair().0), (key, overhead.pair().1)]);
        let rest =
            [("disk.head_switch_ms", self.head_switch_ms), ("disk.write_settle_ms", self.write_settle_ms), ("disk.bus_block_ms", self.bus_block_ms)];
        for (key, ms) in overheads.chain(rest) {
            milliseconds(key, ms)?;
        }
        Ok(())
    }

    fn check_zones(&self) -> Result<(), Error> {
        if self.zones.first().map(|zone| zone.first_cylinder()) != Some(0) {
            return Err(Error::key("disk.zones", "do not begin at cylinder 0", "give the outermost zone first, as [0, sectors per track]"));
        }
        let mut before = None;
        for &zone in &self.zones {
            let first = zone.first_cylinder();
            if first >= self.cylinders || before.is_some_and(|before| first <= before) {
                let wrong = format!("the zone at cylinder {first} does not lie after the one before and on the disk");
                return Err(Error::key("disk.zones", wrong, "order zones by their first cylinder, below \"cylinders\""));
            }
            before = Some(first);
            within("disk.zones: sectors per track", zone.sectors(), TRACK_SECTORS_MAX)?;
            if let ZoneSpec::Skewed(_, sectors, track, cylinder) = zone
                && (track >= sectors || cylinder >= sectors)
            {
                let wrong = format!("a skew of the zone at cylinder {first} is a turn or more");
                return Err(Error::key("disk.zones", wrong, "give skews in sectors, below the sectors of a track"));
            }
        }
        let held =
            self.zone_cylinders().map(|(zone, cylinders)| u64::from(zone.sectors()) * u64::from(cylinders)).sum::<u64>() * u64::from(self.surfaces);
        match self.blocks {
            Some(blocks) if blocks == 0 || blocks > held => {
                Err(Error::key("disk.blocks", format!("is {blocks}, the zones hold {held}"), "give no more than the zones hold, or leave it out"))
            }
            _ => Ok(()),
        }
    }

    fn check_seek(&self) -> Result<(), Error> {
        if self.seek.first().map(|point| point.0) != Some(1) {
            return Err(Error::key("disk.seek", "does not begin with the time of 1 cylinder", "give points [cylinders, ms] from 1 cylinder on"));
        }
        let mut before = 0;
        for &(cylinders, ms) in &self.seek {
            if cylinders <= before {
                return Err(Error::key("disk.seek", format!("the point at {cylinders} cylinders is out of order"), "order points by cylinders"));
            }
            before = cylinders;
            milliseconds("disk.seek", ms)?;
        }
        Ok(())
    }

    /// Each zone with its number of cylinders.
    pub(crate) fn zone_cylinders(&self) -> impl Iterator<Item = (ZoneSpec, u32)> + '_ {
        let ends = self.zones.iter().skip(1).map(|zone| zone.first_cylinder()).chain([self.cylinders]);
        self.zones.iter().zip(ends).map(|(&zone, end)| (zone, end.saturating_sub(zone.first_cylinder())))
    }
}

fn within(key: &str, value: u32, most: u32) -> Result<(), Error> {
    if value == 0 || value > most {
        return Err(Error::key(key, format!("is {value}"), &format!("give between 1 and {most}")));
    }
    Ok(())
}

fn milliseconds(key: &str, ms: f64) -> Result<(), Error> {
    if !(0.0..=MILLISECONDS_MAX).contains(&ms) {
        return Err(Error::key(key, format!("is {ms}"), "give milliseconds between 0 and 4000"));
    }
    Ok(())
}

fn default_block_bytes() -> u32 {
    512
}
