//! RADAR, Table III: median replica entries per non-empty bin of 64 MiB, for reads of 2 GiB of a 64 GiB array (128 time steps x 256 x 256 x 256 elements of
//! 32 bytes) by 16 to 128 clients (section III-B; figure 6).

use crate::replica_index::{Pattern, built, encoded};
use std::collections::BTreeSet;
use std::ops::Range;
use stripewise_layout::{Bins, Logical, ReplicaIndex, View};

const SIDE: u64 = 256;
const ELEMENT: u64 = 32;
const ROW: u64 = SIDE * ELEMENT;
const PLANE: u64 = SIDE * ROW;
const VOLUME: u64 = SIDE * PLANE;
const FILE: u64 = 128 * VOLUME;
const CLIENTS: [u64; 4] = [16, 32, 64, 128];

/// A box of the array: time steps, X, Y, Z; contiguous in the order Z, Y, X, time.
fn part(t: Range<u64>, x: Range<u64>, y: Range<u64>, z: Range<u64>) -> Pattern {
    let base = t.start * VOLUME + x.start * PLANE + y.start * ROW + z.start * ELEMENT;
    let len = |range: &Range<u64>| range.end - range.start;
    let mut dims = vec![(VOLUME, len(&t)), (PLANE, len(&x)), (ROW, len(&y))];
    let mut block = len(&z) * ELEMENT;
    // Steps that continue each other are one block.
    while let Some((_, count)) = dims.pop_if(|(stride, _)| *stride == block) {
        block *= count;
    }
    Pattern { base, block, dims }
}

/// Part `i` of the side cut into `n`.
fn slab(i: u64, n: u64) -> Range<u64> {
    i * SIDE / n..(i + 1) * SIDE / n
}

/// Four of the time steps.
fn steps() -> Range<u64> {
    60..64
}

fn column(clients: u64) -> Vec<(u64, Pattern)> {
    (0..clients).map(|c| (c, part(steps(), 0..SIDE, 0..SIDE, slab(c, clients)))).collect()
}

fn row(clients: u64) -> Vec<(u64, Pattern)> {
    (0..clients).map(|c| (c, part(steps(), slab(c, clients), 0..SIDE, 0..SIDE))).collect()
}

/// "The volume into perfect cubes no less than the number of clients, and clients are assigned multiple blocks": in the order of the file, the first clients
/// one more than the last where it does not come out even. Two that are neighbours in Z are one box.
fn cube(clients: u64) -> Vec<(u64, Pattern)> {
    let n = (1..).find(|n| n * n * n >= clients).unwrap();
    let (each, more) = (n * n * n / clients, n * n * n % clients);
    let mut out = Vec::new();
    let mut block = 0;
    for client in 0..clients {
        let end = block + each + u64::from(client < more);
        while block < end {
            let (x, y, z) = (block / (n * n), block / n % n, block % n);
            let wide = (n - z).min(end - block);
            out.push((client, part(steps(), slab(x, n), slab(y, n), slab(z, n).start..slab(z + wide - 1, n).end)));
            block += wide;
        }
    }
    out
}

/// A subvolume of 64 MiB of a time step per client.
fn time(clients: u64) -> Vec<(u64, Pattern)> {
    (0..clients).map(|c| (c, part(c..c + 1, 0..SIDE / 2, 0..SIDE / 2, 0..SIDE / 2))).collect()
}

/// The four time steps as one range, in equal parts.
fn contiguous(parts: u64) -> Vec<(u64, Pattern)> {
    let len = 4 * VOLUME / parts;
    (0..parts).map(|i| (i, Pattern { base: steps().start * VOLUME + i * len, block: len, dims: vec![] })).collect()
}

/// Median over the non-empty bins of the clients that have an entry, and of the entries.
fn medians(replicas: &[(u64, Pattern)]) -> (f64, f64) {
    let patterns: Vec<Pattern> = replicas.iter().map(|(_, p)| p.clone()).collect();
    let bytes = encoded(&patterns);
    let view = View::parse(&bytes).unwrap();
    let bins = Bins::over(0, FILE, Bins::COUNT);
    assert_eq!((bins.count(), 1 << bins.shift()), (1024, 64 << 20));
    let index_bytes = built(&view, bins);
    let index = ReplicaIndex::open(&view, &index_bytes).unwrap();
    let median = |of_bin: &dyn Fn(u32) -> usize| {
        let mut counts: Vec<usize> = (0..bins.count()).map(of_bin).filter(|n| *n > 0).collect();
        counts.sort_unstable();
        (counts[(counts.len() - 1) / 2] + counts[counts.len() / 2]) as f64 / 2.0
    };
    let clients = |bin| index.entries(bin).map(|entry| replicas[entry.index].0).collect::<BTreeSet<_>>().len();
    (median(&clients), median(&|bin| index.entries(bin).len()))
}

fn of_all(decomposition: impl Fn(u64) -> Vec<(u64, Pattern)>) -> [f64; 4] {
    CLIENTS.map(|clients| medians(&decomposition(clients)).0)
}

#[test]
fn table_3_of_radar_column_row_time() {
    assert_eq!(of_all(column), [16.0, 32.0, 64.0, 128.0]);
    assert_eq!(of_all(row), [2.0, 4.0, 8.0, 16.0]);
    assert_eq!(of_all(time), [1.0; 4]);
}

#[test]
fn table_3_of_radar_cube() {
    // RADAR counts one replica per client. Blocks of a client that lie in two rows of cubes, of unequal width, are no one strided pattern: here they are two
    // replicas, and where both touch a bin it has an entry more.
    assert_eq!(of_all(cube), [6.0, 8.0, 16.0, 36.0]);
    assert_eq!(CLIENTS.map(|clients| medians(&cube(clients)).1), [7.0, 8.0, 16.0, 36.0]);
}

#[test]
fn table_3_of_radar_collective_column_as_a_contiguous_part_per_client() {
    // The paper does not say what aggregators read. A part per client of the whole range has its medians for columns (and not those of rows: 1.5, 2).
    assert_eq!([32, 64, 128].map(|clients| medians(&contiguous(clients)).0), [1.0, 2.0, 4.0]);
    // ROMIO's even file domains, an aggregator per node of eight clients, one call per time step: twice as large, and half as many in a bin.
    assert_eq!([32, 64, 128].map(|clients| medians(&contiguous(clients / 8 * 4)).0), [1.0, 1.0, 2.0]);
}

#[test]
fn clients_of_one_decomposition_share_no_byte_and_the_history_may_answer_for_each() {
    for decomposition in [column, row, cube, time] {
        for clients in CLIENTS {
            let replicas = decomposition(clients);
            let bytes = encoded(&replicas.iter().map(|(_, p)| p.clone()).collect::<Vec<_>>());
            let view = View::parse(&bytes).unwrap();
            let index_bytes = built(&view, Bins::of(&view));
            let index = ReplicaIndex::open(&view, &index_bytes).unwrap();
            let finest = replicas.iter().map(|(_, p)| p.block).min().unwrap();
            for (i, (_, p)) in replicas.iter().enumerate().filter(|(_, (_, p))| p.block == finest) {
                assert!(index.is_alone(i), "{p:?} of {clients} clients");
            }
        }
    }
}

#[test]
fn a_row_of_columns_of_the_same_array_is_not_alone() {
    let (columns, rows) = (column(16), row(16));
    let patterns: Vec<Pattern> = rows.iter().chain(&columns).map(|(_, p)| p.clone()).collect();
    let bytes = encoded(&patterns);
    let view = View::parse(&bytes).unwrap();
    let index_bytes = built(&view, Bins::of(&view));
    let index = ReplicaIndex::open(&view, &index_bytes).unwrap();
    assert!((0..16).all(|row| !index.is_alone(row)) && (16..32).all(|column| index.is_alone(column)));
    let at = Logical(steps().start * VOLUME + ROW);
    let history = std::sync::atomic::AtomicU32::new(1);
    assert_eq!(index.lookup(at, ROW, &history).map(|hit| hit.index), Some(0));
    assert_eq!(index.lookup(at, ROW / 16, &history).map(|hit| hit.index), Some(16), "the column, though the row answered last");
}
