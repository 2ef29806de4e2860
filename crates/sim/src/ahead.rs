//! Read-ahead: a process that reads a file in sequence finds the next window already on its way.
//!
//! Per process and file two chunks are kept, the one that is being read and the one after it, which is fetched when the reader enters the
//! first. Memory grows with the pairs of process and file, not with requests.

use std::collections::HashMap;

/// Bytes that were fetched ahead, or are being so.
#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    from: u64,
    to: u64,
    /// When they are all there; `u64::MAX` while that is not known.
    ready_ns: u64,
    /// The engine's own number for what fetches them.
    fetch: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    next: u64,
    read: Chunk,
    ahead: Chunk,
}

/// What a read comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// From here on the bytes are read now; before it they are fetched ahead.
    pub now_from: u64,
    /// `[from, to)` to be fetched ahead, beside the request; empty for none.
    pub fetch: (u64, u64),
    /// When the bytes that are needed and known to come are there.
    pub ready_ns: u64,
    /// Fetches to wait for whose end is not known yet.
    pub pending: [Option<u32>; 2],
}

pub(crate) struct Ahead {
    window: u64,
    streams: HashMap<(u32, u32), Stream>,
}

impl Ahead {
    pub(crate) fn new(window: u64) -> Option<Self> {
        (window > 0).then(|| Ahead { window, streams: HashMap::new() })
    }

    /// Process `id` reads `[from, to)` of `file`, which ends at `size`.
    pub(crate) fn read(&mut self, id: u32, file: u32, from: u64, to: u64, size: u64) -> Plan {
        let stream = self.streams.entry((id, file)).or_default();
        if stream.next != from {
            *stream = Stream { next: to, read: Chunk { to, ..Chunk::default() }, ahead: Chunk { from: to, to, ..Chunk::default() } };
            return Plan { now_from: from, ..Plan::default() };
        }
        stream.next = to;
        let mut plan = Plan { now_from: from.max(stream.ahead.to).min(to), ..Plan::default() };
        for (chunk, pending) in [stream.read, stream.ahead].into_iter().zip(&mut plan.pending) {
            if chunk.from < to && from < chunk.to && chunk.from < chunk.to {
                match chunk.ready_ns {
                    u64::MAX => *pending = Some(chunk.fetch),
                    known => plan.ready_ns = plan.ready_ns.max(known),
                }
            }
        }
        let begin = to.max(stream.ahead.to);
        let end = begin.saturating_add(self.window).min(size);
        if to > stream.ahead.from && begin < end || stream.ahead.to <= to && begin < end {
            plan.fetch = (begin, end);
            stream.read = stream.ahead;
            stream.ahead = Chunk { from: begin, to: end, ready_ns: u64::MAX, fetch: u32::MAX };
        }
        plan
    }

    /// The fetch that the last plan of the stream asked for has a number.
    pub(crate) fn fetching(&mut self, id: u32, file: u32, fetch: u32) {
        if let Some(stream) = self.streams.get_mut(&(id, file)) {
            stream.ahead.fetch = fetch;
        }
    }

    /// Fetch number `fetch` of the stream is done at `ready_ns`.
    pub(crate) fn fetched(&mut self, id: u32, file: u32, fetch: u32, ready_ns: u64) {
        if let Some(stream) = self.streams.get_mut(&(id, file)) {
            for chunk in [&mut stream.read, &mut stream.ahead] {
                if chunk.ready_ns == u64::MAX && chunk.fetch == fetch {
                    chunk.ready_ns = ready_ns;
                }
            }
        }
    }
}
