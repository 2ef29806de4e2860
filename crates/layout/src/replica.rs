//! Replicas: the bytes of a strided pattern, stored in the order in which the pattern accesses them.
//!
//! A pattern is nested loops over blocks: `base + sum(digit_d * stride_d)`, outermost loop first. A byte's place in the replica follows by
//! mixed-radix division (largest stride first), never from a flattened list; the loops' order then gives its rank.

use crate::check::{covers_all, regions};
use crate::format::{DIM, HOME, REGION, REPLICA, div_rem, record, u32_at, u64_at};
use crate::{
    Extents, GRANULE, LayoutError, Logical, MAX_DIMS, MAX_LOGICAL, Pieces, ReplicaOffset, Table,
    View,
};

const DIMS: usize = MAX_DIMS as usize;

/// One loop of a pattern, with the number of blocks that one of its steps covers.
#[derive(Clone, Copy, Debug, Default)]
struct Loop {
    stride: u64,
    count: u64,
    /// Blocks of all loops inside this one.
    inner: u64,
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
    /// First byte of its domain in the replica objects.
    pub domain_base: u64,
    dims: &'a [u8],
    table: Table<'a>,
}

/// A request that lies wholly in one block of a replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplicaHit {
    /// Number of the replica in the layout.
    pub index: usize,
    /// Where its bytes begin in the replica.
    pub offset: ReplicaOffset,
}

impl<'a> ReplicaRef<'a> {
    fn loops(&self) -> impl Iterator<Item = Loop> + use<'a> {
        let (dims, count) = (self.dims, self.dims.len() / DIM);
        let mut inner = 1;
        // From the innermost outwards, so that `inner` can grow.
        (0..count).rev().map(move |i| {
            let r = record::<DIM>(dims, i);
            let step = Loop {
                stride: u64_at(r, 0),
                count: u64_at(r, 8),
                inner,
            };
            inner *= step.count;
            step
        })
    }

    /// The `(stride, count)` of the loops, outermost first.
    pub fn dims(&self) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let dims = self.dims;
        (0..dims.len() / DIM)
            .map(move |i| record::<DIM>(dims, i))
            .map(|r| (u64_at(r, 0), u64_at(r, 8)))
    }

    /// The loops by stride, largest first, and how many there are.
    fn by_stride(&self) -> ([Loop; DIMS], usize) {
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

    /// Bytes of all blocks.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.loops()
            .fold(self.block, |bytes, step| bytes * step.count)
    }

    /// Where `[at, at + len)` lies when one block holds all of it.
    #[must_use]
    pub fn locate(&self, at: Logical, len: u64) -> Option<ReplicaOffset> {
        let mut rest = at.0.checked_sub(self.base)?;
        let mut rank = 0;
        let (loops, n) = self.by_stride();
        for step in loops.iter().take(n).filter(|l| l.count > 1) {
            let (digit, r) = div_rem(rest, step.stride);
            // Past the last step the byte may still lie in the last one, beyond its stride; containment decides below.
            let digit = if digit < step.count {
                digit
            } else {
                step.count - 1
            };
            rest = if digit == step.count - 1 {
                rest - digit * step.stride
            } else {
                r
            };
            rank += digit * step.inner;
        }
        let end = rest.checked_add(len)?;
        (len > 0 && end <= self.block).then(|| ReplicaOffset(rank * self.block + rest))
    }

    /// The logical byte that lies at `offset`; `None` past the end.
    #[must_use]
    pub fn inverse(&self, offset: ReplicaOffset) -> Option<Logical> {
        if offset.0 >= self.total() {
            return None;
        }
        let (rank, within) = div_rem(offset.0, self.block);
        let at = self.loops().fold(self.base + within, |at, step| {
            at + rank / step.inner % step.count * step.stride
        });
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
        if at.0.checked_add(len).is_some_and(|end| end <= self.total()) {
            len
        } else {
            0
        }
    }

    /// The replica's regions, in replica offsets; object offsets include the domain.
    #[must_use]
    pub fn regions(&self) -> Table<'a> {
        self.table
    }

    /// First byte after the windows that the replica can touch, in the replica objects.
    fn domain_end(&self) -> Option<u64> {
        let last = self.table.region_at(self.total().checked_sub(1)?)?;
        last.end()
            .checked_mul(2)?
            .checked_add(self.domain_base)
            .filter(|end| *end < 1 << 63)
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
        let part = |section: &'a [u8], at: usize, size: usize| -> &'a [u8] {
            let (first, count) = (
                u32_at(r, at) as usize * size,
                u32_at(r, at + 4) as usize * size,
            );
            section
                .get(first..)
                .and_then(|s| s.get(..count))
                .unwrap_or(&[])
        };
        let domain_base = u64_at(r, 32);
        Some(ReplicaRef {
            index,
            id: u32_at(r, 44),
            base: u64_at(r, 0),
            block: u64_at(r, 8),
            is_home: u32_at(r, 40) & HOME != 0,
            domain_base,
            dims: part(self.dims, 16, DIM),
            table: Table::new(
                part(self.replica_regions, 24, REGION),
                domain_base,
                self.places,
            ),
        })
    }

    /// The replica whose smallest contiguous block holds all of `[at, at + len)` (replication.md, "Choice": the finest-grained
    /// wins; among equals the first). Linear in the number of replicas.
    #[must_use]
    pub fn replica_lookup(&self, at: Logical, len: u64) -> Option<ReplicaHit> {
        let mut best: Option<(u64, ReplicaHit)> = None;
        for index in 0..self.replica_count() {
            // Cheap filter first: the block must be long enough and finer than the best so far.
            let r = record::<REPLICA>(self.replicas, index);
            let (base, block) = (u64_at(r, 0), u64_at(r, 8));
            if at.0 < base || len > block || best.is_some_and(|(b, _)| b <= block) {
                continue;
            }
            if let Some(offset) = self
                .replica(index)
                .and_then(|replica| replica.locate(at, len))
            {
                best = Some((block, ReplicaHit { index, offset }));
            }
        }
        best.map(|(_, hit)| hit)
    }
}

pub(crate) fn check(view: &View<'_>) -> Result<(), LayoutError> {
    let (mut dims, mut rows, mut domain) = (0u64, 0u64, 0u64);
    for index in 0..view.replica_count() {
        let fail = |reason| {
            Err(LayoutError::Replica {
                index: index as u64,
                reason,
            })
        };
        let r = record::<REPLICA>(view.replicas, index);
        if u64::from(u32_at(r, 16)) != dims || u64::from(u32_at(r, 24)) != rows {
            return fail("its dims and regions must follow those of the replica before it");
        }
        if u32_at(r, 20) > MAX_DIMS {
            return fail("at most 8 dims; join loops that continue each other");
        }
        dims += u64::from(u32_at(r, 20));
        rows += u64::from(u32_at(r, 28));
        if dims > (view.dims.len() / DIM) as u64
            || rows > (view.replica_regions.len() / REGION) as u64
        {
            return fail("it names more dims or regions than there are");
        }
        if u32_at(r, 40) > HOME || u64_at(r, 48) != 0 || u64_at(r, 56) != 0 {
            return fail("only flag 1 (home) is known; use the program that wrote it");
        }
        let Some(replica) = view.replica(index) else {
            return fail("it does not exist");
        };
        blocks(&replica).or_else(fail)?;
        let first = (rows as usize - replica.table.len()) * REGION;
        let section = view
            .replica_regions
            .get(first..)
            .and_then(|s| s.get(..replica.table.len() * REGION))
            .unwrap_or(&[]);
        regions("replica regions", section, &view.places)?;
        covers_all("replica regions", &replica.table)?;
        if (0..replica.table.len())
            .any(|i| replica.table.region(i).is_some_and(|r| r.is_original()))
        {
            return fail("its regions must be striped: a replica has no plain file");
        }
        if replica.domain_base % GRANULE != 0 || replica.domain_base < domain {
            return fail(
                "domain base must be a multiple of 4096 and not lie in the domain of the replica before it; order replicas by domain base",
            );
        }
        match replica.domain_end() {
            Some(end) => domain = end,
            None => {
                return fail(
                    "its domain must end below object byte 2^63; use a lower domain base or shorter regions",
                );
            }
        }
    }
    if dims != (view.dims.len() / DIM) as u64
        || rows != (view.replica_regions.len() / REGION) as u64
    {
        return Err(LayoutError::Header {
            reason: "there are dims or replica regions that belong to no replica",
        });
    }
    Ok(())
}

/// Blocks must not overlap: by stride, each loop must step over all that the loops inside cover. Sufficient, and what makes the division exact.
fn blocks(replica: &ReplicaRef<'_>) -> Result<(), &'static str> {
    if replica.block == 0 || replica.block > MAX_LOGICAL || replica.base > MAX_LOGICAL {
        return Err("block must be positive, block and base at most 2^62");
    }
    let mut bytes = replica.block;
    for i in 0..replica.dims.len() / DIM {
        let count = u64_at(record::<DIM>(replica.dims, i), 8);
        bytes = match bytes.checked_mul(count) {
            Some(b) if count > 0 && b <= MAX_LOGICAL => b,
            _ => return Err("counts must be positive and all blocks together at most 2^62 bytes"),
        };
    }
    let (loops, n) = replica.by_stride();
    let mut reach = replica.block;
    for step in loops.iter().take(n).rev().filter(|l| l.count > 1) {
        if step.stride < reach {
            return Err(
                "its blocks overlap; each stride must be at least as long as what the smaller strides cover",
            );
        }
        let Some(far) = step
            .stride
            .checked_mul(step.count - 1)
            .and_then(|far| far.checked_add(reach))
        else {
            return Err("its last block must end at or below byte 2^62");
        };
        reach = far;
    }
    match replica.base.checked_add(reach) {
        Some(end) if end <= MAX_LOGICAL => Ok(()),
        _ => Err("its last block must end at or below byte 2^62"),
    }
}
