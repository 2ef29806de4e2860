//! What can go wrong, of the medium and of the schemes on it. Each message is one sentence with what to do.

use core::fmt;

/// What a medium answers when it cannot serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MediumError {
    /// The sector was destroyed by a write to an earlier track and has not been written since.
    Destroyed {
        /// Physical track.
        track: u32,
        /// Sector of the track.
        sector: u32,
    },
    /// Outside of the medium, or a buffer of the wrong length.
    Range {
        /// Physical track, or the number of tracks for the random access zone.
        track: u32,
        /// First sector asked for.
        sector: u32,
    },
    /// The power has gone: nothing is served any more.
    PowerLost,
    /// The device below refused.
    Device {
        /// The operating system's error number.
        errno: i32,
    },
}

impl fmt::Display for MediumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Destroyed { track, sector } => {
                write!(f, "sector {sector} of track {track} was destroyed by a write to a track before it: the scheme lost it; restore from a copy")
            }
            Self::Range { track, sector } => write!(f, "sector {sector} of track {track} is outside of the medium, or the buffer's length is wrong"),
            Self::PowerLost => f.write_str("the medium has lost its power; open it again"),
            Self::Device { errno } => write!(f, "the device below answered with errno {errno}; check it"),
        }
    }
}

impl core::error::Error for MediumError {}

/// Why a scheme refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SwdError {
    /// A parameter is wrong.
    Parameter {
        /// Its name.
        key: &'static str,
        /// What must hold.
        reason: &'static str,
    },
    /// A request outside of the logical space.
    Beyond {
        /// First logical sector asked for.
        lba: u64,
        /// Sectors asked for.
        sectors: u64,
        /// Sectors there are.
        capacity: u64,
    },
    /// A buffer that is not as long as the sectors asked for.
    Buffer {
        /// Bytes given.
        bytes: u64,
        /// Bytes that the sectors have.
        expected: u64,
    },
    /// The random access zone holds no track table of this disk.
    NoTable,
    /// The track table or a back pointer names a track that the disk does not have.
    Table { logical_track: u32 },
    /// No free track of a band can be written, nor can its free tracks be brought together.
    NoFreeTrack { band: usize },
    /// The medium failed.
    Medium(MediumError),
}

impl From<MediumError> for SwdError {
    fn from(error: MediumError) -> Self {
        Self::Medium(error)
    }
}

impl fmt::Display for SwdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Parameter { key, reason } => write!(f, "{key}: {reason}"),
            Self::Beyond { lba, sectors, capacity } => {
                write!(f, "sectors {lba} to {} are beyond the disk's {capacity}; ask for less", lba.saturating_add(sectors))
            }
            Self::Buffer { bytes, expected } => write!(f, "the buffer has {bytes} bytes, the sectors asked for have {expected}; make them equal"),
            Self::NoTable => f.write_str("the random access zone holds no track table of this disk; check disk_id, or create the disk anew"),
            Self::Table { logical_track } => {
                write!(f, "the track table's entry {logical_track} does not fit the disk; open it with the parameters it was created with")
            }
            Self::NoFreeTrack { band } => write!(f, "band {band} has no free track that can be written; trim some of its tracks"),
            Self::Medium(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SwdError {}
