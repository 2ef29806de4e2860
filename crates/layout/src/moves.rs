//! Whether the parts of a move belong together, and whether regions that are alive together keep out of each other's bytes.
//!
//! Planes are objects of their own, and a region's bytes stay inside its own bounds: only regions that overlap in the file and stand in the same
//! plane can meet. Bounds never matter across planes. Within one plane the check compares targets and slices.

use crate::check::Targets;
use crate::format::{u32_at, u64_at};
use crate::region::RegionRef;
use crate::table::Table;
use crate::{GRANULE, LayoutError, MAX_LOGICAL, View};

/// Pairs of repetitions that are compared until old and new tails stand to each other as before: lengths of 32,768 pages each.
const MAX_TAIL_PAIRS: u32 = 1 << 16;

pub(crate) fn check(view: &View<'_>) -> Result<(), LayoutError> {
    let (phase, span) = (u32_at(view.header(), 72), view.span());
    let fail = |reason| Err(LayoutError::Move { reason });
    let (moving, idle) = match phase {
        0 => {
            if !view.pending().is_empty() || !view.retired().is_empty() || u64_at(view.header(), 80) != 0 || span.len != 0 {
                return fail("without a move, pending, retired and span must be empty");
            }
            return Ok(());
        }
        1 => (view.pending(), view.retired()),
        2 => (view.retired(), view.pending()),
        _ => return fail("phase must be 0 (none), 1 (copying) or 2 (punching)"),
    };
    if !idle.is_empty() {
        return fail("copying has pending regions only, punching retired ones only");
    }
    if span.len == 0 || span.start % GRANULE != 0 || (!span.is_to_end() && span.len % GRANULE != 0) {
        return fail("the span must be whole pages of 4096 bytes, or go to the end");
    }
    let end = if span.is_to_end() { MAX_LOGICAL } else { span.end() };
    if moving.is_empty() || moving.start() != span.start || moving.end() != end || end > MAX_LOGICAL {
        return fail("pending or retired regions must cover the span exactly; the last repeats only when the span goes to the end");
    }
    let repeats = moving.region(moving.len() - 1).is_some_and(|r| r.repeats());
    if repeats != span.is_to_end() {
        return fail("the last pending or retired region must repeat exactly when the span goes to the end");
    }
    let on_border = |at| view.home().region_at(at).is_none_or(|r| r.start == at);
    if !on_border(span.start) || !(span.is_to_end() || on_border(end)) {
        return fail("the span must begin and end where regions do");
    }
    planes(&view.home(), &moving, end)
}

/// Walks both lists over the moving one's range and refuses windows that share bytes.
fn planes(home: &Table<'_>, moving: &Table<'_>, end: u64) -> Result<(), LayoutError> {
    let (mut a, mut b) = (home.region_at(moving.start()), moving.region_at(moving.start()));
    let (mut in_tails, mut first_shift) = (0, None);
    while let (Some(x), Some(y)) = (a, b) {
        if x.start >= end || y.start >= end {
            return Ok(());
        }
        if x.repeats() && y.repeats() {
            if x.plane() != y.plane() {
                return Ok(());
            }
            // Only the distance between the two matters; once it comes back, all later pairs look like earlier ones.
            let shift = x.start.wrapping_sub(y.start);
            if first_shift == Some(shift) {
                return Ok(());
            }
            first_shift = first_shift.or(Some(shift));
            in_tails += 1;
            if in_tails > MAX_TAIL_PAIRS {
                return Err(LayoutError::Move {
                    reason: "the repeating old and new regions never come into step; choose lengths of which one is a multiple of the other",
                });
            }
        }
        if collide(&x, &y) {
            return Err(LayoutError::Collision { home: x.start, other: y.start });
        }
        if x.end() <= y.end() {
            a = home.after(&x);
        }
        if y.end() <= x.end() {
            b = moving.after(&y);
        }
    }
    Ok(())
}

/// Whether two windows could put different bytes at the same place: they stand in one plane, name a common target, and their
/// slices, each taken as long as its longest share, overlap.
pub(crate) fn collide(x: &RegionRef<'_>, y: &RegionRef<'_>) -> bool {
    if x.is_original() || y.is_original() || x.plane() != y.plane() {
        return false;
    }
    let longest = |r: &RegionRef<'_>| r.slices().map(|s| s.len).max().unwrap_or(0);
    if x.slice >= y.slice.saturating_add(longest(y)) || y.slice >= x.slice.saturating_add(longest(x)) {
        return false;
    }
    let mut named = Targets::new();
    for slice in x.slices() {
        named.insert(slice.target);
    }
    y.slices().any(|slice| named.contains(slice.target))
}
