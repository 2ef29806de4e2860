//! Which bytes of a file a view shows: a filetype's description as nested loops, and any part of the view's data as ranges of the file.
//!
//! The words may be damaged: whatever does not hold together is no layout, and all arithmetic is checked.

use crate::datatype::{self, HEAD_WORDS, Node, Shape, Tile, combiner};

/// A range of the file, repeated level by level: `count` times, `stride` bytes apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    pub offset: i64,
    pub bytes: u64,
    /// (stride, count), the innermost first.
    pub levels: Vec<(i64, u64)>,
}

impl Extent {
    /// Behind its furthest byte; saturating.
    #[must_use]
    pub fn end(&self) -> i64 {
        let far = |(stride, count): &(i64, u64)| stride.saturating_mul(i64::try_from(count.saturating_sub(1)).unwrap_or(i64::MAX)).max(0);
        let reach: i64 = self.levels.iter().map(far).fold(0, i64::saturating_add);
        self.offset.saturating_add(reach).saturating_add(i64::try_from(self.bytes).unwrap_or(i64::MAX))
    }
}

/// A filetype, tiled without end.
#[derive(Clone, Debug)]
pub struct Layout {
    /// `datatype::compile`.
    words: Box<[u64]>,
}

impl Layout {
    /// Bytes as they lie.
    #[must_use]
    pub fn plain() -> Layout {
        const BYTE: [u64; HEAD_WORDS + 1] = [combiner::NAMED, 1, 0, 0, 0, 0, 1, 1];
        Layout::of_words(&BYTE).unwrap_or(Layout { words: Box::new([]) })
    }

    /// Reads a description; `None` when it is none.
    #[must_use]
    pub fn of_words(words: &[u64]) -> Option<Layout> {
        let mut room = vec![0; datatype::room_for(words.len())];
        let used = datatype::compile(words, &mut room)?;
        Some(Layout { words: room.get(..used)?.into() })
    }

    fn tile(&self) -> Tile<'_> {
        Tile::open(&self.words)
    }

    /// The ranges of the bytes `from..from + bytes` of the view's data in a file, the view beginning at `displacement`. Neighbours are joined; the ranges
    /// of a level whose body has several stand one after the other. `None` beyond the largest file.
    #[must_use]
    pub fn ranges(&self, displacement: i64, from: u64, bytes: u64) -> Option<Vec<Extent>> {
        let mut found = Vec::new();
        let to = from.checked_add(bytes)?;
        if bytes > 0 {
            let tile = self.tile().root();
            emit_loop(tile, tile.extent(), displacement, from, to, &mut found)?;
        }
        Some(joined(found))
    }

    /// Where in the view's data the byte at `offset` of the file is; `None` when the view does not show it. The filetype's displacements must not fall,
    /// which MPI demands.
    #[must_use]
    pub fn position_of(&self, displacement: i64, offset: i64) -> Option<u64> {
        let (mut low, mut high) = (0u64, u64::try_from(offset.checked_sub(displacement)?).ok()?.checked_add(1)?);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.offset_of(displacement, middle)? < offset { low = middle + 1 } else { high = middle }
        }
        (self.offset_of(displacement, low)? == offset).then_some(low)
    }

    fn offset_of(&self, displacement: i64, position: u64) -> Option<i64> {
        let mut shown = self.tile().root();
        let tile = i64::try_from(position.checked_div(shown.bytes())?).ok()?.checked_mul(shown.extent())?;
        let (mut at, mut rest) = (displacement.checked_add(tile)?, position % shown.bytes());
        loop {
            match shown.shape() {
                Shape::Block => return at.checked_add(i64::try_from(rest).ok()?),
                Shape::Loop { stride, body } => {
                    at = at.checked_add(stride.checked_mul(i64::try_from(rest.checked_div(body.bytes())?).ok()?)?)?;
                    rest %= body.bytes();
                    shown = body;
                }
                Shape::Parts(parts) => {
                    let (by, before, body) = parts.from(rest)?.next()?;
                    at = at.checked_add(by)?;
                    rest -= before;
                    shown = body;
                }
            }
        }
    }
}

/// Neighbouring plain ranges as one.
fn joined(found: Vec<Extent>) -> Vec<Extent> {
    let mut kept: Vec<Extent> = Vec::with_capacity(found.len());
    for next in found {
        match kept.last_mut() {
            Some(last) if last.levels.is_empty() && next.levels.is_empty() && last.end() == next.offset => last.bytes += next.bytes,
            _ => kept.push(next),
        }
    }
    kept
}

/// The bytes `from..to` of a type's data, the type lying at `at`.
fn emit(shown: Node<'_>, at: i64, from: u64, to: u64, found: &mut Vec<Extent>) -> Option<()> {
    match shown.shape() {
        Shape::Block => {
            found.push(Extent { offset: at.checked_add(i64::try_from(from).ok()?)?, bytes: to - from, levels: Vec::new() });
            Some(())
        }
        Shape::Loop { stride, body } => emit_loop(body, stride, at, from, to, found),
        Shape::Parts(parts) => {
            for (by, before, body) in parts.from(from)?.take_while(|part| part.1 < to) {
                emit(body, at.checked_add(by)?, from.saturating_sub(before), (to - before).min(body.bytes()), found)?;
            }
            Some(())
        }
    }
}

/// The same of a type that is repeated.
fn emit_loop(body: Node<'_>, stride: i64, at: i64, from: u64, to: u64, found: &mut Vec<Extent>) -> Option<()> {
    let place = |n: u64| stride.checked_mul(i64::try_from(n).ok()?)?.checked_add(at);
    let bytes = body.bytes();
    let (first, last) = (from.checked_div(bytes)?, (to - 1) / bytes);
    let (head, tail) = (from % bytes, to - last * bytes);
    if first == last {
        return emit(body, place(first)?, head, tail, found);
    }
    let mut whole = first;
    if head > 0 {
        emit(body, place(first)?, head, bytes, found)?;
        whole += 1;
    }
    let end = if tail == bytes { last + 1 } else { last };
    if end > whole {
        let mut once = Vec::new();
        emit(body, place(whole)?, 0, bytes, &mut once)?;
        let mut once = joined(once);
        let count = end - whole;
        let dense = matches!(once.as_slice(), [one] if one.levels.is_empty() && i64::try_from(one.bytes).is_ok_and(|bytes| bytes == stride));
        for range in &mut once {
            if dense {
                range.bytes = range.bytes.checked_mul(count)?;
            } else if count > 1 {
                range.levels.push((stride, count));
            }
        }
        found.append(&mut once);
    }
    if end == last {
        emit(body, place(last)?, 0, tail, found)?;
    }
    Some(())
}

#[cfg(test)]
mod tests;
