//! Requests made from a description, one at a time: a pure function of (process, request) with a few words per process.
//!
//! The order is the MPI program's: the write phase, a barrier, the read phase; a phase in equal windows, each behind a barrier. The pieces of a
//! request follow one another, as MPI-IO without data sieving issues them.

use stripewise_chance::{mix, share};

use super::describe::{Arrivals, Description, Think};
use super::pattern::{Pattern, Phase};
use crate::{Error, Request, Source, Start};

/// Draws for sizes, think times and arrivals come from streams of their own, so that they change no offset.
const SALT_SIZE: u64 = 0x51;
const SALT_TIME: u64 = 0x7133;
const NS_PER_S: f64 = 1e9;
/// Where nothing says how fast a process goes, planners are told that its requests are so far apart.
const NOMINAL_NS: u64 = 1_000_000;

/// A described workload as a [`Source`].
#[derive(Debug)]
pub struct Generator {
    described: Description,
    pattern: Pattern,
    sizes: Sizes,
    writes: u64,
    reads: u64,
    /// Requests of one window: written, read.
    each: [u64; 2],
    state: Vec<State>,
}

/// How far a process is.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Requests begun, writes and then reads.
    request: u64,
    /// Its pieces that have been issued.
    piece: u64,
    /// Open loop: the last arrival.
    clock_ns: u64,
}

/// A request before it is cut into pieces and given a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub(super) phase: Phase,
    /// Its number within the phase.
    pub(super) number: u64,
    pub(super) draw: u64,
    pub(super) first: u64,
    pub(super) bytes: u64,
}

impl Generator {
    /// The generator of what is described.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the parts do not fit together, with the key and the cure.
    pub fn new(described: Description) -> Result<Generator, Error> {
        let sizes = Sizes::new(&described);
        let pattern = Pattern::new(&described, described.largest_bytes())?;
        let (writes, reads) = (described.writes.unwrap_or(pattern.requests_max), described.reads.unwrap_or(pattern.requests_max));
        let each = [writes.div_ceil(described.windows), reads.div_ceil(described.windows)];
        let state = vec![State::default(); described.processes as usize];
        Ok(Generator { described, pattern, sizes, writes, reads, each, state })
    }

    /// Requests of each process, writes and reads.
    #[must_use]
    pub fn requests_per_process(&self) -> u64 {
        self.writes + self.reads
    }

    /// Pieces of a request.
    #[must_use]
    pub fn pieces(&self) -> u64 {
        self.pattern.pieces
    }

    /// Request `request` of a process, counted over both phases; `None` past its last.
    pub(super) fn whole(&self, process: u32, request: u64) -> Option<Whole> {
        let (phase, number) = if request < self.writes { (Phase::Write, request) } else { (Phase::Read, request - self.writes) };
        if phase == Phase::Read && number >= self.reads {
            return None;
        }
        let draw = self.pattern.draw(u64::from(process), phase, number);
        let rank = if self.described.is_shared() { u64::from(process) } else { 0 };
        let first = self.pattern.offset(rank, number, draw, self.window(phase, number));
        Some(Whole { phase, number, draw, first, bytes: self.sizes.draw(draw) })
    }

    /// Piece `piece` of a request; `start` says when.
    pub(super) fn piece(&self, process: u32, whole: &Whole, piece: u64, start: Start) -> Request {
        Request {
            file: if self.described.is_shared() { 0 } else { process },
            write: whole.phase == Phase::Write,
            offset: self.pattern.piece(whole.first, piece),
            bytes: whole.bytes / self.pattern.pieces,
            start,
        }
    }

    /// When a planner is to believe that the request begins, and how long it takes: ns from the beginning of the run.
    pub(super) fn nominal_ns(&self, process: u32, whole: &Whole) -> (u64, u64) {
        let described = &self.described;
        let before = if whole.phase == Phase::Read { self.writes } else { 0 };
        if described.rate_per_s > 0.0 {
            let mean_ns = f64::from(described.processes) / described.rate_per_s * NS_PER_S;
            return (self.evenly_ns(process, before + whole.number), mean_ns as u64);
        }
        let each = self.per_window(whole.phase);
        if described.window_seconds > 0.0 {
            let window_ns = (described.window_seconds * NS_PER_S).round() as u64;
            let before_ns = self.windows_before(whole.phase) * window_ns;
            let pause_ns = window_ns / each;
            return (before_ns + whole.number / each * window_ns + whole.number % each * pause_ns, pause_ns);
        }
        let pause_ns = NOMINAL_NS + (described.think_s * NS_PER_S) as u64;
        ((before + whole.number).saturating_mul(pause_ns), pause_ns)
    }

    fn per_window(&self, phase: Phase) -> u64 {
        let [written, read] = self.each;
        (if phase == Phase::Write { written } else { read }).max(1)
    }

    fn window(&self, phase: Phase, number: u64) -> u64 {
        number / self.per_window(phase)
    }

    /// Windows of the run before the phase's first.
    fn windows_before(&self, phase: Phase) -> u64 {
        if phase == Phase::Read && self.writes > 0 { self.described.windows } else { 0 }
    }

    /// Arrivals of all processes at equal distances.
    fn evenly_ns(&self, process: u32, request: u64) -> u64 {
        let place = request as f64 * f64::from(self.described.processes) + f64::from(process);
        (place / self.described.rate_per_s * NS_PER_S) as u64
    }

    /// When the request begins; `clock_ns` is the process's arrival before.
    fn start(&self, process: u32, request: u64, whole: &Whole, clock_ns: u64) -> Start {
        let described = &self.described;
        if described.rate_per_s > 0.0 {
            return Start::At(match described.arrivals {
                Arrivals::Fixed => self.evenly_ns(process, request),
                Arrivals::Poisson => {
                    let mean_ns = f64::from(described.processes) / described.rate_per_s * NS_PER_S;
                    clock_ns.saturating_add(exponential_ns(whole.draw, mean_ns))
                }
            });
        }
        let think_ns = match described.think {
            _ if described.think_s == 0.0 => 0,
            Think::Constant => (described.think_s * NS_PER_S) as u64,
            Think::Exponential => exponential_ns(whole.draw, described.think_s * NS_PER_S),
        };
        if request == 0 {
            return Start::After(think_ns);
        }
        if !whole.number.is_multiple_of(self.per_window(whole.phase)) {
            return if described.collective { Start::Barrier(think_ns) } else { Start::After(think_ns) };
        }
        if described.window_seconds > 0.0 {
            let window = self.windows_before(whole.phase) + self.window(whole.phase, whole.number);
            return Start::BarrierAt((window as f64 * described.window_seconds * NS_PER_S) as u64);
        }
        Start::Barrier(think_ns)
    }
}

impl Source for Generator {
    fn processes(&self) -> u32 {
        self.described.processes
    }

    fn next(&mut self, process: u32) -> Result<Option<Request>, Error> {
        let Some(&State { request, piece, clock_ns }) = self.state.get(process as usize) else {
            return Ok(None);
        };
        let Some(whole) = self.whole(process, request) else {
            return Ok(None);
        };
        let start = match (piece, self.described.rate_per_s > 0.0) {
            (0, _) => self.start(process, request, &whole, clock_ns),
            (_, true) => Start::At(clock_ns),
            (_, false) => Start::After(0),
        };
        if let Some(state) = self.state.get_mut(process as usize) {
            if let Start::At(clock_ns) = start {
                state.clock_ns = clock_ns;
            }
            state.piece = (piece + 1) % self.pattern.pieces;
            state.request += u64::from(state.piece == 0);
        }
        Ok(Some(self.piece(process, &whole, piece, start)))
    }
}

/// A time of mean `mean_ns`, exponentially distributed.
fn exponential_ns(draw: u64, mean_ns: f64) -> u64 {
    (-(1.0 - share(mix(draw ^ SALT_TIME))).ln() * mean_ns) as u64
}

/// The sizes that requests are drawn from.
#[derive(Debug)]
struct Sizes {
    /// (share of the requests that this and the sizes before get, bytes).
    up_to: Vec<(f64, u64)>,
    last: u64,
}

impl Sizes {
    fn new(described: &Description) -> Sizes {
        let sum: f64 = described.request_bytes.iter().map(|(_, weight)| weight).sum();
        let mut reached = 0.0;
        let drawn = described.request_bytes.iter().filter(|(_, weight)| *weight > 0.0);
        let mut up_to: Vec<(f64, u64)> = drawn
            .map(|(bytes, weight)| {
                reached += weight / sum;
                (reached, *bytes)
            })
            .collect();
        let last = up_to.pop().map_or(1, |(_, bytes)| bytes);
        Sizes { up_to, last }
    }

    fn draw(&self, draw: u64) -> u64 {
        if self.up_to.is_empty() {
            return self.last;
        }
        let share = share(mix(draw ^ SALT_SIZE));
        self.up_to.iter().find(|(up_to, _)| share < *up_to).map_or(self.last, |(_, bytes)| *bytes)
    }
}
