//! Simulated block requests per second on one core, whole runs with their reports: uniformly random 4 KiB requests, half of them reads, to a plain disk
//! and to the same disk shingled under Smart, 80 % full.
//!
//! Prints a JSON line for each; details go to stderr.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Instant;

use serde_json::{Value, json};
use stripewise_blocks::{BlockRequest, Error};
use stripewise_chance::SplitMix64;
use stripewise_disk::{Report, Settings, run};

/// Short rounds, of which the best counts: other programs on the machine disturb some of them.
const ROUNDS: usize = 12;
/// What a well-known simulator, DiskSim, does: from and to, requests per second.
const DISKSIM: (f64, f64) = (2_500.0, 24_000.0);

/// A generic disk in round figures, 150 GB.
fn generic() -> Value {
    json!({
        "name": "generic", "cylinders": 70_000, "surfaces": 4, "rpm": 15_000.0, "head_switch_ms": 0.5,
        "layout": "serpentine, runs of 100 cylinders per surface",
        "zones": [[0, 1200], [20_000, 1100], [40_000, 1000], [60_000, 800]],
        "seek": [[1, 0.6], [100, 1.2], [1000, 1.7], [10_000, 3.0], [69_999, 7.0]]
    })
}

fn random(count: u64, mean_ms: f64, blocks: u64) -> impl Iterator<Item = Result<BlockRequest, Error>> {
    let mut random = SplitMix64::new(1, 0);
    let mut arrival_ns = 0f64;
    (0..count).map(move |_| {
        arrival_ns += random.exponential() * mean_ms * 1e6;
        let bits = random.bits();
        Ok(BlockRequest {
            arrival_ns: arrival_ns as u64,
            lba: (((bits >> 1) as u128 * ((blocks / 8) as u128)) >> 63) as u64 * 8,
            blocks: 8,
            write: bits & 1 == 0,
        })
    })
}

/// The best of some runs, requests/s, with its report.
fn best(settings: &Value, count: u64, mean_ms: f64) -> (f64, Report) {
    let settings = Settings::from_json(&settings.to_string()).unwrap();
    let blocks = run(&settings, std::iter::empty(), &mut |_| true).unwrap().used_blocks;
    let once = || {
        let begin = Instant::now();
        let report = run(&settings, random(count, mean_ms, blocks), &mut |_| true).unwrap();
        (count as f64 / begin.elapsed().as_secs_f64(), report)
    };
    (0..ROUNDS).map(|_| once()).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
}

fn main() {
    let hdd = json!({"version": 1, "disk": generic(), "scheme": {"name": "hdd"}});
    let (plain, report) = best(&hdd, 400_000, 12.0);
    eprintln!("hdd: {:.2} ms mean response, {:.0} simulated s", 1e3 * report.response_s.unwrap().mean, report.seconds);
    println!(
        r#"{{"name":"swd.sim_hdd_requests_per_s","value":{plain:.0},"unit":"1/s","baseline":"goal 1,000,000/s; published of DiskSim: {} to {}/s","ratio":{:.2}}}"#,
        DISKSIM.0,
        DISKSIM.1,
        plain / 1e6,
    );
    let capacity = {
        let empty =
            json!({"version": 1, "disk": generic(), "random_access_bytes": 2_000_000_000u64, "scheme": {"name": "tstl-smart"}, "filled_blocks": 0});
        run(&Settings::from_json(&empty.to_string()).unwrap(), std::iter::empty(), &mut |_| true).unwrap().capacity_blocks
    };
    let smart = json!({
        "version": 1, "disk": generic(), "random_access_bytes": 2_000_000_000u64, "scheme": {"name": "tstl-smart"}, "used_blocks": capacity / 10 * 8
    });
    let (shingled, report) = best(&smart, 200_000, 60.0);
    eprintln!("tstl-smart: {:.2} ms mean response, amplification {:.2}", 1e3 * report.response_s.unwrap().mean, report.amplification);
    println!(
        r#"{{"name":"swd.sim_smart_requests_per_s","value":{shingled:.0},"unit":"1/s","baseline":"hdd in the same run: {plain:.0}/s; goal 300,000/s","ratio":{:.2}}}"#,
        shingled / plain,
    );
}
