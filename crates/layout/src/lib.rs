//! The pure mapping of Stripewise: which bytes of a logical file lie where on which target.
//!
//! A layout is an ordered list of regions, each striped over targets with a width per target or left in the plain file. This crate
//! holds the owned form (build, encode, edit; feature `alloc`) and [`View`], the form that the preloaded library maps: it
//! is validated once and then answers without allocation, locks or I/O. Drawn byte by byte in docs/formats.md, "Layout file".
//!
//! All offsets and lengths are bytes. A target has two objects, one per plane; a region `[s, s + len)` owns the window
//! `[s, s + len)` of the objects of its plane (`generation & 1`), and its slice starts at `s` (ARCHITECTURE.md, "How a byte is found").
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;

mod check;
mod cycle;
#[cfg(feature = "alloc")]
mod edit;
#[cfg(feature = "alloc")]
mod encode;
mod error;
mod extents;
mod format;
mod lengths;
mod moves;
#[cfg(feature = "alloc")]
mod owned;
mod pieces;
mod region;
mod replica;
mod replica_check;
mod replica_index;
mod spread;
mod stamp;
mod table;
mod view;

#[cfg(feature = "alloc")]
pub use edit::{MixedPlanes, plane_for, rotated, spans, splice, unrolled, within};
pub use error::LayoutError;
pub use extents::{Extent, ExtentPieces, Extents};
#[cfg(feature = "alloc")]
pub use owned::{Dim, Layout, Placement, Region, Replica, Stripe};
pub use pieces::{Piece, Pieces};
pub use region::{RegionRef, Slice, Slices};
pub use replica::{OnWrite, Overlap, Overlaps, ReplicaHit, ReplicaRef};
pub use replica_index::{BinEntry, Bins, ReplicaIndex};
pub use spread::{NotAsked, Spread, Striping};
pub use stamp::stamp;
pub use table::{Table, Windows};
pub use view::View;

/// Widths, region starts and region lengths are multiples of this many bytes: the page, and so the smallest unit that a
/// file system allocates, punches and reads directly.
pub const GRANULE: u64 = 4096;

/// Logical offsets lie below this many bytes: no object offset exceeds its logical one, and both and a replica's domain must fit `off_t`.
pub const MAX_LOGICAL: u64 = 1 << 62;

/// Regions in one list: 64 TiB in regions of 64 MiB, and a table (32 MiB) that is still cheap to map and check.
pub const MAX_REGIONS: u64 = 1 << 20;

/// Distinct placements: never more than there are regions.
pub const MAX_PLACEMENTS: u64 = 1 << 20;

/// Stripes of all placements together: 4 per region at the most regions; keeps the file below 200 MiB.
pub const MAX_STRIPES: u64 = 1 << 22;

/// Targets of a store, which no cycle can outnumber (`stripewise_target::kind`, which knows no layouts; `crates/store` holds the two together).
pub const MAX_TARGETS: u32 = 256;

/// Replicas of one file: one per process and pattern of a large job.
pub const MAX_REPLICAS: u64 = 4096;

/// Dimensions of a replica's strided blocks: two more than the deepest nesting that applications were seen to use, and
/// small enough for the sorted order to live in a register's worth of stack.
pub const MAX_DIMS: u32 = 8;

/// Entries of the bucket index: four per region at the most regions, so that most buckets lie in one region.
pub const MAX_INDEX: u64 = 1 << 22;

/// [`Piece::target`] for bytes that never left the plain file; the object offset is then the logical one.
pub const ORIGINAL: u32 = u32::MAX;

/// An offset in the file as the application sees it, in bytes.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Logical(pub u64);

/// An offset in one target's object, in bytes.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ObjectOffset(pub u64);

/// An offset in a replica: the rank of a byte in the order in which the pattern accesses it.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ReplicaOffset(pub u64);

/// Where a move of regions stands, durably.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MovePhase {
    /// No move.
    #[default]
    None,
    /// The new regions stand in `pending`; the old ones are still the home.
    Copying,
    /// The new regions are the home; the old ones stand in `retired` until they are punched.
    Punching,
}

/// Whose layout a file has, which neither its regions nor their widths tell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Origin {
    /// Nobody wrote it down: of versions that kept none, and where there is no file.
    #[default]
    Unknown = 0,
    /// The store's own, as new files get it.
    Own = 1,
    /// Somebody gave it: a plan, a template, `set-layout`.
    Given = 2,
    /// Somebody gave it, and a target that was drained has left it since.
    Drained = 3,
}

/// A range of logical bytes; `len == u64::MAX - start` means to the end of the file, however long.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u64,
    /// Bytes; 0 = no span.
    pub len: u64,
}

impl Span {
    /// The span from `start` to the end of the file.
    #[must_use]
    pub const fn to_end(start: u64) -> Span {
        Span { start, len: u64::MAX - start }
    }

    /// First byte after the span; `u64::MAX` when it goes to the end.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// Whether the span has no last byte.
    #[must_use]
    pub const fn is_to_end(&self) -> bool {
        self.end() == u64::MAX
    }

    /// Whether `at` lies in the span.
    #[must_use]
    pub const fn contains(&self, at: u64) -> bool {
        at >= self.start && at < self.end()
    }
}
