//! Traces written here with the columns that matter, read back as clients.

use super::{Loop, OPEN_MAX, TraceSource};
use crate::{Request, Source, Start};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SCHEMA: &str = "message trace { REQUIRED INT32 process; REQUIRED INT32 thread; REQUIRED BYTE_ARRAY layer (STRING);
    REQUIRED BYTE_ARRAY op (STRING); OPTIONAL BYTE_ARRAY file (STRING); OPTIONAL INT64 offset; REQUIRED INT64 done; REQUIRED INT64 start_ns;
    REQUIRED INT64 end_ns; REQUIRED INT32 flags; }";

#[derive(Clone)]
struct Row {
    process: i32,
    thread: i32,
    layer: &'static str,
    op: &'static str,
    file: Option<&'static str>,
    offset: Option<i64>,
    done: i64,
    start_ns: i64,
    end_ns: i64,
    flags: i32,
}

fn row(process: i32, thread: i32, start_ns: i64) -> Row {
    Row {
        process,
        thread,
        layer: "posix",
        op: "read",
        file: Some("/f"),
        offset: Some(start_ns),
        done: 512,
        start_ns,
        end_ns: start_ns + 40,
        flags: 0,
    }
}

fn written(dir: &Path, groups: &[Vec<Row>]) -> PathBuf {
    let path = dir.join("trace.parquet");
    let properties = WriterProperties::builder().set_data_page_row_count_limit(100).build();
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::new(properties)).unwrap();
    for rows in groups {
        let mut group = writer.next_row_group().unwrap();
        macro_rules! column {
            ($type:ty, $of:expr) => {{
                let cells: Vec<Option<_>> = rows.iter().map($of).collect();
                let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
                let values: Vec<_> = cells.into_iter().flatten().collect();
                let mut column = group.next_column().unwrap().unwrap();
                column.typed::<$type>().write_batch(&values, Some(&levels), None).unwrap();
                column.close().unwrap();
            }};
        }
        column!(Int32Type, |row: &Row| Some(row.process));
        column!(Int32Type, |row: &Row| Some(row.thread));
        column!(ByteArrayType, |row: &Row| Some(ByteArray::from(row.layer)));
        column!(ByteArrayType, |row: &Row| Some(ByteArray::from(row.op)));
        column!(ByteArrayType, |row: &Row| row.file.map(ByteArray::from));
        column!(Int64Type, |row: &Row| row.offset);
        column!(Int64Type, |row: &Row| Some(row.done));
        column!(Int64Type, |row: &Row| Some(row.start_ns));
        column!(Int64Type, |row: &Row| Some(row.end_ns));
        column!(Int32Type, |row: &Row| Some(row.flags));
        group.close().unwrap();
    }
    writer.close().unwrap();
    path
}

fn opened(groups: &[Vec<Row>], mode: Loop) -> Result<TraceSource, crate::Error> {
    let dir = tempfile::tempdir().unwrap();
    TraceSource::open(&written(dir.path(), groups), &["/f".to_owned(), "/g".to_owned()], mode)
}

fn all(source: &mut TraceSource, client: u32) -> Vec<Request> {
    std::iter::from_fn(|| source.next(client).unwrap()).collect()
}

#[test]
fn only_posix_requests_that_moved_bytes_at_known_offsets_of_wanted_files_count() {
    let rows = vec![
        row(0, 1, 100),
        Row { op: "open", ..row(0, 1, 110) },
        Row { layer: "mpi", ..row(0, 1, 120) },
        Row { done: 0, ..row(0, 1, 130) },
        Row { done: -1, ..row(0, 1, 140) },
        Row { offset: None, ..row(0, 1, 150) },
        Row { flags: 32, ..row(0, 1, 160) },
        Row { file: None, ..row(0, 1, 170) },
        Row { file: Some("/other"), ..row(0, 1, 180) },
        Row { file: Some("/g"), op: "write", offset: Some(7), done: 9, ..row(0, 1, 190) },
    ];
    let mut source = opened(&[rows], Loop::Closed).unwrap();
    assert_eq!((source.processes(), source.requests()), (1, 2));
    let first = Request { file: 0, write: false, offset: 100, bytes: 512, start: Start::After(0) };
    let second = Request { file: 1, write: true, offset: 7, bytes: 9, start: Start::After(50) };
    assert_eq!(all(&mut source, 0), [first, second]);
}

#[test]
fn a_closed_loop_keeps_think_times_and_an_open_one_the_times() {
    let rows = vec![row(0, 1, 1000), row(0, 2, 1010), row(0, 1, 1100), row(0, 2, 1030)];
    let mut closed = opened(std::slice::from_ref(&rows), Loop::Closed).unwrap();
    let starts = |requests: Vec<Request>| requests.iter().map(|request| request.start).collect::<Vec<_>>();
    assert_eq!(starts(all(&mut closed, 0)), [Start::After(0), Start::After(60)]);
    // The second thread's second call began inside its first: no time to think.
    assert_eq!(starts(all(&mut closed, 1)), [Start::After(10), Start::After(0)]);
    let mut open = opened(&[rows], Loop::Open).unwrap();
    assert_eq!(starts(all(&mut open, 0)), [Start::At(0), Start::At(100)]);
}

#[test]
fn clients_that_ran_one_after_another_do_in_a_closed_loop() {
    // Beside each other, and one behind the first of these, 70 ns after its end.
    let rows = vec![row(0, 1, 1000), row(0, 2, 1010), row(0, 2, 1500), row(9, 1, 1100 + 10)];
    let mut closed = opened(std::slice::from_ref(&rows), Loop::Closed).unwrap();
    let starts = |source: &mut TraceSource| (0..3).map(|client| all(source, client)[0].start).collect::<Vec<_>>();
    assert_eq!(closed.ended(), [0, 2, 1]);
    assert_eq!(starts(&mut closed), [Start::After(0), Start::After(10), Start::Behind { over: 1, think_ns: 70 }]);
    let mut open = opened(&[rows], Loop::Open).unwrap();
    assert!(open.ended().is_empty());
    assert_eq!(starts(&mut open), [Start::At(0), Start::At(10), Start::At(110)]);
}

#[test]
fn clients_beyond_the_open_row_groups_lose_nothing() {
    let clients = OPEN_MAX as i32 + 60;
    let groups: Vec<Vec<Row>> = (0..clients).map(|p| (0..700).map(|n| row(p, p + 7, n * 100 + i64::from(p))).collect()).collect();
    let mut source = opened(&groups, Loop::Open).unwrap();
    assert_eq!(source.requests(), clients as u64 * 700);
    for n in 0..700 {
        for client in 0..clients {
            let request = source.next(client as u32).unwrap().unwrap();
            assert_eq!(request.offset, n * 100 + client as u64);
        }
        assert!(source.open.len() <= OPEN_MAX);
    }
    assert!((0..clients as u32).all(|client| source.next(client).unwrap().is_none()));
}

#[test]
fn a_client_goes_on_over_its_row_groups_and_other_threads_in_them() {
    let groups: Vec<Vec<Row>> = (0..3i64).map(|g| (0..500).map(|n| row(4, (n % 2) as i32, g * 10_000 + n)).collect()).collect();
    let mut source = opened(&groups, Loop::Open).unwrap();
    for client in 0..2 {
        let offsets: Vec<u64> = all(&mut source, client).iter().map(|request| request.offset).collect();
        let expected: Vec<u64> = (0..3).flat_map(|g| (0..500).map(move |n| g * 10_000 + n)).filter(|n| n % 2 == u64::from(client)).collect();
        assert_eq!(offsets, expected);
    }
}

#[test]
fn a_table_out_of_order_or_without_requests_is_refused_by_name() {
    let disorder = opened(&[vec![row(3, 1, 500), row(3, 1, 400)]], Loop::Closed).err().unwrap().to_string();
    assert!(disorder.contains("trace.parquet") && disorder.contains("process 3, thread 1") && disorder.contains("order"), "{disorder}");
    let empty = opened(&[vec![Row { done: 0, ..row(3, 1, 500) }]], Loop::Closed).err().unwrap().to_string();
    assert!(empty.contains("no read or write"), "{empty}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    std::fs::write(&path, b"PAR1 nothing of the kind").unwrap();
    let bad = TraceSource::open(&path, &[], Loop::Closed).err().unwrap().to_string();
    assert!(bad.contains("cannot be read as a trace") && !bad.contains('\n'), "{bad}");
}
