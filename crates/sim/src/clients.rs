//! The processes: which request each issues next, and when. Closed loops, open loops and barriers are all here; what a request costs is not.
//!
//! A process's next request is fetched when the one before it is issued. `done` may be told of an end that lies in the future: nothing here
//! depends on when it is told, only on the time that it is told. So the engine without events and the one with events share this.

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

pub(crate) struct Clients {
    processes: Vec<Process>,
    /// Processes that have a next request.
    active: usize,
    /// Processes that have come to their barrier.
    waiting: Vec<u32>,
    /// When the latest of them came.
    latest_ns: u64,
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
        let mut clients = Clients { processes, active: 0, waiting: Vec::new(), latest_ns: 0, had: 0, think_ns: 0 };
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
        let Process { next: Some(Request { start, .. }), in_flight: 0, drained_ns } = *process else { return };
        if !matches!(start, Start::At(_)) {
            self.drained(id, start, drained_ns, agenda);
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
            Start::At(_) => {}
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
