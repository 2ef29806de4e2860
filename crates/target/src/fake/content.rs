//! What a file of the fake disk holds: pages and a length, the changes to it that are not flushed, and what of them a power
//! cut leaves.

use std::collections::BTreeMap;
use std::ops::Range;

use stripewise_chance::SplitMix64;

/// Granularity at which content reaches the disk and at which holes are seen.
pub(super) const PAGE: u64 = 4096;
pub(super) type Page = Box<[u8; PAGE as usize]>;

/// A file's content: pages that hold data, and a length.
#[derive(Clone, Default)]
pub(super) struct Content {
    pub(super) pages: BTreeMap<u64, Page>,
    pub(super) len: u64,
}

/// One change of content that is not flushed yet.
#[derive(Clone)]
pub(super) enum DataOp {
    Write(u64, Vec<u8>),
    Punch(u64, u64),
    Truncate(u64),
}

/// What a file holds after a power cut: each page some prefix of the changes to it, the length some prefix of its changes.
pub(super) fn survive(durable: &Content, ops: &[DataOp], dice: &mut Dice) -> Content {
    let mut after = durable.clone();
    let mut by_page: BTreeMap<u64, Vec<&DataOp>> = BTreeMap::new();
    let mut lens = vec![durable.len];
    for op in ops {
        let len = lens.last().copied().unwrap_or(0);
        let (from, to) = match op {
            DataOp::Write(at, bytes) => {
                if at + bytes.len() as u64 > len {
                    lens.push(at + bytes.len() as u64);
                }
                (*at, at + bytes.len() as u64)
            }
            DataOp::Punch(at, n) => (*at, at + n),
            DataOp::Truncate(to) => {
                lens.push(*to);
                (*to, u64::MAX)
            }
        };
        if !matches!(op, DataOp::Write(..)) {
            // What holds nothing has nothing to lose.
            for page in pages_known(durable, &by_page, from / PAGE..to.div_ceil(PAGE)) {
                by_page.entry(page).or_default().push(op);
            }
        } else if from < to {
            for page in from / PAGE..=(to - 1) / PAGE {
                by_page.entry(page).or_default().push(op);
            }
        }
    }
    for (page, changes) in by_page {
        let take = dice.prefix(changes.len());
        for change in changes.iter().take(take) {
            apply_page(&mut after.pages, page, change);
        }
    }
    after.len = lens.get(dice.prefix(lens.len() - 1)).copied().unwrap_or(0);
    clip(&mut after);
    after
}

fn pages_known(durable: &Content, by_page: &BTreeMap<u64, Vec<&DataOp>>, range: Range<u64>) -> Vec<u64> {
    let mut pages: Vec<u64> = durable.pages.range(range.clone()).map(|(p, _)| *p).chain(by_page.range(range).map(|(p, _)| *p)).collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}

/// Drops what lies past the length.
fn clip(content: &mut Content) {
    let whole = content.len.div_ceil(PAGE);
    content.pages.split_off(&whole);
    if let Some(page) = content.pages.get_mut(&(content.len / PAGE))
        && let Some(tail) = page.get_mut((content.len % PAGE) as usize..)
    {
        tail.fill(0);
    }
}

fn apply_page(pages: &mut BTreeMap<u64, Page>, page: u64, op: &DataOp) {
    let start = page * PAGE;
    let (from, to, bytes) = match op {
        DataOp::Write(at, bytes) => (*at, at + bytes.len() as u64, Some(bytes)),
        DataOp::Punch(at, len) => (*at, at + len, None),
        DataOp::Truncate(len) => (*len, u64::MAX, None),
    };
    let (low, high) = (from.max(start), to.min(start + PAGE));
    if low >= high {
        return;
    }
    let inside = (low - start) as usize..(high - start) as usize;
    match bytes {
        Some(bytes) => {
            let held = pages.entry(page).or_insert_with(|| Box::new([0; PAGE as usize]));
            if let (Some(to), Some(from)) = (held.get_mut(inside), bytes.get((low - from) as usize..(high - from) as usize)) {
                to.copy_from_slice(from);
            }
        }
        None if high - low == PAGE => {
            pages.remove(&page);
        }
        None => {
            if let Some(room) = pages.get_mut(&page).and_then(|p| p.get_mut(inside)) {
                room.fill(0);
            }
        }
    }
}

pub(super) fn apply_content(content: &mut Content, op: &DataOp) {
    match op {
        DataOp::Truncate(len) => {
            content.len = *len;
            clip(content);
        }
        DataOp::Write(at, bytes) => {
            let end = at + bytes.len() as u64;
            content.len = content.len.max(end);
            if !bytes.is_empty() {
                (at / PAGE..=(end - 1) / PAGE).for_each(|page| apply_page(&mut content.pages, page, op));
            }
        }
        DataOp::Punch(at, len) => {
            let touched: Vec<u64> = content.pages.range(at / PAGE..=(at + len) / PAGE).map(|(p, _)| *p).collect();
            touched.into_iter().for_each(|page| apply_page(&mut content.pages, page, op));
        }
    }
}

impl Content {
    /// Reads into `to` from `at` on; returns the bytes, fewer only at the end.
    pub(super) fn read(&self, at: u64, to: &mut [u8]) -> usize {
        let want = (to.len() as u64).min(self.len.saturating_sub(at)) as usize;
        let mut done = 0;
        while let Some(rest) = to.get_mut(done..want).filter(|rest| !rest.is_empty()) {
            let here = at + done as u64;
            let within = (here % PAGE) as usize;
            let len = rest.len().min(PAGE as usize - within);
            if let Some(to) = rest.get_mut(..len) {
                match self.pages.get(&(here / PAGE)).and_then(|page| page.get(within..within + len)) {
                    Some(from) => to.copy_from_slice(from),
                    None => to.fill(0),
                }
            }
            done += len;
        }
        want
    }

    /// The next pages that hold data at or after `at`, as a range of bytes.
    pub(super) fn next_data(&self, at: u64) -> Option<(u64, u64)> {
        let first = *self.pages.range(at / PAGE..).next()?.0;
        let mut end = first;
        while self.pages.contains_key(&end) {
            end += 1;
        }
        let start = (first * PAGE).max(at);
        (start < self.len).then(|| (start, (end * PAGE).min(self.len)))
    }
}

/// Chooses what a power cut leaves.
pub(super) struct Dice(SplitMix64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::at(seed))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.bits()
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    /// A prefix of `n` changes; none and all come more often than chance, because they are where rules break.
    fn prefix(&mut self, n: usize) -> usize {
        match self.next() % 3 {
            0 => 0,
            1 => n,
            _ => (self.next() % (n as u64 + 1)) as usize,
        }
    }
}
