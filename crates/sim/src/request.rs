//! The requests that a simulation is fed with, and where they come from.

use crate::Error;

/// A request of more is a slip of the unit; one that repeats a file's last region for ever would never end.
pub(crate) const REQUEST_BYTES_MAX: u64 = 1 << 40;

/// When a request is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Closed loop: so many ns after all of the process's requests before it were done (or after time 0).
    After(u64),
    /// Open loop: at this time, ns from the beginning, whatever is still in flight. Not decreasing within a process.
    At(u64),
    /// Closed loop behind a barrier: when every process that still has requests has come to one, and so many ns later.
    Barrier(u64),
    /// Closed loop behind a barrier: when every process has come to its next barrier, and not before this time, ns from the beginning.
    BarrierAt(u64),
    /// Closed loop behind other processes: so many ns after the first `over` of [`Source::ended`] have done all of their requests.
    Behind {
        /// How many, at most as many as there are.
        over: u32,
        /// Time between the last of their ends and this.
        think_ns: u64,
    },
}

/// One request of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Position of the file in the scenario.
    pub file: u32,
    /// Writes, else reads.
    pub write: bool,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes, at least 1.
    pub bytes: u64,
    /// When it is issued.
    pub start: Start,
}

/// Requests process by process, in each process's own order.
pub trait Source {
    /// How many processes there are; they are numbered from 0.
    fn processes(&self) -> u32;

    /// Processes in the order in which they ended where the requests come from; what [`Start::Behind`] counts in. None where nothing waits for others.
    fn ended(&self) -> &[u32] {
        &[]
    }

    /// The next request of `process`; `None` when it has no more.
    ///
    /// # Errors
    /// [`Error::Trace`] when the requests are read from a trace and it is damaged.
    fn next(&mut self, process: u32) -> Result<Option<Request>, Error>;
}
