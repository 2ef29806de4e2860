//! What [`View::parse`] proves about replicas: blocks do not overlap, domains do not, and no sum overflows.

use crate::check::{covers_all, regions};
use crate::format::{DIM, INVALIDATED, REGION, REPLICA, record, u32_at, u64_at};
use crate::replica::ReplicaRef;
use crate::{GRANULE, LayoutError, MAX_DIMS, MAX_LOGICAL, View};

pub(crate) fn check(view: &View<'_>) -> Result<(), LayoutError> {
    let (mut dims, mut rows, mut domain) = (0u64, 0u64, 0u64);
    for index in 0..view.replica_count() {
        let fail = |reason| Err(LayoutError::Replica { index: index as u64, reason });
        let r = record::<REPLICA>(view.replicas, index);
        if u64::from(u32_at(r, 16)) != dims || u64::from(u32_at(r, 24)) != rows {
            return fail("its dims and regions must follow those of the replica before it");
        }
        if u32_at(r, 20) > MAX_DIMS {
            return fail("at most 8 dims; join loops that continue each other");
        }
        dims += u64::from(u32_at(r, 20));
        rows += u64::from(u32_at(r, 28));
        if dims > (view.dims.len() / DIM) as u64 || rows > (view.replica_regions.len() / REGION) as u64 {
            return fail("it names more dims or regions than there are");
        }
        // Both together are none: a home is what writes write.
        if u32_at(r, 40) > INVALIDATED || u64_at(r, 48) != 0 || u64_at(r, 56) != 0 {
            return fail("only flag 1 (home) or 2 (stale after a write) is known; use the program that wrote it");
        }
        let Some(replica) = view.replica(index) else {
            return fail("it does not exist");
        };
        blocks(&replica).or_else(fail)?;
        let first = (rows as usize - replica.table.len()) * REGION;
        let section = view.replica_regions.get(first..).and_then(|s| s.get(..replica.table.len() * REGION)).unwrap_or(&[]);
        regions("replica regions", section, &view.places)?;
        covers_all("replica regions", &replica.table)?;
        if (0..replica.table.len()).any(|i| replica.table.region(i).is_some_and(|r| r.is_original())) {
            return fail("its regions must be striped: a replica has no plain file");
        }
        if replica.domain_base % GRANULE != 0 || replica.domain_base < domain {
            return fail("domain base must be a multiple of 4096 and not lie in the domain of the replica before it; order replicas by domain base");
        }
        match replica.domain_end() {
            Some(end) => domain = end,
            None => {
                return fail("its domain must end below object byte 2^63; use a lower domain base or shorter regions");
            }
        }
    }
    if dims != (view.dims.len() / DIM) as u64 || rows != (view.replica_regions.len() / REGION) as u64 {
        return Err(LayoutError::Header { reason: "there are dims or replica regions that belong to no replica" });
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
    let (loops, n) = replica.blocks().by_stride();
    let mut reach = replica.block;
    for step in loops.iter().take(n).rev().filter(|l| l.count > 1) {
        if step.stride < reach {
            return Err("its blocks overlap; each stride must be at least as long as what the smaller strides cover");
        }
        let Some(far) = step.stride.checked_mul(step.count - 1).and_then(|far| far.checked_add(reach)) else {
            return Err("its last block must end at or below byte 2^62");
        };
        reach = far;
    }
    match replica.base.checked_add(reach) {
        Some(end) if end <= MAX_LOGICAL => Ok(()),
        _ => Err("its last block must end at or below byte 2^62"),
    }
}
