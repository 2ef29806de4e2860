//! Moving one group of neighbouring spans from their present home to a new one: the state machine of a move, the same whether
//! programs use the file or not.
//!
//! copying (pending slices durable in the layout) -> passes over the dirty bitmap -> frozen -> publishing (by compare-and-swap)
//! -> the new layout, durable -> grace -> the old slices punched, objects of a plane that no region uses any more removed. The durable generation decides after a kill: before the
//! publish the pending slices are dropped, after it the retired ones.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use stripewise_layout::{Layout, LayoutError, MovePhase, Region, Span, View, splice, within};

use super::copy::Copier;
use super::error::{Context, Result, StoreError};
use super::medium::{CtlMap, DevicesMap, FsyncPoint, Open};
use super::publish::{ObjectId, make_objects, objects_in, objects_of, publish_layout, remove_objects, sync_objects};
use super::ranges::punch_slices;
use super::store::{Store, layout_error};
use crate::ctl::{Ctl, DIRTY_BITS, MoveState};
use crate::devices::now_ns;

/// Smallest chunk of the dirty bitmap: a pass copies at least so much around each write.
const CHUNK_SHIFT_MIN: u32 = 16;
/// Dirty chunks at which the span is frozen and the rest copied: 4 MiB of the smallest chunks, some milliseconds of work.
const FEW_CHUNKS: usize = 64;
/// Passes after which the span is frozen however many chunks are dirty: the writers are faster than the copy.
const PASSES_MAX: usize = 16;
/// How long writers may be kept waiting before one of them aborts the freeze.
const FREEZE_NS: u64 = 500_000_000;
/// Freezes that may be aborted before the move is given up.
const FREEZES_MAX: usize = 10;

/// One file whose bytes are being moved.
pub struct Mover<'a> {
    store: &'a Store<'a>,
    id: u64,
    ctl: &'a dyn CtlMap,
    devices: Option<&'a dyn DevicesMap>,
    /// The layout as it should be published next: what was punched no longer stands in it.
    layout: Layout,
    /// Whether the layout on disk still names what was punched.
    owes_publish: bool,
}

impl<'a> Mover<'a> {
    /// A mover for a file whose layout shows no move.
    pub fn new(store: &'a Store<'a>, id: u64, layout: Layout, ctl: &'a dyn CtlMap, devices: Option<&'a dyn DevicesMap>) -> Self {
        Self { store, id, ctl, devices, layout, owes_publish: false }
    }

    /// The layout as it is now.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    fn ctl(&self) -> Ctl {
        self.ctl.ctl()
    }

    /// Moves `span` to `new`, whose regions cover it and stand in the free plane.
    ///
    /// # Errors
    /// Those of the medium, `InUse` when writers keep aborting; the pending slices are then dropped.
    pub fn shift(&mut self, span: Span, new: Vec<Region>) -> Result<()> {
        let retired = self.edit(within(&self.layout.regions, span))?;
        let regions = self.edit(splice(&self.layout.regions, &new, span))?;
        let copying =
            Layout { generation: self.layout.generation + 1, pending: new, retired: vec![], phase: MovePhase::Copying, span, ..self.layout.clone() };
        let path = self.store.part(self.id, "layout");
        let bytes = copying.encode().map_err(|e| refused(&path, e))?;
        let view = View::parse(&bytes).map_err(|e| layout_error(&path, e))?;
        self.sweep()?;
        make_objects(self.store, self.id, &objects_in(&copying.pending))?;
        self.publish(&copying)?;
        if let Err(e) = self.fill(&view, span) {
            self.ctl().end_move();
            // The first error is the one to report; what cannot be undone now is undone by the next apply or fsck.
            let _ = self.drop_pending();
            return Err(e);
        }
        let published = Layout { generation: copying.generation + 1, regions, pending: vec![], retired, phase: MovePhase::Punching, span, ..copying };
        self.publish(&published)?;
        self.ctl().end_move();
        self.grace()?;
        self.finish()
    }

    /// Replaces the regions of a span that holds no byte: nothing to copy, nothing to punch.
    ///
    /// # Errors
    /// Those of the medium.
    pub fn redescribe(&mut self, span: Span, new: Vec<Region>) -> Result<()> {
        let regions = self.edit(splice(&self.layout.regions, &new, span))?;
        self.sweep()?;
        let objects = objects_in(&regions);
        make_objects(self.store, self.id, &objects)?;
        self.layout.regions = regions;
        self.owes_publish = true;
        self.cut(&objects)
    }

    /// Cuts objects where the home's bytes end: the old regions may have reached further, and a length tells the size.
    fn cut(&self, objects: &BTreeSet<ObjectId>) -> Result<()> {
        let path = self.store.part(self.id, "layout");
        let bytes = self.layout.encode().map_err(|e| layout_error(&path, e))?;
        let view = View::parse(&bytes).map_err(|e| layout_error(&path, e))?;
        let size = self.ctl().size();
        for &(target, plane) in objects {
            let path = self.store.object(target, self.id, plane)?;
            let end = view.end_of(target, plane, size);
            if self.store.medium.stat(&path).doing("look at", &path)?.is_some_and(|s| s.size > end) {
                let object = self.store.medium.open(&path, Open::Write).doing("open", &path)?;
                object.set_len(end).doing("cut", &path)?;
                object.sync(FsyncPoint::PunchData).doing("flush", &path)?;
            }
        }
        Ok(())
    }

    /// Publishes what earlier steps left for the next one to publish.
    ///
    /// # Errors
    /// Those of the medium.
    pub fn close(&mut self) -> Result<()> {
        if self.owes_publish {
            let next = Layout { generation: self.layout.generation + 1, ..self.layout.clone() };
            self.publish(&next)?;
        }
        self.sweep()
    }

    /// Removes objects that the layout on disk does not name: what a kill left, and planes that regions without bytes have left. A new
    /// home must not find old bytes where it is going to have holes.
    fn sweep(&self) -> Result<()> {
        if self.owes_publish {
            return Ok(());
        }
        let used = objects_of(&self.layout);
        let all = (0..self.store.targets.len() as u32).flat_map(|t| [(t, 0), (t, 1)]);
        remove_objects(self.store, self.id, &all.filter(|o| !used.contains(o)).collect())
    }

    /// Drops what an interrupted move left: pending slices before the publish, retired ones after it.
    ///
    /// # Errors
    /// Those of the medium.
    pub fn recover(&mut self) -> Result<()> {
        self.ctl().end_move();
        match self.layout.phase {
            MovePhase::None => return Ok(()),
            MovePhase::Copying => self.drop_pending()?,
            MovePhase::Punching => {
                self.grace()?;
                self.finish()?;
            }
        }
        self.close()
    }

    fn edit<T>(&self, result: std::result::Result<T, LayoutError>) -> Result<T> {
        result.map_err(|e| StoreError::Invalid(format!("{}: {e}", self.store.part(self.id, "layout").display())))
    }

    fn publish(&mut self, layout: &Layout) -> Result<()> {
        publish_layout(self.store, self.id, layout)?;
        self.ctl().header().generation.store(layout.generation, Ordering::SeqCst);
        self.layout = layout.clone();
        self.owes_publish = false;
        Ok(())
    }

    fn grace(&self) -> Result<()> {
        let run = self.store.run_dir()?;
        self.store.medium.grace(&run).doing("wait for the programs in", &run)
    }

    /// Copies until nothing is left and the move may be published.
    fn fill(&mut self, view: &View<'_>, span: Span) -> Result<()> {
        let ctl = self.ctl();
        let end = span.end().min(ctl.size().max(span.start));
        let mut shift = CHUNK_SHIFT_MIN;
        while (end - span.start) >> shift >= DIRTY_BITS {
            shift += 1;
        }
        let mut word = ctl.begin_move(span.start, span.len, shift);
        // Who entered an I/O before the word stood there sets no dirty bit: wait for them, then copy.
        self.grace()?;
        let mut copier = Copier::new(self.store, self.id, *view, ctl.size(), self.devices);
        copier.copy(span.start, end, false)?;
        for _ in 0..FREEZES_MAX {
            for _ in 0..PASSES_MAX {
                if self.pass(&mut copier, span, shift)? <= FEW_CHUNKS {
                    break;
                }
            }
            copier.settle();
            ctl.header().freeze_deadline_ns.store(now_ns().saturating_add(FREEZE_NS), Ordering::SeqCst);
            if !ctl.advance(word, MoveState::Frozen) {
                return Err(self.stolen());
            }
            let frozen = word & !7 | MoveState::Frozen as u64;
            self.pass(&mut copier, span, shift)?;
            sync_objects(self.store, self.id, &objects_in(&self.layout.pending), FsyncPoint::SliceData)?;
            if ctl.advance(frozen, MoveState::Publishing) {
                copier.settle();
                return Ok(());
            }
            let aborted = word & !7 | MoveState::Aborted as u64;
            if !ctl.advance(aborted, MoveState::Copying) {
                return Err(self.stolen());
            }
            word = word & !7 | MoveState::Copying as u64;
        }
        Err(StoreError::InUse(format!(
            "{}: its writers would not wait for the move of bytes {} on; run `stripewise apply` again when they are done",
            self.store.part(self.id, "layout").display(),
            span.start
        )))
    }

    fn stolen(&self) -> StoreError {
        StoreError::InUse(format!("{}: another mover took over; wait until it is done", self.store.part(self.id, "ctl").display()))
    }

    /// Takes and clears the dirty bits, waits until those who set them are done, copies their chunks; returns how many there were.
    fn pass(&self, copier: &mut Copier<'_>, span: Span, shift: u32) -> Result<usize> {
        let ctl = self.ctl();
        let mut chunks = Vec::new();
        copier.grow(ctl.size());
        let words = (span.len.saturating_sub(1) >> shift).min(DIRTY_BITS - 1) / 64 + 1;
        for word in 0..words {
            let mut bits = ctl.take_dirty(word);
            while bits != 0 {
                chunks.push(word * 64 + u64::from(bits.trailing_zeros()));
                bits &= bits - 1;
            }
        }
        self.grace()?;
        for chunk in &chunks {
            let from = span.start.saturating_add(chunk << shift);
            // The last bit stands for all that no bit is left for.
            let to = if *chunk + 1 == DIRTY_BITS { span.end() } else { from.saturating_add(1 << shift).min(span.end()) };
            copier.copy(from, to, true)?;
        }
        Ok(chunks.len())
    }

    /// Punches the retired slices durably, or removes their objects; the layout without them is published by the next step.
    fn finish(&mut self) -> Result<()> {
        self.punch(MovePhase::Punching)?;
        self.layout.retired = vec![];
        self.settle_layout();
        Ok(())
    }

    fn drop_pending(&mut self) -> Result<()> {
        self.punch(MovePhase::Copying)?;
        self.layout.pending = vec![];
        self.settle_layout();
        self.close()
    }

    fn settle_layout(&mut self) {
        self.layout.phase = MovePhase::None;
        self.layout.span = Span::default();
        self.owes_publish = true;
    }

    fn punch(&self, phase: MovePhase) -> Result<()> {
        let path = self.store.part(self.id, "layout");
        let bytes = self.layout.encode().map_err(|e| layout_error(&path, e))?;
        let view = View::parse(&bytes).map_err(|e| layout_error(&path, e))?;
        let (table, regions) = match phase {
            MovePhase::Copying => (view.pending(), &self.layout.pending),
            _ => (view.retired(), &self.layout.retired),
        };
        let size = self.ctl().size();
        let home = objects_in(&self.layout.regions);
        let (kept, left): (BTreeSet<ObjectId>, BTreeSet<ObjectId>) = objects_in(regions).into_iter().partition(|o| home.contains(o));
        for (target, plane) in kept {
            let path = self.store.object(target, self.id, plane)?;
            if self.store.medium.stat(&path).doing("look at", &path)?.is_none() {
                continue;
            }
            let object = self.store.medium.open(&path, Open::Write).doing("open", &path)?;
            punch_slices(object.as_ref(), table, (target, plane)).doing("punch", &path)?;
            // Nobody writes now (offline): cut the object where its home bytes end, so that its length tells the size again.
            let end = view.end_of(target, plane, size);
            if object.len().doing("look at", &path)? > end {
                object.set_len(end).doing("cut", &path)?;
            }
            object.sync(FsyncPoint::PunchData).doing("flush", &path)?;
        }
        remove_objects(self.store, self.id, &left)
    }
}

/// Why a move cannot be written down. Old and new regions of one plane that overlap would lie on each other.
fn refused(path: &std::path::Path, e: LayoutError) -> StoreError {
    match e {
        LayoutError::Collision { home, other } => StoreError::Invalid(format!(
            "{}: the new region at byte {other} would lie on bytes of the present one at byte {home} in the same plane; name other targets, or give the present regions' placements first",
            path.display()
        )),
        e => StoreError::Invalid(format!("{}: {e}", path.display())),
    }
}
