//! Grids: sums by bin, of several layers (time in calls, bytes read, bytes written), in rows of bins.

use crate::bins::{Bins, Cut};
use crate::columns::Request;

/// Layers of rows of bins, layer by layer, row by row.
///
/// While it is filled, what is held are differences along a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    pub layers: usize,
    pub rows: usize,
    pub bins: Bins,
    pub cells: Vec<u64>,
}

impl Grid {
    fn empty(layers: usize, rows: usize, bins: Bins) -> Self {
        Self { layers, rows, bins, cells: vec![0; layers * rows * bins.count] }
    }

    fn step(&mut self, layer: usize, row: usize, bin: usize, by: u64) {
        if let Some(cell) = self.cells.get_mut((layer * self.rows + row) * self.bins.count + bin).filter(|_| bin < self.bins.count) {
            // Differences may be negative; their sums are not.
            *cell = cell.wrapping_add(by);
        }
    }

    fn add(&mut self, layer: usize, row: usize, cut: &Cut, parts: (u64, u64, u64)) {
        let (head, each, tail) = parts;
        self.step(layer, row, cut.first, head);
        self.step(layer, row, cut.first + 1, if cut.first == cut.last { 0 } else { each }.wrapping_sub(head));
        if cut.first != cut.last {
            self.step(layer, row, cut.last, tail.wrapping_sub(each));
            self.step(layer, row, cut.last + 1, 0u64.wrapping_sub(tail));
        }
    }

    /// Differences become sums.
    fn summed(mut self) -> Self {
        for row in self.cells.chunks_mut(self.bins.count) {
            let mut sum = 0u64;
            for cell in row {
                sum = sum.wrapping_add(*cell);
                *cell = sum;
            }
        }
        self
    }

    /// The sum of a layer.
    #[must_use]
    pub fn total(&self, layer: usize) -> u64 {
        let cells = self.rows * self.bins.count;
        self.cells.iter().skip(layer * cells).take(cells).sum()
    }

    /// The next coarser level: bins of twice the width.
    #[must_use]
    pub fn coarser(&self) -> Self {
        let bins = Bins { width: self.bins.width.saturating_mul(2), count: self.bins.count.div_ceil(2) };
        let cells = self.cells.chunks(self.bins.count).flat_map(|row| row.chunks(2).map(|pair| pair.iter().sum())).collect();
        Self { layers: self.layers, rows: self.rows, bins, cells }
    }
}

/// Time x process: nanoseconds in calls (of all threads), bytes read, bytes written, each request spread evenly over its time.
///
/// `row_of` gives the row of a process; a request of a process without a row is left out. One that takes no time falls into the bin of its start.
#[must_use]
pub fn timeline(requests: impl Iterator<Item = Request>, rows: usize, bins: Bins, row_of: impl Fn(u32) -> usize) -> Grid {
    let mut grid = Grid::empty(3, rows, bins);
    for request in requests {
        let row = row_of(request.process);
        if row >= rows {
            continue;
        }
        let length = request.end_ns - request.start_ns;
        let layer = 1 + usize::from(request.is_write);
        if let Some(cut) = bins.cut(request.start_ns, request.end_ns) {
            grid.add(0, row, &cut, (cut.head, cut.width, cut.tail));
            grid.add(layer, row, &cut, cut.shares(request.size, length));
        } else {
            let first = bins.of(request.start_ns);
            grid.add(layer, row, &Cut { first, last: first, head: 0, tail: 0, width: 0 }, (request.size, 0, 0));
        }
    }
    grid.summed()
}

/// Offset x time of one file: bytes read, bytes written, at the time at which the request began; a row for each bin of time, in it bins of offsets.
#[must_use]
pub fn raster(requests: impl Iterator<Item = Request>, time: Bins, offsets: Bins) -> Grid {
    let mut grid = Grid::empty(2, time.count, offsets);
    for request in requests {
        let cut = request.offset.and_then(|offset| offsets.cut(offset, offset.saturating_add(request.size)));
        if let Some(cut) = cut {
            grid.add(usize::from(request.is_write), time.of(request.start_ns), &cut, (cut.head, cut.width, cut.tail));
        }
    }
    grid.summed()
}

/// Heat over one file: bytes read, bytes written of each bin of offsets.
#[must_use]
pub fn heat(requests: impl Iterator<Item = Request>, offsets: Bins) -> Grid {
    raster(requests, Bins { width: u64::MAX, count: 1 }, offsets)
}
