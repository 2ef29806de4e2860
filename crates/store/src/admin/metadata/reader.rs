//! Reading a managed file through its layout without the preloaded library, and filling a new one: what cat, export and adopt share.
//! Holes stay holes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use stripewise_layout::View;
use stripewise_target::any::AnyObject;
use stripewise_target::interface::Opening;

use super::ranges::{data_within, joined, overlapping, put_parts};
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::medium::{CHUNK_BYTES, DevicesMap};
use crate::admin::objects::{self, ObjectId};
use crate::admin::store::{Store, layout_error};

/// The layout of a file in the form that [`View`] reads.
///
/// # Errors
/// As [`Store::layout`].
pub fn layout_bytes(store: &Store<'_>, id: u64) -> Result<Vec<u8>> {
    store.layout(id)?.encode().map_err(|e| layout_error(&store.part(id, "layout"), e))
}

/// The view of a layout's bytes.
///
/// # Errors
/// `Damaged`, `Newer`.
pub fn view<'a>(store: &Store<'_>, id: u64, bytes: &'a [u8]) -> Result<View<'a>> {
    View::parse(bytes).map_err(|e| layout_error(&store.part(id, "layout"), e))
}

/// The objects of one file, opened as they are needed.
pub struct Objects<'a> {
    store: &'a Store<'a>,
    id: u64,
    view: View<'a>,
    opening: Opening<'static>,
    /// Its operations are counted there, and take an emulated device's time.
    devices: Option<&'a dyn DevicesMap>,
    handles: BTreeMap<ObjectId, AnyObject>,
}

impl<'a> Objects<'a> {
    /// The objects of file `id`, laid out as `view` says.
    pub fn new(store: &'a Store<'a>, id: u64, view: View<'a>, opening: Opening<'static>) -> Self {
        Self { store, id, view, opening, devices: None, handles: BTreeMap::new() }
    }

    /// The same behind the clocks of their devices.
    pub fn behind(self, devices: Option<&'a dyn DevicesMap>) -> Self {
        Self { devices, ..self }
    }

    fn handle(&mut self, object: ObjectId) -> Result<&AnyObject> {
        match self.handles.entry(object) {
            Entry::Occupied(held) => Ok(held.into_mut()),
            Entry::Vacant(room) => {
                if !objects::is_there(self.store, self.id, object)? {
                    return Err(objects::missing(self.store, self.id, object.0, &self.store.object(object.0, self.id, object.1)?));
                }
                Ok(room.insert(match self.devices {
                    Some(map) => objects::open_behind(self.store, map.devices(), self.id, object, self.opening)?,
                    None => objects::open(self.store, self.id, object, self.opening)?,
                }))
            }
        }
    }

    /// Reads all of `buf` from byte `from` of the file on; what is a hole is zeros. Returns the ranges that hold data.
    ///
    /// # Errors
    /// `NotFound` for a missing object, `Io`.
    pub fn read(&mut self, from: u64, buf: &mut [u8]) -> Result<Vec<(u64, u64)>> {
        buf.fill(0);
        let (mut data, mut run) = (Vec::new(), Vec::new());
        let view = self.view;
        for extent in view.home().extents(from, buf.len() as u64) {
            let path = self.store.object(extent.target, self.id, extent.plane)?;
            let object = self.handle((extent.target, extent.plane))?;
            let end = extent.object_offset + extent.len;
            let mut at = extent.object_offset;
            while at < end {
                let Some((start, stop)) = data_within(object, at, end).doing("read", &path)? else { break };
                run.clear();
                run.resize((stop - start) as usize, 0);
                objects::read_at(object, &mut run, start, &path)?;
                put_parts(&extent, start, &run, from, buf, &mut data);
                at = stop;
            }
        }
        Ok(joined(data))
    }

    /// Writes `buf` at byte `from` of the file.
    ///
    /// # Errors
    /// `Io`.
    pub fn write(&mut self, from: u64, buf: &[u8]) -> Result<()> {
        let mut run = Vec::new();
        let view = self.view;
        for extent in view.home().extents(from, buf.len() as u64) {
            run.clear();
            for (logical, len) in extent.pieces() {
                let place = (logical - from) as usize;
                run.extend_from_slice(buf.get(place..place + len as usize).unwrap_or(&[]));
            }
            let path = self.store.object(extent.target, self.id, extent.plane)?;
            objects::write_at(self.handle((extent.target, extent.plane))?, &run, extent.object_offset, &path)?;
        }
        Ok(())
    }

    /// Opens all objects of `[from, to)`, so that what is missing is known before the first byte.
    ///
    /// # Errors
    /// As [`Objects::read`].
    fn open_all(&mut self, from: u64, to: u64) -> Result<()> {
        let view = self.view;
        for extent in view.home().extents(from, to.saturating_sub(from)) {
            self.handle((extent.target, extent.plane))?;
        }
        Ok(())
    }

    /// Reads `[from, to)` piece by piece, and hands over each stretch of data; nothing unless all of its objects can be opened. With `holes` everything, to an
    /// output that nobody takes back: errors then say that it is incomplete.
    ///
    /// # Errors
    /// Those of reading and of `each`; false from `each` ends it early.
    pub fn stream(&mut self, from: u64, to: u64, holes: bool, mut each: impl FnMut(u64, &[u8]) -> Result<bool>) -> Result<()> {
        self.open_all(from, to)?;
        let cut_short = |e: StoreError, at: u64| match holes {
            true => e.and(&format!("the output is incomplete: it has at most {} of {} bytes", at - from, to - from)),
            false => e,
        };
        let mut buf = vec![0u8; CHUNK_BYTES.min(to.saturating_sub(from)) as usize];
        let mut at = from;
        while at < to {
            self.store.go_on()?;
            let end = to.min(at + CHUNK_BYTES);
            let Some(chunk) = buf.get_mut(..(end - at) as usize) else { break };
            let data = self.read(at, chunk).map_err(|e| if at > from { cut_short(e, at) } else { e })?;
            let ranges = if holes { vec![(at, end)] } else { data };
            for (a, b) in overlapping(&ranges, at, end) {
                if !each(a, chunk.get((a - at) as usize..(b - at) as usize).unwrap_or(&[])).map_err(|e| cut_short(e, b))? {
                    return Ok(());
                }
            }
            at = end;
        }
        Ok(())
    }
}
