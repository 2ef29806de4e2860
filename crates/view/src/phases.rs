//! Phases of a run: spans of time in which its processes read, write, or do both, with quiet between them.

/// What a phase does: only one of the two where that has at least nineteen of twenty bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
    Both,
}

/// Bins `begin..end` of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    pub begin: usize,
    pub end: usize,
    pub kind: Kind,
    pub read: u64,
    pub written: u64,
}

/// Of twenty bytes, so many others make a phase one of both.
const MIXED_OF_20: u128 = 1;

fn kind(read: u64, written: u64) -> Kind {
    let (read, written) = (u128::from(read), u128::from(written));
    let mixed = (read + written) * MIXED_OF_20;
    if written * 20 <= mixed {
        Kind::Read
    } else if read * 20 <= mixed {
        Kind::Write
    } else {
        Kind::Both
    }
}

/// The phases in bins of (nanoseconds in calls, bytes read, bytes written).
///
/// Quiet of at most `gap` bins ends no phase that goes on in the same way. Where reads and writes alternate in runs of at most `gap` bins they are one
/// phase of both.
#[must_use]
pub fn phases(busy: &[u64], read: &[u64], written: &[u64], gap: usize) -> Vec<Phase> {
    let mut found: Vec<Phase> = Vec::new();
    let bins = busy.iter().zip(read).zip(written).enumerate();
    let mut open = false;
    for (bin, ((&busy, &read), &written)) in bins {
        if busy == 0 && read == 0 && written == 0 {
            continue;
        }
        let mine = Phase { begin: bin, end: bin + 1, kind: kind(read, written), read, written };
        let near = found.last().is_some_and(|last| bin - last.end <= gap);
        match found.last_mut().filter(|_| open && near) {
            Some(last) if last.kind == mine.kind || (read == 0 && written == 0) => join(last, &mine),
            _ => found.push(mine),
        }
        open = true;
    }
    merged(found, gap)
}

fn join(into: &mut Phase, more: &Phase) {
    into.end = more.end;
    into.read += more.read;
    into.written += more.written;
    into.kind = kind(into.read, into.written);
}

/// Short phases that touch their neighbours become one with them.
fn merged(found: Vec<Phase>, gap: usize) -> Vec<Phase> {
    let mut kept: Vec<Phase> = Vec::new();
    for phase in found {
        let is_short = |each: &Phase| each.end - each.begin <= gap;
        match kept.last_mut().filter(|last| phase.begin - last.end <= gap && (is_short(last) || is_short(&phase) || last.kind == phase.kind)) {
            Some(last) => join(last, &phase),
            None => kept.push(phase),
        }
    }
    kept
}
