//! Is a history of reads and writes of one block linearizable? Every write has a value of its own, so the answer needs no search: the operations on one
//! value form a cluster, and only its zone counts, from the first return in it to the last invocation (Gibbons and Korach, "Testing shared memories",
//! SIAM J. Comput. 26(4), 1997, theorem 4.4: no two forward zones meet, and no backward zone lies inside a forward one).

use std::collections::HashMap;

/// The time of what never returned: a killed write may have taken effect at any time, or not at all.
pub const NEVER: u64 = u64::MAX;

/// One operation on one block. Times are positions in the history, from 1 on, no two the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Op {
    pub block: u64,
    pub is_write: bool,
    pub value: u64,
    pub invoked: u64,
    pub returned: u64,
}

#[derive(Clone, Copy)]
struct Cluster {
    written: u64,
    first_return: u64,
    last_invocation: u64,
    is_read: bool,
}

/// What is wrong with the history of a block that held `initial` before it; none when it is linearizable.
pub fn violation(block: u64, initial: u64, ops: &[Op]) -> Option<String> {
    let mut clusters = HashMap::from([(initial, Cluster { written: 0, first_return: 0, last_invocation: 0, is_read: false })]);
    let of_block = || ops.iter().filter(|op| op.block == block);
    for op in of_block().filter(|op| op.is_write) {
        clusters.insert(op.value, Cluster { written: op.invoked, first_return: op.returned, last_invocation: op.invoked, is_read: false });
    }
    for op in of_block().filter(|op| !op.is_write && op.returned != NEVER) {
        let Some(cluster) = clusters.get_mut(&op.value) else {
            return Some(format!("block {block}: a read returned {}, which nobody wrote", op.value));
        };
        if op.returned < cluster.written {
            return Some(format!("block {block}: {} was read before it was written", op.value));
        }
        cluster.first_return = cluster.first_return.min(op.returned);
        cluster.last_invocation = cluster.last_invocation.max(op.invoked);
        cluster.is_read = true;
    }
    let all: Vec<(u64, Cluster)> = clusters.into_iter().filter(|(_, c)| c.is_read || c.first_return != NEVER).collect();
    let mut forward: Vec<&(u64, Cluster)> = all.iter().filter(|(_, c)| c.first_return < c.last_invocation).collect();
    forward.sort_by_key(|(_, c)| c.first_return);
    for pair in forward.windows(2) {
        if pair[1].1.first_return < pair[0].1.last_invocation {
            return Some(format!("block {block}: {} and {} were each read after the other", pair[0].0, pair[1].0));
        }
    }
    for (value, c) in all.iter().filter(|(_, c)| c.first_return >= c.last_invocation) {
        if let Some((older, _)) = forward.iter().find(|(_, f)| f.first_return < c.last_invocation && c.first_return < f.last_invocation) {
            return Some(format!("block {block}: the write of {value} was lost, {older} was read after it"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(value: u64, invoked: u64, returned: u64) -> Op {
        Op { block: 0, is_write: true, value, invoked, returned }
    }

    fn read(value: u64, invoked: u64, returned: u64) -> Op {
        Op { is_write: false, ..write(value, invoked, returned) }
    }

    #[test]
    fn a_read_returns_the_last_write_or_one_under_way() {
        assert_eq!(violation(0, 9, &[read(9, 1, 2), write(1, 3, 6), read(9, 4, 5), read(1, 7, 8)]), None);
        assert_eq!(violation(0, 9, &[write(1, 1, 6), write(2, 2, 5), read(1, 3, 4), read(2, 7, 8)]), None);
        assert!(violation(0, 9, &[write(1, 1, 2), read(9, 3, 4)]).is_some());
        assert!(violation(0, 9, &[write(1, 1, 2), write(2, 3, 4), read(1, 5, 6)]).is_some());
        assert!(violation(0, 9, &[write(1, 5, 6), read(1, 1, 2)]).is_some());
        assert!(violation(0, 9, &[read(7, 1, 2)]).is_some());
        assert_eq!(violation(1, 9, &[read(7, 1, 2)]), None);
    }

    #[test]
    fn two_reads_never_see_two_writes_in_opposite_orders() {
        let (one, other) = (write(1, 1, 20), write(2, 2, 21));
        assert_eq!(violation(0, 9, &[one, other, read(1, 3, 4), read(2, 5, 6)]), None);
        assert!(violation(0, 9, &[one, other, read(1, 3, 4), read(2, 5, 6), read(1, 7, 8)]).is_some());
    }

    #[test]
    fn a_killed_write_may_have_taken_effect_or_not() {
        let killed = write(1, 1, NEVER);
        assert_eq!(violation(0, 9, &[killed, read(9, 2, 3), read(1, 4, 5)]), None);
        assert_eq!(violation(0, 9, &[killed, read(9, 2, 3)]), None);
        assert!(violation(0, 9, &[killed, read(1, 2, 3), read(9, 4, 5)]).is_some());
    }
}
