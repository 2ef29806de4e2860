//! Moves and read-ahead.

use stripewise_sim::{Report, Request, Scenario, Start};

use crate::common::{Lists, device, read, run, run_by_events, scenario};

/// One server holds the file; `more` keys may move it to the other.
fn two(more: &str) -> Scenario {
    let device = device(0.001, 0.0);
    Scenario::from_json(&format!(
        r#"{{"version":1,"servers":[{{"name":"old","device":{device}}},{{"name":"new","device":{device}}}],"cycles":[[[0,4096]],[[1,4096]]],
        "files":[{{"name":"f","size_bytes":65536,"regions":[[0,65536,0,0]]}}]{more}}}"#
    ))
    .unwrap()
}

fn at(ms: u64, offset: u64) -> Request {
    Request { start: Start::At(ms * 1_000_000), ..read(offset, 100) }
}

fn accesses(report: &Report) -> [u64; 2] {
    [report.servers[0].accesses, report.servers[1].accesses]
}

#[test]
fn requests_go_to_the_new_home_when_its_copy_is_done() {
    let scenario = two(r#","moves":[{"at_s":0.01,"file":0,"start":0,"len":30000,"cycle":1}],"copy":{"chunk_bytes":10000}"#);
    // Three chunks, each read for 1 ms and written for 1 ms: done at 16 ms. The request at 15 ms still goes to the old home.
    let report = run(&scenario, &mut Lists::new(vec![vec![at(0, 0), at(15, 0), at(20, 0), at(21, 40_000)]]));
    assert_eq!(accesses(&report), [3 + 3, 3 + 1]);
    assert_eq!(report.moved_bytes, 30_000);
    assert!((report.moves[0].at_s - 0.01).abs() < 1e-12 && (report.moves[0].done_s - 0.016).abs() < 1e-12, "{:?}", report.moves);
    let width_s = report.timeline[1].start_s;
    assert!((report.timeline.iter().map(|b| b.copy_mb_s * width_s).sum::<f64>() - 0.03).abs() < 1e-9);
}

#[test]
fn a_move_follows_the_one_before_and_chunks_side_by_side_are_faster() {
    let moves = r#","moves":[{"at_s":0,"file":0,"start":0,"len":40000,"cycle":1},{"at_s":0,"file":0,"start":20000,"len":20000,"cycle":0}]"#;
    let ends = |copy: &str| {
        let report = run(&two(&format!(r#"{moves},"copy":{copy}"#)), &mut Lists::new(vec![]));
        assert_eq!(report.moved_bytes, 60_000);
        report.moves.iter().map(|m| (m.done_s * 1e6).round() as u64).collect::<Vec<_>>()
    };
    assert_eq!(ends(r#"{"chunk_bytes":10000}"#), [8000, 12_000]);
    assert_eq!(ends(r#"{"chunk_bytes":10000,"in_flight":4}"#), [5000, 8000]);
    // 1 MB/s: a chunk every 10 ms.
    assert_eq!(ends(r#"{"chunk_bytes":10000,"rate_bytes_per_s":1e6}"#), [32_000, 44_000]);
}

#[test]
fn copies_slow_requests_down_and_share_the_links() {
    let quiet = two("");
    let busy = two(r#","moves":[{"at_s":0,"file":0,"start":0,"len":65536,"cycle":1}],"copy":{"chunk_bytes":4096,"in_flight":8}"#);
    let requests = || Lists::new(vec![(0..10).map(|i| read(i * 100, 100)).collect()]);
    assert!(run(&busy, &mut requests()).seconds > run(&quiet, &mut requests()).seconds);
    let mut linked = busy;
    linked.network.per_byte_s = 1e-9;
    linked.network.processes_per_node = 4;
    let report = run(&linked, &mut requests());
    // The mover's node is a node of its own; what it copies crosses its link and the servers' twice.
    let links = report.links.unwrap();
    assert_eq!((links.nodes.count, links.nodes.bytes, links.servers.bytes), (2, 1000 + 2 * 65536, 1000 + 2 * 65536));
}

#[test]
fn a_sequential_reader_finds_the_next_window_on_its_way() {
    let think = |i: u64| Request { start: Start::After(5_000_000), ..read(i * 1000, 1000) };
    let requests = || Lists::new(vec![(0..60).map(think).collect()]);
    let mean_s = |scenario: &Scenario| run(scenario, &mut requests()).latency_s.read.unwrap().mean;
    let plain = scenario(4, &device(0.001, 1e-7), 4096, "");
    let mut ahead = plain.clone();
    ahead.read_ahead_bytes = 8000;
    assert!(mean_s(&ahead) < 0.1 * mean_s(&plain), "{} beside {}", mean_s(&ahead), mean_s(&plain));
    let report = run(&ahead, &mut requests());
    assert_eq!(report, run_by_events(&ahead, &mut requests()));
    assert_eq!(report.servers.iter().map(|s| s.bytes).sum::<u64>(), 1000 + report.bytes_ahead, "only the first request is read for itself");
    assert!(report.bytes_ahead < 60_000 + 2 * 8000);
}

#[test]
fn read_ahead_leaves_random_readers_and_the_end_of_the_file_alone() {
    let mut scenario = two(r#","read_ahead_bytes":8192"#);
    let report = run(&scenario, &mut Lists::new(vec![vec![read(9000, 10), read(100, 10), read(50_000, 10)]]));
    assert_eq!(report.bytes_ahead, 0);
    scenario.files[0].size_bytes = 3000;
    let report = run(&scenario, &mut Lists::new(vec![(0..3).map(|i| read(i * 1000, 1000)).collect()]));
    assert_eq!((report.bytes_ahead, report.bytes_read), (2000, 3000));
}
