//! Facts of runs: queues, accounts, amplification, idle work, caches.

use serde_json::{Value, json};
use stripewise_blocks::{BlockRequest, Error};
use stripewise_chance::SplitMix64;
use stripewise_disk::{Report, Settings, run};

use crate::plausible::random;
use crate::spec::small;

/// `small`, or what `changes` makes of it, under a scheme.
pub fn settings(scheme: &Value, changes: &Value) -> Settings {
    let mut all = json!({"version": 1, "disk": small(), "scheme": scheme});
    all.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    Settings::from_json(&all.to_string()).unwrap()
}

pub fn ran(settings: &Settings, requests: impl Iterator<Item = BlockRequest>) -> Report {
    run(settings, requests.map(Ok::<_, Error>), &mut |_| true).unwrap()
}

pub fn at(arrival_ns: u64, lba: u64, write: bool) -> BlockRequest {
    BlockRequest { arrival_ns, lba, blocks: 4, write }
}

/// (sum of the parts of a split, its total)
fn parts(report: &Report) -> [(f64, f64); 2] {
    [report.read_time, report.write_time]
        .map(|split| (split.waiting_s + split.own_s + split.amplification_s + split.collection_s + split.upkeep_s, split.total_s))
}

/// The disk's accounts are its busy time, and every response is the sum of its parts.
fn assert_conserved(report: &Report) {
    let accounts = &report.accounts;
    let accounts = [&accounts.own, &accounts.amplification, &accounts.collection, &accounts.upkeep];
    let sum: f64 = accounts.iter().map(|account| account.seek_s + account.rotation_s + account.transfer_s).sum();
    assert!((sum - report.busy_s).abs() < 1e-6, "{sum} {}", report.busy_s);
    assert!(report.busy_s <= report.seconds + 1e-6);
    for (sum, total) in parts(report) {
        assert!((sum - total).abs() < 1e-6 * (1.0 + total), "{sum} {total}");
    }
    let accesses: u64 = accounts.iter().map(|account| account.accesses).sum();
    assert_eq!(report.seeks.iter().map(|range| range.accesses).sum::<u64>(), accesses);
}

fn uniform(report: &Report, count: u64, mean_ms: f64, seed: u64) -> Box<dyn Iterator<Item = BlockRequest>> {
    Box::new(random(count, mean_ms, report.used_blocks, 1, 0.5, seed).map(Result::unwrap))
}

fn nothing(settings: &Settings) -> Report {
    ran(settings, std::iter::empty())
}

#[test]
fn a_run_without_requests_reports_nothing() {
    let report = nothing(&settings(&json!({"name": "hdd"}), &json!({})));
    assert_eq!((report.requests, report.response_s, report.seconds), (0, None, 0.0));
    assert_eq!(report.capacity_blocks, 2 * (120 * 100 + 80 * 80 + 100 * 64));
}

/// Pollaczek and Khinchine: the mean wait of M/G/1 follows from the first two moments of the service time, here those of one track: a wait uniform over
/// a turn of 10 ms, and a sector of 1 us.
#[test]
fn fcfs_waits_as_m_g_1_does() {
    let disk = json!({"cylinders": 1, "surfaces": 1, "rpm": 6000.0, "zones": [[0, 10_000]], "seek": [[1, 1.0]]});
    let settings = settings(&json!({"name": "hdd"}), &json!({"disk": disk}));
    for mean_ms in [20.0, 8.0] {
        let mut chance = SplitMix64::new(4, 4);
        let mut arrival_ns = 0.0;
        let requests = (0..300_000).map(|_| {
            arrival_ns += chance.exponential() * mean_ms * 1e6;
            BlockRequest { arrival_ns: arrival_ns as u64, lba: chance.below(10_000), blocks: 1, write: chance.unit() < 0.5 }
        });
        let report = ran(&settings, requests);
        let (first, second) = (5.001, 5.001 * 5.001 + 100.0 / 12.0);
        let load = first / mean_ms;
        let expected = first + second / mean_ms / (2.0 * (1.0 - load));
        let response = 1e3 * report.response_s.unwrap().mean;
        assert!((response / expected - 1.0).abs() < 0.02, "{response} {expected}");
        assert!((report.utilisation / load - 1.0).abs() < 0.01, "{} {load}", report.utilisation);
        // Little: the mean number in the system is the arrival rate times the response.
        assert!((report.queue_mean / (response / mean_ms) - 1.0).abs() < 0.01);
        assert_conserved(&report);
    }
}

/// Mean response at a load, and the seek per request, of an order.
fn ordered(order: &str, depth: Option<u32>) -> (f64, f64, Report) {
    let settings = settings(&json!({"name": "hdd"}), &json!({"queue": {"order": order, "depth": depth}}));
    let blocks = nothing(&settings).capacity_blocks;
    let report = run(&settings, random(20_000, 11.0, blocks, 1, 0.5, 3), &mut |_| true).unwrap();
    assert_conserved(&report);
    (report.response_s.unwrap().mean, report.accounts.own.seek_s / report.requests as f64, report)
}

#[test]
fn orders_that_look_at_the_arm_seek_less_and_sptf_responds_soonest() {
    let (fcfs, sstf, look, sptf) = (ordered("fcfs", None), ordered("sstf", None), ordered("c-look", None), ordered("sptf", None));
    assert!(sstf.1 < 0.85 * fcfs.1 && look.1 < 0.95 * fcfs.1, "{} {} {}", fcfs.1, sstf.1, look.1);
    assert!(sptf.0 < sstf.0 && sstf.0 < fcfs.0 && look.0 < fcfs.0, "{} {} {} {}", fcfs.0, sstf.0, look.0, sptf.0);
    // C-LOOK lets nobody wait for long, SSTF does.
    assert!(look.2.stalls.longest_s < sstf.2.stalls.longest_s);
    // A disk that holds one request has nothing to order.
    assert_eq!(ordered("sstf", Some(1)).0, fcfs.0);
    assert_eq!(ordered("sptf", Some(1)).0, fcfs.0);
}

#[test]
fn c_look_goes_inwards_and_sstf_to_the_nearest() {
    // Cylinders 50, 40, 60, 45 of a disk of 200 blocks a cylinder, all there while the arm goes to cylinder 50.
    let requests = || [50u64, 40, 60, 45].into_iter().map(|cylinder| at(0, cylinder * 200, false));
    let ranges = |order: &str| {
        let report = ran(&settings(&json!({"name": "hdd"}), &json!({"queue": {"order": order}})), requests());
        report.seeks.iter().map(|range| (range.from_cylinders, range.accesses)).collect::<Vec<_>>()
    };
    // FCFS: 50, 10, 20, 15. From cylinder 0, both others go 40, 5, 5, 10.
    assert_eq!(ranges("fcfs"), [(8, 2), (16, 1), (32, 1)]);
    assert_eq!(ranges("c-look"), [(4, 2), (8, 1), (32, 1)]);
    assert_eq!(ranges("sstf"), [(4, 2), (8, 1), (32, 1)]);
}

/// Golden: write amplification of uniform updates on static mappings (docs: `uniform_update_amplification`), at 25, 50, 75 and 100 % used.
#[test]
fn static_schemes_amplify_as_in_the_golden_table() {
    let golden = [
        ("1234", [4.0, 4.0, 4.0, 4.0]),
        ("R(4123)", [1.0, 1.0, 1.67, 4.0]),
        ("14R(23)", [1.0, 1.0, 1.67, 4.0]),
        ("124R(3)", [1.67, 1.67, 1.67, 4.0]),
    ];
    // Bands of four tracks and a gap fill the zones, and quarters of the space are whole tracks.
    let disk = json!({"cylinders": 400, "surfaces": 1, "rpm": 6000.0, "zones": [[0, 100]], "seek": [[1, 1.0], [399, 8.0]]});
    for (name, table) in golden {
        for (quarter, golden) in (1u64..).zip(table) {
            let changes = json!({"disk": disk});
            let capacity = nothing(&settings(&json!({"name": name}), &changes)).capacity_blocks;
            let used = capacity * quarter / 4;
            let filled = settings(&json!({"name": name}), &json!({"disk": disk, "used_blocks": used, "arrivals": "closed"}));
            let mut random = SplitMix64::new(5, quarter);
            // One block each, so that no update lies on two tracks.
            let updates = (0..20_000).map(|_| BlockRequest { arrival_ns: 0, lba: random.below(used), blocks: 1, write: true });
            let report = ran(&filled, updates);
            assert!((report.amplification - golden).abs() < 0.04, "{name} at {quarter}/4: {} is not {golden}", report.amplification);
            assert_conserved(&report);
            let extra = report.accounts.amplification.accesses as f64 / report.accounts.own.accesses as f64;
            assert!((1.0 + extra - report.amplification).abs() < 1e-9, "{name}: the medium saw {extra} more");
            assert_eq!(report.counters.own_writes, 20_000);
        }
    }
}

#[test]
fn every_scheme_serves_every_request_and_accounts_for_its_time() {
    let bytes = |tracks: u64| tracks * 100 * 512;
    let more = json!({"random_access_bytes": bytes(20), "e_region_bytes": bytes(40)});
    let schemes = [
        json!({"name": "hdd"}),
        json!({"name": "1234"}),
        json!({"name": "R(4123)", "keeps_flushed": true}),
        json!({"name": "124R(3)", "band_tracks": 6, "head_tracks": 3}),
        json!({"name": "14R(23)"}),
        json!({"name": "tstl-greedy", "band_tracks": 20}),
        json!({"name": "tstl-smart", "band_tracks": 20}),
        json!({"name": "tstl-smart", "band_tracks": 20, "keeps_flushed": true}),
        json!({"name": "is", "s_block_sectors": 200}),
    ];
    for scheme in schemes {
        for cache in [json!({}), json!({"reads": true, "writes": "back"})] {
            let mut changes = more.clone();
            changes["cache"] = cache.clone();
            let mut disk = small();
            disk.as_object_mut()
                .unwrap()
                .extend(json!({"cache_segments": 4, "cache_segment_blocks": 128, "cache_write_segments": 2}).as_object().unwrap().clone());
            changes["disk"] = disk;
            let capacity = nothing(&settings(
                &scheme,
                &json!({"disk": changes["disk"], "filled_blocks": 0, "random_access_bytes": bytes(20), "e_region_bytes": bytes(40)}),
            ))
            .capacity_blocks;
            changes["used_blocks"] = json!(capacity * 7 / 10);
            let settings = settings(&scheme, &changes);
            let report = ran(&settings, uniform(&nothing(&settings), 3000, 60.0, 11));
            assert_eq!((report.requests, report.reads + report.writes), (3000, 3000), "{scheme}");
            assert_conserved(&report);
            assert!(report.queue_max >= 1 && report.utilisation > 0.0);
        }
    }
}

#[test]
fn work_of_an_idle_disk_saves_writes_from_it() {
    let scheme = json!({"name": "tstl-smart", "band_tracks": 50});
    let base = json!({"random_access_bytes": 1_000_000});
    let capacity = nothing(&settings(&scheme, &json!({"random_access_bytes": 1_000_000, "filled_blocks": 0}))).capacity_blocks;
    let with = |background: Value| {
        let mut changes = base.clone();
        changes["used_blocks"] = json!(capacity * 8 / 10);
        changes["background"] = background;
        let settings = settings(&scheme, &changes);
        let report = ran(&settings, uniform(&nothing(&settings), 4000, 300.0, 2));
        assert_conserved(&report);
        report
    };
    let (demand, idle) = (with(Value::Null), with(json!({"after_ms": 20.0})));
    assert_eq!(demand.idle_steps, 0);
    assert!(idle.idle_steps > 0 && idle.idle_s > 0.0, "{} steps", idle.idle_steps);
    assert!(idle.write_time.collection_s < demand.write_time.collection_s, "{} {}", idle.write_time.collection_s, demand.write_time.collection_s);
    let never = with(json!({"after_ms": 1e9}));
    assert_eq!(never, demand);
    let little = with(json!({"after_ms": 20.0, "budget_ms": 1.0}));
    assert!(little.idle_s <= idle.idle_s);
}

#[test]
fn a_warm_up_is_served_and_not_counted() {
    // 50 updates that amplify, then 50 reads of a turn each.
    let requests = || (0..100u64).map(|i| BlockRequest { arrival_ns: i * 1_000_000_000, lba: 0, blocks: 1, write: i < 50 });
    let warm = |warm: u64| ran(&settings(&json!({"name": "1234"}), &json!({"warm_requests": warm})), requests());
    let (all, half) = (warm(0), warm(50));
    assert_eq!((all.requests, all.writes, all.amplification), (100, 50, 7.0));
    assert_eq!((half.requests, half.writes, half.amplification), (50, 0, 1.0));
    assert_eq!(half.accounts.own.accesses, 50);
    assert!((half.seconds - 50.0).abs() < 0.1, "{}", half.seconds);
    assert_conserved(&half);
    let longer = settings(&json!({"name": "1234"}), &json!({"warm_requests": 101}));
    let error = run(&longer, requests().map(Ok), &mut |_| true).unwrap_err().to_string();
    assert!(error.starts_with("warm_requests: is 101, there were 100 requests; "), "{error}");
}

#[test]
fn a_request_that_cannot_be_served_ends_the_run_with_its_number() {
    let settings = settings(&json!({"name": "hdd"}), &json!({"used_blocks": 1000}));
    let fails = |requests: Vec<Result<BlockRequest, Error>>| run(&settings, requests.into_iter(), &mut |_| true).unwrap_err().to_string();
    let text = fails(vec![Ok(at(0, 0, true)), Ok(at(1, 998, true))]);
    assert!(text.starts_with("request 1: blocks 998 to 1002 are not within the 1000 used ones; "), "{text}");
    let text = fails(vec![Ok(BlockRequest { blocks: 0, ..at(0, 0, true) })]);
    assert!(text.starts_with("request 0: "), "{text}");
    let text = fails(vec![Ok(at(5, 0, true)), Ok(at(4, 0, true))]);
    assert!(text.starts_with("request 1 arrives before"), "{text}");
    let text = fails(vec![Ok(at(5, 0, true)), Ok(at(u64::MAX, 0, true))]);
    assert!(text.starts_with("request 1 arrives after"), "{text}");
    let text = fails(vec![Ok(at(5, 0, true)), Err(Error::Trace("t.csv, line 2: no".into()))]);
    assert_eq!(text, "t.csv, line 2: no");
}

#[test]
fn whoever_watches_can_end_a_run() {
    let settings = settings(&json!({"name": "hdd"}), &json!({"arrivals": "closed"}));
    let mut seen = Vec::new();
    let endless = std::iter::repeat_with(|| Ok::<_, Error>(at(0, 0, false)));
    let error = run(&settings, endless, &mut |done| {
        seen.push(done);
        seen.len() < 3
    });
    assert_eq!(error.unwrap_err().to_string(), "interrupted");
    assert!(seen.len() == 3 && seen[2] < 300_000, "{seen:?}");
}

#[test]
fn a_stall_is_the_time_in_which_the_oldest_waits_too_long() {
    // 100 reads of one block at once, each a turn of 10 ms: the last one ends after a second.
    let settings = settings(&json!({"name": "hdd"}), &json!({"stall_bound_ms": 400.0}));
    let report = ran(&settings, (0..100).map(|_| at(0, 0, false)));
    assert!((report.stalls.longest_s - report.seconds).abs() < 1e-9);
    assert!((report.stalls.stalled_s - (report.seconds - 0.4)).abs() < 1e-6, "{:?}", report.stalls);
    assert_eq!(report.queue_max, 100);
    let report = ran(&settings, (0..100u64).map(|i| at(i * 100_000_000, 0, false)));
    assert_eq!((report.stalls.stalled_s, report.queue_max), (0.0, 1));
}

#[test]
fn settings_that_cannot_be_are_refused_with_the_key() {
    let wrong = [
        (json!({"version": 2}), "version"),
        (json!({"scheme": {"name": "4321"}}), "scheme.name"),
        (json!({"scheme": {"name": "hdd", "gc_threshold": 0.5}}), "scheme.gc_threshold"),
        (json!({"scheme": {"name": "is", "band_tracks": 4}}), "scheme.band_tracks"),
        (json!({"scheme": {"name": "hdd", "head_tracks": 2}}), "scheme"),
        (json!({"scheme": {"name": "tstl-smart", "gc_threshold": 2.0}}), "scheme.gc_threshold"),
        (json!({"queue": {"order": "sptf", "depth": 0}}), "queue.depth"),
        (json!({"queue": {"order": "elevator"}}), "settings"),
        (json!({"used_blocks": 0}), "used_blocks"),
        (json!({"used_blocks": 1_000_000}), "used_blocks"),
        (json!({"used_blocks": 10, "filled_blocks": 11}), "filled_blocks"),
        (json!({"cache": {"reads": true}}), "disk.cache_segments"),
        (json!({"cache": {"writes": "back"}}), "disk.cache_write_segments"),
        (json!({"random_access_bytes": 1_000_000_000_000u64}), "random_access_bytes"),
        (json!({"e_region_bytes": 1_000_000_000_000u64}), "e_region_bytes"),
        (json!({"background": {"after_ms": -1.0}}), "background.after_ms"),
        (json!({"stall_bound_ms": -1.0}), "stall_bound_ms"),
        (json!({"run_cylinders": 0}), "run_cylinders"),
    ];
    for (change, key) in wrong {
        let mut all = json!({"version": 1, "disk": small(), "scheme": {"name": "hdd"}});
        all.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let refused = Settings::from_json(&all.to_string()).and_then(|settings| run(&settings, std::iter::empty(), &mut |_| true));
        let text = refused.unwrap_err().to_string();
        assert!(text.starts_with(key), "{change}: {text}");
    }
}

#[test]
fn a_disk_that_holds_several_commands_hides_their_overheads() {
    // A turn is 10 ms, an overhead 11: each of two reads of block 0 begins at the next turn.
    let end = |depth: Value| {
        let mut disk = small();
        disk["overhead_read_miss_ms"] = json!(11.0);
        let settings = settings(&json!({"name": "hdd"}), &json!({"disk": disk, "queue": {"depth": depth}}));
        ran(&settings, (0..2).map(|_| at(0, 0, false))).seconds
    };
    assert!((end(json!(1)) - 0.0404).abs() < 1e-6, "{}", end(json!(1)));
    assert!((end(Value::Null) - 0.0304).abs() < 1e-6, "{}", end(Value::Null));
}

#[test]
fn the_wait_in_the_middle_of_a_transfer_is_part_of_it() {
    // Blocks 98 to 101 of tracks of 100 without skew: 9.8 ms until the first, and after the switch of 0.5 ms all but a turn until the third.
    let mut disk = small();
    disk["skew"] = json!("none");
    let own = ran(&settings(&json!({"name": "hdd"}), &json!({"disk": disk})), std::iter::once(at(0, 98, false))).accounts.own;
    let close = |ours: f64, ms: f64| assert!((ours * 1e3 - ms).abs() < 1e-3, "{own:?}");
    assert_eq!((own.accesses, own.sectors), (2, 4));
    close(own.rotation_s, 9.8);
    close(own.seek_s, 0.5);
    close(own.transfer_s, 9.9);
}
