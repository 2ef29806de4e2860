//! Closed formulas of queueing theory.

use stripewise_sim::{Request, SplitMix64, Start};

use crate::common::{Made, device, read, run, scenario};

const SERVICE_S: f64 = 0.001;
const REQUESTS: u64 = 400_000;

/// Poisson arrivals at `rate` per second, each for one byte of the one stripe.
fn poisson(rate: f64, seed: u64) -> Made<impl FnMut(u32, u64) -> Request> {
    let mut random = SplitMix64::new(seed, 0);
    let mut at_s = 0.0;
    Made::new(1, REQUESTS, move |_, _| {
        at_s += random.exponential() / rate;
        Request { start: Start::At((at_s * 1e9) as u64), ..read(0, 1) }
    })
}

fn exponential() -> String {
    device(SERVICE_S, 0.0).replace(r#""sequential_discount":0"#, r#""sequential_discount":0,"startup":{"kind":"exponential"}"#)
}

fn close(got: f64, expected: f64, part: f64) {
    assert!((got / expected - 1.0).abs() < part, "{got} beside {expected}");
}

#[test]
fn waiting_before_a_constant_server_is_that_of_m_d_1() {
    let scenario = scenario(1, &device(SERVICE_S, 0.0), 4096, "");
    for (load, seed) in [(0.3, 1), (0.7, 2), (0.85, 3)] {
        let report = run(&scenario, &mut poisson(load / SERVICE_S, seed));
        let waiting_s = report.latency_s.read.unwrap().mean - SERVICE_S;
        close(waiting_s, load * SERVICE_S / (2.0 * (1.0 - load)), 0.03);
        close(report.servers[0].utilisation, load, 0.01);
        // Little's law ties the mean queue to the mean stay.
        close(report.servers[0].queue_mean, load / SERVICE_S * (waiting_s + SERVICE_S), 0.01);
    }
}

#[test]
fn staying_at_an_exponential_server_is_that_of_m_m_1() {
    let scenario = scenario(1, &exponential(), 4096, "");
    let load = 0.7;
    let latency = run(&scenario, &mut poisson(load / SERVICE_S, 4)).latency_s.read.unwrap();
    let stay_s = SERVICE_S / (1.0 - load);
    close(latency.mean, stay_s, 0.03);
    // The stay is exponential: its quantiles are logarithms.
    close(latency.p50, stay_s * 2f64.ln(), 0.03);
    close(latency.p99, stay_s * 100f64.ln(), 0.05);
}

#[test]
fn waiting_before_several_channels_is_that_of_erlang() {
    let channels = 3.0;
    let device = exponential().replace("{\"read\"", "{\"channels\":3,\"read\"");
    let scenario = scenario(1, &device, 4096, "");
    let load = 0.8;
    let report = run(&scenario, &mut poisson(load * channels / SERVICE_S, 5));
    close(report.servers[0].utilisation, load, 0.01);
    let offered = load * channels;
    let full = offered.powi(3) / 6.0 / (1.0 - load);
    let waits = full / (1.0 + offered + offered * offered / 2.0 + full);
    close(report.latency_s.read.unwrap().mean - SERVICE_S, waits * SERVICE_S / (channels * (1.0 - load)), 0.05);
}

/// Throughput of `n` customers between an exponential server and thinking, by mean value analysis.
fn throughput(n: u32, think_s: f64) -> f64 {
    let (mut queue, mut rate) = (0.0, 0.0);
    for customers in 1..=n {
        let stay_s = SERVICE_S * (1.0 + queue);
        rate = f64::from(customers) / (stay_s + think_s);
        queue = rate * stay_s;
    }
    rate
}

#[test]
fn a_closed_network_has_the_throughput_of_mean_value_analysis() {
    let scenario = scenario(1, &exponential(), 4096, "");
    let think_s = 0.008;
    for n in [2, 8, 16] {
        let each = 200_000 / u64::from(n);
        let mut random = SplitMix64::new(6, u64::from(n));
        let mut source = Made::new(n, each, move |_, _| Request { start: Start::After((random.exponential() * think_s * 1e9) as u64), ..read(0, 1) });
        let report = run(&scenario, &mut source);
        close(report.requests as f64 / report.seconds, throughput(n, think_s), 0.03);
    }
}

#[test]
fn a_closed_network_without_chance_reaches_its_asymptotes() {
    let scenario = scenario(1, &device(SERVICE_S, 0.0), 4096, "");
    let each = 100;
    for (n, think_ns) in [(4, 7_000_000), (16, 7_000_000)] {
        let think_s = think_ns as f64 / 1e9;
        let report = run(&scenario, &mut Made::new(n, each, |_, i| Request { start: Start::After(if i == 0 { 0 } else { think_ns }), ..read(0, 1) }));
        let light_s = f64::from(n) * SERVICE_S + (each - 1) as f64 * (SERVICE_S + think_s);
        let heavy_s = f64::from(n) * each as f64 * SERVICE_S;
        assert!((report.seconds - light_s.max(heavy_s)).abs() < 1e-9, "{} beside {light_s} and {heavy_s}", report.seconds);
    }
}
