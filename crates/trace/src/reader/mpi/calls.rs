//! The calls of one process, in the order in which rows are written: each row of the mpi layer gets its ranges, each of the posix layer the call that it
//! was made for.

use super::{Extent, Layout, Sessions, Survey};
use crate::format::entry_kind;
use crate::reader::columns::{Parent, Row};
use crate::reader::log_file::Records;
use crate::reader::{Error, ProcessLogs, Run, Slot};
use crate::record::{Op, Record, flags};
use std::collections::HashMap;
use std::rc::Rc;

/// A thread's next call of the mpi layer. A call stands in the log after those that it has made, and only the outermost of nested ones is there.
pub(crate) struct Ahead<'a> {
    records: Records<'a>,
    next: Option<(u64, Record)>,
}

impl<'a> Ahead<'a> {
    pub(crate) fn new(records: Records<'a>) -> Ahead<'a> {
        Ahead { records, next: Some((0, Record::default())) }
    }

    /// The call of the mpi layer that has made the record in `slot`.
    pub(crate) fn around(&mut self, slot: u64, record: &Record) -> Result<Option<(u64, Record)>, Error> {
        while self.next.is_some_and(|(at, _)| at <= slot) {
            self.next = loop {
                match self.records.next_slot()? {
                    Some((at, Slot::Complete(next))) if next.flags & flags::MPI != 0 => break Some((at, next)),
                    Some(_) => {}
                    None => break None,
                }
            };
        }
        Ok(self.next.filter(|(_, call)| call.start_ticks <= record.start_ticks && call.end_ticks >= record.end_ticks))
    }
}

/// The view of an open file.
#[derive(Clone)]
struct View {
    displacement: i64,
    /// None: not understood.
    layout: Option<Rc<Layout>>,
}

/// A nonblocking call under way.
struct Pending {
    request: u64,
    path: u32,
    parent: Parent,
}

/// What is known of a process on the way through its rows.
pub(crate) struct Calls<'a> {
    run: &'a Run,
    process: &'a ProcessLogs,
    number: u32,
    survey: &'a Survey,
    layouts: HashMap<u32, Option<Rc<Layout>>>,
    plain: Rc<Layout>,
    views: HashMap<u32, View>,
    /// Collective calls of each session so far.
    ordinals: HashMap<u32, i64>,
    pending: Vec<Pending>,
    /// The first byte that the calls below a call by the shared file pointer have touched.
    below: HashMap<(u32, u64), u64>,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(run: &'a Run, process: &'a ProcessLogs, number: u32, survey: &'a Survey) -> Calls<'a> {
        Calls {
            run,
            process,
            number,
            survey,
            layouts: HashMap::new(),
            plain: Rc::new(Layout::plain()),
            views: HashMap::new(),
            ordinals: HashMap::new(),
            pending: Vec::new(),
            below: HashMap::new(),
        }
    }

    /// Completes a row; of a call that touches several ranges, gives a row for each. `around` is the path of the call that the row's thread was in.
    pub(crate) fn complete(&mut self, row: &mut Row, around: Option<u32>, sessions: &mut Sessions) -> Vec<Row> {
        if row.record.flags & flags::MPI == 0 {
            self.find_parent(row, around);
            return Vec::new();
        }
        let handle = row.record.fd as u32;
        if row.record.flags & flags::COLLECTIVE != 0 && handle != 0 {
            let ordinal = self.ordinals.entry(handle).or_default();
            row.ordinal = Some(*ordinal);
            *ordinal += 1;
        }
        match Op::from_number(row.record.op) {
            Some(Op::View) if row.record.errno == 0 => {
                let known = row.record.flags & flags::UNKNOWN_OFFSET == 0;
                let layout = self.layout(row.record.done).filter(|_| known);
                self.views.insert(handle, View { displacement: row.record.offset as i64, layout });
            }
            Some(Op::MpiClose) => {
                self.views.remove(&handle);
            }
            Some(Op::MpiSeek) => {
                // A count of bytes of the view's data, which is no place in the file.
                row.record.flags |= flags::UNKNOWN_OFFSET;
            }
            Some(Op::MpiWait) => {
                let request = row.record.offset;
                self.pending.retain(|pending| pending.request != request);
                row.record.flags |= flags::UNKNOWN_OFFSET;
                row.record.offset = 0;
            }
            Some(Op::MpiRead | Op::MpiWrite) => return self.moved(row, sessions),
            _ => {}
        }
        Vec::new()
    }

    /// The layout of a view by its number.
    fn layout(&mut self, number: i64) -> Option<Rc<Layout>> {
        let number = u32::try_from(number).ok()?;
        if number == 0 {
            return Some(self.plain.clone());
        }
        let (run, process) = (self.run, self.process);
        let read = || run.note(&process.identity, entry_kind::VIEW, number).and_then(Layout::of_words).map(Rc::new);
        self.layouts.entry(number).or_insert_with(read).clone()
    }

    /// A call that moves bytes: its ranges.
    fn moved(&mut self, row: &mut Row, sessions: &mut Sessions) -> Vec<Row> {
        let (handle, shared) = (row.record.fd as u32, row.record.flags & flags::SHARED != 0);
        let place = (row.thread, row.seq);
        let below = self.below.remove(&place);
        if row.record.flags & flags::NONBLOCKING != 0 && row.record.errno == 0 {
            let request = row.record.done as u64;
            self.pending.push(Pending { request, path: row.path, parent: Parent { thread: row.thread, seq: row.seq } });
            // What was never waited for has done nothing that anybody knows of.
            row.record.done = self.survey.done(self.number, request).unwrap_or(0);
        }
        let view = self.views.get(&handle).cloned().unwrap_or(View { displacement: 0, layout: Some(self.plain.clone()) });
        let from = if shared && row.record.errno == 0 {
            let told = sessions.next_position(self.number, handle);
            told.or_else(|| view.layout.as_ref()?.position_of(view.displacement, i64::try_from(below?).ok()?))
        } else {
            Some(row.record.offset).filter(|_| row.record.flags & flags::UNKNOWN_OFFSET == 0)
        };
        let found = view.layout.as_ref().zip(from).and_then(|(layout, from)| layout.ranges(view.displacement, from, row.record.requested_bytes));
        row.record.flags |= flags::UNKNOWN_OFFSET;
        let Some(found) = found.filter(|ranges| ranges.iter().all(|range| range.offset >= 0)) else {
            row.record.offset = 0;
            return Vec::new();
        };
        row.record.offset = 0;
        row.reach = found.iter().map(Extent::end).max().and_then(|end| u64::try_from(end).ok());
        if row.record.requested_bytes > 0 {
            row.record.flags &= !flags::UNKNOWN_OFFSET;
            row.record.offset = found.iter().map(|range| range.offset).min().unwrap_or(0) as u64;
        }
        match found.as_slice() {
            [] => Vec::new(),
            [one] if one.levels.is_empty() => Vec::new(),
            _ => found.iter().flat_map(|range| rows_of(row, range)).collect(),
        }
    }

    /// The call of the mpi layer that a row of the posix layer was made for.
    fn find_parent(&mut self, row: &mut Row, around: Option<u32>) {
        let Some((seq, call)) = row.around else { return };
        row.parent = Some(Parent { thread: row.thread, seq });
        let by_shared = call.flags & (flags::SHARED | flags::COLLECTIVE) == flags::SHARED;
        let moves = [Op::Read as u16, Op::Write as u16].contains(&row.record.op) && row.record.flags & flags::UNKNOWN_OFFSET == 0;
        // ROMIO keeps the pointer in a file of its own.
        if by_shared && moves && row.record.done > 0 && around == Some(row.path) {
            let first = self.below.entry((row.thread, seq)).or_insert(u64::MAX);
            *first = (*first).min(row.record.offset);
        }
        if call.op == Op::MpiWait as u16 {
            let mut candidates = self.pending.iter().filter(|pending| pending.path == row.path);
            if let Some(first) = candidates.next() {
                row.parent = Some(first.parent);
                if candidates.next().is_some() {
                    row.record.flags |= flags::AMBIGUOUS;
                }
            }
        }
    }
}

/// A range as rows: one, and one for each further level of repetition.
fn rows_of(call: &Row, range: &Extent) -> Vec<Row> {
    let levels: &[(i64, u64)] = if range.levels.is_empty() { &[(0, 1)] } else { &range.levels };
    let row = |(place, (stride, count)): (usize, &(i64, u64))| Row {
        record: Record {
            op: Op::Extent as u16,
            offset: range.offset as u64,
            requested_bytes: range.bytes,
            done: *stride,
            aux: u32::try_from(*count).unwrap_or(u32::MAX),
            flags: flags::MPI | call.record.flags & flags::COLLECTIVE | if place > 0 { flags::CONTINUES } else { 0 },
            ..call.record
        },
        ordinal: call.ordinal,
        parent: Some(Parent { thread: call.thread, seq: call.seq }),
        around: None,
        reach: None,
        ..*call
    };
    levels.iter().enumerate().map(row).collect()
}
