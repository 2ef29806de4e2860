//! Cutting a file's objects to its size, for the verbs: after a move, and what a killed program left behind the end. Programs may be using the file; they
//! are kept out meanwhile as a truncate keeps them out.

use stripewise_layout::{Layout, View};
use stripewise_target::interface::{Object, Opening};

use super::publish::objects_in;
use super::size::sane_size;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::medium::FsyncPoint;
use crate::admin::objects::{self, ObjectId};
use crate::admin::store::{Store, layout_error};
use crate::ctl::Ctl;
use crate::sizing::{self, Cutter, Sizes};

/// How long a cut waits for programs that are inside an I/O.
const DRAIN_NS: u64 = 250_000_000;

struct Cutting<'a> {
    store: &'a Store<'a>,
    id: u64,
    layout: &'a Layout,
    ctl: Ctl,
    has_cut: bool,
}

impl Cutting<'_> {
    /// Objects with bytes of the file behind `size`, and where they should end.
    fn excess(&self, size: u64) -> Result<Vec<(ObjectId, u64)>> {
        let path = self.store.part(self.id, "layout");
        let bytes = self.layout.encode().map_err(|e| layout_error(&path, e))?;
        let view = View::parse(&bytes).map_err(|e| layout_error(&path, e))?;
        let mut found = Vec::new();
        for (target, plane) in objects_in(&self.layout.regions) {
            let len = objects::look(self.store, self.id, (target, plane))?.map_or(0, |facts| facts.len);
            if view.logical_end(target, plane, len) > size {
                found.push(((target, plane), view.end_of(target, plane, size)));
            }
        }
        Ok(found)
    }
}

impl Cutter for Cutting<'_> {
    type Error = StoreError;
    type Words = Ctl;

    fn words(&self) -> Ctl {
        self.ctl
    }

    fn drain(&mut self) -> Result<()> {
        let run = self.store.run_dir();
        if self.store.medium.grace(&run, DRAIN_NS).doing("wait for the programs in", &run)? {
            return Ok(());
        }
        let path = self.store.part(self.id, "ctl");
        Err(StoreError::InUse(format!("{}: a program stays inside an I/O; try again when it has ended", path.display())))
    }

    fn trim(&mut self, size: u64) -> Result<()> {
        // Looked at only now: a write that was under way had extended an object before it raised the size.
        for ((target, plane), end) in self.excess(size)? {
            let path = self.store.object(target, self.id, plane)?;
            let object = objects::open(self.store, self.id, (target, plane), Opening::BOTH)?;
            object.set_len(end).doing("cut", &path)?;
            self.has_cut = true;
            objects::sync(self.store, &path, &object, FsyncPoint::PunchData)?;
        }
        Ok(())
    }

    fn has_cut(&self) -> bool {
        self.has_cut
    }
}

/// Cuts objects that reach further than the file does, so that their lengths tell its size again, and with that ends a cut that was begun. False when a
/// program stays inside an I/O: then the next one who needs it cuts.
///
/// # Errors
/// Those of the medium.
pub fn trim(store: &Store<'_>, id: u64, layout: &Layout, ctl: Ctl) -> Result<bool> {
    let mut cutting = Cutting { store, id, layout, ctl, has_cut: false };
    let is_sound = |cutting: &Cutting<'_>| Ok::<bool, StoreError>(!ctl.is_cut_intended() && cutting.excess(sane_size(store, id, ctl)?)?.is_empty());
    if is_sound(&cutting)? {
        return Ok(true);
    }
    let _alone = store.lock_dir(id)?;
    // Whoever had the lock may have been at it.
    if is_sound(&cutting)? {
        return Ok(true);
    }
    match sizing::cut(&mut cutting, None) {
        Err(StoreError::InUse(_)) => Ok(false),
        result => result.map(|()| true),
    }
}
