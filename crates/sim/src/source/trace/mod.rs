//! A collected trace (docs/formats.md, Trace Parquet) as a source of requests: the reads and writes of the posix layer, thread by thread.
//!
//! Memory does not grow with the trace's length: each client reads its own row groups in small batches, and only so many of them are kept open at a
//! time. A first pass finds the clients and checks that their requests stand in order.

mod columns;
#[cfg(test)]
mod tests;

use super::turns::{Life, Turns};
use crate::{Error, Request, Source, Start};
use columns::{Columns, Item, Table};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// Row groups open at a time; each holds a page of every column, some 2 MB.
const OPEN_MAX: usize = 128;
/// Requests that all clients together keep ready.
const READY_MAX: usize = 1 << 21;
/// Rows read at once.
const BATCH_ROWS: usize = 1024;

/// How a trace's times are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// A request follows the client's request before after the time that the program took between them; a client that began when others were over follows
    /// these so.
    Closed,
    /// Every request begins when it began.
    Open,
}

/// A trace as a [`Source`]; its processes are the threads that made requests, by number of the process and of the thread.
pub struct TraceSource {
    table: Table,
    mode: Loop,
    clients: Vec<Client>,
    /// Clients in the order in which they ended.
    ended: Vec<u32>,
    /// Clients with an open row group, oldest first.
    open: VecDeque<u32>,
    batch_rows: usize,
    zero_ns: u64,
    requests: u64,
}

/// One thread of the traced run.
#[derive(Default)]
struct Client {
    process: i32,
    thread: i32,
    /// Of its first request, if others were over before it.
    start: Option<Start>,
    /// Row groups with requests of it.
    groups: Vec<usize>,
    /// Place in `groups`, and rows of that group that have been read.
    group: usize,
    row: u64,
    ready: VecDeque<Item>,
    columns: Option<Box<Columns>>,
    /// Latest end of its requests so far.
    end_ns: u64,
}

/// What the first pass keeps of a client.
#[derive(Default)]
struct Found {
    groups: Vec<usize>,
    latest_ns: u64,
    life: Option<Life>,
}

impl TraceSource {
    /// The requests of a trace on `files`, named as in the trace; requests name them by their position.
    ///
    /// # Errors
    /// [`Error::Trace`] when it is no trace, is damaged, or a thread's requests are not in the order of their times.
    pub fn open(path: &Path, files: &[String], mode: Loop) -> Result<TraceSource, Error> {
        let table = Table::open(path, files)?;
        let mut found: BTreeMap<(i32, i32), Found> = BTreeMap::new();
        let (mut zero_ns, mut requests, mut disorder) = (u64::MAX, 0, None);
        for group in 0..table.groups() {
            let mut columns = table.columns(group, 0)?;
            let mut see = |item: Item| {
                let client = found.entry((item.process, item.thread)).or_default();
                if item.start_ns < client.latest_ns {
                    disorder = disorder.or(Some((item.process, item.thread)));
                }
                client.latest_ns = client.latest_ns.max(item.start_ns);
                let life = Life { start_ns: item.start_ns, end_ns: item.end_ns };
                client.life = Some(client.life.map_or(life, |before| before.and(life)));
                if client.groups.last() != Some(&group) {
                    client.groups.push(group);
                }
                zero_ns = zero_ns.min(item.start_ns);
                requests += 1;
            };
            while table.read(&mut columns, BATCH_ROWS, &mut see)? > 0 {}
        }
        if let Some((process, thread)) = disorder {
            return Err(table.damaged(&format!("the requests of process {process}, thread {thread} do not stand in the order of start_ns")));
        }
        if found.is_empty() {
            return Err(table.without_requests());
        }
        let batch_rows = (READY_MAX / found.len()).clamp(64, BATCH_ROWS);
        let turns = match mode {
            Loop::Closed => Turns::of(&found.values().filter_map(|client| client.life).collect::<Vec<_>>()),
            Loop::Open => Turns::default(),
        };
        let starts = turns.starts.into_iter().chain(std::iter::repeat(None));
        let clients = found.into_iter().zip(starts);
        let clients =
            clients.map(|(((process, thread), Found { groups, .. }), start)| Client { process, thread, start, groups, ..Client::default() });
        Ok(TraceSource { clients: clients.collect(), ended: turns.ended, table, mode, open: VecDeque::new(), batch_rows, zero_ns, requests })
    }

    /// How many requests there are.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Reads on until the client has a request ready, or its row groups are at their end.
    fn refill(&mut self, number: u32) -> Result<(), Error> {
        let Some(client) = self.clients.get_mut(number as usize) else {
            return Ok(());
        };
        while client.ready.is_empty() {
            let Some(&group) = client.groups.get(client.group) else {
                return Ok(());
            };
            let mut columns = match client.columns.take() {
                Some(columns) => columns,
                None => {
                    self.open.push_back(number);
                    Box::new(self.table.columns(group, client.row)?)
                }
            };
            let (process, thread, ready) = (client.process, client.thread, &mut client.ready);
            let mine = |item: Item| {
                if (item.process, item.thread) == (process, thread) {
                    ready.push_back(item);
                }
            };
            let rows = self.table.read(&mut columns, self.batch_rows, mine)?;
            if rows > 0 {
                client.row += rows as u64;
                client.columns = Some(columns);
            } else {
                (client.group, client.row) = (client.group + 1, 0);
                self.open.retain(|open| *open != number);
            }
        }
        if self.open.len() > OPEN_MAX
            && let Some(oldest) = self.open.pop_front()
            && let Some(client) = self.clients.get_mut(oldest as usize)
        {
            client.columns = None;
        }
        Ok(())
    }
}

impl Source for TraceSource {
    fn processes(&self) -> u32 {
        self.clients.len() as u32
    }

    fn ended(&self) -> &[u32] {
        &self.ended
    }

    fn next(&mut self, process: u32) -> Result<Option<Request>, Error> {
        if self.clients.get(process as usize).is_some_and(|client| client.ready.is_empty()) {
            self.refill(process)?;
        }
        let Some(client) = self.clients.get_mut(process as usize) else {
            return Ok(None);
        };
        let Some(item) = client.ready.pop_front() else {
            return Ok(None);
        };
        let since_ns = item.start_ns - self.zero_ns.min(item.start_ns);
        let start = match self.mode {
            Loop::Open => Start::At(since_ns),
            Loop::Closed if client.end_ns == 0 => client.start.unwrap_or(Start::After(since_ns)),
            Loop::Closed => Start::After(item.start_ns.saturating_sub(client.end_ns)),
        };
        client.end_ns = client.end_ns.max(item.end_ns).max(1);
        Ok(Some(Request { file: item.file, write: item.write, offset: item.offset, bytes: item.bytes, start }))
    }
}
