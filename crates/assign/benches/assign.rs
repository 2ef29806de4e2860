//! The gap between an assignment and its proven bound at scale, and the time it takes: 1,000 servers, no two alike, 10,000 regions, 6 windows between
//! which the heat drifts. `W R HDDS SSDS SECONDS` may be given.
//!
//! Prints one JSON line; details go to stderr.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Instant;

use stripewise_chance::SplitMix64;

use stripewise_assign::{FEATURES, Limits, List, Problem, Tables, solve};

struct Dice(SplitMix64);

impl Dice {
    /// A number in [0, 1).
    fn roll(&mut self) -> f64 {
        self.0.bits() as f64 / 2f64.powi(64)
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.roll())
    }
}

/// Hard disks of 2 to 8 ms and 60 to 180 MB/s, SSDs of 0.05 to 0.3 ms and 200 to 1000 MB/s that hold a sixth of the data, Zipf 0.8, requests of
/// 64 KiB to 1 MiB. Each server has a resource of its own, and one network is shared by all.
/// Beside single servers there are teams of 4, 16 and 64 of a class, over which whole requests go round.
fn made(windows: usize, regions: usize, hdds: usize, ssds: usize) -> Tables {
    let mut dice = Dice(SplitMix64::at(7));
    let servers = hdds + ssds;
    let valid_bytes: Vec<f64> = (0..regions).map(|_| dice.between(32e6, 128e6)).collect();
    let total: f64 = valid_bytes.iter().sum();
    let request: Vec<f64> = (0..regions).map(|_| dice.between(65536.0, 1048576.0)).collect();
    let zipf: f64 = (1..=regions).map(|rank| (rank as f64).powf(-0.8)).sum();
    let mut rank: Vec<usize> = (0..regions).collect();
    for last in (1..regions).rev() {
        rank.swap(last, (dice.roll() * (last + 1) as f64) as usize);
    }
    let mut features = vec![0.0; windows * regions * FEATURES];
    for window in 0..windows {
        for region in 0..regions {
            let bytes = 4.0 * total * ((rank[region] + 1) as f64).powf(-0.8) / zipf;
            let cell = &mut features[(window * regions + region) * FEATURES..][..FEATURES];
            (cell[0], cell[2]) = (bytes / request[region], bytes);
        }
        // A tenth of the regions change places in the order of heat.
        for _ in 0..regions / 20 {
            let (a, b) = ((dice.roll() * regions as f64) as usize, (dice.roll() * regions as f64) as usize);
            rank.swap(a, b);
        }
    }
    let mut tables =
        Tables { windows, regions, shapes: 1, choices: servers, resources: servers + 1, servers, features, valid_bytes, ..Tables::default() };
    let mut figures = Vec::new();
    for server in 0..servers {
        let hdd = server < hdds;
        figures.push(if hdd {
            (dice.between(0.002, 0.008), dice.between(60e6, 180e6))
        } else {
            (dice.between(5e-5, 3e-4), dice.between(200e6, 1e9))
        });
        tables.capacity.push(if hdd { 4.0 * total / hdds as f64 } else { dice.between(0.5, 2.0) * total / 6.0 / ssds as f64 });
    }
    let teams = [1, 4, 16, 64].iter().flat_map(|size| [(0, hdds), (hdds, servers)].map(|class| (*size, class)));
    for (size, (from, to)) in teams {
        for first in (from..to).step_by(size).filter(|first| first + size <= to) {
            let part = 1.0 / size as f64;
            let members = || (first..first + size).map(|server| (server as i64, figures[server]));
            let network = [0.0, 0.0, 1.0 / (servers as f64 * 1e9), 0.0, 0.0, 0.0, 0.0, 0.0];
            let own = members().map(|(at, (startup_s, bytes_s))| (at, [startup_s * part, 0.0, part / bytes_s, 0.0, 0.0, 0.0, 0.0, 0.0]));
            let copies: Vec<_> = members().map(|(at, (_, bytes_s))| (at, part / bytes_s)).collect();
            push(&mut tables.entries, &own.chain([(servers as i64, network)]).collect::<Vec<_>>());
            push(&mut tables.stores, &members().map(|(at, _)| (at, part)).collect::<Vec<_>>());
            push(&mut tables.leave, &copies);
            push(&mut tables.enter, &copies);
            tables.shape.push(0);
            tables.penalty_s.push(1e-9 * size as f64);
        }
    }
    tables.choices = tables.shape.len();
    tables
}

fn push<T: Copy>(list: &mut List<T>, members: &[(i64, T)]) {
    if list.first.is_empty() {
        list.first.push(0);
    }
    for (at, value) in members {
        list.at.push(*at);
        list.value.push(*value);
    }
    list.first.push(list.at.len() as i64);
}

fn main() {
    let given: Vec<f64> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let size = |at: usize, usual: f64| given.get(at).copied().unwrap_or(usual);
    let tables = made(size(0, 6.0) as usize, size(1, 10_000.0) as usize, size(2, 750.0) as usize, size(3, 250.0) as usize);
    let problem = Problem::new(tables).unwrap();
    let begin = Instant::now();
    let found = solve(&problem, &[], Limits { seconds: size(4, 40.0), gap: 0.002, seed: 1 }).unwrap();
    let (seconds, total) = (begin.elapsed().as_secs_f64(), found.window_s.iter().sum::<f64>());
    eprintln!("objective {total:.3} s, bound {:.3} s, {:?} per window", found.bound_s, found.window_s);
    println!(
        r#"{{"name":"assign.gap","value":{:.4},"unit":"of the objective","baseline":"the dual bound, after {seconds:.1} s","ratio":{:.4}}}"#,
        1.0 - found.bound_s / total,
        found.bound_s / total,
    );
}
