//! `collect`: a directory of logs becomes `trace.parquet` and `meta.json`.
//!
//! Two passes over the logs: the first finds the earliest record (the common zero) and whatever is damaged, before anything is
//! written; the second merges the threads of each process by start time into row groups. Memory: one row group (1 Mi rows, some
//! 120 MB) and the names, however long the logs are.

use super::columns::{Group, NO_PATH, Row, TOOL, Table};
use super::log_file::Records;
use super::mpi::{Ahead, Calls, Session, Sessions, Survey, hints_of};
use super::summary::SessionSummary;
use super::{Error, FileSummary, LogFile, ProcessLogs, ProcessSummary, Run, Slot, Summary, Timeline, printable};
use crate::record::{Op, RECORD_BYTES, Record, flags};
use parquet::data_type::ByteArray;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::Path;

/// Rows of a row group at most.
const GROUP_ROWS: usize = 1 << 20;

/// Turns the logs in `dir` into `out/trace.parquet` and `out/meta.json` (`out` is made if it is missing and may be `dir`; both
/// files are put in place whole). With `lenient`, what is damaged is counted and skipped.
///
/// # Errors
/// See [`Error`]; nothing is left in `out` then.
pub fn collect(dir: &Path, out: &Path, lenient: bool) -> Result<Summary, Error> {
    let run = Run::scan(dir, lenient)?;
    let mut summary = Summary {
        version: 1,
        tool: TOOL.to_owned(),
        empty_logs: run.empty_logs,
        skipped: run.skipped.clone(),
        zero_unix_ns: u64::MAX,
        ..Summary::default()
    };
    let mut end_ns = 0;
    let mut mpi = Survey::default();
    for (number, process) in run.processes.iter().enumerate() {
        let mut entry = describe(number as u32, process);
        for log in &process.logs {
            end_ns = end_ns.max(survey(&run, log, lenient, &mut summary, &mut entry, &mut mpi)?);
        }
        // A thread's header tells what its process had lost when it last looked.
        let names_lost = process.logs.iter().map(|log| log.header.names_lost).max().unwrap_or(0);
        summary.names_lost = summary.names_lost.saturating_add(names_lost);
        summary.records += entry.records;
        summary.dropped = summary.dropped.saturating_add(entry.dropped);
        summary.processes.push(entry);
    }
    if summary.records == 0 {
        summary.zero_unix_ns = 0;
    }
    summary.duration_ns = end_ns.saturating_sub(summary.zero_unix_ns);
    let mut sessions = Sessions::of(&run, &mut mpi);
    summary.sessions = sessions.all.iter().map(session_summary).collect();
    summary.hints = hints_of(&run);
    // Of an MPI job the program's own words, not its launcher's, which has no rank.
    let first = summary.processes.iter().min_by_key(|entry| (entry.rank < 0, entry.rank));
    summary.command = first.map(|entry| entry.command.clone()).unwrap_or_default();

    std::fs::create_dir_all(out).map_err(Error::io(out, "create the directory"))?;
    let temporary = |name: &str| out.join(format!(".{name}.{}.tmp", std::process::id()));
    let (table_tmp, meta_tmp) = (temporary("trace.parquet"), temporary("meta.json"));
    let written = write_table(&run, &table_tmp, &mut summary, &mpi, &mut sessions)
        .and_then(|()| write_meta(&meta_tmp, &summary))
        .and_then(|()| rename(&table_tmp, &out.join("trace.parquet")))
        .and_then(|()| rename(&meta_tmp, &out.join("meta.json")));
    if written.is_err() {
        let _ = std::fs::remove_file(&table_tmp);
        let _ = std::fs::remove_file(&meta_tmp);
    }
    written.map(|()| summary)
}

fn describe(number: u32, process: &ProcessLogs) -> ProcessSummary {
    let header = process.logs.first().map(|log| log.header.clone()).unwrap_or_default();
    ProcessSummary {
        process: number,
        pid: process.identity.pid,
        parent_pid: process.identity.parent_pid,
        rank: process.rank,
        world: process.world,
        host: header.host,
        command: header.command,
        threads: 0,
        records: 0,
        dropped: 0,
    }
}

/// First pass over one log: counts, and the latest end in ns since the epoch.
fn survey(run: &Run, log: &LogFile, lenient: bool, summary: &mut Summary, process: &mut ProcessSummary, mpi: &mut Survey) -> Result<u64, Error> {
    process.dropped = process.dropped.saturating_add(log.header.dropped);
    let (mut end_ns, mut empty, mut kept, mut last) = (0, 0, 0, 0);
    let mut records = log.records();
    let is_cut = log.is_cut();
    summary.cut_logs += u64::from(is_cut);
    while let Some((slot, content)) = records.next_slot()? {
        match content {
            Slot::Empty => empty += 1,
            // What the end of a log cut off has cut is told with it.
            Slot::Incomplete if is_cut && slot >= log.bytes / RECORD_BYTES => {}
            Slot::Incomplete => summary.incomplete += 1,
            Slot::Damaged if lenient => summary.damaged += 1,
            Slot::Damaged => {
                return Err(Error::damaged(&log.path, slot * 64, format!("the check word of slot {slot} does not fit")));
            }
            Slot::Complete(record) => {
                let line = run.timeline(log)?;
                mpi.look(process.process, line.wall_ns(record.start_ticks), &record);
                summary.zero_unix_ns = summary.zero_unix_ns.min(line.wall_ns(record.start_ticks));
                end_ns = end_ns.max(line.wall_ns(record.end_ticks));
                // Empty slots count only when something follows; those at the end were never used.
                summary.missing = summary.missing.saturating_add(std::mem::take(&mut empty));
                kept += 1;
            }
        }
        last = slot + 1;
    }
    if last < log.header.closed_at_slot {
        let what = format!("the file ends at slot {last}, but its thread had written up to slot {}", log.header.closed_at_slot);
        if !lenient {
            return Err(Error::damaged(&log.path, last * 64, what));
        }
        summary.missing = summary.missing.saturating_add(log.header.closed_at_slot - last);
    }
    process.records += kept;
    process.threads += u32::from(kept > 0);
    Ok(end_ns)
}

/// Second pass: the table, and what it says about each file.
fn write_table(run: &Run, path: &Path, summary: &mut Summary, mpi: &Survey, sessions: &mut Sessions) -> Result<(), Error> {
    let mut table = Table::create(path)?;
    let mut paths = Paths::default();
    for (number, process) in run.processes.iter().enumerate() {
        let Some(host) = process.logs.first().map(|log| log.header.host.as_str()) else {
            continue;
        };
        let mut rows = Vec::new();
        let mut known = HashMap::new();
        let mut merge = Merge::new(run, process, mpi.any)?;
        let mut calls = Calls::new(run, process, number as u32, mpi);
        loop {
            let next = merge.next()?;
            if rows.len() >= GROUP_ROWS || next.is_none() {
                let (rank, world, zero_ns) = (process.rank, process.world, summary.zero_unix_ns);
                let group = Group { process: number as u32, pid: process.identity.pid, rank, world, host, paths: &paths.shown, zero_ns };
                table.write(&group, &rows)?;
                rows.clear();
            }
            let Some(mut row) = next else { break };
            let mut place = |id: u32| *known.entry(id).or_insert_with(|| paths.place(run, process, id));
            row.path = place(row.record.file);
            if [Op::Rename as u16, Op::Link as u16].contains(&row.record.op) {
                row.path2 = place(row.record.aux);
            }
            if row.path == NO_PATH && row.record.file != 0 {
                summary.unnamed += 1;
            }
            let around = row.around.map(|(_, call)| place(call.file));
            let ranges = calls.complete(&mut row, around, sessions);
            paths.count(&row);
            summary.records += ranges.len() as u64;
            rows.push(row);
            rows.extend(ranges);
        }
    }
    summary.files = paths.summaries();
    table.finish(&[
        ("stripewise.version", "1".to_owned()),
        ("stripewise.tool", TOOL.to_owned()),
        ("stripewise.zero_unix_ns", summary.zero_unix_ns.to_string()),
    ])
}

/// The threads of a process, merged by start time; a thread's own order is never changed.
struct Merge<'a> {
    streams: Vec<(Records<'a>, &'a Timeline, u32)>,
    /// Each stream's next call of the mpi layer; none where the run has no such layer.
    ahead: Vec<Ahead<'a>>,
    heads: BinaryHeap<Reverse<(u64, usize, u64)>>,
    waiting: Vec<Option<Record>>,
}

impl<'a> Merge<'a> {
    fn new(run: &'a Run, process: &'a ProcessLogs, has_mpi: bool) -> Result<Merge<'a>, Error> {
        let mut merge = Merge { streams: Vec::new(), ahead: Vec::new(), heads: BinaryHeap::new(), waiting: Vec::new() };
        for log in &process.logs {
            // A log without a clock has no complete record, else the first pass had said so.
            let Ok(line) = run.timeline(log) else {
                continue;
            };
            merge.streams.push((log.records(), line, log.header.tid));
            merge.ahead.extend(has_mpi.then(|| Ahead::new(log.records())));
            merge.waiting.push(None);
            merge.advance(merge.streams.len() - 1)?;
        }
        Ok(merge)
    }

    /// Puts the next record of a stream on the heap.
    fn advance(&mut self, stream: usize) -> Result<(), Error> {
        let Some((records, line, _)) = self.streams.get_mut(stream) else {
            return Ok(());
        };
        while let Some((slot, content)) = records.next_slot()? {
            if let Slot::Complete(record) = content {
                self.heads.push(Reverse((line.wall_ns(record.start_ticks), stream, slot)));
                if let Some(place) = self.waiting.get_mut(stream) {
                    *place = Some(record);
                }
                return Ok(());
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Row>, Error> {
        let Some(Reverse((start_ns, stream, slot))) = self.heads.pop() else {
            return Ok(None);
        };
        let (Some((_, line, thread)), Some(Some(record))) = (self.streams.get(stream), self.waiting.get(stream).copied()) else {
            return Ok(None);
        };
        let end_ns = line.wall_ns(record.end_ticks).max(start_ns);
        let seq = slot - crate::format::FIRST_SLOT;
        let around = match self.ahead.get_mut(stream) {
            Some(ahead) if record.flags & flags::MPI == 0 => ahead.around(slot, &record)?,
            _ => None,
        };
        let around = around.map(|(slot, call)| (slot - crate::format::FIRST_SLOT, call));
        let row =
            Row { record, thread: *thread, seq, start_ns, end_ns, path: NO_PATH, path2: NO_PATH, ordinal: None, parent: None, around, reach: None };
        self.advance(stream)?;
        Ok(Some(row))
    }
}

/// The paths of a run, each once.
#[derive(Default)]
struct Paths {
    places: HashMap<Vec<u8>, u32>,
    shown: Vec<ByteArray>,
    posix: Vec<FileSummary>,
    mpi: Vec<FileSummary>,
}

impl Paths {
    /// The place of the path that an id of a process stands for.
    fn place(&mut self, run: &Run, process: &ProcessLogs, id: u32) -> u32 {
        let Some(name) = run.name(&process.identity, id) else {
            return NO_PATH;
        };
        if let Some(&place) = self.places.get(&name.path) {
            // Calls by name do not know the inode; an open of the same path does.
            for file in [&mut self.posix, &mut self.mpi].into_iter().filter_map(|layer| layer.get_mut(place as usize)) {
                if file.inode == 0 {
                    (file.device, file.inode) = (name.device, name.inode);
                }
            }
            return place;
        }
        let place = self.shown.len() as u32;
        let text = printable(&name.path);
        self.shown.push(ByteArray::from(text.as_str()));
        let entry = FileSummary { path: text, device: name.device, inode: name.inode, ..FileSummary::default() };
        self.posix.push(entry.clone());
        self.mpi.push(entry);
        self.places.insert(name.path.clone(), place);
        place
    }

    /// Adds one call to what is known of its file.
    fn count(&mut self, row: &Row) {
        let record = &row.record;
        let layer = if record.flags & flags::MPI != 0 { &mut self.mpi } else { &mut self.posix };
        let Some(file) = layer.get_mut(row.path as usize) else {
            return;
        };
        file.managed |= record.flags & flags::MANAGED != 0;
        let (calls, bytes) = match Op::from_number(record.op) {
            Some(Op::Open | Op::MpiOpen) if record.errno == 0 => {
                file.opens += 1;
                return;
            }
            Some(Op::Read | Op::MpiRead) => (&mut file.reads, &mut file.bytes_read),
            Some(Op::Write | Op::MpiWrite) => (&mut file.writes, &mut file.bytes_written),
            _ => return,
        };
        let Ok(done) = u64::try_from(record.done) else {
            return;
        };
        *calls += 1;
        *bytes = bytes.saturating_add(done);
        if done > 0 && record.flags & flags::UNKNOWN_OFFSET == 0 {
            file.extent_bytes = file.extent_bytes.max(row.reach.unwrap_or(record.offset.saturating_add(done)));
        }
    }

    fn summaries(self) -> Vec<FileSummary> {
        let both = self.posix.into_iter().zip(self.mpi);
        let used = |file: &FileSummary| file.reads + file.writes + file.opens > 0;
        let mut files: Vec<FileSummary> = both.map(|(posix, mpi)| if used(&posix) || !used(&mpi) { posix } else { mpi }).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    }
}

fn session_summary(session: &Session) -> SessionSummary {
    let mut ranks: Vec<[i64; 3]> = Vec::new();
    for &rank in &session.ranks {
        match ranks.last_mut() {
            Some([first, step, count]) if *count == 1 => (*step, *count) = (rank - *first, 2),
            Some([first, step, count]) if rank == *first + *step * *count => *count += 1,
            _ => ranks.push([rank, 0, 1]),
        }
    }
    let members = session.members.values().map(|(process, handle)| [*process, *handle]).collect();
    SessionSummary { path: printable(&session.path), ranks, members }
}

fn write_meta(path: &Path, summary: &Summary) -> Result<(), Error> {
    use std::io::Write;
    let text = serde_json::to_string_pretty(summary).map_err(std::io::Error::from).map_err(Error::io(path, "write"))?;
    let mut file = std::fs::File::create(path).map_err(Error::io(path, "create"))?;
    file.write_all(text.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(Error::io(path, "write"))?;
    file.sync_all().map_err(Error::io(path, "sync"))
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    std::fs::rename(from, to).map_err(Error::io(to, "put in place"))
}
