//! The processes: which request each issues next, and when. Closed loops, open loops, barriers and turns are all here; what a request costs is not.
//!
//! A process's next request is fetched when the one before it is issued. `done` may be told of an end that lies in the future: nothing here
//! depends on when it is told, only on the time that it is told. So the engine without events and the one with events share this.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::request::{Request, Source, Start};
use crate::{Error, heap::Heap};

/// Whoever calls actors at their times.
pub(crate) trait Agenda {
    fn wake(&mut self, at_ns: u64, actor: u32);
}

impl Agenda for Heap {
    #[inline]
    fn wake(&mut self, at_ns: u64, actor: u32) {
        self.push(at_ns, actor);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Process {
    next: Option<Request>,
    /// End of the latest of its requests so far.
    drained_ns: u64,
    in_flight: u32,
}

/// Who waits for others to be over. The time of a wake is that of their ends alone, whoever is told of first.
#[derive(Default)]
struct Turns {
    /// Processes in the order in which others wait for them.
    order: Vec<u32>,
    /// Latest end of the first 0, 1, .. of them, as far as all of these are over.
    over_ns: Vec<u64>,
    /// Those who wait, by how many they wait for; and since when they could go on themselves.
    waiting: BinaryHeap<Reverse<(u32, u32, u64)>>,
}

pub(crate) struct Clients {
    processes: Vec<Process>,
    /// Processes that have a next request.
    active: usize,
    /// Processes that have come to their barrier.
    waiting: Vec<u32>,
    /// When the latest of them came.
    latest_ns: u64,
    turns: Turns,
    /// Processes that had requests at all.
    pub had: u32,
    /// Think times of closed loops so far.
    pub think_ns: u128,
}

impl Clients {
    /// Asks every process for its first request.
    pub(crate) fn begin<S: Source>(source: &mut S, agenda: &mut impl Agenda) -> Result<Self, Error> {
        let count = source.processes();
        if count > MAX_PROCESSES {
            return Err(Error::Invalid(format!("workload: it has {count} processes; use at most {MAX_PROCESSES}")));
        }
        let processes = vec![Process::default(); count as usize];
        let turns = Turns { order: source.ended().to_vec(), over_ns: vec![0], waiting: BinaryHeap::new() };
        let mut clients = Clients { processes, active: 0, waiting: Vec::new(), latest_ns: 0, turns, had: 0, think_ns: 0 };
        for id in 0..count {
            let next = source.next(id)?;
            if next.is_some() {
                clients.active += 1;
                clients.had += 1;
            }
            if let Some(process) = clients.processes.get_mut(id as usize) {
                process.next = next;
            }
        }
        for id in 0..count {
            clients.schedule(id, 0, agenda);
        }
        clients.release(0, agenda);
        clients.take_turns(agenda);
        Ok(clients)
    }

    pub(crate) fn count(&self) -> u32 {
        self.processes.len() as u32
    }

    /// Takes the request that `id` issues now, and looks at the one after it.
    #[inline]
    pub(crate) fn issue<S: Source>(&mut self, id: u32, now_ns: u64, source: &mut S, agenda: &mut impl Agenda) -> Result<Option<Request>, Error> {
        let Some(process) = self.processes.get_mut(id as usize) else { return Ok(None) };
        let Some(request) = process.next.take() else { return Ok(None) };
        process.in_flight += 1;
        process.next = source.next(id)?;
        if process.next.is_none() {
            self.active -= 1;
            self.release(now_ns, agenda);
        } else {
            self.schedule(id, now_ns, agenda);
        }
        Ok(Some(request))
    }

    /// A request of `id` ends at `end_ns`.
    #[inline]
    pub(crate) fn done(&mut self, id: u32, end_ns: u64, agenda: &mut impl Agenda) {
        let Some(process) = self.processes.get_mut(id as usize) else { return };
        process.in_flight -= 1;
        process.drained_ns = process.drained_ns.max(end_ns);
        match *process {
            Process { next: Some(Request { start: Start::At(_), .. }), .. } => {}
            Process { next: Some(Request { start, .. }), in_flight: 0, drained_ns } => self.drained(id, start, drained_ns, agenda),
            Process { next: None, in_flight: 0, .. } => self.take_turns(agenda),
            _ => {}
        }
    }

    /// Plans the next request's issue where it is known already.
    #[inline]
    fn schedule(&mut self, id: u32, now_ns: u64, agenda: &mut impl Agenda) {
        let Some(Process { next: Some(Request { start, .. }), in_flight, drained_ns }) = self.processes.get(id as usize).copied() else { return };
        match start {
            Start::At(at_ns) => agenda.wake(at_ns.max(now_ns), id),
            _ if in_flight == 0 => self.drained(id, start, drained_ns, agenda),
            _ => {}
        }
    }

    /// Nothing of `id` is in flight any more, and its next request waits for just that.
    #[inline]
    fn drained(&mut self, id: u32, start: Start, at_ns: u64, agenda: &mut impl Agenda) {
        match start {
            Start::After(think_ns) => {
                self.think_ns += u128::from(think_ns);
                agenda.wake(at_ns.saturating_add(think_ns), id);
            }
            Start::Barrier(_) | Start::BarrierAt(_) => {
                if let Start::Barrier(think_ns) = start {
                    self.think_ns += u128::from(think_ns);
                }
                self.waiting.push(id);
                self.latest_ns = self.latest_ns.max(at_ns);
                self.release(0, agenda);
            }
            Start::Behind { over, think_ns } => {
                self.think_ns += u128::from(think_ns);
                self.turns.waiting.push(Reverse((over, id, at_ns)));
                self.take_turns(agenda);
            }
            Start::At(_) => {}
        }
    }

    /// Sees who of those that others wait for is over by now, and lets these go on.
    fn take_turns(&mut self, agenda: &mut impl Agenda) {
        let Turns { order, over_ns, waiting } = &mut self.turns;
        while let Some(Process { next: None, in_flight: 0, drained_ns }) =
            order.get(over_ns.len() - 1).and_then(|id| self.processes.get(*id as usize))
        {
            over_ns.push(over_ns.last().copied().unwrap_or(0).max(*drained_ns));
        }
        while let Some(&Reverse((over, id, at_ns))) = waiting.peek()
            && let Some(end_ns) = over_ns.get(over as usize)
        {
            waiting.pop();
            if let Some(Process { next: Some(Request { start: Start::Behind { think_ns, .. }, .. }), .. }) = self.processes.get(id as usize) {
                agenda.wake(at_ns.max(*end_ns).saturating_add(*think_ns), id);
            }
        }
    }

    /// Lets all go who wait, if all who still have requests do.
    fn release(&mut self, now_ns: u64, agenda: &mut impl Agenda) {
        if self.waiting.is_empty() || self.waiting.len() < self.active {
            return;
        }
        let at_ns = self.latest_ns.max(now_ns);
        for id in self.waiting.drain(..) {
            let next = self.processes.get(id as usize).and_then(|process| process.next);
            match next.map(|request| request.start) {
                Some(Start::Barrier(think_ns)) => agenda.wake(at_ns.saturating_add(think_ns), id),
                Some(Start::BarrierAt(earliest_ns)) => agenda.wake(at_ns.max(earliest_ns), id),
                _ => {}
            }
        }
        self.latest_ns = 0;
    }
}

/// Actors beyond the processes are the mover's.
const MAX_PROCESSES: u32 = u32::MAX - (1 << 17);
