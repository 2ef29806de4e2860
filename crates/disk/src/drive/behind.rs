//! The write-back cache: written blocks wait in memory and go to the medium in the order they came, when the disk is idle, the cache full, or a
//! flush asks for it. The order is kept because on a shingled disk a later write may destroy what an earlier one wrote.

use std::collections::VecDeque;

use stripewise_swd::Purpose;

/// A run of written blocks, `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dirty {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) purpose: Purpose,
}

/// What is written and not yet on the medium, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct WriteCache {
    dirty: VecDeque<Dirty>,
    segments_max: usize,
    segment_blocks: u64,
}

impl WriteCache {
    pub(crate) fn new(segments: u32, segment_blocks: u32) -> Self {
        Self { dirty: VecDeque::new(), segments_max: segments as usize, segment_blocks: u64::from(segment_blocks) }
    }

    /// The oldest, to be written to the medium.
    pub(crate) fn take(&mut self) -> Option<Dirty> {
        self.dirty.pop_front()
    }

    /// Whether a write of these blocks finds room, beside or over the newest run or in a segment of its own.
    pub(crate) fn has_room(&self, block: u64, blocks: u64) -> bool {
        blocks <= self.segment_blocks && (self.joins(block, blocks) || self.dirty.len() < self.segments_max)
    }

    /// Whether such a write can ever find room.
    pub(crate) fn fits(&self, blocks: u64) -> bool {
        blocks <= self.segment_blocks && self.segments_max > 0
    }

    fn joins(&self, block: u64, blocks: u64) -> bool {
        self.dirty.back().is_some_and(|newest| {
            let (start, end) = (newest.start.min(block), newest.end.max(block + blocks));
            block >= newest.start && block <= newest.end && end - start <= self.segment_blocks
        })
    }

    /// Takes a write for which there is room.
    pub(crate) fn put(&mut self, block: u64, blocks: u64, purpose: Purpose) {
        let joins = self.joins(block, blocks);
        match self.dirty.back_mut().filter(|_| joins) {
            Some(newest) => newest.end = newest.end.max(block + blocks),
            None => self.dirty.push_back(Dirty { start: block, end: block + blocks, purpose }),
        }
    }

    /// Whether the newest copy of all these blocks is here.
    pub(crate) fn holds(&self, block: u64, blocks: u64) -> bool {
        let newest = self.dirty.iter().rev().find(|dirty| dirty.start < block + blocks && block < dirty.end);
        newest.is_some_and(|dirty| dirty.start <= block && block + blocks <= dirty.end)
    }

    /// Whether any of these blocks is here.
    pub(crate) fn touches(&self, block: u64, blocks: u64) -> bool {
        self.dirty.iter().any(|dirty| dirty.start < block + blocks && block < dirty.end)
    }
}
