//! Writing a layout file: sections in order, equal placements once, the bucket index, the checksum (docs/formats.md, "Layout file").

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::format::{CRC_AT, HEADER, HOME, INVALIDATED, MAGIC, ORIGINAL_KIND, REPEATS, VERSION, placement_flags};
use crate::owned::{Layout, Placement, Region, Replica, Stripe};
use crate::stamp::{checksum, put};
use crate::{LayoutError, MAX_INDEX, MovePhase, OnWrite, Span, View};

#[derive(Default)]
struct Sections<'a> {
    placements: Vec<u8>,
    stripes: Vec<u8>,
    known: BTreeMap<&'a Placement, u32>,
    stripe_count: u64,
    targets: u32,
}

fn u32s(out: &mut Vec<u8>, values: &[u32]) {
    for v in values {
        out.extend_from_slice(&v.to_le_bytes());
    }
}

fn u64s(out: &mut Vec<u8>, values: &[u64]) {
    for v in values {
        out.extend_from_slice(&v.to_le_bytes());
    }
}

/// Counts are `u32` on the disk; what does not fit is above every limit and refused by the parser.
fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl<'a> Sections<'a> {
    fn placement(&mut self, placement: &'a Placement) -> u32 {
        if let Some(index) = self.known.get(placement) {
            return *index;
        }
        let index = count(self.known.len());
        let first = u32::try_from(self.stripe_count).unwrap_or(u32::MAX);
        match placement {
            Placement::Original => {
                u64s(&mut self.placements, &[0]);
                u32s(&mut self.placements, &[first, 0, ORIGINAL_KIND, 0]);
            }
            Placement::Striped(stripes) => {
                let cycle = self.cycle(stripes);
                let width = stripes.first().map(|s| s.width_bytes);
                let equal = width.filter(|w| stripes.iter().all(|s| s.width_bytes == *w));
                u64s(&mut self.placements, &[cycle]);
                u32s(&mut self.placements, &[first, count(stripes.len()), 0, placement_flags(equal, cycle)]);
            }
        }
        self.known.insert(placement, index);
        index
    }

    fn cycle(&mut self, stripes: &[Stripe]) -> u64 {
        let mut start = 0u64;
        for s in stripes {
            u64s(&mut self.stripes, &[s.width_bytes, start]);
            u32s(&mut self.stripes, &[s.target, 0]);
            // Saturating: what does not fit is refused by the parser, with a sentence.
            start = start.saturating_add(s.width_bytes);
            self.targets = self.targets.max(s.target.saturating_add(1));
        }
        self.stripe_count += stripes.len() as u64;
        start
    }

    fn regions(&mut self, list: &'a [Region], last_repeats: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for (i, r) in list.iter().enumerate() {
            let repeats = if last_repeats && i + 1 == list.len() { REPEATS } else { 0 };
            u64s(&mut out, &[r.start, r.len]);
            let placement = self.placement(&r.placement);
            u32s(&mut out, &[r.generation, placement, repeats, 0]);
        }
        out
    }
}

/// The bucket index: the finest power of two that needs at most four entries per region.
fn index(regions: &[Region]) -> (Vec<u8>, u32) {
    let last = regions.last().map_or(0, |r| r.start);
    let limit = (4 * regions.len() as u64).min(MAX_INDEX);
    let shift = (12..62).find(|shift| (last >> shift) < limit).unwrap_or(62);
    let (mut out, mut at) = (Vec::new(), 0);
    // A start past the limit is refused by the parser; the minimum keeps a broken list from filling memory.
    for entry in 0..=(last >> shift).min(MAX_INDEX) {
        while regions.get(at + 1).is_some_and(|r| r.start <= entry << shift) {
            at += 1;
        }
        u32s(&mut out, &[count(at)]);
    }
    (out, shift)
}

impl Layout {
    /// The bytes of the layout file, checked by the parser that will read them.
    ///
    /// # Errors
    /// The first rule of the format that the layout breaks.
    pub fn encode(&self) -> Result<Vec<u8>, LayoutError> {
        let mut sections = Sections::default();
        let mut body = sections.regions(&self.regions, true);
        // The last pending or retired region repeats when the move goes to the end of the file.
        body.extend(sections.regions(&self.pending, self.span.is_to_end()));
        body.extend(sections.regions(&self.retired, self.span.is_to_end()));
        let (mut replicas, mut dims, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        let (mut dim_count, mut row_count) = (0, 0);
        for r in &self.replicas {
            replica_record(&mut replicas, r, count(dim_count), count(row_count));
            for d in &r.dims {
                u64s(&mut dims, &[d.stride, d.count]);
            }
            rows.extend(sections.regions(&r.regions, true));
            dim_count += r.dims.len();
            row_count += r.regions.len();
        }
        let (index, shift) = index(&self.regions);
        let counts = [
            count(self.regions.len()),
            count(self.pending.len()),
            count(self.retired.len()),
            count(sections.known.len()),
            u32::try_from(sections.stripe_count).unwrap_or(u32::MAX),
            count(self.replicas.len()),
            count(dim_count),
            count(row_count),
            count(index.len() / 4),
            shift,
            phase_number(self.phase),
            sections.targets,
        ];
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        u32s(&mut out, &[VERSION, 0]);
        u64s(&mut out, &[0, self.generation]);
        u32s(&mut out, &counts);
        let Span { start, len } = self.span;
        u64s(&mut out, &[start, len]);
        let [low, high] = self.file_id;
        u64s(&mut out, &[low, high]);
        u32s(&mut out, &[self.origin as u32, 0, 0, 0]);
        debug_assert_eq!(out.len(), HEADER, "the header is drawn in docs/formats.md");
        for section in [&body, &sections.placements, &sections.stripes, &replicas, &dims, &rows, &index] {
            out.extend_from_slice(section);
        }
        let bytes = out.len() as u64;
        put(&mut out, 16, &bytes.to_le_bytes());
        let crc = checksum(&out);
        put(&mut out, CRC_AT, &crc.to_le_bytes());
        View::parse(&out)?;
        Ok(out)
    }
}

fn phase_number(phase: MovePhase) -> u32 {
    match phase {
        MovePhase::None => 0,
        MovePhase::Copying => 1,
        MovePhase::Punching => 2,
    }
}

fn replica_record(out: &mut Vec<u8>, r: &Replica, first_dim: u32, first_region: u32) {
    u64s(out, &[r.base, r.block]);
    u32s(out, &[first_dim, count(r.dims.len()), first_region, count(r.regions.len())]);
    u64s(out, &[r.domain_base]);
    let flags = (u32::from(r.is_home) * HOME) | (u32::from(r.on_write == OnWrite::Invalidate) * INVALIDATED);
    u32s(out, &[flags, r.id]);
    u64s(out, &[0, 0]);
}
