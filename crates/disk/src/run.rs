//! A run: requests come, wait, and are served by a scheme on a simulated disk, all accesses of one before the next is begun.
//!
//! A request first waits before the disk where that holds as many as it can. In the disk its command is taken, with its overhead and, of a write, its
//! data, while the arm may still work for others; then it waits for its turn. A read is done when its data have crossed the bus, for which the arm
//! does not wait. A bus that overlaps carries both while the head transfers.

use std::collections::VecDeque;
use std::iter::Peekable;

use stripewise_blocks::{BlockRequest, Error as SourceError};
use stripewise_swd::{Purpose, Scheme};

use crate::commands::Commands;
use crate::counts::report::Report;
use crate::counts::stalls::Stalls;
use crate::counts::tally::Tally;
use crate::error::Error;
use crate::idle::idle;
use crate::medium::TimedMedium;
use crate::queue::{Pending, Queue};
use crate::settings::{Arrivals, Settings};
use crate::time::milliseconds;
use crate::timed::TimedScheme;

/// The latest arrival: clocks that go on from there for centuries still do not wrap.
const ARRIVAL_MAX_NS: u64 = 1 << 62;
/// How often whoever watches is asked whether to go on, in requests.
const WATCH_EVERY: u64 = 1 << 16;

/// Runs all requests of a source and reports. `watch` is told the requests done, now and then; when it says false, the run ends as interrupted.
///
/// # Errors
/// Settings that do not fit together, a source that fails, a request that cannot be served (with its number, from 0), an interruption.
pub fn run(
    settings: &Settings,
    requests: impl Iterator<Item = Result<BlockRequest, SourceError>>,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<Report, Error> {
    let scheme = TimedScheme::new(settings)?;
    let used_sectors = scheme.used_sectors(settings)?;
    match scheme {
        TimedScheme::InPlace(scheme) => Run::new(settings, *scheme, used_sectors, requests)?.all(watch),
        TimedScheme::Track(scheme) => Run::new(settings, *scheme, used_sectors, requests)?.all(watch),
        TimedScheme::Indirection(scheme) => Run::new(settings, *scheme, used_sectors, requests)?.all(watch),
    }
}

struct Run<'a, S, I: Iterator> {
    settings: &'a Settings,
    scheme: S,
    requests: Peekable<I>,
    used_sectors: u64,
    sectors_per_block: (u64, u64),
    commands: Commands,
    depth: usize,
    /// Before the disk.
    waiting: VecDeque<(BlockRequest, u64)>,
    queue: Queue,
    /// When the disk last had room again after it had been full.
    room_ns: u64,
    came: u64,
    arrival_ns: u64,
    end_ns: u64,
    stalls: Stalls,
    tally: Tally,
    /// Requests that are still to be served before counting begins.
    warm: u64,
    served: u64,
}

impl<'a, S, I> Run<'a, S, I>
where
    S: Scheme<Medium = TimedMedium>,
    I: Iterator<Item = Result<BlockRequest, SourceError>>,
{
    fn new(settings: &'a Settings, scheme: S, used_sectors: u64, requests: I) -> Result<Self, Error> {
        let disk = &settings.disk;
        Ok(Self {
            commands: Commands::new(disk, scheme.medium().takes_writes()),
            depth: if settings.arrivals == Arrivals::Closed { 1 } else { settings.queue.depth.unwrap_or(u32::MAX) as usize },
            sectors_per_block: (stripewise_blocks::BLOCK_BYTES, u64::from(disk.block_bytes)),
            requests: requests.peekable(),
            waiting: VecDeque::new(),
            queue: Queue::new(settings.queue.order),
            room_ns: 0,
            came: 0,
            arrival_ns: 0,
            end_ns: 0,
            stalls: Stalls::new(milliseconds(settings.stall_bound_ms)),
            tally: Tally::new(0, scheme.counters())?,
            warm: settings.warm_requests,
            served: 0,
            settings,
            scheme,
            used_sectors,
        })
    }

    fn all(mut self, watch: &mut dyn FnMut(u64) -> bool) -> Result<Report, Error> {
        let mut next_watch = WATCH_EVERY;
        loop {
            self.take(self.scheme.medium().now_ns())?;
            match self.queue.pop(self.scheme.medium()) {
                Some(pending) => self.serve(&pending)?,
                None => {
                    if !self.wait()? {
                        break;
                    }
                }
            }
            if self.served >= next_watch {
                next_watch += WATCH_EVERY;
                if !watch(self.served) {
                    return Err(Error::Interrupted);
                }
            }
        }
        if self.served < self.warm {
            let wrong = format!("is {}, there were {} requests", self.warm, self.served);
            return Err(Error::key("warm_requests", wrong, "warm up with fewer"));
        }
        Ok(self.report())
    }

    /// Lets into the disk whatever has come by `now_ns` and has room.
    #[inline]
    fn take(&mut self, now_ns: u64) -> Result<(), Error> {
        if self.settings.arrivals == Arrivals::Closed {
            if self.queue.len() == 0
                && let Some(mut request) = self.next()?
            {
                request.arrival_ns = self.end_ns.max(now_ns);
                self.come(request, 0);
            }
        } else {
            self.arrive(now_ns, 0)?;
        }
        while self.queue.len() < self.depth
            && let Some((request, number)) = self.waiting.pop_front()
        {
            self.enter(request, number);
        }
        Ok(())
    }

    /// The next request of the source.
    #[inline]
    fn next(&mut self) -> Result<Option<BlockRequest>, Error> {
        let Some(next) = self.requests.next() else { return Ok(None) };
        let request = next.map_err(|error| Error::Request(error.to_string()))?;
        if request.arrival_ns < self.arrival_ns && self.settings.arrivals == Arrivals::Open {
            return Err(Error::Request(format!("request {} arrives before the one before it; order the requests by time", self.came)));
        }
        if request.arrival_ns > ARRIVAL_MAX_NS {
            return Err(Error::Request(format!("request {} arrives after 146 years; stretch the times less", self.came)));
        }
        self.arrival_ns = request.arrival_ns;
        Ok(Some(request))
    }

    /// Requests that come by `now_ns`, when the disk holds one of its places for `beside` requests that are not in its queue.
    #[inline]
    fn arrive(&mut self, now_ns: u64, beside: usize) -> Result<(), Error> {
        while self.requests.peek().is_some_and(|next| next.as_ref().map_or(true, |request| request.arrival_ns <= now_ns)) {
            let Some(request) = self.next()? else { break };
            self.come(request, beside);
        }
        Ok(())
    }

    #[inline]
    fn come(&mut self, request: BlockRequest, beside: usize) {
        self.stalls.came(request.arrival_ns);
        let number = self.came;
        self.came += 1;
        if self.queue.len() + beside < self.depth && self.waiting.is_empty() {
            self.enter(request, number);
        } else {
            self.waiting.push_back((request, number));
        }
    }

    /// The disk takes a command.
    #[inline]
    fn enter(&mut self, request: BlockRequest, number: u64) {
        let (lba, sectors) = self.sectors(&request);
        let medium = self.scheme.medium();
        let place = if self.queue.needs_places() || (self.settings.cache.reads && !request.write) {
            self.scheme.locate(lba).and_then(|at| medium.place(at).map(|place| (place, at.sector)))
        } else {
            None
        };
        let hit = !request.write && self.settings.cache.reads && place.is_some_and(|(place, sector)| medium.holds(&place, sector, sectors));
        let taken_ns = self.commands.take(request.write, hit, u64::from(request.blocks));
        let ready_ns = request.arrival_ns.max(self.room_ns) + taken_ns;
        self.queue.push(Pending { request, number, ready_ns, place });
    }

    /// Sectors of the disk that hold a request's blocks.
    #[inline]
    fn sectors(&self, request: &BlockRequest) -> (u64, u64) {
        let (block_bytes, sector_bytes) = self.sectors_per_block;
        if block_bytes == sector_bytes {
            return (request.lba, u64::from(request.blocks));
        }
        let per_sector = sector_bytes / block_bytes;
        let first = request.lba / per_sector;
        (first, request.end().div_ceil(per_sector) - first)
    }

    #[inline]
    fn serve(&mut self, pending: &Pending) -> Result<(), Error> {
        let Pending { request, number, .. } = *pending;
        let (lba, sectors) = self.sectors(&request);
        if sectors == 0 || lba.checked_add(sectors).is_none_or(|end| end > self.used_sectors) {
            let (first, end, used) = (request.lba, request.end(), self.used_sectors * self.sectors_per_block.1 / self.sectors_per_block.0);
            let cure = "give every request blocks, and fold addresses onto the used ones";
            return Err(Error::Request(format!("request {number}: blocks {first} to {end} are not within the {used} used ones; {cure}")));
        }
        let accounts = self.scheme.medium().accounts();
        let (before, transferred_ns) = (accounts.times(), accounts.of(Purpose::Own).transfer_ns);
        let begin_ns = self.scheme.medium().now_ns();
        let done = if request.write { self.scheme.write(lba, sectors, &[]) } else { self.scheme.read(lba, sectors, &mut []) };
        done.map_err(|error| Error::Request(format!("request {number}: {error}")))?;
        let medium = self.scheme.medium();
        let transfer_ns = medium.accounts().of(Purpose::Own).transfer_ns - transferred_ns;
        let bus_ns = self.commands.bring(request.write, u64::from(request.blocks), transfer_ns);
        let (served_ns, end_ns) = (medium.now_ns(), medium.now_ns() + bus_ns);
        let after = medium.accounts().times();
        self.tally.done(request.write, end_ns - request.arrival_ns, begin_ns - request.arrival_ns + bus_ns, before, after);
        // What came while it was served was there beside it.
        let was_full = self.queue.len() + 1 >= self.depth;
        if self.settings.arrivals == Arrivals::Open {
            self.arrive(served_ns, 1)?;
        }
        if was_full {
            self.room_ns = end_ns;
        }
        self.end_ns = self.end_ns.max(end_ns);
        self.stalls.done(number, request.arrival_ns, end_ns);
        self.served += 1;
        if self.served == self.warm { self.count_from_now() } else { Ok(()) }
    }

    /// The disk is warm: what was counted so far is forgotten.
    fn count_from_now(&mut self) -> Result<(), Error> {
        self.tally = Tally::new(self.end_ns, self.scheme.counters())?;
        self.stalls.restart(self.end_ns);
        self.scheme.medium_mut().clear_accounts();
        Ok(())
    }

    /// Nothing can be served now: goes on to when something can, or something comes; false at the end.
    fn wait(&mut self) -> Result<bool, Error> {
        let next_ns = match self.requests.peek() {
            Some(Ok(request)) => Some(request.arrival_ns),
            Some(Err(error)) => return Err(Error::Request(error.to_string())),
            None => None,
        };
        match (self.queue.ready_ns(), next_ns) {
            (None, None) => Ok(false),
            (Some(ready_ns), next_ns) => {
                let until_ns = next_ns.filter(|_| self.settings.arrivals == Arrivals::Open).map_or(ready_ns, |next_ns| ready_ns.min(next_ns));
                self.scheme.medium_mut().wait_until(until_ns);
                Ok(true)
            }
            (None, Some(next_ns)) => {
                let from_ns = self.scheme.medium().now_ns().max(self.end_ns);
                let worked = idle(&mut self.scheme, self.settings.background, from_ns, next_ns)
                    .map_err(|error| Error::Request(format!("work of an idle disk after request {}: {error}", self.came)))?;
                self.tally.idle(worked);
                Ok(true)
            }
        }
    }

    fn report(self) -> Report {
        let medium = self.scheme.medium();
        let blocks = |sectors: u64| sectors * self.sectors_per_block.1 / self.sectors_per_block.0;
        let sizes = (blocks(self.scheme.capacity_sectors()), blocks(self.used_sectors));
        self.tally.report(&self.settings.scheme.name, sizes, self.end_ns, self.scheme.counters(), medium.accounts(), &self.stalls)
    }
}
