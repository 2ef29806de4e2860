//! What can be wrong with a layout. One enum; each message says what is wrong and what to do. The caller knows the file's name and adds it.

use core::fmt;

/// Why a layout was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LayoutError {
    /// Fewer bytes than a header has.
    TooShort {
        /// Bytes given.
        bytes: u64,
    },
    /// The first eight bytes are not `SWLAYOUT`.
    Magic,
    /// Written by a newer version of this program.
    Newer {
        /// The file's version.
        version: u32,
    },
    /// The header's length is not the file's.
    Length {
        /// What the header says, bytes.
        stated: u64,
        /// What there is, bytes.
        actual: u64,
    },
    /// The checksum does not fit.
    Checksum {
        /// In the file.
        stored: u32,
        /// Of the bytes.
        computed: u32,
    },
    /// More of something than the format allows.
    TooMany {
        what: &'static str,
        /// How many there are.
        count: u64,
        limit: u64,
    },
    /// A field of the header is wrong.
    Header {
        /// Which, and what must hold.
        reason: &'static str,
    },
    /// A region is wrong.
    Region {
        /// `regions`, `pending`, `retired` or `replica regions`.
        list: &'static str,
        /// Its number in the list.
        index: u64,
        /// What must hold.
        reason: &'static str,
    },
    /// A placement or one of its stripes is wrong.
    Placement {
        /// Its number.
        index: u64,
        /// What must hold.
        reason: &'static str,
    },
    /// A replica is wrong.
    Replica {
        /// Its number.
        index: u64,
        /// What must hold.
        reason: &'static str,
    },
    /// An entry of the bucket index names the wrong region.
    Index {
        /// Its number.
        entry: u64,
    },
    /// Phase, span, pending and retired do not belong together.
    Move {
        /// What must hold.
        reason: &'static str,
    },
    /// Two regions that are alive together would share bytes of an object.
    Collision {
        /// Start of the home region, bytes.
        home: u64,
        /// Start of the pending or retired region, bytes.
        other: u64,
    },
    /// A span does not fit the regions.
    Span {
        /// Its start, bytes.
        start: u64,
        /// What must hold.
        reason: &'static str,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooShort { bytes } => {
                write!(f, "layout has {bytes} bytes, fewer than its header of 128; restore it")
            }
            Self::Magic => f.write_str("layout does not begin with SWLAYOUT: this is not a layout file; check the path"),
            Self::Newer { version } => write!(f, "layout has version {version}, this program reads versions up to 2; use the newer program"),
            Self::Length { stated, actual } => {
                write!(f, "layout's header says {stated} bytes but there are {actual}; restore it")
            }
            Self::Checksum { stored, computed } => {
                write!(f, "layout's checksum is {stored:08x} but its bytes give {computed:08x}: it is damaged; restore it")
            }
            Self::TooMany { what, count, limit } => write!(f, "layout has {count} {what}, the limit is {limit}; use larger regions or fewer {what}"),
            Self::Header { reason } => write!(f, "layout's header: {reason}"),
            Self::Region { list, index, reason } => write!(f, "layout's {list}[{index}]: {reason}"),
            Self::Placement { index, reason } => {
                write!(f, "layout's placements[{index}]: {reason}")
            }
            Self::Replica { index, reason } => write!(f, "layout's replicas[{index}]: {reason}"),
            Self::Index { entry } => write!(f, "layout's index[{entry}] names a region that does not hold its byte; run `stripewise store fsck`"),
            Self::Move { reason } => write!(f, "layout's move: {reason}"),
            Self::Collision { home, other } => {
                write!(f, "region at byte {other} would share object bytes with the region at byte {home}: give it the other plane or other targets")
            }
            Self::Span { start, reason } => write!(f, "span at byte {start}: {reason}"),
        }
    }
}

impl core::error::Error for LayoutError {}
