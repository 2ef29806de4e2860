//! Replicas of equal blocks that share no byte: the history may answer with such a one before anything else is looked at.
//!
//! With some strides left aside, a pattern lies within a short range that repeats with the greatest common divisor of those strides. Where such ranges of two
//! patterns, folded onto one period, do not meet, the patterns share no byte. Sorting by place in the period separates many patterns at once: the columns of
//! an array by their place in a row, cubes first by row, then by plane. What stays together at every level may share bytes, and counts as if it did.

use crate::replica::{Loop, Patterns};

/// Numbers of replicas, four bytes each.
type Number = [u8; 4];

pub(crate) fn number(of: &Number) -> usize {
    u32::from_le_bytes(*of) as usize
}

/// Calls `found` with each of `members` that shares no byte with any other. Their order changes. Members * log(members) steps per level, levels are one more
/// than there are loops.
pub(crate) fn alone(patterns: Patterns<'_>, members: &mut [Number], found: &mut impl FnMut(usize)) {
    divide(patterns, members, 0, found);
}

fn loops(patterns: Patterns<'_>, member: &Number) -> impl Iterator<Item = Loop> + use<> {
    let (loops, n) = patterns.get(number(member)).map(|b| b.by_stride()).unwrap_or_default();
    loops.into_iter().take(n).filter(|l| l.count > 1)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Patterns folded onto one period.
#[derive(Clone, Copy)]
struct Fold<'a> {
    patterns: Patterns<'a>,
    /// Loops of larger strides are left aside.
    stride_max: u64,
    /// Bytes; 0 = they do not repeat.
    period: u64,
}

impl Fold<'_> {
    fn start(&self, member: &Number) -> u64 {
        let base = self.patterns.get(number(member)).map_or(0, |b| b.base);
        base.checked_rem(self.period).unwrap_or(base)
    }

    fn end(&self, member: &Number) -> u64 {
        let inner = loops(self.patterns, member).filter(|l| l.stride <= self.stride_max);
        let start = self.start(member).saturating_add(self.patterns.block(number(member)));
        inner.fold(start, |end, step| end.saturating_add((step.count - 1).saturating_mul(step.stride)))
    }

    /// How many of the sorted `members` lie, one reaching into the next, in the run whose bytes end at `end` so far.
    fn run(&self, members: &[Number], mut end: u64) -> usize {
        let meets = |member: &&Number| {
            let is_in = self.start(member) < end;
            end = if is_in { end.max(self.end(member)) } else { end };
            is_in
        };
        members.iter().take_while(meets).count()
    }
}

fn divide(patterns: Patterns<'_>, mut members: &mut [Number], level: usize, found: &mut impl FnMut(usize)) {
    let first = match members {
        [] => return,
        [one] => return found(number(one)),
        [first, ..] => *first,
    };
    let strides = loops(patterns, &first).count();
    if level > strides {
        return;
    }
    // Level 0 leaves all loops aside, each further one keeps one more of the first member's.
    let stride_max = level.checked_sub(1).and_then(|below| loops(patterns, &first).nth(strides - 1 - below)).map_or(0, |l| l.stride);
    let aside = members.iter().flat_map(|m| loops(patterns, m)).map(|l| l.stride).filter(|s| *s > stride_max);
    let fold = Fold { patterns, stride_max, period: aside.fold(0, gcd) };
    members.sort_unstable_by_key(|m| fold.start(m));
    // What passes the period's end goes on at its start; the run there is put behind the last one, of which it is a part.
    let end = members.iter().map(|m| fold.end(m)).max().unwrap_or(0);
    let front = if fold.period > 0 { fold.run(members, end.saturating_sub(fold.period)) } else { 0 };
    members.rotate_left(front);
    let mut sorted = members.len() - front;
    loop {
        let run = fold.run(members.get(..sorted).unwrap_or(&[]), members.first().map_or(0, |m| fold.start(m) + 1));
        let whole = if run == sorted { members.len() } else { run };
        let Some((together, others)) = members.split_at_mut_checked(whole).filter(|(together, _)| !together.is_empty()) else {
            return;
        };
        divide(patterns, together, level + 1, found);
        members = others;
        sorted -= run;
    }
}
