//! The owned form of a layout: what plans are turned into and what movers edit. [`crate::View`] is the same, mapped.

use alloc::vec::Vec;

use crate::{LayoutError, MovePhase, OnWrite, Origin, Span, View};

/// One (target, width) of a placement's cycle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Stripe {
    /// Target number, below [`crate::MAX_TARGETS`].
    pub target: u32,
    /// Width, a positive multiple of [`crate::GRANULE`].
    pub width_bytes: u64,
}

/// Where the bytes of a region lie.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Placement {
    /// Round robin over the stripes, in this order, from the start of each window.
    Striped(Vec<Stripe>),
    /// In the plain file itself.
    Original,
}

/// A range of the file and its placement. The last one of a list that covers a whole file repeats for ever.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// First byte.
    pub start: u64,
    /// Bytes; of one repetition when it repeats.
    pub len: u64,
    /// Rises with each move; its lowest bit is the plane.
    pub generation: u32,
    /// Where the bytes lie.
    pub placement: Placement,
}

/// One loop of a strided pattern.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dim {
    /// Bytes from one step to the next.
    pub stride: u64,
    /// Steps.
    pub count: u64,
}

/// The bytes of a strided pattern in access order, with regions of their own.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Replica {
    /// The store's id.
    pub id: u32,
    /// First logical byte of the first block.
    pub base: u64,
    /// Bytes of a block.
    pub block: u64,
    /// Loops, outermost first; at most [`crate::MAX_DIMS`]. Blocks must not overlap.
    pub dims: Vec<Dim>,
    /// First byte of the replica's domain in the targets' replica objects, a multiple of [`crate::GRANULE`].
    pub domain_base: u64,
    /// Whether the replica is the home of its bytes, not a copy.
    pub is_home: bool,
    /// What a write does to a copy; [`OnWrite::Update`] for a home.
    pub on_write: OnWrite,
    /// Regions in replica offsets; striped, from 0, the last one repeats.
    pub regions: Vec<Region>,
}

/// A file's layout.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Layout {
    /// +1 at each publish.
    pub generation: u64,
    /// The file's id; zeros in a template.
    pub file_id: [u64; 2],
    /// Whose layout it is.
    pub origin: Origin,
    /// Home of every byte; sorted, without gaps, from 0; the last one repeats.
    pub regions: Vec<Region>,
    /// Copy target of a move: covers `span` exactly while [`MovePhase::Copying`], else empty.
    pub pending: Vec<Region>,
    /// Former home: covers `span` exactly while [`MovePhase::Punching`], else empty.
    pub retired: Vec<Region>,
    /// Phase of the move.
    pub phase: MovePhase,
    /// Span of the move.
    pub span: Span,
    /// Replicas, ordered by domain base.
    pub replicas: Vec<Replica>,
}

impl Layout {
    /// Checks every rule of the format (docs/formats.md) by encoding and parsing: there is one checker, the mapped form's.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn validate(&self) -> Result<(), LayoutError> {
        self.encode().map(|_| ())
    }

    /// Reads a layout file's bytes.
    ///
    /// # Errors
    /// As [`View::parse`].
    pub fn decode(bytes: &[u8]) -> Result<Layout, LayoutError> {
        Ok(View::parse(bytes)?.to_layout())
    }
}

impl View<'_> {
    /// The owned form.
    #[must_use]
    pub fn to_layout(&self) -> Layout {
        let replica = |r: crate::ReplicaRef<'_>| Replica {
            id: r.id,
            base: r.base,
            block: r.block,
            dims: r.dims().map(|(stride, count)| Dim { stride, count }).collect(),
            domain_base: r.domain_base,
            is_home: r.is_home,
            on_write: r.on_write,
            regions: r.regions().to_regions(),
        };
        Layout {
            generation: self.generation(),
            file_id: self.file_id(),
            origin: self.origin(),
            regions: self.home().to_regions(),
            pending: self.pending().to_regions(),
            retired: self.retired().to_regions(),
            phase: self.phase(),
            span: self.span(),
            replicas: (0..self.replica_count()).filter_map(|i| self.replica(i)).map(replica).collect(),
        }
    }
}

impl crate::Table<'_> {
    /// The owned form of the list.
    #[must_use]
    pub fn to_regions(&self) -> Vec<Region> {
        (0..self.len()).filter_map(|i| self.region(i)).map(|r| r.to_region()).collect()
    }
}

impl crate::RegionRef<'_> {
    /// The owned form of this window.
    #[must_use]
    pub fn to_region(&self) -> Region {
        let placement = if self.is_original() {
            Placement::Original
        } else {
            Placement::Striped(self.stripes().map(|(target, width_bytes)| Stripe { target, width_bytes }).collect())
        };
        Region { start: self.start, len: self.len, generation: self.generation, placement }
    }
}
