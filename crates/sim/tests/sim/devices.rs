//! What each kind of device makes of accesses.

use stripewise_sim::{Device, DeviceAccess, Request, Service, SplitMix64, Start, simulate_on};

use crate::common::{Lists, Made, device, read, run, scenario, write};

#[test]
fn an_access_that_continues_the_one_before_is_spared_its_discount() {
    let lists = || Lists::new(vec![vec![read(0, 1000), read(1000, 1000), read(5000, 1000)]]);
    for (discount, startups, expected_s) in [(0.0, 3, 0.03), (0.5, 2, 0.025), (1.0, 2, 0.02)] {
        let device = device(0.01, 1e-8).replace(r#""sequential_discount":0"#, &format!(r#""sequential_discount":{discount}"#));
        let report = run(&scenario(1, &device, 4096, ""), &mut lists());
        assert!((report.seconds - expected_s - 3e-5).abs() < 1e-12, "{}", report.seconds);
        assert_eq!(report.servers[0].startups, startups);
    }
}

#[test]
fn reads_and_writes_have_their_own_figures_and_channels_serve_side_by_side() {
    let flash = r#"{"read":{"startup_s":1e-4,"per_byte_s":1e-9},"write":{"startup_s":3e-4,"per_byte_s":2e-9},"channels":4}"#;
    let far = |i: u64| i * 100_000;
    let of = |request: fn(u64, u64) -> Request, n: u64| {
        run(&scenario(1, flash, 4096, ""), &mut Lists::new((0..n).map(|i| vec![request(far(i), 1000)]).collect()))
    };
    assert!((of(read, 4).seconds - 1.01e-4).abs() < 1e-12);
    assert!((of(write, 4).seconds - 3.02e-4).abs() < 1e-12);
    let five = of(read, 5);
    assert!((five.seconds - 2.02e-4).abs() < 1e-12);
    assert!((five.servers[0].utilisation - 5.0 / 8.0).abs() < 1e-9 && five.servers[0].queue_max == 5);
}

#[test]
fn uniform_startups_have_their_mean_and_their_ends() {
    let disk = r#"{"read":{"startup_s":0.001,"startup_max_s":0.061,"per_byte_s":0},"write":{"startup_s":0.001,"startup_max_s":0.061,"per_byte_s":0},"startup":{"kind":"uniform"}}"#;
    let report = run(&scenario(1, disk, 4096, ""), &mut Made::new(1, 50_000, |_, i| read(i % 7 * 100_000, 10)));
    let latency = report.latency_s.read.unwrap();
    assert!((latency.mean - 0.031).abs() < 0.0003 && latency.max <= 0.061 && latency.max > 0.0608, "{latency:?}");
}

#[test]
fn seeks_follow_the_root_of_their_distance() {
    let disk = |rotation: f64| {
        device(0.002, 0.0).replace(
            r#""sequential_discount":0"#,
            &format!(r#""startup":{{"kind":"seek","factor_s":0.008,"rotation_s":{rotation},"capacity_bytes":1000000000}}"#),
        )
    };
    // From 250,000,000 back to 0 and again: a quarter of the stroke is half of its root.
    let swing = |_: u32, i: u64| read(if i.is_multiple_of(2) { 250_000_000 } else { 0 }, 1);
    let report = run(&scenario(1, &disk(0.0), 1 << 40, ""), &mut Made::new(1, 101, swing));
    assert!((report.latency_s.read.unwrap().mean - 0.006).abs() < 1e-8);
    let mut random = SplitMix64::new(1, 1);
    let report = run(&scenario(1, &disk(0.008), 1 << 40, ""), &mut Made::new(1, 100_000, |_, _| read(random.below(1_000_000_000), 1)));
    // The mean root of the distance of two uniform points is 8/15.
    assert!((report.latency_s.read.unwrap().mean - (0.002 + 0.008 * 8.0 / 15.0 + 0.004)).abs() < 5e-5);
}

/// Serves everything in 1 ms, and tidies up for 4 ms whenever it is left alone.
struct Tidy;

impl Device for Tidy {
    fn service(&mut self, _: &DeviceAccess) -> Service {
        Service { ns: 1_000_000, startup: true }
    }

    fn idle(&mut self, _: u64, _: u64) -> u64 {
        4_000_000
    }
}

#[test]
fn a_device_from_outside_may_work_while_it_is_idle() {
    let requests = [0, 3, 50].map(|ms| Request { start: Start::At(ms * 1_000_000), ..read(0, 1) });
    let report =
        simulate_on(&scenario(1, &device(0.0, 0.0), 4096, ""), vec![(0, Box::new(Tidy))], &mut Lists::new(vec![requests.into()]), &mut |_| true)
            .unwrap();
    // The second comes while the device has tidied up since 1 ms: it waits until 5 ms. The third comes long after.
    assert!((report.latency_s.read.unwrap().max - 0.003).abs() < 1e-12 && (report.seconds - 0.051).abs() < 1e-12, "{}", report.seconds);
    assert!((report.servers[0].busy_s - 0.011).abs() < 1e-12);
    assert!(simulate_on(&scenario(1, &device(0.0, 0.0), 4096, ""), vec![(9, Box::new(Tidy))], &mut Lists::default(), &mut |_| true).is_err());
}

/// One server with a disk of 300 cylinders under a scheme, full.
fn shingled(scheme: &str) -> stripewise_sim::Scenario {
    let disk = format!(
        r#"{{"version":1,"random_access_bytes":100000,"scheme":{scheme},"disk":{{"cylinders":300,"surfaces":2,"rpm":6000.0,
        "head_switch_ms":0.5,"zones":[[0,100]],"seek":[[1,1.0],[299,8.0]]}}}}"#
    );
    let plain = r#"{"read":{"startup_s":0.01,"per_byte_s":1e-8},"write":{"startup_s":0.01,"per_byte_s":1e-8}}"#;
    let text = format!(
        r#"{{"version":1,"servers":[{{"name":"swd0","device":{plain},"disk":{disk}}}],"cycles":[[[0,65536]]],
        "files":[{{"name":"f","size_bytes":20000000,"regions":[[0,20000000,0,0]]}}]}}"#
    );
    stripewise_sim::Scenario::from_json(&text).unwrap()
}

#[test]
fn a_server_may_be_a_shingled_disk_that_reads_as_a_plain_one_and_pays_for_updates() {
    let seconds = |scheme: &str, of: fn(u64, u64) -> Request| {
        let mut random = SplitMix64::new(1, 1);
        run(&shingled(scheme), &mut Made::new(2, 500, |_, _| of(random.below(4000) * 4096, 4096))).seconds
    };
    let (hdd, smart) = (r#"{"name":"hdd"}"#, r#"{"name":"tstl-smart","band_tracks":20}"#);
    let sequential = r#"{"name":"1234"}"#;
    assert!((seconds(smart, read) / seconds(hdd, read) - 1.0).abs() < 0.15);
    // A full band of four tracks: four accesses to an update, most of them to a whole track.
    assert!(seconds(sequential, write) > 3.0 * seconds(hdd, write));
    assert!(seconds(smart, write) > 1.5 * seconds(hdd, write));
    assert!((seconds(hdd, write) - seconds(hdd, read)).abs() < 1e-9);
}

#[test]
fn a_disk_that_cannot_be_is_refused_with_its_server() {
    let scenario = shingled(r#"{"name":"tstl-smart","band_tracks":3}"#);
    let error = simulate_on(&scenario, Vec::new(), &mut Lists::new(vec![vec![read(0, 1)]]), &mut |_| true).unwrap_err().to_string();
    assert!(error.contains("server swd0") && error.contains("band_tracks"), "{error}");
}
