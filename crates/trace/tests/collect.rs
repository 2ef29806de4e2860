//! From logs to Parquet: what is kept, how it is named and timed, and what damage does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use proptest::prelude::*;
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use stripewise_trace::format::entry_kind;
use stripewise_trace::reader::Error;
use stripewise_trace::{Op, Process, Record, Summary, ThreadLog, clock, collect, flags, record, thread_exit};

/// One process's thread that records.
struct Tracer {
    process: &'static Process,
    log: ThreadLog,
}

impl Tracer {
    fn new(dir: &Path, rank: i32) -> Tracer {
        let process: &'static Process = Box::leak(Box::new(Process::new()));
        process.start(&CString::new(dir.to_str().unwrap()).unwrap(), rank, 2, b"app\0-x\0").unwrap();
        Tracer { process, log: ThreadLog::new() }
    }

    fn put(&mut self, call: Record) {
        // SAFETY: this thread's own log.
        unsafe { record(&mut self.log, self.process, &call) };
    }

    fn now(&mut self, op: Op, call: Record) {
        let start_ticks = clock::now_ticks();
        self.put(Record { start_ticks, end_ticks: clock::now_ticks(), op: op as u16, ..call });
    }

    fn end(mut self) {
        // SAFETY: as above.
        unsafe { thread_exit(&mut self.log, self.process) };
    }
}

fn rows(parquet: &Path) -> Vec<HashMap<String, Field>> {
    let reader = SerializedFileReader::new(File::open(parquet).unwrap()).unwrap();
    let columns = |row: Row| row.into_columns().into_iter().collect();
    reader.get_row_iter(None).unwrap().map(|row| columns(row.unwrap())).collect()
}

fn text(field: &Field) -> &str {
    match field {
        Field::Str(text) => text,
        other => panic!("not text: {other}"),
    }
}

/// A small run of one process: an open, a write, a read, a rename, a close.
fn small_run(dir: &Path, rank: i32) {
    let mut tracer = Tracer::new(dir, rank);
    let file = tracer.process.file_id(b"/data/a\xff.dat", 7, 8);
    let renamed = tracer.process.file_id(b"/data/b", 0, 0);
    let base = Record { file, fd: 3, ..Record::default() };
    tracer.now(Op::Open, Record { done: 3, aux: 2, ..base });
    tracer.now(Op::Write, Record { offset: 4096, requested_bytes: 100, done: 100, flags: flags::MANAGED, ..base });
    tracer.now(Op::Read, Record { offset: 0, requested_bytes: 50, done: -1, errno: 5, ..base });
    tracer.now(Op::MpiWrite, Record { offset: 9, requested_bytes: 9, done: 9, fd: 1, aux: 16, flags: flags::MPI | flags::COLLECTIVE, ..base });
    tracer.now(Op::Read, Record { done: 10, flags: flags::UNKNOWN_OFFSET, ..base });
    tracer.now(Op::Rename, Record { aux: renamed, ..base });
    tracer.now(Op::Stat, Record { file: 999, fd: -1, ..Record::default() });
    tracer.now(Op::Close, base);
    tracer.end();
}

#[test]
fn every_field_of_a_call_comes_out_in_its_column() {
    let dir = tempfile::tempdir().unwrap();
    small_run(dir.path(), 1);
    let out = dir.path().join("out");
    let summary = collect(dir.path(), &out, false).unwrap();
    let rows = rows(&out.join("trace.parquet"));
    let ops: Vec<&str> = rows.iter().map(|row| text(&row["op"])).collect();
    assert_eq!(ops, ["open", "write", "read", "mpi_write", "read", "rename", "stat", "close"]);
    let write = &rows[1];
    assert_eq!(text(&write["file"]), "/data/a\\xff.dat");
    assert_eq!(text(&write["layer"]), "posix");
    assert_eq!((&write["offset"], &write["requested"], &write["done"]), (&Field::Long(4096), &Field::Long(100), &Field::Long(100)));
    assert_eq!((&write["managed"], &write["collective"], &write["rank"]), (&Field::Bool(true), &Field::Bool(false), &Field::Int(1)));
    assert_eq!((&write["fd"], &write["handle"], &write["comm_size"]), (&Field::Int(3), &Field::Null, &Field::Null));
    assert_eq!((&rows[2]["errno"], &rows[2]["done"]), (&Field::Int(5), &Field::Long(-1)));
    let mpi = &rows[3];
    assert_eq!((text(&mpi["layer"]), &mpi["fd"], &mpi["handle"]), ("mpi", &Field::Null, &Field::Int(1)));
    assert_eq!((&mpi["comm_size"], &mpi["aux"], &mpi["collective"]), (&Field::Int(16), &Field::Null, &Field::Bool(true)));
    assert_eq!(rows[4]["offset"], Field::Null);
    assert_eq!(text(&rows[5]["file2"]), "/data/b");
    assert_eq!((&rows[6]["file"], summary.unnamed), (&Field::Null, 1));
    assert_eq!(rows[0]["start_ns"], Field::Long(0), "the earliest record is the zero");
    assert!((0..8).all(|i| rows[i]["seq"] == Field::Long(i as i64)));

    let text = fs::read_to_string(out.join("meta.json")).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
    assert_eq!((summary.records, summary.dropped, summary.damaged), (8, 0, 0));
    assert_eq!(summary.command, ["app", "-x"]);
    let file = &summary.files[0];
    assert_eq!((file.opens, file.reads, file.writes), (1, 1, 1), "the posix layer only; the failed read does not count");
    assert_eq!((file.bytes_read, file.bytes_written, file.extent_bytes), (10, 100, 4196));
    assert_eq!((file.device, file.inode), (7, 8));
}

#[test]
fn hints_are_told_once_for_each_file_and_set() {
    let dir = tempfile::tempdir().unwrap();
    let note = |size: u64, text: &[u8; 16]| {
        vec![size, 1, u64::from_le_bytes(text[..8].try_into().unwrap()), u64::from_le_bytes(text[8..].try_into().unwrap())]
    };
    for rank in 0..2 {
        let mut tracer = Tracer::new(dir.path(), rank);
        let file = tracer.process.file_id(b"/data/b", 0, 0);
        tracer.now(Op::MpiOpen, Record { file, flags: flags::MPI, ..Record::default() });
        for words in [note(4, b"cb\x001\0cb\x002\0\0\0\0\0\0\0"), note(4, b"cb\x001\0cb\x003\0\0\0\0\0\0\0")] {
            assert!(tracer.process.note(entry_kind::HINTS, file, &words));
        }
        tracer.end();
    }
    let told = collect(dir.path(), dir.path(), false).unwrap().hints;
    let of = |value: &str| HashMap::from([("cb".to_owned(), value.to_owned())]);
    let said = told
        .iter()
        .map(|set| (set.path.as_str(), set.processes, set.given.clone().into_iter().collect(), set.in_force.clone().into_iter().collect()));
    assert_eq!(said.collect::<Vec<_>>(), [("/data/b", 4, of("1"), of("2")), ("/data/b", 4, of("1"), of("3"))]);
}

#[test]
fn times_are_wall_clock_nanoseconds() {
    let dir = tempfile::tempdir().unwrap();
    let mut tracer = Tracer::new(dir.path(), 0);
    let wall = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let before = wall();
    tracer.now(Op::Stat, Record::default());
    std::thread::sleep(std::time::Duration::from_millis(30));
    tracer.now(Op::Stat, Record::default());
    let after = wall();
    tracer.end();
    let summary = collect(dir.path(), dir.path(), false).unwrap();
    // Calibration is good to microseconds, even when the tests share two processors.
    let slack = 2_000_000;
    assert!(summary.zero_unix_ns + slack > before && summary.zero_unix_ns + summary.duration_ns < after + slack);
    assert!(summary.duration_ns >= 30_000_000 - slack);
}

#[test]
fn each_process_has_a_row_group_and_the_threads_in_it_are_in_the_order_of_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut tracers: Vec<Tracer> = (0..2).map(|rank| Tracer::new(dir.path(), 1 - rank)).collect();
    let mut second = ThreadLog::new();
    for _ in 0..500 {
        for tracer in &mut tracers {
            tracer.now(Op::Read, Record::default());
        }
        let call = Record { start_ticks: clock::now_ticks(), end_ticks: clock::now_ticks(), op: Op::Write as u16, ..Record::default() };
        // SAFETY: stands for a second thread of the process; nobody else uses it.
        unsafe { record(&mut second, tracers[0].process, &call) };
    }
    drop(tracers);
    let summary = collect(dir.path(), dir.path(), false).unwrap();
    let reader = SerializedFileReader::new(File::open(dir.path().join("trace.parquet")).unwrap()).unwrap();
    let groups: Vec<i64> = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [500, 1000], "rank 0 first");
    assert_eq!(summary.processes.iter().map(|process| (process.rank, process.threads)).collect::<Vec<_>>(), [(0, 1), (1, 2)]);
    let rows = rows(&dir.path().join("trace.parquet"));
    let ops: Vec<&str> = rows[500..].iter().map(|row| text(&row["op"])).collect();
    assert!(ops.chunks(2).all(|pair| pair == ["read", "write"]));
    // Collecting again into the same directory takes its own files for what they are.
    assert_eq!(collect(dir.path(), dir.path(), false).unwrap(), summary);
}

fn swt(dir: &Path) -> PathBuf {
    let mut paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|extension| extension == "swt")).unwrap()
}

#[test]
fn what_is_wrong_is_told_with_file_and_place() {
    let dir = tempfile::tempdir().unwrap();
    let failure = |dir: &Path| collect(dir, &dir.join("out"), false).unwrap_err().to_string();
    let here = format!("'stripewise run --trace {} -- COMMAND'", dir.path().display());
    let none = failure(dir.path());
    assert!(none.contains("no trace logs") && none.contains(&here), "{none}");
    let note = dir.path().join("note");
    fs::write(&note, "no log").unwrap();
    let none = failure(dir.path());
    assert!(none.contains("'stripewise run --trace NEW_DIR -- COMMAND'") && !none.contains(&here), "{none}");
    fs::remove_file(&note).unwrap();
    assert!(failure(&dir.path().join("none")).contains("cannot read the trace directory"));
    small_run(dir.path(), 0);
    let log = swt(dir.path());
    let good = fs::read(&log).unwrap();
    let with = |at: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        fs::write(&log, bad).unwrap();
    };
    with(4096 + 64 + 8, &[0xaa]);
    assert!(failure(dir.path()).contains("damaged at byte 4160"));
    let lenient = collect(dir.path(), &dir.path().join("out"), true).unwrap();
    assert_eq!((lenient.records, lenient.damaged), (7, 1));
    with(8, &[2]);
    assert!(failure(dir.path()).contains("newer version"));
    assert!(matches!(collect(dir.path(), dir.path(), true), Err(Error::Newer { .. })), "leniency does not guess at formats");
    with(20, &[1]);
    assert!(failure(dir.path()).contains("checksum"));
    with(0, b"NOTATRAC");
    assert!(failure(dir.path()).contains("not a trace log"));
    fs::write(&log, &good[..good.len() - 64]).unwrap();
    assert!(failure(dir.path()).contains("ends at slot"));
    assert!(!dir.path().join("out").join("trace.parquet.tmp").exists());
    fs::write(&log, &good[..100]).unwrap();
    assert!(failure(dir.path()).contains("inside its header"));
}

#[test]
fn a_log_cut_by_a_kill_is_read_up_to_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut tracer = Tracer::new(dir.path(), 0);
    for offset in 0..10 {
        tracer.now(Op::Read, Record { offset, ..Record::default() });
    }
    // Not ended: the file is as a kill leaves it, 64 KiB long. The last record loses its last word.
    let log = swt(dir.path());
    let mut bytes = fs::read(&log).unwrap();
    assert_eq!(bytes.len(), 64 << 10);
    bytes[4096 + 9 * 64 + 60..4096 + 10 * 64].fill(0);
    fs::write(&log, bytes).unwrap();
    let summary = collect(dir.path(), &dir.path().join("out"), false).unwrap();
    assert_eq!((summary.records, summary.incomplete, summary.missing), (9, 1, 0));
}

#[test]
fn a_log_that_was_cut_off_is_told_apart_from_one_that_a_kill_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut tracer = Tracer::new(dir.path(), 0);
    for offset in 0..10 {
        tracer.now(Op::Read, Record { offset, ..Record::default() });
    }
    let log = swt(dir.path());
    let bytes = fs::read(&log).unwrap();
    for (length, records) in [(4096 + 5 * 64 + 8, 5), (4096 + 5 * 64, 5), (64 << 10, 10)] {
        fs::write(&log, &bytes[..length]).unwrap();
        let summary = collect(dir.path(), &dir.path().join("out"), false).unwrap();
        assert_eq!((summary.records, summary.incomplete, summary.cut_logs), (records, 0, u64::from(records == 5)), "{length}");
    }
}

#[test]
fn foreign_files_and_empty_logs_are_told_of_and_skipped() {
    let dir = tempfile::tempdir().unwrap();
    small_run(dir.path(), 0);
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    fs::write(dir.path().join("1-2-3.swt"), "").unwrap();
    fs::write(dir.path().join("1-2.names"), "SWNA").unwrap();
    let summary = collect(dir.path(), &dir.path().join("out"), false).unwrap();
    assert_eq!((summary.records, summary.empty_logs), (8, 1));
    assert!(summary.skipped.iter().any(|skipped| skipped.file == "notes.txt" && skipped.why.contains("not a trace file")));
}

/// Small logs and names to damage.
fn pieces() -> (Vec<u8>, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    small_run(dir.path(), 0);
    let log = swt(dir.path());
    let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some_and(|e| e == "names"));
    (fs::read(log).unwrap(), fs::read(names.unwrap()).unwrap())
}

fn survives(log: &[u8], names: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.swt"), log).unwrap();
    fs::write(dir.path().join("a.names"), names).unwrap();
    for lenient in [false, true] {
        let out = dir.path().join("out");
        match collect(dir.path(), &out, lenient) {
            Ok(summary) => assert_eq!(rows(&out.join("trace.parquet")).len() as u64, summary.records),
            Err(error) => assert!(error.to_string().contains(dir.path().to_str().unwrap())),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn damaged_logs_never_panic(
        flips in prop::collection::vec((0usize..10_000, any::<u8>()), 0..12),
        cut in prop::option::of(0usize..5_000),
    ) {
        let (mut log, mut names) = pieces();
        for (at, byte) in &flips {
            let place = if at % 2 == 0 { &mut log } else { &mut names };
            let length = place.len();
            place[at / 2 % length] = *byte;
        }
        log.truncate(cut.unwrap_or(log.len()));
        names.truncate(cut.map_or(names.len(), |cut| cut / 10));
        survives(&log, &names);
    }

    /// The header's moving part has no checksum: drops, pairs, counts may be anything.
    #[test]
    fn any_calibration_is_survived(words in prop::collection::vec(any::<u64>(), 1..132)) {
        let (mut log, names) = pieces();
        for (i, word) in words.iter().enumerate() {
            log[2168 + 8 * i..2176 + 8 * i].copy_from_slice(&word.to_le_bytes());
        }
        survives(&log, &names);
    }

    #[test]
    fn random_bytes_never_panic(log in prop::collection::vec(any::<u8>(), 0..9_000), names in prop::collection::vec(any::<u8>(), 0..300), magic: bool) {
        let (mut log, mut names) = (log, names);
        if magic {
            log.splice(0..log.len().min(12), *b"SWTRACE1\x01\0\0\0");
            names.splice(0..names.len().min(12), *b"SWNAMES1\x01\0\0\0");
        }
        survives(&log, &names);
    }
}
