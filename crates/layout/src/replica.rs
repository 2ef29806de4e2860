//! Replicas: the bytes of a strided pattern, stored in the order in which the pattern accesses them.
//!
//! A pattern is nested loops over blocks: `base + sum(digit_d * stride_d)`, outermost loop first. A byte's place in the replica follows by
//! mixed-radix division (largest stride first), never from a flattened list; the loops' order then gives its rank.

use crate::format::{DIM, HOME, INVALIDATED, REGION, REPLICA, div_rem, record, u32_at, u64_at};
use crate::{Extents, Logical, MAX_DIMS, Pieces, ReplicaOffset, Table, View};

const DIMS: usize = MAX_DIMS as usize;

/// One loop of a pattern, with the number of blocks that one of its steps covers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Loop {
    pub(crate) stride: u64,
    pub(crate) count: u64,
    /// Blocks of all loops inside this one.
    inner: u64,
}

/// What a write of the file does to a copy that holds bytes of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnWrite {
    /// The copy is written, too.
    #[default]
    Update,
    /// Those bytes of it are stale from then on.
    Invalidate,
}

/// A replica in its mapped form.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaRef<'a> {
    /// Number in the layout.
    pub index: usize,
    /// The store's id of the replica.
    pub id: u32,
    /// First logical byte of the first block.
    pub base: u64,
    /// Bytes of a block.
    pub block: u64,
    /// Whether the replica is the home of its bytes, not a copy.
    pub is_home: bool,
    /// What a write does to a copy; of a home [`OnWrite::Update`].
    pub on_write: OnWrite,
    /// First byte of its domain in the replica objects.
    pub domain_base: u64,
    pub(crate) dims: &'a [u8],
    pub(crate) table: Table<'a>,
}

/// A request that lies wholly in one block of a replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplicaHit {
    /// Number of the replica in the layout.
    pub index: usize,
    /// Where its bytes begin in the replica.
    pub offset: ReplicaOffset,
}

/// Bytes of a replica that a range of the file holds: they lie in one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overlap {
    /// The first of them in the file.
    pub at: Logical,
    /// Bytes.
    pub len: u64,
    /// The first of them in the replica.
    pub offset: ReplicaOffset,
}

/// The overlaps of a replica with a range of the file, in the file's order.
#[derive(Clone, Debug)]
pub struct Overlaps {
    base: u64,
    block: u64,
    loops: [Loop; DIMS],
    at: u64,
    end: u64,
}

impl Overlaps {
    /// Which step each loop is at in the last block that begins at or before `rest` (from the base on), where it begins, and its number.
    fn block_before(&self, rest: u64) -> ([u64; DIMS], u64, u64) {
        let (mut digits, mut start, mut rank) = ([0; DIMS], 0, 0);
        for (digit, step) in digits.iter_mut().zip(&self.loops).filter(|(_, step)| step.count > 1) {
            *digit = steps(rest - start, step.stride).min(step.count - 1);
            start += *digit * step.stride;
            rank += *digit * step.inner;
        }
        (digits, start, rank)
    }

    /// Where the block after the one at these steps begins, from the base on.
    fn block_after(&self, mut digits: [u64; DIMS], mut start: u64) -> Option<u64> {
        for (digit, step) in digits.iter_mut().zip(&self.loops).rev() {
            if *digit + 1 < step.count {
                return Some(start + step.stride);
            }
            start -= *digit * step.stride;
        }
        None
    }
}

impl Iterator for Overlaps {
    type Item = Overlap;

    fn next(&mut self) -> Option<Overlap> {
        while self.at < self.end {
            self.at = self.at.max(self.base);
            let (digits, start, rank) = self.block_before(self.at - self.base);
            let within = self.at - self.base - start;
            if within < self.block {
                let (at, len) = (self.at, (self.block - within).min(self.end.saturating_sub(self.at)));
                self.at += len;
                return (len > 0).then_some(Overlap { at: Logical(at), len, offset: ReplicaOffset(rank * self.block + within) });
            }
            self.at = self.block_after(digits, start).map_or(u64::MAX, |start| self.base + start);
        }
        None
    }
}

/// Where the blocks of a replica lie: all that a look-up needs of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks<'a> {
    pub(crate) base: u64,
    pub(crate) block: u64,
    dims: &'a [u8],
}

/// The blocks of all replicas of a layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patterns<'a> {
    replicas: &'a [u8],
    dims: &'a [u8],
}

impl<'a> Patterns<'a> {
    pub(crate) fn of(view: &View<'a>) -> Patterns<'a> {
        Patterns { replicas: view.replicas, dims: view.dims }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.replicas.len() / REPLICA
    }

    /// Bytes of a block of replica `index`; 0 past the last one.
    #[inline]
    pub(crate) fn block(&self, index: usize) -> u64 {
        u64_at(record::<REPLICA>(self.replicas, index), 8)
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<Blocks<'a>> {
        if index >= self.len() {
            return None;
        }
        let r = record::<REPLICA>(self.replicas, index);
        Some(Blocks { base: u64_at(r, 0), block: u64_at(r, 8), dims: part(self.dims, u32_at(r, 16), u32_at(r, 20), DIM) })
    }
}

/// `count` records of `size` bytes, from number `first` on.
#[inline]
fn part(section: &[u8], first: u32, count: u32, size: usize) -> &[u8] {
    section.get(first as usize * size..).and_then(|s| s.get(..count as usize * size)).unwrap_or(&[])
}

/// Whole steps of `stride` in `rest`. Strides of arrays are mostly powers of two, and a shift is cheaper than a division.
#[inline]
pub(crate) fn steps(rest: u64, stride: u64) -> u64 {
    if stride.is_power_of_two() { rest >> stride.trailing_zeros() } else { div_rem(rest, stride).0 }
}

impl<'a> Blocks<'a> {
    fn loops(&self) -> impl Iterator<Item = Loop> + use<'a> {
        let (dims, count) = (self.dims, self.dims.len() / DIM);
        let mut inner = 1;
        // From the innermost outwards, so that `inner` can grow.
        (0..count).rev().map(move |i| {
            let r = record::<DIM>(dims, i);
            let step = Loop { stride: u64_at(r, 0), count: u64_at(r, 8), inner };
            inner *= step.count;
            step
        })
    }

    /// The loops by stride, largest first, and how many there are.
    pub(crate) fn by_stride(&self) -> ([Loop; DIMS], usize) {
        let mut sorted = [Loop::default(); DIMS];
        let mut n = 0;
        for (place, step) in sorted.iter_mut().zip(self.loops()) {
            *place = step;
            n += 1;
        }
        if let Some(used) = sorted.get_mut(..n) {
            used.sort_unstable_by_key(|l| core::cmp::Reverse(l.stride));
        }
        (sorted, n)
    }

    /// First logical byte after the last block.
    pub(crate) fn end(&self) -> u64 {
        let start = self.base.saturating_add(self.block);
        self.loops().fold(start, |end, step| end.saturating_add(step.count.saturating_sub(1).saturating_mul(step.stride)))
    }

    /// [`ReplicaRef::locate`].
    #[inline]
    pub(crate) fn locate(&self, at: u64, len: u64) -> Option<ReplicaOffset> {
        let mut rest = at.checked_sub(self.base)?;
        if len == 0 || len > self.block {
            return None;
        }
        let (mut rank, mut outer) = (0, u64::MAX);
        for r in self.dims.as_chunks::<DIM>().0 {
            let (stride, count) = (u64_at(r, 0), u64_at(r, 8));
            if count <= 1 {
                continue;
            }
            if stride > outer {
                return self.locate_in_any_order(at, len);
            }
            outer = stride;
            // Past the last step the byte may still lie in the last one, beyond its stride; containment decides below.
            let digit = steps(rest, stride).min(count - 1);
            rest -= digit * stride;
            rank = rank * count + digit;
        }
        (rest <= self.block - len).then(|| ReplicaOffset(rank * self.block + rest))
    }

    /// As [`Blocks::locate`] where an inner loop has the larger stride: the digits come by stride, the rank by the loops' order.
    fn locate_in_any_order(&self, at: u64, len: u64) -> Option<ReplicaOffset> {
        let mut rest = at.checked_sub(self.base)?;
        let mut rank = 0;
        let (loops, n) = self.by_stride();
        for step in loops.iter().take(n).filter(|l| l.count > 1) {
            let digit = steps(rest, step.stride).min(step.count - 1);
            rest -= digit * step.stride;
            rank += digit * step.inner;
        }
        let end = rest.checked_add(len)?;
        (len > 0 && end <= self.block).then(|| ReplicaOffset(rank * self.block + rest))
    }
}

impl<'a> ReplicaRef<'a> {
    pub(crate) fn blocks(&self) -> Blocks<'a> {
        Blocks { base: self.base, block: self.block, dims: self.dims }
    }

    /// The `(stride, count)` of the loops, outermost first.
    pub fn dims(&self) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let dims = self.dims;
        (0..dims.len() / DIM).map(move |i| record::<DIM>(dims, i)).map(|r| (u64_at(r, 0), u64_at(r, 8)))
    }

    /// Bytes of all blocks.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.blocks().loops().fold(self.block, |bytes, step| bytes * step.count)
    }

    /// Where `[at, at + len)` lies when one block holds all of it.
    #[must_use]
    pub fn locate(&self, at: Logical, len: u64) -> Option<ReplicaOffset> {
        self.blocks().locate(at.0, len)
    }

    /// Which of its bytes `[at, at + len)` of the file holds, block by block; `at + len` is at most 2^63.
    #[must_use]
    pub fn overlaps(&self, at: Logical, len: u64) -> Overlaps {
        let (loops, _) = self.blocks().by_stride();
        Overlaps { base: self.base, block: self.block, loops, at: at.0, end: at.0.saturating_add(len) }
    }

    /// The logical byte that lies at `offset`; `None` past the end.
    #[must_use]
    pub fn inverse(&self, offset: ReplicaOffset) -> Option<Logical> {
        if offset.0 >= self.total() {
            return None;
        }
        let (rank, within) = div_rem(offset.0, self.block);
        let at = self.blocks().loops().fold(self.base + within, |at, step| at + rank / step.inner % step.count * step.stride);
        Some(Logical(at))
    }

    /// Cuts replica bytes into pieces; [`crate::Piece::logical`] is then a replica offset, and the object is the target's replica object.
    #[must_use]
    pub fn pieces(&self, at: ReplicaOffset, len: u64) -> Pieces<'a> {
        self.table.pieces(at.0, self.inside(at, len))
    }

    /// As [`ReplicaRef::pieces`], the contiguous object ranges.
    #[must_use]
    pub fn extents(&self, at: ReplicaOffset, len: u64) -> Extents<'a> {
        self.table.extents(at.0, self.inside(at, len))
    }

    /// `len`, or 0 (an empty request) when the request passes the replica's end.
    fn inside(&self, at: ReplicaOffset, len: u64) -> u64 {
        if at.0.checked_add(len).is_some_and(|end| end <= self.total()) { len } else { 0 }
    }

    /// The replica's regions, in replica offsets; object offsets include the domain.
    #[must_use]
    pub fn regions(&self) -> Table<'a> {
        self.table
    }

    /// First byte after the windows that the replica can touch, in the replica objects.
    pub(crate) fn domain_end(&self) -> Option<u64> {
        let last = self.table.region_at(self.total().checked_sub(1)?)?;
        last.end().checked_add(self.domain_base).filter(|end| *end < 1 << 63)
    }
}

impl<'a> View<'a> {
    /// Number of replicas.
    #[must_use]
    pub fn replica_count(&self) -> usize {
        self.replicas.len() / REPLICA
    }

    /// Replica number `index`.
    #[must_use]
    pub fn replica(&self, index: usize) -> Option<ReplicaRef<'a>> {
        if index >= self.replica_count() {
            return None;
        }
        let r = record::<REPLICA>(self.replicas, index);
        let domain_base = u64_at(r, 32);
        Some(ReplicaRef {
            index,
            id: u32_at(r, 44),
            base: u64_at(r, 0),
            block: u64_at(r, 8),
            is_home: u32_at(r, 40) & HOME != 0,
            on_write: if u32_at(r, 40) & INVALIDATED == 0 { OnWrite::Update } else { OnWrite::Invalidate },
            domain_base,
            dims: part(self.dims, u32_at(r, 16), u32_at(r, 20), DIM),
            table: Table::new(part(self.replica_regions, u32_at(r, 24), u32_at(r, 28), REGION), domain_base, self.places),
        })
    }

    /// The replica whose smallest contiguous block holds all of `[at, at + len)` (replication.md, "Choice": the finest-grained
    /// wins; among equals the first). Linear in the number of replicas; [`crate::ReplicaIndex`] is not.
    #[must_use]
    pub fn replica_lookup(&self, at: Logical, len: u64) -> Option<ReplicaHit> {
        let patterns = Patterns::of(self);
        let mut best: Option<(u64, ReplicaHit)> = None;
        for index in 0..patterns.len() {
            // Cheap filter first: the block must be long enough and finer than the best so far.
            let Some(blocks) = patterns.get(index).filter(|b| len <= b.block && best.is_none_or(|(finest, _)| b.block < finest)) else {
                continue;
            };
            if let Some(offset) = blocks.locate(at.0, len) {
                best = Some((blocks.block, ReplicaHit { index, offset }));
            }
        }
        best.map(|(_, hit)| hit)
    }
}
