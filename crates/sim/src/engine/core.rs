//! The state that both engines have: servers, maps, clients, the mover, the figures; and the report that is made of it.

use super::Plugged;
use super::link::Network;
use super::tally::Tally;
use crate::ahead::{Ahead, Plan};
use crate::clients::{Agenda, Clients};
use crate::device::{Builtin, Disk};
use crate::map::{Cycle, FileMap, maps};
use crate::mover::SimulatedMover;
use crate::request::{REQUEST_BYTES_MAX, Request};
use crate::scenario::MAX_LOGICAL;
use crate::server::{AnyDevice, Server};
use crate::time::in_seconds;
use crate::{Error, Report, Scenario, ServerReport, Source, SplitMix64};

pub(crate) struct Core {
    pub servers: Vec<Server>,
    pub cycles: Vec<Cycle>,
    pub maps: Vec<FileMap>,
    pub clients: Clients,
    pub mover: SimulatedMover,
    pub ahead: Option<Ahead>,
    pub tally: Tally,
    names: Vec<String>,
    calls: u64,
    /// When to look next whether to go on.
    next_look: u64,
}

/// Calls and accesses between two looks at whether to go on: some ms.
const WORK_BETWEEN: u64 = 1 << 17;

/// Accesses that are issued at once and so in memory at once: far more than a request has servers and windows, unless its regions are minute.
const MAX_PIECES: u64 = 1 << 20;

impl Core {
    pub(crate) fn new<S: Source>(scenario: &Scenario, plugged: Vec<Plugged>, source: &mut S, agenda: &mut impl Agenda) -> Result<Self, Error> {
        let server = |(i, spec): (usize, &crate::ServerSpec)| match &spec.disk {
            Some(settings) => Ok(Server::new(AnyDevice::Custom(Box::new(Disk::new(&spec.name, settings)?)), 1)),
            None => {
                let random = SplitMix64::new(scenario.seed, i as u64);
                Ok(Server::new(AnyDevice::Builtin(Builtin::new(&spec.device, random)), spec.device.channels))
            }
        };
        let mut servers: Vec<Server> = scenario.servers.iter().enumerate().map(server).collect::<Result<_, Error>>()?;
        for (i, device) in plugged {
            let Some(server) = servers.get_mut(i as usize) else {
                return Err(Error::Invalid(format!("a device was given for server {i} of {}; name one that there is", scenario.servers.len())));
            };
            *server = Server::new(AnyDevice::Custom(device), 1);
        }
        let (cycles, maps, end) = maps(scenario);
        let clients = Clients::begin(source, agenda)?;
        let mover = SimulatedMover::new(scenario, end, clients.count(), agenda);
        let names = scenario.servers.iter().map(|s| s.name.clone()).collect();
        let ahead = Ahead::new(scenario.read_ahead_bytes);
        Ok(Core {
            servers,
            cycles,
            maps,
            clients,
            mover,
            ahead,
            tally: Tally::new(scenario.timeline_buckets, scenario.in_flight)?,
            names,
            calls: 0,
            next_look: WORK_BETWEEN,
        })
    }

    /// Reports progress once in a while, by the work done: a request may have thousands of accesses.
    #[inline]
    pub(crate) fn go_on(&mut self, progress: &mut dyn FnMut(u64) -> bool) -> Result<(), Error> {
        self.calls += 1;
        let work = self.calls + self.tally.sub_requests;
        if work >= self.next_look {
            self.next_look = work + WORK_BETWEEN;
            if !progress(self.tally.requests) {
                return Err(Error::Interrupted);
            }
        }
        Ok(())
    }

    /// Refuses a request that names no file or no bytes.
    #[inline]
    pub(crate) fn check(&self, request: &Request) -> Result<(), Error> {
        let Request { file, offset, bytes, .. } = *request;
        if file as usize >= self.maps.len() {
            return Err(Error::Invalid(format!("workload: a request names file {file} of {}; add it to the scenario's files", self.maps.len())));
        }
        if bytes == 0 || bytes > REQUEST_BYTES_MAX || offset > MAX_LOGICAL - bytes {
            return Err(Error::Invalid(format!("workload: a request is for {bytes} bytes at {offset}; give 1 byte to 1 TiB, ending below 2^62")));
        }
        Ok(())
    }

    /// Refuses what would be cut into more pieces than [`MAX_PIECES`]: a request, a fetch ahead, a copied chunk.
    #[inline]
    pub(crate) fn check_pieces(&self, file: u32, from: u64, to: u64) -> Result<(), Error> {
        if self.maps.get(file as usize).is_none_or(|map| map.has_at_most(&self.cycles, from, to, MAX_PIECES)) {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "scenario: files[{file}] would have the {} bytes at {from} in more than {MAX_PIECES} pieces; give it longer regions, or make requests, read_ahead_bytes and copy.chunk_bytes smaller",
            to - from
        )))
    }

    /// What a read comes to where there is read-ahead.
    pub(crate) fn plan(&mut self, id: u32, request: &Request) -> Plan {
        let (from, to) = (request.offset, request.offset + request.bytes);
        let size = self.maps.get(request.file as usize).map_or(0, |m| m.size);
        self.ahead.as_mut().map_or(Plan { now_from: from, ..Plan::default() }, |a| a.read(id, request.file, from, to, size))
    }

    /// The report, once nothing is left to do.
    pub(crate) fn report(&self, network: Option<&Network>) -> Result<Report, Error> {
        if let Some((why, name)) = self.servers.iter().zip(&self.names).find_map(|(server, name)| Some((server.failed()?, name))) {
            return Err(Error::Invalid(format!("scenario: server {name}: {why}; give its disk more room")));
        }
        let tally = &self.tally;
        let seconds = in_seconds(tally.last_ns);
        let end_ns = tally.last_ns.max(tally.fetched_ns).max(self.mover.ended_ns);
        let servers: Vec<ServerReport> =
            self.servers.iter().zip(&self.names).map(|(server, name)| server_report(server, name, in_seconds(end_ns))).collect();
        let busiest = servers.iter().map(|s| s.busy_s).fold(0.0, f64::max);
        let mean = servers.iter().map(|s| s.busy_s).sum::<f64>() / servers.len().max(1) as f64;
        let bound_s = self.bound_s(network);
        Ok(Report {
            seconds,
            end_s: in_seconds(end_ns),
            processes: self.clients.had,
            requests: tally.requests,
            sub_requests: tally.sub_requests,
            bytes_read: tally.read.bytes,
            bytes_written: tally.written.bytes,
            bytes_ahead: tally.bytes_ahead,
            mb_s: if tally.last_ns > 0 { tally.read.bytes.saturating_add(tally.written.bytes) as f64 / 1e6 / seconds } else { 0.0 },
            read_mb_s: tally.read.mb_s(),
            write_mb_s: tally.written.mb_s(),
            imbalance: if mean > 0.0 { busiest / mean - 1.0 } else { 0.0 },
            servers,
            links: network.map(|n| n.report(end_ns)),
            latency_s: tally.latencies(),
            timeline: tally.timeline.report(end_ns),
            bound_s,
            bound_ratio: if seconds > 0.0 { bound_s / seconds } else { 1.0 },
            moved_bytes: self.mover.moved_bytes,
            moves: self.mover.report(),
            in_flight_s: tally.in_flight_ns().map(in_seconds),
        })
    }

    /// Cost-models section 7, of what was really paid: the busiest server, the mean process, the busiest link, the last open-loop request.
    fn bound_s(&self, network: Option<&Network>) -> f64 {
        let last_ns = self.tally.last_ns;
        let server = |s: &Server| in_seconds(s.busy_before(last_ns)) / s.channels() as f64;
        let servers = self.servers.iter().map(server).fold(0.0, f64::max);
        let processes = (self.tally.alone_ns + self.clients.think_ns) as f64 / 1e9 / f64::from(self.clients.had.max(1));
        let links = in_seconds(network.map_or(0, |n| n.busiest_before(last_ns)));
        servers.max(processes).max(links).max(in_seconds(self.tally.open_ns))
    }
}

fn server_report(server: &Server, name: &str, end_s: f64) -> ServerReport {
    let busy_s = in_seconds(server.busy_ns);
    let over = |time: f64, of: f64| if of > 0.0 { time / of } else { 0.0 };
    ServerReport {
        name: name.to_owned(),
        busy_s,
        utilisation: over(busy_s, end_s * server.channels() as f64),
        queue_mean: over(server.stay_ns as f64 / 1e9, end_s),
        queue_max: server.queue_max,
        accesses: server.accesses,
        startups: server.startups,
        bytes: server.bytes,
    }
}
