//! The layout file as the library maps it: checked once, then read in place.
//!
//! [`View::parse`] proves everything that later look-ups rely on (order, bounds, sums, index, planes), so that they need no error
//! path. A view borrows the bytes and is `Copy`. The bytes must not change under it: layout files are replaced, never rewritten.

use crate::check;
use crate::cycle::Places;
use crate::format::{DIM, HEADER, ID_AT, INDEX, ORIGIN_AT, ORIGINAL_KIND, PLACEMENT, REGION, REPLICA, STRIPE, record, u32_at, u64_at};
use crate::stamp::check_envelope;
use crate::{
    Extents, LayoutError, Logical, MAX_DIMS, MAX_INDEX, MAX_PLACEMENTS, MAX_REGIONS, MAX_REPLICAS, MAX_STRIPES, MovePhase, ORIGINAL, ObjectOffset,
    Origin, Piece, Pieces, RegionRef, Span, Table,
};

/// A validated layout in its mapped form.
///
/// ```
/// use stripewise_layout::{Layout, Logical, MovePhase, Placement, Region, Span, Stripe, View};
/// let stripe = |target| Stripe { target, width_bytes: 65_536 };
/// let region = Region { start: 0, len: 1 << 20, generation: 0, placement: Placement::Striped(vec![stripe(0), stripe(1)]) };
/// let layout = Layout { regions: vec![region], ..Layout::default() };
/// let bytes = layout.encode()?;
/// let view = View::parse(&bytes)?;
/// let targets: Vec<u32> = view.pieces(Logical(60_000), 10_000).map(|p| p.target).collect();
/// assert_eq!(targets, [0, 1]);
/// # Ok::<(), stripewise_layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a [u8; HEADER],
    home: Table<'a>,
    pending: Table<'a>,
    retired: Table<'a>,
    pub(crate) places: Places<'a>,
    pub(crate) replicas: &'a [u8],
    pub(crate) dims: &'a [u8],
    pub(crate) replica_regions: &'a [u8],
}

/// Takes sections off the front of the file, one after another.
struct Sections<'a> {
    rest: &'a [u8],
}

impl<'a> Sections<'a> {
    fn take(&mut self, what: &'static str, count: u32, limit: u64, size: usize) -> Result<&'a [u8], LayoutError> {
        if u64::from(count) > limit {
            return Err(LayoutError::TooMany { what, count: u64::from(count), limit });
        }
        let short = LayoutError::Header { reason: "its counts need more bytes than the file has; restore it" };
        let Some(bytes) = (count as usize).checked_mul(size) else {
            return Err(short);
        };
        let Some((section, rest)) = self.rest.split_at_checked(bytes) else {
            return Err(short);
        };
        self.rest = rest;
        Ok(section)
    }
}

impl<'a> View<'a> {
    /// Checks the bytes of a layout file, all of them, and returns the view. Linear in the file's size.
    ///
    /// # Errors
    /// The first thing that is wrong, as a sentence without the file's name.
    pub fn parse(bytes: &'a [u8]) -> Result<View<'a>, LayoutError> {
        check_envelope(bytes)?;
        let (Some(header), Some(rest)) = (bytes.first_chunk::<HEADER>(), bytes.get(HEADER..)) else {
            return Err(LayoutError::TooShort { bytes: bytes.len() as u64 });
        };
        let count = |at| u32_at(header, at);
        let mut sections = Sections { rest };
        let regions = sections.take("regions", count(32), MAX_REGIONS, REGION)?;
        let pending = sections.take("pending regions", count(36), MAX_REGIONS, REGION)?;
        let retired = sections.take("retired regions", count(40), MAX_REGIONS, REGION)?;
        let placements = sections.take("placements", count(44), MAX_PLACEMENTS, PLACEMENT)?;
        let stripes = sections.take("stripes", count(48), MAX_STRIPES, STRIPE)?;
        let replicas = sections.take("replicas", count(52), MAX_REPLICAS, REPLICA)?;
        let dims = sections.take("dims", count(56), MAX_REPLICAS * u64::from(MAX_DIMS), DIM)?;
        let replica_regions = sections.take("replica regions", count(60), MAX_REGIONS, REGION)?;
        let index = sections.take("index entries", count(64), MAX_INDEX, INDEX)?;
        if !sections.rest.is_empty() {
            return Err(LayoutError::Header { reason: "there are bytes after the last section; restore it" });
        }
        let places = Places { placements, stripes };
        check::placements(&places, count(76))?;
        check::regions("regions", regions, &places)?;
        let view = View {
            header,
            home: Table::new(regions, 0, places).with_index(index, count(68)),
            pending: Table::new(pending, 0, places),
            retired: Table::new(retired, 0, places),
            places,
            replicas,
            dims,
            replica_regions,
        };
        check::home(&view.home, index, count(68))?;
        check::header(header)?;
        check::regions("pending", pending, &places)?;
        check::regions("retired", retired, &places)?;
        crate::moves::check(&view)?;
        crate::replica_check::check(&view)?;
        Ok(view)
    }

    /// Generation of the file's layout.
    #[inline]
    #[must_use]
    pub fn generation(&self) -> u64 {
        u64_at(self.header, 24)
    }

    /// The file's id; `[0, 0]` in a template.
    #[inline]
    #[must_use]
    pub fn file_id(&self) -> [u64; 2] {
        [u64_at(self.header, ID_AT), u64_at(self.header, ID_AT + 8)]
    }

    /// 1 + the largest target that the layout names; 0 when it names none.
    #[inline]
    #[must_use]
    pub fn target_count(&self) -> u32 {
        u32_at(self.header, 76)
    }

    /// Number of home regions.
    #[inline]
    #[must_use]
    pub fn region_count(&self) -> usize {
        self.home.len()
    }

    /// Phase of the move.
    #[must_use]
    pub fn phase(&self) -> MovePhase {
        match u32_at(self.header, 72) {
            1 => MovePhase::Copying,
            2 => MovePhase::Punching,
            _ => MovePhase::None,
        }
    }

    /// Whose layout it is.
    #[must_use]
    pub fn origin(&self) -> Origin {
        match u32_at(self.header, ORIGIN_AT) {
            1 => Origin::Own,
            2 => Origin::Given,
            3 => Origin::Drained,
            _ => Origin::Unknown,
        }
    }

    /// Span of the move; empty when there is none.
    #[must_use]
    pub fn span(&self) -> Span {
        Span { start: u64_at(self.header, 80), len: u64_at(self.header, 88) }
    }

    pub(crate) fn header(&self) -> &'a [u8; HEADER] {
        self.header
    }

    /// The home regions: where every byte lies.
    #[inline]
    #[must_use]
    pub fn home(&self) -> Table<'a> {
        self.home
    }

    /// The regions that a move copies into: exactly the span, empty when not copying.
    #[inline]
    #[must_use]
    pub fn pending(&self) -> Table<'a> {
        self.pending
    }

    /// The regions that a move left, to be punched: exactly the span, empty when not punching.
    #[inline]
    #[must_use]
    pub fn retired(&self) -> Table<'a> {
        self.retired
    }

    /// The window of the repetition that holds `at`; past [`crate::MAX_LOGICAL`], the last window there is.
    #[inline]
    #[must_use]
    pub fn region_at(&self, at: Logical) -> RegionRef<'a> {
        let at = at.0.min(crate::MAX_LOGICAL - 1);
        match self.home.region_at(at) {
            Some(region) => region,
            None => self.home.record(0),
        }
    }

    /// The run of one object that a request is, as most are: inside one stripe, or on one target. `None` where it is several runs, even ones that continue
    /// each other in the object, where it is empty, and where it reaches past [`crate::MAX_LOGICAL`].
    #[inline(always)]
    #[must_use]
    pub fn single(&self, at: Logical, len: u64) -> Option<Piece> {
        self.home.single(at.0, len)
    }

    /// Cuts a request into pieces, in logical order. Empty when it reaches past [`crate::MAX_LOGICAL`]: test that first where it is an error.
    #[inline]
    #[must_use]
    pub fn pieces(&self, at: Logical, len: u64) -> Pieces<'a> {
        self.home.pieces(at.0, len)
    }

    /// The object ranges of a request, one per window and target. Empty when it reaches past [`crate::MAX_LOGICAL`].
    #[inline]
    #[must_use]
    pub fn extents(&self, at: Logical, len: u64) -> Extents<'a> {
        self.home.extents(at.0, len)
    }

    /// The logical offset whose home is this byte of `target`'s object of `plane`; `None` when it is nobody's home.
    #[must_use]
    pub fn inverse(&self, target: u32, plane: u32, offset: ObjectOffset) -> Option<Logical> {
        self.home.inverse(target, plane, offset.0).map(Logical)
    }

    /// A length of `target`'s object of `plane` that holds all its home bytes of logical offsets below `size` and none at or above it:
    /// where a truncate to `size` bytes cuts the object.
    #[must_use]
    pub fn end_of(&self, target: u32, plane: u32, size: u64) -> u64 {
        self.home.end_of(target, plane, size)
    }

    /// As [`View::end_of`], while a move has copies: a length that holds all bytes of offsets below `size`, of the home, of the new one and of the old one,
    /// and none at or above it. Who is still reading by the layout before must not find its home cut, and a copy that goes on behind the size would show once
    /// it is the home and the file grows.
    ///
    /// Such a length exists where no byte's old and new home share a plane, as movers have it: the windows of one plane, of whichever list, then stand in the
    /// object in the order of the file. Where a move has regions in both planes, the start of a window, with which `end_of` is content, may lie far behind it.
    #[must_use]
    pub fn end_with_copies(&self, target: u32, plane: u32, size: u64) -> u64 {
        if target == ORIGINAL || (self.pending.is_empty() && self.retired.is_empty()) {
            return self.end_of(target, plane, size);
        }
        [self.home, self.pending, self.retired].iter().fold(0, |known, table| table.reach_of(target, plane, size, known))
    }

    /// 1 + the largest logical offset whose home byte lies below `object_len` in `target`'s object of `plane`; 0 if there is none.
    ///
    /// Never more than the file's size where the object also holds copies below it: they lie at or below their logical offsets, and so behind no home
    /// byte past the size. What a dead mover copied of bytes that were being cut off may lie there ([`View::holds_copies`]).
    #[must_use]
    pub fn logical_end(&self, target: u32, plane: u32, object_len: u64) -> u64 {
        self.home.logical_end(target, plane, object_len)
    }

    /// Whether a move copies into `target`'s object of `plane`, has just copied into it, or has left it: its length then says nothing of the file's size,
    /// because a chunk may have been on its way when the file was cut, and because an object that goes on behind the span keeps its length while it is
    /// published. Linear in the number of stripes.
    #[must_use]
    pub fn holds_copies(&self, target: u32, plane: u32) -> bool {
        let span = self.span();
        let names = |table: Table<'_>| {
            let mut regions =
                (0..table.len()).filter_map(|i| table.region(i)).filter(|r| r.start < span.end() && (r.repeats() || r.end() > span.start));
            regions.any(|r| !r.is_original() && r.plane() == plane && r.stripes().any(|(t, _)| t == target))
        };
        names(self.pending) || names(self.retired) || (self.phase() == MovePhase::Punching && names(self.home))
    }

    /// Bytes of `[0, size)` whose home is `target`. Linear in the number of regions.
    #[must_use]
    pub fn target_bytes(&self, target: u32, size: u64) -> u64 {
        self.home.target_bytes(target, size)
    }

    /// Whether any region, home, pending, retired or of a replica, names `target` (or, for [`ORIGINAL`], stays in the plain file).
    #[must_use]
    pub fn uses_target(&self, target: u32) -> bool {
        if target == ORIGINAL {
            let count = self.places.placements.len() / PLACEMENT;
            return (0..count).any(|i| u32_at(record::<PLACEMENT>(self.places.placements, i), 16) == ORIGINAL_KIND);
        }
        let count = self.places.stripes.len() / STRIPE;
        (0..count).any(|i| u32_at(record::<STRIPE>(self.places.stripes, i), 16) == target)
    }

    /// Calls `each` with target, plane and first byte of every stripe of a home region: an object's first byte is the smallest of those that name it, and
    /// the object must exist once the file reaches further; [`crate::MAX_LOGICAL`] is one that no file reaches. Linear in the number of stripes.
    pub fn first_bytes(&self, mut each: impl FnMut(u32, u32, u64)) {
        for region in (0..self.home.len()).filter_map(|i| self.home.region(i)).filter(|r| !r.is_original()) {
            for stripe in (0..region.cycle.count).map(|i| region.cycle.stripe(i)) {
                let first = if stripe.start < region.len { region.start + stripe.start } else { crate::MAX_LOGICAL };
                each(stripe.target, region.plane(), first);
            }
        }
    }

    /// First byte of the file in one object, as [`View::first_bytes`] has it; `None` where no home region names it.
    #[must_use]
    pub fn first_byte(&self, target: u32, plane: u32) -> Option<u64> {
        let mut least = None;
        self.first_bytes(|t, p, first| {
            if (t, p) == (target, plane) {
                least = Some(least.map_or(first, |least: u64| least.min(first)));
            }
        });
        least
    }

    /// Whether a home region of `plane` names `target`. Linear in the number of regions.
    #[must_use]
    pub fn uses_object(&self, target: u32, plane: u32) -> bool {
        names_object(self.home, target, plane)
    }

    /// Whether a region of a move under way, pending or retired, does. Linear in the number of those.
    #[must_use]
    pub fn moves_object(&self, target: u32, plane: u32) -> bool {
        names_object(self.pending, target, plane) || names_object(self.retired, target, plane)
    }
}

fn names_object(table: Table<'_>, target: u32, plane: u32) -> bool {
    (0..table.len()).filter_map(|i| table.region(i)).any(|r| r.plane() == plane && !r.is_original() && r.cycle.find(target).is_some())
}
