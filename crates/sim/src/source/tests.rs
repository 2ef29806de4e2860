//! Facts about generated workloads. That the very requests of `workloads/pattern.c` come out is tested against the C code itself, from Python.

use super::{Description, Generator, ROW_BYTES, request_rows};
use crate::{Request, Source, Start};
use serde_json::{Value, json};

/// The sums that `pattern.c` gives for `GRID`: over all processes, both phases and 7 requests, piece by piece, sum = sum * 31 + offset mod 1e9+7.
const SUMS: [(&str, u64, u64); 7] = [
    ("sequential", 84, 866_318_380),
    ("interleaved", 84, 957_347_670),
    ("strided", 336, 642_786_324),
    ("random", 84, 638_612_224),
    ("zipf", 84, 66_683_951),
    ("nested", 336, 246_229_097),
    ("tiles", 336, 656_554_686),
];

fn described(changes: &Value) -> Value {
    let mut all = json!({
        "version": 1, "kind": "sequential", "processes": 6, "request_bytes": [[49152, 1.0]], "file_bytes": 4 << 20, "files": "shared",
        "region_bytes": 491_520, "alpha": 0.8, "pieces": 4, "gap_bytes": 0, "reads": 7, "writes": 7, "windows": 2, "shift": 3,
        "window_seconds": 0.0, "think_s": 0.0, "think": "constant", "rate_per_s": 0.0, "arrivals": "poisson", "collective": false, "seed": 5,
    });
    for (key, value) in changes.as_object().unwrap() {
        all[key] = value.clone();
    }
    all
}

fn generator(changes: Value) -> Generator {
    Generator::new(Description::from_json(&described(&changes).to_string()).unwrap()).unwrap()
}

fn refused(changes: Value) -> String {
    Description::from_json(&described(&changes).to_string()).and_then(Generator::new).unwrap_err().to_string()
}

fn requests_of(generator: &mut Generator, process: u32) -> Vec<Request> {
    std::iter::from_fn(|| generator.next(process).unwrap()).collect()
}

fn all_requests(changes: Value) -> Vec<Vec<Request>> {
    let mut generator = generator(changes);
    (0..generator.processes()).map(|process| requests_of(&mut generator, process)).collect()
}

#[test]
fn every_kind_gives_the_offsets_of_the_mpi_program() {
    for (kind, count, expected) in SUMS {
        let requests: Vec<Request> = all_requests(json!({ "kind": kind })).concat();
        let sum = requests.iter().fold(0, |sum: u64, request| (sum * 31 + request.offset) % 1_000_000_007);
        assert_eq!((requests.len() as u64, sum), (count, expected), "{kind}");
    }
}

#[test]
fn patterns_that_draw_nothing_touch_every_byte_of_the_file_once() {
    for kind in ["sequential", "interleaved", "strided", "nested", "tiles"] {
        for (processes, pieces) in [(1, 4), (6, 4), (8, 6)] {
            let size = pieces * 4096;
            let file = size * processes * 4;
            let changes = json!({
                "kind": kind, "processes": processes, "pieces": pieces, "request_bytes": [[size, 1.0]], "file_bytes": file, "reads": 0, "writes": null,
            });
            let mut touched: Vec<(u64, u64)> = all_requests(changes).concat().iter().map(|request| (request.offset, request.bytes)).collect();
            touched.sort_unstable();
            let end = touched.iter().fold(0, |end, &(offset, bytes)| {
                assert_eq!(offset, end, "{kind}, {processes} processes");
                offset + bytes
            });
            assert_eq!(end, file, "{kind}, {processes} processes");
        }
    }
}

#[test]
fn a_gap_keeps_requests_apart() {
    for kind in ["sequential", "interleaved", "strided"] {
        let mut touched: Vec<(u64, u64)> = all_requests(json!({ "kind": kind, "gap_bytes": 4096, "reads": 0, "writes": null }))
            .concat()
            .iter()
            .map(|request| (request.offset, request.bytes))
            .collect();
        touched.sort_unstable();
        assert!(touched.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{kind}");
        assert!(touched.windows(2).any(|pair| pair[0].0 + pair[0].1 + 4096 == pair[1].0), "{kind}");
        assert!(touched.last().is_some_and(|(offset, bytes)| offset + bytes <= 4 << 20), "{kind}");
    }
}

#[test]
fn writes_come_before_reads_and_every_window_behind_a_barrier() {
    let requests = &all_requests(json!({}))[3];
    assert!(requests.iter().take(7).all(|request| request.write) && requests.iter().skip(7).all(|request| !request.write));
    let barriers: Vec<usize> = (0..14).filter(|&i| requests[i].start == Start::Barrier(0)).collect();
    // 7 requests in 2 windows: 4 and 3; a run begins without waiting.
    assert_eq!(barriers, [4, 7, 11]);
}

#[test]
fn windows_of_a_length_begin_at_their_time_reads_after_writes() {
    let requests = &all_requests(json!({ "window_seconds": 1.5 }))[0];
    let begins: Vec<Start> = [0, 4, 7, 11].iter().map(|&i| requests[i].start).collect();
    assert_eq!(begins, [Start::After(0), Start::BarrierAt(1_500_000_000), Start::BarrierAt(3_000_000_000), Start::BarrierAt(4_500_000_000)]);
}

#[test]
fn collective_requests_wait_for_each_other_piece_for_piece_once() {
    let requests = &all_requests(json!({ "kind": "strided", "collective": true, "windows": 1, "reads": 0 }))[2];
    let barriers = requests.iter().enumerate().filter(|(_, request)| matches!(request.start, Start::Barrier(_))).map(|(i, _)| i);
    assert_eq!(barriers.collect::<Vec<_>>(), [4, 8, 12, 16, 20, 24]);
}

#[test]
fn think_times_have_the_mean_that_is_asked_for() {
    let constant = &all_requests(json!({ "think_s": 0.25, "windows": 1, "reads": 0 }))[0];
    assert!(constant.iter().all(|request| request.start == Start::After(250_000_000)));
    let drawn = &all_requests(json!({ "think_s": 0.25, "think": "exponential", "windows": 1, "reads": 0, "writes": 20_000 }))[0];
    let times: Vec<f64> =
        drawn.iter().filter_map(|request| if let Start::After(ns) = request.start { Some(ns as f64 / 1e9) } else { None }).collect();
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let below_mean = times.iter().filter(|time| **time < 0.25).count() as f64 / times.len() as f64;
    // Standard error of the mean 0.0018; an exponential time is below its mean with 1 - 1/e.
    assert!((mean - 0.25).abs() < 0.008 && (below_mean - 0.632).abs() < 0.015, "{mean} {below_mean}");
}

#[test]
fn an_open_loop_arrives_at_its_rate_in_order() {
    for arrivals in ["poisson", "fixed"] {
        let all = all_requests(json!({ "rate_per_s": 600.0, "arrivals": arrivals, "windows": 1, "reads": 0, "writes": 5000 }));
        let mut latest = 0;
        for requests in &all {
            let times: Vec<u64> = requests.iter().map(|request| if let Start::At(ns) = request.start { ns } else { panic!("closed") }).collect();
            assert!(times.is_sorted());
            latest = latest.max(*times.last().unwrap());
        }
        // 30,000 requests at 600 a second.
        assert!((latest as f64 / 1e9 - 50.0).abs() < 3.0, "{arrivals}: {latest}");
    }
}

#[test]
fn sizes_are_drawn_by_weight_and_change_no_offset() {
    let plain = all_requests(json!({ "kind": "random", "writes": 4000, "reads": 0 })).concat();
    let drawn =
        all_requests(json!({ "kind": "random", "writes": 4000, "reads": 0, "request_bytes": [[4096, 3.0], [49152, 1.0], [8192, 0.0]] })).concat();
    let small = drawn.iter().filter(|request| request.bytes == 4096).count() as f64 / drawn.len() as f64;
    assert!((small - 0.75).abs() < 0.02, "{small}");
    assert!(drawn.iter().all(|request| request.bytes != 8192));
    assert!(plain.iter().zip(&drawn).all(|(a, b)| a.offset == b.offset));
}

#[test]
fn a_file_per_process_is_walked_by_its_process_alone() {
    let all = all_requests(json!({ "files": "per_process", "reads": 0, "writes": null }));
    for (process, requests) in all.iter().enumerate() {
        assert!(requests.iter().all(|request| request.file == process as u32));
        assert_eq!(requests.len(), (4 << 20) / 49152);
    }
}

#[test]
fn the_table_holds_what_the_source_yields_and_a_sample_of_it_is_spread_over_the_run() {
    for kind in ["zipf", "nested"] {
        let mut generator = generator(json!({ "kind": kind, "reads": 70, "writes": 50 }));
        let table = request_rows(&generator, 2, 3, u64::MAX);
        let rows = table.chunks_exact(ROW_BYTES).map(|row| {
            let word = |at: usize| u64::from_le_bytes(row[at..at + 8].try_into().unwrap());
            (u32::from_le_bytes(row[16..20].try_into().unwrap()), row[20] == 1, word(24), word(32))
        });
        let yielded: Vec<_> = (2..5).flat_map(|p| requests_of(&mut generator, p).into_iter().map(move |r| (p, r.write, r.offset, r.bytes))).collect();
        assert_eq!(rows.collect::<Vec<_>>(), yielded);
    }
    let generator = generator(json!({ "reads": 900, "writes": 100, "windows": 1 }));
    let table = request_rows(&generator, 0, 1, 10);
    let writes: Vec<bool> = table.chunks_exact(ROW_BYTES).map(|row| row[20] == 1).collect();
    assert_eq!(writes, [true, false, false, false, false, false, false, false, false, false]);
}

#[test]
fn what_cannot_be_is_refused_with_its_key() {
    for (changes, key) in [
        (json!({ "file_bytes": 100 }), "file_bytes"),
        (json!({ "processes": 0 }), "processes"),
        (json!({ "request_bytes": [] }), "request_bytes"),
        (json!({ "request_bytes": [[0, 1.0]] }), "request_bytes"),
        (json!({ "request_bytes": [[4096, 0.0]] }), "request_bytes"),
        (json!({ "kind": "zipf", "region_bytes": 50_000 }), "region_bytes"),
        (json!({ "kind": "zipf", "gap_bytes": 1 }), "gap_bytes"),
        (json!({ "kind": "tiles", "pieces": 5 }), "request_bytes"),
        (json!({ "kind": "nested", "file_bytes": 49152 * 6 }), "file_bytes"),
        (json!({ "rate_per_s": 1.0, "collective": true }), "collective"),
        (json!({ "windows": 0 }), "windows"),
        (json!({ "alpha": 21.0 }), "alpha"),
        (json!({ "kind": "zipf", "region_bytes": 49152, "file_bytes": 49152u64 << 27 }), "region_bytes"),
        (json!({ "processes": u32::MAX, "request_bytes": [[1u64 << 40, 1.0]] }), "request_bytes"),
        (json!({ "surprise": 1 }), "surprise"),
    ] {
        let said = refused(changes);
        assert!(said.contains(key) && !said.contains('\n'), "{key}: {said}");
    }
}
