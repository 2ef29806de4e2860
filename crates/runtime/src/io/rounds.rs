//! A request as several operations on objects: one for what it has on a target in a window. They go to their targets in rounds; those of a round are under way
//! at the same time, and one that is too long for a round goes on in the next. All lies on the stack, which a thread may have little of.

use super::{Asked, Moved, object_for, settle};
use crate::store::OpenObject;
use core::mem::MaybeUninit;
use stripewise_layout::{Extent, ExtentPieces};
use stripewise_target::batch::{Request, submit};
use stripewise_target::op::Memory;

/// Operations of one round.
const OPS: usize = 8;
/// Stretches of memory of one round: at 4 KiB stripes half a mebibyte.
const STRETCHES: usize = 128;

/// An extent of the request, or what earlier rounds have left of it.
struct Rest<'v> {
    extent: Extent<'v>,
    /// Bytes of it that are in operations already.
    planned: u64,
    pieces: ExtentPieces<'v>,
    /// What is left of the piece that did not fit.
    head: Option<(u64, u64)>,
}

impl<'v> Rest<'v> {
    fn of(extent: Extent<'v>) -> Self {
        Self { extent, planned: 0, pieces: extent.pieces(), head: None }
    }

    fn next_piece(&mut self) -> Option<(u64, u64)> {
        self.head.take().or_else(|| self.pieces.next())
    }

    /// Where it goes on in the file.
    fn first(&self) -> u64 {
        first_missing(&self.extent, self.planned)
    }
}

/// The first byte of the file that lies behind the first `done` bytes of an extent.
fn first_missing(extent: &Extent<'_>, mut done: u64) -> u64 {
    for (logical, len) in extent.pieces() {
        if done < len {
            return logical + done;
        }
        done -= len;
    }
    u64::MAX
}

/// An operation of a round.
struct Planned<'v> {
    extent: Extent<'v>,
    /// Bytes of the extent before it.
    before: u64,
    object: OpenObject,
    /// Stretches of memory.
    stretches: usize,
}

struct Round<'v> {
    memory: [Memory; STRETCHES],
    used: usize,
    planned: [Option<Planned<'v>>; OPS],
    count: usize,
}

impl<'v> Round<'v> {
    const fn new() -> Self {
        Self { memory: [const { Memory { base: core::ptr::null_mut(), len: 0 } }; STRETCHES], used: 0, planned: [const { None }; OPS], count: 0 }
    }

    /// Plans an operation for as much of an extent as fits; what does not is given back.
    fn plan(&mut self, asked: &Asked<'_>, mut rest: Rest<'v>, object: OpenObject) -> Option<Rest<'v>> {
        let (first, before) = (self.used, rest.planned);
        'filling: while let Some((logical, len)) = rest.next_piece() {
            let mut taken = 0;
            for stretch in asked.buffers.stretches(logical - asked.at, len) {
                let Some(place) = self.memory.get_mut(self.used) else {
                    rest.head = Some((logical + taken, len - taken));
                    break 'filling;
                };
                *place = stretch;
                self.used += 1;
                taken += stretch.len as u64;
                rest.planned += stretch.len as u64;
            }
        }
        if let Some(place) = self.planned.get_mut(self.count) {
            *place = Some(Planned { extent: rest.extent, before, object, stretches: self.used - first });
            self.count += 1;
        }
        rest.head.is_some().then_some(rest)
    }

    /// Whether another operation fits.
    fn has_room(&self) -> bool {
        self.count < OPS && self.used < STRETCHES
    }

    /// Moves its bytes.
    fn run(&mut self, asked: &Asked<'_>, moved: &mut Moved) {
        let mut requests = [const { MaybeUninit::<Request<'_, OpenObject>>::uninit() }; OPS];
        let mut memory = self.memory.get_mut(..self.used).unwrap_or(&mut []);
        let mut count = 0;
        for (place, planned) in requests.iter_mut().zip(self.planned.iter().flatten()) {
            let Some((own, others)) = core::mem::take(&mut memory).split_at_mut_checked(planned.stretches) else { break };
            memory = others;
            // SAFETY: the program's own, for the length of its call; the kernel finds what is no good address.
            place.write(Request::new(&planned.object, unsafe { asked.op(own, planned.extent.object_offset + planned.before) }));
            count += 1;
        }
        // SAFETY: as many as were written above.
        let requests = unsafe { core::slice::from_raw_parts_mut(requests.as_mut_ptr().cast::<Request<'_, OpenObject>>(), count) };
        moved.until_ns = moved.until_ns.max(submit(requests).finish());
        for (request, planned) in requests.iter().zip(self.planned.iter().flatten()) {
            let (done, error) = settle(asked, &request.op, planned.extent.target);
            moved.some |= done > 0;
            if done < request.op.len() {
                moved.stopped_at(first_missing(&planned.extent, planned.before + done), error);
            }
        }
    }
}

/// Moves the bytes of a request, all of which lie in the layout.
#[inline(never)] // What it has on the stack most requests do not need.
pub fn run(asked: &Asked<'_>) -> Moved {
    let mut moved = Moved { prefix: asked.at + asked.len, some: false, error: None, until_ns: 0 };
    let mut extents = asked.source.extents(asked.at, asked.len);
    let mut rest: Option<Rest<'_>> = None;
    loop {
        let mut round = Round::new();
        while round.has_room() {
            let Some(next) = rest.take().or_else(|| extents.next().map(Rest::of)) else { break };
            // Behind what has failed nothing counts.
            if next.first() >= moved.prefix {
                continue;
            }
            let len = next.extent.len - next.planned;
            match object_for(asked, next.extent.target, next.extent.plane, next.extent.object_offset + next.planned, len) {
                Ok(object) => rest = round.plan(asked, next, object),
                Err(errno) => moved.stopped_at(next.first(), Some(errno)),
            }
        }
        if round.count == 0 {
            return moved;
        }
        round.run(asked, &mut moved);
    }
}
