//! Which ranks make a request, and which open a file together.

use crate::node::Who;
use crate::tables::{Comm, Group, Tables};

/// Whether `rank` of `processes` is one of them.
#[must_use]
pub fn takes_part(tables: &Tables, who: Who, rank: u32, processes: u32) -> bool {
    match who {
        Who::All => true,
        Who::Root => rank == 0,
        Who::AllButRoot => rank != 0,
        Who::Last => rank + 1 == processes,
        Who::AllButLast => rank + 1 != processes,
        Who::Group(group) => rank != 0 && tables.groups.get(usize::from(group)).is_some_and(|group| is_in(*group, rank, processes)),
    }
}

fn is_in(group: Group, rank: u32, processes: u32) -> bool {
    match group {
        Group::Span { low, high } => {
            let (place, across) = (u64::from(rank) << 16, u64::from(processes));
            u64::from(low) * across <= place && place < u64::from(high) * across
        }
        Group::Congruent { by, rest } => rank % by == rest,
    }
}

/// Which of the communicators of one kind a rank is in: ranks with equal numbers are in one.
#[must_use]
pub fn colour(comm: Comm, rank: u32) -> u32 {
    match comm {
        Comm::World => 0,
        Comm::Own => rank,
        Comm::Blocks(ranks) => rank / ranks.max(1),
        Comm::Congruent(by) => rank % by.max(1),
    }
}
