//! Copying a range from its present home to the slices it will have: object runs of up to 1 MiB on both sides, holes stay
//! holes, nothing past the size. On emulated targets every run is paid on the device's clock.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{IoSlice, IoSliceMut};

use rustix::io::Errno;
use stripewise_layout::{GRANULE, View};
use stripewise_target::any::AnyObject;
use stripewise_target::batch::{Request, submit};
use stripewise_target::interface::{Object, Opening};
use stripewise_target::op::{Direction, Op, Outcome};
use stripewise_target::time::sleep_until;

use super::guide::Guide;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::medium::{CHUNK_BYTES, DevicesMap};
use crate::admin::metadata::ranges::{data_within, joined, overlapping, put_parts};
use crate::admin::objects::{self, ObjectId};
use crate::admin::store::Store;

/// Longest single read or write: long enough that a disk's startup is small beside the transfer.
const RUN_BYTES: u64 = 1 << 20;

/// Copies within one file, from the home regions of a layout to its pending ones.
pub struct Copier<'a> {
    store: &'a Store<'a>,
    id: u64,
    view: View<'a>,
    size: u64,
    devices: Option<&'a dyn DevicesMap>,
    handles: BTreeMap<ObjectId, AnyObject>,
    chunk: Vec<u8>,
    run: Vec<u8>,
    /// End of what the chunk before reserved: the clock is waited for one chunk behind, so that reads and writes overlap.
    paid_until_ns: u64,
    /// Service time that the copy took of each emulated target, ns.
    service_ns: BTreeMap<u32, u64>,
}

impl<'a> Copier<'a> {
    /// A copier for the move that `view` describes.
    pub fn new(store: &'a Store<'a>, id: u64, view: View<'a>, size: u64, devices: Option<&'a dyn DevicesMap>) -> Self {
        Self {
            store,
            id,
            view,
            size,
            devices,
            handles: BTreeMap::new(),
            chunk: Vec::new(),
            run: Vec::new(),
            paid_until_ns: 0,
            service_ns: BTreeMap::new(),
        }
    }

    /// Copies `[from, to)`. With `again`, what is a hole at home is made one in the copy too.
    ///
    /// # Errors
    /// `Io`, `Stopped` when the guide says so.
    pub fn copy(&mut self, from: u64, to: u64, again: bool, guide: &mut dyn Guide) -> Result<()> {
        let to = to.min(self.size);
        let mut at = from;
        while at < to {
            // As much as is held in memory at once.
            let end = to.min(at + guide.chunk_bytes().clamp(GRANULE, CHUNK_BYTES));
            if !guide.pace(end - at) {
                return Err(stopped());
            }
            let waited_for = self.paid_until_ns;
            let data = self.read_chunk(at, end)?;
            self.write_chunk(at, end, &data, again)?;
            sleep_until(waited_for);
            at = end;
        }
        Ok(())
    }

    /// The layout that it copies by.
    pub fn view(&self) -> View<'a> {
        self.view
    }

    /// Takes in that the file has grown. Where it has shrunk there may still be bytes of it in the copy, so that is no end.
    pub fn grow(&mut self, size: u64) {
        self.size = self.size.max(size);
    }

    /// How far into the file copies may reach.
    pub fn reach(&self) -> u64 {
        self.size
    }

    /// Waits until the devices have done all that was copied.
    pub fn settle(&mut self) {
        sleep_until(self.paid_until_ns);
    }

    /// Service time that the copy took of each emulated target, ns.
    pub fn service_ns(&self) -> &BTreeMap<u32, u64> {
        &self.service_ns
    }

    /// Reads what `[from, to)` has at home, all objects in one batch; returns the logical ranges that hold data, sorted, joined.
    fn read_chunk(&mut self, from: u64, to: u64) -> Result<Vec<(u64, u64)>> {
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.resize((to - from) as usize, 0);
        let mut runs = Vec::new();
        for extent in self.view.home().extents(from, to - from) {
            let path = self.store.object(extent.target, self.id, extent.plane)?;
            let end = extent.object_offset + extent.len;
            let mut at = extent.object_offset;
            let object = self.handle((extent.target, extent.plane))?;
            while at < end {
                let Some((start, stop)) = data_within(object, at, end).doing("read", &path)? else { break };
                let stop = stop.min(start + RUN_BYTES);
                runs.push((extent, start, (stop - start) as usize));
                at = stop;
            }
        }
        let mut room = std::mem::take(&mut self.run);
        room.resize(runs.iter().map(|(.., len)| len).sum(), 0);
        let mut rest = room.as_mut_slice();
        let mut parts = Vec::with_capacity(runs.len());
        for (.., len) in &runs {
            let (part, behind) = rest.split_at_mut(*len);
            parts.push([IoSliceMut::new(part)]);
            rest = behind;
        }
        let ops = runs.iter().zip(&mut parts).map(|((extent, start, _), part)| ((extent.target, extent.plane), Op::read(part, *start)));
        let outcomes = self.complete("read", ops)?;
        self.note(&outcomes);
        let (mut data, mut at) = (Vec::new(), 0);
        for ((extent, start, len), (_, outcome)) in runs.iter().zip(&outcomes) {
            // A read is short where the object ends: what is behind it is zeros.
            room.get_mut(at + outcome.done as usize..at + len).unwrap_or(&mut []).fill(0);
            put_parts(extent, *start, room.get(at..at + len).unwrap_or(&[]), from, &mut chunk, &mut data);
            at += len;
        }
        self.chunk = chunk;
        self.run = room;
        Ok(joined(data))
    }

    /// Writes what a chunk holds of `data` to its new home, all objects in one batch: runs of it that are contiguous in an object are one operation, from
    /// where they lie in the chunk.
    fn write_chunk(&mut self, from: u64, to: u64, data: &[(u64, u64)], again: bool) -> Result<()> {
        if again {
            self.punch_holes(from, to, data)?;
        }
        let chunk = std::mem::take(&mut self.chunk);
        let mut runs: Vec<Run<'_>> = Vec::new();
        for extent in self.view.pending().extents(from, to - from) {
            let object = (extent.target, extent.plane);
            self.handle(object)?;
            let mut at = extent.object_offset;
            for (logical, len) in extent.pieces() {
                for (a, b) in overlapping(data, logical, logical + len) {
                    let bytes = chunk.get((a - from) as usize..(b - from) as usize).unwrap_or(&[]);
                    for (bytes, at) in bytes.chunks(RUN_BYTES as usize).zip((at + (a - logical)..).step_by(RUN_BYTES as usize)) {
                        match runs.last_mut().filter(|run| run.is_continued(object, at, bytes.len() as u64)) {
                            Some(run) => run.push(bytes),
                            None => runs.push(Run { object, at, len: bytes.len() as u64, parts: vec![IoSlice::new(bytes)] }),
                        }
                    }
                }
                at += len;
            }
        }
        let outcomes = self.complete("write", runs.iter().map(|run| (run.object, Op::write(&run.parts, run.at))))?;
        drop(runs);
        self.chunk = chunk;
        self.note(&outcomes);
        Ok(())
    }

    /// Submits operations on objects that are open, and waits until their bytes have moved, but for no emulated device; returns the target and the outcome of
    /// each.
    fn complete<'o>(&'o self, doing: &'static str, ops: impl Iterator<Item = (ObjectId, Op<'o>)>) -> Result<Vec<(u32, Outcome)>> {
        let (ids, mut batch): (Vec<ObjectId>, Vec<Request<'o, AnyObject>>) =
            ops.filter_map(|(id, op)| Some((id, Request::new(self.handles.get(&id)?, op)))).unzip();
        submit(&mut batch).finish();
        let mut outcomes = Vec::with_capacity(ids.len());
        for ((target, plane), request) in ids.into_iter().zip(&batch) {
            let op = &request.op;
            let is_cut_short = op.direction() == Direction::Write && op.outcome.done < op.len();
            let done = op.outcome.result().and(if is_cut_short { Err(Errno::NOSPC) } else { Ok(()) });
            done.doing(doing, &self.store.object(target, self.id, plane)?)?;
            outcomes.push((target, op.outcome));
        }
        Ok(outcomes)
    }

    /// Takes in what operations have reserved.
    fn note(&mut self, outcomes: &[(u32, Outcome)]) {
        for (target, outcome) in outcomes {
            self.paid_until_ns = self.paid_until_ns.max(outcome.end_ns);
            *self.service_ns.entry(*target).or_default() += outcome.service_ns;
        }
    }

    /// Makes holes of what an earlier pass may have copied where the home has none of `data` (sorted, joined) now.
    fn punch_holes(&mut self, from: u64, to: u64, data: &[(u64, u64)]) -> Result<()> {
        let mut at = from;
        for &(start, end) in data.iter().chain([&(to, to)]) {
            for extent in self.view.pending().extents(at, start.saturating_sub(at)) {
                let path = self.store.object(extent.target, self.id, extent.plane)?;
                self.handle((extent.target, extent.plane))?.punch(extent.object_offset, extent.len).doing("punch", &path)?;
            }
            at = end;
        }
        Ok(())
    }

    fn handle(&mut self, object: ObjectId) -> Result<&AnyObject> {
        match self.handles.entry(object) {
            Entry::Occupied(held) => Ok(held.into_mut()),
            Entry::Vacant(room) => Ok(room.insert(match self.devices {
                Some(map) => objects::open_behind(self.store, map.devices(), self.id, object, Opening::BOTH)?,
                None => objects::open(self.store, self.id, object, Opening::BOTH)?,
            })),
        }
    }
}

/// A stretch of an object that is written at once, and the parts of a chunk that go there.
struct Run<'c> {
    object: ObjectId,
    at: u64,
    len: u64,
    parts: Vec<IoSlice<'c>>,
}

impl<'c> Run<'c> {
    /// Whether what goes to this place can join it.
    fn is_continued(&self, object: ObjectId, at: u64, len: u64) -> bool {
        self.object == object && self.at + self.len == at && self.len + len <= RUN_BYTES
    }

    fn push(&mut self, bytes: &'c [u8]) {
        self.len += bytes.len() as u64;
        self.parts.push(IoSlice::new(bytes));
    }
}

/// The error of a move that its guide has stopped.
pub fn stopped() -> StoreError {
    StoreError::Stopped("the move was stopped; what has moved stays moved, the rest stays where it was, and the file is whole".into())
}
