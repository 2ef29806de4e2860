//! Applying a layout to a file: what differs, in which order there is room for it, and one [`Mover`] step per group.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use serde::Serialize;
use stripewise_layout::{GRANULE, Layout, MovePhase, Origin, Placement, Region, Span, Stripe, View, spans, within};

use super::guide::{Guide, Unguided};
use super::mover::Mover;
use crate::admin::capacity::{GROUP_BYTES, Order, SpanCost, bytes_by_target, free_bytes, give_and_take, roomy, schedule};
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::id_text;
use crate::admin::info::current_size;
use crate::admin::medium::{DevicesMap, Lock};
use crate::admin::metadata::lost::{Known, lost};
use crate::admin::metadata::ranges::data_ranges;
use crate::admin::metadata::size::{head_size, mirror_size, open_ctl, sane_size};
use crate::admin::metadata::unlinked::remove_if_last;
use crate::admin::spec::{LayoutJson, plain_layout, stripes_of};
use crate::admin::store::{Store, layout_error};
use crate::ctl::Ctl;
use crate::locks::How;
use crate::moving::{MoveState, Words};

/// What an apply did.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Applied {
    /// Spans that got a new home.
    pub spans: usize,
    /// Publishing steps they were moved in.
    pub groups: usize,
    /// Bytes of data that moved.
    pub moved_bytes: u64,
    /// Generation of the layout now.
    pub generation: u64,
    /// How long writers to a span were kept out, ns, for each freeze that ended in a publish.
    pub freezes_ns: Vec<u64>,
    /// Freezes that were given up because somebody stayed inside an I/O, or would not wait.
    pub aborted_freezes: usize,
    /// Service time that the copies took of each emulated target, ns.
    pub copy_service_ns: BTreeMap<u32, u64>,
}

/// Gives file `id` the layout `wanted`, while programs use it or not. Bytes whose home does not change are not touched.
///
/// # Errors
/// `InUse` when another mover is at work, an offline change is under way, or a program has the file mapped; `NoSpace` before anything is changed when
/// the move cannot fit, `Invalid` for the layout, `Stopped`. When it stops half way, what has been moved stays moved and the file is whole.
pub fn apply(store: &Store<'_>, id: u64, wanted: &LayoutJson, guide: &mut dyn Guide) -> Result<Applied> {
    let _mover = store.lock_mover()?;
    move_to(store, id, wanted, guide)
}

/// Which of the files, each an id and its wanted layout, would be the first that a move refuses for want of room, were they moved in this order now; and why.
///
/// # Errors
/// `NotFound`, `Invalid` for a layout, `Io`.
pub fn without_room(store: &Store<'_>, files: &[(u64, LayoutJson)]) -> Result<Option<(usize, String)>> {
    let mut free = free_bytes(store)?;
    for (number, (id, wanted)) in files.iter().enumerate() {
        let new = wanted.regions(&format!("layout of file {}", id_text(*id)), store.targets.len())?;
        let layout = store.layout(*id)?;
        let size = current_size(store, *id, &layout)?;
        let all = spans(&layout.regions, &new, size);
        let costs = span_costs(store, *id, &layout, &new, size, &all)?.into_iter().filter(|c| c.bytes() > 0).collect::<Vec<_>>();
        free = match find_room(store, &costs, free) {
            Ok(order) => order.free,
            Err(StoreError::NoSpace(why)) => return Ok(Some((number, why))),
            Err(e) => return Err(e),
        };
    }
    Ok(None)
}

/// As [`apply`], by one who holds the store's mover lock.
///
/// # Errors
/// As [`apply`].
pub fn move_to(store: &Store<'_>, id: u64, wanted: &LayoutJson, guide: &mut dyn Guide) -> Result<Applied> {
    let new = wanted.regions(&format!("layout of file {}", id_text(id)), store.targets.len())?;
    let applied = move_open(store, id, new, wanted.origin.map(Origin::from), guide);
    // Who unlinked it meanwhile, and closed it, has left it to us.
    let removed = remove_if_last(store, id);
    applied.and_then(|applied| removed.map(|()| applied))
}

fn move_open(store: &Store<'_>, id: u64, new: Vec<Region>, origin: Option<Origin>, guide: &mut dyn Guide) -> Result<Applied> {
    check_programs_know(store, &new)?;
    // What is gone reads as zeros, which nobody could tell from the file's own behind the move.
    if let Some((what, cure)) = lost(store, id)?.into_iter().next() {
        let way = if cure.is_empty() { String::new() } else { format!("; {cure}") };
        return Err(StoreError::Damaged(format!("{what}{way}")));
    }
    let layout = store.layout(id)?;
    // A file that is just being made may have none yet: then nothing of it is touched, or made in its maker's place.
    head_size(store, id)?;
    let devices = store.clocks()?;
    let map = open_ctl(store, id, &layout)?;
    let _open = hold_file(store, id)?;
    mirror_size(store, id, map.ctl())?;
    let known = Known::of(store, id, layout.generation)?;
    let mut mover = Mover::open(store, id, map.as_ref(), devices.as_deref(), guide)?;
    mover.gives(origin);
    let result = Apply { store, id, new, ctl: map.ctl(), mover: &mut mover, guide, step: Step { bytes: Step::FIRST_BYTES } }.run();
    if result.is_ok() {
        mover.settle_origin();
    }
    let closed = mover.close();
    forget_usage(store, devices.as_deref());
    if let (Some(known), Ok(())) = (known, &closed) {
        // What has moved has moved: without this a scrub knows less of the file, and that is all.
        let _ = known.carry(store, id, mover.layout().generation);
    }
    let mut applied = result?;
    closed?;
    sane_size(store, id, map.ctl())?;
    applied.generation = mover.layout().generation;
    (applied.freezes_ns, applied.aborted_freezes) = mover.freezes();
    applied.copy_service_ns = mover.service_ns().clone();
    Ok(applied)
}

/// Refuses targets that a living program has never heard of: it began before they were added, and could not find the file's bytes.
fn check_programs_know(store: &Store<'_>, new: &[Region]) -> Result<()> {
    let Some(last) = new.iter().flat_map(|r| stripes_of(&r.placement)).map(|s| s.target).max() else { return Ok(()) };
    if last == 0 {
        return Ok(());
    }
    match store.programs()?.into_iter().find(|p| p.targets > 0 && p.targets <= last) {
        None => Ok(()),
        Some(program) => Err(StoreError::InUse(format!(
            "process {} began before target {} was added and could not find bytes there; wait until it has ended, or stop it",
            program.pid,
            store.target(last)?.name
        ))),
    }
}

/// Has the file open as programs do, so that nobody takes it for unused while it moves.
fn hold_file(store: &Store<'_>, id: u64) -> Result<Box<dyn Lock>> {
    let ctl = store.part(id, "ctl");
    store
        .medium
        .try_presence(&ctl, How::Shared)
        .doing("lock", &ctl)?
        .ok_or_else(|| StoreError::InUse(format!("file {}: another stripewise command has it for itself; wait until it is done", id_text(id))))
}

/// Finishes or undoes what an interrupted move left in file `id`; true when there was something. The caller keeps movers away.
///
/// # Errors
/// Those of the medium.
pub fn recover(store: &Store<'_>, id: u64) -> Result<bool> {
    let layout = store.layout(id)?;
    let map = open_ctl(store, id, &layout)?;
    let is_idle = MoveState::of(map.ctl().word()) == MoveState::Idle;
    if layout.phase == MovePhase::None && is_idle {
        return Ok(false);
    }
    Mover::open(store, id, map.as_ref(), None, &mut Unguided)?;
    Ok(true)
}

/// The programs' estimates of what targets hold no longer fit: they count anew.
pub(crate) fn forget_usage(store: &Store<'_>, devices: Option<&dyn DevicesMap>) {
    let Some(map) = devices else { return };
    for target in 0..store.targets.len() as u32 {
        if let Some(line) = map.devices().line(target) {
            line.used_bytes.store(u64::MAX, Ordering::Relaxed);
        }
    }
}

/// How much is moved and published in one step: the more, the fewer flushes in all; the less, the fewer bytes are dirty when writers are kept out.
struct Step {
    bytes: u64,
}

impl Step {
    const FIRST_BYTES: u64 = 4 << 20;
    /// Freezes shorter than this ask for larger steps, those longer than the other for smaller ones.
    const SHORT_NS: u64 = 5_000_000;
    const LONG_NS: u64 = 10_000_000;

    /// How many of the spans go next, at least one.
    fn spans(&self, rest: &[&SpanCost]) -> usize {
        let mut sum = 0u64;
        let fit = rest.iter().take_while(|cost| {
            sum = sum.saturating_add(cost.bytes());
            sum <= self.bytes
        });
        fit.count().max(1)
    }

    fn learn(&mut self, freeze_ns: Option<u64>) {
        match freeze_ns {
            Some(ns) if ns > Self::LONG_NS => self.bytes = (self.bytes / 2).max(1 << 16),
            Some(ns) if ns < Self::SHORT_NS => self.bytes = (self.bytes * 2).min(GROUP_BYTES),
            _ => {}
        }
    }
}

struct Apply<'a, 'm> {
    store: &'a Store<'a>,
    id: u64,
    new: Vec<Region>,
    ctl: Ctl,
    mover: &'m mut Mover<'a>,
    guide: &'m mut dyn Guide,
    step: Step,
}

impl Apply<'_, '_> {
    fn run(&mut self) -> Result<Applied> {
        let all = spans(&self.mover.layout().regions, &self.new, self.ctl.size());
        let mut applied = Applied { spans: all.len(), ..Applied::default() };
        let bare = self.move_data(&all, &mut applied)?;
        // What the file grows by meanwhile lands in spans that held nothing before, and needs room like any other data.
        let bare = self.move_data(&bare, &mut applied)?;
        // Last: who is refused room, or stopped, finds the file growing as it did.
        for hull in joined_spans(bare.into_iter()) {
            let new = self.wanted_apart(hull)?;
            self.mover.shift(hull, new, self.guide)?;
        }
        Ok(applied)
    }

    /// Moves those of the spans that hold data, once all of them are known to find room; returns the others.
    fn move_data(&mut self, all: &[Span], applied: &mut Applied) -> Result<Vec<Span>> {
        let (costs, bare): (Vec<SpanCost>, Vec<SpanCost>) = self.costs(all)?.into_iter().partition(|c| c.bytes() > 0);
        let total = applied.moved_bytes + costs.iter().map(SpanCost::bytes).sum::<u64>();
        let order = find_room(self.store, &costs, free_bytes(self.store)?)?;
        let crowded: Vec<SpanCost> = order.crowded.iter().filter_map(|i| costs.get(*i).cloned()).collect();
        self.run_groups(&costs, order.groups, total, applied)?;
        if !crowded.is_empty() {
            for cost in &crowded {
                self.step_aside(cost)?;
            }
            let costs = self.costs(&crowded.iter().map(|c| c.span).collect::<Vec<_>>())?;
            let order = schedule(self.store, &costs, free_bytes(self.store)?)?;
            if let Some(cost) = order.crowded.first().and_then(|i| costs.get(*i)) {
                return Err(no_room(cost.span));
            }
            self.run_groups(&costs, order.groups, total, applied)?;
        }
        Ok(bare.into_iter().map(|c| c.span).collect())
    }

    /// Moves a span to wherever there is room, so that its old copy makes way for its new one.
    fn step_aside(&mut self, cost: &SpanCost) -> Result<()> {
        let target = place_aside(&free_bytes(self.store)?, cost)?;
        let mut aside = self.wanted_apart(cost.span)?;
        for region in &mut aside {
            let width_bytes = region.len.min(cost.span.len).max(GRANULE);
            region.placement = Placement::Striped(vec![Stripe { target, width_bytes }]);
        }
        self.mover.shift(cost.span, aside, self.guide)
    }

    fn run_groups(&mut self, costs: &[SpanCost], groups: Vec<Vec<usize>>, total: u64, applied: &mut Applied) -> Result<()> {
        for group in groups {
            let members: Vec<&SpanCost> = group.iter().filter_map(|i| costs.get(*i)).collect();
            let mut rest = members.as_slice();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(self.step.spans(rest));
                self.move_group(now)?;
                self.step.learn(self.mover.freezes().0.last().copied());
                rest = later;
                applied.groups += 1;
                applied.moved_bytes += now.iter().map(|c| c.bytes()).sum::<u64>();
                if !self.guide.moved(applied.moved_bytes, total) {
                    return Err(StoreError::Stopped(format!(
                        "stopped after {} of {total} bytes; the file is whole, run the same again for the rest",
                        applied.moved_bytes
                    )));
                }
            }
        }
        Ok(())
    }

    fn costs(&self, all: &[Span]) -> Result<Vec<SpanCost>> {
        span_costs(self.store, self.id, self.mover.layout(), &self.new, self.ctl.size(), all)
    }

    fn wanted_in(&self, span: Span, generation: u32) -> Result<Vec<Region>> {
        let mut new = within(&self.new, span).map_err(|e| StoreError::Invalid(format!("layout of file {}: {e}", id_text(self.id))))?;
        new.iter_mut().for_each(|r| r.generation = generation);
        Ok(new)
    }

    /// The wanted regions of a span, in the plane that its present regions leave free; those are first brought into one plane if need be.
    fn wanted_apart(&mut self, span: Span) -> Result<Vec<Region>> {
        if free_generation(&self.mover.layout().regions, span).is_none() {
            self.unify_planes(span)?;
        }
        let generation = free_generation(&self.mover.layout().regions, span).unwrap_or_default();
        self.wanted_in(span, generation)
    }

    fn move_group(&mut self, members: &[&SpanCost]) -> Result<()> {
        let mut new = Vec::new();
        for cost in members {
            new.extend(self.wanted_apart(cost.span)?);
        }
        let (Some(first), Some(last)) = (members.first(), members.last()) else { return Ok(()) };
        let hull = if last.span.is_to_end() {
            Span::to_end(first.span.start)
        } else {
            Span { start: first.span.start, len: last.span.end() - first.span.start }
        };
        self.mover.shift(hull, new, self.guide)
    }

    /// Brings a span whose regions use both planes into one: those in plane 1 move, placement unchanged, to plane 0.
    fn unify_planes(&mut self, span: Span) -> Result<()> {
        let old = within(&self.mover.layout().regions, span).map_err(|e| layout_error(&self.store.part(self.id, "layout"), e))?;
        for (i, region) in old.iter().enumerate().filter(|(_, r)| r.generation & 1 == 1) {
            let alone =
                if span.is_to_end() && i + 1 == old.len() { Span::to_end(region.start) } else { Span { start: region.start, len: region.len } };
            let moved = Region { generation: region.generation.wrapping_add(1), ..region.clone() };
            self.mover.shift(alone, vec![moved], self.guide)?;
        }
        Ok(())
    }
}

/// What each span of a file of `size` bytes takes and frees. Holes cost nothing.
fn span_costs(store: &Store<'_>, id: u64, layout: &Layout, new: &[Region], size: u64, all: &[Span]) -> Result<Vec<SpanCost>> {
    let path = store.part(id, "layout");
    let old_bytes = layout.encode().map_err(|e| layout_error(&path, e))?;
    let old = View::parse(&old_bytes).map_err(|e| layout_error(&path, e))?;
    let wanted = plain_layout(new.to_vec(), 0, [0, 0], Origin::Unknown);
    let new_bytes = wanted.encode().map_err(|e| StoreError::Invalid(format!("layout of file {}: {e}", id_text(id))))?;
    let new = View::parse(&new_bytes).map_err(|e| StoreError::Invalid(format!("layout of file {}: {e}", id_text(id))))?;
    let mut handles = BTreeMap::new();
    let mut costs = Vec::with_capacity(all.len());
    for span in all {
        let end = span.end().min(size.max(span.start));
        let data = data_ranges(store, id, old.home(), span.start, end, &mut handles)?;
        costs.push(SpanCost {
            span: *span,
            incoming: bytes_by_target(new.home(), span.start, end, &data),
            outgoing: bytes_by_target(old.home(), span.start, end, &data),
        });
    }
    Ok(costs)
}

/// The order in which spans find room where targets have so much `free`; those that are crowded can step aside and come back. `free` of the order is what is
/// left when all have moved.
///
/// # Errors
/// `NoSpace`, `Damaged` for a target that is away.
fn find_room(store: &Store<'_>, costs: &[SpanCost], free: Vec<u64>) -> Result<Order> {
    check_targets_are_there(store, costs, &free)?;
    let order = schedule(store, costs, free)?;
    let crowded: Vec<SpanCost> = order.crowded.iter().filter_map(|i| costs.get(*i).cloned()).collect();
    let free = check_detours(store, &crowded, order.free)?;
    Ok(Order { free, ..order })
}

/// A target without room may be one whose directory is away: that is the thing to say then.
fn check_targets_are_there(store: &Store<'_>, costs: &[SpanCost], free: &[u64]) -> Result<()> {
    for target in costs.iter().flat_map(|c| c.incoming.keys()).filter(|t| free.get(**t as usize) == Some(&0)) {
        if let Some(why) = store.away(*target as usize) {
            return Err(StoreError::Damaged(why));
        }
    }
    Ok(())
}

/// Where a span that is in its own way can wait.
fn place_aside(free: &[u64], cost: &SpanCost) -> Result<u32> {
    let targets = roomy(free, cost.bytes().next_multiple_of(GRANULE), 1);
    targets.first().copied().ok_or_else(|| no_room(cost.span))
}

/// Whether all crowded spans can step aside and come back, where `free` is what targets have left by then: a move that could not be ended is not begun.
/// Returns what they have then.
fn check_detours(store: &Store<'_>, crowded: &[SpanCost], mut free: Vec<u64>) -> Result<Vec<u64>> {
    let mut back = Vec::with_capacity(crowded.len());
    for cost in crowded {
        let target = place_aside(&free, cost)?;
        give_and_take(&mut free, &BTreeMap::from([(target, cost.bytes())]), &cost.outgoing);
        back.push(SpanCost { outgoing: BTreeMap::from([(target, cost.bytes())]), ..cost.clone() });
    }
    let order = schedule(store, &back, free)?;
    order.crowded.first().and_then(|i| back.get(*i)).map_or(Ok(order.free), |cost| Err(no_room(cost.span)))
}

fn no_room(span: Span) -> StoreError {
    StoreError::NoSpace(format!(
        "the region at byte {} fits its targets, but no target has room to keep it while it moves; free some space on any target",
        span.start
    ))
}

/// The generation for new regions of a span: the next whose plane its present regions leave free; `None` when they use both. As
/// `stripewise_layout::plane_for`, but looking at the span's regions only: a file may have a million.
fn free_generation(old: &[Region], span: Span) -> Option<u32> {
    let first = old.partition_point(|r| r.start <= span.start).saturating_sub(1);
    let mut present = old.get(first..)?.iter().take_while(|r| r.start < span.end()).map(|r| r.generation);
    let mut newest = present.next()?;
    for generation in present {
        if generation & 1 != newest & 1 {
            return None;
        }
        newest = newest.max(generation);
    }
    Some(newest.wrapping_add(1))
}

/// Joins neighbouring spans.
fn joined_spans(spans: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    for span in spans {
        match out.last_mut() {
            Some(last) if last.end() == span.start => last.len = if span.is_to_end() { u64::MAX - last.start } else { span.end() - last.start },
            _ => out.push(span),
        }
    }
    out
}
