//! Requests that are there already, as tables of rows: what a planner holds in its hands and wants to see run.

use super::ROW_BYTES;
use super::turns::{Life, Turns};
use crate::{Error, Request, Source, Start};
use std::collections::BTreeMap;

/// One request, and when the program issued it.
#[derive(Clone, Copy, Debug)]
struct Row {
    start_ns: u64,
    end_ns: u64,
    request: Request,
}

/// Processes by their rank, each with its requests in the order of their times; a closed loop that keeps the times between them. A process that began when
/// others were over waits for these ([`super::turns`]); the others begin at once.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    processes: Vec<Vec<Request>>,
    /// In the order in which they ended.
    ended: Vec<u32>,
    requests: u64,
}

/// One run of listed requests, from the first on.
#[derive(Clone, Debug)]
pub struct ListedRun<'a> {
    listed: &'a Listed,
    at: Vec<usize>,
}

impl Listed {
    /// `tables` are the requests of file 0, 1 and so on, as rows of [`ROW_BYTES`]; requests of no bytes are left out. Of every process the first
    /// `most` are kept.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a table is cut short or a number in it is negative.
    pub fn new<'a>(tables: impl IntoIterator<Item = &'a [u8]>, most: usize) -> Result<Self, Error> {
        let mut ranks: BTreeMap<i32, Vec<Row>> = BTreeMap::new();
        for (file, table) in tables.into_iter().enumerate() {
            let rows = table.chunks_exact(ROW_BYTES);
            if !rows.remainder().is_empty() {
                return Err(Error::Invalid(format!("the requests of file {file}: the table is cut short; give whole rows of {ROW_BYTES} bytes")));
            }
            for row in rows {
                let (rank, row) = parsed(row, file as u32).ok_or_else(|| {
                    Error::Invalid(format!("the requests of file {file}: a time, offset or size is negative; leave the request out"))
                })?;
                if row.request.bytes > 0 {
                    ranks.entry(rank).or_default().push(row);
                }
            }
        }
        // Also those that are not kept: who came after them came after all of the process.
        let life = |row: &Row| Life { start_ns: row.start_ns, end_ns: row.end_ns };
        let lives: Vec<Life> = ranks.values().filter_map(|rows| rows.iter().map(life).reduce(Life::and)).collect();
        let turns = Turns::of(&lives);
        let mut processes: Vec<Vec<Request>> = ranks.into_values().map(|rows| in_turn(rows, most)).collect();
        for (requests, start) in processes.iter_mut().zip(&turns.starts) {
            if let (Some(first), Some(start)) = (requests.first_mut(), start) {
                first.start = *start;
            }
        }
        let requests = processes.iter().map(|each| each.len() as u64).sum();
        Ok(Self { processes, ended: turns.ended, requests })
    }

    /// The same requests, all processes begun at once: of a sample the times do not tell who was over when.
    #[must_use]
    pub fn at_once(mut self) -> Self {
        self.ended.clear();
        for first in self.processes.iter_mut().filter_map(|requests| requests.first_mut()) {
            first.start = Start::After(0);
        }
        self
    }

    /// Requests in all.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// A run of them; there may be as many as one likes.
    #[must_use]
    pub fn begin(&self) -> ListedRun<'_> {
        ListedRun { listed: self, at: vec![0; self.processes.len()] }
    }
}

/// A process's first `most` requests, each so long after the last one's end as it was in the program.
fn in_turn(mut rows: Vec<Row>, most: usize) -> Vec<Request> {
    rows.sort_by_key(|row| row.start_ns);
    rows.truncate(most);
    let mut free_ns = rows.first().map_or(0, |row| row.start_ns);
    rows.into_iter()
        .map(|row| {
            let think_ns = row.start_ns.saturating_sub(free_ns);
            free_ns = free_ns.max(row.end_ns);
            Request { start: Start::After(think_ns), ..row.request }
        })
        .collect()
}

/// Rank and row; `None` where a number is negative.
fn parsed(row: &[u8], file: u32) -> Option<(i32, Row)> {
    let (start, rest) = row.split_first_chunk::<8>()?;
    let (end, rest) = rest.split_first_chunk::<8>()?;
    let (rank, rest) = rest.split_first_chunk::<4>()?;
    let (write, rest) = rest.split_first_chunk::<4>()?;
    let (offset, rest) = rest.split_first_chunk::<8>()?;
    let (size, _) = rest.split_first_chunk::<8>()?;
    let natural = |bytes: &[u8; 8]| u64::try_from(i64::from_le_bytes(*bytes)).ok();
    let [write, ..] = *write;
    let request = Request { file, write: write != 0, offset: natural(offset)?, bytes: natural(size)?, start: Start::After(0) };
    Some((i32::from_le_bytes(*rank), Row { start_ns: natural(start)?, end_ns: natural(end)?, request }))
}

impl Source for ListedRun<'_> {
    fn processes(&self) -> u32 {
        self.at.len() as u32
    }

    fn ended(&self) -> &[u32] {
        &self.listed.ended
    }

    fn next(&mut self, process: u32) -> Result<Option<Request>, Error> {
        let process = process as usize;
        let (Some(requests), Some(at)) = (self.listed.processes.get(process), self.at.get_mut(process)) else { return Ok(None) };
        let next = requests.get(*at).copied();
        *at += 1;
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(start_ns: i64, end_ns: i64, rank: i32, write: bool, offset: i64, size: i64) -> Vec<u8> {
        let mut made = Vec::new();
        made.extend_from_slice(&start_ns.to_le_bytes());
        made.extend_from_slice(&end_ns.to_le_bytes());
        made.extend_from_slice(&rank.to_le_bytes());
        made.extend_from_slice(&[u8::from(write), 0, 0, 0]);
        made.extend_from_slice(&offset.to_le_bytes());
        made.extend_from_slice(&size.to_le_bytes());
        made
    }

    fn all(listed: Listed) -> Vec<Vec<Request>> {
        let mut source = listed.begin();
        (0..source.processes()).map(|process| std::iter::from_fn(|| source.next(process).unwrap()).collect()).collect()
    }

    #[test]
    fn processes_keep_their_order_and_the_time_between_requests() {
        let first = [row(50, 60, 4, true, 0, 8), row(10, 30, 4, false, 8, 8)].concat();
        let second = [row(20, 25, 9, false, 16, 4), row(35, 36, 4, false, 0, 0), row(25, 26, 4, true, 4, 4)].concat();
        let found = all(Listed::new([&first[..], &second], 10).unwrap());
        let request = |file, write, offset, bytes, think| Request { file, write, offset, bytes, start: Start::After(think) };
        // A request without bytes is none; one that began inside another had no time to think.
        assert_eq!(
            found,
            [vec![request(0, false, 8, 8, 0), request(1, true, 4, 4, 0), request(0, true, 0, 8, 20)], vec![request(1, false, 16, 4, 0)]]
        );
    }

    #[test]
    fn processes_that_ran_one_after_another_do() {
        let table = [row(0, 10, 7, false, 0, 8), row(5, 20, 3, false, 0, 8), row(15, 40, 5, true, 0, 8), row(50, 60, 1, true, 0, 8)];
        let behind = |over, think_ns| Start::Behind { over, think_ns };
        // By rank: 1 came behind all others, 3 beside 7, 5 behind 7.
        let listed = Listed::new([&table.concat()[..]], 10).unwrap();
        assert_eq!(listed.begin().ended(), [3, 1, 2, 0]);
        let firsts = |listed: Listed| all(listed).iter().map(|each| each[0].start).collect::<Vec<_>>();
        assert_eq!(firsts(listed.clone()), [behind(3, 10), Start::After(0), behind(1, 5), Start::After(0)]);
        let listed = listed.at_once();
        assert!(listed.begin().ended().is_empty());
        assert_eq!(firsts(listed), [Start::After(0); 4]);
        // Also of requests that are left out a process is not over before the last.
        let (first, second) = ([row(0, 1, 0, false, 0, 8), row(8, 9, 0, false, 0, 8)].concat(), row(5, 6, 1, false, 0, 8));
        let table = [first, second].concat();
        assert_eq!(firsts(Listed::new([&table[..]], 1).unwrap()), [Start::After(0); 2]);
    }

    #[test]
    fn of_every_process_the_first_are_kept() {
        let table: Vec<u8> = (0..20).flat_map(|n| row(n, n, (n % 2) as i32, false, n * 4, 4)).collect();
        let found = all(Listed::new([&table[..]], 3).unwrap());
        assert_eq!(found.iter().map(|each| each.iter().map(|r| r.offset).collect()).collect::<Vec<Vec<u64>>>(), [[0, 8, 16], [4, 12, 20]]);
    }

    #[test]
    fn a_cut_table_and_a_negative_number_are_refused() {
        let whole = row(0, 1, 0, false, 0, 4);
        assert!(Listed::new([&whole[..39]], 10).unwrap_err().to_string().contains("cut short"));
        assert!(Listed::new([&row(0, 1, 0, false, -4, 4)[..]], 10).unwrap_err().to_string().contains("negative"));
    }
}
