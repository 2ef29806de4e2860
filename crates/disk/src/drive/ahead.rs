//! The segmented read cache: each segment holds a run of blocks that was read, and the one read last grows while nothing else moves the arm.

/// A run of blocks in the cache, `start..end`.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    end: u64,
    used: u64,
}

/// What is read ahead: blocks below `block` were read by `ready_ns`, and the next ones come until `limit`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    pub(crate) block: u64,
    pub(crate) ready_ns: u64,
    pub(crate) limit: u64,
}

/// What the cache knows of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Hit,
    /// The run being read ahead has its begin, or comes to it next.
    Coming,
    Miss,
}

/// Segments, the least recently used replaced first.
#[derive(Clone, Debug)]
pub(crate) struct ReadCache {
    segments: Vec<Segment>,
    segments_max: usize,
    segment_blocks: u64,
    uses: u64,
    ahead: Option<Ahead>,
}

impl ReadCache {
    pub(crate) fn new(segments: u32, segment_blocks: u32) -> Self {
        let segments_max = segments as usize;
        Self { segments: Vec::with_capacity(segments_max), segments_max, segment_blocks: u64::from(segment_blocks), uses: 0, ahead: None }
    }

    pub(crate) fn ahead(&self) -> Option<Ahead> {
        self.ahead
    }

    /// The arm is needed elsewhere, or went on.
    pub(crate) fn set_ahead(&mut self, ahead: Option<Ahead>) {
        if let (Some(new), Some(old)) = (ahead, self.ahead)
            && let Some(segment) = self.segments.iter_mut().find(|segment| segment.end == old.block)
        {
            segment.end = new.block;
            segment.start = segment.start.max(new.block.saturating_sub(self.segment_blocks));
        }
        self.ahead = ahead;
    }

    pub(crate) fn holds(&self, block: u64, blocks: u64) -> bool {
        self.segments.iter().any(|segment| segment.start <= block && block + blocks <= segment.end)
    }

    /// Marks what is found as used.
    pub(crate) fn look_up(&mut self, block: u64, blocks: u64) -> Lookup {
        self.uses += 1;
        if let Some(segment) = self.segments.iter_mut().find(|segment| segment.start <= block && block + blocks <= segment.end) {
            segment.used = self.uses;
            return Lookup::Hit;
        }
        let Some(ahead) = self.ahead else { return Lookup::Miss };
        match self.segments.iter_mut().find(|segment| segment.end == ahead.block && segment.start <= block && block <= segment.end) {
            Some(segment) => {
                segment.used = self.uses;
                Lookup::Coming
            }
            None => Lookup::Miss,
        }
    }

    /// Blocks were read from the medium until `ready_ns`: they take a segment, which the blocks after them, below `blocks_max`, may fill up.
    pub(crate) fn insert(&mut self, block: u64, blocks: u64, ready_ns: u64, blocks_max: u64) {
        let end = block + blocks;
        let new = Segment { start: block.max(end.saturating_sub(self.segment_blocks)), end, used: self.uses };
        if self.segments.len() < self.segments_max {
            self.segments.push(new);
        } else if let Some(oldest) = self.segments.iter_mut().min_by_key(|segment| segment.used) {
            *oldest = new;
        }
        let limit = (end + self.segment_blocks.saturating_sub(blocks)).min(blocks_max);
        self.ahead = (limit > end).then_some(Ahead { block: end, ready_ns, limit });
    }

    /// The read that came next takes blocks below `end` too; then as many again may be read ahead.
    pub(crate) fn further(&self, end: u64, blocks_max: u64) -> u64 {
        (end + self.segment_blocks / 2).min(blocks_max)
    }

    /// Blocks are written: what is held of them is old.
    pub(crate) fn forget(&mut self, block: u64, blocks: u64) {
        for segment in &mut self.segments {
            if segment.start < block + blocks && block < segment.end {
                segment.end = block.max(segment.start);
            }
        }
        self.segments.retain(|segment| segment.start < segment.end);
    }
}
