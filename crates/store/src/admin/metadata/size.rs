//! The size of a file, and how it is found again after a power cut.
//!
//! While a boot lasts, the u64 in ctl is the size. After a power cut it is the larger of head's length (written at fsync and close)
//! and the logical ends of the objects, but for those that an unfinished move copies into or has left: a chunk of what was being cut off may have got there.
//! What they hold behind the size is then cut off before the file changes.

use std::collections::BTreeSet;

use stripewise_layout::{Layout, MovePhase, View};

use crate::admin::error::{Context, Result, StoreError};
use crate::admin::medium::{CtlMap, FsyncPoint, Open};
use crate::admin::objects;
use crate::admin::store::Store;
use crate::ctl::{Ctl, FLAG_TRUNCATING, boot_words};
use crate::rights::Part;
use crate::times;

/// Length of head: the size at the last fsync or close.
///
/// # Errors
/// `NotFound` when head is missing, `Io`.
pub fn head_size(store: &Store<'_>, id: u64) -> Result<u64> {
    let path = store.part(id, "head");
    let stat = store.medium.stat(&path).doing("look at", &path)?;
    stat.map(|s| s.size).ok_or_else(|| StoreError::NotFound(format!("{} is missing; run 'stripewise store fsck STORE'", path.display())))
}

/// The size as head and the objects tell it (the rule above).
///
/// # Errors
/// `Damaged` where a target of the layout's is away, `Io`, `NotFound` when head is missing. A missing object counts as empty: fsck reports it.
pub fn recovered_size(store: &Store<'_>, id: u64, layout: &Layout) -> Result<u64> {
    check_targets(store, id, layout)?;
    size_by_what_is_there(store, id, layout)
}

/// As [`recovered_size`], but where targets are away no more than a lower bound: for those alone who say so.
///
/// # Errors
/// `Io`, `NotFound` when head is missing.
pub fn size_by_what_is_there(store: &Store<'_>, id: u64, layout: &Layout) -> Result<u64> {
    let path = store.part(id, "layout");
    let bytes = layout.encode().map_err(|e| crate::admin::store::layout_error(&path, e))?;
    let view = View::parse(&bytes).map_err(|e| crate::admin::store::layout_error(&path, e))?;
    let mut size = head_size(store, id)?;
    for (target, plane) in super::publish::objects_in(&layout.regions).into_iter().filter(|&(target, plane)| !view.holds_copies(target, plane)) {
        let facts = objects::look(store, id, (target, plane))?;
        size = size.max(view.logical_end(target, plane, facts.map_or(0, |facts| facts.len)));
    }
    Ok(size)
}

/// A target that is away tells nothing of its objects, and a size that was found without them would cut them off once it is back.
///
/// # Errors
/// `Damaged` where one of the layout's is away, `Io`.
fn check_targets(store: &Store<'_>, id: u64, layout: &Layout) -> Result<()> {
    let used: BTreeSet<u32> = super::publish::objects_in(&layout.regions).into_iter().map(|(target, _)| target).collect();
    for index in used {
        if let Some(why) = store.away(index as usize) {
            return Err(StoreError::Damaged(format!(
                "{}: {why}; how long the file is cannot be told without it, for it was not closed in this boot",
                super::link::called(store, id)
            )));
        }
    }
    Ok(())
}

/// The control words of a file, brought up to date: made anew when missing or damaged, the size recovered after a power cut.
///
/// # Errors
/// `Io`, and those of [`recovered_size`] where it is to be recovered.
pub fn open_ctl(store: &Store<'_>, id: u64, layout: &Layout) -> Result<Box<dyn CtlMap>> {
    let path = store.part(id, "ctl");
    let boot = boot_words(&store.boot_id()?);
    let fresh = store.medium.stat(&path).doing("look at", &path)?.is_none();
    let map = store.medium.ctl(&path, true).doing("map", &path)?;
    if fresh {
        store.medium.follow_head(&store.part(id, "head"), &path, Part::Ctl).doing("give the owner of head to", &path)?;
    }
    let ctl = map.ctl();
    if ctl.is_valid() && ctl.boot_is(boot) {
        return Ok(map);
    }
    // A program that opens the file at the same time does the same, under the same lock: a size taken before its writes would cut them off.
    let _alone = store.lock_dir(id)?;
    if !ctl.is_valid() || !ctl.boot_is(boot) {
        let size = recovered_size(store, id, layout)?;
        ctl.reset_move();
        let flags = if layout.phase == MovePhase::None { 0 } else { FLAG_TRUNCATING };
        ctl.header().flags.store(flags, std::sync::atomic::Ordering::Release);
        ctl.initialise(boot, size, layout.generation);
    }
    Ok(map)
}

/// The size by the control words, which come from whoever may write the file.
///
/// # Errors
/// `Damaged` when no file can have it, or when they have been cut since they were mapped.
pub fn sane_size(store: &Store<'_>, id: u64, ctl: Ctl) -> Result<u64> {
    let size = ctl.sane_size();
    let path = || store.part(id, "ctl");
    // After the size: words that are there still were there when it was read.
    if !ctl.is_valid() {
        return Err(StoreError::Damaged(format!("{} was cut by somebody who may write the file; run {}", path().display(), store.repair_command())));
    }
    size.ok_or_else(|| {
        StoreError::Damaged(format!("{}: the size {} is past every layout; run {}", path().display(), ctl.size(), store.repair_command()))
    })
}

/// Writes the size to head and makes it durable, so that a power cut during a move finds it exactly. Programs may be changing it at the same time.
///
/// # Errors
/// `Io`.
pub fn mirror_size(store: &Store<'_>, id: u64, ctl: Ctl) -> Result<()> {
    let path = store.part(id, "head");
    let head = store.medium.open(&path, Open::Write).doing("open", &path)?;
    loop {
        let size = sane_size(store, id, ctl)?;
        if head.len().doing("look at", &path)? != size {
            times::kept(&ctl.header().times, || head.set_len_quietly(size)).doing("set the length of", &path)?;
        }
        // A program that has set another size since may have written it to head before this one was.
        if ctl.size() == size {
            break;
        }
    }
    head.sync(FsyncPoint::HeadSize).doing("flush", &path)
}
