//! Requests by time although a trace has them a little out of order, as tracers on several processors write them: a window of so many requests
//! is kept and the earliest of it goes out. What is later than that is an error, because sorting it would take the whole file.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::BlockRequest;

/// A request that waits: by time, and by line where times are equal.
type Waiting = Reverse<(u64, u64, u64, u32, bool)>;

pub(super) struct Order {
    window: usize,
    waiting: BinaryHeap<Waiting>,
    /// Time of the last that went out.
    reached_ns: u64,
}

impl Order {
    pub(super) fn new(window: usize) -> Order {
        Order { window, waiting: BinaryHeap::new(), reached_ns: 0 }
    }

    /// Takes the request of a line; false when one later than it has gone out already.
    #[must_use]
    pub(super) fn take(&mut self, request: BlockRequest, line: u64) -> bool {
        self.waiting.push(Reverse((request.arrival_ns, line, request.lba, request.blocks, request.write)));
        request.arrival_ns >= self.reached_ns
    }

    /// Whether no more can be taken before one goes out.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() > self.window
    }

    /// The earliest.
    pub(super) fn pop(&mut self) -> Option<BlockRequest> {
        let Reverse((arrival_ns, _, lba, blocks, write)) = self.waiting.pop()?;
        self.reached_ns = arrival_ns;
        Some(BlockRequest { arrival_ns, lba, blocks, write })
    }
}
