//! Room on the targets: what they hold, what a move adds and frees, and an order of the moves in which no target ever holds
//! more than it may, both copies counted.

use std::collections::BTreeMap;
use std::path::Path;

use stripewise_layout::{Span, Table};
use stripewise_target::interface::Target;

use super::error::{Result, StoreError};
use super::metadata::ranges::overlapping;
use super::objects;
use super::store::Store;
use crate::room::{Seen, share};

/// Spans that one group moves at most: their publishing is shared.
const GROUP_SPANS: usize = 64;
/// Data bytes after which a group is closed.
pub const GROUP_BYTES: u64 = 64 << 20;

/// Bytes that the objects of all files have allocated on each target.
///
/// # Errors
/// `Io`.
pub fn used_bytes(store: &Store<'_>) -> Result<Vec<u64>> {
    (0..store.targets.len() as u32).map(|target| objects::used_bytes(store, target)).collect()
}

/// Bytes that each target can still take: to its capacity, or what its file system has free; none where it cannot be looked at, so that moves between
/// others go on.
///
/// # Errors
/// None now.
pub fn free_bytes(store: &Store<'_>) -> Result<Vec<u64>> {
    let mut free = Vec::with_capacity(store.targets.len());
    for (target, index) in store.targets.iter().zip(0..) {
        let Ok(place) = objects::target(store, index) else {
            free.push(0);
            continue;
        };
        let (Ok(used), Ok(disk)) = (place.used_bytes(), place.free_bytes()) else {
            free.push(0);
            continue;
        };
        free.push(if target.capacity_bytes == 0 { disk } else { disk.min(target.capacity_bytes.saturating_sub(used)) });
    }
    Ok(free)
}

/// Whether every target has room for its part of the `data` of a file of `size` bytes; `what` and `cure` end the sentence that names the one that has not.
///
/// # Errors
/// `NoSpace`, `Io`.
pub fn check_room(store: &Store<'_>, path: &Path, home: Table<'_>, size: u64, data: &[(u64, u64)], (what, cure): (&str, &str)) -> Result<()> {
    let free = free_bytes(store)?;
    for (target, bytes) in bytes_by_target(home, 0, size, data) {
        let room = free.get(target as usize).copied().unwrap_or(0);
        if bytes > room {
            let (name, short) = (&store.target(target)?.name, bytes - room);
            return Err(StoreError::NoSpace(format!("{}: target {name} has no room for {what}: {} short; {cure}", path.display(), size_text(short))));
        }
    }
    Ok(())
}

/// Bytes that each target can take when all do ([`share`]); `None` where it cannot be looked at.
///
/// # Errors
/// None now.
pub fn room_bytes(store: &Store<'_>) -> Result<Vec<Option<u64>>> {
    let see = |index: u32, capacity: u64| {
        let target = objects::target(store, index).ok()?;
        let device = target.pool().ok()?.unwrap_or(u64::MAX - u64::from(index));
        let left = if capacity == 0 { u64::MAX } else { capacity.saturating_sub(target.used_bytes().ok()?) };
        Some(Seen { device, free: target.free_bytes().ok()?, left })
    };
    let seen: Vec<Option<Seen>> = store.targets.iter().zip(0..).map(|(target, index)| see(index, target.capacity_bytes)).collect();
    let known: Vec<Seen> = seen.iter().flatten().copied().collect();
    let mut room = vec![0; known.len()];
    share(&known, &mut room);
    let mut room = room.into_iter();
    Ok(seen.iter().map(|seen| seen.and_then(|_| room.next())).collect())
}

/// What moving one span takes and gives back, in bytes of data per target.
#[derive(Clone, Debug)]
pub struct SpanCost {
    pub span: Span,
    /// Bytes that land on each target.
    pub incoming: BTreeMap<u32, u64>,
    /// Bytes that leave each target once the old slices are punched.
    pub outgoing: BTreeMap<u32, u64>,
}

impl SpanCost {
    /// Bytes of data that move.
    pub fn bytes(&self) -> u64 {
        self.incoming.values().sum()
    }
}

/// Bytes of the logical ranges `data` that `table` puts on each target.
pub fn bytes_by_target(table: Table<'_>, from: u64, to: u64, data: &[(u64, u64)]) -> BTreeMap<u32, u64> {
    let mut sums = BTreeMap::new();
    for (a, b) in overlapping(data, from, to) {
        for extent in table.extents(a, b - a) {
            *sums.entry(extent.target).or_default() += extent.len;
        }
    }
    sums
}

/// A size in binary units, rounded up so that nothing short is told as nothing.
fn size_text(bytes: u64) -> String {
    let unit = |shift: u32, name: &str| {
        let tenths = (u128::from(bytes) * 10).div_ceil(1 << shift);
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    };
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => unit(10, "KiB"),
        1_048_576..1_073_741_824 => unit(20, "MiB"),
        1_073_741_824..1_099_511_627_776 => unit(30, "GiB"),
        _ => unit(40, "TiB"),
    }
}

struct Schedule<'c> {
    costs: &'c [SpanCost],
    free: Vec<u64>,
    groups: Vec<Vec<usize>>,
    open: Vec<usize>,
    open_bytes: u64,
    open_in: BTreeMap<u32, u64>,
}

/// An order of moves.
pub struct Order {
    /// Groups of neighbouring spans (indices), each of which fits when its turn comes.
    pub groups: Vec<Vec<usize>>,
    /// Spans that fit in the end, but for which old and new copy have no room side by side: they need a detour.
    pub crowded: Vec<usize>,
    /// Bytes that each target can still take when the groups have moved.
    pub free: Vec<u64>,
}

/// Cuts the spans (sorted by start) into groups of neighbours, in an order in which every group fits when its turn comes. When not
/// everything fits at once, what frees the scarce targets goes first.
///
/// # Errors
/// `NoSpace` naming the target when the layout does not fit even in the end, before anything has been changed.
pub fn schedule(store: &Store<'_>, costs: &[SpanCost], free: Vec<u64>) -> Result<Order> {
    let mut total: BTreeMap<u32, u64> = BTreeMap::new();
    for (target, bytes) in costs.iter().flat_map(|c| &c.incoming) {
        *total.entry(*target).or_default() += bytes;
    }
    let scarce: Vec<u32> = total.iter().filter(|(t, bytes)| free.get(**t as usize).is_some_and(|f| f < bytes)).map(|(t, _)| *t).collect();
    let on_scarce = |m: &BTreeMap<u32, u64>| scarce.iter().filter_map(|t| m.get(t)).sum::<u64>();
    let releases = |c: &SpanCost| on_scarce(&c.outgoing) >= on_scarce(&c.incoming);
    let mut plan = Schedule { costs, free, groups: Vec::new(), open: Vec::new(), open_bytes: 0, open_in: BTreeMap::new() };
    let mut left: Vec<usize> = (0..costs.len()).collect();
    while !left.is_empty() {
        let before = left.len();
        if !scarce.is_empty() {
            left = plan.pass(left, &releases);
        }
        if left.len() == before {
            left = plan.pass(left, &|_| true);
        }
        if left.len() == before {
            break;
        }
    }
    if !left.is_empty() {
        plan.fits_in_the_end(store, &left)?;
    }
    Ok(Order { groups: plan.groups, crowded: left, free: plan.free })
}

/// The targets with room for `bytes` each, roomiest first, at most as many as `most`.
pub fn roomy(free: &[u64], bytes: u64, most: usize) -> Vec<u32> {
    let mut targets: Vec<(u64, u32)> = free.iter().zip(0u32..).filter(|(f, _)| **f >= bytes).map(|(f, t)| (*f, t)).collect();
    targets.sort_by_key(|(f, t)| (std::cmp::Reverse(*f), *t));
    targets.into_iter().take(most).map(|(_, t)| t).collect()
}

/// What targets have free once bytes have come to some of them and left others.
pub fn give_and_take(free: &mut [u64], incoming: &BTreeMap<u32, u64>, outgoing: &BTreeMap<u32, u64>) {
    for (target, bytes) in incoming {
        if let Some(free) = free.get_mut(*target as usize) {
            *free = free.saturating_sub(*bytes);
        }
    }
    for (target, bytes) in outgoing {
        if let Some(free) = free.get_mut(*target as usize) {
            *free = free.saturating_add(*bytes);
        }
    }
}

impl Schedule<'_> {
    /// Places what it may and can, in order; returns the rest.
    fn pass(&mut self, left: Vec<usize>, may: &dyn Fn(&SpanCost) -> bool) -> Vec<usize> {
        let mut rest = Vec::new();
        for i in left {
            let Some(cost) = self.costs.get(i) else { continue };
            if !may(cost) {
                rest.push(i);
                continue;
            }
            let joins = self.open.last().and_then(|l| self.costs.get(*l)).is_some_and(|l| l.span.end() == cost.span.start);
            if !joins || self.open.len() >= GROUP_SPANS || self.open_bytes >= GROUP_BYTES || self.lacks(cost).is_some() {
                self.close();
            }
            if self.lacks(cost).is_some() {
                rest.push(i);
                continue;
            }
            for (target, bytes) in &cost.incoming {
                *self.open_in.entry(*target).or_default() += bytes;
            }
            self.open_bytes += cost.bytes();
            self.open.push(i);
        }
        self.close();
        rest
    }

    /// The target that has no room for a span beside the open group, and the bytes it is short of.
    fn lacks(&self, cost: &SpanCost) -> Option<(u32, u64)> {
        cost.incoming.iter().find_map(|(target, bytes)| {
            let need = bytes + self.open_in.get(target).copied().unwrap_or(0);
            let free = self.free.get(*target as usize).copied().unwrap_or(0);
            (need > free).then(|| (*target, need - free))
        })
    }

    fn close(&mut self) {
        for i in &self.open {
            let Some(cost) = self.costs.get(*i) else { continue };
            give_and_take(&mut self.free, &cost.incoming, &cost.outgoing);
        }
        if !self.open.is_empty() {
            self.groups.push(std::mem::take(&mut self.open));
        }
        self.open_in.clear();
        self.open_bytes = 0;
    }

    /// Whether the spans that are left would fit if their old copies were gone.
    fn fits_in_the_end(&self, store: &Store<'_>, left: &[usize]) -> Result<()> {
        let mut balance: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for cost in left.iter().filter_map(|i| self.costs.get(*i)) {
            cost.incoming.iter().for_each(|(t, bytes)| balance.entry(*t).or_default().0 += bytes);
            cost.outgoing.iter().for_each(|(t, bytes)| balance.entry(*t).or_default().1 += bytes);
        }
        for (target, (incoming, outgoing)) in balance {
            let room = self.free.get(target as usize).copied().unwrap_or(0).saturating_add(outgoing);
            if incoming > room {
                let target = store.target(target)?;
                let cure = if target.capacity_bytes == 0 { "" } else { "raise its capacity_bytes, " };
                return Err(StoreError::NoSpace(format!(
                    "target {} has no room for this layout: {} short; {cure}free space there, or choose a layout that puts less on it (plan again, where a plan chose it)",
                    target.name,
                    size_text(incoming - room)
                )));
            }
        }
        Ok(())
    }
}
