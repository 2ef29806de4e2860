//! Facts of the disk's memory: reading ahead, hits, and writes that wait.

use serde_json::{Value, json};
use stripewise_blocks::BlockRequest;
use stripewise_disk::{Report, Settings};

use crate::runs::{at, ran, settings};
use crate::spec::small;

fn cached(cache: &Value) -> Settings {
    let mut disk = small();
    let memory = json!({
        "cache_segments": 4, "cache_segment_blocks": 64, "cache_write_segments": 3,
        "overhead_read_hit_ms": 0.1, "overhead_read_miss_ms": 0.5, "overhead_write_hit_ms": 0.2, "overhead_write_miss_ms": 0.6
    });
    disk.as_object_mut().unwrap().extend(memory.as_object().unwrap().clone());
    settings(&json!({"name": "hdd"}), &json!({"disk": disk, "cache": cache}))
}

fn reads(report: &Report) -> f64 {
    report.read_response_s.unwrap().mean
}

/// Reads of 4 blocks one after another, each a while after the one before.
fn sequential(count: u64, every_ns: u64) -> impl Iterator<Item = BlockRequest> {
    (0..count).map(move |i| at(i * every_ns, 4 * i, false))
}

#[test]
fn a_slow_sequential_reader_finds_what_was_read_ahead() {
    let report = ran(&cached(&json!({"reads": true})), sequential(16, 23_000_000));
    // The first read fills a segment of 64 blocks: all others are hits, of 0.1 ms of overhead.
    assert_eq!((report.accounts.own.accesses, report.accounts.own.hits), (1, 15));
    assert!((report.response_s.unwrap().p50 - 0.0001).abs() < 1e-6);
    let off = ran(&cached(&json!({})), sequential(16, 23_000_000));
    assert_eq!((off.accounts.own.accesses, off.accounts.own.hits), (16, 0));
    assert!(reads(&off) > 5.0 * reads(&report));
}

#[test]
fn a_fast_sequential_reader_gets_the_rate_of_the_medium() {
    let blocks = 4000u64;
    let closed = |cache: Value| {
        let mut settings = cached(&cache);
        settings.arrivals = stripewise_disk::Arrivals::Closed;
        ran(&settings, sequential(blocks / 4, 0))
    };
    let (ahead, off) = (closed(json!({"reads": true})), closed(json!({})));
    // 100 blocks a turn of 10 ms, and a switch of at most 1.1 ms after each turn.
    let turns = blocks as f64 / 100.0;
    assert!(ahead.seconds > turns * 0.010 && ahead.seconds < turns * 0.0115 + 0.03, "{}", ahead.seconds);
    // Without, each command's overhead costs a turn.
    assert!(off.seconds > 8.0 * ahead.seconds, "{}", off.seconds);
    assert!((ahead.busy_s - ahead.accounts.own.seek_s - ahead.accounts.own.rotation_s - ahead.accounts.own.transfer_s).abs() < 1e-9);
}

#[test]
fn the_least_recently_read_segment_goes_first_and_writes_make_it_old() {
    // Five places in turn do not fit in four segments; four do.
    let places = |count: u64, rounds: u64| (0..count * rounds).map(move |i| at(i * 100_000_000, i % count * 2000, false));
    assert_eq!(ran(&cached(&json!({"reads": true})), places(4, 3)).accounts.own.hits, 8);
    assert_eq!(ran(&cached(&json!({"reads": true})), places(5, 3)).accounts.own.hits, 0);
    let requests = [at(0, 0, false), at(1_000_000_000, 2, true), at(2_000_000_000, 0, false)];
    assert_eq!(ran(&cached(&json!({"reads": true})), requests.into_iter()).accounts.own.hits, 0);
}

#[test]
fn a_write_that_waits_is_done_at_once_and_written_when_idle() {
    let back = cached(&json!({"writes": "back"}));
    let report = ran(&back, (0..10u64).map(|i| at(i * 100_000_000, i * 2000, true)));
    let longest = report.write_response_s.unwrap().max;
    assert!((longest - 0.0002).abs() < 1e-6, "{longest}");
    // The last one is still in memory when the run ends.
    assert_eq!((report.accounts.own.accesses, report.accounts.own.hits), (9, 10));
    let through = ran(&cached(&json!({})), (0..10u64).map(|i| at(i * 100_000_000, i * 2000, true)));
    assert!(through.write_response_s.unwrap().mean > 0.005);
}

#[test]
fn a_full_write_cache_makes_writes_wait() {
    let burst = (0..10u64).map(|i| at(0, i * 2000, true));
    let report = ran(&cached(&json!({"writes": "back"})), burst);
    // Three fit; each of the seven others waits for one to be written.
    assert_eq!(report.accounts.own.accesses, 7);
    assert!(report.write_response_s.unwrap().max > 0.02);
    // Blocks that follow one another share a segment, up to its size.
    let row = (0..16u64).map(|i| at(0, i * 4, true));
    assert_eq!(ran(&cached(&json!({"writes": "back"})), row).accounts.own.accesses, 0);
}

#[test]
fn what_was_just_written_is_read_from_memory_and_half_of_it_from_the_medium() {
    let back = cached(&json!({"writes": "back"}));
    let hit = ran(&back, [at(0, 100, true), at(0, 100, false)].into_iter());
    assert_eq!((hit.accounts.own.accesses, hit.accounts.own.hits), (0, 2));
    // Half of it is not in memory: it is written first, then all is read.
    let half = ran(&back, [at(0, 100, true), at(0, 102, false)].into_iter());
    assert_eq!((half.accounts.own.accesses, half.accounts.own.hits), (2, 1));
}
