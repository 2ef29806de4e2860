//! Which bytes of a file a view shows: a filetype's description as nested loops, and any part of the view's data as ranges of the file.
//!
//! The words may be damaged: whatever does not hold together is no layout, and all arithmetic is checked.

use crate::datatype::{DEPTH_MAX, HEAD_WORDS, combiner, distribution, order};
use std::rc::Rc;

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

#[derive(Clone, Debug)]
enum Shape {
    /// Bytes as they lie.
    Block,
    /// A type again and again.
    Loop { stride: i64, body: Rc<Type> },
    /// Types at displacements, with the bytes of data before each.
    Parts(Vec<(i64, u64, Rc<Type>)>),
}

/// A datatype: what it shows, in the order of its data.
#[derive(Clone, Debug)]
struct Type {
    /// Bytes of data.
    bytes: u64,
    /// From one element to the next.
    extent: i64,
    shape: Shape,
}

/// A filetype, tiled without end.
#[derive(Clone, Debug)]
pub struct Layout {
    tile: Rc<Type>,
}

impl Layout {
    /// Bytes as they lie.
    #[must_use]
    pub fn plain() -> Layout {
        Layout { tile: Rc::new(Type { bytes: 1 << 40, extent: 1 << 40, shape: Shape::Block }) }
    }

    /// Reads a description; `None` when it is none.
    #[must_use]
    pub fn of_words(words: &[u64]) -> Option<Layout> {
        let mut rest = words;
        let tile = read(&mut rest, 0)?;
        (rest.is_empty() && tile.bytes > 0 && tile.extent > 0).then_some(Layout { tile })
    }

    /// The ranges of the bytes `from..from + bytes` of the view's data in a file, the view beginning at `displacement`. Neighbours are joined; the ranges
    /// of a level whose body has several stand one after the other. `None` beyond the largest file.
    #[must_use]
    pub fn ranges(&self, displacement: i64, from: u64, bytes: u64) -> Option<Vec<Extent>> {
        let mut found = Vec::new();
        let to = from.checked_add(bytes)?;
        if bytes > 0 {
            emit_loop(&self.tile, self.tile.extent, displacement, from, to, &mut found)?;
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
        let tile = i64::try_from(position / self.tile.bytes).ok()?.checked_mul(self.tile.extent)?;
        let (mut at, mut rest, mut shown) = (displacement.checked_add(tile)?, position % self.tile.bytes, &self.tile);
        loop {
            match &shown.shape {
                Shape::Block => return at.checked_add(i64::try_from(rest).ok()?),
                Shape::Loop { stride, body } => {
                    at = at.checked_add(stride.checked_mul(i64::try_from(rest / body.bytes).ok()?)?)?;
                    rest %= body.bytes;
                    shown = body;
                }
                Shape::Parts(parts) => {
                    let (by, before, body) = parts.get(parts.partition_point(|part| part.1 <= rest).checked_sub(1)?)?;
                    at = at.checked_add(*by)?;
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
fn emit(shown: &Type, at: i64, from: u64, to: u64, found: &mut Vec<Extent>) -> Option<()> {
    match &shown.shape {
        Shape::Block => {
            found.push(Extent { offset: at.checked_add(i64::try_from(from).ok()?)?, bytes: to - from, levels: Vec::new() });
            Some(())
        }
        Shape::Loop { stride, body } => emit_loop(body, *stride, at, from, to, found),
        Shape::Parts(parts) => {
            let first = parts.partition_point(|part| part.1 <= from).checked_sub(1)?;
            for (by, before, body) in parts.iter().skip(first).take_while(|part| part.1 < to) {
                let (from, to) = (from.saturating_sub(*before), (to - before).min(body.bytes));
                emit(body, at.checked_add(*by)?, from, to, found)?;
            }
            Some(())
        }
    }
}

/// The same of a type that is repeated.
fn emit_loop(body: &Type, stride: i64, at: i64, from: u64, to: u64, found: &mut Vec<Extent>) -> Option<()> {
    let place = |n: u64| stride.checked_mul(i64::try_from(n).ok()?)?.checked_add(at);
    let (first, last) = (from / body.bytes, (to - 1) / body.bytes);
    let (head, tail) = (from % body.bytes, to - last * body.bytes);
    if first == last {
        return emit(body, place(first)?, head, tail, found);
    }
    let mut whole = first;
    if head > 0 {
        emit(body, place(first)?, head, body.bytes, found)?;
        whole += 1;
    }
    let end = if tail == body.bytes { last + 1 } else { last };
    if end > whole {
        let mut once = Vec::new();
        emit(body, place(whole)?, 0, body.bytes, &mut once)?;
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

/// Takes `count` words off the front.
fn take<'a>(rest: &mut &'a [u64], count: u64) -> Option<&'a [u64]> {
    let (front, back) = rest.split_at_checked(usize::try_from(count).ok()?)?;
    *rest = back;
    Some(front)
}

fn read(rest: &mut &[u64], depth: usize) -> Option<Rc<Type>> {
    let &[kind, integers, addresses, counts, types, _lower, extent] = take(rest, HEAD_WORDS as u64)? else { return None };
    let (integers, addresses, counts) = (take(rest, integers)?, take(rest, addresses)?, take(rest, counts)?);
    if depth > DEPTH_MAX || types > rest.len() as u64 {
        return None;
    }
    let mut inner = Vec::new();
    for _ in 0..types {
        inner.push(read(rest, depth + 1)?);
    }
    let shape = match kind {
        combiner::NAMED => named(*integers.first()?, extent as i64)?,
        combiner::SUBARRAY => subarray(integers, counts, inner.first()?)?,
        combiner::DARRAY => darray(integers, counts, inner.first()?)?,
        // Types with large counts have all their numbers there, in the same order.
        _ if counts.is_empty() => simple(kind, &[integers, addresses].concat(), &inner)?,
        _ => simple(kind, counts, &inner)?,
    };
    Some(Rc::new(Type { extent: extent as i64, ..Rc::unwrap_or_clone(shape) }))
}

fn named(bytes: u64, extent: i64) -> Option<Rc<Type>> {
    let block = |bytes| Rc::new(Type { bytes, extent: bytes as i64, shape: Shape::Block });
    if bytes > 1 << 20 {
        return None;
    }
    // MPI_SHORT_INT is the one pair whose parts do not touch.
    if bytes == 6 && extent == 8 {
        return parts(vec![(0, block(2)), (4, block(4))]);
    }
    Some(block(bytes))
}

/// All kinds that are not arrays, of the numbers that their constructors were given.
fn simple(kind: u64, numbers: &[u64], inner: &[Rc<Type>]) -> Option<Rc<Type>> {
    let body = inner.first();
    let stride = |n: u64| (n as i64).checked_mul(body?.extent);
    let (&count, rest) = match kind {
        combiner::DUP | combiner::RESIZED => return body.cloned(),
        _ => numbers.split_first()?,
    };
    let n = usize::try_from(count).ok()?;
    // Lists of lengths and displacements.
    let lists = |lengths: usize| {
        let (lengths, displacements) = rest.split_at_checked(lengths)?;
        (displacements.len() == n).then_some((lengths, displacements))
    };
    match (kind, rest) {
        (combiner::CONTIGUOUS, []) => again(count, body?.extent, body?),
        (combiner::VECTOR, &[length, by]) => again(count, stride(by)?, &again(length, body?.extent, body?)?),
        (combiner::HVECTOR, &[length, by]) => again(count, by as i64, &again(length, body?.extent, body?)?),
        (combiner::INDEXED | combiner::HINDEXED, _) => {
            let (lengths, displacements) = lists(n)?;
            let in_bytes = kind == combiner::HINDEXED;
            let at = |by: u64| if in_bytes { Some(by as i64) } else { stride(by) };
            let found = lengths.iter().zip(displacements).map(|(&length, &by)| Some((at(by)?, again(length, body?.extent, body?)?)));
            parts(found.collect::<Option<_>>()?)
        }
        (combiner::INDEXED_BLOCK | combiner::HINDEXED_BLOCK, _) => {
            let (lengths, displacements) = lists(1)?;
            let block = again(*lengths.first()?, body?.extent, body?)?;
            let in_bytes = kind == combiner::HINDEXED_BLOCK;
            let at = |by: u64| if in_bytes { Some(by as i64) } else { stride(by) };
            parts(displacements.iter().map(|&by| Some((at(by)?, block.clone()))).collect::<Option<_>>()?)
        }
        (combiner::STRUCT, _) => {
            let (lengths, displacements) = lists(n)?;
            if inner.len() != n {
                return None;
            }
            let each = lengths.iter().zip(displacements).zip(inner);
            parts(each.map(|((&length, &by), body)| Some((by as i64, again(length, body.extent, body)?))).collect::<Option<_>>()?)
        }
        _ => None,
    }
}

/// A type so many times; of one block where it leaves no gap.
fn again(count: u64, stride: i64, body: &Rc<Type>) -> Option<Rc<Type>> {
    let bytes = body.bytes.checked_mul(count).filter(|bytes| *bytes < 1 << 62)?;
    let extent = stride.checked_mul(i64::try_from(count).ok()?)?;
    let dense = matches!(body.shape, Shape::Block) && i64::try_from(body.bytes).is_ok_and(|bytes| bytes == stride);
    let shape = match count {
        1 => body.shape.clone(),
        _ if bytes == 0 || dense => Shape::Block,
        _ => Shape::Loop { stride, body: body.clone() },
    };
    Some(Rc::new(Type { bytes, extent, shape }))
}

/// Types at displacements: neighbours joined, three or more blocks of one size at equal distances as a loop.
fn parts(list: Vec<(i64, Rc<Type>)>) -> Option<Rc<Type>> {
    let mut joined: Vec<(i64, Rc<Type>)> = Vec::with_capacity(list.len());
    for (at, body) in list.into_iter().filter(|(_, body)| body.bytes > 0) {
        match joined.last_mut() {
            Some((first, last)) if is_block(last) && is_block(&body) && first.checked_add(i64::try_from(last.bytes).ok()?) == Some(at) => {
                *last = again(last.bytes.checked_add(body.bytes)?, 1, &Rc::new(Type { bytes: 1, extent: 1, shape: Shape::Block }))?;
            }
            _ => joined.push((at, body)),
        }
    }
    let (mut placed, mut bytes, mut at) = (Vec::new(), 0u64, 0);
    while let Some((first, body)) = joined.get(at) {
        let mut run = 1;
        let gap = |n: usize| joined.get(n)?.0.checked_sub(joined.get(n - 1)?.0);
        let stride = gap(at + 1);
        let same = |n: usize| joined.get(n).is_some_and(|(_, other)| is_block(other) && other.bytes == body.bytes);
        while is_block(body) && stride.is_some() && same(at + run) && gap(at + run) == stride {
            run += 1;
        }
        let shown = match stride {
            Some(stride) if run > 2 => again(run as u64, stride, body)?,
            _ => {
                run = 1;
                body.clone()
            }
        };
        placed.push((*first, bytes, shown.clone()));
        bytes = bytes.checked_add(shown.bytes).filter(|bytes| *bytes < 1 << 62)?;
        at += run;
    }
    if let [(0, _, only)] = placed.as_slice() {
        return Some(only.clone());
    }
    let shape = if bytes == 0 { Shape::Block } else { Shape::Parts(placed) };
    Some(Rc::new(Type { bytes, extent: 0, shape }))
}

fn is_block(shown: &Type) -> bool {
    matches!(shown.shape, Shape::Block)
}

/// The dimensions of an array from the fastest to the slowest.
fn dimensions(n: usize, in_order: u64) -> impl Iterator<Item = usize> {
    (0..n).map(move |place| if in_order == order::FORTRAN { place } else { n - 1 - place })
}

fn subarray(integers: &[u64], counts: &[u64], body: &Rc<Type>) -> Option<Rc<Type>> {
    let (&dims, rest) = integers.split_first()?;
    let (&in_order, lists) = rest.split_last()?;
    let lists = if counts.is_empty() { lists } else { counts };
    let n = usize::try_from(dims).ok().filter(|n| n.checked_mul(3) == Some(lists.len()))?;
    let (mut shown, mut stride, mut at) = (body.clone(), body.extent, 0i64);
    for dim in dimensions(n, in_order) {
        let (&size, &part, &start) = (lists.get(dim)?, lists.get(n + dim)?, lists.get(2 * n + dim)?);
        shown = again(part, stride, &shown)?;
        at = at.checked_add(stride.checked_mul(i64::try_from(start).ok()?)?)?;
        stride = stride.checked_mul(i64::try_from(size).ok()?)?;
    }
    parts(vec![(at, shown)])
}

/// The array of one process of a grid (MPI 4.1, section 4.1.4): processes are numbered as in C whatever the order.
fn darray(integers: &[u64], counts: &[u64], body: &Rc<Type>) -> Option<Rc<Type>> {
    let &[_, rank, dims, ref rest @ ..] = integers else { return None };
    let (&in_order, mut lists) = rest.split_last()?;
    let n = usize::try_from(dims).ok().filter(|n| *n <= 1 << 16)?;
    let sizes = if counts.is_empty() { take(&mut lists, n as u64)? } else { counts };
    let (kinds, arguments, processes) = (take(&mut lists, n as u64)?, take(&mut lists, n as u64)?, take(&mut lists, n as u64)?);
    let mut places = vec![0; n];
    let mut left = rank;
    for (place, &count) in places.iter_mut().zip(processes).rev() {
        *place = left.checked_rem(count)?;
        left = left.checked_div(count)?;
    }
    let (mut shown, mut stride) = (body.clone(), body.extent);
    for dim in dimensions(n, in_order) {
        let (&size, &count, &place) = (sizes.get(dim)?, processes.get(dim)?, places.get(dim)?);
        let argument = Some(*arguments.get(dim)?).filter(|argument| *argument != distribution::DEFAULT);
        let (block, cycle) = match *kinds.get(dim)? {
            distribution::NONE => (size, size.max(1)),
            distribution::BLOCK => {
                let block = argument.unwrap_or(size.div_ceil(count));
                (block, block.checked_mul(count)?.max(size).max(1))
            }
            _ => {
                let block = argument.unwrap_or(1);
                (block, block.checked_mul(count)?.max(1))
            }
        };
        let first = if *kinds.get(dim)? == distribution::NONE { 0 } else { place.checked_mul(block)? };
        // Whole blocks at `first`, a cycle apart, and what is left of the last one.
        let reach = first.checked_add(block)?;
        let whole = if size >= reach && block > 0 { (size - reach) / cycle + 1 } else { 0 };
        let last = first.checked_add(whole.checked_mul(cycle)?)?;
        let cut = if block > 0 { size.saturating_sub(last).min(block) } else { 0 };
        let by = |n: u64| stride.checked_mul(i64::try_from(n).ok()?);
        let blocks = again(whole, by(cycle)?, &again(block, stride, &shown)?)?;
        shown = parts(vec![(by(first)?, blocks), (by(last)?, again(cut, stride, &shown)?)])?;
        stride = by(size)?;
    }
    Some(shown)
}

#[cfg(test)]
mod tests;
