//! Sources of requests and scenarios that tests and the benchmark are made of.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use stripewise_sim::{Error, Report, Request, Scenario, Source, Start, simulate, simulate_by_events};

/// Requests from lists, one list per process; those who wait for others wait for the first ones.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    pub lists: Vec<Vec<Request>>,
    pub next: Vec<usize>,
    pub ended: Vec<u32>,
}

impl Lists {
    pub fn new(lists: Vec<Vec<Request>>) -> Self {
        let next = vec![0; lists.len()];
        let ended = (0..lists.len() as u32).collect();
        Lists { lists, next, ended }
    }
}

impl Source for Lists {
    fn processes(&self) -> u32 {
        self.lists.len() as u32
    }

    fn ended(&self) -> &[u32] {
        &self.ended
    }

    fn next(&mut self, process: u32) -> Result<Option<Request>, Error> {
        let process = process as usize;
        let request = self.lists[process].get(self.next[process]).copied();
        self.next[process] += 1;
        Ok(request)
    }
}

/// Requests from a function of process and number.
pub struct Made<F> {
    pub processes: u32,
    pub each: u64,
    pub issued: Vec<u64>,
    pub make: F,
}

impl<F: FnMut(u32, u64) -> Request> Made<F> {
    pub fn new(processes: u32, each: u64, make: F) -> Self {
        Made { processes, each, issued: vec![0; processes as usize], make }
    }
}

impl<F: FnMut(u32, u64) -> Request> Source for Made<F> {
    fn processes(&self) -> u32 {
        self.processes
    }

    fn next(&mut self, process: u32) -> Result<Option<Request>, Error> {
        let issued = &mut self.issued[process as usize];
        if *issued == self.each {
            return Ok(None);
        }
        *issued += 1;
        Ok(Some((self.make)(process, *issued - 1)))
    }
}

pub fn read(offset: u64, bytes: u64) -> Request {
    Request { file: 0, write: false, offset, bytes, start: Start::After(0) }
}

pub fn write(offset: u64, bytes: u64) -> Request {
    Request { write: true, ..read(offset, bytes) }
}

/// A device of fixed figures without a discount, in JSON.
pub fn device(startup_s: f64, per_byte_s: f64) -> String {
    format!(
        r#"{{"read":{{"startup_s":{startup_s},"per_byte_s":{per_byte_s}}},"write":{{"startup_s":{startup_s},"per_byte_s":{per_byte_s}}},"sequential_discount":0}}"#
    )
}

/// One file over `servers` equal servers in stripes of `width` bytes; `more` are further keys of the scenario, each after a comma.
pub fn scenario(servers: usize, device: &str, width: u64, more: &str) -> Scenario {
    let list: Vec<String> = (0..servers).map(|i| format!(r#"{{"name":"s{i}","device":{device}}}"#)).collect();
    let cycle: Vec<String> = (0..servers).map(|i| format!("[{i},{width}]")).collect();
    let text = format!(
        r#"{{"version":1,"servers":[{}],"cycles":[[{}]],"files":[{{"name":"f","size_bytes":1099511627776,"regions":[[0,1099511627776,0,0]]}}]{more}}}"#,
        list.join(","),
        cycle.join(",")
    );
    Scenario::from_json(&text).unwrap()
}

pub fn run(scenario: &Scenario, source: &mut impl Source) -> Report {
    simulate(scenario, source, &mut |_| true).unwrap()
}

pub fn run_by_events(scenario: &Scenario, source: &mut impl Source) -> Report {
    simulate_by_events(scenario, source, &mut |_| true).unwrap()
}
