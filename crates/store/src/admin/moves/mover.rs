//! Moving one group of neighbouring spans from their present home to a new one: the state machine of a move, the same whether programs use the file
//! or not. [`super::protocol`] has its order; here is what each of its steps does to files.
//!
//! copying (pending slices durable in the layout) -> passes over the dirty bitmap -> frozen -> publishing (by compare-and-swap) -> the new layout,
//! durable -> grace -> the old slices punched, objects of a plane that no region uses any more removed. The durable generation decides after a kill:
//! before the publish the pending slices are dropped, after it the retired ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use stripewise_layout::{Layout, LayoutError, MovePhase, Origin, Region, Span, View, splice, within};
use stripewise_target::interface::{Object, Opening};
use stripewise_target::time::now_ns;

use super::copy::{Copier, stopped};
use super::guide::{Guide, Unguided};
use super::protocol::{self, Limits, Work};
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::id_text;
use crate::admin::medium::{CtlMap, DevicesMap, FsyncPoint};
use crate::admin::metadata::cutting;
use crate::admin::metadata::publish::{
    drop_prepared, make_objects, objects_in, objects_of, prepare_layout, publish_layout, put_in_place, remove_objects, sync_slices,
};
use crate::admin::metadata::ranges::punch_slices;
use crate::admin::metadata::size::{mirror_size, sane_size};
use crate::admin::objects::{self, ObjectId};
use crate::admin::store::{Store, layout_error};
use crate::ctl::{Ctl, DIRTY_BITS, FLAG_UNLINKED};
use crate::moving::{MoveState, Publication, Words, publish};

/// Smallest chunk of the dirty bitmap: a pass copies at least so much around each write.
const CHUNK_SHIFT_MIN: u32 = 16;
/// When the span is frozen, how long, and how often. A mebibyte is some milliseconds of work.
const LIMITS: Limits = Limits { few_chunks: 16, passes: 16, freeze_ns: 250_000_000, freezes: 20 };
/// How long one look at the slots lasts before the guide is asked whether to go on.
const PATIENCE_NS: u64 = 100_000_000;

/// One file whose bytes are being moved.
pub struct Mover<'a> {
    store: &'a Store<'a>,
    id: u64,
    ctl: &'a dyn CtlMap,
    devices: Option<&'a dyn DevicesMap>,
    /// The layout as it should be published next: what was punched no longer stands in it.
    layout: Layout,
    /// Whether the layout on disk still names what was punched, or has another origin.
    owes_publish: bool,
    /// What the layout's origin becomes; none where it stays.
    origin: Option<Origin>,
    /// Lengths in ns of the freezes, and whether each ended in a publish.
    freezes: Vec<(u64, bool)>,
    /// Service time that copies took of each emulated target, ns.
    service_ns: BTreeMap<u32, u64>,
}

impl<'a> Mover<'a> {
    /// A mover for a file; whoever makes one holds the store's mover lock, or the file for itself. What an earlier mover left is finished or undone.
    ///
    /// # Errors
    /// Those of the medium, `Stopped`.
    pub fn open(store: &'a Store<'a>, id: u64, ctl: &'a dyn CtlMap, devices: Option<&'a dyn DevicesMap>, guide: &mut dyn Guide) -> Result<Self> {
        if let Some(owed) = protocol::end(&ctl.ctl()) {
            publish(&ctl.ctl(), owed, |generation| put_in_place(store, id, generation))?;
        }
        let mut mover = Self {
            store,
            id,
            ctl,
            devices,
            layout: store.layout(id)?,
            owes_publish: false,
            origin: None,
            freezes: vec![],
            service_ns: BTreeMap::new(),
        };
        mover.recover(guide)?;
        Ok(mover)
    }

    /// Lengths in ns of the freezes that ended in a publish, and the number of the others.
    pub fn freezes(&self) -> (Vec<u64>, usize) {
        let published: Vec<u64> = self.freezes.iter().filter(|f| f.1).map(|f| f.0).collect();
        let aborted = self.freezes.len() - published.len();
        (published, aborted)
    }

    /// Service time that copies took of each emulated target, ns.
    pub fn service_ns(&self) -> &BTreeMap<u32, u64> {
        &self.service_ns
    }

    /// The layout as it is now.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The origin that the layout gets by what follows, if another: with the first span that is published, or by [`Mover::settle_origin`], as the store's
    /// own does, for a file of which a part alone has that is still somebody's.
    pub fn gives(&mut self, origin: Option<Origin>) {
        self.origin = origin;
    }

    /// All spans are where they should be: [`Mover::close`] publishes the origin where none of them did.
    pub fn settle_origin(&mut self) {
        if let Some(origin) = self.origin.filter(|origin| *origin != self.layout.origin) {
            self.layout.origin = origin;
            self.owes_publish = true;
        }
    }

    fn ctl(&self) -> Ctl {
        self.ctl.ctl()
    }

    /// Moves `span` to `new`, whose regions cover it and stand in the free plane.
    ///
    /// # Errors
    /// Those of the medium, `Stopped`, `InUse` when writers keep aborting or the file is mapped; the pending slices are then dropped.
    pub fn shift(&mut self, span: Span, new: Vec<Region>, guide: &mut dyn Guide) -> Result<()> {
        let retired = self.edit(within(&self.layout.regions, span))?;
        let regions = self.edit(splice(&self.layout.regions, &new, span))?;
        let copying =
            Layout { generation: self.layout.generation + 1, pending: new, retired: vec![], phase: MovePhase::Copying, span, ..self.layout.clone() };
        let path = self.store.part(self.id, "layout");
        let bytes = copying.encode().map_err(|e| refused(&path, e))?;
        let view = View::parse(&bytes).map_err(|e| layout_error(&path, e))?;
        self.sweep()?;
        self.ctl.reserve().doing("allocate the bitmap of", &self.store.part(self.id, "ctl"))?;
        {
            // Whoever changes the file's rights changes those of the objects that the layout names: of none of these, or of all.
            let _alone = self.store.lock_dir(self.id)?;
            make_objects(self.store, self.id, &objects_in(&copying.pending), &objects_of(&self.layout))?;
            // Some that are the home's, too, a program may have made, who has not made their names durable yet.
            let header = self.ctl();
            if header.header().objects_made.load(Ordering::SeqCst) != header.header().objects_durable.load(Ordering::SeqCst) {
                for target in objects_in(&copying.pending).into_iter().map(|(target, _)| target).collect::<BTreeSet<_>>() {
                    objects::sync_target(self.store, target, FsyncPoint::SliceDir)?;
                }
            }
            self.publish(&copying)?;
        }
        let origin = self.origin.filter(|origin| *origin != Origin::Own).unwrap_or(copying.origin);
        let published =
            Layout { generation: copying.generation + 1, origin, regions, pending: vec![], retired, phase: MovePhase::Punching, span, ..copying };
        self.run(&view, &published, guide)?;
        self.layout = published;
        self.owes_publish = false;
        self.grace(guide)?;
        self.finish()
    }

    /// The protocol, and its undoing.
    fn run(&mut self, view: &View<'_>, published: &Layout, guide: &mut dyn Guide) -> Result<()> {
        let (store, id, ctl, span) = (self.store, self.id, self.ctl(), published.span);
        let end = span.end().min(sane_size(store, id, ctl)?.max(span.start));
        let mut shift = CHUNK_SHIFT_MIN;
        while (end - span.start) >> shift >= DIRTY_BITS {
            shift += 1;
        }
        let word = protocol::begin(&ctl, span.start, span.len, shift);
        let copier = Copier::new(store, id, *view, 0, self.devices);
        let pending = objects_in(&self.layout.pending);
        let mut filling = Filling { store, id, ctl, span, shift, published, pending, copier, taken: vec![], freezes: vec![], guide };
        let result = protocol::run(&mut filling, word, LIMITS);
        self.freezes.append(&mut filling.freezes);
        for (target, ns) in filling.copier.service_ns() {
            *self.service_ns.entry(*target).or_default() += ns;
        }
        let Err(e) = result else { return Ok(()) };
        if self.is_published(protocol::end(&ctl), published.generation)? {
            return Ok(());
        }
        // The first error is the one to report; what cannot be undone now is undone by the next move or fsck.
        let _ = self.drop_pending();
        Err(e)
    }

    /// After a move that failed, maybe half way through its publishing: whether the new layout has the old one's place; if it has not, it never will.
    /// Only the layout file can tell: where no publication is owed any more a waiter may have taken the last step.
    fn is_published(&self, owed: Option<Publication>, generation: u64) -> Result<bool> {
        let there = || Ok::<bool, StoreError>(self.store.layout(self.id)?.generation >= generation);
        let Some(owed) = owed else { return there() };
        if !there()? {
            drop_prepared(self.store, self.id)?;
        }
        // A waiter may have been faster than the removal.
        if there()? {
            publish(&self.ctl(), owed, |generation| put_in_place(self.store, self.id, generation))?;
            return Ok(true);
        }
        self.ctl().exchange(owed.word, crate::moving::with_state(owed.word, crate::moving::MoveState::Idle));
        Ok(false)
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
    fn recover(&mut self, guide: &mut dyn Guide) -> Result<()> {
        drop_prepared(self.store, self.id)?;
        match self.layout.phase {
            MovePhase::None => return Ok(()),
            MovePhase::Copying => self.drop_pending()?,
            MovePhase::Punching => {
                // Who published it may have died before its name was durable, or known to all.
                put_in_place(self.store, self.id, self.layout.generation)?;
                self.ctl().raise_generation(self.layout.generation);
                self.grace(guide)?;
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
        self.ctl().raise_generation(layout.generation);
        self.layout = layout.clone();
        self.owes_publish = false;
        Ok(())
    }

    fn grace(&self, guide: &mut dyn Guide) -> Result<()> {
        grace(self.store, guide)
    }

    /// Punches the retired slices durably, or removes their objects; the layout without them is published by the next step.
    fn finish(&mut self) -> Result<()> {
        self.punch(MovePhase::Punching)?;
        self.trim()?;
        self.layout.retired = vec![];
        self.settle_layout();
        Ok(())
    }

    fn drop_pending(&mut self) -> Result<()> {
        drop_prepared(self.store, self.id)?;
        self.punch(MovePhase::Copying)?;
        self.trim()?;
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
        let home = objects_in(&self.layout.regions);
        let (kept, left): (BTreeSet<ObjectId>, BTreeSet<ObjectId>) = objects_in(regions).into_iter().partition(|o| home.contains(o));
        for (target, plane) in kept {
            if !objects::is_there(self.store, self.id, (target, plane))? {
                continue;
            }
            let path = self.store.object(target, self.id, plane)?;
            let object = objects::open(self.store, self.id, (target, plane), Opening::BOTH)?;
            punch_slices(&object, table, (target, plane)).doing("punch", &path)?;
            objects::sync(self.store, &path, &object, FsyncPoint::PunchData)?;
        }
        remove_objects(self.store, self.id, &left)
    }

    /// A program was killed while it truncated, or truncated where the freeze could not cut.
    fn trim(&self) -> Result<()> {
        cutting::trim(self.store, self.id, &self.layout, self.ctl()).map(|_| ())
    }
}

/// Waits until everybody has left the epoch that it is in, as long as the guide has patience.
fn grace(store: &Store<'_>, guide: &mut dyn Guide) -> Result<()> {
    let run = store.run_dir();
    while !store.medium.grace(&run, PATIENCE_NS).doing("wait for the programs in", &run)? {
        if !guide.waits() {
            return Err(stopped());
        }
    }
    Ok(())
}

/// A move between its begin and its publishing.
struct Filling<'f, 'v> {
    store: &'f Store<'f>,
    id: u64,
    ctl: Ctl,
    span: Span,
    shift: u32,
    published: &'f Layout,
    pending: BTreeSet<ObjectId>,
    copier: Copier<'v>,
    taken: Vec<u64>,
    freezes: Vec<(u64, bool)>,
    guide: &'f mut dyn Guide,
}

impl Filling<'_, '_> {
    fn name(&self) -> String {
        format!("file {}, bytes {} on", id_text(self.id), self.span.start)
    }

    fn size(&self) -> Result<u64> {
        sane_size(self.store, self.id, self.ctl)
    }

    /// Cuts new objects that reach further than the file, because it was truncated while it was copied, or because a dead writer has left bytes behind its
    /// end: whoever lets the file grow finds zeros in its new home. Only while the span is frozen, when nobody writes in it. Objects in which programs may
    /// write behind the span keep their length.
    fn cut_new(&self) -> Result<()> {
        let behind = objects_in(self.published.regions.iter().filter(|r| r.start >= self.span.end()));
        let present = objects_in(&self.published.retired);
        let size = self.size()?;
        for object @ &(target, plane) in &self.pending {
            let path = self.store.object(target, self.id, plane)?;
            let len = objects::look(self.store, self.id, *object)?.map_or(0, |facts| facts.len);
            // What the object holds of regions before the span lies before it in the object, too. Of the span it may hold some of the present home as well:
            // other regions of it come into that plane.
            let end = self.copier.view().end_with_copies(target, plane, size).max(self.span.start);
            if len <= end {
                continue;
            }
            let handle = objects::open(self.store, self.id, *object, Opening::BOTH)?;
            if present.contains(object) {
                // A waiter may have called the freeze off by now, and writers go on in the present home of the span: of it nothing is touched.
                let from = size.clamp(self.span.start, self.span.end());
                let to = self.copier.reach().clamp(from, self.span.end());
                for extent in self.copier.view().pending().extents(from, to - from).filter(|e| (e.target, e.plane) == *object) {
                    handle.punch(extent.object_offset, extent.len).doing("cut", &path)?;
                }
            } else if !behind.contains(object) {
                handle.set_len(end).doing("cut", &path)?;
            } else if end < self.span.end() {
                handle.punch(end, len.min(self.span.end()) - end).doing("cut", &path)?;
            }
        }
        Ok(())
    }
}

impl Work for Filling<'_, '_> {
    type Error = StoreError;
    type Words = Ctl;

    fn words(&self) -> Ctl {
        self.ctl
    }

    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn grace(&mut self, until_ns: Option<u64>) -> Result<bool> {
        let Some(until) = until_ns else { return grace(self.store, self.guide).map(|()| true) };
        let run = self.store.run_dir();
        self.store.medium.grace(&run, until.saturating_sub(now_ns())).doing("wait for the programs in", &run)
    }

    fn is_pinned(&mut self) -> Result<bool> {
        let ctl = self.store.part(self.id, "ctl");
        self.store.medium.is_pinned(&ctl).doing("look at the locks of", &ctl)
    }

    fn may_go_on(&mut self) -> Result<()> {
        if self.is_pinned()? {
            return Err(self.was_called_off());
        }
        if self.ctl.header().flags.load(Ordering::SeqCst) & FLAG_UNLINKED != 0 {
            return Err(StoreError::NotFound(format!("{}: it was removed while it moved", self.name())));
        }
        if self.guide.waits() { Ok(()) } else { Err(stopped()) }
    }

    fn copy_all(&mut self) -> Result<()> {
        // Only now: who extended the file without marking a chunk has left.
        let size = self.size()?;
        self.copier.grow(size);
        let end = self.span.end().min(size.max(self.span.start));
        self.copier.copy(self.span.start, end, false, self.guide)
    }

    fn take(&mut self) -> usize {
        let words = (self.span.len.saturating_sub(1) >> self.shift).min(DIRTY_BITS - 1) / 64 + 1;
        for word in 0..words {
            // Looked at first: taking is an exchange, and most words are empty.
            let mut bits = if self.ctl.dirty(word) == 0 { 0 } else { self.ctl.take(word) };
            while bits != 0 {
                self.taken.push(word * 64 + u64::from(bits.trailing_zeros()));
                bits &= bits - 1;
            }
        }
        self.taken.len()
    }

    fn copy_taken(&mut self) -> Result<()> {
        let size = self.size()?;
        self.copier.grow(size);
        // Writers wait: whoever slows the copy down would slow them down, and the freeze would not last.
        let is_frozen = MoveState::of(self.ctl.word()) == MoveState::Frozen;
        for chunk in std::mem::take(&mut self.taken) {
            let from = self.span.start.saturating_add(chunk << self.shift);
            // The last bit stands for all that no bit is left for.
            let to = if chunk + 1 == DIRTY_BITS { self.span.end() } else { from.saturating_add(1 << self.shift).min(self.span.end()) };
            let guide: &mut dyn Guide = if is_frozen { &mut Unguided } else { self.guide };
            self.copier.copy(from, to, true, guide)?;
        }
        self.copier.settle();
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.copier.settle();
        if MoveState::of(self.ctl.word()) == MoveState::Frozen {
            self.cut_new()?;
        }
        sync_slices(self.store, self.id, &self.pending, self.span, FsyncPoint::SliceData)
    }

    fn prepare(&mut self) -> Result<u64> {
        // The new objects' lengths tell nothing of holes at the end.
        mirror_size(self.store, self.id, self.ctl)?;
        prepare_layout(self.store, self.id, self.published)?;
        Ok(self.published.generation)
    }

    fn put_in_place(&mut self, generation: u64) -> Result<()> {
        put_in_place(self.store, self.id, generation)
    }

    fn was_frozen(&mut self, ns: u64, published: bool) {
        self.freezes.push((ns, published));
        self.guide.was_frozen(ns, published);
    }

    fn was_called_off(&self) -> StoreError {
        StoreError::InUse(format!("{}: a program has the file mapped; it moves when no map is left", self.name()))
    }

    fn gave_up(&self) -> StoreError {
        StoreError::InUse(format!("{}: its writers would not wait for the move; try again when they write less", self.name()))
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
