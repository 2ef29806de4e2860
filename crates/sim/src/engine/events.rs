//! The engine with events: every stage of every access is one, on an ordinary binary heap.
//!
//! Writes go client link, server link, device; reads device, server link, client link. Events of one time come in the order of their actors,
//! then of their making, so that without a network this tells to the bit what the engine without events tells.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Plugged;
use super::core::Core;
use super::link::Network;
use crate::clients::Agenda;
use crate::map::Piece;
use crate::mover::Order;
use crate::request::Request;
use crate::timeline::Ended;
use crate::{Error, Report, Scenario, Source};

/// What happens at an event; the number names an access or a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The actor is called.
    Call,
    /// The head of a write reaches the server's link.
    ServerIn(u32),
    /// The access reaches the device's queue.
    Device(u32),
    /// The device has read; the answer reaches the server's link.
    ServerOut(u32),
    /// The head of the answer reaches the node's link.
    NodeIn(u32),
    /// The access is done.
    Done(u32),
    /// A request whose bytes were all there already is done.
    Ready(u32),
}

/// One range that is read or written as a whole: a request, a fetch ahead, a chunk of a move.
#[derive(Debug, Default)]
struct Task {
    actor: u32,
    kind: Kind,
    write: bool,
    begin_ns: u64,
    end_ns: u64,
    alone_ns: u64,
    /// When the node's link has sent the last byte of a write.
    sent_ns: u64,
    /// Its time on a link of its own.
    carried_ns: u64,
    pending: u32,
    /// Tasks that wait for this fetch.
    waiters: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Kind {
    #[default]
    Free,
    Request(Request),
    Fetch {
        file: u32,
    },
    Copy {
        written: u64,
    },
}

#[derive(Clone, Copy, Debug)]
struct Access {
    task: u32,
    piece: Piece,
    /// When the server's link has sent the last byte of a read.
    sent_ns: u64,
}

type Event = Reverse<(u64, u32, u64, What)>;

#[derive(Default)]
struct Calendar {
    events: BinaryHeap<Event>,
    made: u64,
}

impl Calendar {
    fn put(&mut self, at_ns: u64, actor: u32, what: What) {
        self.made += 1;
        self.events.push(Reverse((at_ns, actor, self.made, what)));
    }
}

impl Agenda for Calendar {
    fn wake(&mut self, at_ns: u64, actor: u32) {
        self.put(at_ns, actor, What::Call);
    }
}

/// Numbered things that come and go.
struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    fn put(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(i) => {
                if let Some(slot) = self.items.get_mut(i as usize) {
                    *slot = item;
                }
                i
            }
            None => {
                self.items.push(item);
                (self.items.len() - 1) as u32
            }
        }
    }

    fn get(&mut self, i: u32) -> Option<&mut T> {
        self.items.get_mut(i as usize)
    }
}

struct Engine {
    core: Core,
    network: Option<Network>,
    calendar: Calendar,
    tasks: Slab<Task>,
    accesses: Slab<Access>,
    /// The pieces of the last range that was cut.
    pieces: Vec<Piece>,
}

pub(super) fn run<S: Source>(
    scenario: &Scenario,
    plugged: Vec<Plugged>,
    source: &mut S,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Report, Error> {
    let mut calendar = Calendar::default();
    let core = Core::new(scenario, plugged, source, &mut calendar)?;
    let processes = core.clients.count();
    let network = Network::new(scenario, processes);
    let (tasks, accesses) = (Slab { items: Vec::new(), free: Vec::new() }, Slab { items: Vec::new(), free: Vec::new() });
    let mut engine = Engine { core, network, calendar, tasks, accesses, pieces: Vec::new() };
    while let Some(Reverse((now_ns, actor, _, what))) = engine.calendar.events.pop() {
        match what {
            What::Call if actor < processes => {
                if let Some(request) = engine.core.clients.issue(actor, now_ns, source, &mut engine.calendar)? {
                    engine.request(actor, request, now_ns)?;
                }
            }
            What::Call => engine.copy(actor, now_ns)?,
            What::ServerIn(access) => engine.server_in(access, now_ns),
            What::Device(access) => engine.device(access, now_ns),
            What::ServerOut(access) => engine.server_out(access, now_ns),
            What::NodeIn(access) => engine.node_in(access, now_ns),
            What::Done(access) => engine.access_done(access, now_ns),
            What::Ready(task) => engine.task_done(task, now_ns),
        }
        engine.core.go_on(progress)?;
    }
    engine.core.report(engine.network.as_ref())
}

impl Engine {
    fn request(&mut self, id: u32, request: Request, now_ns: u64) -> Result<(), Error> {
        self.core.check(&request)?;
        let to = request.offset + request.bytes;
        let kind = Kind::Request(request);
        if self.core.ahead.is_none() || request.write {
            self.core.tally.sub_requests += self.cut(request.file, request.offset, to)?;
            self.issue(id, kind, request.write, now_ns);
            return Ok(());
        }
        let plan = self.core.plan(id, &request);
        self.core.tally.sub_requests += self.cut(request.file, plan.now_from, to)?;
        let task = self.issue(id, kind, false, now_ns);
        for fetch in plan.pending.into_iter().flatten() {
            if let Some(fetch) = self.tasks.get(fetch) {
                fetch.waiters.push(task);
                if let Some(task) = self.tasks.get(task) {
                    task.pending += 1;
                }
            }
        }
        if self.tasks.get(task).is_some_and(|t| t.pending == 0) {
            self.calendar.put(now_ns, id, What::Ready(task));
        }
        let (from, to) = plan.fetch;
        if from < to {
            self.core.tally.sub_requests += self.cut(request.file, from, to)?;
            self.core.tally.bytes_ahead = self.core.tally.bytes_ahead.saturating_add(to - from);
            let fetch = self.issue(id, Kind::Fetch { file: request.file }, false, now_ns);
            if let Some(ahead) = &mut self.core.ahead {
                ahead.fetching(id, request.file, fetch);
            }
        }
        Ok(())
    }

    /// Cuts a range; returns how many pieces it has.
    fn cut(&mut self, file: u32, from: u64, to: u64) -> Result<u64, Error> {
        self.core.check_pieces(file, from, to)?;
        let pieces = &mut self.pieces;
        pieces.clear();
        if let Some(map) = self.core.maps.get(file as usize) {
            map.pieces(&self.core.cycles, from, to, |piece| pieces.push(piece));
        }
        Ok(pieces.len() as u64)
    }

    /// Sends the pieces of the range that was cut last on their way, as one task.
    fn issue(&mut self, actor: u32, kind: Kind, write: bool, now_ns: u64) -> u32 {
        let mut task = Task { actor, kind, write, begin_ns: now_ns, end_ns: now_ns, pending: self.pieces.len() as u32, ..Task::default() };
        let mut head_ns = now_ns;
        if let Some(network) = &mut self.network {
            let bytes = self.pieces.iter().map(|p| p.bytes).sum();
            task.carried_ns = network.per_byte.of(bytes);
            let node = network.node(actor);
            if let Some(link) = network.node_out.get_mut(node).filter(|_| write) {
                (head_ns, task.sent_ns) = link.carry(now_ns, task.carried_ns, bytes);
            }
        }
        let task = self.tasks.put(task);
        for piece in &self.pieces {
            let access = self.accesses.put(Access { task, piece: *piece, sent_ns: 0 });
            let what = if write && self.network.is_some() { What::ServerIn(access) } else { What::Device(access) };
            self.calendar.put(head_ns, actor, what);
        }
        task
    }

    fn server_in(&mut self, access: u32, now_ns: u64) {
        let (Some(Access { task, piece, .. }), Some(network)) = (self.accesses.get(access).copied(), &mut self.network) else { return };
        let ns = network.establish_ns.saturating_add(network.per_byte.of(piece.bytes));
        let (Some(task), Some(link)) = (self.tasks.get(task), network.server_in.get_mut(piece.server as usize)) else { return };
        let (_, end_ns) = link.carry(now_ns, ns, piece.bytes);
        self.calendar.put(end_ns.max(task.sent_ns), task.actor, What::Device(access));
    }

    fn device(&mut self, access: u32, now_ns: u64) {
        let Some(Access { task, piece, .. }) = self.accesses.get(access).copied() else { return };
        let (Some(task), Some(server)) = (self.tasks.get(task), self.core.servers.get_mut(piece.server as usize)) else { return };
        let reserved = server.reserve(now_ns, &piece, task.write);
        let linked_ns = self.network.as_ref().map_or(0, |n| n.establish_ns.saturating_add(n.per_byte.of(piece.bytes)));
        task.alone_ns = task.alone_ns.max(reserved.service_ns.saturating_add(linked_ns.max(if task.write { task.carried_ns } else { 0 })));
        let what = if task.write || self.network.is_none() { What::Done(access) } else { What::ServerOut(access) };
        self.calendar.put(reserved.end_ns, task.actor, what);
    }

    fn server_out(&mut self, access: u32, now_ns: u64) {
        let (Some(access_at), Some(network)) = (self.accesses.get(access), &mut self.network) else { return };
        let Access { task, piece, .. } = *access_at;
        let ns = network.establish_ns.saturating_add(network.per_byte.of(piece.bytes));
        let (Some(task), Some(link)) = (self.tasks.get(task), network.server_out.get_mut(piece.server as usize)) else { return };
        let (begin_ns, end_ns) = link.carry(now_ns, ns, piece.bytes);
        access_at.sent_ns = end_ns;
        self.calendar.put(begin_ns.saturating_add(network.establish_ns), task.actor, What::NodeIn(access));
    }

    fn node_in(&mut self, access: u32, now_ns: u64) {
        let (Some(Access { task, piece, sent_ns }), Some(network)) = (self.accesses.get(access).copied(), &mut self.network) else { return };
        let Some(task) = self.tasks.get(task) else { return };
        let ns = network.per_byte.of(piece.bytes);
        let node = network.node(task.actor);
        let Some(link) = network.node_in.get_mut(node) else { return };
        let (_, end_ns) = link.carry(now_ns, ns, piece.bytes);
        self.calendar.put(end_ns.max(sent_ns), task.actor, What::Done(access));
    }

    fn access_done(&mut self, access: u32, now_ns: u64) {
        let Some(Access { task, .. }) = self.accesses.get(access).copied() else { return };
        self.accesses.free.push(access);
        self.part_done(task, now_ns);
    }

    fn part_done(&mut self, task: u32, now_ns: u64) {
        let Some(part) = self.tasks.get(task) else { return };
        part.end_ns = part.end_ns.max(now_ns);
        part.pending = part.pending.saturating_sub(1);
        if part.pending == 0 {
            let end_ns = part.end_ns;
            self.task_done(task, end_ns);
        }
    }

    fn task_done(&mut self, id: u32, now_ns: u64) {
        let Some(slot) = self.tasks.get(id) else { return };
        let task = std::mem::take(slot);
        self.tasks.free.push(id);
        match task.kind {
            Kind::Free => {}
            Kind::Request(request) => {
                self.core.tally.done(&request, task.begin_ns, now_ns, task.alone_ns);
                self.core.clients.done(task.actor, now_ns, &mut self.calendar);
            }
            Kind::Fetch { file } => {
                self.core.tally.fetched_ns = self.core.tally.fetched_ns.max(now_ns);
                if let Some(ahead) = &mut self.core.ahead {
                    ahead.fetched(task.actor, file, id, now_ns);
                }
                for waiter in task.waiters {
                    self.part_done(waiter, now_ns);
                }
            }
            Kind::Copy { written } => {
                if written > 0 {
                    self.core.tally.timeline.ended(Ended::Copy, now_ns, written);
                }
                self.calendar.wake(now_ns, task.actor);
            }
        }
    }

    fn copy(&mut self, actor: u32, now_ns: u64) -> Result<(), Error> {
        match self.core.mover.call(actor, now_ns, &mut self.core.maps, &mut self.calendar) {
            Order::Nothing => {}
            Order::Read(chunk) => {
                self.cut(chunk.file, chunk.from, chunk.to)?;
                self.issue(actor, Kind::Copy { written: 0 }, false, now_ns);
            }
            Order::Write(chunk, home) => {
                let pieces = &mut self.pieces;
                pieces.clear();
                home.pieces(&self.core.cycles, chunk.from, chunk.to, |piece| pieces.push(piece));
                self.issue(actor, Kind::Copy { written: chunk.to - chunk.from }, true, now_ns);
            }
        }
        Ok(())
    }
}
