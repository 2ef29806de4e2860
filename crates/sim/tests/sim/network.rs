//! Links against the network terms of cost-models section 1.

use proptest::prelude::*;
use stripewise_sim::{Report, Scenario};

use crate::common::{Lists, device, read, run, scenario, write};

/// What a case is made of, in ns and bytes.
#[derive(Clone, Copy, Debug)]
struct Case {
    processes: u64,
    per_node: u64,
    servers: u64,
    stripe: u64,
    establish: u64,
    per_byte: u64,
    startup: u64,
    device_per_byte: u64,
}

fn case() -> impl Strategy<Value = Case> {
    (1..20u64, 1..6u64, 1..6u64, 1..5000u64, 0..3000u64, 0..4u64, 0..20_000u64, 0..5u64).prop_map(
        |(processes, per_node, servers, stripe, establish, per_byte, startup, device_per_byte)| Case {
            processes,
            per_node: per_node.min(processes),
            servers,
            stripe,
            establish,
            per_byte,
            startup,
            device_per_byte,
        },
    )
}

impl Case {
    fn scenario(&self) -> Scenario {
        let network =
            format!(r#","network":{{"establish_s":{}e-9,"per_byte_s":{}e-9,"processes_per_node":{}}}"#, self.establish, self.per_byte, self.per_node);
        scenario(self.servers as usize, &device(self.startup as f64 / 1e9, self.device_per_byte as f64 / 1e9), self.stripe, &network)
    }

    /// Every process issues one aligned request over all servers at time 0.
    fn run(&self, writes: bool) -> Report {
        let bytes = self.servers * self.stripe;
        let request = |i: u64| if writes { write(i * bytes, bytes) } else { read(i * bytes, bytes) };
        run(&self.scenario(), &mut Lists::new((0..self.processes).map(|i| vec![request(i)]).collect()))
    }

    fn service(&self) -> u64 {
        self.startup + self.stripe * self.device_per_byte
    }

    fn node_ns(&self) -> u64 {
        self.per_node * self.servers * self.stripe * self.per_byte
    }

    fn server_ns(&self) -> u64 {
        self.processes * self.stripe * self.per_byte
    }

    fn connections_ns(&self) -> u64 {
        (self.per_node * self.servers).max(self.processes) * self.establish
    }
}

fn ns(report: &Report) -> u64 {
    (report.seconds * 1e9).round() as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn equal_aligned_writes_take_at_most_what_the_model_says(case in case()) {
        let model = case.connections_ns() + case.node_ns().max(case.server_ns()) + case.processes * case.service();
        let got = ns(&case.run(true));
        prop_assert!(got <= model, "{got} beside {model}");
    }

    #[test]
    fn equal_aligned_reads_do_so_where_devices_are_no_faster_than_their_links(case in case()) {
        let got = ns(&case.run(false));
        let device_bound = case.service() >= case.establish + case.stripe * case.per_byte;
        let links = if device_bound { case.node_ns().max(case.server_ns()) } else { case.node_ns() + case.server_ns() };
        let model = case.connections_ns() + links + case.processes * case.service();
        prop_assert!(got <= model, "{got} beside {model}");
    }

    #[test]
    fn the_busiest_term_is_reached(case in case(), writes in any::<bool>()) {
        let server = case.server_ns() + case.processes * case.establish;
        let busiest = case.node_ns().min(case.processes * case.servers * case.stripe * case.per_byte).max(server).max(case.processes * case.service());
        prop_assert!(ns(&case.run(writes)) >= busiest);
    }
}

#[test]
fn one_transfer_alone_occupies_both_links_at_once() {
    let case = Case { processes: 1, per_node: 1, servers: 1, stripe: 1000, establish: 500, per_byte: 2, startup: 10_000, device_per_byte: 3 };
    assert_eq!(ns(&case.run(true)), 500 + 2000 + 10_000 + 3000);
    assert_eq!(ns(&case.run(false)), 500 + 2000 + 10_000 + 3000);
    let links = case.run(true).links.unwrap();
    assert_eq!((links.nodes.bytes, links.servers.bytes, links.nodes.count), (1000, 1000, 1));
}
