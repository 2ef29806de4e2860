//! Records recognised in a second on one core: regular ones, random ones, and 64 streams whose records come by turns of chance.
//!
//! Prints one JSON line per case. Ratio: records per second over the goal; of the interleaved streams, their time over that of the same records in one.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::hint::black_box;
use std::time::Instant;

use stripewise_chance::SplitMix64;
use stripewise_pattern::{Columns, recognise, separate};

const RECORDS: usize = 4_000_000;
const ROUNDS: usize = 5;
const STREAMS: u64 = 64;

struct Table {
    key: Vec<u64>,
    kind: Vec<u32>,
    offset: Vec<i64>,
    size: Vec<i64>,
}

impl Table {
    fn of(record: impl FnMut(usize) -> (u64, i64)) -> Self {
        let (key, offset) = (0..RECORDS).map(record).unzip();
        Self { key, kind: vec![0; RECORDS], offset, size: vec![65_536; RECORDS] }
    }

    /// Seconds to separate and recognise all of it: the shortest of some rounds.
    fn seconds(&self) -> f64 {
        let once = |_| {
            let start = Instant::now();
            let columns = Columns { kind: &self.kind, offset: &self.offset, size: &self.size };
            for stream in separate(&self.key) {
                black_box(recognise(columns.at(&stream.rows)));
            }
            start.elapsed().as_secs_f64()
        };
        (0..ROUNDS).map(once).fold(f64::INFINITY, f64::min)
    }
}

fn main() {
    // A tile of a two-dimensional array: 256 pieces per row.
    let tile = |i: usize| (i as i64 >> 8) * 1_000_000_000 + (i as i64 & 255) * 1_000_000;
    let mut random = SplitMix64::at(1);
    for (name, goal, table) in [
        ("pattern.records_per_s", 10e6, Table::of(|i| (0, tile(i)))),
        ("pattern.random_records_per_s", 2e6, Table::of(|_| (0, random.below(1 << 30) as i64 * 4096))),
    ] {
        let rate = RECORDS as f64 / table.seconds();
        let ratio = rate / goal;
        println!(r#"{{"name":"{name}","value":{rate:.0},"unit":"records/s on one core","baseline":"goal {goal:.0}","ratio":{ratio:.3}}}"#);
    }
    let one = Table::of(|i| (0, tile(i))).seconds();
    let mut done = [0usize; STREAMS as usize];
    let interleaved = Table::of(|_| {
        let stream = random.below(STREAMS);
        let turn = done.get_mut(stream as usize).unwrap();
        *turn += 1;
        (stream, tile(*turn))
    });
    let value = interleaved.seconds() / one;
    println!(
        r#"{{"name":"pattern.interleaved_64_ratio","value":{value:.3},"unit":"time over that of one stream","baseline":"as many records in one stream: {one:.3} s; goal 3","ratio":{:.3}}}"#,
        value / 3.0
    );
}
