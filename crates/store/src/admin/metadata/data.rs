//! Reading and writing a file's bytes through its layout, for verification: what a program would see, without the library.

use std::ops::Range;
use std::path::Path;

use stripewise_layout::View;
use stripewise_target::interface::{Object, Opening};

use super::publish::{make_objects, objects_reached};
use super::size::open_ctl;
use crate::admin::error::Result;
use crate::admin::objects;
use crate::admin::store::{Store, layout_error};

/// Reads at an offset; short only at the end of the file. Returns the bytes read.
///
/// # Errors
/// `NotFound` when the file or an object is missing, `Io`.
pub fn read_file(store: &Store<'_>, id: u64, offset: u64, buf: &mut [u8]) -> Result<usize> {
    let layout = store.layout(id)?;
    let size = super::size::sane_size(store, id, open_ctl(store, id, &layout)?.ctl())?;
    let want = (buf.len() as u64).min(size.saturating_sub(offset)) as usize;
    let Some(buf) = buf.get_mut(..want) else { return Ok(0) };
    buf.fill(0);
    each_piece(store, id, offset, want as u64, |object, path, at, part| {
        let Some(part) = buf.get_mut(part) else { return Ok(()) };
        objects::read_at(object, part, at, path).map(drop)
    })?;
    Ok(want)
}

/// Writes at an offset and raises the size.
///
/// # Errors
/// `NotFound` when the file or an object is missing, `Io`.
pub fn write_file(store: &Store<'_>, id: u64, offset: u64, buf: &[u8]) -> Result<()> {
    let layout = store.layout(id)?;
    let map = open_ctl(store, id, &layout)?;
    let (size, end) = (super::size::sane_size(store, id, map.ctl())?, offset + buf.len() as u64);
    let (there, reached) = (objects_reached(store, id, &layout, size)?, objects_reached(store, id, &layout, end)?);
    let new = reached.difference(&there).copied().collect();
    make_objects(store, id, &new, &new)?;
    each_piece(store, id, offset, buf.len() as u64, |object, path, at, part| objects::write_at(object, buf.get(part).unwrap_or(&[]), at, path))?;
    map.ctl().raise_size(end);
    Ok(())
}

fn each_piece(
    store: &Store<'_>,
    id: u64,
    offset: u64,
    len: u64,
    mut work: impl FnMut(&dyn Object, &Path, u64, Range<usize>) -> Result<()>,
) -> Result<()> {
    let path = store.part(id, "layout");
    let bytes = store.layout(id)?.encode().map_err(|e| layout_error(&path, e))?;
    let view = View::parse(&bytes).map_err(|e| layout_error(&path, e))?;
    for piece in view.home().pieces(offset, len) {
        let path = store.object(piece.target, id, piece.plane)?;
        if !objects::is_there(store, id, (piece.target, piece.plane))? {
            return Err(objects::missing(store, id, piece.target, &path));
        }
        let object = objects::open(store, id, (piece.target, piece.plane), Opening::BOTH)?;
        let from = (piece.logical - offset) as usize;
        work(&object, &path, piece.object_offset, from..from + piece.len as usize)?;
    }
    Ok(())
}
