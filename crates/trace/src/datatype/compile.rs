//! From a datatype's words to nested loops over blocks, in memory that the caller gives: the preloaded library may not allocate.
//!
//! The words may be damaged: whatever does not hold together is no type, and all arithmetic is checked.

use super::tile::{BLOCK, LOOP, NODE_WORDS, PART_WORDS, PARTS, ROOT_AT};
use super::{DEPTH_MAX, HEAD_WORDS, combiner, distribution, order};

/// Bytes of data that no type has.
const BYTES_END: u64 = 1 << 62;
/// Dimensions of a distributed array.
const DIMS_MAX: usize = 1 << 10;

/// Words of memory that [`compile`] needs at most for a description of so many words.
#[must_use]
pub const fn room_for(words: usize) -> usize {
    words.saturating_mul(20).saturating_add(128)
}

/// Compiles a description into `room` ([`room_for`]); the words that are used, for [`Tile::open`](super::Tile::open). `None`: it is none, or shows no bytes.
#[must_use]
pub fn compile(words: &[u64], room: &mut [u64]) -> Option<usize> {
    let split = room.len() - room.len() / 5;
    let (nodes, list) = room.split_at_mut_checked(split)?;
    let mut builder = Builder { nodes, used: ROOT_AT + 1, list, listed: 0 };
    let mut rest = words;
    let root = builder.read(&mut rest, 0)?;
    let tile = builder.node(root);
    if !rest.is_empty() || tile.bytes == 0 || tile.extent <= 0 {
        return None;
    }
    *builder.nodes.get_mut(ROOT_AT)? = root as u64;
    Some(builder.used)
}

/// A node while it is made.
#[derive(Clone, Copy)]
struct Made {
    kind: u64,
    bytes: u64,
    extent: i64,
    of: [u64; 2],
}

impl Made {
    const fn block(bytes: u64) -> Made {
        Made { kind: BLOCK, bytes, extent: bytes as i64, of: [0; 2] }
    }
}

/// Nodes and parts in the order in which they are made, and lists of (displacement, node, place for a third word) on their way to be parts.
struct Builder<'a> {
    nodes: &'a mut [u64],
    used: usize,
    list: &'a mut [u64],
    listed: usize,
}

/// Takes `count` words off the front.
fn take<'a>(rest: &mut &'a [u64], count: u64) -> Option<&'a [u64]> {
    let (front, back) = rest.split_at_checked(usize::try_from(count).ok()?)?;
    *rest = back;
    Some(front)
}

impl Builder<'_> {
    fn node(&self, at: usize) -> Made {
        let field = |n: usize| self.nodes.get(at + n).copied().unwrap_or(0);
        Made { kind: field(0), bytes: field(1), extent: field(2) as i64, of: [field(3), field(4)] }
    }

    fn push(&mut self, words: &[u64]) -> Option<usize> {
        let at = self.used;
        self.nodes.get_mut(at..at + words.len())?.copy_from_slice(words);
        self.used += words.len();
        Some(at)
    }

    fn make(&mut self, made: Made) -> Option<usize> {
        let words: [u64; NODE_WORDS] = [made.kind, made.bytes, made.extent as u64, made.of[0], made.of[1]];
        self.push(&words)
    }

    fn is_block(&self, at: usize) -> bool {
        self.node(at).kind == BLOCK
    }

    fn read(&mut self, rest: &mut &[u64], depth: usize) -> Option<usize> {
        let &[kind, integers, addresses, counts, types, _lower, extent] = take(rest, HEAD_WORDS as u64)? else { return None };
        let (integers, addresses, counts) = (take(rest, integers)?, take(rest, addresses)?, take(rest, counts)?);
        if depth > DEPTH_MAX || types > rest.len() as u64 {
            return None;
        }
        // Types with large counts have all their numbers there, in the same order.
        let numbers = if counts.is_empty() { Numbers(integers, addresses) } else { Numbers(counts, &[]) };
        let shape = if kind == combiner::STRUCT {
            self.structure(&numbers, types, rest, depth)?
        } else {
            let mut inner = None;
            for place in 0..types {
                let read = self.read(rest, depth + 1)?;
                inner = if place == 0 { Some(read) } else { inner };
            }
            match (kind, inner) {
                (combiner::NAMED, _) => self.named(*integers.first()?, extent as i64)?,
                (combiner::SUBARRAY, Some(body)) => self.subarray(integers, counts, body)?,
                (combiner::DARRAY, Some(body)) => self.darray(integers, counts, body)?,
                (_, Some(body)) => self.simple(kind, &numbers, body)?,
                _ => return None,
            }
        };
        let made = self.node(shape);
        self.make(Made { extent: extent as i64, ..made })
    }

    fn named(&mut self, bytes: u64, extent: i64) -> Option<usize> {
        if bytes > 1 << 20 {
            return None;
        }
        // MPI_SHORT_INT is the one pair whose parts do not touch.
        if bytes == 6 && extent == 8 {
            let list = self.listed;
            for (at, bytes) in [(0, 2), (4, 4)] {
                let block = self.make(Made::block(bytes))?;
                self.put(at, block)?;
            }
            return self.parts(list);
        }
        self.make(Made::block(bytes))
    }

    /// All kinds that are no arrays, of the numbers that their constructors were given.
    fn simple(&mut self, kind: u64, numbers: &Numbers<'_>, body: usize) -> Option<usize> {
        let extent = self.node(body).extent;
        let stride = |n: u64| (n as i64).checked_mul(extent);
        let count = match kind {
            combiner::DUP | combiner::RESIZED => return Some(body),
            _ => numbers.get(0)?,
        };
        let n = usize::try_from(count).ok()?;
        let list = self.listed;
        match (kind, numbers.len() - 1) {
            (combiner::CONTIGUOUS, 0) => self.again(count, extent, body),
            (combiner::VECTOR | combiner::HVECTOR, 2) => {
                let by = numbers.get(2)?;
                let by = if kind == combiner::VECTOR { stride(by)? } else { by as i64 };
                let block = self.again(numbers.get(1)?, extent, body)?;
                self.again(count, by, block)
            }
            (combiner::INDEXED | combiner::HINDEXED, lists) if n.checked_mul(2) == Some(lists) => {
                for place in 0..n {
                    let (length, by) = (numbers.get(1 + place)?, numbers.get(1 + n + place)?);
                    let at = if kind == combiner::HINDEXED { by as i64 } else { stride(by)? };
                    let block = self.again(length, extent, body)?;
                    self.put(at, block)?;
                }
                self.parts(list)
            }
            (combiner::INDEXED_BLOCK | combiner::HINDEXED_BLOCK, lists) if n.checked_add(1) == Some(lists) => {
                let block = self.again(numbers.get(1)?, extent, body)?;
                for place in 0..n {
                    let by = numbers.get(2 + place)?;
                    let at = if kind == combiner::HINDEXED_BLOCK { by as i64 } else { stride(by)? };
                    self.put(at, block)?;
                }
                self.parts(list)
            }
            _ => None,
        }
    }

    /// A structure, whose types follow in `rest`.
    fn structure(&mut self, numbers: &Numbers<'_>, types: u64, rest: &mut &[u64], depth: usize) -> Option<usize> {
        let n = usize::try_from(numbers.get(0)?).ok().filter(|n| *n as u64 == types && n.checked_mul(2) == Some(numbers.len() - 1))?;
        let list = self.listed;
        for place in 0..n {
            let body = self.read(rest, depth + 1)?;
            let block = self.again(numbers.get(1 + place)?, self.node(body).extent, body)?;
            self.put(numbers.get(1 + n + place)? as i64, block)?;
        }
        self.parts(list)
    }

    /// A type so many times; of one block where it leaves no gap.
    fn again(&mut self, count: u64, stride: i64, body: usize) -> Option<usize> {
        let of = self.node(body);
        let bytes = of.bytes.checked_mul(count).filter(|bytes| *bytes < BYTES_END)?;
        let extent = stride.checked_mul(i64::try_from(count).ok()?)?;
        let dense = of.kind == BLOCK && i64::try_from(of.bytes).is_ok_and(|bytes| bytes == stride);
        let made = match count {
            1 => Made { extent, ..of },
            _ if bytes == 0 || dense => Made { bytes, extent, ..Made::block(0) },
            _ => Made { kind: LOOP, bytes, extent, of: [stride as u64, body as u64] },
        };
        self.make(made)
    }

    /// Lists a type at a displacement.
    fn put(&mut self, at: i64, node: usize) -> Option<()> {
        self.list.get_mut(self.listed..self.listed + PART_WORDS)?.copy_from_slice(&[at as u64, 0, node as u64]);
        self.listed += PART_WORDS;
        Some(())
    }

    fn listed(&self, list: usize, place: usize) -> Option<(i64, usize)> {
        let at = list.checked_add(place.checked_mul(PART_WORDS)?)?;
        let &[by, _, node] = self.list.get(at..at + PART_WORDS)? else { return None };
        (at < self.listed).then_some((by as i64, node as usize))
    }

    fn list_again(&mut self, list: usize, place: usize, part: [u64; PART_WORDS]) -> Option<()> {
        let at = list + place * PART_WORDS;
        self.list.get_mut(at..at + PART_WORDS)?.copy_from_slice(&part);
        Some(())
    }

    /// What was listed from `list` on, as one type: neighbours joined, three or more blocks of one size at equal distances as a loop.
    fn parts(&mut self, list: usize) -> Option<usize> {
        let mut kept = 0usize;
        for place in 0..(self.listed - list) / PART_WORDS {
            let (at, node) = self.listed(list, place)?;
            let bytes = self.node(node).bytes;
            if bytes == 0 {
                continue;
            }
            let last = kept.checked_sub(1).and_then(|place| self.listed(list, place));
            if let Some((first, last)) = last
                && self.is_block(last)
                && self.is_block(node)
                && first.checked_add(i64::try_from(self.node(last).bytes).ok()?) == Some(at)
            {
                let bytes = self.node(last).bytes.checked_add(bytes).filter(|bytes| *bytes < BYTES_END)?;
                let joined = self.make(Made::block(bytes))?;
                self.list_again(list, kept - 1, [first as u64, 0, joined as u64])?;
            } else {
                self.list_again(list, kept, [at as u64, 0, node as u64])?;
                kept += 1;
            }
        }
        self.listed = list + kept * PART_WORDS;
        self.placed(list, kept)
    }

    /// The same of parts that were joined.
    fn placed(&mut self, list: usize, parts: usize) -> Option<usize> {
        let (mut placed, mut bytes, mut place) = (0, 0u64, 0);
        while place < parts {
            let (at, body) = self.listed(list, place)?;
            let size = self.node(body).bytes;
            let gap = |builder: &Self, n: usize| builder.listed(list, n)?.0.checked_sub(builder.listed(list, n - 1)?.0);
            let same = |builder: &Self, n: usize| {
                builder.listed(list, n).is_some_and(|(_, other)| builder.is_block(other) && builder.node(other).bytes == size)
            };
            let stride = gap(self, place + 1);
            let mut run = 1;
            while self.is_block(body) && stride.is_some() && same(self, place + run) && gap(self, place + run) == stride {
                run += 1;
            }
            let shown = match stride {
                Some(stride) if run > 2 => self.again(run as u64, stride, body)?,
                _ => {
                    run = 1;
                    body
                }
            };
            // No part is placed behind the one that it was listed as.
            self.list_again(list, placed, [at as u64, bytes, shown as u64])?;
            placed += 1;
            bytes = bytes.checked_add(self.node(shown).bytes).filter(|bytes| *bytes < BYTES_END)?;
            place += run;
        }
        self.listed = list;
        let end = list + placed * PART_WORDS;
        if let &[0, 0, only] = self.list.get(list..end)? {
            return Some(only as usize);
        }
        if bytes == 0 {
            return self.make(Made::block(0));
        }
        let first = self.used;
        self.nodes.get_mut(first..first + (end - list))?.copy_from_slice(self.list.get(list..end)?);
        self.used += end - list;
        self.make(Made { kind: PARTS, bytes, extent: 0, of: [first as u64, placed as u64] })
    }

    fn subarray(&mut self, integers: &[u64], counts: &[u64], body: usize) -> Option<usize> {
        let (&dims, rest) = integers.split_first()?;
        let (&in_order, lists) = rest.split_last()?;
        let lists = if counts.is_empty() { lists } else { counts };
        let n = usize::try_from(dims).ok().filter(|n| n.checked_mul(3) == Some(lists.len()))?;
        let (mut shown, mut stride, mut at) = (body, self.node(body).extent, 0i64);
        for dim in dimensions(n, in_order) {
            let (&size, &part, &start) = (lists.get(dim)?, lists.get(n + dim)?, lists.get(2 * n + dim)?);
            shown = self.again(part, stride, shown)?;
            at = at.checked_add(stride.checked_mul(i64::try_from(start).ok()?)?)?;
            stride = stride.checked_mul(i64::try_from(size).ok()?)?;
        }
        let list = self.listed;
        self.put(at, shown)?;
        self.parts(list)
    }

    /// The array of one process of a grid (MPI 4.1, section 4.1.4): processes are numbered as in C whatever the order.
    fn darray(&mut self, integers: &[u64], counts: &[u64], body: usize) -> Option<usize> {
        let &[_, rank, dims, ref rest @ ..] = integers else { return None };
        let (&in_order, mut lists) = rest.split_last()?;
        let n = usize::try_from(dims).ok().filter(|n| *n <= DIMS_MAX)?;
        let sizes = if counts.is_empty() { take(&mut lists, n as u64)? } else { counts };
        let (kinds, arguments, processes) = (take(&mut lists, n as u64)?, take(&mut lists, n as u64)?, take(&mut lists, n as u64)?);
        // Of the processes of the dimensions behind, so many share a place in this one.
        let place_in = |dim: usize| {
            let behind = processes.get(dim + 1..)?.iter().try_fold(rank, |left, count| left.checked_div(*count))?;
            behind.checked_rem(*processes.get(dim)?)
        };
        let (mut shown, mut stride) = (body, self.node(body).extent);
        for dim in dimensions(n, in_order) {
            let (&size, &count, place) = (sizes.get(dim)?, processes.get(dim)?, place_in(dim)?);
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
            let one = self.again(block, stride, shown)?;
            let blocks = self.again(whole, by(cycle)?, one)?;
            let rest = self.again(cut, stride, shown)?;
            let list = self.listed;
            self.put(by(first)?, blocks)?;
            self.put(by(last)?, rest)?;
            shown = self.parts(list)?;
            stride = by(size)?;
        }
        Some(shown)
    }
}

/// The dimensions of an array from the fastest to the slowest.
fn dimensions(n: usize, in_order: u64) -> impl Iterator<Item = usize> {
    (0..n).map(move |place| if in_order == order::FORTRAN { place } else { n - 1 - place })
}

/// Two lists, one behind the other.
struct Numbers<'a>(&'a [u64], &'a [u64]);

impl Numbers<'_> {
    fn len(&self) -> usize {
        self.0.len() + self.1.len()
    }

    fn get(&self, place: usize) -> Option<u64> {
        self.0.get(place).or_else(|| self.1.get(place.checked_sub(self.0.len())?)).copied()
    }
}
