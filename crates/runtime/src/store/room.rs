//! How much room the targets have, as new files want to know it. Looking costs some system calls per target, so all processes of the machine share what one
//! has seen (`devices`), for as long as it can be trusted.

use super::Attached;
use crate::base::lock::Lock;
use crate::base::sys::{Errno, Sys, of_target};
use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;
use stripewise_layout::{NotAsked, Spread, Striping, View};
use stripewise_store::room::{Seen, share};
use stripewise_target::devices::Devices;
use stripewise_target::interface::Target;
use stripewise_target::kind::MAX_TARGETS;
use stripewise_target::time::now_ns;

/// What was seen is looked at again after so long, ns.
const FRESH_NS: u64 = 2_000_000_000;
/// Where a target has less room than so, bytes, which a second may fill, it is looked at more often, ns.
const LITTLE_BYTES: u64 = 4 << 30;
const FRESH_WHERE_LITTLE_NS: u64 = 100_000_000;
/// Looking takes at most such a part of the time: a target with a capacity of its own may have its objects counted.
const SHARE_OF_TIME: u64 = 20;
/// And however long one took, or somebody says that it did, what it saw is not believed for longer, ns.
const STALE_NS: u64 = 60_000_000_000;
/// Longest layout that is looked at: one of thousands of regions is of a file that its maker knows.
const SHORT_BYTES: usize = 65_536;

/// What a look sees, in one place for it is too large for small stacks.
struct Scratch(UnsafeCell<([Seen; MAX_TARGETS], [u64; MAX_TARGETS])>);

// SAFETY: used under LOOKING alone.
unsafe impl Sync for Scratch {}

static LOOKING: Lock = Lock::new();
static SCRATCH: Scratch = Scratch(UnsafeCell::new(([Seen { device: 0, free: 0, left: 0 }; MAX_TARGETS], [0; MAX_TARGETS])));

/// The layout of a new file: a template, which may be spread otherwise over its targets.
pub struct Chosen {
    pub template: &'static [u8],
    pub spread: Option<Spread<'static>>,
}

impl Chosen {
    fn as_it_is(template: &'static [u8]) -> Self {
        Self { template, spread: None }
    }
}

impl Attached {
    /// What a new file gets in place of `template`. Of one region, it is spread by the room on its targets, and gives way to the store's own where none
    /// has room for a stripe; of more, where one lacks room for it. As it is where the room is not known.
    #[inline(never)] // Its tables would lie on the stack below what is done after it.
    pub fn layout_for(&'static self, template: &'static [u8], chance: u64) -> Sys<Chosen> {
        let own = self.view()?.default_layout();
        let (Some(devices), true) = (self.devices(), template.len() <= SHORT_BYTES) else { return Ok(Chosen::as_it_is(template)) };
        let Ok(view) = View::parse(template) else { return Ok(Chosen::as_it_is(template)) };
        let is_own = template.as_ptr() == own.as_ptr();
        let Ok(own_view) = (if is_own { Ok(view) } else { View::parse(own) }) else { return Ok(Chosen::as_it_is(template)) };
        let targets = || (0..self.view().map_or(0, |v| v.target_count()) as u32).filter(|t| view.uses_target(*t) || own_view.uses_target(*t));
        if !is_fresh(devices, targets()) && self.look(devices, targets()).is_err() {
            return Ok(Chosen::as_it_is(template));
        }
        let known = |target: u32| known(devices, target);
        let all_known = |view: &View<'_>| (0..view.target_count()).filter(|t| view.uses_target(*t)).all(|t| known(t).is_some());
        let room = |target: u32| known(target).unwrap_or(0);
        let spread =
            |view: &View<'static>, template, chance| Chosen { template, spread: if all_known(view) { Spread::of(view, room, chance) } else { None } };
        let lacks_room = || if view.region_count() > 1 { !fits(&view, room) } else { !is_own && is_full(&view, room) };
        if all_known(&view) && lacks_room() {
            return Ok(spread(&own_view, own, Some(chance)));
        }
        // What a rule says is turned for no file: somebody may have measured it.
        Ok(spread(&view, template, is_own.then_some(chance)))
    }

    /// What a new file gets in place of the store's own `template` where it was asked for in some stripes. What room nobody knows counts as enough.
    #[cold]
    #[inline(never)] // As above.
    pub fn layout_asked(&'static self, template: &'static [u8], asked: &Striping, chance: u64) -> Sys<Result<Spread<'static>, NotAsked>> {
        let Ok(view) = View::parse(template) else { return Ok(Err(NotAsked::Shaped)) };
        let count = self.view()?.target_count() as u32;
        let targets = || (0..count).filter(|t| view.uses_target(*t));
        let seen = self.devices().filter(|devices| is_fresh(devices, targets()) || self.look(devices, targets()).is_ok());
        let room = |target: u32| seen.and_then(|devices| known(devices, target)).unwrap_or(u64::MAX);
        Ok(Spread::asked(&view, asked, room, chance))
    }

    /// Looks at the room of the targets.
    #[cold]
    #[inline(never)] // As above.
    fn look(&'static self, devices: &Devices, targets: impl Iterator<Item = u32> + Clone) -> Sys<()> {
        let clock = devices.room_clock();
        let Some(_held) = LOOKING.lock() else { return Ok(()) };
        let begun = now_ns();
        clock.looked_ns.store(begun, Ordering::Relaxed);
        // SAFETY: under LOOKING.
        let (seen, room) = unsafe { &mut *SCRATCH.0.get() };
        let mut count = 0;
        for (target, seen) in targets.clone().zip(seen.iter_mut()) {
            count += 1;
            // One that is not there is told of where its object is made.
            *seen = self.see(devices, target).unwrap_or(Seen { device: alone(target), free: u64::MAX, left: u64::MAX });
        }
        let (Some(seen), Some(room)) = (seen.get(..count), room.get_mut(..count)) else { return Err(Errno(libc::EIO)) };
        share(seen, room);
        for ((target, seen), room) in targets.zip(seen).zip(room) {
            if let Some(line) = devices.line(target) {
                line.room_used_bytes.store(line.used_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
                line.room_bytes.store(if seen.free == u64::MAX { 0 } else { room.saturating_add(1) }, Ordering::Relaxed);
            }
        }
        clock.took_ns.store(now_ns().saturating_sub(begun), Ordering::Relaxed);
        Ok(())
    }

    fn see(&'static self, devices: &Devices, index: u32) -> Sys<Seen> {
        let held = self.target(index)?;
        let target = held.any();
        let device = of_target(target.pool())?.unwrap_or(alone(index));
        let free = of_target(target.free_bytes())?.min(u64::MAX - 1);
        let capacity = self.view()?.target(index as usize).map_or(0, |t| t.capacity_bytes);
        let left = if capacity == 0 {
            u64::MAX
        } else {
            let counted = devices.line(index).map_or(0, |line| line.used_bytes.load(Ordering::Relaxed));
            // The count errs upwards only, and far from the end by how much does not matter.
            let used = if counted != 0 && counted <= capacity / 2 { counted } else { of_target(target.used_bytes())? };
            capacity.saturating_sub(used)
        };
        Ok(Seen { device, free, left })
    }
}

/// The room that was seen on a target, bytes; none: nobody has.
fn known(devices: &Devices, target: u32) -> Option<u64> {
    devices.line(target).map(|line| line.room_bytes.load(Ordering::Relaxed)).unwrap_or(0).checked_sub(1)
}

/// The number of a pool that is one target's alone.
fn alone(target: u32) -> u64 {
    u64::MAX - u64::from(target)
}

fn is_fresh(devices: &Devices, targets: impl Iterator<Item = u32>) -> bool {
    let clock = devices.room_clock();
    let (mut limit, mut is_taken) = (FRESH_NS, false);
    for line in targets.filter_map(|target| devices.line(target)) {
        let [room, used, before] = [&line.room_bytes, &line.used_bytes, &line.room_used_bytes].map(|word| word.load(Ordering::Relaxed));
        if room <= LITTLE_BYTES {
            limit = FRESH_WHERE_LITTLE_NS;
        }
        // Only targets with capacities of their own count what is written.
        is_taken |= used != u64::MAX && used.saturating_sub(before) > room / 8;
    }
    let limit = if is_taken { 0 } else { limit }.max(clock.took_ns.load(Ordering::Relaxed).saturating_mul(SHARE_OF_TIME)).min(STALE_NS);
    let looked = clock.looked_ns.load(Ordering::Relaxed);
    // A time that is yet to come is another's joke.
    looked != 0 && now_ns().checked_sub(looked).is_some_and(|age| age < limit)
}

/// Whether all targets have room for their parts of what a layout says, its last region once.
fn fits(view: &View<'_>, room: impl Fn(u32) -> u64) -> bool {
    let Some(end) = view.home().region(view.region_count().saturating_sub(1)).map(|last| last.end()) else { return true };
    (0..view.target_count()).all(|target| view.target_bytes(target, end) <= room(target))
}

/// Whether no target has room for one stripe of the first region.
fn is_full(view: &View<'_>, room: impl Fn(u32) -> u64) -> bool {
    let Some(region) = view.home().region(0) else { return false };
    region.stripes().all(|(target, width_bytes)| room(target) < width_bytes)
}
