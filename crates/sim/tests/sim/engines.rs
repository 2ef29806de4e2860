//! Both engines on random scenarios, and what holds for every run.

use proptest::prelude::*;
use stripewise_sim::{Report, Request, Scenario, Start};

use crate::common::{Lists, device, read, run, run_by_events, scenario, write};

const FILE_BYTES: u64 = 400_000;

fn device_text() -> impl Strategy<Value = String> {
    let startup = prop_oneof![
        4 => Just(""),
        1 => Just(r#","startup":{"kind":"exponential"}"#),
        1 => Just(r#","startup":{"kind":"seek","factor_s":1e-5,"rotation_s":1e-5,"capacity_bytes":1000000}"#),
    ];
    (0..20u32, 0..3u32, 0..3u32, 1..4u32, startup).prop_map(|(startup_us, per_byte_ns, discount, channels, startup)| {
        let figures = |more: u32| format!(r#"{{"startup_s":{startup_us}e-6,"per_byte_s":{}e-9}}"#, per_byte_ns + more);
        format!(
            r#"{{"read":{},"write":{},"sequential_discount":{},"channels":{channels}{startup}}}"#,
            figures(0),
            figures(1),
            f64::from(discount) / 2.0
        )
    })
}

/// Servers, uneven cycles, regions, a move or two, perhaps read-ahead.
fn scenarios() -> impl Strategy<Value = Scenario> {
    let devices = prop::collection::vec(device_text(), 3);
    let widths = prop::collection::vec(1..9000u64, 3);
    let regions = prop::collection::vec((1..60_000u64, 0..2u32), 1..5);
    let moves = prop::collection::vec((0..1000u32, 0..200_000u64, 1..90_000u64, 0..2u32), 0..3);
    (devices, widths, regions, moves, 1..4u32, prop_oneof![Just(0), 1000..20_000u32]).prop_map(|(devices, widths, regions, moves, lanes, ahead)| {
        let servers: Vec<String> = devices.iter().enumerate().map(|(i, d)| format!(r#"{{"name":"s{i}","device":{d}}}"#)).collect();
        let mut start = 0;
        let mut list = Vec::new();
        for (len, cycle) in regions {
            list.push(format!("[{start},{len},{cycle},{}]", len % 2));
            start += len;
        }
        let moves: Vec<String> = moves
            .iter()
            .map(|(at, start, len, cycle)| format!(r#"{{"at_s":{at}e-6,"file":0,"start":{start},"len":{len},"cycle":{cycle}}}"#))
            .collect();
        Scenario::from_json(&format!(
            r#"{{"version":1,"seed":3,"servers":[{}],"cycles":[[[0,{}],[1,{}]],[[2,{}],[0,{}]]],"files":[{{"name":"f","size_bytes":{FILE_BYTES},"regions":[{}]}}],
            "moves":[{}],"copy":{{"chunk_bytes":20000,"in_flight":{lanes}}},"read_ahead_bytes":{ahead},"timeline_buckets":8}}"#,
            servers.join(","),
            widths[0],
            widths[1],
            widths[2],
            widths[0],
            list.join(","),
            moves.join(","),
        ))
        .unwrap()
    })
}

/// Requests of a few processes, in sequence or not; open loops, or closed ones with barriers, or with processes that wait for earlier ones to be over.
fn requests() -> impl Strategy<Value = Vec<Vec<Request>>> {
    let one = (any::<bool>(), any::<bool>(), 0..300_000u64, 1..60_000u64, 0..8u64, 0..30_000u64);
    let behind = prop::collection::vec((0..6u32, 0..50_000u64), 5);
    (0..3u32, prop::collection::vec(prop::collection::vec(one, 0..25), 0..5), behind).prop_map(|(loops, processes, behind)| {
        let open = loops == 0;
        let list = |number: u32, rows: Vec<(bool, bool, u64, u64, u64, u64)>| {
            let (mut next, mut at) = (0, 0);
            let mut out = Vec::new();
            for (writes, continues, offset, bytes, kind, ns) in rows {
                let offset = if continues && next < 300_000 { next } else { offset };
                at += ns;
                let (over, think_ns) = behind[number as usize];
                let start = if open {
                    Start::At(at)
                } else if loops == 1 && out.is_empty() && (1..=number).contains(&over) {
                    Start::Behind { over, think_ns }
                } else if loops == 2 && kind == 0 {
                    Start::Barrier(ns)
                } else {
                    Start::After(ns)
                };
                out.push(Request { file: 0, write: writes, offset, bytes, start });
                next = offset + bytes;
            }
            out
        };
        (0..).zip(processes).map(|(number, rows)| list(number, rows)).collect()
    })
}

fn bytes_of_servers(report: &Report) -> u64 {
    report.servers.iter().map(|s| s.bytes).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn an_event_for_every_access_tells_the_same(scenario in scenarios(), lists in requests()) {
        let quick = run(&scenario, &mut Lists::new(lists.clone()));
        prop_assert_eq!(&quick, &run_by_events(&scenario, &mut Lists::new(lists.clone())));
        prop_assert_eq!(&quick, &run(&scenario, &mut Lists::new(lists)));
    }

    #[test]
    fn nothing_is_lost_and_no_run_beats_its_bound(mut scenario in scenarios(), lists in requests(), per_byte in 0..3u32, establish in 0..9u32) {
        scenario.network.per_byte_s = f64::from(per_byte) * 1e-9;
        scenario.network.establish_s = f64::from(establish) * 1e-6;
        scenario.network.processes_per_node = 2;
        let report = run(&scenario, &mut Lists::new(lists.clone()));
        let of = |write: bool| lists.iter().flatten().filter(|r| r.write == write).map(|r| r.bytes).sum::<u64>();
        prop_assert_eq!((report.bytes_read, report.bytes_written), (of(false), of(true)));
        prop_assert_eq!(report.requests as usize, lists.iter().map(Vec::len).sum::<usize>());
        prop_assert_eq!(report.moved_bytes, scenario.moves.iter().map(|m| m.len).sum::<u64>());
        let carried = report.bytes_read + report.bytes_written + 2 * report.moved_bytes;
        if scenario.read_ahead_bytes == 0 {
            prop_assert_eq!(bytes_of_servers(&report), carried);
        } else {
            prop_assert!(bytes_of_servers(&report) <= carried + report.bytes_ahead);
        }
        prop_assert!(report.bound_s <= report.seconds * (1.0 + 1e-9), "{} beside {}", report.bound_s, report.seconds);
        prop_assert!(report.servers.iter().all(|s| s.utilisation <= 1.0 + 1e-9));
        prop_assert!(report.timeline.len() <= 8);
    }

    #[test]
    fn twice_the_service_times_take_exactly_twice_as_long(
        lists in prop::collection::vec(prop::collection::vec((any::<bool>(), 0..90_000u64, 1..90_000u64), 0..20), 1..6),
        startup_us in 0..50u32,
        per_byte_ns in 1..9u32,
    ) {
        let requests = |_: ()| Lists::new(lists.iter().map(|l| l.iter().map(|(w, at, n)| if *w { write(*at, *n) } else { read(*at, *n) }).collect()).collect());
        let at = |times: u32| device(f64::from(startup_us * times) / 1e6, f64::from(per_byte_ns * times) / 1e9);
        let once = run(&scenario(3, &at(1), 4096, ""), &mut requests(()));
        let twice = run(&scenario(3, &at(2), 4096, ""), &mut requests(()));
        let ns = |r: &Report| (r.seconds * 1e9).round() as u64;
        prop_assert_eq!(ns(&twice), 2 * ns(&once));
        if once.seconds > 0.0 {
            prop_assert!((once.mb_s / twice.mb_s - 2.0).abs() < 1e-9);
        }
    }
}

#[test]
fn one_request_alone_takes_its_longest_access_and_that_is_its_bound() {
    let report = run(&scenario(4, &device(0.003, 1e-8), 65536, ""), &mut Lists::new(vec![vec![read(0, 200_000)]]));
    assert_eq!((report.sub_requests, report.requests), (4, 1));
    assert!((report.seconds - (0.003 + 65536.0 * 1e-8)).abs() < 1e-12);
    assert!((report.bound_ratio - 1.0).abs() < 1e-12);
}

#[test]
fn who_came_after_others_waits_for_these_and_for_nobody_else() {
    let scenario = scenario(3, &device(0.001, 0.0), 4096, "");
    let behind = |over, ms: u64, at| Request { start: Start::Behind { over, think_ns: ms * 1_000_000 }, ..read(at, 1) };
    let server = |number: u64| number * 4096;
    let seconds = |lists: Vec<Vec<Request>>, ended: Vec<u32>| {
        let source = Lists { ended, ..Lists::new(lists) };
        let report = run(&scenario, &mut source.clone());
        assert_eq!(report, run_by_events(&scenario, &mut source.clone()));
        assert!(report.bound_s <= report.seconds * (1.0 + 1e-9));
        (report.seconds * 1e6).round() as u64
    };
    let (long, short) = (vec![read(server(0), 1); 10], vec![read(server(1), 1); 2]);
    // 10 ms beside 2 ms; then 1 ms behind both, after 5 ms of the program's own.
    assert_eq!(seconds(vec![long.clone(), short.clone(), vec![behind(2, 5, server(2))]], vec![1, 0, 2]), 16_000);
    // Behind the short one alone, and then one behind that: all of it is done beside the long one.
    let (second, third) = (vec![behind(1, 3, server(2))], vec![behind(2, 1, server(2))]);
    assert_eq!(seconds(vec![long.clone(), short.clone(), second.clone(), third.clone()], vec![1, 2, 0, 3]), 10_000);
    // On a slower server it takes longer: 2 + 3 + 1 + 1 + 3 ms, where the last one counts from the end of the one before it.
    let third = [third, vec![read(server(2), 1); 4]].concat();
    assert_eq!(seconds(vec![long, short.clone(), second, third], vec![1, 2, 0, 3]), 2000 + 4000 + 6000);
    // Nobody waits for who has nothing to do, and an end that is told of early does not count before its time.
    assert_eq!(seconds(vec![vec![], short, vec![behind(1, 0, server(2))], vec![behind(2, 0, server(0))]], vec![0, 1, 2, 3]), 3000);
}

#[test]
fn a_hundred_thousand_processes_one_after_another_take_as_long_as_all_of_them() {
    let scenario = scenario(1, &device(0.001, 0.0), 4096, "");
    let one = |over| if over == 0 { read(0, 1) } else { Request { start: Start::Behind { over, think_ns: 1000 }, ..read(0, 1) } };
    let report = run(&scenario, &mut Lists::new((0..100_000).map(|over| vec![one(over)]).collect()));
    assert_eq!((report.requests, (report.seconds * 1e6).round()), (100_000, 100_000.0 * 1000.0 + 99_999.0));
}

#[test]
fn a_barrier_waits_for_all_who_still_have_requests() {
    let behind = |think_ns| Request { start: Start::Barrier(think_ns), ..read(0, 1) };
    // Three processes on one server of 1 ms: their first requests end at 1, 2 and 3 ms; the third has no more.
    let lists = vec![vec![read(0, 1), behind(0)], vec![read(0, 1), behind(5_000_000)], vec![read(0, 1)]];
    let report = run(&scenario(1, &device(0.001, 0.0), 4096, ""), &mut Lists::new(lists));
    // The third leaves when it issues its last: the others go on at 2 ms, when the second has come, behind the third's request.
    assert!((report.seconds - 0.008).abs() < 1e-12, "{}", report.seconds);
    assert!((report.latency_s.read.unwrap().max - 0.003).abs() < 1e-12);
}

#[test]
fn the_timeline_holds_the_whole_run_and_its_bytes() {
    let report = run(
        &scenario(2, &device(0.001, 1e-8), 4096, r#","timeline_buckets":10"#),
        &mut Lists::new(vec![(0..100).map(|i| write(i * 8192, 8192)).collect(); 3]),
    );
    let width_s = report.timeline[1].start_s;
    let bytes: f64 = report.timeline.iter().map(|b| b.write_mb_s * 1e6 * width_s).sum();
    let flight: f64 = report.timeline.iter().map(|b| b.in_flight * width_s).sum();
    assert!((5..=10).contains(&report.timeline.len()), "{}", report.timeline.len());
    assert!((bytes - report.bytes_written as f64).abs() < 1.0);
    assert!((flight - 3.0 * report.seconds).abs() < 0.01 * report.seconds, "{flight}");
}
