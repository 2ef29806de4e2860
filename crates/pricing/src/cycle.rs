//! A cycle as runs of neighbours that are alike, so that a request is priced in O(runs) however many servers there are.

/// One server of a cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server<F> {
    /// What tells its kind and its prices; neighbours are one run when this and the width are equal.
    pub kind: F,
    /// Bytes of one stripe; 0 leaves the server out.
    pub width_bytes: u64,
}

/// Neighbours with one kind and one width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Run<F> {
    pub kind: F,
    pub width: u64,
    pub count: u64,
    /// Where it begins in the cycle, bytes.
    pub start: u64,
    /// Position of its first server.
    pub server: usize,
}

/// The servers in their order, as runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Cycle<F> {
    pub(crate) runs: Vec<Run<F>>,
    pub(crate) length: u64,
    pub(crate) servers: usize,
}

impl<F: Copy + PartialEq> Cycle<F> {
    /// `None` when no server has a width, or the widths add up to more than 2^62 bytes.
    pub fn new(servers: &[Server<F>]) -> Option<Self> {
        let mut runs: Vec<Run<F>> = Vec::new();
        let mut length = 0u64;
        for (position, server) in servers.iter().enumerate().filter(|(_, server)| server.width_bytes > 0) {
            match runs.last_mut() {
                Some(run) if run.kind == server.kind && run.width == server.width_bytes && run.server + run.count as usize == position => {
                    run.count += 1
                }
                _ => runs.push(Run { kind: server.kind, width: server.width_bytes, count: 1, start: length, server: position }),
            }
            length = length.checked_add(server.width_bytes).filter(|length| *length <= 1 << 62)?;
        }
        (length > 0).then_some(Self { runs, length, servers: servers.len() })
    }

    /// `count_h` servers of one kind with width `h`, then `count_s` of another with width `s`.
    pub fn pair(first: (F, u64, u64), second: (F, u64, u64)) -> Option<Self> {
        let mut cycle = Self { runs: Vec::with_capacity(2), length: 0, servers: 0 };
        for (kind, count, width) in [first, second] {
            if count > 0 && width > 0 {
                cycle.runs.push(Run { kind, width, count, start: cycle.length, server: cycle.servers });
                cycle.length = count.checked_mul(width)?.checked_add(cycle.length).filter(|length| *length <= 1 << 62)?;
            }
            cycle.servers += count as usize;
        }
        (cycle.length > 0).then_some(cycle)
    }
}
