//! A directory of logs as a run: which processes, which threads, which names, which clock.

use super::{Error, LogFile, Name, NamesFile, Skipped, Timeline};
use crate::format::Identity;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Process id and start id: tells processes of a run apart.
type Key = (u32, u64);
/// Boot id and clock kind: logs with the same ones share a clock.
type Clock = ([u8; 16], u32);

/// The logs of one process.
#[derive(Clone, Debug, Default)]
pub struct ProcessLogs {
    pub identity: Identity,
    /// Rank in MPI_COMM_WORLD, -1 unknown.
    pub rank: i32,
    /// Size of MPI_COMM_WORLD, -1 unknown.
    pub world: i32,
    /// Its threads' logs.
    pub logs: Vec<LogFile>,
}

/// All that a directory holds.
#[derive(Debug, Default)]
pub struct Run {
    /// By rank, then by start.
    pub processes: Vec<ProcessLogs>,
    /// Logs that were never begun.
    pub empty_logs: u64,
    /// What was not read.
    pub skipped: Vec<Skipped>,
    names: HashMap<Key, NamesFile>,
    parents: HashMap<Key, Identity>,
    timelines: HashMap<Clock, Timeline>,
}

fn key(identity: &Identity) -> Key {
    (identity.pid, identity.start_id)
}

impl Run {
    /// Reads the headers and names of a trace directory. Files that are neither (`*.swt`, `*.names`) are listed as skipped; with `lenient` so are
    /// damaged ones.
    ///
    /// # Errors
    /// I/O errors, newer versions, [`Error::NoLogs`]; damage, unless `lenient`.
    pub fn scan(dir: &Path, lenient: bool) -> Result<Run, Error> {
        let mut run = Run::default();
        let mut logs = Vec::new();
        for path in sorted_entries(dir)? {
            let result = match path.extension().and_then(OsStr::to_str) {
                Some("swt") => LogFile::open(&path).map(|log| match log {
                    Some(log) => logs.push(log),
                    None => run.empty_logs += 1,
                }),
                Some("names") => NamesFile::open(&path, lenient).map(|names| {
                    if let Some(names) = names {
                        run.add_names(&path, names);
                    }
                }),
                _ => {
                    run.skip_foreign(&path);
                    Ok(())
                }
            };
            match result {
                Err(error @ Error::Damaged { .. }) if lenient => run.skip(&path, error.to_string()),
                other => other?,
            }
        }
        if logs.is_empty() && run.empty_logs == 0 {
            let is_empty = std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
            return Err(Error::NoLogs { dir: dir.to_owned(), is_empty });
        }
        run.timelines = timelines(&logs);
        run.group(logs);
        Ok(run)
    }

    /// What a file id of a process stands for: its own name, or the one its parent gave before the fork.
    #[must_use]
    pub fn name(&self, process: &Identity, id: u32) -> Option<&Name> {
        let mut identity = process;
        // Damaged headers could form a ring.
        for _ in 0..256 {
            let own = self.names.get(&key(identity)).and_then(|names| names.names.get(&id));
            if own.is_some() || identity.parent_pid == 0 || id >= identity.first_file_id {
                return own;
            }
            let parent = (identity.parent_pid, identity.parent_start_id);
            identity = self.parents.get(&parent)?;
        }
        None
    }

    /// A note of a process of a kind ([`crate::format::entry_kind`]), by number.
    #[must_use]
    pub fn note(&self, process: &Identity, kind: u32, number: u32) -> Option<&[u64]> {
        self.names.get(&key(process))?.notes.get(&(kind, number)).map(Vec::as_slice)
    }

    /// The notes of hints of a process, by file id.
    #[must_use]
    pub fn hints(&self, process: &Identity) -> &[(u32, Vec<u64>)] {
        self.names.get(&key(process)).map_or(&[], |names| &names.hints)
    }

    /// The clock of a log.
    ///
    /// # Errors
    /// [`Error::Damaged`] when none of the logs of its machine tells the rate.
    pub fn timeline(&self, log: &LogFile) -> Result<&Timeline, Error> {
        self.timelines.get(&(log.header.boot_id, log.header.clock_kind)).ok_or_else(|| {
            Error::damaged(&log.path, 2200, "no calibration pairs, and no other log of the same machine has any, so ticks have no time")
        })
    }

    fn add_names(&mut self, path: &Path, names: NamesFile) {
        if names.lost_bytes > 0 {
            self.skip(path, format!("its last {} bytes are not a whole name (its process was killed, or they are damaged)", names.lost_bytes));
        }
        self.parents.insert(key(&names.identity), names.identity);
        self.names.insert(key(&names.identity), names);
    }

    fn skip_foreign(&mut self, path: &Path) {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or("");
        // What an earlier collect into the same directory left.
        if !matches!(name, "trace.parquet" | "meta.json") && !name.starts_with('.') {
            self.skip(path, "not a trace file (expected *.swt and *.names)".to_owned());
        }
    }

    pub(super) fn skip(&mut self, path: &Path, why: String) {
        let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        self.skipped.push(Skipped { file, why });
    }

    fn group(&mut self, logs: Vec<LogFile>) {
        let mut processes: HashMap<Key, ProcessLogs> = HashMap::new();
        for log in logs {
            let header = &log.header;
            self.parents.insert(key(&header.identity), header.identity);
            let process = processes.entry(key(&header.identity)).or_insert_with(|| ProcessLogs {
                identity: header.identity,
                rank: -1,
                world: -1,
                logs: Vec::new(),
            });
            // Logs begun before MPI_Init do not know them.
            process.rank = process.rank.max(header.rank);
            process.world = process.world.max(header.world);
            process.logs.push(log);
        }
        self.processes = processes.into_values().collect();
        self.processes.sort_by_key(|process| (process.rank, process.identity.start_id, process.identity.pid));
    }
}

fn sorted_entries(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = std::fs::read_dir(dir).map_err(Error::io(dir, "read the trace directory"))?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(Error::io(dir, "read the trace directory"))?.path());
    }
    paths.sort();
    Ok(paths)
}

fn timelines(logs: &[LogFile]) -> HashMap<Clock, Timeline> {
    let mut pooled: HashMap<Clock, (Vec<(u64, u64)>, u64)> = HashMap::new();
    for log in logs {
        let (pairs, hz) = pooled.entry((log.header.boot_id, log.header.clock_kind)).or_default();
        pairs.extend(&log.header.pairs);
        *hz = (*hz).max(log.header.nominal_hz);
    }
    pooled.into_iter().filter_map(|(clock, (pairs, hz))| Some((clock, Timeline::new(pairs, hz)?))).collect()
}
