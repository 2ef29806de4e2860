//! Editing lists of regions: what a mover does between reading a plan and publishing a layout.
//!
//! A *span* is a range that is a union of whole old regions and of whole new ones; every repetition of a repeating region counts as one. Since each
//! repetition is a window of its own, cutting between repetitions moves no byte.

use alloc::vec::Vec;
use core::fmt;

use crate::owned::{Placement, Region, Stripe};
use crate::{LayoutError, MAX_LOGICAL, MAX_REGIONS, Span};

/// Windows that [`spans`] looks at before it takes the rest as one span: more than two full lists.
const MAX_STEPS: u64 = 4 * MAX_REGIONS;

/// The regions of a span stand in both planes, so there is no free one: the mover must first bring them into one plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MixedPlanes {
    /// Start of the first region whose plane differs from that of the regions before it in the span.
    pub at: u64,
}

impl fmt::Display for MixedPlanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the region at byte {} stands in the other plane than those before it in the span; move it by itself first", self.at)
    }
}

impl core::error::Error for MixedPlanes {}

/// A cursor over the windows of a list whose last region repeats.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    list: &'a [Region],
    index: usize,
    start: u64,
    end: u64,
}

impl<'a> Cursor<'a> {
    fn new(list: &'a [Region]) -> Option<Cursor<'a>> {
        let first = list.first()?;
        Some(Cursor { list, index: 0, start: first.start, end: first.start.saturating_add(first.len) })
    }

    fn region(&self) -> Option<&'a Region> {
        self.list.get(self.index)
    }

    fn in_tail(&self) -> bool {
        self.index + 1 >= self.list.len()
    }

    fn step(&mut self) {
        self.start = self.end;
        if !self.in_tail() {
            self.index += 1;
        }
        self.end = self.start.saturating_add(self.region().map_or(0, |r| r.len).max(1));
    }

    /// The window as a region of its own.
    fn window(&self) -> Option<Region> {
        self.region().map(|r| Region { start: self.start, ..r.clone() })
    }
}

/// Rotates a cycle by `by` stripes: the region numbered `by` begins on another target than its neighbours (placement.md, "Common steps", 4).
#[must_use]
pub fn rotated(stripes: &[Stripe], by: usize) -> Vec<Stripe> {
    let mut out = stripes.to_vec();
    if !out.is_empty() {
        let n = out.len();
        out.rotate_left(by % n);
    }
    out
}

fn refuse<T>(start: u64, reason: &'static str) -> Result<T, LayoutError> {
    Err(LayoutError::Span { start, reason })
}

/// Where `at` cuts a list whose last region repeats: the number of the record that begins there or holds a repetition that does, and whether it is the
/// record's own start.
fn border(list: &[Region], at: u64) -> Result<(usize, bool), LayoutError> {
    let index = list.partition_point(|r| r.start <= at);
    let Some((index, r)) = index.checked_sub(1).and_then(|i| list.get(i).map(|r| (i, r))) else {
        return refuse(at, "it begins before the first region; cut where a region begins");
    };
    if r.start == at {
        return Ok((index, true));
    }
    if index + 1 != list.len() || r.len == 0 || !(at - r.start).is_multiple_of(r.len) {
        return refuse(at, "it cuts a region or a repetition; cut where one begins");
    }
    Ok((index, false))
}

/// Everything of `list` before `at`, repetitions as records of their own.
fn left_of(list: &[Region], at: u64) -> Result<Vec<Region>, LayoutError> {
    let (index, own) = border(list, at)?;
    let mut out = list.get(..index).unwrap_or(&[]).to_vec();
    if let (false, Some(r)) = (own, list.get(index)) {
        let times = (at - r.start) / r.len;
        let count = times + index as u64;
        if count > MAX_REGIONS {
            return Err(LayoutError::TooMany { what: "regions", count, limit: MAX_REGIONS });
        }
        out.extend((0..times).map(|k| Region { start: r.start + k * r.len, ..r.clone() }));
    }
    Ok(out)
}

/// Everything of `list` from `at` on; the repeating region goes on from there.
fn right_of(list: &[Region], at: u64) -> Result<Vec<Region>, LayoutError> {
    let (index, _) = border(list, at)?;
    let mut out = list.get(index..).unwrap_or(&[]).to_vec();
    if let Some(first) = out.first_mut() {
        first.start = at;
    }
    Ok(out)
}

/// The regions of `list` (the last one repeats) inside `span`: what stands in `pending` or `retired` during a move.
///
/// # Errors
/// When the span cuts a region or a repetition, or ends past [`MAX_LOGICAL`].
pub fn within(list: &[Region], span: Span) -> Result<Vec<Region>, LayoutError> {
    let right = right_of(list, span.start)?;
    if span.is_to_end() {
        return Ok(right);
    }
    if span.end() > MAX_LOGICAL || span.len == 0 {
        return refuse(span.start, "it must hold at least one byte and end at or below byte 2^62");
    }
    left_of(&right, span.end())
}

/// Replaces the regions of `span` by `new`, which must cover it exactly (and repeat at its end exactly when the span goes to the end).
///
/// A repeating region that is cut becomes one record per repetition on the left and goes on repeating on the right. The mapping outside the span
/// is unchanged, byte for byte.
///
/// # Errors
/// When the span cuts a region or a repetition, `new` does not cover it, or the list would grow past [`MAX_REGIONS`].
pub fn splice(regions: &[Region], new: &[Region], span: Span) -> Result<Vec<Region>, LayoutError> {
    let mut at = span.start;
    for r in new {
        if r.start != at || r.len == 0 {
            return refuse(span.start, "the new regions must cover it without gaps, from its first byte");
        }
        at = at.saturating_add(r.len);
    }
    if new.is_empty() || (!span.is_to_end() && at != span.end()) {
        return refuse(span.start, "the new regions must cover it exactly, to its last byte");
    }
    let mut out = left_of(regions, span.start)?;
    out.extend_from_slice(new);
    if !span.is_to_end() {
        out.extend(right_of(regions, span.end())?);
    }
    if out.len() as u64 > MAX_REGIONS {
        return Err(LayoutError::TooMany { what: "regions", count: out.len() as u64, limit: MAX_REGIONS });
    }
    Ok(out)
}

/// The spans in which `new` differs from `old`, in order and as short as they can be: each is a union of whole regions of both; regions equal in bounds and
/// placement are left out (generations do not count). Beyond byte `up_to` (the file's size) all that differs is one span to the end.
#[must_use]
pub fn spans(old: &[Region], new: &[Region], up_to: u64) -> Vec<Span> {
    let mut out = Vec::new();
    let (Some(mut a), Some(mut b)) = (Cursor::new(old), Cursor::new(new)) else {
        return out;
    };
    let mut steps = 0;
    while a.start < up_to {
        let (start, mut single) = (a.start, true);
        let same = a.region().map(|r| &r.placement) == b.region().map(|r| &r.placement);
        while a.end != b.end {
            single = false;
            steps += 1;
            // Past the file, repeating regions that are out of step hold no byte: no reason to look for where they meet.
            let beyond = a.in_tail() && b.in_tail() && a.end.min(b.end) >= up_to;
            if beyond || steps > MAX_STEPS || a.end.max(b.end) > MAX_LOGICAL {
                out.push(Span::to_end(start));
                return out;
            }
            if a.end < b.end { a.step() } else { b.step() }
        }
        if !(single && same) {
            out.push(Span { start, len: a.end - start });
        }
        a.step();
        b.step();
        steps += 1;
        if steps > MAX_STEPS {
            break;
        }
    }
    if !same_tail(a, b) {
        out.push(Span::to_end(a.start));
    }
    out
}

/// Whether two lists map alike from their cursors on; both cursors begin at the same byte.
fn same_tail(mut a: Cursor<'_>, mut b: Cursor<'_>) -> bool {
    loop {
        let (Some(x), Some(y)) = (a.region(), b.region()) else {
            return false;
        };
        if a.end != b.end || x.placement != y.placement {
            return false;
        }
        if a.in_tail() && b.in_tail() {
            return true;
        }
        a.step();
        b.step();
    }
}

/// The generation for new regions in `span`: the next one whose plane the present regions there do not use.
///
/// New regions in that plane share no object byte with the present ones, whatever the bounds of both. Original regions stand in no plane.
///
/// # Errors
/// [`MixedPlanes`] when the present regions of the span use both planes.
pub fn plane_for(old: &[Region], span: Span) -> Result<u32, MixedPlanes> {
    let (mut newest, mut plane) = (None, None);
    for (i, r) in old.iter().enumerate() {
        let last = i + 1 == old.len();
        let touches = r.start < span.end() && (last || r.start.saturating_add(r.len) > span.start);
        if !touches || r.placement == Placement::Original {
            continue;
        }
        let p = r.generation & 1;
        if plane.is_some_and(|known| known != p) {
            return Err(MixedPlanes { at: r.start.max(span.start) });
        }
        plane = Some(p);
        newest = newest.max(Some(r.generation));
    }
    // Odd + 1 is even and even + 1 is odd, also where the count wraps: the other plane.
    Ok(newest.map_or(0, |g: u32| g.wrapping_add(1)))
}

/// The windows of `list` (the last one repeats) that touch `[0, up_to)`, each as a region of its own.
#[must_use]
pub fn unrolled(list: &[Region], up_to: u64) -> Vec<Region> {
    let mut out = Vec::new();
    let Some(mut cursor) = Cursor::new(list) else {
        return out;
    };
    while cursor.start < up_to && (out.len() as u64) < MAX_REGIONS {
        out.extend(cursor.window());
        cursor.step();
    }
    out
}
