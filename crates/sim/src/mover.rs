//! The mover: copies spans to their new homes through the same queues as the requests, chunk by chunk.
//!
//! Each chunk in flight is an actor: it reads a chunk from the old home, writes it to the new one, takes the next. One move is copied at a
//! time, in the scenario's order. Requests go to the old home until the last chunk of a move is written; what they wrote meanwhile is not
//! copied again.

use crate::clients::Agenda;
use crate::map::{FileMap, Home, after};
use crate::report::MoveReport;
use crate::scenario::Scenario;
use crate::time::{in_seconds, nanoseconds};

#[derive(Clone, Copy, Debug)]
struct Move {
    at_ns: u64,
    file: u32,
    start: u64,
    len: u64,
    home: Home,
    began_ns: u64,
    done_ns: u64,
}

/// A chunk, `[from, to)` of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub file: u32,
    pub from: u64,
    pub to: u64,
}

/// What a lane does when it is called.
#[derive(Clone, Copy, Debug)]
enum Lane {
    Idle,
    Read(Chunk),
    Write(Chunk),
    Written(Chunk),
}

/// What the engine shall do for a lane; it calls the lane again when that is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Nothing,
    Read(Chunk),
    Write(Chunk, Home),
}

pub(crate) struct SimulatedMover {
    moves: Vec<Move>,
    /// The move that is being copied.
    current: usize,
    lanes: Vec<Lane>,
    first_actor: u32,
    chunk_bytes: u64,
    /// Chunks of one move begin no closer than this.
    interval_ns: u64,
    taken: u64,
    written: u64,
    chunks: u64,
    pub moved_bytes: u64,
    pub ended_ns: u64,
}

impl SimulatedMover {
    /// Plans all moves; the lanes are the actors from `first_actor` on.
    pub(crate) fn new(scenario: &Scenario, mut base: u64, first_actor: u32, agenda: &mut impl Agenda) -> Self {
        let mut moves = Vec::with_capacity(scenario.moves.len());
        for step in &scenario.moves {
            // A new home is newly allocated: a stretch of every device that nothing else has.
            let home = Home { start: step.start, cycle: step.cycle, first: step.first, base: base.wrapping_sub(step.start) };
            let at_ns = nanoseconds(step.at_s);
            moves.push(Move { at_ns, file: step.file, start: step.start, len: step.len, home, began_ns: 0, done_ns: 0 });
            base = after(base, step.len);
        }
        let copy = &scenario.copy;
        let interval_ns = if copy.rate_bytes_per_s > 0.0 { nanoseconds(copy.chunk_bytes as f64 / copy.rate_bytes_per_s) } else { 0 };
        let lanes = if moves.is_empty() { 0 } else { copy.in_flight as usize };
        let mut mover = SimulatedMover {
            moves,
            current: 0,
            lanes: vec![Lane::Idle; lanes],
            first_actor,
            chunk_bytes: copy.chunk_bytes,
            interval_ns,
            taken: 0,
            written: 0,
            chunks: 0,
            moved_bytes: 0,
            ended_ns: 0,
        };
        mover.begin(0, agenda);
        mover
    }

    /// Begins the current move, if there is one, when its time has come.
    fn begin(&mut self, now_ns: u64, agenda: &mut impl Agenda) {
        (self.taken, self.written, self.chunks) = (0, 0, 0);
        let Some(step) = self.moves.get_mut(self.current) else { return };
        step.began_ns = step.at_ns.max(now_ns);
        for lane in 0..self.lanes.len() as u32 {
            agenda.wake(step.began_ns, self.first_actor + lane);
        }
    }

    /// What lane `actor - first_actor` does now; its order before, if any, is done.
    pub(crate) fn call(&mut self, actor: u32, now_ns: u64, maps: &mut [FileMap], agenda: &mut impl Agenda) -> Order {
        let lane = (actor - self.first_actor) as usize;
        let state = self.lanes.get(lane).copied().unwrap_or(Lane::Idle);
        let (next, order) = match state {
            Lane::Read(chunk) => (Lane::Write(chunk), Order::Read(chunk)),
            Lane::Write(chunk) => match self.moves.get(self.current) {
                Some(step) => (Lane::Written(chunk), Order::Write(chunk, step.home)),
                None => (Lane::Idle, Order::Nothing),
            },
            Lane::Written(chunk) => {
                // The next move calls every lane itself.
                if self.written(chunk, now_ns, maps, agenda) { (Lane::Idle, Order::Nothing) } else { self.take(actor, now_ns, agenda) }
            }
            Lane::Idle => self.take(actor, now_ns, agenda),
        };
        if let Some(state) = self.lanes.get_mut(lane) {
            *state = next;
        }
        order
    }

    fn take(&mut self, actor: u32, now_ns: u64, agenda: &mut impl Agenda) -> (Lane, Order) {
        let Some(step) = self.moves.get(self.current) else { return (Lane::Idle, Order::Nothing) };
        let bytes = self.chunk_bytes.min(step.len - self.taken);
        if bytes == 0 {
            return (Lane::Idle, Order::Nothing);
        }
        let from = step.start + self.taken;
        let chunk = Chunk { file: step.file, from, to: from + bytes };
        let due_ns = step.began_ns.saturating_add(self.chunks.saturating_mul(self.interval_ns));
        self.taken += bytes;
        self.chunks += 1;
        if due_ns > now_ns {
            agenda.wake(due_ns, actor);
            return (Lane::Read(chunk), Order::Nothing);
        }
        (Lane::Write(chunk), Order::Read(chunk))
    }

    /// Counts a chunk that has its new home; returns whether it was the move's last.
    fn written(&mut self, chunk: Chunk, now_ns: u64, maps: &mut [FileMap], agenda: &mut impl Agenda) -> bool {
        self.written += chunk.to - chunk.from;
        self.moved_bytes += chunk.to - chunk.from;
        self.ended_ns = now_ns;
        let Some(step) = self.moves.get_mut(self.current) else { return true };
        if self.written < step.len {
            return false;
        }
        step.done_ns = now_ns;
        if let Some(map) = maps.get_mut(step.file as usize) {
            map.settle(step.start, step.start + step.len, step.home);
        }
        self.current += 1;
        self.begin(now_ns, agenda);
        true
    }

    pub(crate) fn report(&self) -> Vec<MoveReport> {
        self.moves.iter().map(|m| MoveReport { at_s: in_seconds(m.began_ns), done_s: in_seconds(m.done_ns) }).collect()
    }
}
