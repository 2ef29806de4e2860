//! What a command costs beside the arm: its overhead, by what it asks for and what came before it, and the way of its data to or from the host.

use crate::drive::spec::{DiskSpec, Overhead};
use crate::time::{Rotation, milliseconds};

/// Overhead of a command, ns, after a read and after a write.
#[derive(Clone, Copy, Debug)]
struct Taken {
    after_read_ns: u64,
    after_write_ns: u64,
}

impl Taken {
    fn new(overhead: Overhead) -> Self {
        let (read, write) = overhead.pair();
        Self { after_read_ns: milliseconds(read), after_write_ns: milliseconds(write) }
    }
}

/// The commands of a disk, in the order in which it takes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commands {
    read_hit: Taken,
    read_miss: Taken,
    write: Taken,
    bus_block_ns: u64,
    /// Time of a sector under the head in the fastest zone, ns, where data cross the bus while the head transfers others.
    overlapped_sector_ns: Option<u64>,
    takes_writes: bool,
    after_write: bool,
}

impl Commands {
    /// `takes_writes`: the cache does.
    pub(crate) fn new(disk: &DiskSpec, takes_writes: bool) -> Self {
        let write = if takes_writes { disk.overhead_write_hit_ms } else { disk.overhead_write_miss_ms };
        Self {
            read_hit: Taken::new(disk.overhead_read_hit_ms),
            read_miss: Taken::new(disk.overhead_read_miss_ms),
            write: Taken::new(write.unwrap_or(disk.overhead_write_ms)),
            bus_block_ns: milliseconds(disk.bus_block_ms),
            overlapped_sector_ns: disk.bus_overlaps.then(|| {
                let sectors = disk.zones.iter().map(|zone| zone.sectors()).max().unwrap_or(1);
                (Rotation::new(disk.rpm).period_ns() / f64::from(sectors.max(1))) as u64
            }),
            takes_writes,
            after_write: false,
        }
    }

    /// The next command: its time until the arm may begin, ns, the data of a write included.
    #[inline]
    pub(crate) fn take(&mut self, write: bool, hit: bool, blocks: u64) -> u64 {
        let taken = match (write, hit) {
            (true, _) => self.write,
            (false, true) => self.read_hit,
            (false, false) => self.read_miss,
        };
        let overhead_ns = if self.after_write { taken.after_write_ns } else { taken.after_read_ns };
        self.after_write = write;
        overhead_ns + if write { self.before_write_ns(blocks) } else { 0 }
    }

    /// From the first block of a write on the bus until the arm may begin: all of it, or so much that the head never waits for the rest.
    #[inline]
    fn before_write_ns(&self, blocks: u64) -> u64 {
        match self.overlapped_sector_ns.filter(|_| !self.takes_writes && blocks > 0) {
            Some(sector_ns) => self.bus_block_ns + self.bus_block_ns.saturating_sub(sector_ns) * (blocks - 1),
            None => self.bus_block_ns * blocks,
        }
    }

    /// What is left on the bus of a command that the arm is done with, ns. Blocks have come evenly in the `transfer_ns` of its own transfer, which is 0
    /// where the cache had them; the last one has not begun.
    #[inline]
    pub(crate) fn bring(&self, write: bool, blocks: u64, transfer_ns: u64) -> u64 {
        let all_ns = self.bus_block_ns * blocks;
        match self.overlapped_sector_ns {
            _ if write => 0,
            Some(_) if blocks > 0 => all_ns.saturating_sub(transfer_ns / blocks * (blocks - 1)).max(self.bus_block_ns),
            _ => all_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// 100 sectors in 10 ms.
    fn commands(bus_block_ms: f64, overlaps: bool, takes_writes: bool) -> Commands {
        let disk = json!({"cylinders": 2, "surfaces": 1, "rpm": 6000.0, "zones": [[0, 100], [1, 80]], "seek": [[1, 1.0]], "overhead_write_ms": 1.0,
            "bus_block_ms": bus_block_ms, "bus_overlaps": overlaps});
        Commands::new(&DiskSpec::from_json(&disk.to_string()).unwrap(), takes_writes)
    }

    #[test]
    fn without_overlap_all_data_cross_the_bus_before_a_write_and_after_a_read() {
        let mut commands = commands(0.05, false, false);
        assert_eq!((commands.take(true, false, 8), commands.bring(false, 8, 800_000), commands.bring(true, 8, 0)), (1_400_000, 400_000, 0));
    }

    #[test]
    fn with_overlap_a_bus_faster_than_the_head_adds_one_block() {
        let mut commands = commands(0.05, true, false);
        assert_eq!((commands.take(true, false, 8), commands.bring(false, 8, 800_000)), (1_050_000, 50_000));
    }

    #[test]
    fn with_overlap_a_slower_bus_adds_what_it_lags_behind() {
        let mut commands = commands(0.3, true, false);
        // Seven blocks take 0.2 ms longer each than under the head.
        assert_eq!((commands.take(true, false, 8), commands.bring(false, 8, 800_000)), (1_000_000 + 300_000 + 7 * 200_000, 300_000 + 7 * 200_000));
    }

    #[test]
    fn what_the_cache_has_or_takes_does_not_overlap() {
        let mut commands = commands(0.05, true, true);
        assert_eq!((commands.take(true, false, 8), commands.bring(false, 8, 0)), (1_400_000, 400_000));
    }
}
