//! Scenarios that cannot be: one sentence with the key and the cure, never a panic.

use proptest::prelude::*;
use serde_json::Value;
use stripewise_sim::{Error, Request, Scenario, simulate};

use crate::common::{Lists, device, read, scenario, write};

fn valid() -> String {
    let (plain, drawn) = (
        device(0.003, 1e-8),
        r#"{"read":{"startup_s":0.001,"startup_max_s":0.01,"per_byte_s":1e-8},"write":{"startup_s":0.001,"startup_max_s":0.01,"per_byte_s":1e-8},"startup":{"kind":"uniform"},"channels":2}"#,
    );
    format!(
        r#"{{"version":1,"seed":1,"servers":[{{"name":"hdd0","device":{plain}}},{{"name":"ssd0","device":{drawn}}}],
        "network":{{"establish_s":1e-6,"per_byte_s":1e-9,"processes_per_node":2}},"cycles":[[[0,4096],[1,8192]],[[1,4096]]],
        "files":[{{"name":"f","size_bytes":100000,"regions":[[0,40000,0,1],[40000,20000,1,0]]}}],
        "moves":[{{"at_s":0.001,"file":0,"start":0,"len":40000,"cycle":1,"first":0}}],"copy":{{"chunk_bytes":8192,"in_flight":2,"rate_bytes_per_s":0}},
        "read_ahead_bytes":4096,"timeline_buckets":10}}"#
    )
}

#[test]
fn errors_name_the_key_and_the_cure() {
    for (from, to, part) in [
        (r#""version":1"#, r#""version":2"#, "version is 2; this program reads version 1"),
        (r#""timeline_buckets""#, r#""timeline_bucket""#, "unknown field `timeline_bucket`"),
        ("[1,8192]]", "[7,8192]]", "cycles[0][1] names server 7 of 2; name a server that there is"),
        ("[1,8192]]", "[0,8192]]", "names server 0 a second time"),
        ("[1,8192]]", "[1,0]]", "cycles[0][1] has width 0"),
        ("[40000,20000,1,0]", "[50000,20000,1,0]", r#"files[0].regions[1] (file "f") starts at 50000; begin where the one before ends, at 40000"#),
        ("[0,40000,0,1]", "[0,40000,0,2]", "begins at entry 2 of 2"),
        (r#""startup_s":0.003"#, r#""startup_s":-1"#, r#"servers[0].device.read.startup_s (server "hdd0") is -1; give seconds"#),
        (r#""startup_max_s":0.01,"#, "", "read.startup_max_s (server \"ssd0\") is missing"),
        (r#""channels":2"#, r#""channels":0"#, "channels (server \"ssd0\") is 0"),
        (r#""file":0"#, r#""file":1"#, "moves[0].file is 1; name a file that there is"),
        (r#""chunk_bytes":8192"#, r#""chunk_bytes":0"#, "copy.chunk_bytes is 0"),
    ] {
        let text = valid();
        assert!(text.contains(from), "{from}");
        let error = Scenario::from_json(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(!error.contains('\n'));
    }
}

#[test]
fn requests_that_cannot_be_are_refused() {
    let scenario = scenario(1, &device(0.0, 0.0), 4096, "");
    for request in [Request { file: 1, ..read(0, 1) }, read(0, 0), read(u64::MAX, 2), read(1 << 62, 1), read(0, (1 << 40) + 1)] {
        let error = simulate(&scenario, &mut Lists::new(vec![vec![request]]), &mut |_| true).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
    }
}

#[test]
fn what_would_fall_into_too_many_pieces_is_refused_by_either_engine() {
    // The last region is one byte long and repeats: a mebibyte of them is the most that is served at once.
    let text = |from: &str, to: &str| {
        let minute = valid().replace("[40000,20000,1,0]", "[40000,1,1,0]").replace(r#""size_bytes":100000"#, r#""size_bytes":4611686018427387903"#);
        assert!(minute.contains(from), "{from}");
        minute.replace(from, to)
    };
    let (linked, unlinked) = (r#""establish_s":1e-6,"per_byte_s":1e-9"#, r#""establish_s":0,"per_byte_s":0"#);
    for (from, to, requests, refused) in [
        ("40000", "40000", vec![read(40_000, 1 << 20)], None),
        ("40000", "40000", vec![read(40_000, (1 << 20) + 1)], Some("1048577 bytes at 40000")),
        (r#""read_ahead_bytes":4096"#, r#""read_ahead_bytes":4611686018427387903"#, vec![read(40_000, 1), read(40_001, 1)], Some("bytes at 40002")),
        (
            r#""len":40000,"cycle":1,"first":0}],"copy":{"chunk_bytes":8192"#,
            r#""len":4000000,"cycle":1,"first":0}],"copy":{"chunk_bytes":4000000"#,
            vec![],
            Some("4000000 bytes at 0"),
        ),
    ] {
        for text in [text(from, to), text(from, to).replace(linked, unlinked)] {
            let got = simulate(&Scenario::from_json(&text).unwrap(), &mut Lists::new(vec![requests.clone()]), &mut |_| true);
            match refused {
                None => assert!(got.is_ok()),
                Some(part) => {
                    let error = got.unwrap_err().to_string();
                    assert!(error.contains(part) && error.contains("files[0]") && error.contains("; give it longer regions"), "{error}");
                }
            }
        }
    }
}

#[test]
fn whoever_watches_may_stop_it() {
    let scenario = scenario(1, &device(0.001, 0.0), 4096, "");
    let result = simulate(&scenario, &mut Lists::new(vec![vec![read(0, 1); 200_000]]), &mut |done| done < 100_000);
    assert!(matches!(result, Err(Error::Interrupted)));
}

#[test]
fn a_run_without_requests_is_empty() {
    let report = simulate(&scenario(1, &device(0.001, 0.0), 4096, ""), &mut Lists::default(), &mut |_| true).unwrap();
    assert_eq!((report.requests, report.mb_s, report.imbalance), (0, 0.0, 0.0));
    assert!(serde_json::to_string(&report).unwrap().contains(r#""latency_s":{"read":null,"write":null}"#));
}

#[test]
fn reads_and_writes_are_rated_over_their_own_time() {
    // 10 writes of 1 ms, then 10 reads of 1 ms, 1 MB each: the whole run does 1 MB per ms, and so do both halves.
    let mut requests = vec![write(0, 1_000_000); 10];
    requests.extend(vec![read(0, 1_000_000); 10]);
    let report = simulate(&scenario(1, &device(0.001, 0.0), 1 << 20, ""), &mut Lists::new(vec![requests]), &mut |_| true).unwrap();
    assert_eq!((report.mb_s, report.read_mb_s, report.write_mb_s), (1000.0, 1000.0, 1000.0));
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-5..5i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(Value::from((1u64 << 62) - 1)),
        "[a-z]{0,6}".prop_map(Value::from),
        Just(Value::Array(vec![])),
    ]
}

/// Replaces the `at`-th value of the tree, counted from the root.
fn replace(tree: &mut Value, at: &mut usize, with: &Value) {
    if *at == 0 {
        *tree = with.clone();
    }
    *at = at.wrapping_sub(1);
    match tree {
        Value::Array(items) => items.iter_mut().for_each(|v| replace(v, at, with)),
        Value::Object(items) => items.values_mut().for_each(|v| replace(v, at, with)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_change_of_a_value_makes_it_panic(changes in prop::collection::vec((0..70usize, leaf()), 1..3)) {
        let mut tree: Value = serde_json::from_str(&valid()).unwrap();
        for (mut at, with) in changes {
            replace(&mut tree, &mut at, &with);
        }
        if let Ok(scenario) = Scenario::from_json(&tree.to_string()) {
            let lists = vec![vec![read(0, 5000), write(39_000, 90_000)], vec![read(5000, 100), read((1 << 62) - 10, 10)]];
            let _ = simulate(&scenario, &mut Lists::new(lists), &mut |_| false);
        }
    }

    #[test]
    fn no_change_of_a_byte_makes_it_panic(at in 0..1200usize, byte in any::<u8>()) {
        let mut text = valid().into_bytes();
        let at = at % text.len();
        text[at] = byte;
        let _ = Scenario::from_json(&String::from_utf8_lossy(&text));
    }
}
