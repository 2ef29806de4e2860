//! What [`crate::View::parse`] proves about placements, regions and the index. After it, no sum overflows and no number points outside.

use crate::cycle::Places;
use crate::format::{HEADER, INDEX, ORIGIN_AT, ORIGINAL_KIND, PLACEMENT, REGION, REPEATS, STRIPE, placement_flags, record, u32_at, u64_at};
use crate::{GRANULE, LayoutError, MAX_LOGICAL, MAX_TARGETS, Origin, Table};

const WORDS: usize = MAX_TARGETS as usize / 64;

/// A set of targets on the stack.
pub(crate) struct Targets([u64; WORDS]);

impl Targets {
    pub fn new() -> Targets {
        Targets([0; WORDS])
    }

    /// Adds a target; false when it was there or is out of range.
    pub fn insert(&mut self, target: u32) -> bool {
        let Some(word) = self.0.get_mut(target as usize / 64) else {
            return false;
        };
        let bit = 1 << (target % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }

    pub fn contains(&self, target: u32) -> bool {
        self.0.get(target as usize / 64).is_some_and(|w| w & (1 << (target % 64)) != 0)
    }
}

/// Fields of the header that no section explains.
pub(crate) fn header(header: &[u8; HEADER]) -> Result<(), LayoutError> {
    if u32_at(header, ORIGIN_AT) > Origin::Drained as u32 {
        return Err(LayoutError::Header {
            reason: "its origin must be 0 (unknown), 1 (the store's own), 2 (given) or 3 (drained); use the program that wrote it",
        });
    }
    if u32_at(header, ORIGIN_AT + 4) != 0 || u64_at(header, 120) != 0 {
        return Err(LayoutError::Header { reason: "its last 12 bytes must be zero; use the program that wrote it" });
    }
    Ok(())
}

/// Every placement and the stripes it names; `targets` is the header's count.
pub(crate) fn placements(places: &Places<'_>, targets: u32) -> Result<(), LayoutError> {
    let stripes = (places.stripes.len() / STRIPE) as u64;
    let mut next = 0u64;
    let mut largest = 0;
    for i in 0..places.placements.len() / PLACEMENT {
        let fail = |reason| Err(LayoutError::Placement { index: i as u64, reason });
        let r = record::<PLACEMENT>(places.placements, i);
        let (cycle, first, count, kind, flags) = (u64_at(r, 0), u32_at(r, 8), u32_at(r, 12), u32_at(r, 16), u32_at(r, 20));
        if u64::from(first) != next {
            return fail("its stripes must follow those of the placement before it");
        }
        next += u64::from(count);
        if next > stripes {
            return fail("it names more stripes than there are");
        }
        if kind == ORIGINAL_KIND {
            if cycle != 0 || count != 0 || flags != 0 {
                return fail("an original placement has no cycle, stripes or flags");
            }
            continue;
        }
        if kind != 0 {
            return fail("kind must be 0 (striped) or 1 (original)");
        }
        largest = largest.max(one_placement(places, i, cycle, flags)?);
    }
    if next != stripes {
        return Err(LayoutError::Header { reason: "there are stripes that belong to no placement" });
    }
    if largest != targets {
        return Err(LayoutError::Header { reason: "targets must be 1 + the largest target named" });
    }
    Ok(())
}

/// One striped placement; returns 1 + its largest target.
fn one_placement(places: &Places<'_>, i: usize, cycle: u64, flags: u32) -> Result<u32, LayoutError> {
    let fail = |reason| Err(LayoutError::Placement { index: i as u64, reason });
    let c = places.get(i as u32);
    if c.count == 0 {
        return fail("a striped placement needs at least one stripe");
    }
    if c.count > MAX_TARGETS {
        return fail("a cycle names at most 256 targets, as many as a store has");
    }
    let mut seen = Targets::new();
    let (mut sum, mut largest, mut equal) = (0u64, 0, true);
    let width0 = c.stripe(0).width;
    for k in 0..c.count {
        let s = c.stripe(k);
        if s.width == 0 || !s.width.is_multiple_of(GRANULE) || s.width > MAX_LOGICAL {
            return fail("widths must be positive multiples of 4096 bytes, at most 2^62");
        }
        if s.start != sum {
            return fail("each stripe must start where the one before it ends");
        }
        sum += s.width;
        if sum > MAX_LOGICAL {
            return fail("the cycle must be at most 2^62 bytes; use narrower stripes");
        }
        if !seen.insert(s.target) {
            return fail("targets must be below 256 and stand once in a cycle; join the widths of one that stands twice");
        }
        equal &= s.width == width0;
        largest = largest.max(s.target + 1);
    }
    if sum != cycle {
        return fail("cycle bytes must be the sum of the widths");
    }
    if flags != placement_flags(equal.then_some(width0), cycle) {
        return fail("its flags do not fit its widths");
    }
    Ok(largest)
}

/// A list of regions: order, granules, bounds, placements. An empty list is fine here.
pub(crate) fn regions(list: &'static str, section: &[u8], places: &Places<'_>) -> Result<(), LayoutError> {
    let count = section.len() / REGION;
    let placements = places.placements.len() / PLACEMENT;
    let mut next = None;
    for i in 0..count {
        let fail = |reason| Err(LayoutError::Region { list, index: i as u64, reason });
        let r = record::<REGION>(section, i);
        let (start, len, placement, flags, zero) = (u64_at(r, 0), u64_at(r, 8), u32_at(r, 20), u32_at(r, 24), u32_at(r, 28));
        if start % GRANULE != 0 || len % GRANULE != 0 || len == 0 {
            return fail("start and length must be multiples of 4096 bytes, the length at least 4096");
        }
        if next.is_some_and(|n| n != start) {
            return fail("it must start where the region before it ends");
        }
        let Some(end) = start.checked_add(len).filter(|end| *end <= MAX_LOGICAL) else {
            return fail("it must end at or below byte 2^62");
        };
        if placement as usize >= placements {
            return fail("it names a placement that does not exist");
        }
        if flags > REPEATS || zero != 0 {
            return fail("only flag 1 (repeats) is known; use the program that wrote it");
        }
        if flags == REPEATS && i + 1 != count {
            return fail("only the last region may repeat");
        }
        next = Some(end);
    }
    Ok(())
}

/// The home list covers all bytes from 0, and the index agrees with it.
pub(crate) fn home(table: &Table<'_>, index: &[u8], shift: u32) -> Result<(), LayoutError> {
    covers_all("regions", table)?;
    let last = table.record((table.len() - 1) as u32);
    if !(12..=62).contains(&shift) {
        return Err(LayoutError::Header { reason: "index shift must lie in 12..=62" });
    }
    let entries = (index.len() / INDEX) as u64;
    if entries != (last.start >> shift) + 1 {
        return Err(LayoutError::Header { reason: "the index must end with the bucket in which the last region starts" });
    }
    for entry in 0..entries {
        let region = u32_at(index, entry as usize * INDEX);
        let at = entry << shift;
        // The first repetition is enough: no bucket begins beyond the start of the last region.
        let fits = table.region(region as usize).is_some_and(|r| r.start <= at && at < r.end());
        if !fits {
            return Err(LayoutError::Index { entry });
        }
    }
    Ok(())
}

/// A list that must map every byte: starts at 0, its last region repeats.
pub(crate) fn covers_all(list: &'static str, table: &Table<'_>) -> Result<(), LayoutError> {
    let Some(last) = table.len().checked_sub(1) else {
        return Err(LayoutError::Region { list, index: 0, reason: "there must be at least one region" });
    };
    if table.start() != 0 {
        return Err(LayoutError::Region { list, index: 0, reason: "the first region must start at byte 0" });
    }
    if !table.record(last as u32).repeats() {
        return Err(LayoutError::Region { list, index: last as u64, reason: "the last region must repeat" });
    }
    Ok(())
}
