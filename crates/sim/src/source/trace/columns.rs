//! The columns of a trace that a simulation needs, read in small batches from one row group.

use crate::Error;
use parquet::basic::Type;
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Bit of the column `flags`: the offset is unknown (docs/formats.md).
const UNKNOWN_OFFSET: i32 = 1 << 5;
/// Names and types of the columns that are read, in the order of [`Columns`].
const COLUMNS: [(&str, Type); 10] = [
    ("process", Type::INT32),
    ("thread", Type::INT32),
    ("layer", Type::BYTE_ARRAY),
    ("op", Type::BYTE_ARRAY),
    ("file", Type::BYTE_ARRAY),
    ("offset", Type::INT64),
    ("done", Type::INT64),
    ("start_ns", Type::INT64),
    ("end_ns", Type::INT64),
    ("flags", Type::INT32),
];

/// One read or write that moved bytes at a known offset of a wanted file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub process: i32,
    pub thread: i32,
    pub file: u32,
    pub write: bool,
    pub offset: u64,
    pub bytes: u64,
    pub start_ns: u64,
    pub end_ns: u64,
}

/// An open trace.Parquet and the files that are wanted of it.
pub(super) struct Table {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    /// Where the columns stand in the schema.
    places: [usize; COLUMNS.len()],
    files: HashMap<Vec<u8>, u32>,
}

impl Table {
    /// Opens the table; `files` are wanted, by their names in the trace.
    pub(super) fn open(path: &Path, files: &[String]) -> Result<Table, Error> {
        let bad = |why: String| Error::Trace(format!("{}: cannot be read as a trace ({why}); collect it again", path.display()));
        let file = File::open(path).map_err(|error| bad(error.to_string()))?;
        let reader = SerializedFileReader::new(file).map_err(|error| bad(one_line(&error)))?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let mut places = [0; COLUMNS.len()];
        for ((name, kind), place) in COLUMNS.iter().zip(&mut places) {
            let found = schema.columns().iter().position(|column| column.path().string() == *name);
            *place = found.ok_or_else(|| bad(format!("it has no column '{name}'")))?;
            let column = schema.column(*place);
            if column.physical_type() != *kind || column.max_rep_level() > 0 || column.max_def_level() > 1 {
                return Err(bad(format!("its column '{name}' is not of type {kind}")));
            }
        }
        let files = files.iter().zip(0..).map(|(name, number)| (name.clone().into_bytes(), number)).collect();
        Ok(Table { path: path.to_owned(), reader, places, files })
    }

    pub(super) fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// What went wrong while reading, with the file's name.
    pub(super) fn damaged(&self, why: &str) -> Error {
        Error::Trace(format!("{}: {why}; collect it again", self.path.display()))
    }

    /// An error of a trace in which none of the files is used.
    pub(super) fn without_requests(&self) -> Error {
        let path = self.path.display();
        Error::Trace(format!(
            "{path}: holds no read or write that moved a byte of the files that are asked for; give the trace that the plan is of, or other files"
        ))
    }

    /// The columns of a row group from row `row` on.
    pub(super) fn columns(&self, group: usize, row: u64) -> Result<Columns, Error> {
        self.begin(group, row).map_err(|error| self.damaged(&one_line(&error)))
    }

    fn begin(&self, group: usize, row: u64) -> Result<Columns, ParquetError> {
        let [process, thread, layer, op, file, offset, done, start_ns, end_ns, flags] = self.places;
        let group = self.reader.get_row_group(group)?;
        let group = group.as_ref();
        Ok(Columns {
            process: Column::new(group, process, row)?,
            thread: Column::new(group, thread, row)?,
            layer: Column::new(group, layer, row)?,
            op: Column::new(group, op, row)?,
            file: Column::new(group, file, row)?,
            offset: Column::new(group, offset, row)?,
            done: Column::new(group, done, row)?,
            start_ns: Column::new(group, start_ns, row)?,
            end_ns: Column::new(group, end_ns, row)?,
            flags: Column::new(group, flags, row)?,
        })
    }

    /// Reads up to `rows` rows and gives each that counts to `sink`; returns the rows read, 0 at the end of the row group.
    pub(super) fn read(&self, columns: &mut Columns, rows: usize, sink: impl FnMut(Item)) -> Result<usize, Error> {
        columns.read(rows, &self.files, sink).map_err(|error| self.damaged(&one_line(&error)))
    }
}

/// The columns of one row group, all at the same row.
pub(super) struct Columns {
    process: Column<Int32Type>,
    thread: Column<Int32Type>,
    layer: Column<ByteArrayType>,
    op: Column<ByteArrayType>,
    file: Column<ByteArrayType>,
    offset: Column<Int64Type>,
    done: Column<Int64Type>,
    start_ns: Column<Int64Type>,
    end_ns: Column<Int64Type>,
    flags: Column<Int32Type>,
}

impl Columns {
    fn read(&mut self, rows: usize, files: &HashMap<Vec<u8>, u32>, mut sink: impl FnMut(Item)) -> Result<usize, ParquetError> {
        let read = self.process.read(rows)?;
        let same = [
            self.thread.read(rows)?,
            self.layer.read(rows)?,
            self.op.read(rows)?,
            self.file.read(rows)?,
            self.offset.read(rows)?,
            self.done.read(rows)?,
            self.start_ns.read(rows)?,
            self.end_ns.read(rows)?,
            self.flags.read(rows)?,
        ];
        if same.iter().any(|each| *each != read) {
            return Err(ParquetError::General("its columns differ in length".to_owned()));
        }
        for _ in 0..read {
            if let Some(item) = self.row(files) {
                sink(item);
            }
        }
        Ok(read)
    }

    /// The next row of the batch, if it is a request. Every column is stepped, whatever the row turns out to be.
    fn row(&mut self, files: &HashMap<Vec<u8>, u32>) -> Option<Item> {
        let (process, thread, flags) = (self.process.next(), self.thread.next(), self.flags.next());
        let (offset, done) = (self.offset.next().copied(), self.done.next().copied());
        let (start_ns, end_ns) = (self.start_ns.next().copied(), self.end_ns.next().copied());
        let (layer, op, file) = (self.layer.next(), self.op.next(), self.file.next());
        let write = match op?.data() {
            b"read" => false,
            b"write" => true,
            _ => return None,
        };
        if layer.is_some_and(|layer| layer.data() == b"mpi") || flags.is_some_and(|flags| flags & UNKNOWN_OFFSET != 0) {
            return None;
        }
        let bytes = u64::try_from(done?).ok().filter(|bytes| *bytes > 0)?;
        let start_ns = u64::try_from(start_ns?).unwrap_or(0);
        Some(Item {
            process: *process?,
            thread: *thread?,
            file: *files.get(file?.data())?,
            write,
            offset: u64::try_from(offset?).ok()?,
            bytes,
            start_ns,
            end_ns: u64::try_from(end_ns?).unwrap_or(0).max(start_ns),
        })
    }
}

/// One column with the batch read last.
struct Column<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
    /// 1 where there is a value; empty where none is missing.
    levels: Vec<i16>,
    /// Rows and values of the batch handed out.
    row: usize,
    value: usize,
}

impl<T: DataType> Column<T> {
    fn new(group: &dyn RowGroupReader, place: usize, row: u64) -> Result<Column<T>, ParquetError> {
        let mut reader = get_typed_column_reader::<T>(group.get_column_reader(place)?);
        reader.skip_records(row as usize)?;
        Ok(Column { reader, values: Vec::new(), levels: Vec::new(), row: 0, value: 0 })
    }

    fn read(&mut self, rows: usize) -> Result<usize, ParquetError> {
        self.values.clear();
        self.levels.clear();
        (self.row, self.value) = (0, 0);
        let mut records = 0;
        while records < rows {
            let (more, ..) = self.reader.read_records(rows - records, Some(&mut self.levels), None, &mut self.values)?;
            if more == 0 {
                break;
            }
            records += more;
        }
        Ok(records)
    }

    /// The value of the next row of the batch; `None` for a null.
    fn next(&mut self) -> Option<&T::T> {
        let there = self.levels.get(self.row).is_none_or(|level| *level > 0);
        self.row += 1;
        if !there {
            return None;
        }
        self.value += 1;
        self.values.get(self.value - 1)
    }
}

fn one_line(error: &ParquetError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
