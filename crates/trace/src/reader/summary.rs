//! What a run was, in numbers: the contents of meta.json.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// meta.json, and what [`super::collect`] returns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version of this form: 1.
    pub version: u32,
    /// Which program wrote it.
    pub tool: String,
    /// Command line of the first process.
    pub command: Vec<String>,
    /// Rows of trace.parquet.
    pub records: u64,
    /// Records that the tracer could not keep (full disk).
    pub dropped: u64,
    /// Records that a kill cut short.
    pub incomplete: u64,
    /// Logs that end where no thread and no kill leaves them: cut off since, with whatever records stood behind.
    #[serde(default)]
    pub cut_logs: u64,
    /// Slots skipped before a later record: records that were lost unwritten.
    pub missing: u64,
    /// Records whose check word does not fit (skipped; only with `lenient`).
    pub damaged: u64,
    /// Logs that were never begun, for want of space or by a kill: their threads' records are lost.
    pub empty_logs: u64,
    /// File names that could not be kept.
    pub names_lost: u64,
    /// Records of a file whose name was lost (its `file` is null).
    pub unnamed: u64,
    /// Wall clock of `start_ns` = 0, ns since the epoch.
    pub zero_unix_ns: u64,
    /// From the first start to the last end.
    pub duration_ns: u64,
    /// Processes, in the order of `process` in trace.parquet.
    pub processes: Vec<ProcessSummary>,
    /// Files, in the order of their paths.
    pub files: Vec<FileSummary>,
    /// Files that MPI processes opened together, once for each time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionSummary>,
    /// Hints of MPI files, each set once for each path; files that are not here were opened unseen, or by a library that noted none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<HintsSummary>,
    /// Files of the directory that were not read, and why.
    pub skipped: Vec<Skipped>,
}

/// A file from MPI_File_open to its close.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// Path, as in `files`.
    pub path: String,
    /// Ranks in MPI_COMM_WORLD by rank in the communicator: runs of first, step, count.
    pub ranks: Vec<[i64; 3]>,
    /// Process and handle, as in trace.parquet, by rank in the communicator; ranks that were not traced are left out.
    pub members: Vec<[u32; 2]>,
}

/// A set of hints of an MPI file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HintsSummary {
    /// Path, as in `files`.
    pub path: String,
    /// That opened it together.
    pub processes: u64,
    /// What the program gave when it opened the file, set a view or set hints.
    pub given: BTreeMap<String, String>,
    /// What was in force from then on, as MPI_File_get_info says.
    pub in_force: BTreeMap<String, String>,
}

/// One process (between exec and exit).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessSummary {
    /// Number in trace.parquet.
    pub process: u32,
    /// Process id.
    pub pid: u32,
    /// Pid of the traced process that it was forked from, 0 none.
    pub parent_pid: u32,
    /// Rank, -1 unknown.
    pub rank: i32,
    /// World size, -1 unknown.
    pub world: i32,
    /// Node.
    pub host: String,
    /// Arguments.
    pub command: Vec<String>,
    /// Threads that recorded.
    pub threads: u32,
    /// Records kept.
    pub records: u64,
    /// Records dropped.
    pub dropped: u64,
}

/// One file, over all processes. Counts and bytes are of the posix layer where the file has posix records, else of the mpi layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileSummary {
    /// Path; bytes that are not UTF-8 as `\xNN`.
    pub path: String,
    /// Device, 0 unknown.
    pub device: u64,
    /// Inode, 0 unknown.
    pub inode: u64,
    /// Lives in a store.
    pub managed: bool,
    /// Successful opens.
    pub opens: u64,
    /// Reads that did not fail.
    pub reads: u64,
    /// Writes that did not fail.
    pub writes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// End of the furthest byte read or written.
    pub extent_bytes: u64,
}

/// A file that was not read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its name.
    pub file: String,
    pub why: String,
}
