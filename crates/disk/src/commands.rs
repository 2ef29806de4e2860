//! What a command costs beside the arm: its overhead, by what it asks for and what came before it, and the way of its data to or from the host.

use crate::drive::spec::{DiskSpec, Overhead};
use crate::time::milliseconds;

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
        overhead_ns + if write { self.bus_block_ns * blocks } else { 0 }
    }

    /// The data of a command that the arm is done with, on their way to the host, ns.
    #[inline]
    pub(crate) fn bring(&self, write: bool, blocks: u64) -> u64 {
        if write { 0 } else { self.bus_block_ns * blocks }
    }
}
