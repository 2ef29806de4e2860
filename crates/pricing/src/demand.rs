//! The service demand of every server of a cycle, L_i = K_i*a_i + S_i*b_i (cost-models section 7), with K_i and S_i for the demands on links, in
//! O(runs that a request meets) per key and O(servers) at the end.
//!
//! A request serves whole cycles on every server, and beside them the stripes between its ends: steps at the stripes that the ends fall into.
//! The steps are counted per position, and summed once.

use crate::cost::Figures;
use crate::cycle::{Cycle, Run};
use crate::place::Place;
use crate::share::Ends;
use crate::{Keys, map};

/// What a piece pays on its way besides being served; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Network {
    /// Seconds to establish a connection.
    pub establish_s: f64,
    /// Seconds per byte.
    pub per_byte_s: f64,
}

/// What one server is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// L_i, seconds of service.
    pub demand_s: f64,
    /// K_i.
    pub accesses: i64,
    /// S_i.
    pub bytes: i128,
}

/// The load of every server of the cycle, in its order, and the sum over requests of their time alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    pub servers: Vec<Load>,
    /// The sum of T_j.
    pub alone_s: f64,
}

/// Bytes and accesses per position of a run: `stripes[j]` ends lie in stripe j, `bytes[j]` of it before them.
#[derive(Clone, Debug, Default)]
struct Steps {
    stripes: Vec<i64>,
    bytes: Vec<i128>,
    touches: Vec<i64>,
    whole: i128,
}

impl Steps {
    fn new(count: u64) -> Self {
        let places = count as usize + 1;
        Self { stripes: vec![0; places], bytes: vec![0; places], touches: vec![0; places + 1], whole: 0 }
    }

    #[inline]
    fn end(&mut self, stripe: u64, bytes: u64, count: i64) {
        if let Some(stripes) = self.stripes.get_mut(stripe as usize) {
            *stripes += count;
        }
        if let Some(sum) = self.bytes.get_mut(stripe as usize) {
            *sum += i128::from(bytes) * i128::from(count);
        }
    }

    #[inline]
    fn touch(&mut self, from: u64, to: u64, count: i64) {
        if let Some(step) = self.touches.get_mut(from as usize) {
            *step += count;
        }
        if let Some(step) = self.touches.get_mut(to as usize) {
            *step -= count;
        }
    }

    #[inline]
    fn add(&mut self, ends: &Ends, run_count: u64, count: i64) {
        let touched = ends.touched(run_count);
        if touched.inverted {
            self.touch(0, run_count, count);
            self.touch(touched.from, touched.to, -count);
        } else {
            self.touch(touched.from, touched.to, count);
        }
        self.whole += i128::from(ends.whole) * i128::from(count);
        self.end(ends.last, ends.last_bytes, count);
        self.end(ends.first, ends.first_bytes, -count);
    }

    fn merge(&mut self, other: &Self) {
        self.stripes.iter_mut().zip(&other.stripes).for_each(|(mine, more)| *mine += more);
        self.bytes.iter_mut().zip(&other.bytes).for_each(|(mine, more)| *mine += more);
        self.touches.iter_mut().zip(&other.touches).for_each(|(mine, more)| *mine += more);
        self.whole += other.whole;
    }

    /// (accesses, bytes) of every position of the run.
    fn sums(&self, run: &Run<Figures>) -> Vec<(i64, i128)> {
        // Whatever ends right of stripe j has the whole of it before its end.
        let mut right: i64 = self.stripes.iter().sum();
        let mut accesses = 0;
        let positions = self.stripes.iter().zip(&self.bytes).zip(&self.touches).take(run.count as usize);
        positions
            .map(|((stripes, bytes), touches)| {
                right -= stripes;
                accesses += touches;
                (accesses, (self.whole + i128::from(right)) * i128::from(run.width) + bytes)
            })
            .collect()
    }
}

/// Seconds that a request takes alone: its slowest piece, or with a network what its client's connections and link take if that is more.
///
/// A piece is connected, served and sent one after the other; pieces overlap, but the connections of a client and its link are one each.
#[derive(Clone, Copy, Debug)]
struct Alone {
    network: Network,
    slowest_s: f64,
    quickest_s: f64,
    touched: u64,
}

impl Alone {
    fn new(network: Network) -> Self {
        Self { network, slowest_s: 0.0, quickest_s: f64::INFINITY, touched: 0 }
    }

    fn is_free(&self) -> bool {
        self.network == Network::default()
    }

    #[inline]
    fn add(&mut self, ends: &Ends, run: &Run<Figures>, most: u64, touched: u64, write: bool) {
        let seconds = run.kind.seconds(most, write);
        if self.is_free() {
            self.slowest_s = self.slowest_s.max(seconds);
            return;
        }
        let way = seconds + (self.network.establish_s + most as f64 * self.network.per_byte_s);
        self.slowest_s = self.slowest_s.max(way);
        self.quickest_s = self.quickest_s.min(run.kind.seconds(ends.least_bytes(run.width, run.count), write));
        self.touched += touched;
    }

    fn seconds(&self, size: u64) -> f64 {
        if self.is_free() || self.touched == 0 {
            return self.slowest_s;
        }
        let Network { establish_s, per_byte_s } = self.network;
        let client = (self.touched as f64 * establish_s).max(establish_s + size as f64 * per_byte_s);
        self.slowest_s.max(client + self.quickest_s)
    }
}

/// Keys that one thread takes at a time.
const PART: usize = 1 << 16;

/// The demand of all keys on `cycle`, whose servers have figures of their own; a width of 0 leaves a server at 0.
///
/// `None` when the columns differ in length.
pub fn demand(cycle: &Cycle<Figures>, keys: Keys<'_>, network: Network) -> Option<Demand> {
    let rows = keys.len() as i64;
    if !keys.is_cut_by(&[0, rows]) {
        return None;
    }
    let fresh = || -> Vec<[Steps; 2]> { cycle.runs.iter().map(|run| [Steps::new(run.count), Steps::new(run.count)]).collect() };
    let parts: Vec<(i64, i64)> = (0..rows).step_by(PART).map(|low| (low, (low + PART as i64).min(rows))).collect();
    let done = map(&parts, keys.len(), |(low, high)| {
        let mut steps = fresh();
        let mut alone_s = 0.0;
        for (key, count) in keys.rows(*low, *high) {
            let place = Place::new(key.offset, key.size, cycle.by_length);
            let mut alone = Alone::new(network);
            for part in cycle.met_by(place) {
                for (run, [read, written]) in cycle.runs.get(part.clone()).into_iter().flatten().zip(steps.get_mut(part).into_iter().flatten()) {
                    let ends = Ends::new(place, run);
                    let (most, touched) = ends.most_bytes(run.width, run.count);
                    if most > 0 {
                        alone.add(&ends, run, most, touched, key.write);
                        if key.write { written } else { read }.add(&ends, run.count, count as i64);
                    }
                }
            }
            alone_s += alone.seconds(key.size) * count;
        }
        (steps, alone_s)
    });
    let mut total = fresh();
    let mut alone_s = 0.0;
    for (steps, part_s) in &done {
        alone_s += part_s;
        for (mine, more) in total.iter_mut().flatten().zip(steps.iter().flatten()) {
            mine.merge(more);
        }
    }
    Some(Demand { servers: loads(cycle, &total), alone_s })
}

/// The load of every server of `cycle` by the steps of its runs, reads and writes apart.
fn loads(cycle: &Cycle<Figures>, steps: &[[Steps; 2]]) -> Vec<Load> {
    let mut servers = vec![Load::default(); cycle.servers];
    for (run, [read, written]) in cycle.runs.iter().zip(steps) {
        let figures = &run.kind;
        for (position, ((reads, read_bytes), (writes, written_bytes))) in read.sums(run).into_iter().zip(written.sums(run)).enumerate() {
            if let Some(load) = servers.get_mut(run.server + position) {
                let demand_s = reads as f64 * figures.startup_read_s
                    + read_bytes as f64 * figures.per_byte_read_s
                    + writes as f64 * figures.startup_write_s
                    + written_bytes as f64 * figures.per_byte_write_s;
                *load = Load { demand_s, accesses: reads + writes, bytes: read_bytes + written_bytes };
            }
        }
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;
    use proptest::prelude::*;

    fn figures(kind: u8) -> Figures {
        let scale = f64::from(kind + 1);
        Figures { startup_read_s: 1e-3 * scale, per_byte_read_s: 1e-8 * scale, startup_write_s: 3e-3 * scale, per_byte_write_s: 2e-8 * scale }
    }

    proptest! {
        #[test]
        fn demands_are_those_of_a_walk_server_by_server(
            runs in proptest::collection::vec((0u8..3, 0u64..6, 1usize..4), 1..9),
            rows in proptest::collection::vec((0i64..100, 1i64..100, 0u8..2, 1i64..4), 0..12),
            establish_s in prop_oneof![Just(0.0), 0.0..0.01], per_byte_s in prop_oneof![Just(0.0), 0.0..1e-3],
        ) {
            let servers: Vec<Server<Figures>> =
                runs.iter().flat_map(|(kind, width, count)| vec![Server { kind: figures(*kind), width_bytes: *width }; *count]).collect();
            let Some(cycle) = Cycle::new(&servers) else { return Ok(()) };
            let (offset, size): (Vec<i64>, Vec<i64>) = rows.iter().map(|row| (row.0, row.1)).unzip();
            let write: Vec<u8> = rows.iter().map(|row| row.2).collect();
            let count: Vec<i64> = rows.iter().map(|row| row.3).collect();
            let found = demand(&cycle, Keys { offset: &offset, size: &size, write: &write, count: &count }, Network { establish_s, per_byte_s }).unwrap();
            let mut expected = vec![Load::default(); servers.len()];
            let mut alone = 0.0;
            for (offset, size, write, count) in &rows {
                let mut served = vec![0u64; servers.len()];
                for byte in *offset..offset + size {
                    let mut rest = byte as u64 % cycle.length;
                    let owner = servers.iter().position(|server| if rest < server.width_bytes { true } else { rest -= server.width_bytes; false });
                    served[owner.unwrap()] += 1;
                }
                let times: Vec<f64> =
                    servers.iter().zip(&served).map(|(server, bytes)| if *bytes > 0 { server.kind.seconds(*bytes, *write != 0) } else { 0.0 }).collect();
                for ((load, time), bytes) in expected.iter_mut().zip(&times).zip(&served) {
                    load.demand_s += time * *count as f64;
                    load.accesses += if *bytes > 0 { *count } else { 0 };
                    load.bytes += i128::from(*bytes) * i128::from(*count);
                }
                let mine = || times.iter().zip(&served).filter(|(_, bytes)| **bytes > 0);
                let slowest = mine().map(|(time, bytes)| time + establish_s + *bytes as f64 * per_byte_s).fold(0.0, f64::max);
                let quickest = mine().map(|(time, _)| *time).fold(f64::INFINITY, f64::min);
                let client = (mine().count() as f64 * establish_s).max(establish_s + *size as f64 * per_byte_s);
                alone += slowest.max(client + quickest) * *count as f64;
            }
            prop_assert!((found.alone_s - alone).abs() <= 1e-9 * alone.max(1e-9));
            for (found, expected) in found.servers.iter().zip(&expected) {
                prop_assert_eq!((found.accesses, found.bytes), (expected.accesses, expected.bytes));
                let (found_s, expected_s) = (found.demand_s, expected.demand_s);
                prop_assert!((found_s - expected_s).abs() <= 1e-9 * expected_s.max(1e-9), "{} {}", found_s, expected_s);
            }
        }
    }
}
