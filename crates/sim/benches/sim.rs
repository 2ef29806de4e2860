//! Simulated sub-requests per second on one core: 1,000 servers, 4,096 closed-loop clients, 4 sub-requests per request, beside the same on an
//! ordinary binary heap with an event per sub-request, which must tell the same report.
//!
//! Prints one JSON line; details go to stderr.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use common::{Made, device, read, run, run_by_events};
use stripewise_sim::{Report, Request, Scenario, SplitMix64};

const SERVERS: usize = 1000;
const CLIENTS: u32 = 4096;
const STRIPE_BYTES: u64 = 64 << 10;
const FILE_BYTES: u64 = 64 << 30;
const REGION_BYTES: u64 = 64 << 20;
const ROUNDS: usize = 3;

/// Regions of equal length that all share one cycle, each beginning at another of its entries.
fn scenario() -> Scenario {
    let list: Vec<String> = (0..SERVERS).map(|i| format!(r#"{{"name":"s{i}","device":{}}}"#, device(0.003, 1e-8))).collect();
    let cycle: Vec<String> = (0..SERVERS).map(|i| format!("[{i},{STRIPE_BYTES}]")).collect();
    let regions: Vec<String> =
        (0..FILE_BYTES / REGION_BYTES).map(|i| format!("[{},{REGION_BYTES},0,{}]", i * REGION_BYTES, i * 37 % SERVERS as u64)).collect();
    let text = format!(
        r#"{{"version":1,"servers":[{}],"cycles":[[{}]],"files":[{{"name":"f","size_bytes":{FILE_BYTES},"regions":[{}]}}]}}"#,
        list.join(","),
        cycle.join(","),
        regions.join(",")
    );
    Scenario::from_json(&text).unwrap()
}

fn source(each: u64) -> Made<impl FnMut(u32, u64) -> Request> {
    let mut random: Vec<SplitMix64> = (0..CLIENTS).map(|i| SplitMix64::new(7, u64::from(i))).collect();
    let request = 4 * STRIPE_BYTES;
    Made::new(CLIENTS, each, move |process, _| read(random[process as usize].below(FILE_BYTES / request) * request, request))
}

fn main() {
    let scenario = scenario();
    let mut best = [0f64; 2];
    let mut reports: [Option<Report>; 2] = [None, None];
    for _ in 0..ROUNDS {
        for (i, by_events) in [false, true].into_iter().enumerate() {
            let mut source = source(500);
            let begin = Instant::now();
            let report = if by_events { run_by_events(&scenario, &mut source) } else { run(&scenario, &mut source) };
            best[i] = best[i].max(report.sub_requests as f64 / begin.elapsed().as_secs_f64());
            reports[i] = Some(report);
        }
    }
    assert_eq!(reports[0], reports[1], "both engines tell the same");
    let report = reports[0].take().unwrap();
    eprintln!("{} sub-requests, {:.1} simulated s, bound ratio {:.3}", report.sub_requests, report.seconds, report.bound_ratio);
    println!(
        r#"{{"name":"sim.subrequests_per_s","value":{:.0},"unit":"1/s","baseline":"binary heap, an event per sub-request: {:.0}/s","ratio":{:.2}}}"#,
        best[0],
        best[1],
        best[0] / best[1],
    );
}
