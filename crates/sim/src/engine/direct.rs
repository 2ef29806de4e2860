//! The engine without a network: one call per request, servers reserved in the order of issue, which is the order of arrival.

use super::Plugged;
use super::core::Core;
use crate::clients::Agenda;
use crate::heap::Heap;
use crate::map::Piece;
use crate::mover::Order;
use crate::request::Request;
use crate::server::Server;
use crate::timeline::Ended;
use crate::{Error, Report, Scenario, Source};

/// What accesses that are issued together come to.
struct Issued {
    now_ns: u64,
    write: bool,
    /// When the last of them ends.
    end_ns: u64,
    /// Service time of the longest.
    alone_ns: u64,
    count: u64,
}

impl Issued {
    #[inline]
    fn new(now_ns: u64, write: bool) -> Self {
        Issued { now_ns, write, end_ns: now_ns, alone_ns: 0, count: 0 }
    }

    #[inline]
    fn access(&mut self, servers: &mut [Server], piece: &Piece) {
        if let Some(server) = servers.get_mut(piece.server as usize) {
            let reserved = server.reserve(self.now_ns, piece, self.write);
            self.end_ns = self.end_ns.max(reserved.end_ns);
            self.alone_ns = self.alone_ns.max(reserved.service_ns);
            self.count += 1;
        }
    }
}

pub(super) fn run<S: Source>(
    scenario: &Scenario,
    plugged: Vec<Plugged>,
    source: &mut S,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Report, Error> {
    let mut heap = Heap::default();
    let mut core = Core::new(scenario, plugged, source, &mut heap)?;
    let processes = core.clients.count();
    while let Some((now_ns, actor)) = heap.pop() {
        if actor < processes {
            if let Some(request) = core.clients.issue(actor, now_ns, source, &mut heap)? {
                let end_ns = request_end(&mut core, actor, &request, now_ns)?;
                core.clients.done(actor, end_ns, &mut heap);
            }
        } else {
            copy(&mut core, actor, now_ns, &mut heap)?;
        }
        core.go_on(progress)?;
    }
    core.report(None)
}

#[inline]
fn range(core: &mut Core, file: u32, from: u64, to: u64, issued: &mut Issued) -> Result<(), Error> {
    core.check_pieces(file, from, to)?;
    let servers = &mut core.servers;
    if let Some(map) = core.maps.get(file as usize) {
        map.pieces(&core.cycles, from, to, |piece| issued.access(servers, &piece));
    }
    Ok(())
}

#[inline]
fn request_end(core: &mut Core, id: u32, request: &Request, now_ns: u64) -> Result<u64, Error> {
    core.check(request)?;
    let mut issued = Issued::new(now_ns, request.write);
    if core.ahead.is_some() && !request.write {
        read_ahead(core, id, request, &mut issued)?;
    } else {
        range(core, request.file, request.offset, request.offset + request.bytes, &mut issued)?;
    }
    core.tally.sub_requests += issued.count;
    core.tally.done(request, now_ns, issued.end_ns, issued.alone_ns);
    Ok(issued.end_ns)
}

fn read_ahead(core: &mut Core, id: u32, request: &Request, issued: &mut Issued) -> Result<(), Error> {
    let plan = core.plan(id, request);
    range(core, request.file, plan.now_from, request.offset + request.bytes, issued)?;
    issued.end_ns = issued.end_ns.max(plan.ready_ns);
    let (from, to) = plan.fetch;
    if from < to {
        let mut fetch = Issued::new(issued.now_ns, false);
        range(core, request.file, from, to, &mut fetch)?;
        core.tally.sub_requests += fetch.count;
        core.tally.bytes_ahead = core.tally.bytes_ahead.saturating_add(to - from);
        core.tally.fetched_ns = core.tally.fetched_ns.max(fetch.end_ns);
        if let Some(ahead) = &mut core.ahead {
            ahead.fetched(id, request.file, u32::MAX, fetch.end_ns);
        }
    }
    Ok(())
}

fn copy(core: &mut Core, actor: u32, now_ns: u64, heap: &mut Heap) -> Result<(), Error> {
    match core.mover.call(actor, now_ns, &mut core.maps, heap) {
        Order::Nothing => {}
        Order::Read(chunk) => {
            let mut issued = Issued::new(now_ns, false);
            range(core, chunk.file, chunk.from, chunk.to, &mut issued)?;
            heap.wake(issued.end_ns, actor);
        }
        Order::Write(chunk, home) => {
            let mut issued = Issued::new(now_ns, true);
            let servers = &mut core.servers;
            home.pieces(&core.cycles, chunk.from, chunk.to, |piece| issued.access(servers, &piece));
            core.tally.timeline.ended(Ended::Copy, issued.end_ns, chunk.to - chunk.from);
            heap.wake(issued.end_ns, actor);
        }
    }
    Ok(())
}
