//! What the recogniser reads: records as columns.

/// One record, without its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The operation and whatever else a caller wants back: a number of its own for each combination.
    pub kind: u32,
    /// First byte in the file.
    pub offset: i64,
    /// Bytes.
    pub size: i64,
}

/// Records in columns; those beyond the shortest column do not count.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// As [`Record::kind`].
    pub kind: &'a [u32],
    /// As [`Record::offset`].
    pub offset: &'a [i64],
    /// As [`Record::size`].
    pub size: &'a [i64],
}

impl<'a> Columns<'a> {
    /// How many records there are.
    pub fn len(&self) -> usize {
        self.kind.len().min(self.offset.len()).min(self.size.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The records in their order.
    pub fn records(&self) -> impl ExactSizeIterator<Item = Record> + use<'a> {
        let (kind, offset, size) = (self.kind, self.offset, self.size);
        kind.iter().zip(offset).zip(size).map(|((&kind, &offset), &size)| Record { kind, offset, size })
    }

    /// The records of these rows; a row that is not there is a record of zeros.
    pub fn at<'b>(&self, rows: &'b [u32]) -> impl ExactSizeIterator<Item = Record> + use<'a, 'b> {
        let (kind, offset, size) = (self.kind, self.offset, self.size);
        rows.iter().map(move |&row| {
            let row = row as usize;
            let value = |column: &[i64]| column.get(row).copied().unwrap_or(0);
            Record { kind: kind.get(row).copied().unwrap_or(0), offset: value(offset), size: value(size) }
        })
    }
}
