//! Copying a range from its present home to the slices it will have: object runs of up to 1 MiB on both sides, holes stay
//! holes, nothing past the size. On emulated targets every run is paid on the device's clock.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use stripewise_layout::{GRANULE, View};

use super::guide::Guide;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::medium::{CHUNK_BYTES, DevicesMap, Handle, Open};
use crate::admin::metadata::publish::ObjectId;
use crate::admin::metadata::ranges::{data_within, joined, overlapping, put_parts};
use crate::admin::store::Store;
use stripewise_target::devices::{Access, now_ns, sleep_until};
use stripewise_target::kind::Kind;
use stripewise_target::names::object_key;

/// Longest single read or write: long enough that a disk's startup is small beside the transfer.
const RUN_BYTES: u64 = 1 << 20;

/// Copies within one file, from the home regions of a layout to its pending ones.
pub struct Copier<'a> {
    store: &'a Store<'a>,
    id: u64,
    view: View<'a>,
    size: u64,
    devices: Option<&'a dyn DevicesMap>,
    handles: BTreeMap<ObjectId, Box<dyn Handle>>,
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

    /// Reads what `[from, to)` has at home; returns the logical ranges that hold data, sorted, joined.
    fn read_chunk(&mut self, from: u64, to: u64) -> Result<Vec<(u64, u64)>> {
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.resize((to - from) as usize, 0);
        let mut run = std::mem::take(&mut self.run);
        let mut data = Vec::new();
        for extent in self.view.home().extents(from, to - from) {
            let path = self.store.object(extent.target, self.id, extent.plane)?;
            let end = extent.object_offset + extent.len;
            let mut at = extent.object_offset;
            while at < end {
                let object = self.handle((extent.target, extent.plane))?;
                let Some((start, stop)) = data_within(object, at, end).doing("read", &path)? else { break };
                let stop = stop.min(start + RUN_BYTES);
                run.clear();
                run.resize((stop - start) as usize, 0);
                object.read_at(&mut run, start).doing("read", &path)?;
                self.pay((extent.target, extent.plane), false, start, stop - start);
                put_parts(&extent, start, &run, from, &mut chunk, &mut data);
                at = stop;
            }
        }
        self.chunk = chunk;
        self.run = run;
        Ok(joined(data))
    }

    fn write_chunk(&mut self, from: u64, to: u64, data: &[(u64, u64)], again: bool) -> Result<()> {
        let chunk = std::mem::take(&mut self.chunk);
        let mut run = std::mem::take(&mut self.run);
        if again {
            self.punch_holes(from, to, data)?;
        }
        for extent in self.view.pending().extents(from, to - from) {
            // Runs that are contiguous in the object are gathered until one is long enough.
            run.clear();
            let mut run_at = extent.object_offset;
            let mut at = extent.object_offset;
            for (logical, len) in extent.pieces() {
                for (a, b) in overlapping(data, logical, logical + len) {
                    let object_at = at + (a - logical);
                    if run_at + run.len() as u64 != object_at || run.len() as u64 >= RUN_BYTES {
                        self.flush((extent.target, extent.plane), &run, run_at)?;
                        run.clear();
                        run_at = object_at;
                    }
                    run.extend_from_slice(chunk.get((a - from) as usize..(b - from) as usize).unwrap_or(&[]));
                }
                at += len;
            }
            self.flush((extent.target, extent.plane), &run, run_at)?;
        }
        self.chunk = chunk;
        self.run = run;
        Ok(())
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

    fn flush(&mut self, object: ObjectId, run: &[u8], at: u64) -> Result<()> {
        for (i, part) in run.chunks(RUN_BYTES as usize).enumerate() {
            let at = at + i as u64 * RUN_BYTES;
            let path = self.store.object(object.0, self.id, object.1)?;
            self.handle(object)?.write_at(part, at).doing("write", &path)?;
            self.pay(object, true, at, part.len() as u64);
        }
        Ok(())
    }

    fn handle(&mut self, object: ObjectId) -> Result<&dyn Handle> {
        match self.handles.entry(object) {
            Entry::Occupied(held) => Ok(&**held.into_mut()),
            Entry::Vacant(room) => {
                let path = self.store.object(object.0, self.id, object.1)?;
                let handle = self.store.medium.open(&path, Open::Write).doing("open", &path)?;
                Ok(&**room.insert(handle))
            }
        }
    }

    fn pay(&mut self, (target, plane): ObjectId, write: bool, offset: u64, bytes: u64) {
        let (Some(map), Ok(info)) = (self.devices, self.store.target(target)) else { return };
        let model = (info.kind == Kind::Emulated).then_some(&info.model);
        let reserved = map.devices().reserve(target, model, Access { write, object: object_key(self.id, plane), offset, bytes }, now_ns());
        self.paid_until_ns = self.paid_until_ns.max(reserved.end_ns);
        *self.service_ns.entry(target).or_default() += reserved.service_ns;
    }
}

/// The error of a move that its guide has stopped.
pub fn stopped() -> StoreError {
    StoreError::Stopped("the move was stopped; what has moved stays moved, the rest stays where it was, and the file is whole".into())
}
