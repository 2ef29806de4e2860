//! The requests of a trace, column by column.

/// Columns of one length, a row for each read or write.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Nanoseconds from the start of the run; an end before its start counts as the start.
    pub start_ns: Vec<i64>,
    pub end_ns: Vec<i64>,
    /// Number of the process, of the file.
    pub process: Vec<u32>,
    pub file: Vec<u32>,
    /// 1 for a write, 0 for a read.
    pub write: Vec<u8>,
    /// Bytes; an offset below 0 is unknown.
    pub offset: Vec<i64>,
    pub size: Vec<i64>,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub start_ns: u64,
    pub end_ns: u64,
    pub process: u32,
    pub is_write: bool,
    pub offset: Option<u64>,
    pub size: u64,
}

impl Columns {
    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.start_ns.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start_ns.is_empty()
    }

    /// Whether all columns have one length.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let rows = self.len();
        [self.end_ns.len(), self.process.len(), self.file.len(), self.write.len(), self.offset.len(), self.size.len()] == [rows; 6]
    }

    /// A row, if there is one of this number.
    #[must_use]
    pub fn at(&self, row: usize) -> Option<Request> {
        let start_ns = u64::try_from(*self.start_ns.get(row)?).unwrap_or(0);
        Some(Request {
            start_ns,
            end_ns: u64::try_from(*self.end_ns.get(row)?).unwrap_or(0).max(start_ns),
            process: *self.process.get(row)?,
            is_write: *self.write.get(row)? != 0,
            offset: u64::try_from(*self.offset.get(row)?).ok(),
            size: u64::try_from(*self.size.get(row)?).unwrap_or(0),
        })
    }

    /// All rows, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Request> {
        (0..self.len()).filter_map(|row| self.at(row))
    }

    /// These rows.
    pub fn of<'a>(&'a self, rows: &'a [u32]) -> impl Iterator<Item = Request> + Clone + 'a {
        rows.iter().filter_map(|&row| self.at(row as usize))
    }
}

/// The rows of each of `files` files, in their order; those of no such file are left out.
#[must_use]
pub fn by_file(file: &[u32], files: usize) -> Vec<Vec<u32>> {
    let mut rows = vec![Vec::new(); files];
    for (row, &number) in (0u32..).zip(file) {
        if let Some(mine) = rows.get_mut(number as usize) {
            mine.push(row);
        }
    }
    rows
}
