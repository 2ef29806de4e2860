//! The Parquet table: its schema (docs/formats.md draws it) and the writing of one row group, column by column.

use super::Error;
use crate::record::{Op, Record, flags};
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The program as meta.json and the Parquet footer name it.
pub(super) const TOOL: &str = concat!("stripewise ", env!("CARGO_PKG_VERSION"));

const SCHEMA: &str = "message trace {
    REQUIRED INT32 process;
    REQUIRED INT32 pid;
    OPTIONAL INT32 rank;
    OPTIONAL INT32 world;
    REQUIRED INT32 thread;
    REQUIRED BYTE_ARRAY host (STRING);
    REQUIRED INT64 seq;
    REQUIRED BYTE_ARRAY layer (STRING);
    REQUIRED BYTE_ARRAY op (STRING);
    OPTIONAL BYTE_ARRAY file (STRING);
    OPTIONAL BYTE_ARRAY file2 (STRING);
    OPTIONAL INT32 fd;
    OPTIONAL INT32 handle;
    OPTIONAL INT32 comm_size;
    OPTIONAL INT64 offset;
    REQUIRED INT64 requested;
    REQUIRED INT64 done;
    REQUIRED INT64 start_ns;
    REQUIRED INT64 end_ns;
    REQUIRED BOOLEAN collective;
    REQUIRED BOOLEAN managed;
    REQUIRED INT32 errno;
    REQUIRED INT32 flags;
    OPTIONAL INT32 aux;
    OPTIONAL INT64 ordinal;
    OPTIONAL INT64 parent;
    OPTIONAL INT32 parent_thread;
}";

/// Rows given to a column at once.
const BATCH_ROWS: usize = 8192;

/// A record by its thread and its number in the thread's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub thread: u32,
    pub seq: u64,
}

/// One row before it is cut into columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub record: Record,
    pub thread: u32,
    pub seq: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Places in the table of paths, [`NO_PATH`] for none.
    pub path: u32,
    pub path2: u32,
    /// Number of a collective call in its session.
    pub ordinal: Option<i64>,
    /// The call of the mpi layer that this one was made for.
    pub parent: Option<Parent>,
    /// The call of the mpi layer that this thread was in, with its `seq`.
    pub around: Option<(u64, Record)>,
    /// Behind the furthest byte that a call of the mpi layer asks for.
    pub reach: Option<u64>,
}

/// No file, or a name that was lost.
pub(super) const NO_PATH: u32 = u32::MAX;

/// What is the same in all rows of a row group.
pub(super) struct Group<'a> {
    pub process: u32,
    pub pid: u32,
    pub rank: i32,
    pub world: i32,
    pub host: &'a str,
    pub paths: &'a [ByteArray],
    pub zero_ns: u64,
}

/// The file being written.
pub(super) struct Table {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
}

impl Table {
    pub(super) fn create(path: &Path) -> Result<Table, Error> {
        let file = File::create(path).map_err(Error::io(path, "create"))?;
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(TOOL.to_owned());
        for column in ["seq", "start_ns", "end_ns", "offset", "parent"] {
            let column = ColumnPath::from(column);
            properties = properties.set_column_dictionary_enabled(column.clone(), false).set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
        let writer = parse_message_type(SCHEMA)
            .and_then(|schema| SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build())))
            .map_err(|source| Error::Parquet { path: path.to_owned(), source })?;
        Ok(Table { path: path.to_owned(), writer })
    }

    /// Writes a row group; an empty one is none.
    pub(super) fn write(&mut self, group: &Group, rows: &[Row]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let result = self.writer.next_row_group().and_then(|mut writer| {
            write_columns(&mut writer, group, rows)?;
            writer.close().map(|_| ())
        });
        result.map_err(|source| Error::Parquet { path: self.path.clone(), source })
    }

    /// Writes the footer and waits for the disk.
    pub(super) fn finish(mut self, metadata: &[(&str, String)]) -> Result<(), Error> {
        for (key, value) in metadata {
            self.writer.append_key_value_metadata(KeyValue::new((*key).to_owned(), value.clone()));
        }
        let file = self.writer.into_inner().map_err(|source| Error::Parquet { path: self.path.clone(), source })?;
        file.sync_all().map_err(Error::io(&self.path, "sync"))
    }
}

/// In the order of the schema.
fn write_columns(w: &mut SerializedRowGroupWriter<File>, g: &Group, rows: &[Row]) -> Result<(), ParquetError> {
    let known = |number: i32| (number >= 0).then_some(number);
    let (host, ops) = (ByteArray::from(g.host), OpNames::default());
    let (posix, mpi) = (ByteArray::from("posix"), ByteArray::from("mpi"));
    let path = |place: u32| g.paths.get(place as usize).cloned();
    let since_zero = |ns: u64| i64::try_from(ns.saturating_sub(g.zero_ns)).unwrap_or(i64::MAX);
    let is_mpi = |row: &Row| row.record.flags & flags::MPI != 0;
    let is_extent = |row: &Row| row.record.op == Op::Extent as u16;
    let has = |row: &Row, flag: u32| row.record.flags & flag != 0;

    required::<Int32Type>(w, rows, |_| g.process as i32)?;
    required::<Int32Type>(w, rows, |_| g.pid as i32)?;
    optional::<Int32Type>(w, rows, |_| known(g.rank))?;
    optional::<Int32Type>(w, rows, |_| known(g.world))?;
    required::<Int32Type>(w, rows, |row| row.thread as i32)?;
    required::<ByteArrayType>(w, rows, |_| host.clone())?;
    required::<Int64Type>(w, rows, |row| row.seq as i64)?;
    required::<ByteArrayType>(w, rows, |row| if is_mpi(row) { mpi.clone() } else { posix.clone() })?;
    required::<ByteArrayType>(w, rows, |row| ops.get(row.record.op))?;
    optional::<ByteArrayType>(w, rows, |row| path(row.path))?;
    optional::<ByteArrayType>(w, rows, |row| path(row.path2))?;
    optional::<Int32Type>(w, rows, |row| (!is_mpi(row)).then_some(row.record.fd))?;
    optional::<Int32Type>(w, rows, |row| is_mpi(row).then_some(row.record.fd))?;
    optional::<Int32Type>(w, rows, |row| (is_mpi(row) && !is_extent(row)).then_some(row.record.aux as i32))?;
    optional::<Int64Type>(w, rows, |row| (!has(row, flags::UNKNOWN_OFFSET)).then_some(row.record.offset as i64))?;
    required::<Int64Type>(w, rows, |row| i64::try_from(row.record.requested_bytes).unwrap_or(i64::MAX))?;
    required::<Int64Type>(w, rows, |row| row.record.done)?;
    required::<Int64Type>(w, rows, |row| since_zero(row.start_ns))?;
    required::<Int64Type>(w, rows, |row| since_zero(row.end_ns))?;
    required::<BoolType>(w, rows, |row| has(row, flags::COLLECTIVE))?;
    required::<BoolType>(w, rows, |row| has(row, flags::MANAGED))?;
    required::<Int32Type>(w, rows, |row| i32::from(row.record.errno))?;
    required::<Int32Type>(w, rows, |row| row.record.flags as i32)?;
    optional::<Int32Type>(w, rows, |row| (!is_mpi(row) || is_extent(row)).then_some(row.record.aux as i32))?;
    optional::<Int64Type>(w, rows, |row| row.ordinal)?;
    optional::<Int64Type>(w, rows, |row| row.parent.map(|parent| parent.seq as i64))?;
    optional::<Int32Type>(w, rows, |row| row.parent.map(|parent| parent.thread as i32))
}

/// The names of operations as column values, made once per row group; `op<number>` for one that this version does not know.
#[derive(Default)]
struct OpNames(std::cell::RefCell<HashMap<u16, ByteArray>>);

impl OpNames {
    fn get(&self, number: u16) -> ByteArray {
        let text = || Op::from_number(number).map_or_else(|| format!("op{number}"), |op| op.name().to_owned());
        self.0.borrow_mut().entry(number).or_insert_with(|| ByteArray::from(text().as_str())).clone()
    }
}

fn required<T: DataType>(group: &mut SerializedRowGroupWriter<File>, rows: &[Row], value: impl Fn(&Row) -> T::T) -> Result<(), ParquetError> {
    batches::<T>(group, rows, |column, batch| {
        let values: Vec<T::T> = batch.iter().map(&value).collect();
        column.write_batch(&values, None, None).map(|_| ())
    })
}

fn optional<T: DataType>(group: &mut SerializedRowGroupWriter<File>, rows: &[Row], value: impl Fn(&Row) -> Option<T::T>) -> Result<(), ParquetError> {
    batches::<T>(group, rows, |column, batch| {
        let cells: Vec<Option<T::T>> = batch.iter().map(&value).collect();
        let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
        let values: Vec<T::T> = cells.into_iter().flatten().collect();
        column.write_batch(&values, Some(&levels), None).map(|_| ())
    })
}

fn batches<T: DataType>(
    group: &mut SerializedRowGroupWriter<File>,
    rows: &[Row],
    mut write: impl FnMut(&mut ColumnWriterImpl<'_, T>, &[Row]) -> Result<(), ParquetError>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has fewer columns than are written".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    for batch in rows.chunks(BATCH_ROWS) {
        write(column.typed::<T>(), batch)?;
    }
    column.close()
}
